//! A linked host program as the dynamic loader maps it: segments, and pointers after relocation.
//!
//! The loader reads segments and the dynamic table alone, so that is read here; sections serve only to find the wrappers.

use hotswap_report::{Diagnostic, codes};
use object::elf::{self, FileHeader64, Rela64, Sym64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian as LE, Object, ObjectSymbol};
use std::collections::BTreeMap;
use std::ops::Range;

const DT_RELR: i64 = 36;
const DT_RELRSZ: i64 = 35;

#[derive(Debug, Clone, Copy)]
struct MappedSegment {
    address: u64,
    offset: u64,
    file_size: u64,
    memory_size: u64,
    flags: u32,
}

impl MappedSegment {
    /// Whether the byte at an address comes from the file.
    fn holds_file_content(&self, address: u64) -> bool {
        (self.address..self.address.saturating_add(self.file_size)).contains(&address)
    }

    /// Offset in the file of the byte at an address in the segment.
    fn offset_of(&self, address: u64) -> u64 {
        self.offset.saturating_add(address - self.address)
    }
}

/// A relocation with an effect on one pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PointerRelocation {
    /// The pointer becomes this address of the same file.
    Address(u64),
    /// The pointer becomes the address of a symbol that another file defines.
    Import(String),
    /// A relocation of another type.
    Other(u32),
}

/// The value of a pointer in the running program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PointerValue {
    /// An address of this file.
    Address(u64),
    /// The address of a symbol of another file.
    Import(String),
    /// The file may be mapped anywhere, and no relocation makes the pointer; its stored value.
    NotRelocated(u64),
    /// The pointer has a relocation of an unknown type.
    UnknownRelocation(u32),
    /// The pointer is not mapped.
    NotMapped,
}

#[derive(Debug)]
pub(crate) struct AddressSpace<'a> {
    bytes: &'a [u8],
    segments: Vec<MappedSegment>,
    sections: Vec<NamedSection>,
    relocations: BTreeMap<u64, PointerRelocation>,
    init_array: Range<u64>,
    is_movable: bool,
    /// The value of `e_machine` in the ELF header.
    pub(crate) machine: u16,
}

#[derive(Debug)]
pub(crate) struct NamedSection {
    pub(crate) name: String,
    pub(crate) addresses: Range<u64>,
}

#[derive(Debug)]
pub(crate) struct DynamicSymbol {
    pub(crate) name: String,
    pub(crate) address: u64,
}

/// Numbers of the dynamic table that are addresses and sizes.
#[derive(Debug, Default)]
struct DynamicTable {
    values: BTreeMap<u64, u64>,
}

impl DynamicTable {
    fn range_of_tags(&self, start: i64, size: i64) -> Range<u64> {
        dynamic_tag_value(start, self)..dynamic_tag_value(start, self).saturating_add(dynamic_tag_value(size, self))
    }
}

fn dynamic_tag_value(tag: i64, table: &DynamicTable) -> u64 {
    table.values.get(&(tag as u64)).copied().unwrap_or_default()
}

