//! Symbols, kernel descriptors and the tables of the loader.

use crate::fix::{LayoutContext, SectionOffset};
use crate::refuse_layout;
use hotswap_code_object::image::{SymbolRow, SymbolRows};
use hotswap_report::Diagnostic;
use object::elf;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};

/// Bytes of a kernel descriptor.
const DESCRIPTOR: u64 = 64;
/// Offset in it of the distance to the code.
const ENTRY: usize = 16;
/// Offset in it of `COMPUTE_PGM_RSRC3`.
const RSRC3: usize = 44;
/// Bytes per step of `INST_PREF_SIZE`.
const PREFETCH: u64 = 128;

/// The new values of all symbols, by table.
pub(crate) fn symbol_values(world: &LayoutContext<'_>, tables: &[SymbolRows<'_>]) -> Result<Vec<Vec<u64>>, Diagnostic> {
    tables.iter().map(|one| symbol_values_of_table(one, world)).collect()
}

fn symbol_values_of_table(table: &SymbolRows<'_>, world: &LayoutContext<'_>) -> Result<Vec<u64>, Diagnostic> {
    let pieces = table.rows.par_chunks(PIECE).enumerate().map(|(number, rows)| {
        let rows = (number * PIECE..).zip(rows);
        rows.map(|(number, row)| symbol_value(world, row, (table.at + number * 24) as u64)).collect()
    });
    let pieces: Vec<Result<Vec<u64>, Diagnostic>> = pieces.collect();
    let mut values = Vec::with_capacity(table.rows.len());
    for piece in pieces {
        values.append(&mut piece?);
    }
    Ok(values)
}

/// Symbols that one task handles.
const PIECE: usize = 1 << 10;

fn symbol_value(world: &LayoutContext<'_>, row: &SymbolRow<'_>, at: u64) -> Result<u64, Diagnostic> {
    let Some(section) = row.section else { return Ok(row.value) };
    let rigid = row.value.wrapping_sub(world.base_address(section)).wrapping_add(world.layout.addresses[section]);
    match world.place_in_section(section, row.value).filter(|_| row.kind != elf::STT_SECTION) {
        Some(place) => world.start_address(place).ok_or_else(|| {
            refuse_layout(at, format!("the symbol `{}` is at a place without an instruction now", row.name))
        }),
        None => Ok(rigid),
    }
}

/// The new size of a symbol.
fn symbol_size(world: &LayoutContext<'_>, row: &SymbolRow<'_>, value: u64) -> u64 {
    let place = row.section.and_then(|section| world.place_in_section(section, row.value.checked_add(row.size)?));
    let end = place
        .filter(|place| row.size > 0 && world.maps.moves_places(place.section))
        .and_then(|place| world.end_address(place));
    end.map_or(row.size, |end| end.wrapping_sub(value))
}

pub(crate) fn write_symbols(world: &LayoutContext<'_>, tables: &[SymbolRows<'_>], values: &[Vec<u64>], out: &mut [u8]) {
    for (table, values) in tables.iter().zip(values) {
        let start = world.layout.offsets[table.section] as usize;
        let rows = out[start..start + table.rows.len() * 24].par_chunks_exact_mut(24).with_min_len(PIECE);
        rows.zip(&table.rows).zip(values).for_each(|((out, row), value)| {
            SymbolRow::write(out, *value, symbol_size(world, row, *value));
        });
    }
}

/// Data with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedObject {
    pub(crate) start: SectionOffset,
    /// Offset of its end in the section.
    pub(crate) end: u64,
}

/// The data that symbols name.
pub(crate) struct NamedObjects {
    /// All of it, sorted.
    pub(crate) objects: Vec<NamedObject>,
    /// Starts of kernel descriptors.
    pub(crate) descriptors: HashSet<SectionOffset>,
}

pub(crate) fn collect_objects(world: &LayoutContext<'_>, tables: &[SymbolRows<'_>]) -> NamedObjects {
    let rows = tables.iter().flat_map(|table| &table.rows).filter(|row| row.kind == elf::STT_OBJECT);
    let (mut objects, mut descriptors) = (Vec::new(), HashSet::new());
    for row in rows {
        let Some(place) = row.section.and_then(|section| world.place_in_section(section, row.value)) else { continue };
        if row.size == DESCRIPTOR && row.name.ends_with(".kd") {
            descriptors.insert(place);
        }
        objects.push(NamedObject { start: place, end: place.offset.saturating_add(row.size) });
    }
    objects.sort_unstable();
    objects.dedup();
    NamedObjects { objects, descriptors }
}

