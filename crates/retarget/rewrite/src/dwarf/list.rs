//! Lists of ranges and of locations, and the table of address ranges.

use super::cursor::{Cursor, close_unit, write_uleb};
use super::info::{BasedList, DwarfUnit, Units};
use super::{DebugTargets, expression};
use crate::fix::{ReplacedContent, SectionOffset};
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
    /// No operands: it applies everywhere.
    Default,
    /// The base: an address.
    Base,
    /// Its operands are two addresses.
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

struct ListRewriter<'l, 'c> {
    source: &'l DebugTargets<'l>,
    section: usize,
    is_locations: bool,
    unit: DwarfUnit,
    base: Option<SectionOffset>,
    cursor: Cursor<'c>,
    new: ReplacedContent,
}

pub(super) fn rewrite_lists(
    source: &DebugTargets<'_>,
    section: usize,
    units: &Units,
) -> Result<ReplacedContent, Diagnostic> {
    let part = &source.image.sections[section];
    let (cursor, new) = (Cursor::new(part), ReplacedContent::default());
    let is_locations = part.name == ".debug_loclists";
    let name = if is_locations { ".debug_loclists" } else { ".debug_rnglists" };
    let (unit, base) = (DwarfUnit::default(), None);
    let mut lists = ListRewriter { source, section, is_locations, unit, base, cursor, new };
    let whole = lists.cursor.end;
    while lists.cursor.at < whole {
        let (start, old) = (lists.new.bytes.len(), lists.cursor.at);
        lists.cursor.end = lists.cursor.read_unit_length()?;
        // Entries give the offset of the table after the header, which has a version, two sizes and a count.
        let header = lists.cursor.length_size() as u64 + 8;
        let known = units.lists.get(&(name, old as u64 + header));
        lists.unit = known.copied().unwrap_or(DwarfUnit { base: None, addresses: header - 4 });
        lists.rewrite_contribution(start, old)?;
        close_unit(&mut lists.new.bytes, start);
        lists.cursor.end = whole;
    }
    Ok(lists.new)
}

impl ListRewriter<'_, '_> {
    fn keep_bytes(&mut self, from: usize) {
        self.new.chunks.push(from as u64, self.new.bytes.len() as u64);
        let bytes = &self.cursor.data[from..self.cursor.at];
        self.new.bytes.extend_from_slice(bytes);
    }

    fn rewrite_contribution(&mut self, start: usize, old: usize) -> Result<(), Diagnostic> {
        let version = self.cursor.read_number(2)?;
        if version != 5 || self.cursor.read_bytes(2)? != [8, 0] {
            return Err(self
                .cursor
                .refuse_here("has lists of a version that is not known, or addresses that are not 8 bytes"));
        }
        let count = self.cursor.read_number(4)? as usize;
        let (table, width) = (self.cursor.at, self.cursor.width);
        self.cursor.read_bytes(count.saturating_mul(width))?;
        self.keep_bytes(old);
        while !self.cursor.is_done() {
            self.base = self.unit.base;
            while self.rewrite_entry()? {}
        }
        // The starts of lists, counted from the table itself.
        let to = start + (table - old);
        for index in 0..count {
            let field = &self.cursor.data[table + index * width..][..width];
            let offset = field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
            let moved = self.new.chunks.new_offset((table as u64).wrapping_add(offset)).wrapping_sub(to as u64);
            self.new.bytes[to + index * width..][..width].copy_from_slice(&moved.to_le_bytes()[..width]);
        }
        Ok(())
    }

