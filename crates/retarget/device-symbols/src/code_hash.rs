//! The hash of everything that a table depends on.
//!
//! Invariant: whatever changes the code, its addresses or the target changes the hash; the note with the table does not.
//!
//! Absent on purpose: hashes of single functions.

use hotswap_code_object::DEVICE_SYMBOLS_SECTION;
use hotswap_report::{Diagnostic, codes};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, elf};
use sha2::{Digest, Sha256};

/// Sections of a relocatable file that do not count: names of sections.
pub(crate) const NAMES: &str = ".shstrtab";

/// The hash of all that a table depends on: flags, and the sections that are loaded, with their addresses. In a
/// relocatable file all sections count, since symbols and relocations are in sections that are not loaded.
///
/// # Errors
/// `MALFORMED` for a file whose sections cannot be read.
pub fn code_hash(data: &[u8]) -> Result<String, Diagnostic> {
    let file = ElfFile64::<LittleEndian>::parse(data).map_err(code_hash_error)?;
    let header = file.elf_header();
    let is_relocatable = header.e_type.get(LittleEndian) == elf::ET_REL;
    let mut hash = Sha256::new();
    hash.update(header.e_flags.get(LittleEndian).to_le_bytes());
    for section in file.sections() {
        let row = section.elf_section_header();
        let is_loaded = row.sh_flags.get(LittleEndian) & u64::from(elf::SHF_ALLOC) != 0;
        let name = section.name().unwrap_or_default();
        if !is_loaded && (!is_relocatable || [NAMES, DEVICE_SYMBOLS_SECTION].contains(&name)) {
            continue;
        }
        let bytes = section.data().map_err(code_hash_error)?;
        for number in [section.address(), section.size(), bytes.len() as u64] {
            hash.update(number.to_le_bytes());
        }
        hash.update(bytes);
    }
    // Files without sections are loaded by their segments.
    if file.sections().next().is_none() {
        hash.update(data);
    }
    Ok(hotswap_report::hex_digits(&hash.finalize()))
}

fn code_hash_error(error: object::Error) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, error.to_string())
}
