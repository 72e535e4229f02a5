//! Replaces the text of `amdhsa.target` by one of any length.
//!
//! A text of the same length replaces the old one in place. Otherwise the note changes its size:
//!
//! 1. Linkers put the note first, then `.dynsym`, its hashes and `.dynstr`, then `.rodata` at the next
//!    multiple of 64. Where the padding before `.rodata` has room for the growth, these tables are laid out
//!    anew, one after the other as the linker does it: the result is its output for that text. Only
//!    section headers and `DT_*` entries hold their addresses; no symbol and no relocation may. `.rodata`
//!    and everything after it stay, because code reaches them relative to the program counter.
//! 2. Otherwise the note is appended to the file. `PT_NOTE` and its section point to it, no segment
//!    loads it any more (loaders and comgr read it from the file), and its old place becomes zeros.
//!
//! Linkers put all notes into one segment, and each kind into a section of its own: `.note` and `.note.gnu.build-id`. They
//! move together.
//!
//! Absent on purpose: metadata in several segments, and any guess about bytes between sections.

use crate::elf::{ElfSectionView, ElfSegment, ObjectKind};
use crate::image::ANDROID;
use crate::note::{RespelledNotes, note_alignment, respell_notes};
use crate::object_file::CodeObject;
use crate::patch::{AppendedPiece, BytePatch};
use hotswap_report::{Diagnostic, codes};
use object::elf;
use std::ops::Range;

pub(crate) const PROGRAM_HEADERS: usize = 32;
pub(crate) const SECTION_HEADERS: usize = 40;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
/// Entries of `.dynamic` whose values are not addresses.
const NUMBERS: &[u32] = &[
    elf::DT_NULL,
    elf::DT_NEEDED,
    elf::DT_RELASZ,
    elf::DT_RELAENT,
    elf::DT_STRSZ,
    elf::DT_SYMENT,
    elf::DT_SONAME,
    elf::DT_FLAGS,
    elf::DT_RELACOUNT,
    elf::DT_FLAGS_1,
];
/// Tables that may move, and the entry of `.dynamic` that holds the address.
pub(crate) const TABLES: &[(u32, u32)] = &[
    (elf::SHT_DYNSYM, elf::DT_SYMTAB),
    (elf::SHT_STRTAB, elf::DT_STRTAB),
    (elf::SHT_HASH, elf::DT_HASH),
    (elf::SHT_GNU_HASH, elf::DT_GNU_HASH),
];

/// The changes to `object` with `text` in place of its target's name; the header is unchanged.
pub(crate) fn with_target(object: &CodeObject<'_>, text: &str) -> Result<BytePatch, Diagnostic> {
    let note = object.note();
    let mut out = BytePatch::without_changes(object.bytes().len());
    if text == note.target {
        return Ok(out);
    }
    if text.len() == note.target.len() {
        note.target_ranges.iter().for_each(|range| out.put(range.start, text.as_bytes().to_vec()));
        return Ok(out);
    }
    let place = NotePosition::find(object)?;
    let new = respell_notes(object.bytes(), &place.area, place.align, note, text)?;
    let size = new.size();
    place.check_sections(object, &new)?;
    if size == place.area.len() {
        out.put(place.area.start, new.join_pieces(object.bytes()));
    } else if let Some(layout) = RelabelLayout::find(object, &place, size) {
        layout.write_window(object, &place, &new, &new.join_pieces(object.bytes()), &mut out);
    } else {
        place.append_note(object, new, &mut out);
    }
    Ok(out)
}

/// Position of the notes, and the headers that refer to them.
pub(crate) struct NotePosition {
    pub(crate) area: Range<usize>,
    pub(crate) align: u64,
    /// Indices of the segments.
    pub(crate) segments: Vec<usize>,
    /// Indices of the sections in the area, in its order.
    pub(crate) sections: Vec<usize>,
}

