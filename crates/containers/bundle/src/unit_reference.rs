//! A reference to an undefined symbol in a relocatable host object, with a section that explains it.
//!
//! The object is extended at its end: copies of the symbol table and of the tables of names with one more entry each,
//! two sections, the relocation, and the section headers. All other bytes stay where they are, so indices of symbols
//! and sections in the rest of the file (groups, address tables) stay right. The section with the reference has
//! `SHF_GNU_RETAIN`, which bfd and gold respect in files of `ELFOSABI_GNU`.
//!
//! Invariant: the result is read again by a second reader (`object`) before it is returned.
//!
//! Objects for Windows ([`coff`]) and host code in bitcode ([`bitcode`]) get the same in their own forms.

mod bitcode;
mod coff;

use crate::bytes::{malformed_at, u16_at};
use crate::elf::{SECTION_HEADER, SHT_PROGBITS, SHT_SYMTAB, SectionHeader, SectionTable};
use crate::host_object::is_host_object;
use hotswap_code_object::bitcode::is_bitcode;
use hotswap_report::{Diagnostic, codes};
use object::elf::{EM_AARCH64, SHT_RELA, SHT_SYMTAB_SHNDX, STV_HIDDEN};
use object::{Object, ObjectSection, ObjectSymbol};

pub use bitcode::{BitcodeUnit, read_bitcode_unit};
const SHF_WRITE: u64 = object::elf::SHF_WRITE as u64;
const SHF_ALLOC: u64 = object::elf::SHF_ALLOC as u64;
const SHF_INFO_LINK: u64 = object::elf::SHF_INFO_LINK as u64;
const SHF_GNU_RETAIN: u64 = object::elf::SHF_GNU_RETAIN as u64;
const SHF_EXCLUDE: u64 = object::elf::SHF_EXCLUDE as u64;
/// The `st_info` of `STB_GLOBAL` and `STT_NOTYPE`.
const GLOBAL: u8 = 1 << 4;
const EI_OSABI: usize = 7;
const ELFOSABI_GNU: u8 = 3;
const R_X86_64_64: u64 = object::elf::R_X86_64_64 as u64;
const R_AARCH64_ABS64: u64 = 257;
const RELOCATION: u64 = 24;
const POINTER: u64 = 8;
const ALIGNMENT: usize = 8;
/// Offsets of fields in the file's header.
const E_SHOFF: usize = 40;
const E_SHNUM: usize = 60;
/// Offsets of fields in a section header.
const SH_OFFSET: usize = 24;

/// The reference to add.
#[derive(Debug, Clone, Copy)]
pub struct UnitReference<'a> {
    /// Name of the section with the explanation, which linkers leave out of programs.
    pub note_section: &'a str,
    pub note: &'a [u8],
    /// Name of the section with the reference.
    pub section: &'a str,
    /// Name of the undefined symbol.
    pub symbol: &'a str,
}

/// The object with the reference; `None` for files of another kind.
///
/// # Errors
/// [`codes::MALFORMED`] for a damaged object, [`codes::VERIFY_FAILED`] where the result differs elsewhere.
pub fn add_unit_reference(object: &[u8], reference: &UnitReference<'_>) -> Result<Option<Vec<u8>>, Diagnostic> {
    if is_bitcode(object) {
        return Ok(bitcode::add(object, reference));
    }
    if coff::is_coff(object) {
        return coff::add(object, reference).map(Some);
    }
    if !is_host_object(object) {
        return Ok(None);
    }
    let sections = SectionTable::read(object)?;
    let Some(made) =
        ExtendedObject::new(object, &sections)?.map(|extension| extension.finish_object(reference)).transpose()?
    else {
        return Ok(None);
    };
    verify_extension(object, &made, reference)?;
    Ok(Some(made))
}

/// An object that grows at its end.
struct ExtendedObject<'a> {
    bytes: Vec<u8>,
    /// The section headers, which are written last.
    headers: Vec<u8>,
    sections: &'a SectionTable,
    symbols: usize,
    names_of_symbols: usize,
    machine: u16,
}

impl<'a> ExtendedObject<'a> {
    /// `None` for an object without symbols, or with so many sections that their number is in another place.
    fn new(object: &[u8], sections: &'a SectionTable) -> Result<Option<Self>, Diagnostic> {
        let Some(symbols) = sections.all.iter().position(|section| section.kind == SHT_SYMTAB) else { return Ok(None) };
        let names_of_symbols = sections.all[symbols].link as usize;
        let headers = crate::bytes::slice(object, sections.table, sections.all.len() as u64 * SECTION_HEADER);
        let (Some(headers), Some(machine)) = (headers, u16_at(object, 18)) else { return Ok(None) };
        if names_of_symbols >= sections.all.len() || sections.names >= sections.all.len() {
            return Err(malformed_at("a table of names is absent", sections.table));
        }
        let (bytes, headers) = (object.to_vec(), headers.to_vec());
        Ok(Some(Self { bytes, headers, sections, symbols, names_of_symbols, machine }))
    }

