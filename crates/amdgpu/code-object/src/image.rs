//! A code object as parts that can change their size: headers, sections, symbols, relocations.
//!
//! [`ObjectImage::parse`] takes the file apart and proves that it consists of these parts only: header, program headers,
//! sections and the section table are consecutive, and the bytes between them are kept. [`ImageLayout`] puts parts of any
//! size together again, by the rules of linkers and assemblers that the file itself shows it was made by.
//!
//! Invariants: parsing copies no section. Parts of the old sizes give the same file byte for byte. Every number of the
//! file is checked before it is used, and none of them causes a panic.
//!
//! Absent on purpose: the meaning of a section's bytes (except symbols and relocations), and changes to the number or
//! the order of sections, segments, symbols and relocations.

mod layout;
mod parse;
mod relocation;
mod symbol;

pub use layout::ImageLayout;
pub(crate) use relocation::ANDROID;
pub use relocation::{Formula, RELOCATIONS, Rela, RelocationForm, RelocationKind, RelocationSection, crel, pack_words};
pub use symbol::{SymbolRow, SymbolRows};

use crate::ObjectKind;
use hotswap_report::Diagnostic;
use hotswap_targets::EFlags;
use object::elf;
use std::ops::Range;

/// A code object, taken apart. Borrows the file.
#[derive(Debug, Clone)]
pub struct ObjectImage<'a> {
    pub(crate) data: &'a [u8],
    pub kind: ObjectKind,
    pub flags: EFlags,
    /// Sections in the order of their table, the empty first one included.
    pub sections: Vec<SectionPart<'a>>,
    /// Program headers in the order of their table.
    pub segments: Vec<SegmentRow>,
    /// Offset of the program headers; 0 without any.
    pub(crate) segments_at: u64,
    /// Offset of the section table.
    pub(crate) sections_at: u64,
    /// Parts of the file in its order.
    pub(crate) order: Vec<ImagePart>,
}

/// A section: its header's numbers, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionPart<'a> {
    /// Name; empty when it is not UTF-8.
    pub name: &'a str,
    /// The section's type, `sh_type`.
    pub kind: u32,
    /// The section's flags, `sh_flags`.
    pub flags: u64,
    /// The address when loaded, `sh_addr`.
    pub address: u64,
    /// The offset in the file, `sh_offset`.
    pub offset: u64,
    /// `sh_size`: in memory, also where the file holds no bytes.
    pub size: u64,
    /// Number of a section, `sh_link`.
    pub link: u32,
    /// Its meaning depends on the type, `sh_info`.
    pub info: u32,
    /// The alignment in bytes, `sh_addralign`.
    pub align: u64,
    /// Bytes of an entry of a table, `sh_entsize`.
    pub entry_size: u64,
    /// Bytes in the file; empty for sections without content there.
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentRow {
    /// The segment's type, `p_type`.
    pub kind: u32,
    /// The segment's permissions, `p_flags`.
    pub flags: u32,
    /// The offset in the file, `p_offset`.
    pub offset: u64,
    /// The address when loaded, `p_vaddr`.
    pub address: u64,
    /// Bytes in the file, `p_filesz`.
    pub file_size: u64,
    /// Bytes in memory, `p_memsz`.
    pub memory_size: u64,
    /// The alignment in bytes, `p_align`.
    pub align: u64,
}

/// A part that occupies bytes of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImagePart {
    /// A section, by number.
    Section(usize),
    Table,
}

impl SectionPart<'_> {
    /// Whether it has an address in a loaded program.
    pub fn is_loaded(&self) -> bool {
        self.flags & u64::from(elf::SHF_ALLOC) != 0
    }

    /// Whether it holds instructions.
    pub fn is_code(&self) -> bool {
        self.flags & u64::from(elf::SHF_EXECINSTR) != 0 && self.kind == elf::SHT_PROGBITS
    }

    /// Whether the file holds its bytes.
    pub fn is_in_file(&self) -> bool {
        self.kind != elf::SHT_NOBITS && self.kind != elf::SHT_NULL
    }

    /// Its addresses; overflow is excluded when the file is read.
    pub fn addresses(&self) -> Range<u64> {
        self.address..self.address + self.size
    }
}

impl<'a> ObjectImage<'a> {
    /// Takes a code object apart.
    ///
    /// # Errors
    /// `NOT_CODE_OBJECT` for other files, `UNKNOWN_FORMAT` for versions and machines that are not known and for forms
    /// that are not handled, `MALFORMED` for parts that overlap or leave the file; each with the offset.
    pub fn parse(data: &'a [u8]) -> Result<Self, Diagnostic> {
        parse::parse(data)
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.data
    }

    /// The number of the first section of that name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.sections.iter().position(|section| section.name == name)
    }

    /// The number of the section that contains an address of a linked file; the end of a section belongs to it
    /// where no other begins.
    pub fn section_at(&self, address: u64) -> Option<usize> {
        let sections = self.sections.iter().enumerate();
        let mut loaded = sections.filter(|(_, section)| section.is_loaded() && section.size > 0);
        let inside = loaded.clone().find(|(_, section)| section.addresses().contains(&address));
        inside.or_else(|| loaded.find(|(_, section)| section.addresses().end == address)).map(|(number, _)| number)
    }
}
