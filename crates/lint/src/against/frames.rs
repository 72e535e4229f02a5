//! Call frames and line tables say of each instruction, where it is now, what they said of it.
//!
//! Absent on purpose: the rest of the debug information (scopes, places of variables); `docs/verification.md` says so.

use super::map::AddressMap;
use crate::finding::{FILE, Finding};
use crate::lines::Lines;
use crate::unit::Unit;
use gimli::{BaseAddresses, DebugFrame, EhFrame, EndianSlice, LittleEndian, UnwindContext, UnwindSection};
use hotswap_code_object::Kind;
use hotswap_code_object::image::Image;
use std::collections::BTreeMap;

type Reader<'r> = EndianSlice<'r, LittleEndian>;

/// A row of an unwind table: from an address on, up to another, what it says.
type Row = (u64, u64, String);

/// Compares both files.
pub(super) fn check(
    (old_data, old): (&[u8], &Image<'_>),
    (new_data, new): (&[u8], &Image<'_>),
    (units, maps): (&[Unit<'_>], &BTreeMap<usize, AddressMap>),
    findings: &mut Vec<Finding>,
) {
    let (before, after) = (Lines::read(old_data), Lines::read(new_data));
    for unit in units {
        if let Some(at) = lines(&before, &after, unit, &maps[&unit.number]) {
            let what = "the line table says another line of the instruction";
            findings.push(Finding::at(&FILE, unit, at, what));
        }
    }
    // Addresses in relocatable files are for a linker to fill in.
    if old.kind == Kind::Relocatable {
        return;
    }
    for name in [".eh_frame", ".debug_frame"] {
        let rows = |image: &Image<'_>| image.find(name).map(|number| rows(image, number, name));
        let result = match (rows(old), rows(new)) {
            (None, None) => Ok(()),
            (Some(Ok(before)), Some(Ok(after))) => alike(&before, &after, (old, new), maps),
            _ => Err(format!("`{name}` cannot be read")),
        };
        findings.extend(result.err().map(|what| Finding::of_file(&FILE, format!("call frames: {what}"))));
    }
}

/// The first instruction of which the line tables do not agree.
fn lines(old: &Lines, new: &Lines, unit: &Unit<'_>, map: &AddressMap) -> Option<u32> {
    let mut first = None;
    for number in 0..unit.program.functions.len() {
        unit.each(number, |_, at, _, _| {
            let before = old.at(unit.number, u64::from(at));
            let now = map.begin(at).filter(|_| first.is_none() && before.is_some());
            if now.is_some_and(|now| new.at(unit.number, u64::from(now)) != before) {
                first = Some(at);
            }
        });
    }
    first
}

fn rows(image: &Image<'_>, number: usize, name: &str) -> Result<Vec<Row>, gimli::Error> {
    let section = &image.sections[number];
    let bases = BaseAddresses::default().set_eh_frame(section.address);
    match name {
        ".eh_frame" => {
            let mut frame = EhFrame::new(section.bytes, LittleEndian);
            frame.set_address_size(8);
            entries(&frame, &bases)
        }
        _ => {
            let mut frame = DebugFrame::new(section.bytes, LittleEndian);
            frame.set_address_size(8);
            entries(&frame, &bases)
        }
    }
}

fn entries<'r, S>(frame: &S, bases: &BaseAddresses) -> Result<Vec<Row>, gimli::Error>
where
    S: UnwindSection<Reader<'r>>,
    S::Offset: gimli::UnwindOffset<usize>,
{
    let mut all = Vec::new();
    let mut entries = frame.entries(bases);
    while let Some(entry) = entries.next()? {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(S::cie_from_offset)?;
        let mut context = UnwindContext::new();
        let mut table = fde.rows(frame, bases, &mut context)?;
        while let Some(row) = table.next_row()? {
            let mut registers: Vec<String> = row.registers().map(|rule| format!("{rule:?}")).collect();
            registers.sort();
            all.push((row.start_address(), row.end_address(), format!("{:?} {registers:?}", row.cfa())));
        }
    }
    Ok(all)
}

fn alike(
    before: &[Row],
    after: &[Row],
    (old, new): (&Image<'_>, &Image<'_>),
    maps: &BTreeMap<usize, AddressMap>,
) -> Result<(), String> {
    if before.len() != after.len() {
        return Err("rows are missing, or new".to_owned());
    }
    let place = |address: u64, end: bool| {
        let inside = if end { address.checked_sub(1)? } else { address };
        let number = old.section_at(inside)?;
        let (map, base) = (maps.get(&number)?, old.sections[number].address);
        let offset = (address - base) as u32;
        let moved = if end { map.behind(offset)? } else { map.begin(offset)? };
        Some(u64::from(moved) + new.sections[number].address)
    };
    for ((start, end, says), (new_start, new_end, now)) in before.iter().zip(after) {
        if place(*start, false) != Some(*new_start) || says != now {
            return Err(format!("the row of {start:#x} is about {new_start:#x}"));
        }
        // Between two rows new code belongs to either; behind the last one the function ends.
        let expected = [place(*end, true), place(*end, false)];
        if !expected.contains(&Some(*new_end)) {
            return Err(format!("the row up to {end:#x} ends at {new_end:#x}"));
        }
    }
    Ok(())
}
