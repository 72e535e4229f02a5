//! Starts of code, without the names: for passes over much code, which the names of all kernels would slow down.
//!
//! Invariants: offsets are those of the symbols of a [`CodeMap`] of the same file, with the same kernels.

use super::kernel::DescriptorContents;
use super::{CodeMap, SectionNames, SymbolKind, code_sections, table};
use crate::CodeObject;
use crate::elf::{Elf, ElfStrings, ObjectKind, string_at};
use hotswap_report::Diagnostic;
use object::LittleEndian as LE;
use std::ops::Range;

/// A section, or in files without sections a segment, that holds instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeStarts<'a> {
    /// Its number in the section table; `None` for a segment.
    pub number: Option<usize>,
    /// Its bytes in the file.
    pub range: Range<usize>,
    pub bytes: &'a [u8],
    /// The places of symbols; unordered, and with duplicates.
    pub starts: Vec<CodeStart>,
}

/// The place of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeStart {
    /// Its offset in the section.
    pub offset: usize,
    /// Whether a kernel begins there.
    pub is_kernel: bool,
}

impl<'a> CodeStarts<'a> {
    /// Reads the tables of a file, as [`CodeMap::read`].
    ///
    /// # Errors
    /// The same as those of [`CodeMap::read`].
    pub fn read(data: &'a [u8]) -> Result<Vec<Self>, Diagnostic> {
        let elf = Elf::parse_any(data)?;
        match elf.kind {
            ObjectKind::Linked => Ok(linked_starts(&elf)),
            // The name alone connects the descriptor to the code.
            ObjectKind::Relocatable => CodeMap::read(data).map(symbol_starts),
        }
    }

    /// The code of a code object that was already parsed.
    pub fn from_object(object: &CodeObject<'a>) -> Vec<Self> {
        match object.kind() {
            ObjectKind::Linked => linked_starts(object.elf()),
            ObjectKind::Relocatable => symbol_starts(CodeMap::names_of(object)),
        }
    }
}

fn symbol_starts(map: CodeMap<'_>) -> Vec<CodeStarts<'_>> {
    let code = map.sections.into_iter().map(|section| {
        let starts = section.symbols.iter().map(symbol_start_entry).collect();
        CodeStarts { number: section.number, range: section.range, bytes: section.bytes, starts }
    });
    code.collect()
}

fn symbol_start_entry(symbol: &super::CodeSymbol<'_>) -> CodeStart {
    CodeStart { offset: symbol.offset, is_kernel: matches!(symbol.kind, SymbolKind::Kernel(_)) }
}

fn linked_starts<'a>(elf: &Elf<'a>) -> Vec<CodeStarts<'a>> {
    let found = code_sections(elf);
    let mut starts: Vec<Vec<CodeStart>> = found.iter().map(|_| Vec::new()).collect();
    for (index, section) in table::symbol_tables(elf) {
        // Faults of a table are reported elsewhere.
        let Ok((symbols, strings)) = table::table_records(elf, section) else { continue };
        let names = ElfStrings::new(strings);
        for (_, symbol, of) in table::defined_symbols(elf, index, symbols) {
            let (value, name) = (symbol.st_value.get(LE), symbol.st_name.get(LE));
            let owner = found.iter().position(|found| found.section.number == of);
            let place = owner.and_then(|owner| Some((owner, linked_value_offset(&found[owner], value)?)));
            if let Some((owner, at)) = place.filter(|_| names.has_string(name)) {
                starts[owner].push(CodeStart { offset: at, is_kernel: false });
            }
            if symbol.st_size.get(LE) != DescriptorContents::SIZE {
                continue;
            }
            let is_descriptor = string_at(strings, name).is_some_and(|name| name.len() > 3 && name.ends_with(b".kd"));
            let entry = is_descriptor.then(|| DescriptorContents::read(elf, value, of)?.entry).flatten();
            let mut places = found.iter().enumerate();
            if let Some((owner, at)) =
                entry.and_then(|entry| places.find_map(|(n, found)| Some((n, linked_value_offset(found, entry)?))))
            {
                starts[owner].push(CodeStart { offset: at, is_kernel: true });
            }
        }
    }
    let code = found.into_iter().zip(starts).map(|(found, starts)| {
        let section = found.section;
        CodeStarts { number: section.number, range: section.range, bytes: section.bytes, starts }
    });
    code.collect()
}

fn linked_value_offset(found: &SectionNames<'_>, address: u64) -> Option<usize> {
    found.offset_of_value(ObjectKind::Linked, address)
}