/// Tags of the table of packed relocations: its address and its size.
const DT_RELR: u32 = 36;
const DT_RELRSZ: u32 = 35;
/// Tags of the dynamic section whose values are addresses.
const ADDRESSES: &[u32] = &[
    elf::DT_PLTGOT,
    elf::DT_HASH,
    elf::DT_STRTAB,
    elf::DT_SYMTAB,
    elf::DT_RELA,
    elf::DT_INIT,
    elf::DT_FINI,
    elf::DT_REL,
    DT_RELR,
    elf::DT_JMPREL,
    elf::DT_INIT_ARRAY,
    elf::DT_FINI_ARRAY,
    elf::DT_PREINIT_ARRAY,
    elf::DT_GNU_HASH,
    elf::DT_VERSYM,
    elf::DT_VERDEF,
    elf::DT_VERNEED,
];

/// Writes the addresses in the dynamic section, and the one size there that can change.
pub(crate) fn write_dynamic(world: &LayoutContext<'_>, out: &mut [u8]) -> Result<(), Diagnostic> {
    let sections = world.image.sections.iter().enumerate();
    for (number, section) in sections.filter(|(_, section)| section.kind == elf::SHT_DYNAMIC) {
        for (index, entry) in section.bytes.as_chunks::<16>().0.iter().enumerate() {
            let tag = u64::from_le_bytes(entry[..8].try_into().unwrap_or_default());
            let value = u64::from_le_bytes(entry[8..].try_into().unwrap_or_default());
            let start = world.layout.offsets[number] as usize + index * 16 + 8;
            if tag == u64::from(DT_RELRSZ) {
                let packed =
                    world.image.sections.iter().position(|part| part.kind == elf::SHT_RELR && part.size == value);
                let size = packed.map_or(value, |packed| world.layout.sizes[packed]);
                out[start..start + 8].copy_from_slice(&size.to_le_bytes());
            }
            if !ADDRESSES.iter().any(|address| u64::from(*address) == tag) {
                continue;
            }
            let at = section.offset + index as u64 * 16;
            let new = world.place_of_address(value).and_then(|place| world.start_address(place));
            let new =
                new.ok_or_else(|| refuse_layout(at, "the dynamic section names an address that nothing is at"))?;
            out[start..start + 8].copy_from_slice(&new.to_le_bytes());
        }
    }
    Ok(())
}

/// The format of `.eh_frame_hdr` written by lld: version 1; 4 signed bytes from their own place; a count of 4 bytes;
/// rows of two distances of 4 signed bytes from the section's start.
const FRAME_TABLE: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// Writes the sorted table of call frames; its order is kept, because code stays in order.
pub(crate) fn write_frame_table(world: &LayoutContext<'_>, out: &mut [u8]) -> Result<(), Diagnostic> {
    let Some(number) = world.image.find(".eh_frame_hdr").filter(|_| world.is_linked()) else { return Ok(()) };
    let section = &world.image.sections[number];
    if section.bytes.get(..4) != Some(&FRAME_TABLE[..]) || !section.bytes.len().is_multiple_of(4) {
        return Err(
            frame_header_error(0, "has a form that is not known", section).advise("link without --eh-frame-hdr")
        );
    }
    let (old_base, new_base) = (section.address, world.layout.addresses[number]);
    let fields = (12..section.bytes.len()).step_by(4).map(|at| (at, 0));
    for (at, base) in std::iter::once((4, 4)).chain(fields) {
        let field = section
            .bytes
            .get(at..)
            .and_then(|bytes| bytes.first_chunk())
            .ok_or_else(|| frame_header_error(at, "is cut off", section))?;
        let target = (old_base + base).wrapping_add_signed(i64::from(i32::from_le_bytes(*field)));
        let new = world.place_of_address(target).and_then(|place| world.start_address(place));
        let new = new.map(|new| new.wrapping_sub(new_base + base) as i64).and_then(|new| i32::try_from(new).ok());
        let new = new.ok_or_else(|| frame_header_error(at, "has a target that was removed", section))?;
        let start = world.layout.offsets[number] as usize + at;
        out[start..start + 4].copy_from_slice(&new.to_le_bytes());
    }
    Ok(())
}

fn frame_header_error(at: usize, what: &str, section: &hotswap_code_object::image::SectionPart<'_>) -> Diagnostic {
    refuse_layout(section.offset + at as u64, format!("`.eh_frame_hdr` {what}"))
}

