//! Removing from the file the space that smaller bundles leave free, or the old place of bundles that have moved.
//!
//! Addresses never change and neither does the number of segments, so bytes can be removed from a file only at the end
//! of a segment. Two layouts allow it:
//!
//! - the section ends its segment (HotSwap's own place for sections that grew, and some linkers');
//! - GNU ld's: tables for exceptions (`.eh_frame_hdr`, `.gcc_except_table`) follow the section in its read-only
//!   segment, and the next segment is the writable one whose beginning `PT_GNU_RELRO` makes read-only. The tables are
//!   moved to that segment and under that protection; the boundary between both segments moves down.
//!
//! Everything after it moves down in the file by a multiple of the segments' alignment.
//!
//! Absent on purpose: LLD's layout, in which code or constants follow. There the file keeps its length, with zeros in
//! the free space.

use super::layout::{LinkedPlan, MovedBundle};
use super::program::{LinkedProgram, ProgramSegment, SEGMENT_HEADER};
use crate::draft::FileRope;
use crate::elf::{MAX_ALIGNMENT, SectionHeader};
use object::elf::{PT_GNU_RELRO, PT_LOAD};
const READ: u32 = 4;
const READ_WRITE: u32 = 6;
const PAGE: u64 = 4096;
/// Moving anything does not pay off for less.
const MIN_GAIN: u64 = 64 << 10;
/// The maximum gap between two segments that become neighbours.
const MAX_GAP: u64 = 1 << 20;

/// The removed range, in offsets of the old file.
#[derive(Debug, Clone)]
pub(super) struct ShrinkPlan {
    /// The section's new end address.
    pub(super) end: u64,
    /// End of the old section.
    section_end: u64,
    /// The start of the part that moves by `down`; the tables are between `section_end` and here.
    pub(super) rest: u64,
    tables_down: u64,
    down: u64,
    /// Indices of the section's segment, and of the one that receives the tables.
    segment: usize,
    next: Option<usize>,
}

