//! Lists of ranges and of locations, and the table of address ranges.

use super::cursor::{Cursor, close_unit, write_uleb};
use super::info::{DwarfUnit, Units};
use super::{DebugTargets, expression};
use crate::fix::{Replaced, SectionOffset};
use hotswap_code_object::ObjectKind;
use hotswap_report::Diagnostic;

/// Operands of an entry of DWARF 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListOperands {
    End,
    /// The base: index of an address.
    BaseIndex,
    /// Two indices of addresses.
    Indices,
    /// Index of an address, and a size.
    IndexSize,
    /// Two distances from the base.
    Distances,
    /// Nothing: everywhere.
    Default,
    /// The base: an address.
    Base,
    /// Two addresses.
    Addresses,
    /// An address and a size.
    AddressSize,
    /// Two numbers of views of rows.
    Views,
}

/// Entries of `.debug_rnglists` by kind.
const RANGES: [ListOperands; 8] = [
    ListOperands::End,
    ListOperands::BaseIndex,
    ListOperands::Indices,
    ListOperands::IndexSize,
    ListOperands::Distances,
    ListOperands::Base,
    ListOperands::Addresses,
    ListOperands::AddressSize,
];

/// Entries of `.debug_loclists` by kind; the last is GNU's.
const LOCATIONS: [ListOperands; 10] = [
    ListOperands::End,
    ListOperands::BaseIndex,
    ListOperands::Indices,
    ListOperands::IndexSize,
    ListOperands::Distances,
    ListOperands::Default,
    ListOperands::Base,
    ListOperands::Addresses,
    ListOperands::AddressSize,
    ListOperands::Views,
];

struct Lists<'l, 'c> {
    source: &'l DebugTargets<'l>,
    section: usize,
    is_locations: bool,
    unit: DwarfUnit,
    base: Option<SectionOffset>,
    cursor: Cursor<'c>,
    new: Replaced,
}

pub(super) fn rewrite(source: &DebugTargets<'_>, section: usize, units: &Units) -> Result<Replaced, Diagnostic> {
    let part = &source.image.sections[section];
    let (cursor, new) = (Cursor::new(part), Replaced::default());
    let is_locations = part.name == ".debug_loclists";
    let name = if is_locations { ".debug_loclists" } else { ".debug_rnglists" };
    let (unit, base) = (DwarfUnit::default(), None);
    let mut lists = Lists { source, section, is_locations, unit, base, cursor, new };
    let whole = lists.cursor.end;
    while lists.cursor.at < whole {
        let (start, old) = (lists.new.bytes.len(), lists.cursor.at);
        lists.cursor.end = lists.cursor.unit()?;
        // Entries give the offset of the table after the header, which has a version, two sizes and a count.
        let header = lists.cursor.length_size() as u64 + 8;
        let known = units.lists.get(&(name, old as u64 + header));
        lists.unit = known.copied().unwrap_or(DwarfUnit { base: None, addresses: header - 4 });
        lists.contribution(start, old)?;
        close_unit(&mut lists.new.bytes, start);
        lists.cursor.end = whole;
    }
    Ok(lists.new)
}

impl Lists<'_, '_> {
    fn keep(&mut self, from: usize) {
        self.new.chunks.push(from as u64, self.new.bytes.len() as u64);
        let bytes = &self.cursor.data[from..self.cursor.at];
        self.new.bytes.extend_from_slice(bytes);
    }

    fn contribution(&mut self, start: usize, old: usize) -> Result<(), Diagnostic> {
        let version = self.cursor.number(2)?;
        if version != 5 || self.cursor.bytes(2)? != [8, 0] {
            return Err(self
                .cursor
                .refuse("has lists of a version that is not known, or addresses that are not 8 bytes"));
        }
        let count = self.cursor.number(4)? as usize;
        let (table, width) = (self.cursor.at, self.cursor.width);
        self.cursor.bytes(count.saturating_mul(width))?;
        self.keep(old);
        while !self.cursor.is_done() {
            self.base = self.unit.base;
            while self.entry()? {}
        }
        // The starts of lists, counted from the table itself.
        let to = start + (table - old);
        for index in 0..count {
            let field = &self.cursor.data[table + index * width..][..width];
            let offset = field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
            let moved = self.new.chunks.at((table as u64).wrapping_add(offset)).wrapping_sub(to as u64);
            self.new.bytes[to + index * width..][..width].copy_from_slice(&moved.to_le_bytes()[..width]);
        }
        Ok(())
    }

