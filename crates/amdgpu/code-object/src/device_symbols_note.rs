//! The note with the table of device functions, in the section `.note.hotswap.devsyms` of a linked code object.
//!
//! As the certificate's ([`certificate_note`](crate::certificate_note)) it is not loaded. The section has a name of its
//! own, so the names of sections are appended once more with it, and the old ones stay where they are, unreferenced.
//!
//! Invariants: everything before the appended part is unchanged except for the three header fields that place the
//! section table and count its rows. Of the rows, only that of the section names and the note's own change. Replacing a
//! note gives the file that writing it first would have given.

use crate::elf::{file_header, read_segments};
use crate::own_note::{ROW, end_of_sections, note_content, place_table, push_note, section_rows};
use object::LittleEndian as LE;
use object::elf::{self, SectionHeader64};
use object::pod::bytes_of;
use object::{U32, U64};

/// Name of the section.
pub const DEVICE_SYMBOLS_SECTION: &str = ".note.hotswap.devsyms";
/// Type of the note. Numbers below 256 have other meanings in notes of some owners.
const DEVICE_SYMBOLS: u32 = 0x4853_0001;

type NoteHeader = SectionHeader64<LE>;

/// The content of the note, if the file has one; of several the last.
#[must_use]
pub fn device_symbols_note(data: &[u8]) -> Option<&[u8]> {
    section_rows(data)?.iter().rev().find_map(|row| note_content(data, row, DEVICE_SYMBOLS))
}

/// The file with that note, in place of an existing one; `None` without a section table with names, or for one with
/// more rows than the header counts.
#[must_use]
pub fn with_device_symbols(data: &[u8], content: &[u8]) -> Option<Vec<u8>> {
    let mut rows = section_rows(data)?.to_vec();
    let names_row = usize::from(file_header(data)?.e_shstrndx.get(LE));
    let NamesWith { names, at: name } =
        with_name(section_name_bytes(data, rows.get(names_row)?)?, DEVICE_SYMBOLS_SECTION);
    let own = rows.iter().position(|row| note_content(data, row, DEVICE_SYMBOLS).is_some());
    let loaded =
        read_segments(data, file_header(data)?).ok()?.iter().map(|segment| segment.range.end).max().unwrap_or(0);
    let mut out = data[..end_of_content(data, &rows, own, names_row).max(loaded)].to_vec();
    out.resize(out.len().next_multiple_of(4), 0);
    let note = push_note(&mut out, U32::new(LE, name), DEVICE_SYMBOLS, content)?;
    match own {
        Some(own) => rows[own] = note,
        None => rows.push(note),
    }
    rows[names_row].sh_offset = U64::new(LE, out.len() as u64);
    rows[names_row].sh_size = U64::new(LE, names.len() as u64);
    out.extend_from_slice(&names);
    out.resize(out.len().next_multiple_of(8), 0);
    let table = out.len() as u64;
    rows.iter().for_each(|row| out.extend_from_slice(bytes_of(row)));
    place_table(&mut out, table, rows.len())?;
    Some(out)
}

/// The file with one more section of text, which is not loaded; `None` where it has one of that name, or no section table with
/// names, or one with more rows than the header counts.
#[must_use]
pub fn with_text_section(data: &[u8], name: &str, content: &[u8]) -> Option<Vec<u8>> {
    let mut rows = section_rows(data)?.to_vec();
    let names_row = usize::from(file_header(data)?.e_shstrndx.get(LE));
    let old_names = section_name_bytes(data, rows.get(names_row)?)?;
    if rows.iter().any(|one| is_named_section(one, old_names, name)) {
        return None;
    }
    let NamesWith { names, at: sh_name } = with_name(old_names, name);
    let mut out = data.to_vec();
    rows.push(SectionHeader64 {
        sh_name: U32::new(LE, sh_name),
        sh_type: U32::new(LE, elf::SHT_PROGBITS),
        sh_flags: little_endian_u64(0),
        sh_addr: little_endian_u64(0),
        sh_offset: little_endian_u64(out.len()),
        sh_size: little_endian_u64(content.len()),
        sh_link: U32::new(LE, 0),
        sh_info: U32::new(LE, 0),
        sh_addralign: little_endian_u64(1),
        sh_entsize: little_endian_u64(0),
    });
    out.extend_from_slice(content);
    rows[names_row].sh_offset = little_endian_u64(out.len());
    rows[names_row].sh_size = little_endian_u64(names.len());
    out.extend_from_slice(&names);
    out.resize(out.len().next_multiple_of(8), 0);
    let table = out.len() as u64;
    rows.iter().for_each(|row| out.extend_from_slice(bytes_of(row)));
    place_table(&mut out, table, rows.len())?;
    Some(out)
}

fn is_named_section(row: &NoteHeader, old_names: &[u8], name: &str) -> bool {
    name_at(old_names, row.sh_name.get(LE)) == Some(name.as_bytes())
}

fn little_endian_u64(value: usize) -> object::U64Bytes<LE> {
    U64::new(LE, value as u64)
}

/// The name at an offset of the section names.
fn name_at(names: &[u8], at: u32) -> Option<&[u8]> {
    names.get(usize::try_from(at).ok()?..)?.split(|byte| *byte == 0).next()
}

