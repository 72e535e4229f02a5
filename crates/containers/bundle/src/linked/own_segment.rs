//! A segment of its own for bundles that move: after everything that is loaded, without `.bss` as zeros in the file before it.
//!
//! The number of program headers stays, because their table has no room to grow: the segment takes the header of one that the
//! program does not need. [`SPARE`] has them in order, each with what its loss costs.
//!
//! The bytes are the last ones of the file before the section headers, so pruning makes the file shorter.

use super::edit;
use super::layout::LinkedPlan;
use super::program::{LinkedProgram, ProgramSegment, SEGMENT_HEADER};
use crate::bytes::{align_up, u64_at};
use crate::draft::FileRope;
use crate::elf::{MAX_ALIGNMENT, SECTION_HEADER, SectionHeader};
use hotswap_report::Diagnostic;
use object::elf::{PT_GNU_PROPERTY, PT_INTERP, PT_LOAD, PT_NOTE, PT_PHDR};
use std::ops::Range;
const DT_FLAGS_1: u64 = object::elf::DT_FLAGS_1 as u64;
const DF_1_PIE: u64 = 0x0800_0000;
const READ: u32 = 4;
/// Zeros in the file that a header is worth.
pub(super) const MIN_ZEROS: u64 = 1 << 20;

/// A kind of program header that a program works without.
struct SpareHeader {
    kind: u32,
    is_spare: fn(&ProgramSegment, &LinkedProgram<'_>) -> bool,
}

const SPARE: &[SpareHeader] = &[
    // The dynamic loader finds the table of a library by the ELF header.
    SpareHeader { kind: PT_PHDR, is_spare: is_library_header },
    // The kernel and the dynamic loader read properties by PT_GNU_PROPERTY.
    SpareHeader { kind: PT_NOTE, is_spare: has_property_header },
    // Build ID and ABI tag: debuggers find the build ID by its section, memory dumps of the running program do not.
    SpareHeader { kind: PT_NOTE, is_spare: any_header },
];

/// The segment's place in the new file and in the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnSegment {
    /// Index of the program header that it replaces.
    pub(super) spare: usize,
    pub(super) address: u64,
    alignment: u64,
    /// Offset in the new file.
    pub(super) offset: u64,
}

impl OwnSegment {
    /// The segment at the first address after everything; its offset is set by [`OwnSegment::place`]. `None` where
    /// no header is spare.
    pub(super) fn plan(program: &LinkedProgram<'_>, end: u64, alignment: u64) -> Option<Self> {
        let alignment = program.loads.iter().map(|load| load.alignment).fold(alignment, u64::max);
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            return None;
        }
        Some(Self { spare: spare_header(program)?, address: align_up(end, alignment)?, alignment, offset: 0 })
    }

    /// Offset and address of a segment agree in their last bits.
    pub(super) fn place(&mut self, program: &LinkedProgram<'_>, plan: &LinkedPlan<'_>) -> Option<()> {
        self.offset = align_up(plan.lowered_offset(kept_end(program)), self.alignment)?;
        Some(())
    }

    fn header(&self, size: u64) -> Vec<u8> {
        let words = [self.offset, self.address, self.address, size, size, self.alignment];
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        [PT_LOAD, READ].into_iter().flat_map(u32::to_le_bytes).chain(words).collect()
    }
}

fn is_library_header(_: &ProgramSegment, program: &LinkedProgram<'_>) -> bool {
    program.is_movable()
        && !program.segments.iter().any(|segment| segment.kind == PT_INTERP)
        && !is_static_program(program)
}

/// Whether it is a program that needs no dynamic loader and finds its own headers.
fn is_static_program(program: &LinkedProgram<'_>) -> bool {
    let Some(dynamic) = &program.dynamic else { return true };
    let places = (dynamic.offset..dynamic.file_end()).step_by(16);
    let mut flags = places.filter(|at| u64_at(program.bytes, *at) == Some(DT_FLAGS_1));
    flags.any(|at| u64_at(program.bytes, at + 8).is_some_and(|flags| flags & DF_1_PIE != 0))
}

