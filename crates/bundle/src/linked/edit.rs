//! The edit itself, as planned.

use super::layout::{Mode, Plan};
use super::no_place;
use super::program::{Program, Segment};
use crate::bytes::{align, malformed};
use crate::elf::{SECTION_HEADER, SHF_TLS, SHT_NOBITS, Section};
use hotswap_report::Diagnostic;

const SHT_PROGBITS: u32 = 1;
pub(super) const E_SHOFF: u64 = 40;
const E_SHNUM: u64 = 60;
/// Whatever alignment the moved parts of the file had, they keep it.
const PAGE: u64 = 4096;

pub(super) fn apply(program: &Program<'_>, plan: &Plan<'_>) -> Result<Vec<u8>, Diagnostic> {
    let section = program.sections.all[plan.index];
    let mut out = match (plan.mode, &plan.cut) {
        (_, Some(cut)) => {
            let mut out = cut.apply(program, plan);
            write_pointers(&mut out, plan, |at| cut.moved(at));
            write_symbols(&mut out, program, plan, plan.index, |at| cut.moved(at));
            return Ok(out);
        }
        (Mode::Slots | Mode::Within, _) => program.bytes.to_vec(),
        (Mode::Moved, _) => grown(program, plan, &section)?,
    };
    if plan.mode != Mode::Slots {
        let range = section.range();
        out[range.start as usize..range.end as usize].fill(0);
    }
    for piece in &plan.pieces {
        let offset = offset_of(program, piece.address);
        if plan.mode == Mode::Slots {
            clear_slot(&mut out, plan, &section, piece.address);
        }
        write(&mut out, offset, piece.content);
    }
    write_pointers(&mut out, plan, |at| at);
    if plan.mode == Mode::Within {
        write_symbols(&mut out, program, plan, plan.index, |at| at);
    }
    Ok(out)
}

/// `moved`: where in the result a byte of the program is.
fn write_pointers(out: &mut [u8], plan: &Plan<'_>, moved: impl Fn(u64) -> u64) {
    for (pointer, piece) in &plan.pointers {
        let to = plan.pieces[*piece].address.to_le_bytes();
        let places = pointer.addend.into_iter().chain(pointer.stored.then_some(pointer.at));
        places.for_each(|at| write(out, moved(at), &to));
    }
}

/// The offset of an address, also behind the end of the last segment as it was.
pub(super) fn offset_of(program: &Program<'_>, address: u64) -> u64 {
    let load = program.loads.iter().rev().find(|load| load.address <= address);
    load.map_or(0, |load| load.offset + (address - load.address))
}