impl NotePosition {
    /// The one place with all metadata: that of a segment, with the sections in it, or that of a section.
    pub(crate) fn find(object: &CodeObject<'_>) -> Result<Self, Diagnostic> {
        let contents = &object.note().ranges;
        let segments = object.segments().iter().enumerate().filter(|(_, segment)| segment.kind == elf::PT_NOTE);
        let sections = object.sections().iter().enumerate().filter(|(_, section)| section.kind == elf::SHT_NOTE);
        let of_segments = segments.clone().map(|(_, segment)| (&segment.range, segment.align));
        let areas = of_segments.chain(sections.clone().map(|(_, section)| (&section.range, section.align)));
        let (area, align) = areas
            .filter(|(range, _)| range_holds_content(range, contents))
            .max_by_key(|(range, _)| range.len())
            .ok_or_else(|| several_places(object))?;
        let mut inside: Vec<usize> =
            sections.filter(|(_, section)| overlaps_note_area(&section.range, area)).map(|(index, _)| index).collect();
        inside.sort_by_key(|index| object.sections()[*index].range.start);
        let all_inside = contents.iter().all(|one| is_within_area(one, area))
            && inside.iter().all(|index| {
                let section = &object.sections()[*index];
                is_within_area(&section.range, area) && note_alignment(section.align) == note_alignment(align)
            });
        let of_area = segments.filter(|(_, segment)| overlaps_note_area(&segment.range, area));
        if !all_inside || of_area.clone().any(|(_, segment)| segment.range != *area || segment.align != align) {
            return Err(several_places(object));
        }
        let segments = of_area.map(|(index, _)| index).collect();
        Ok(Self { area: area.clone(), align, segments, sections: inside })
    }

    /// Refuses a section that holds a part of a note.
    fn check_sections(&self, object: &CodeObject<'_>, new: &RespelledNotes) -> Result<(), Diagnostic> {
        if self.sections.iter().all(|one| has_whole_new_range(one, self, object, new)) {
            Ok(())
        } else {
            Err(several_places(object))
        }
    }

    /// The new place of a section's notes, in the area.
    pub(crate) fn new_section_range(
        &self,
        object: &CodeObject<'_>,
        index: usize,
        new: &RespelledNotes,
    ) -> Option<Range<usize>> {
        let range = &object.sections()[index].range;
        new.new_range(&(range.start - self.area.start..range.end - self.area.start))
    }

    /// Appends the note to the file, or leaves it at its end.
    fn append_note(&self, object: &CodeObject<'_>, new: RespelledNotes, out: &mut BytePatch) {
        let is_last = self.area.end == out.size() && !self.is_loaded(object);
        if is_last {
            out.truncate_at(self.area.start);
        } else {
            out.erase_range(self.area.clone());
            let padding = out.size().next_multiple_of(8) - out.size();
            out.append(AppendedPiece::New(vec![0; padding]));
        }
        let at = out.size() as u64;
        let places: Vec<_> =
            self.sections.iter().map(|index| (*index, self.new_section_range(object, *index, &new))).collect();
        let size = new.size() as u64;
        new.pieces.into_iter().for_each(|piece| out.append(piece));
        for index in &self.segments {
            // Offset, no address, sizes in file and memory.
            for (field, value) in [(8, at), (16, 0), (24, 0), (32, size), (40, size)] {
                put_word(out, segment_row(object, *index) + field, value);
            }
        }
        for (index, place) in places.into_iter().filter_map(|(index, place)| Some((index, place?))) {
            let row = section_row(object, index);
            let flags = object.sections()[index].flags;
            // A linker still has to load the note of a relocatable object.
            let loaded = if object.kind() == ObjectKind::Linked { u64::from(elf::SHF_ALLOC) } else { 0 };
            let start = at + place.start as u64;
            for (field, value) in [(8, flags & !loaded), (16, 0), (24, start), (32, place.len() as u64)] {
                put_word(out, row + field, value);
            }
        }
    }

    fn is_loaded(&self, object: &CodeObject<'_>) -> bool {
        object.segments().iter().any(|segment| is_load_before_end(segment, self) && self.area.start < segment.range.end)
    }
}

fn byte_ranges_overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

