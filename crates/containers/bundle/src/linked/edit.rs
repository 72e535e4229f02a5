//! The edit itself, as planned.

use super::layout::{LinkedPlan, PlannedPointer, SectionChange};
use super::program::{LinkedProgram, ProgramSegment};
use super::{no_place, own_segment};
use crate::bytes::{align_up, malformed_at};
use crate::draft::FileRope;
use crate::elf::{SECTION_HEADER, SHF_TLS, SHT_NOBITS, SectionHeader};
use hotswap_report::Diagnostic;
use object::elf::SHT_PROGBITS;
use std::ops::Range;
pub(super) const E_SHOFF: u64 = 40;
const E_SHNUM: u64 = 60;
/// Moved parts of the file keep their alignment, whatever it was.
const PAGE: u64 = 4096;

pub(super) fn apply_plan<'a>(program: &LinkedProgram<'a>, plan: &LinkedPlan<'a>) -> Result<FileRope<'a>, Diagnostic> {
    let section = program.sections.all[plan.index];
    let mut out = match (plan.mode, &plan.cut) {
        (SectionChange::Within, Some(cut)) => {
            let mut out = cut.apply_cut(program, plan);
            write_pointers(&mut out, plan, |at| cut.moved_offset(at));
            write_symbols(&mut out, program, plan, plan.index, |at| cut.moved_offset(at));
            return Ok(out);
        }
        (SectionChange::Slots | SectionChange::Within, _) => {
            let mut same = FileRope::default();
            same.push(program.bytes);
            same
        }
        (SectionChange::Moved, _) => match &plan.own {
            Some(own) => own_segment::append_segment(program, plan, own, &section)?,
            None => grow_last_segment(program, plan, &section)?,
        },
    };
    if plan.mode != SectionChange::Slots && plan.cut.is_none() {
        out.clear(section.file_range());
    }
    for piece in &plan.pieces {
        let offset = plan.offset_in_result(program, piece.address);
        if plan.mode == SectionChange::Slots {
            out.clear(slot_range(plan, &section, piece.address));
        }
        piece.content.write_to(&mut out, offset);
    }
    write_pointers(&mut out, plan, |at| plan.lowered_offset(at));
    if plan.mode == SectionChange::Within {
        write_symbols(&mut out, program, plan, plan.index, |at| at);
    }
    Ok(out)
}

/// `moved` maps an offset of the program to the result.
fn write_pointers(out: &mut FileRope<'_>, plan: &LinkedPlan<'_>, moved: impl Fn(u64) -> u64) {
    for PlannedPointer { pointer, piece } in &plan.pointers {
        let places = pointer.addend.into_iter().chain(pointer.stored.then_some(pointer.at));
        places.for_each(|at| write_u64(out, moved(at), plan.pieces[*piece].address));
    }
}

/// The offset of an address, including addresses after the original end of the last segment.
pub(super) fn offset_of(program: &LinkedProgram<'_>, address: u64) -> u64 {
    let load = program.loads.iter().rev().find(|load| load.address <= address);
    load.map_or(0, |load| load.offset + (address - load.address))
}

pub(super) fn write_u64(out: &mut FileRope<'_>, at: u64, value: u64) {
    out.overwrite_at(at, value.to_le_bytes().to_vec());
}

fn slot_range(plan: &LinkedPlan<'_>, section: &SectionHeader, address: u64) -> Range<u64> {
    let next = plan.pieces.iter().map(|piece| piece.address).filter(|other| *other > address).min();
    let end = next.unwrap_or(section.address + section.size);
    section_file_offset(address, section)..section_file_offset(end, section)
}

fn section_file_offset(address: u64, section: &SectionHeader) -> u64 {
    section.offset + (address - section.address)
}

/// The file with space at the end of its last segment; headers and symbols are updated already.
fn grow_last_segment<'a>(
    program: &LinkedProgram<'a>,
    plan: &LinkedPlan<'a>,
    section: &SectionHeader,
) -> Result<FileRope<'a>, Diagnostic> {
    let last = program.loads.last().ok_or_else(|| malformed_at("nothing is loaded", 32))?;
    let move_up = shift_of_tail(last, plan).ok_or_else(|| no_place("the program would be larger than memory"))?;
    let (bytes, sections) = (program.bytes, &program.sections);
    let tail = (last.offset + last.file_size) as usize;
    let table_size = sections.all.len() as u64 * SECTION_HEADER;
    let is_table_last =
        sections.table >= tail as u64 && bytes[(sections.table + table_size) as usize..].iter().all(|byte| *byte == 0);
    let old_end = if is_table_last { sections.table as usize } else { bytes.len() };
    let mut out = match &plan.cut {
        Some(cut) => {
            let mut out = cut.up_to_rest(program, section, &[]);
            out.push(&bytes[cut.rest as usize..tail]);
            out
        }
        None => {
            let mut out = FileRope::default();
            out.push(&bytes[..tail]);
            out
        }
    };
    out.pad_to(plan.lowered_offset(tail as u64) + move_up);
    out.push(&bytes[tail..old_end]);
    if !is_table_last {
        let start = plan.lowered_offset(sections.table) + if sections.table >= tail as u64 { move_up } else { 0 };
        out.clear(start..start + table_size);
    }
    let mut address = last.address;
    if let Some(cut) = &plan.cut {
        cut.write_segments(&mut out, program, section);
        address = cut.last_address(program, section).unwrap_or(address);
    }
    let size = plan.end_address() - address;
    write_u64(&mut out, last.header + 32, size);
    write_u64(&mut out, last.header + 40, size);
    let index = if keeps_header(plan, section) { plan.index } else { sections.all.len() };
    write_symbols(&mut out, program, plan, index, |at| {
        plan.lowered_offset(at) + if at >= last.file_end() { move_up } else { 0 }
    });
    out.pad_to(out.size().next_multiple_of(8));
    write_headers(&mut out, program, plan, section, move_up)?;
    Ok(out)
}

