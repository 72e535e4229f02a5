//! The note with the certificate of a rewrite, in a section of its own at the end of a code object.
//!
//! Why a note in the file and not bytes after it or a field of the record of a bundle: a note stays with the code
//! object through `hotswap extract`, archives and bundles, LLVM's tools list it, and no loader loads it (the section
//! lacks `SHF_ALLOC` and a segment). The section has the name `.note` like the metadata, so that the string table
//! of section names is unchanged.
//!
//! Invariants: only the section, its row and the two header fields for the position and size of the section table
//! change. Where the section table is not the last part of the file, the note and a new table are appended, and the old
//! table stays as unreferenced bytes: the parts after it keep their positions.

use crate::elf::file_header;
use crate::own_note::{HEADER, ROW, end_of_sections, note_content, place_table, push_note, section_rows};
use object::elf::{self, SectionHeader64};
use object::pod::bytes_of;
use object::{LittleEndian as LE, U32};

/// Type of the note: a certificate.
const CERTIFICATE: u32 = 1;

/// The content of the certificate's note, if the code object has one.
#[must_use]
pub fn certificate_note(data: &[u8]) -> Option<&[u8]> {
    section_rows(data)?.iter().rev().find_map(|row| certificate_content(data, row))
}

/// The file with that certificate as its last section, replacing an existing one; `None` without a section
/// table, or one with more rows than the header counts.
#[must_use]
pub fn with_certificate(data: Vec<u8>, certificate: &[u8]) -> Option<Vec<u8>> {
    let rows = section_rows(&data)?.to_vec();
    let had = certificate_content(&data, rows.last()?).is_some();
    let keep = if had { rows.len() - 1 } else { rows.len() };
    let end = end_of_content(&data, &rows, had);
    let name = rows[..keep].iter().find(|row| row.sh_type.get(LE) == elf::SHT_NOTE);
    // Without another note, the empty name at the start of every string table.
    let name = name.map_or(U32::new(LE, 0), |row| row.sh_name);
    // In place: the file may be large.
    let mut out = data;
    out.truncate(end);
    out.reserve_exact(certificate.len() + HEADER + 16 + (keep + 1) * ROW);
    out.resize(end.next_multiple_of(4), 0);
    let note = push_note(&mut out, name, CERTIFICATE, certificate)?;
    out.resize(out.len().next_multiple_of(8), 0);
    let table = out.len() as u64;
    rows[..keep].iter().for_each(|row| out.extend_from_slice(bytes_of(row)));
    out.extend_from_slice(bytes_of(&note));
    place_table(&mut out, table, keep + 1)?;
    Some(out)
}

/// The end of the unchanged part of the file: up to its note, if it `had` one, or to its section table, if that is the
/// last part; otherwise all of it.
fn end_of_content(data: &[u8], rows: &[SectionHeader64<LE>], had: bool) -> usize {
    let table = data.len() - rows.len() * ROW;
    let is_last = file_header(data).is_some_and(|header| header.e_shoff.get(LE) == table as u64);
    let own = rows.last().filter(|_| had).map(|row| row.sh_offset.get(LE) as usize);
    match own {
        _ if !is_last => data.len(),
        // Something else may have been appended after the note.
        Some(own) if end_of_sections(&rows[..rows.len() - 1], own).is_some() => own,
        _ => end_of_sections(rows, table).unwrap_or(data.len()),
    }
}

fn certificate_content<'a>(data: &'a [u8], row: &SectionHeader64<LE>) -> Option<&'a [u8]> {
    note_content(data, row, CERTIFICATE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::elf::FileHeader64;
    use object::pod::from_bytes_mut;

    /// A header, sixteen bytes in a section, the section table, and what follows it.
    fn file(behind: &[u8]) -> Vec<u8> {
        let mut data = vec![0; 64];
        data[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        data.extend_from_slice(&[7; 16]);
        let (header, _) = from_bytes_mut::<FileHeader64<LE>>(&mut data).unwrap();
        header.e_machine.set(LE, elf::EM_AMDGPU);
        header.e_shoff.set(LE, 80);
        header.e_shentsize.set(LE, ROW as u16);
        header.e_shnum.set(LE, 2);
        data.extend_from_slice(&[0; ROW]);
        let mut row = [0; ROW];
        row[4] = 1; // SHT_PROGBITS
        row[24] = 64;
        row[32] = 16;
        data.extend_from_slice(&row);
        data.extend_from_slice(behind);
        data
    }

    #[test]
    fn the_note_is_found_again_and_replaced() {
        for behind in [&b""[..], b"something behind the table"] {
            let old = file(behind);
            let first = with_certificate(old.clone(), b"first").unwrap();
            assert_eq!(certificate_note(&first), Some(&b"first"[..]));
            assert!(first[..40] == old[..40] && first[64..80] == old[64..80]);
            let is_kept = !behind.is_empty();
            assert_eq!(first[80..].starts_with(&old[80..]), is_kept, "what follows the table keeps its place");
            let second = with_certificate(first.clone(), b"another one").unwrap();
            assert_eq!(certificate_note(&second), Some(&b"another one"[..]));
            assert_eq!(second, with_certificate(old, b"another one").unwrap());
        }
        assert_eq!(with_certificate(file(b"")[..64].to_vec(), b"no section table"), None);
    }
}