    /// Writes one entry. Returns whether the list continues.
    fn entry(&mut self) -> Result<bool, Diagnostic> {
        let start = self.cursor.at;
        let kind = self.cursor.number(1)? as usize;
        let shapes: &[ListOperands] = if self.is_locations { &LOCATIONS } else { &RANGES };
        let shape = *shapes.get(kind).ok_or_else(|| self.cursor.refuse("has an entry of a kind that is not known"))?;
        let mut has_location = self.is_locations;
        match shape {
            ListOperands::End => has_location = false,
            ListOperands::BaseIndex => {
                let index = self.cursor.uleb()?;
                self.base = self.source.indexed(self.unit.addresses, index);
                has_location = false;
            }
            ListOperands::Base => {
                self.base = self.address()?;
                has_location = false;
            }
            ListOperands::Indices => {
                self.cursor.uleb()?;
                self.cursor.uleb()?;
            }
            ListOperands::Views => {
                self.cursor.uleb()?;
                self.cursor.uleb()?;
                has_location = false;
            }
            ListOperands::Addresses => {
                self.address()?;
                self.address()?;
            }
            ListOperands::Default => {}
            ListOperands::Distances => return self.distances(start).map(|()| true),
            ListOperands::IndexSize => {
                let index = self.cursor.uleb()?;
                let place = self.source.indexed(self.unit.addresses, index);
                return self.sized(start, place).map(|()| true);
            }
            ListOperands::AddressSize => {
                let place = self.address()?;
                return self.sized(start, place).map(|()| true);
            }
        }
        if has_location {
            self.location()?;
        }
        self.keep(start);
        Ok(shape != ListOperands::End)
    }

    fn address(&mut self) -> Result<Option<SectionOffset>, Diagnostic> {
        let at = self.cursor.at as u64;
        let stated = self.cursor.number(8)?;
        Ok(self.source.address(self.section, at, stated))
    }

    fn location(&mut self) -> Result<(), Diagnostic> {
        let size = self.cursor.uleb()? as usize;
        let at = self.cursor.at as u64;
        let bytes = self.cursor.bytes(size)?;
        expression::note(self.source, (self.section, self.cursor.width), at, bytes).map(|_| ())
    }

    /// Two distances from the base.
    fn distances(&mut self, start: usize) -> Result<(), Diagnostic> {
        let (first, last) = (self.cursor.uleb()?, self.cursor.uleb()?);
        let behind = self.cursor.at;
        let moved = match self.base {
            Some(base) => self.source.distance(base, first).zip(self.source.size(base, last)),
            None if self.source.is_still() => Some((first, last)),
            None => return Err(self.cursor.refuse("has a list that counts from an unknown address")),
        };
        let moved = moved.ok_or_else(|| self.cursor.refuse("has a range where no instruction is any more"))?;
        self.numbers(start, behind, moved != (first, last), |out| {
            write_uleb(out, moved.0);
            write_uleb(out, moved.1);
        })
    }

    /// A size after an address.
    fn sized(&mut self, start: usize, place: Option<SectionOffset>) -> Result<(), Diagnostic> {
        let numbers = self.cursor.at;
        let size = self.cursor.uleb()?;
        let behind = self.cursor.at;
        let moved = match place {
            Some(place) => self.source.size(place, size),
            None => Some(size),
        };
        let moved = moved.ok_or_else(|| self.cursor.refuse("has a range where no instruction is any more"))?;
        let kept = self.cursor.data[start + 1..numbers].to_vec();
        self.numbers(start, behind, moved != size, |out| {
            out.extend_from_slice(&kept);
            write_uleb(out, moved);
        })
    }