impl ShrinkPlan {
    /// The plan for shrinking a section whose bundles end at that address; `None` where it is impossible or
    /// does not pay off.
    pub(super) fn plan_cut(program: &LinkedProgram<'_>, index: usize, end: u64) -> Option<Self> {
        let section = &program.sections.all[index];
        let section_end = section.file_range().end;
        let loads = &program.loads;
        let segment = loads
            .iter()
            .position(|load: &ProgramSegment| load.offset <= section.offset && section_end <= load.file_end())?;
        let load = loads[segment];
        if load.file_size != load.memory_size || loads.windows(2).any(|pair| pair[0].file_end() > pair[1].offset) {
            return None;
        }
        let free = (section.address + section.size).checked_sub(end)?;
        let mut cut = Self { end, section_end, rest: section_end, tables_down: 0, down: 0, segment, next: None };
        let alignment = loads[segment + 1..].iter().map(|load| load.alignment).fold(PAGE, u64::max);
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            return None;
        }
        if load.file_end() == section_end {
            cut.down = free & !(alignment - 1);
            cut.tables_down = cut.down;
        } else {
            cut.join_next(program, free, alignment)?;
        }
        (cut.down >= MIN_GAIN && cut.is_apart(program, index)).then_some(cut)
    }

    /// Moves the tables after the section to the next segment.
    fn join_next(&mut self, program: &LinkedProgram<'_>, free: u64, alignment: u64) -> Option<()> {
        let (load, next) = (program.loads[self.segment], *program.loads.get(self.segment + 1)?);
        let relro = program
            .segments
            .iter()
            .find(|segment: &&ProgramSegment| segment.kind == PT_GNU_RELRO && segment.address == next.address)?;
        let gap = next.address - (load.address + load.file_size);
        if load.flags != READ || next.flags != READ_WRITE || relro.offset != next.offset || gap > MAX_GAP {
            return None;
        }
        // In the next segment addresses and offsets have another difference.
        let more = next.address.checked_sub(next.offset)?.checked_sub(load.address.checked_sub(load.offset)?)?;
        // A page is kept between the segments, so that no page is mapped by both.
        self.down = free.checked_sub(more)?.checked_sub(alignment)? & !(alignment - 1);
        self.tables_down = self.down + more;
        self.rest = next.offset;
        self.next = Some(self.segment + 1);
        Some(())
    }

    /// Whether nothing else has its bytes in the removed range, or across a boundary.
    fn is_apart(&self, program: &LinkedProgram<'_>, index: usize) -> bool {
        let section = &program.sections.all[index];
        let tables_end = program.loads[self.segment].file_end();
        let parts = [0..section.offset, self.section_end..tables_end.max(self.section_end), self.rest..u64::MAX];
        let others = program.sections.all.iter().enumerate().filter(|(number, _)| *number != index);
        let segments = program.segments.iter().filter(|segment| segment.header != program.loads[self.segment].header);
        let tables = [
            program.sections.table..program.sections.table_end(),
            0..program.segments.last().map_or(0, |last| last.header + SEGMENT_HEADER),
        ];
        let ranges = others.map(|(_, section)| section.file_range());
        let mut ranges = ranges.chain(segments.map(|segment| segment.offset..segment.file_end())).chain(tables);
        ranges.all(|range| {
            range.is_empty() || parts.iter().any(|part| part.start <= range.start && range.end <= part.end)
        })
    }

    /// The offset in the new file of a byte of the old one.
    pub(super) fn moved_offset(&self, offset: u64) -> u64 {
        match offset {
            low if low < self.section_end => low,
            table if table < self.rest => table - self.tables_down,
            high => high - self.down,
        }
    }

    /// The file without the free space: bundles in place, headers adjusted.
    pub(super) fn apply_cut<'a>(&self, program: &LinkedProgram<'a>, plan: &LinkedPlan<'a>) -> FileRope<'a> {
        let section = &program.sections.all[plan.index];
        let mut out = self.up_to_rest(program, section, &plan.pieces);
        out.push(&program.bytes[self.rest as usize..]);
        self.write_segments(&mut out, program, section);
        self.write_sections(&mut out, program, plan, section);
        out
    }

    /// The new file up to `rest`, with these bundles in the section.
    pub(super) fn up_to_rest<'a>(
        &self,
        program: &LinkedProgram<'a>,
        section: &SectionHeader,
        pieces: &[MovedBundle<'a>],
    ) -> FileRope<'a> {
        let bytes = program.bytes;
        let mut out = FileRope::default();
        out.push(&bytes[..section.offset as usize]);
        for piece in pieces {
            out.pad_to(section.offset + (piece.address - section.address));
            piece.content.append_to(&mut out);
        }
        let tables_end = program.loads[self.segment].file_end();
        out.pad_to(self.section_end - self.tables_down);
        out.push(&bytes[self.section_end as usize..tables_end.max(self.section_end) as usize]);
        out.pad_to(self.rest - self.down);
        out
    }

    /// The new start address of the last segment.
    pub(super) fn last_address(&self, program: &LinkedProgram<'_>, section: &SectionHeader) -> Option<u64> {
        let last = program.loads.last()?;
        let takes_tables = self.next == Some(program.loads.len() - 1);
        Some(if takes_tables { section.address + section.size } else { last.address })
    }

    pub(super) fn write_segments(&self, out: &mut FileRope<'_>, program: &LinkedProgram<'_>, section: &SectionHeader) {
        let next = self.next.map(|next| program.loads[next]);
        // The size of the part below its old start that the next segment receives.
        let more = next.map_or(0, |next| next.address - (section.address + section.size));
        for segment in &program.segments {
            let (mut offset, mut address) = (self.moved_offset(segment.offset), segment.address);
            let (mut file_size, mut memory_size) = (segment.file_size, segment.memory_size);
            let begins_next = next.is_some_and(|next| segment.address == next.address);
            if segment.header == program.loads[self.segment].header {
                file_size = self.end - segment.address;
                memory_size = file_size;
            } else if begins_next && matches!(segment.kind, PT_LOAD | PT_GNU_RELRO) {
                offset = self.moved_offset(self.section_end);
                address -= more;
                file_size += more;
                memory_size += more;
            }
            let physical = segment.physical.wrapping_sub(segment.address - address);
            for (at, value) in [(8, offset), (16, address), (24, physical), (32, file_size), (40, memory_size)] {
                super::edit::write_u64(out, segment.header + at, value);
            }
        }
    }

    fn write_sections(
        &self,
        out: &mut FileRope<'_>,
        program: &LinkedProgram<'_>,
        plan: &LinkedPlan<'_>,
        section: &SectionHeader,
    ) {
        super::edit::write_u64(out, super::edit::E_SHOFF, self.moved_offset(program.sections.table));
        for (number, found) in program.sections.all.iter().enumerate() {
            let header = self.moved_offset(found.header);
            if number == plan.index {
                super::edit::write_u64(out, header + 32, self.end - section.address);
            } else if found.kind != 0 {
                super::edit::write_u64(out, header + 24, self.moved_offset(found.offset));
            }
        }
    }
}