impl<'a> AddressSpace<'a> {
    /// Reads the headers; `None` for other files than linked ELF64 programs and libraries, little-endian.
    ///
    /// # Errors
    /// [`codes::MALFORMED`] where headers leave the file.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Option<Self>, Diagnostic> {
        if !bytes.starts_with(b"\x7fELF\x02\x01") {
            return Ok(None);
        }
        let header = FileHeader64::<LE>::parse(bytes).map_err(malformed_elf_file)?;
        if ![elf::ET_EXEC, elf::ET_DYN].contains(&header.e_type(LE)) {
            return Ok(None);
        }
        let programs = header.program_headers(LE, bytes).map_err(malformed_elf_file)?;
        let mut space = Self {
            bytes,
            segments: programs.iter().filter(|one| one.p_type(LE) == elf::PT_LOAD).map(map_segment).collect(),
            sections: Vec::new(),
            relocations: BTreeMap::new(),
            init_array: 0..0,
            is_movable: header.e_type(LE) == elf::ET_DYN,
            machine: header.e_machine(LE),
        };
        let sections = header.sections(LE, bytes).map_err(malformed_elf_file)?;
        for section in sections.iter() {
            let name = sections.section_name(LE, section).unwrap_or_default();
            let start = section.sh_addr(LE);
            let addresses = start..start.saturating_add(section.sh_size(LE));
            space.sections.push(NamedSection { name: String::from_utf8_lossy(name).into_owned(), addresses });
        }
        let dynamic = programs.iter().find_map(|one| one.dynamic(LE, bytes).ok().flatten()).unwrap_or_default();
        let entries = dynamic.iter().map(dynamic_tag_pair).take_while(|(tag, _)| *tag != 0);
        space.read_dynamic(&DynamicTable { values: entries.collect() });
        Ok(Some(space))
    }

    fn read_dynamic(&mut self, table: &DynamicTable) {
        self.init_array = table.range_of_tags(elf::DT_INIT_ARRAY as i64, elf::DT_INIT_ARRAYSZ as i64);
        if self.init_array.is_empty() {
            self.init_array = self.section(".init_array").unwrap_or(0..0);
        }
        let symbols = table.range_of_tags(elf::DT_SYMTAB as i64, -1).start;
        let names = table.range_of_tags(elf::DT_STRTAB as i64, -1).start;
        for (start, size) in [(elf::DT_RELA, elf::DT_RELASZ), (elf::DT_JMPREL, elf::DT_PLTRELSZ)] {
            let entries = self.mapped_content(table.range_of_tags(start as i64, size as i64));
            let relocations = object::pod::slice_from_all_bytes::<Rela64<LE>>(entries).unwrap_or_default();
            for relocation in relocations {
                let effect = self.relocation_effect(relocation, symbols, names);
                self.relocations.insert(relocation.r_offset.get(LE), effect);
            }
        }
        let relative = self.mapped_content(table.range_of_tags(DT_RELR, DT_RELRSZ));
        for place in relr_places(relative) {
            let value = self.number_at(place).unwrap_or_default();
            self.relocations.insert(place, PointerRelocation::Address(value));
        }
    }

    fn relocation_effect(&self, relocation: &Rela64<LE>, symbols: u64, names: u64) -> PointerRelocation {
        let (kind, number) = (relocation.r_type(LE, false), relocation.r_sym(LE, false));
        let addend = relocation.r_addend.get(LE) as u64;
        match kind {
            elf::R_X86_64_RELATIVE if self.machine == elf::EM_X86_64 => PointerRelocation::Address(addend),
            elf::R_AARCH64_RELATIVE if self.machine == elf::EM_AARCH64 => PointerRelocation::Address(addend),
            elf::R_X86_64_64 | elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT if self.machine == elf::EM_X86_64 => {
                self.symbol_value(number, symbols, names, addend)
            }
            elf::R_AARCH64_ABS64 | elf::R_AARCH64_GLOB_DAT | elf::R_AARCH64_JUMP_SLOT
                if self.machine == elf::EM_AARCH64 =>
            {
                self.symbol_value(number, symbols, names, addend)
            }
            other => PointerRelocation::Other(other),
        }
    }

    fn symbol_value(&self, number: u32, symbols: u64, names: u64, addend: u64) -> PointerRelocation {
        let size = size_of::<Sym64<LE>>() as u64;
        let address = symbols.saturating_add(u64::from(number) * size);
        let bytes = self.mapped_content(address..address.saturating_add(size));
        let Ok((symbol, _)) = object::pod::from_bytes::<Sym64<LE>>(bytes) else { return PointerRelocation::Other(0) };
        if symbol.st_shndx.get(LE) != elf::SHN_UNDEF {
            return PointerRelocation::Address(symbol.st_value.get(LE).wrapping_add(addend));
        }
        let name = self.text_at(names.saturating_add(u64::from(symbol.st_name.get(LE))));
        PointerRelocation::Import(name.unwrap_or_default().to_owned())
    }

    /// The pointer at an address, in the running program.
    pub(crate) fn pointer_at(&self, address: u64) -> PointerValue {
        match self.relocations.get(&address) {
            Some(PointerRelocation::Address(to)) => PointerValue::Address(*to),
            Some(PointerRelocation::Import(name)) => PointerValue::Import(name.clone()),
            Some(PointerRelocation::Other(kind)) => PointerValue::UnknownRelocation(*kind),
            None => match self.number_at(address) {
                None => PointerValue::NotMapped,
                Some(stored) if self.is_movable => PointerValue::NotRelocated(stored),
                Some(stored) => PointerValue::Address(stored),
            },
        }
    }

    /// The functions that the loader calls before `main`, in their order.
    pub(crate) fn constructors(&self) -> impl Iterator<Item = u64> {
        let slots = (self.init_array.start..self.init_array.end).step_by(8);
        slots.filter_map(|slot| match self.pointer_at(slot) {
            PointerValue::Address(to) => Some(to),
            _ => None,
        })
    }

    /// The addresses of the section with that name.
    pub(crate) fn section(&self, name: &str) -> Option<Range<u64>> {
        self.sections.iter().find(|section| section.name == name).map(|section| section.addresses.clone())
    }

    /// The name of the section that holds an address.
    pub(crate) fn section_at(&self, address: u64) -> Option<&str> {
        self.sections
            .iter()
            .find(|section: &&NamedSection| section.addresses.start != 0 && section.addresses.contains(&address))
            .map(|section| section.name.as_str())
    }

    /// The section that holds an address. The end of a section counts as its own, as for symbols like `_end`,
    /// where no other section begins.
    pub(crate) fn section_around(&self, address: u64) -> Option<&NamedSection> {
        let mut loaded = self.sections.iter().filter(|section| section.addresses.start != 0);
        let holds = loaded.clone().find(|section| section.addresses.contains(&address));
        holds.or_else(|| loaded.find(|section| section.addresses.end == address))
    }

    /// The sections that are loaded, in the order of the file.
    pub(crate) fn loaded_sections(&self) -> Vec<&NamedSection> {
        self.sections.iter().filter(is_nonempty_loaded).collect()
    }

    /// The addresses in a range whose eight bytes a relocation makes.
    pub(crate) fn relocated_words(&self, range: &Range<u64>) -> impl Iterator<Item = u64> {
        self.relocations.range(range.clone()).map(|(address, _)| *address)
    }

    /// Whether the segment at an address is executable.
    pub(crate) fn is_code(&self, address: u64) -> bool {
        self.file_segment_at(address).is_some_and(|segment| segment.flags & elf::PF_X != 0)
    }

    /// The dynamic symbols, in their order.
    ///
    /// # Errors
    /// [`codes::MALFORMED`] for a damaged table.
    pub(crate) fn dynamic_symbols(&self) -> Result<Vec<DynamicSymbol>, Diagnostic> {
        let file = object::read::elf::ElfFile64::<LE>::parse(self.bytes).map_err(malformed_elf_file)?;
        let symbols = file
            .dynamic_symbols()
            .map(|symbol| Ok(DynamicSymbol { name: symbol.name()?.to_owned(), address: symbol.address() }));
        symbols.collect::<Result<_, _>>().map_err(malformed_elf_file)
    }

    /// Whether memory is mapped at the address.
    pub(crate) fn is_mapped(&self, address: u64) -> bool {
        self.segments.iter().any(|one| (one.address..one.address.saturating_add(one.memory_size)).contains(&address))
    }

    /// Offset in the file of the byte that is mapped at an address.
    pub(crate) fn file_offset(&self, address: u64) -> Option<u64> {
        self.file_segment_at(address).map(|segment| segment.offset_of(address))
    }

    fn file_segment_at(&self, address: u64) -> Option<&MappedSegment> {
        self.segments.iter().find(|segment| segment.holds_file_content(address))
    }

    /// The bytes from an address to the end of its segment in the file; empty where nothing is mapped.
    pub(crate) fn bytes_from(&self, address: u64) -> &'a [u8] {
        let Some(segment) = self.file_segment_at(address) else { return &[] };
        let start = segment.offset_of(address);
        let end = segment.offset.saturating_add(segment.file_size).min(self.bytes.len() as u64);
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The bytes of a range of addresses; empty where they are not mapped from the file.
    pub(crate) fn mapped_content(&self, range: Range<u64>) -> &'a [u8] {
        let size = range.end.saturating_sub(range.start) as usize;
        self.bytes_from(range.start).get(..size).unwrap_or_default()
    }

    /// The stored number of eight bytes.
    fn number_at(&self, address: u64) -> Option<u64> {
        self.bytes_from(address).first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
    }

    /// The stored number of four bytes.
    pub(crate) fn word_at(&self, address: u64) -> Option<u32> {
        self.bytes_from(address).first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// The text at an address up to its NUL.
    pub(crate) fn text_at(&self, address: u64) -> Option<&'a str> {
        let bytes = self.bytes_from(address);
        let end = bytes.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&bytes[..end]).ok()
    }
}

