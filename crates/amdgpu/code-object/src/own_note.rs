//! Notes of our own in code objects: what the certificate's and the table of device functions have in common.
//!
//! Each is a section that is not loaded, at the end of the file, followed by a new section table.
//!
//! Absent on purpose: which parts of the file stay, which differs between the two.

use crate::elf::file_header;
use object::elf::{self, SectionHeader64};
use object::pod::slice_from_bytes;
use object::{LittleEndian as LE, U32, U64};
use std::ops::Range;

/// Name of the note's owner.
pub(crate) const OWNER: &[u8; 8] = b"HotSwap\0";
/// Bytes of a note before its content.
pub(crate) const HEADER: usize = 12 + OWNER.len();
/// Bytes of a row of the section table.
pub(crate) const ROW: usize = size_of::<SectionHeader64<LE>>();
/// Header field for the offset of the section table.
const TABLE_AT: Range<usize> = 40..48;
/// Header field for the number of its rows.
const ROWS: Range<usize> = 60..62;

const _: () = assert!(HEADER == 20, "the content of a note begins after three words and the owner");

/// Appends a note, and returns the row of its section; `None` if the content is larger than a note can be.
pub(crate) fn push_note(out: &mut Vec<u8>, name: U32<LE>, kind: u32, content: &[u8]) -> Option<SectionHeader64<LE>> {
    let start = out.len();
    for word in [OWNER.len() as u32, u32::try_from(content.len()).ok()?, kind] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(OWNER);
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(4), 0);
    Some(SectionHeader64 {
        sh_name: name,
        sh_type: U32::new(LE, elf::SHT_NOTE),
        sh_flags: little_endian_u64(0),
        sh_addr: little_endian_u64(0),
        sh_offset: little_endian_u64(start),
        sh_size: little_endian_u64(out.len() - start),
        sh_link: U32::new(LE, 0),
        sh_info: U32::new(LE, 0),
        sh_addralign: little_endian_u64(4),
        sh_entsize: little_endian_u64(0),
    })
}

fn little_endian_u64(value: usize) -> object::U64Bytes<LE> {
    U64::new(LE, value as u64)
}

/// Sets the header fields for the section table; `None` if it has more rows than the header counts.
pub(crate) fn place_table(out: &mut [u8], at: u64, rows: usize) -> Option<()> {
    let rows = u16::try_from(rows).ok().filter(|rows| *rows < elf::SHN_LORESERVE)?;
    out[TABLE_AT].copy_from_slice(&at.to_le_bytes());
    out[ROWS].copy_from_slice(&rows.to_le_bytes());
    Some(())
}

pub(crate) fn section_rows(data: &[u8]) -> Option<&[SectionHeader64<LE>]> {
    let header = file_header(data)?;
    let (at, count) = (usize::try_from(header.e_shoff.get(LE)).ok()?, usize::from(header.e_shnum.get(LE)));
    // A table with rows of another size cannot be read, or made longer.
    let table = data.get(at..).filter(|_| at > 0 && usize::from(header.e_shentsize.get(LE)) == ROW)?;
    slice_from_bytes::<SectionHeader64<LE>>(table, count).ok().map(|(rows, _)| rows)
}

/// The content of the note in a section, if it is one of ours with that type.
pub(crate) fn note_content<'a>(data: &'a [u8], row: &SectionHeader64<LE>, kind: u32) -> Option<&'a [u8]> {
    if row.sh_type.get(LE) != elf::SHT_NOTE || row.sh_flags.get(LE) != 0 {
        return None;
    }
    let (start, size) = (usize::try_from(row.sh_offset.get(LE)).ok()?, usize::try_from(row.sh_size.get(LE)).ok()?);
    let bytes = data.get(start..start.checked_add(size)?)?;
    let is_ours = note_word_at(0, bytes)? == OWNER.len() as u32
        && note_word_at(8, bytes)? == kind
        && bytes.get(12..HEADER)? == OWNER;
    bytes.get(HEADER..HEADER.checked_add(note_word_at(4, bytes)? as usize)?).filter(|_| is_ours)
}

fn note_word_at(at: usize, bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The end of the last section, if all of them precede the table.
pub(crate) fn end_of_sections(rows: &[SectionHeader64<LE>], table: usize) -> Option<usize> {
    let in_file = rows.iter().filter(|row| !matches!(row.sh_type.get(LE), elf::SHT_NULL | elf::SHT_NOBITS));
    let end = in_file.filter_map(|row| row.sh_offset.get(LE).checked_add(row.sh_size.get(LE))).max()?;
    usize::try_from(end).ok().filter(|end| *end <= table)
}