pub(crate) struct DescriptorRow<'s> {
    row: &'s SymbolRow<'s>,
    place: SectionOffset,
    /// The symbol of its code, found by name.
    function: Option<&'s SymbolRow<'s>>,
}

/// The kernel descriptors, each once.
pub(crate) fn kernel_descriptors<'s>(
    world: &LayoutContext<'_>,
    tables: &'s [SymbolRows<'s>],
) -> Vec<DescriptorRow<'s>> {
    let rows = tables.iter().flat_map(|table| &table.rows);
    let functions = rows.clone().filter(|row| row.kind == elf::STT_FUNC && row.section.is_some());
    let functions: HashMap<&str, &SymbolRow<'_>> = functions.map(|row| (row.name, row)).collect();
    let mut done = HashSet::new();
    let described = rows.filter(|row| row.size == DESCRIPTOR).filter_map(|row| {
        let (name, section) = (row.name.strip_suffix(".kd")?, row.section?);
        let place = world.place_in_section(section, row.value).filter(|place| done.insert(*place))?;
        Some(DescriptorRow { row, place, function: functions.get(name).copied() })
    });
    described.collect()
}

/// Writes the fields of kernel descriptors for the place and the size of the code. `prefetch` is the mask of
/// `INST_PREF_SIZE` above its lowest bit, 0 where it does not exist.
pub(crate) fn write_descriptors(
    world: &LayoutContext<'_>,
    kernels: &[DescriptorRow<'_>],
    prefetch: u32,
    out: &mut [u8],
) -> Result<(), Diagnostic> {
    for DescriptorRow { row, place, function } in kernels {
        let at = world.image.sections[place.section].offset + place.offset;
        let file = world
            .file_offset(*place, DESCRIPTOR)
            .ok_or_else(|| refuse_layout(at, format!("`{}` leaves its section", row.name)))?;
        let descriptor = &mut out[file..file + DESCRIPTOR as usize];
        if world.is_linked() {
            let value = world.start_address(*place).unwrap_or_default();
            write_entry(world, row, value, descriptor)
                .ok_or_else(|| refuse_layout(at, format!("the code of `{}` is nowhere", row.name)))?;
        }
        if let Some(function) = function.filter(|_| prefetch != 0) {
            prefetch_size(world, function, prefetch, descriptor);
        }
    }
    Ok(())
}

fn write_entry(world: &LayoutContext<'_>, row: &SymbolRow<'_>, value: u64, descriptor: &mut [u8]) -> Option<()> {
    let field = &world.image.sections[row.section?].bytes[(row.value - world.base_address(row.section?)) as usize..];
    let distance = i64::from_le_bytes(*field.get(ENTRY..)?.first_chunk()?);
    let code = world.start_address(world.place_of_address(row.value.wrapping_add_signed(distance))?)?;
    descriptor[ENTRY..ENTRY + 8].copy_from_slice(&code.wrapping_sub(value).to_le_bytes());
    Some(())
}

/// Lines to prefetch: increased by the number of lines by which the kernel has grown.
fn prefetch_size(world: &LayoutContext<'_>, function: &SymbolRow<'_>, mask: u32, descriptor: &mut [u8]) {
    let Some(place) = function.section.and_then(|section| world.place_in_section(section, function.value)) else {
        return;
    };
    let new = world.start_address(place).map_or(function.size, |value| symbol_size(world, function, value));
    let word = u32::from_le_bytes(descriptor[RSRC3..RSRC3 + 4].try_into().unwrap_or_default());
    let old = i64::from(word >> 4 & mask);
    // The maximum is "at least that many": it does not give the size.
    if old == 0 || old == i64::from(mask) && prefetch_line_count(new) >= prefetch_line_count(function.size) {
        return;
    }
    let lines = (old + prefetch_line_count(new) - prefetch_line_count(function.size)).clamp(1, i64::from(mask)) as u32;
    let word = word & !(mask << 4) | lines << 4;
    descriptor[RSRC3..RSRC3 + 4].copy_from_slice(&word.to_le_bytes());
}

fn prefetch_line_count(size: u64) -> i64 {
    size.div_ceil(PREFETCH) as i64
}

/// The place of an old address or offset in DWARF or a table.
pub(crate) fn place_of(
    world_image: &hotswap_code_object::image::ObjectImage<'_>,
    address: u64,
) -> Option<SectionOffset> {
    let section = world_image.section_at(address)?;
    Some(SectionOffset { section, offset: address - world_image.sections[section].address })
}