    fn finish_object(mut self, reference: &UnitReference<'_>) -> Result<Vec<u8>, Diagnostic> {
        let symbol = self.sections.all[self.symbols].size / crate::elf::SYMBOL;
        let name = self.extend_names(self.names_of_symbols, reference.symbol)?;
        self.extend(self.symbols, &undefined_symbol(name))?;
        if let Some(indices) = self.sections.all.iter().position(|section| section.kind == SHT_SYMTAB_SHNDX) {
            self.extend(indices, &[0; 4])?;
        }
        let relocations = format!(".rela{}", reference.section);
        let [note, section, relocations] = [reference.note_section, reference.section, &relocations]
            .map(|name| self.extend_names(self.sections.names, name));
        let index = self.headers.len() as u64 / SECTION_HEADER + 1;
        self.add_section(
            NewSection { name: note?, kind: SHT_PROGBITS, flags: SHF_EXCLUDE, ..NewSection::default() },
            reference.note,
        );
        let flags = SHF_WRITE | SHF_ALLOC | SHF_GNU_RETAIN;
        let alignment = POINTER;
        self.add_section(
            NewSection { name: section?, kind: SHT_PROGBITS, flags, alignment, ..NewSection::default() },
            &[0; POINTER as usize],
        );
        let relocation = if self.machine == EM_AARCH64 { R_AARCH64_ABS64 } else { R_X86_64_64 };
        let (link, info) = (self.symbols as u32, index as u32);
        self.add_section(
            NewSection {
                name: relocations?,
                kind: SHT_RELA,
                flags: SHF_INFO_LINK,
                alignment,
                link,
                info,
                entry_size: RELOCATION,
            },
            &[0, symbol << 32 | relocation, 0].map(u64::to_le_bytes).concat(),
        );
        self.write_headers()
    }

    /// Appends a name to a copy of a table of names; returns its offset in the table.
    fn extend_names(&mut self, table: usize, name: &str) -> Result<u32, Diagnostic> {
        let size = self.current_header(table)?.size;
        self.extend(table, &[name.as_bytes(), b"\0"].concat())?;
        u32::try_from(size).map_err(|_| malformed_at("a table of names is too large", self.sections.table))
    }

    /// The header as it is now.
    fn current_header(&self, section: usize) -> Result<SectionHeader, Diagnostic> {
        SectionHeader::read(&self.headers, section as u64 * SECTION_HEADER)
            .ok_or_else(|| malformed_at("a section header is absent", self.sections.table))
    }

    /// Moves a section's content to the end of the file, and appends to it.
    fn extend(&mut self, section: usize, more: &[u8]) -> Result<(), Diagnostic> {
        let header = self.current_header(section)?;
        let content =
            header.content(&self.bytes).ok_or_else(|| malformed_at("a section leaves the file", header.offset))?;
        let content = [content, more].concat();
        let place = self.append_content(&content);
        let at = section * SECTION_HEADER as usize + SH_OFFSET;
        self.headers[at..at + place.len()].copy_from_slice(&place);
        Ok(())
    }

