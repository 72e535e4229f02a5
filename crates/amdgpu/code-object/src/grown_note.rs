//! Numbers of kernels in the metadata note of a linked file, where the new numbers may need more bytes than the old ones.
//!
//! The note is loaded, at the front of the file, so it cannot grow in place without moving all code. A note that grows is
//! therefore written once more at the end, and the row of its section and its segment refer to that: readers of metadata
//! find it through these alone, by offsets in the file. The old bytes stay where they are, unreferenced and still loaded.
//!
//! Invariants: everything before the appended part is unchanged except for these two rows, and the header's field for the
//! section table. A note whose numbers keep their size changes in place.

use crate::elf::file_header;
use crate::note_edit::{KernelNumber, with_numbers};
use crate::own_note::{end_of_sections, place_table, section_rows};
use hotswap_report::{Diagnostic, codes};
use object::LittleEndian as LE;
use object::elf::{self, ProgramHeader64, SectionHeader64};
use object::pod::{bytes_of, from_bytes_mut};
use object::{U32, U64};

type SectionHeaderLe = SectionHeader64<LE>;

fn no_place(what: &str) -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, what).advise("link the code object again with its section table")
}

/// The file with those numbers in its metadata note.
///
/// # Errors
/// `NO_PLACE` where no section is the note; as [`with_numbers`].
pub fn with_kernel_numbers(data: &[u8], numbers: &[KernelNumber<'_>]) -> Result<Vec<u8>, Diagnostic> {
    let mut table =
        section_rows(data).ok_or_else(|| no_place("the file has no section table that can be read"))?.to_vec();
    let number = table.iter().position(|row| is_amdgpu_note(&row, data));
    let number = number.ok_or_else(|| no_place("the metadata note is in no section"))?;
    let old = section_bytes(data, &table[number]).unwrap_or_default();
    let start = table[number].sh_offset.get(LE) as usize;
    let new = with_numbers(old, start, numbers)?;
    if new.len() == old.len() {
        let mut out = data.to_vec();
        out[start..start + new.len()].copy_from_slice(&new);
        return Ok(out);
    }
    let table_at = file_header(data).map_or(0, |header| header.e_shoff.get(LE)) as usize;
    let is_last = table_at + table.len() * size_of::<SectionHeaderLe>() == data.len()
        && end_of_sections(&table, table_at).is_some();
    let mut out = if is_last { data[..table_at].to_vec() } else { data.to_vec() };
    out.resize(out.len().next_multiple_of(8), 0);
    let place = out.len();
    out.extend_from_slice(&new);
    out.resize(out.len().next_multiple_of(8), 0);
    move_row(&mut table[number], place, new.len());
    let table_at = out.len() as u64;
    table.iter().for_each(|row| out.extend_from_slice(bytes_of(row)));
    place_table(&mut out, table_at, table.len()).ok_or_else(|| no_place("the section table has too many rows"))?;
    move_segment(&mut out, start, place, new.len())?;
    Ok(out)
}

fn is_amdgpu_note(row: &&SectionHeaderLe, data: &[u8]) -> bool {
    row.sh_type.get(LE) == elf::SHT_NOTE
        && section_bytes(data, row).is_some_and(|bytes| bytes.get(12..19) == Some(b"AMDGPU\0"))
}

fn section_bytes<'a>(data: &'a [u8], row: &SectionHeaderLe) -> Option<&'a [u8]> {
    let start = usize::try_from(row.sh_offset.get(LE)).ok()?;
    data.get(start..start.checked_add(usize::try_from(row.sh_size.get(LE)).ok()?)?)
}

/// The section is not loaded any more.
fn move_row(row: &mut SectionHeaderLe, place: usize, size: usize) {
    row.sh_flags = U64::new(LE, 0);
    row.sh_addr = U64::new(LE, 0);
    row.sh_offset = U64::new(LE, place as u64);
    row.sh_size = U64::new(LE, size as u64);
}

fn move_segment(out: &mut [u8], start: usize, place: usize, size: usize) -> Result<(), Diagnostic> {
    let Some(header) = file_header(out) else { return Ok(()) };
    let (at, count) = (header.e_phoff.get(LE) as usize, usize::from(header.e_phnum.get(LE)));
    const ROW: usize = size_of::<ProgramHeader64<LE>>();
    for number in 0..count {
        let row = out.get_mut(at + number * ROW..at + (number + 1) * ROW);
        let row = row.ok_or_else(|| no_place("the program header table leaves the file"))?;
        let (row, _) = from_bytes_mut::<ProgramHeader64<LE>>(row).map_err(|()| no_place("a program header"))?;
        if row.p_type.get(LE) != elf::PT_NOTE || row.p_offset.get(LE) != start as u64 {
            continue;
        }
        for field in [&mut row.p_vaddr, &mut row.p_paddr] {
            field.set(LE, 0);
        }
        row.p_offset.set(LE, place as u64);
        row.p_filesz.set(LE, size as u64);
        row.p_memsz.set(LE, size as u64);
        row.p_flags = U32::new(LE, elf::PF_R);
    }
    Ok(())
}