fn malformed_elf_file(error: object::read::Error) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, format!("ELF file: {error}"))
}

fn dynamic_tag_pair(entry: &elf::Dyn64<LE>) -> (u64, u64) {
    (entry.d_tag(LE), entry.d_val(LE))
}

fn is_nonempty_loaded(section: &&NamedSection) -> bool {
    section.addresses.start != 0 && !section.addresses.is_empty()
}

fn map_segment(header: &elf::ProgramHeader64<LE>) -> MappedSegment {
    MappedSegment {
        address: header.p_vaddr(LE),
        offset: header.p_offset(LE),
        file_size: header.p_filesz(LE),
        memory_size: header.p_memsz(LE),
        flags: header.p_flags(LE),
    }
}

/// The addresses that a table of packed relative relocations changes: an even word is an address, an odd one has bits for the
/// 63 words after the last address.
fn relr_places(table: &[u8]) -> Vec<u64> {
    let (mut places, mut next) = (Vec::new(), 0u64);
    for word in table.chunks_exact(8).filter_map(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes)) {
        if word & 1 == 0 {
            places.push(word);
            next = word.wrapping_add(8);
        } else {
            let bits = (0..63u64).filter(|bit| word >> (bit + 1) & 1 != 0);
            places.extend(bits.map(|bit| next.wrapping_add(bit * 8)));
            next = next.wrapping_add(63 * 8);
        }
    }
    places
}