    /// Appends content to the file; returns its offset and size as in a section header.
    fn append_content(&mut self, content: &[u8]) -> [u8; 16] {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        let mut place = [0; 16];
        place[..8].copy_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        place[8..].copy_from_slice(&(content.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(content);
        place
    }

    fn add_section(&mut self, section: NewSection, content: &[u8]) {
        let place = self.append_content(content);
        for word in [section.name, section.kind] {
            self.headers.extend_from_slice(&word.to_le_bytes());
        }
        for word in [section.flags, 0] {
            self.headers.extend_from_slice(&word.to_le_bytes());
        }
        self.headers.extend_from_slice(&place);
        for word in [section.link, section.info] {
            self.headers.extend_from_slice(&word.to_le_bytes());
        }
        for word in [section.alignment.max(1), section.entry_size] {
            self.headers.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn write_headers(mut self) -> Result<Vec<u8>, Diagnostic> {
        let headers = std::mem::take(&mut self.headers);
        let count = headers.len() / SECTION_HEADER as usize;
        // Larger numbers are in the first header.
        let count = u16::try_from(count).ok().filter(|count| *count < 0xff00);
        let count =
            count.ok_or_else(|| Diagnostic::error(codes::UNKNOWN_FORMAT, "the object has too many sections"))?;
        let place = self.append_content(&headers);
        self.bytes[E_SHOFF..E_SHOFF + 8].copy_from_slice(&place[..8]);
        self.bytes[E_SHNUM..E_SHNUM + 2].copy_from_slice(&count.to_le_bytes());
        self.bytes[EI_OSABI] = ELFOSABI_GNU;
        Ok(self.bytes)
    }
}

/// The fields of a new section header.
#[derive(Default)]
struct NewSection {
    name: u32,
    kind: u32,
    flags: u64,
    alignment: u64,
    link: u32,
    info: u32,
    entry_size: u64,
}

fn undefined_symbol(name: u32) -> Vec<u8> {
    let mut symbol = name.to_le_bytes().to_vec();
    symbol.extend_from_slice(&[GLOBAL, STV_HIDDEN]);
    symbol.resize(crate::elf::SYMBOL as usize, 0);
    symbol
}

/// The old bytes are there but for the header, and another reader finds symbol and sections.
fn verify_extension(old: &[u8], new: &[u8], reference: &UnitReference<'_>) -> Result<(), Diagnostic> {
    if new.get(64..old.len()) != old.get(64..) {
        return Err(extension_verify_failure("its old content has changed"));
    }
    let (before, after) = (object::File::parse(old), object::File::parse(new));
    let (Ok(before), Ok(after)) = (before, after) else { return Err(extension_verify_failure("it cannot be read")) };
    let note = after.section_by_name(reference.note_section).and_then(|section| section.data().ok());
    let target = after.section_by_name(reference.section).and_then(|section| section.relocations().next());
    let symbol = target.and_then(|(_, relocation)| match relocation.target() {
        object::RelocationTarget::Symbol(index) => after.symbol_by_index(index).ok(),
        _ => None,
    });
    let is_named = symbol.is_some_and(|symbol| symbol.is_undefined() && symbol.name() == Ok(reference.symbol));
    if note != Some(reference.note) || !is_named {
        return Err(extension_verify_failure("the reference is not in it"));
    }
    let names =
        |file: &object::File<'_>| file.symbols().map(|symbol| symbol.name().map(str::to_owned)).collect::<Vec<_>>();
    let (before, after) = (names(&before), names(&after));
    if after[..after.len() - 1] == before[..] {
        Ok(())
    } else {
        Err(extension_verify_failure("its symbols have changed"))
    }
}

fn extension_verify_failure(what: &str) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, format!("an object with a plan: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write;
    use object::{Architecture, BinaryFormat, Endianness, SectionKind};

    const REFERENCE: UnitReference<'_> =
        UnitReference { note_section: ".note.plan", note: b"a plan", section: "unit_reference", symbol: "__needed" };

    fn sample(format: BinaryFormat, architecture: Architecture) -> Vec<u8> {
        let mut object = write::Object::new(format, architecture, Endianness::Little);
        let section = object.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
        object.append_section_data(section, &[0x90; 13], 1);
        object.add_symbol(write::Symbol {
            name: b"function".to_vec(),
            value: 0,
            size: 13,
            kind: object::SymbolKind::Text,
            scope: object::SymbolScope::Linkage,
            weak: false,
            section: write::SymbolSection::Section(section),
            flags: object::SymbolFlags::None,
        });
        object.write().unwrap()
    }

    #[test]
    fn elf_objects_get_the_reference_and_others_stay() {
        for architecture in [Architecture::X86_64, Architecture::Aarch64] {
            let object = sample(BinaryFormat::Elf, architecture);
            let made = add_unit_reference(&object, &REFERENCE).unwrap().unwrap();
            let again = add_unit_reference(&object, &REFERENCE).unwrap().unwrap();
            assert_eq!(made, again);
            assert_eq!(made[EI_OSABI], ELFOSABI_GNU);
        }
        for other in [b"BC\xc0\xde".to_vec(), Vec::new()] {
            assert_eq!(add_unit_reference(&other, &REFERENCE).unwrap(), None);
        }
    }

    #[test]
    fn coff_objects_get_the_reference() {
        for architecture in [Architecture::X86_64, Architecture::Aarch64] {
            let object = sample(BinaryFormat::Coff, architecture);
            let made = add_unit_reference(&object, &REFERENCE).unwrap().unwrap();
            let file = object::File::parse(&made[..]).unwrap();
            let undefined = file.symbols().filter(|symbol| symbol.is_undefined()).map(|symbol| symbol.name().unwrap());
            assert_eq!(undefined.collect::<Vec<_>>(), ["__needed"]);
            assert_eq!(file.section_by_name(".note.plan").unwrap().data().unwrap(), b"a plan");
            assert_eq!(made, add_unit_reference(&object, &REFERENCE).unwrap().unwrap());
        }
    }

    #[test]
    fn a_wrong_coff_object_is_noticed() {
        // The reference in the note's section, and one whose bytes moved.
        let object = sample(BinaryFormat::Coff, Architecture::X86_64);
        let made = add_unit_reference(&object, &REFERENCE).unwrap().unwrap();
        let kept = |made: &[u8]| super::coff::is_right(&object, made, &REFERENCE);
        assert!(kept(&made));
        let mut moved = made.clone();
        moved[40] ^= 1;
        assert!(!kept(&moved));
        assert!(!kept(&object));
    }

    #[test]
    fn damage_is_refused() {
        for format in [BinaryFormat::Elf, BinaryFormat::Coff] {
            let object = sample(format, Architecture::X86_64);
            for at in 0..object.len() {
                let mut damaged = object.clone();
                damaged[at] ^= 0xff;
                let _ = add_unit_reference(&damaged, &REFERENCE);
                let _ = add_unit_reference(&object[..at], &REFERENCE);
            }
        }
    }
}