    /// Writes one entry. Returns whether the list continues.
    fn rewrite_entry(&mut self) -> Result<bool, Diagnostic> {
        let start = self.cursor.at;
        let kind = self.cursor.read_number(1)? as usize;
        let shapes: &[ListOperands] = if self.is_locations { &LOCATIONS } else { &RANGES };
        let shape =
            *shapes.get(kind).ok_or_else(|| self.cursor.refuse_here("has an entry of a kind that is not known"))?;
        let mut has_location = self.is_locations;
        match shape {
            ListOperands::End => has_location = false,
            ListOperands::BaseIndex => {
                let index = self.cursor.read_uleb128()?;
                self.base = self.source.indexed_place(self.unit.addresses, index);
                has_location = false;
            }
            ListOperands::Base => {
                self.base = self.read_address()?;
                has_location = false;
            }
            ListOperands::Indices => {
                self.cursor.read_uleb128()?;
                self.cursor.read_uleb128()?;
            }
            ListOperands::Views => {
                self.cursor.read_uleb128()?;
                self.cursor.read_uleb128()?;
                has_location = false;
            }
            ListOperands::Addresses => {
                self.read_address()?;
                self.read_address()?;
            }
            ListOperands::Default => {}
            ListOperands::Distances => return self.rewrite_offset_pair(start).map(|()| true),
            ListOperands::IndexSize => {
                let index = self.cursor.read_uleb128()?;
                let place = self.source.indexed_place(self.unit.addresses, index);
                return self.rewrite_start_length(start, place).map(|()| true);
            }
            ListOperands::AddressSize => {
                let place = self.read_address()?;
                return self.rewrite_start_length(start, place).map(|()| true);
            }
        }
        if has_location {
            self.keep_location()?;
        }
        self.keep_bytes(start);
        Ok(shape != ListOperands::End)
    }

    fn read_address(&mut self) -> Result<Option<SectionOffset>, Diagnostic> {
        let at = self.cursor.at as u64;
        let stated = self.cursor.read_number(8)?;
        Ok(self.source.record_address(self.section, at, stated))
    }

    fn keep_location(&mut self) -> Result<(), Diagnostic> {
        let size = self.cursor.read_uleb128()? as usize;
        let at = self.cursor.at as u64;
        let bytes = self.cursor.read_bytes(size)?;
        expression::record_addresses(self.source, (self.section, self.cursor.width), at, bytes).map(|_| ())
    }

    /// Two distances from the base.
    fn rewrite_offset_pair(&mut self, start: usize) -> Result<(), Diagnostic> {
        let (first, last) = (self.cursor.read_uleb128()?, self.cursor.read_uleb128()?);
        let behind = self.cursor.at;
        let moved = match self.base {
            Some(base) => self.source.new_distance(base, first).zip(self.source.new_size(base, last)),
            None if self.source.is_still() => Some((first, last)),
            None => return Err(self.cursor.refuse_here("has a list that counts from an unknown address")),
        };
        let moved = moved.ok_or_else(|| self.cursor.refuse_here("has a range where no instruction is any more"))?;
        self.write_entry(start, behind, moved != (first, last), |out| {
            write_uleb(out, moved.0);
            write_uleb(out, moved.1);
        })
    }

    /// A size after an address.
    fn rewrite_start_length(&mut self, start: usize, place: Option<SectionOffset>) -> Result<(), Diagnostic> {
        let numbers = self.cursor.at;
        let size = self.cursor.read_uleb128()?;
        let behind = self.cursor.at;
        let moved = match place {
            Some(place) => self.source.new_size(place, size),
            None => Some(size),
        };
        let moved = moved.ok_or_else(|| self.cursor.refuse_here("has a range where no instruction is any more"))?;
        let kept = self.cursor.data[start + 1..numbers].to_vec();
        self.write_entry(start, behind, moved != size, |out| {
            out.extend_from_slice(&kept);
            write_uleb(out, moved);
        })
    }

    /// Writes the entry at `start`, with other numbers up to `behind` if they changed; then its location.
    fn write_entry(
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
            self.keep_location()?;
        }
        self.keep_bytes(if changed { behind } else { start });
        Ok(())
    }
}