/// The distance by which data that no segment loads moves.
fn shift_of_tail(last: &ProgramSegment, plan: &LinkedPlan<'_>) -> Option<u64> {
    let new_size = plan.end_address().checked_sub(last.address)?;
    let shift = align_up(new_size.checked_sub(last.file_size)?, PAGE)?;
    usize::try_from(shift).ok().map(|_| shift)
}

/// Whether the section keeps its header: it was at the end already.
fn keeps_header(plan: &LinkedPlan<'_>, section: &SectionHeader) -> bool {
    plan.pieces.first().is_some_and(|piece| piece.address == section.address)
}

pub(super) fn write_symbols(
    out: &mut FileRope<'_>,
    program: &LinkedProgram<'_>,
    plan: &LinkedPlan<'_>,
    index: usize,
    moved: impl Fn(u64) -> u64,
) {
    for symbol in &plan.symbols {
        let at = moved(symbol.at);
        let piece = &plan.pieces[symbol.piece];
        out.overwrite_at(at + 6, (index as u16).to_le_bytes().to_vec());
        write_u64(out, at + 8, piece.address);
        if program.bytes[symbol.at as usize + 16..symbol.at as usize + 24] != [0; 8] {
            write_u64(out, at + 16, piece.content.size());
        }
    }
}

/// Writes a field of the section header with that number.
fn put_header_field(table: &mut [u8], number: usize, field: usize, value: &[u8]) {
    let at = number * SECTION_HEADER as usize + field;
    table[at..at + value.len()].copy_from_slice(value);
}

/// The section headers, after everything else.
pub(super) fn write_headers(
    out: &mut FileRope<'_>,
    program: &LinkedProgram<'_>,
    plan: &LinkedPlan<'_>,
    section: &SectionHeader,
    move_up: u64,
) -> Result<(), Diagnostic> {
    let last = program.loads.last().ok_or_else(|| malformed_at("nothing is loaded", 32))?;
    let tail = last.offset + last.file_size;
    let old_size = program.sections.all.len() * SECTION_HEADER as usize;
    let start = program.sections.table as usize;
    let mut table = program.bytes[start..start + old_size].to_vec();
    for (number, found) in program.sections.all.iter().enumerate() {
        if found.kind != 0 {
            put_header_field(&mut table, number, 24, &plan.lowered_offset(found.offset).to_le_bytes());
        }
        let is_zeros = found.is_loaded() && found.kind == SHT_NOBITS && found.flags & SHF_TLS == 0;
        if is_zeros && plan.own.is_none() && found.address >= last.address + last.file_size {
            put_header_field(&mut table, number, 4, &SHT_PROGBITS.to_le_bytes());
            put_header_field(
                &mut table,
                number,
                24,
                &(plan.lowered_offset(last.offset) + (found.address - last.address)).to_le_bytes(),
            );
        } else if !found.is_loaded() && found.offset >= tail {
            put_header_field(&mut table, number, 24, &(plan.lowered_offset(found.offset) + move_up).to_le_bytes());
        }
    }
    let first = plan.pieces.first().map_or(section.address, |piece| piece.address);
    let size = plan.end_address() - first;
    let at = out.size();
    if keeps_header(plan, section) {
        put_header_field(&mut table, plan.index, 32, &size.to_le_bytes());
    } else {
        let count = u16::try_from(program.sections.all.len() + 1).ok().filter(|count| *count < 0xff00);
        let count = count.ok_or_else(|| no_place("the file has as many sections as fit"))?;
        // The old place: the same name without its dot.
        put_header_field(&mut table, plan.index, 0, &(section.name + 1).to_le_bytes());
        if let Some(cut) = &plan.cut {
            put_header_field(&mut table, plan.index, 32, &(cut.end - section.address).to_le_bytes());
        }
        let old = plan.index * SECTION_HEADER as usize;
        let mut header = table[old..old + SECTION_HEADER as usize].to_vec();
        header[..4].copy_from_slice(&section.name.to_le_bytes());
        for (field, value) in [(16, first), (24, plan.offset_in_result(program, first)), (32, size)] {
            header[field..field + 8].copy_from_slice(&value.to_le_bytes());
        }
        table.extend_from_slice(&header);
        out.overwrite_at(E_SHNUM, count.to_le_bytes().to_vec());
    }
    out.push(table);
    write_u64(out, E_SHOFF, at);
    Ok(())
}
