//! The output of a device link that had no input: an ELF file for AMDGPU without a processor, code, data or metadata.
//!
//! Clang runs a device link for each requested GPU wherever `-fgpu-rdc` and `--hip-link` are given, also where no object
//! has relocatable device code. lld then leaves flags and ABI version at zero, so the file looks like one of code object V2.

use crate::elf::{self, Elf, ObjectKind};
use object::LittleEndian as LE;
use object::elf::{SHF_ALLOC, SHT_NOTE, SHT_PROGBITS};

/// Whether the file is the output of a device link without inputs. Nothing can be loaded from it.
pub fn is_empty_link(data: &[u8]) -> bool {
    let Some(header) = elf::file_header(data) else { return false };
    if header.e_flags.get(LE) != 0 || header.e_ident.abi_version != 0 {
        return false;
    }
    let Ok(file) = Elf::parse_tables(data) else { return false };
    let has_content = file.sections.iter().any(|section| {
        // lld pads the end of its read-only segment by a section without content.
        let is_content = matches!(section.kind, SHT_PROGBITS | SHT_NOTE) && !section.range.is_empty();
        is_content && section.flags & u64::from(SHF_ALLOC) != 0
    });
    file.kind == ObjectKind::Linked && !has_content
}