/// Lists of DWARF 4: pairs of distances from the unit's address, or addresses with relocations; their size stays.
pub(super) fn rewrite_pairs(
    source: &DebugTargets<'_>,
    section: usize,
    units: &Units,
) -> Result<ReplacedContent, Diagnostic> {
    let part = &source.image.sections[section];
    let mut new = ReplacedContent { bytes: part.bytes.to_vec(), ..ReplacedContent::default() };
    let is_locations = part.name == ".debug_loc";
    for BasedList { list, base } in &units.pairs {
        if list.section == part.name {
            rewrite_pair_list(source, section, (list.offset, *base), is_locations, &mut new.bytes)?;
        }
    }
    Ok(new)
}

fn rewrite_pair_list(
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
        let (first, last) = (cursor.read_number(8)?, cursor.read_number(8)?);
        let second = at as u64 + 8;
        let related = source.is_relocated(section, at as u64) || source.is_relocated(section, second);
        match (first, last) {
            (0, 0) if !related => return Ok(()),
            (u64::MAX, _) => {
                base = source.record_address(section, second, last);
                continue;
            }
            _ => {}
        }
        if is_locations {
            let size = cursor.read_number(2)? as usize;
            let (at, bytes) = (cursor.at as u64, cursor.read_bytes(size)?);
            // Lists of DWARF 4 lack a width of their own; operands that depend on one refer to entries, never to code.
            expression::record_addresses(source, (section, cursor.width), at, bytes)?;
        }
        if related {
            continue;
        }
        let moved = match base {
            Some(base) => source.new_distance(base, first).zip(source.new_size(base, last)),
            None if source.is_still() => Some((first, last)),
            // The unit lacks a start address: these are addresses.
            None if source.image.kind == ObjectKind::Linked => {
                let (begin, end) = (
                    source.referenced_place(section, at as u64, first),
                    source.referenced_place(section, second, last),
                );
                if let Some((begin, end)) = begin.zip(end) {
                    source.record_field(section, at as u64, 8, begin, false);
                    source.record_field(section, second, 8, end, true);
                }
                continue;
            }
            None => return Err(cursor.refuse_here("has a list that counts from an unknown address")),
        };
        let (first, last) = moved.ok_or_else(|| cursor.refuse_here("has a range where no instruction is any more"))?;
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
        cursor.end = cursor.read_unit_length()?;
        if cursor.read_bytes(4)? != [5, 0, 8, 0] {
            return Err(
                cursor.refuse_here("has a table of a version that is not known, or addresses that are not 8 bytes")
            );
        }
        while !cursor.is_done() {
            let at = cursor.at as u64;
            let stated = cursor.read_number(8)?;
            if !units.foreign.contains(&at) {
                source.record_address(section, at, stated);
            }
        }
        cursor.end = whole;
    }
    Ok(())
}

/// `.debug_aranges`: pairs of an address and a size.
pub(super) fn rewrite_addresses(source: &DebugTargets<'_>, section: usize) -> Result<ReplacedContent, Diagnostic> {
    let part = &source.image.sections[section];
    let mut new = ReplacedContent { bytes: part.bytes.to_vec(), ..ReplacedContent::default() };
    let mut cursor = Cursor::new(part);
    let whole = cursor.end;
    while cursor.at < whole {
        let start = cursor.at;
        let end = cursor.read_unit_length()?;
        cursor.end = end;
        let version = cursor.read_number(2)?;
        cursor.read_offset()?;
        if version != 2 || cursor.read_bytes(2)? != [8, 0] {
            return Err(cursor.refuse_here("has a table of a version that is not known"));
        }
        cursor.read_bytes((16 - (cursor.at - start) % 16) % 16)?;
        while cursor.at + 16 <= end {
            let at = cursor.at;
            let (address, size) = (cursor.read_number(8)?, cursor.read_number(8)?);
            let place = source.record_address(section, at as u64, address);
            let moved = place.map_or(Some(size), |place| source.new_size(place, size));
            let moved = moved.ok_or_else(|| cursor.refuse_here("has a range where no instruction is any more"))?;
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
        (0..self.image.sections.len()).all(|section| !self.maps.moves_places(section))
    }
}