fn range_holds_content(range: &Range<usize>, contents: &[Range<usize>]) -> bool {
    contents.iter().any(|content| byte_ranges_overlap(range, content))
}

fn overlaps_note_area(range: &Range<usize>, area: &Range<usize>) -> bool {
    byte_ranges_overlap(range, area)
}

fn is_within_area(range: &Range<usize>, area: &Range<usize>) -> bool {
    area.start <= range.start && range.end <= area.end
}

fn has_whole_new_range(index: &usize, position: &NotePosition, object: &CodeObject<'_>, new: &RespelledNotes) -> bool {
    position.new_section_range(object, *index, new).is_some()
}

fn is_load_before_end(segment: &ElfSegment, position: &NotePosition) -> bool {
    segment.kind == elf::PT_LOAD && segment.range.start < position.area.end
}

fn several_places(object: &CodeObject<'_>) -> Diagnostic {
    let at = object.note().target_start() as u64;
    Diagnostic::error(codes::NO_ROUTE, "its metadata notes lie in several places, so they cannot grow").at_offset(at)
}

/// A table that moves.
pub(crate) struct MovedTable {
    /// Index of its section.
    pub(crate) section: usize,
    /// Its offset in the new file.
    pub(crate) at: usize,
}

/// A value in `.dynamic` that is the address of a table.
#[derive(PartialEq)]
pub(crate) struct DynamicReference {
    /// Offset of the value in the file.
    pub(crate) field: usize,
    /// Index of the table's section.
    pub(crate) section: usize,
}

/// New positions for the tables between the note and the first part that cannot move.
pub(crate) struct RelabelLayout {
    /// From the note's start to the first part that cannot move.
    pub(crate) window: Range<usize>,
    pub(crate) moved: Vec<MovedTable>,
    /// Address minus offset, the same in the whole window.
    bias: u64,
}

impl RelabelLayout {
    /// `None` where the note lacks space, or where other parts might depend on the tables' addresses.
    fn find(object: &CodeObject<'_>, place: &NotePosition, size: usize) -> Option<Self> {
        let mut layout = Self::movable_window(object, place)?;
        let mut at = place.area.start + size;
        for table in &mut layout.moved {
            let section = &object.sections()[table.section];
            // An alignment of a damaged file may be any number.
            at = at.checked_next_multiple_of(usize::try_from(section.align.max(1)).ok()?)?;
            table.at = at;
            at = at.checked_add(section.range.len())?;
        }
        let fits = at <= layout.window.end && place.sections.iter().all(|one| is_loaded_section_index(one, object));
        (fits && layout.is_private(object, place)).then_some(layout)
    }

    /// The tables that follow the note, at their current positions.
    pub(crate) fn movable_window(object: &CodeObject<'_>, place: &NotePosition) -> Option<Self> {
        let note = &object.sections()[*place.sections.first()?];
        let bias = note.address.checked_sub(note.range.start as u64)?;
        let mut behind: Vec<_> = object.sections().iter().enumerate().collect();
        behind.retain(|(_, s)| s.range.start >= place.area.end && !s.range.is_empty());
        behind.sort_by_key(|(index, section)| (section.range.start, *index));
        let tables: Vec<_> = behind
            .iter()
            .take_while(|(_, section)| is_loaded_section(section) && has_movable_table_kind(section))
            .collect();
        let next = behind.get(tables.len()).map(|(_, section)| section.range.start)?;
        // An address of a damaged file may be any number; from here on those of the window are numbers.
        bias.checked_add(next as u64)?;
        let moved =
            tables.iter().map(|(index, section)| MovedTable { section: *index, at: section.range.start }).collect();
        Some(Self { window: place.area.start..next, moved, bias })
    }