fn has_property_header(note: &ProgramSegment, program: &LinkedProgram<'_>) -> bool {
    let mut segments = program.segments.iter();
    segments.any(|segment| segment.kind == PT_GNU_PROPERTY && segment.offset == note.offset)
}

fn any_header(_: &ProgramSegment, _: &LinkedProgram<'_>) -> bool {
    true
}

fn spare_header(program: &LinkedProgram<'_>) -> Option<usize> {
    SPARE.iter().find_map(|row| {
        program.segments.iter().position(|segment| segment.kind == row.kind && (row.is_spare)(segment, program))
    })
}

/// Whether nothing but zeros follows the table of sections, which is written anew then.
fn is_table_last(program: &LinkedProgram<'_>) -> bool {
    let end = table_range(program).end as usize;
    let loaded = program.loads.iter().map(ProgramSegment::file_end).max().unwrap_or_default();
    program.sections.table >= loaded && program.bytes[end..].iter().all(|byte| *byte == 0)
}

fn table_range(program: &LinkedProgram<'_>) -> Range<u64> {
    let start = program.sections.table;
    start..start + program.sections.all.len() as u64 * SECTION_HEADER
}

/// The end of the old file's bytes that the new one has.
fn kept_end(program: &LinkedProgram<'_>) -> u64 {
    if is_table_last(program) { program.sections.table } else { program.bytes.len() as u64 }
}

/// The file with its own segment for the bundles, which are still to be written; headers are updated already.
pub(super) fn append_segment<'a>(
    program: &LinkedProgram<'a>,
    plan: &LinkedPlan<'a>,
    own: &OwnSegment,
    section: &SectionHeader,
) -> Result<FileRope<'a>, Diagnostic> {
    let end = kept_end(program) as usize;
    let mut out = match &plan.cut {
        Some(cut) => {
            let mut out = cut.up_to_rest(program, section, &[]);
            out.push(&program.bytes[cut.rest as usize..end]);
            out
        }
        None => {
            let mut out = FileRope::default();
            out.push(&program.bytes[..end]);
            out
        }
    };
    if !is_table_last(program) {
        let old = table_range(program);
        out.clear(plan.lowered_offset(old.start)..plan.lowered_offset(old.start) + (old.end - old.start));
    }
    let size = plan.end_address() - own.address;
    if let (Some(first), Some(last)) = (program.segments.first(), program.segments.last()) {
        let (start, end) = (first.header as usize, (last.header + SEGMENT_HEADER) as usize);
        let mut head = FileRope::default();
        head.push(&program.bytes[..end]);
        if let Some(cut) = &plan.cut {
            cut.write_segments(&mut head, program, section);
        }
        out.overwrite_at(first.header, exchange_header(program, own, &head.to_vec()[start..], size));
    }
    edit::write_symbols(&mut out, program, plan, program.sections.all.len(), |at| plan.lowered_offset(at));
    out.pad_to(own.offset + size);
    out.pad_to(out.size().next_multiple_of(8));
    edit::write_headers(&mut out, program, plan, section, 0)?;
    Ok(out)
}

/// The table of program headers without the spare one, and with the new one after the other loaded segments: loaders want them in
/// the order of their addresses.
fn exchange_header(program: &LinkedProgram<'_>, own: &OwnSegment, table: &[u8], size: u64) -> Vec<u8> {
    let last = program.segments.iter().rposition(|segment| segment.kind == PT_LOAD);
    let mut new = Vec::with_capacity(table.len());
    for (number, header) in table.chunks(SEGMENT_HEADER as usize).enumerate() {
        if number != own.spare {
            new.extend_from_slice(header);
        }
        if Some(number) == last {
            new.extend(own.header(size));
        }
    }
    new
}

/// The kinds of the program headers of the result.
pub(super) fn expected_kinds(program: &LinkedProgram<'_>, own: &OwnSegment) -> Vec<u32> {
    let last = program.segments.iter().rposition(|segment| segment.kind == PT_LOAD);
    let mut kinds = Vec::new();
    for (number, segment) in program.segments.iter().enumerate() {
        kinds.extend((number != own.spare).then_some(segment.kind));
        kinds.extend((Some(number) == last).then_some(PT_LOAD));
    }
    kinds
}
