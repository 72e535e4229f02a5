//! The variables of a code object: its symbols of data that are not kernel descriptors.
//!
//! Invariants: those of the full symbol table, where the file has one, otherwise those that a loader sees; by address and name. A
//! damaged table does not have any.

use crate::call_error::c_string;
use object::read::elf::{ElfFile64, ElfSymbol64};
use object::{LittleEndian, Object, ObjectSymbol, elf};
use std::ffi::CString;

/// A variable in device memory, by the symbol table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DeviceVariable {
    pub(crate) name: CString,
    pub(crate) address: u64,
    pub(crate) size: u64,
    /// Whether a loader sees it.
    pub(crate) is_exported: bool,
    /// Whether it is in a section that is not written.
    pub(crate) is_constant: bool,
}

pub(crate) fn variables_of(bytes: &[u8]) -> Vec<DeviceVariable> {
    let Ok(file) = ElfFile64::<LittleEndian>::parse(bytes) else { return Vec::new() };
    let mut all: Vec<DeviceVariable> = match file.symbol_table() {
        Some(_) => file.symbols().filter_map(|symbol| variable_of_symbol(&file, &symbol)).collect(),
        None => file.dynamic_symbols().filter_map(|symbol| variable_of_symbol(&file, &symbol)).collect(),
    };
    all.sort_by(|one, other| (one.address, &one.name).cmp(&(other.address, &other.name)));
    all
}

fn variable_of_symbol(
    file: &ElfFile64<'_, LittleEndian>,
    symbol: &ElfSymbol64<'_, '_, LittleEndian>,
) -> Option<DeviceVariable> {
    /// Bytes of a kernel descriptor.
    const DESCRIPTOR: u64 = 64;
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let name = symbol.name().ok().filter(|name| !name.is_empty())?;
    let is_descriptor = name.ends_with(".kd") && symbol.size() == DESCRIPTOR;
    if symbol.elf_symbol().st_type() != elf::STT_OBJECT || is_descriptor {
        return None;
    }
    let flags = section.elf_section_header().sh_flags.get(LittleEndian);
    Some(DeviceVariable {
        name: c_string(name),
        address: symbol.address(),
        size: symbol.size(),
        is_exported: symbol.elf_symbol().st_bind() != elf::STB_LOCAL,
        is_constant: flags & u64::from(elf::SHF_WRITE) == 0,
    })
}
