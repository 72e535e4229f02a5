//! The number of kernels of a code object, read from as few pages as possible.
//!
//! A listing of a library with thousands of code objects needs one number of each. The note has the number of kernels
//! in front of the first of them, so that one page of the file is touched where [`crate::CodeObject::parse`] reads all
//! of the note and the symbols.
//!
//! Absent on purpose: any check. Damaged files do not get a number.

use crate::elf::{self, Elf, ObjectKind};
use crate::msgpack::{NoteFault, ValueReader};
use crate::note;
use object::LittleEndian as LE;
use std::ops::Range;

/// The number of kernels in the metadata of an AMDGPU ELF file; `None` where none can be read.
pub fn kernel_count(file: &[u8]) -> Option<usize> {
    let in_segments = note::metadata_contents(&parse_segments(file)?).ok()?;
    let contents =
        if in_segments.is_empty() { note::metadata_contents(&Elf::parse_any(file).ok()?).ok()? } else { in_segments };
    if contents.is_empty() {
        return None;
    }
    contents.into_iter().map(|range| count_kernels(file, range).ok()).sum()
}

/// The file without its section headers, which are at its end, on pages of their own.
fn parse_segments(file: &[u8]) -> Option<Elf<'_>> {
    let header = elf::file_header(file)?;
    let segments = elf::read_segments(file, header).ok()?;
    let (abi_version, flags) = (header.e_ident.abi_version, header.e_flags.get(LE));
    Some(Elf { data: file, kind: ObjectKind::Linked, abi_version, flags, sections: Vec::new(), segments })
}

fn count_kernels(file: &[u8], range: Range<usize>) -> Result<usize, NoteFault> {
    let (size, end) = (range.len(), range.end);
    let mut reader = ValueReader::new(file, range);
    for _ in 0..reader.read_map("the metadata is no map")? {
        // LLVM sorts the keys, and this one is the first.
        if reader.read_text()? == Some(b"amdhsa.kernels") {
            let count = reader.read_array("`amdhsa.kernels` is no list")?;
            // Each of them is a map of some bytes: there cannot be more than one for each byte of the note.
            return if count <= size { Ok(count) } else { Err((end, "`amdhsa.kernels` names more than there are")) };
        }
        reader.skip_value()?;
    }
    Ok(0)
}