pub(super) fn write(out: &mut [u8], at: u64, bytes: &[u8]) {
    out[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
}

fn clear_slot(out: &mut [u8], plan: &Plan<'_>, section: &Section, address: u64) {
    let next = plan.pieces.iter().map(|piece| piece.address).filter(|other| *other > address).min();
    let end = next.unwrap_or(section.address + section.size);
    let offset = |address: u64| (section.offset + (address - section.address)) as usize;
    out[offset(address)..offset(end)].fill(0);
}

/// The file with room at the end of its last segment; headers and symbols say so already.
fn grown(program: &Program<'_>, plan: &Plan<'_>, section: &Section) -> Result<Vec<u8>, Diagnostic> {
    let last = program.loads.last().ok_or_else(|| malformed("nothing is loaded", 32))?;
    let move_up = shift(last, plan).ok_or_else(|| no_place("the program would be larger than memory"))?;
    let tail = (last.offset + last.file_size) as usize;
    let table_end = program.sections.table as usize + program.sections.all.len() * SECTION_HEADER as usize;
    let is_table_last =
        program.sections.table as usize >= tail && program.bytes[table_end..].iter().all(|byte| *byte == 0);
    let old_end = if is_table_last { program.sections.table as usize } else { program.bytes.len() };
    let size = old_end + move_up as usize + (program.sections.all.len() + 2) * SECTION_HEADER as usize;
    let mut out = Vec::new();
    out.try_reserve_exact(size).map_err(|_| no_place("the program would be larger than memory"))?;
    out.extend_from_slice(&program.bytes[..tail]);
    out.resize(tail + move_up as usize, 0);
    out.extend_from_slice(&program.bytes[tail..old_end]);
    if !is_table_last {
        let start = program.sections.table as usize
            + if program.sections.table as usize >= tail { move_up as usize } else { 0 };
        out[start..start + program.sections.all.len() * SECTION_HEADER as usize].fill(0);
    }
    let size = plan.end() - last.address;
    write(&mut out, last.header + 32, &size.to_le_bytes());
    write(&mut out, last.header + 40, &size.to_le_bytes());
    let index = if keeps_header(plan, section) { plan.index } else { program.sections.all.len() };
    write_symbols(&mut out, program, plan, index, |at| at + if at >= last.file_end() { move_up } else { 0 });
    out.resize(out.len().next_multiple_of(8), 0);
    write_headers(&mut out, program, plan, section, move_up)?;
    Ok(out)
}

/// By how much what no segment loads moves.
fn shift(last: &Segment, plan: &Plan<'_>) -> Option<u64> {
    let new_size = plan.end().checked_sub(last.address)?;
    let shift = align(new_size.checked_sub(last.file_size)?, PAGE)?;
    usize::try_from(shift).ok().map(|_| shift)
}

/// Whether the section keeps its header: it was at the end already.
fn keeps_header(plan: &Plan<'_>, section: &Section) -> bool {
    plan.pieces.first().is_some_and(|piece| piece.address == section.address)
}

fn write_symbols(out: &mut [u8], program: &Program<'_>, plan: &Plan<'_>, index: usize, moved: impl Fn(u64) -> u64) {
    for symbol in &plan.symbols {
        let at = moved(symbol.at);
        let piece = &plan.pieces[symbol.piece];
        write(out, at + 6, &(index as u16).to_le_bytes());
        write(out, at + 8, &piece.address.to_le_bytes());
        if program.bytes[symbol.at as usize + 16..symbol.at as usize + 24] != [0; 8] {
            write(out, at + 16, &(piece.content.len() as u64).to_le_bytes());
        }
    }
}

fn write_headers(
    out: &mut Vec<u8>,
    program: &Program<'_>,
    plan: &Plan<'_>,
    section: &Section,
    move_up: u64,
) -> Result<(), Diagnostic> {
    let last = program.loads.last().ok_or_else(|| malformed("nothing is loaded", 32))?;
    let (table, tail) = (out.len() as u64, last.offset + last.file_size);
    let old_size = program.sections.all.len() * SECTION_HEADER as usize;
    out.extend_from_slice(&program.bytes[program.sections.table as usize..program.sections.table as usize + old_size]);
    for (number, found) in program.sections.all.iter().enumerate() {
        let at = table + number as u64 * SECTION_HEADER;
        let is_zeros = found.is_loaded() && found.kind == SHT_NOBITS && found.flags & SHF_TLS == 0;
        if is_zeros && found.address >= last.address + last.file_size {
            write(out, at + 4, &SHT_PROGBITS.to_le_bytes());
            write(out, at + 24, &(last.offset + (found.address - last.address)).to_le_bytes());
        } else if !found.is_loaded() && found.offset >= tail {
            write(out, at + 24, &(found.offset + move_up).to_le_bytes());
        }
    }
    let old = table + plan.index as u64 * SECTION_HEADER;
    let first = plan.pieces.first().map_or(section.address, |piece| piece.address);
    let size = plan.end() - first;
    if keeps_header(plan, section) {
        write(out, old + 32, &size.to_le_bytes());
    } else {
        let count = u16::try_from(program.sections.all.len() + 1).ok().filter(|count| *count < 0xff00);
        let count = count.ok_or_else(|| no_place("the file has as many sections as fit"))?;
        let mut header = out[old as usize..(old + SECTION_HEADER) as usize].to_vec();
        for (field, value) in [(16, first), (24, offset_of(program, first)), (32, size)] {
            write(&mut header, field, &value.to_le_bytes());
        }
        out.extend_from_slice(&header);
        write(out, E_SHNUM, &count.to_le_bytes());
        // The old place: the same name without its dot.
        write(out, old, &(section.name + 1).to_le_bytes());
    }
    write(out, E_SHOFF, &table.to_le_bytes());
    Ok(())
}