    /// Whether only headers and `.dynamic` have the addresses of these tables, and only padding is between them.
    fn is_private(&self, object: &CodeObject<'_>, place: &NotePosition) -> bool {
        let sections = object.sections();
        let moves =
            |index: usize| self.moved.iter().any(|moved| moved.section == index) || place.sections.contains(&index);
        let others = sections
            .iter()
            .enumerate()
            .any(|(index, section)| overlaps_movable_window(&section.range, self) && !moves(index));
        let forms = [elf::SHT_REL, elf::SHT_RELA, elf::SHT_RELR, elf::SHT_CREL];
        let relocated = sections.iter().any(|s| forms.contains(&s.kind) || ANDROID.contains(&s.kind));
        let segments = object.segments().iter().enumerate();
        let strange = segments.filter(|(index, segment)| {
            overlaps_movable_window(&segment.range, self) && !place.segments.contains(index)
        });
        let headers =
            [header_table_range(object, PROGRAM_HEADERS, 54, 56), header_table_range(object, SECTION_HEADERS, 58, 60)];
        self.moved
            .iter()
            .map(|moved| &moved.section)
            .chain(&place.sections)
            .all(|index| keeps_bias_in_window(*index, self, sections))
            && !others
            && !relocated
            && strange.map(|(_, segment)| segment).all(|one| is_load_of_window(one, self))
            && !headers.iter().any(|one| overlaps_movable_window(one, self))
            && self
                .gaps_between_tables(object, place)
                .iter()
                .all(|gap| object.bytes()[gap.clone()].iter().all(|byte| *byte == 0))
            && symbols_are_elsewhere(object, moves)
            && self.dynamic_addresses(object).is_some()
    }

    /// The gaps between the tables.
    fn gaps_between_tables(&self, object: &CodeObject<'_>, place: &NotePosition) -> Vec<Range<usize>> {
        let ends = std::iter::once(place.area.end)
            .chain(self.moved.iter().map(|moved| object.sections()[moved.section].range.end));
        let starts =
            self.moved.iter().map(|moved| object.sections()[moved.section].range.start).chain([self.window.end]);
        ends.zip(starts).map(|(end, start)| end..start.max(end)).collect()
    }

    /// Entries of `.dynamic` that refer to a table. `None` where an entry could
    /// be the address of something in the window without being known as one.
    pub(crate) fn dynamic_addresses(&self, object: &CodeObject<'_>) -> Option<Vec<DynamicReference>> {
        let mut found = Vec::new();
        let Some(dynamic) = object.segments().iter().find(|segment| segment.kind == elf::PT_DYNAMIC) else {
            return Some(found);
        };
        for at in dynamic.range.clone().step_by(16) {
            let (tag, value) =
                (u32::try_from(dynamic_entry_word(at, object)?).ok()?, dynamic_entry_word(at + 8, object)?);
            if tag == elf::DT_NULL {
                break;
            }
            let table = self.moved.iter().map(|moved| moved.section).find(|index| {
                let section = &object.sections()[*index];
                section.address == value && TABLES.contains(&(section.kind, tag))
            });
            match table {
                Some(section) => found.push(DynamicReference { field: at + 8, section }),
                None if NUMBERS.contains(&tag) || !self.holds_address(value) => {}
                None => return None,
            }
        }
        Some(found)
    }

    fn holds_address(&self, address: u64) -> bool {
        (self.window.start as u64 + self.bias..self.window.end as u64 + self.bias).contains(&address)
    }

    fn write_window(
        &self,
        object: &CodeObject<'_>,
        place: &NotePosition,
        notes: &RespelledNotes,
        new: &[u8],
        out: &mut BytePatch,
    ) {
        let mut window = vec![0; self.window.len()];
        window[..new.len()].copy_from_slice(new);
        for MovedTable { section, at } in &self.moved {
            let old = &object.bytes()[object.sections()[*section].range.clone()];
            window[at - self.window.start..][..old.len()].copy_from_slice(old);
        }
        out.put(self.window.start, window);
        let size = new.len() as u64;
        for index in &place.segments {
            put_word(out, segment_row(object, *index) + 32, size);
            put_word(out, segment_row(object, *index) + 40, size);
        }
        for index in &place.sections {
            let Some(range) = place.new_section_range(object, *index, notes) else { continue };
            let at = (place.area.start + range.start) as u64;
            for (field, value) in [(16, at + self.bias), (24, at), (32, range.len() as u64)] {
                put_word(out, section_row(object, *index) + field, value);
            }
        }
        for MovedTable { section, at } in &self.moved {
            put_word(out, section_row(object, *section) + 16, *at as u64 + self.bias);
            put_word(out, section_row(object, *section) + 24, *at as u64);
        }
        for DynamicReference { field, section } in self.dynamic_addresses(object).unwrap_or_default() {
            let new = self.moved.iter().find(|moved| moved.section == section);
            new.into_iter().for_each(|moved| put_word(out, field, moved.at as u64 + self.bias));
        }
    }
}