    /// Writes the entry at `start`, with other numbers up to `behind` if they changed; then its location.
    fn numbers(
        &mut self,
        start: usize,
        behind: usize,
        changed: bool,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Diagnostic> {
        if changed {
            self.new.chunks.push(start as u64, self.new.bytes.len() as u64);
            self.new.bytes.push(self.cursor.data[start]);
            write(&mut self.new.bytes);
        }
        if self.is_locations {
            self.location()?;
        }
        self.keep(if changed { behind } else { start });
        Ok(())
    }
}

/// Lists of DWARF 4: pairs of distances from the unit's address, or addresses with relocations; their size stays.
pub(super) fn rewrite_pairs(source: &DebugTargets<'_>, section: usize, units: &Units) -> Result<Replaced, Diagnostic> {
    let part = &source.image.sections[section];
    let mut new = Replaced { bytes: part.bytes.to_vec(), ..Replaced::default() };
    let is_locations = part.name == ".debug_loc";
    for (name, offset, base) in &units.pairs {
        if *name == part.name {
            pairs(source, section, (*offset, *base), is_locations, &mut new.bytes)?;
        }
    }
    Ok(new)
}

fn pairs(
    source: &DebugTargets<'_>,
    section: usize,
    (offset, mut base): (u64, Option<SectionOffset>),
    is_locations: bool,
    out: &mut [u8],
) -> Result<(), Diagnostic> {
    let mut cursor = Cursor::new(&source.image.sections[section]);
    cursor.at = offset as usize;
    loop {
        let at = cursor.at;
        let (first, last) = (cursor.number(8)?, cursor.number(8)?);
        let second = at as u64 + 8;
        let related = source.is_relocated(section, at as u64) || source.is_relocated(section, second);
        match (first, last) {
            (0, 0) if !related => return Ok(()),
            (u64::MAX, _) => {
                base = source.address(section, second, last);
                continue;
            }
            _ => {}
        }
        if is_locations {
            let size = cursor.number(2)? as usize;
            let (at, bytes) = (cursor.at as u64, cursor.bytes(size)?);
            // Lists of DWARF 4 have no width of their own; operands that depend on one refer to entries, never to code.
            expression::note(source, (section, cursor.width), at, bytes)?;
        }
        if related {
            continue;
        }
        let moved = match base {
            Some(base) => source.distance(base, first).zip(source.size(base, last)),
            None if source.is_still() => Some((first, last)),
            // The unit has no start address: these are addresses.
            None if source.image.kind == ObjectKind::Linked => {
                let (begin, end) = (source.meaning(section, at as u64, first), source.meaning(section, second, last));
                if let Some((begin, end)) = begin.zip(end) {
                    source.note(section, at as u64, 8, begin, false);
                    source.note(section, second, 8, end, true);
                }
                continue;
            }
            None => return Err(cursor.refuse("has a list that counts from an unknown address")),
        };
        let (first, last) = moved.ok_or_else(|| cursor.refuse("has a range where no instruction is any more"))?;
        out[at..at + 8].copy_from_slice(&first.to_le_bytes());
        out[at + 8..at + 16].copy_from_slice(&last.to_le_bytes());
    }
}

/// `.debug_addr`: addresses that other sections refer to by index.
pub(super) fn note_addresses(source: &DebugTargets<'_>, section: usize, units: &Units) -> Result<(), Diagnostic> {
    if source.image.kind != ObjectKind::Linked {
        return Ok(());
    }
    let mut cursor = Cursor::new(&source.image.sections[section]);
    let whole = cursor.end;
    while cursor.at < whole {
        cursor.end = cursor.unit()?;
        if cursor.bytes(4)? != [5, 0, 8, 0] {
            return Err(cursor.refuse("has a table of a version that is not known, or addresses that are not 8 bytes"));
        }
        while !cursor.is_done() {
            let at = cursor.at as u64;
            let stated = cursor.number(8)?;
            if !units.foreign.contains(&at) {
                source.address(section, at, stated);
            }
        }
        cursor.end = whole;
    }
    Ok(())
}

/// `.debug_aranges`: pairs of an address and a size.
pub(super) fn rewrite_addresses(source: &DebugTargets<'_>, section: usize) -> Result<Replaced, Diagnostic> {
    let part = &source.image.sections[section];
    let mut new = Replaced { bytes: part.bytes.to_vec(), ..Replaced::default() };
    let mut cursor = Cursor::new(part);
    let whole = cursor.end;
    while cursor.at < whole {
        let start = cursor.at;
        let end = cursor.unit()?;
        cursor.end = end;
        let version = cursor.number(2)?;
        cursor.offset()?;
        if version != 2 || cursor.bytes(2)? != [8, 0] {
            return Err(cursor.refuse("has a table of a version that is not known"));
        }
        cursor.bytes((16 - (cursor.at - start) % 16) % 16)?;
        while cursor.at + 16 <= end {
            let at = cursor.at;
            let (address, size) = (cursor.number(8)?, cursor.number(8)?);
            let place = source.address(section, at as u64, address);
            let moved = place.map_or(Some(size), |place| source.size(place, size));
            let moved = moved.ok_or_else(|| cursor.refuse("has a range where no instruction is any more"))?;
            new.bytes[at + 8..at + 16].copy_from_slice(&moved.to_le_bytes());
        }
        cursor.at = end;
        cursor.end = whole;
    }
    Ok(new)
}

impl DebugTargets<'_> {
    /// Whether no code moves inside of its section.
    fn is_still(&self) -> bool {
        (0..self.image.sections.len()).all(|section| !self.maps.moves(section))
    }
}