/// The bytes of the section names; `None` for names that are loaded, which have to stay where they are.
fn section_name_bytes<'a>(data: &'a [u8], row: &NoteHeader) -> Option<&'a [u8]> {
    let is_loaded = row.sh_flags.get(LE) & u64::from(elf::SHF_ALLOC) != 0;
    if row.sh_type.get(LE) != elf::SHT_STRTAB || is_loaded {
        return None;
    }
    let start = usize::try_from(row.sh_offset.get(LE)).ok()?;
    data.get(start..start.checked_add(usize::try_from(row.sh_size.get(LE)).ok()?)?)
}

/// Section names that include a wanted one.
struct NamesWith {
    names: Vec<u8>,
    /// Offset of the wanted name.
    at: u32,
}

fn with_name(names: &[u8], name: &str) -> NamesWith {
    let wanted = [name.as_bytes(), b"\0"].concat();
    if let Some(at) = names.windows(wanted.len()).position(|window| window == wanted) {
        return NamesWith { names: names.to_vec(), at: at as u32 };
    }
    let mut all = names.to_vec();
    // An unfinished last name would continue in the new one.
    if all.last().is_some_and(|last| *last != 0) {
        all.push(0);
    }
    let at = all.len() as u32;
    all.extend_from_slice(&wanted);
    NamesWith { names: all, at }
}

/// The end of the part that stays: up to an earlier note, its names and table, if these are the last three parts; up to
/// the section table if that is the last part; otherwise all.
fn end_of_content(data: &[u8], rows: &[NoteHeader], own: Option<usize>, names: usize) -> usize {
    let table = file_header(data).map_or(0, |header| header.e_shoff.get(LE) as usize);
    if table.checked_add(rows.len() * ROW) != Some(data.len()) {
        return data.len();
    }
    if let Some(own) = own {
        let start = rows[own].sh_offset.get(LE) as usize;
        let others: Vec<NoteHeader> =
            rows.iter().enumerate().filter(|(at, _)| *at != own && *at != names).map(|(_, row)| *row).collect();
        let follows = rows[names].sh_offset.get(LE) == rows[own].sh_offset.get(LE) + rows[own].sh_size.get(LE);
        if follows && end_of_sections(&others, start).is_some() {
            return start;
        }
    }
    end_of_sections(rows, table).unwrap_or(data.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::elf::FileHeader64;
    use object::pod::from_bytes_mut;

    /// A row of a section that is not loaded.
    fn row(name: u32, start: u64, size: u64) -> NoteHeader {
        let bytes = [0; ROW];
        let mut row = *object::pod::from_bytes::<NoteHeader>(&bytes).unwrap().0;
        row.sh_name = U32::new(LE, name);
        row.sh_offset = U64::new(LE, start);
        row.sh_size = U64::new(LE, size);
        row
    }

    /// A header, code, section names, the section table, and what follows it.
    fn file(behind: &[u8]) -> Vec<u8> {
        let mut data = vec![0; 64];
        data[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        data.extend_from_slice(&[7; 16]);
        data.extend_from_slice(b"\0.text\0.shstrtab");
        data.resize(96, 0);
        let (header, _) = from_bytes_mut::<FileHeader64<LE>>(&mut data).unwrap();
        header.e_machine.set(LE, elf::EM_AMDGPU);
        header.e_shoff.set(LE, 96);
        header.e_shentsize.set(LE, ROW as u16);
        header.e_shnum.set(LE, 3);
        header.e_shstrndx.set(LE, 2);
        let mut code = row(1, 64, 16);
        code.sh_type = U32::new(LE, elf::SHT_PROGBITS);
        let mut names = row(7, 80, 16);
        names.sh_type = U32::new(LE, elf::SHT_STRTAB);
        let none = row(0, 0, 0);
        [none, code, names].iter().for_each(|row| data.extend_from_slice(bytes_of(row)));
        data.extend_from_slice(behind);
        data
    }

    #[test]
    fn the_note_is_found_again_and_replaced() {
        for behind in [&b""[..], b"something behind the table"] {
            let old = file(behind);
            assert_eq!(device_symbols_note(&old), None);
            let first = with_device_symbols(&old, b"first").unwrap();
            assert_eq!(device_symbols_note(&first), Some(&b"first"[..]));
            assert!(first[..40] == old[..40] && first[64..96] == old[64..96]);
            assert_eq!(first[96..].starts_with(&old[96..]), !behind.is_empty());
            let second = with_device_symbols(&first, b"another one").unwrap();
            assert_eq!(device_symbols_note(&second), Some(&b"another one"[..]));
            assert_eq!(second, with_device_symbols(&old, b"another one").unwrap());
            assert_eq!(crate::certificate_note(&second), None);
        }
    }

    #[test]
    fn a_certificate_beside_it_stays() {
        let both = crate::with_certificate(with_device_symbols(&file(b""), b"table").unwrap(), b"proof").unwrap();
        let again = with_device_symbols(&both, b"other").unwrap();
        let found = (device_symbols_note(&again), crate::certificate_note(&again));
        assert_eq!(found, (Some(&b"other"[..]), Some(&b"proof"[..])));
    }

    #[test]
    fn damaged_files_get_no_note() {
        let good = file(b"");
        for at in [40, 58, 60, 62] {
            let mut damaged = good.clone();
            damaged[at..at + 2].copy_from_slice(&[0xf0, 0xff]);
            assert_eq!(with_device_symbols(&damaged, b"table"), None, "{at}");
        }
        let with = with_device_symbols(&good, b"table").unwrap();
        for end in 0..with.len() {
            let _ = (device_symbols_note(&with[..end]), with_device_symbols(&with[..end], b"x"));
        }
    }
}