fn is_loaded_section_index(index: &usize, object: &CodeObject<'_>) -> bool {
    object.sections()[*index].flags & u64::from(elf::SHF_ALLOC) != 0
}

fn has_movable_table_kind(section: &ElfSectionView<'_>) -> bool {
    TABLES.iter().any(|(kind, _)| *kind == section.kind)
}

fn is_loaded_section(section: &ElfSectionView<'_>) -> bool {
    section.flags & u64::from(elf::SHF_ALLOC) != 0
}

fn overlaps_movable_window(range: &Range<usize>, layout: &RelabelLayout) -> bool {
    range.start < layout.window.end && layout.window.start < range.end
}

fn keeps_bias_in_window(index: usize, layout: &RelabelLayout, sections: &[ElfSectionView<'_>]) -> bool {
    let section = &sections[index];
    section.address == section.range.start as u64 + layout.bias && section.range.end <= layout.window.end
}

fn is_load_of_window(segment: &ElfSegment, layout: &RelabelLayout) -> bool {
    segment.kind == elf::PT_LOAD
        && segment.range.start <= layout.window.start
        && layout.window.end <= segment.range.end
        && segment.address.wrapping_sub(segment.range.start as u64) == layout.bias
}

fn dynamic_entry_word(at: usize, object: &CodeObject<'_>) -> Option<u64> {
    Some(u64::from_le_bytes(object.bytes().get(at..at + 8)?.try_into().ok()?))
}

/// Whether no symbol is defined in a section that moves.
fn symbols_are_elsewhere(object: &CodeObject<'_>, moves: impl Fn(usize) -> bool) -> bool {
    let tables = object.sections().iter().filter(|s| [elf::SHT_SYMTAB, elf::SHT_DYNSYM].contains(&s.kind));
    let mut records = tables.flat_map(|table| object.bytes()[table.range.clone()].chunks_exact(24));
    !records.any(|record| moves(usize::from(u16::from_le_bytes([record[6], record[7]]))))
}

/// Range of a table of headers: offset at `at`, size and number of its rows.
pub(crate) fn header_table_range(object: &CodeObject<'_>, at: usize, size: usize, count: usize) -> Range<usize> {
    let start = header_offset(object, at);
    start..start.saturating_add(elf_header_halfword(size, object) * elf_header_halfword(count, object))
}

fn elf_header_halfword(at: usize, object: &CodeObject<'_>) -> usize {
    usize::from(u16::from_le_bytes([object.bytes()[at], object.bytes()[at + 1]]))
}

/// An offset in the ELF header; its table was read, so it fits.
fn header_offset(object: &CodeObject<'_>, at: usize) -> usize {
    let bytes: [u8; 8] = std::array::from_fn(|index| object.bytes()[at + index]);
    u64::from_le_bytes(bytes) as usize
}

/// Offset of the header of that segment.
pub(crate) fn segment_row(object: &CodeObject<'_>, index: usize) -> usize {
    header_offset(object, PROGRAM_HEADERS) + index * PROGRAM_HEADER
}

/// Offset of the header of that section.
pub(crate) fn section_row(object: &CodeObject<'_>, index: usize) -> usize {
    header_offset(object, SECTION_HEADERS) + index * SECTION_HEADER
}

fn put_word(out: &mut BytePatch, at: usize, value: u64) {
    out.put(at, value.to_le_bytes().to_vec());
}
