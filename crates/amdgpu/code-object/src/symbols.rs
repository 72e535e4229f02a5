//! Positions and names of the instructions of an AMDGPU ELF file: for inspecting code.
//!
//! [`CodeMap::read`] is the lenient variant of [`CodeObject`](crate::CodeObject): it accepts every OS ABI and files
//! without metadata (assembled ones). A damaged name, descriptor or relocation is skipped and reported in
//! [`CodeMap::problems`], so that the code can be inspected nevertheless. Sections that leave the file are refused,
//! because then the position of code is unknown.
//!
//! Invariants: sections are in the order of the file's table and hold their bytes. Symbols are inside their section and
//! are sorted by offset, the most informative name first. Relocations are sorted by offset.
//!
//! Absent on purpose: instructions, and judging whether a file would load (`CodeObject` does).

mod kernel;
mod relocation;
mod starts;
mod table;

pub use kernel::KernelFacts;
pub use relocation::Relocation;
pub use starts::{CodeStart, CodeStarts};

use crate::CodeObject;
use crate::elf::{Elf, ElfSectionView, ObjectKind};
use crate::note::Note;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{EFlags, Processor, TargetId, by_mach};
use object::elf::{PF_X, PT_LOAD, SHT_NOBITS, STT_OBJECT};
use std::borrow::Cow;
use std::ops::Range;

/// The kind of a symbol of a code section; the order is the order of display.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SymbolKind {
    /// Entry of a kernel, with the contents of its descriptor.
    Kernel(KernelFacts),
    Function,
    /// Data between the instructions.
    Object,
    /// A symbol without a type, such as an assembler's label.
    Label,
}

/// A name in a code section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSymbol<'a> {
    /// Its name; bytes that are not UTF-8 are replaced.
    pub name: Cow<'a, str>,
    pub kind: SymbolKind,
    /// Offset in the section.
    pub offset: usize,
    /// Bytes that belong to it; 0 if the file does not state it.
    pub size: usize,
    /// Whether other files see it.
    pub is_global: bool,
}

/// A section, or in files without sections a segment, that holds instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeSection<'a> {
    /// Its number in the section table; `None` for a segment.
    pub number: Option<usize>,
    /// Name; `segment N` for a segment.
    pub name: Cow<'a, str>,
    /// Address of its first byte; 0 in most relocatable files.
    pub address: u64,
    /// Its bytes in the file.
    pub range: Range<usize>,
    pub bytes: &'a [u8],
    /// The names in it.
    pub symbols: Vec<CodeSymbol<'a>>,
    /// The relocations that a linker will apply to it.
    pub relocations: Vec<Relocation<'a>>,
}

/// The code of a file.
#[derive(Debug, Clone)]
pub struct CodeMap<'a> {
    pub kind: ObjectKind,
    /// The machine in `e_flags`, bits 0 to 7.
    pub machine: u8,
    /// Its row in the table of processors.
    pub processor: Option<&'static Processor>,
    /// The target ID, where `e_flags` are in order.
    pub target_id: Option<TargetId>,
    /// The parts that hold instructions.
    pub sections: Vec<CodeSection<'a>>,
    /// Kernels without instructions at the end of a section of code: they are in no section.
    pub empty_kernels: Vec<Cow<'a, str>>,
    /// Damaged and skipped parts; warnings.
    pub problems: Vec<Diagnostic>,
}

/// The symbol tables' information about code.
struct NamedCode<'a> {
    found: Vec<SectionNames<'a>>,
    empty_kernels: Vec<Cow<'a, str>>,
    problems: Vec<Diagnostic>,
}

impl<'a> CodeMap<'a> {
    /// Reads the tables of a file; instructions are not read.
    ///
    /// # Errors
    /// `NOT_CODE_OBJECT` for other files, `UNKNOWN_FORMAT` for ELF types and code object versions that
    /// are not known, `MALFORMED` for headers that leave the file; each with the offset.
    pub fn read(data: &'a [u8]) -> Result<Self, Diagnostic> {
        let elf = Elf::parse_any(data)?;
        let note = Note::find(&elf).ok();
        Ok(Self::from_parts(&elf, note.as_ref()))
    }

    /// The code of a code object that was already parsed.
    pub fn from_object(object: &CodeObject<'a>) -> Self {
        Self::from_parts(object.elf(), Some(object.note()))
    }

    /// The same for callers that only need names: without relocations, of which there may be more than names.
    pub fn names_of(object: &CodeObject<'a>) -> Self {
        Self::with_symbols(object.elf(), named_sections(object.elf(), Some(object.note())))
    }

    fn from_parts(elf: &Elf<'a>, note: Option<&Note<'a>>) -> Self {
        let mut named = named_sections(elf, note);
        relocation::add_relocations(elf, &mut named.found, &mut named.problems);
        Self::with_symbols(elf, named)
    }

    fn with_symbols(elf: &Elf<'a>, named: NamedCode<'a>) -> Self {
        let NamedCode { found, empty_kernels, problems } = named;
        let machine = (elf.flags & 0xff) as u8;
        let target_id = EFlags::decode(elf.flags, elf.abi_version).ok().map(|flags| flags.target_id());
        let sections = found.into_iter().map(|found| found.section).collect();
        Self { kind: elf.kind, machine, processor: by_mach(machine), target_id, sections, empty_kernels, problems }
    }
}

/// A symbol that is defined in a file.
pub(crate) struct FileSymbol<'a> {
    pub(crate) name: Cow<'a, str>,
    address: u64,
    size: u64,
    /// Whether it denotes data.
    pub(crate) is_data: bool,
}

impl FileSymbol<'_> {
    /// Whether its bytes include that address.
    pub(crate) fn covers_address(&self, address: u64) -> bool {
        address.checked_sub(self.address).is_some_and(|distance| distance < self.size)
    }
}

/// The symbols of all tables; damaged ones are skipped.
pub(crate) fn defined_symbols<'a>(elf: &Elf<'a>) -> impl Iterator<Item = FileSymbol<'a>> {
    table::read_symbols(elf, &mut Vec::new()).into_iter().map(|row| {
        let is_data = row.kind == STT_OBJECT;
        FileSymbol { name: row.name, address: row.value, size: row.size, is_data }
    })
}

/// The sections with their names, and the skipped parts.
fn named_sections<'a>(elf: &Elf<'a>, note: Option<&Note<'a>>) -> NamedCode<'a> {
    let mut named = NamedCode { found: code_sections(elf), empty_kernels: Vec::new(), problems: Vec::new() };
    let symbols = table::read_symbols(elf, &mut named.problems);
    kernel::add_kernels(elf, &symbols, note, &mut named);
    table::place_symbols(elf, symbols, &mut named.found, &mut named.problems);
    named
}

impl CodeSection<'_> {
    /// The name that covers an offset, with the distance from its start: the nearest symbol at or before it.
    pub fn name_at(&self, offset: usize) -> Option<(&CodeSymbol<'_>, usize)> {
        let after = self.symbols.partition_point(|symbol| symbol.offset <= offset);
        let nearest = self.symbols.get(after.checked_sub(1)?)?.offset;
        let first = self.symbols.partition_point(|symbol| symbol.offset < nearest);
        self.symbols.get(first).map(|symbol| (symbol, offset - nearest))
    }
}

/// A section, while its names are collected.
struct SectionNames<'a> {
    section: CodeSection<'a>,
}

impl SectionNames<'_> {
    /// The offset to which a symbol's value points. In linked files a value is an address.
    fn offset_of_value(&self, kind: ObjectKind, value: u64) -> Option<usize> {
        let offset = match kind {
            ObjectKind::Linked => value.checked_sub(self.section.address)?,
            ObjectKind::Relocatable => value,
        };
        usize::try_from(offset).ok().filter(|offset| *offset < self.section.bytes.len())
    }

    /// Whether a symbol's value points directly after its last byte.
    fn ends_at(&self, kind: ObjectKind, value: u64) -> bool {
        let start = if kind == ObjectKind::Linked { self.section.address } else { 0 };
        value.checked_sub(start) == Some(self.section.bytes.len() as u64)
    }

    /// Whether a symbol is defined in it.
    fn defines_symbol(&self, row: &table::TableRow<'_>) -> bool {
        self.section.number.is_some() && self.section.number == row.section
    }
}

fn code_sections<'a>(elf: &Elf<'a>) -> Vec<SectionNames<'a>> {
    if elf.sections.is_empty() {
        let segments = elf.segments.iter().filter(is_executable_segment).zip(1..);
        let named = segments.map(|(segment, number)| {
            nameless_section(elf, format!("segment {number}").into(), segment.address, &segment.range)
        });
        return named.collect();
    }
    let rows = elf.sections.iter().enumerate().filter(is_code_section_row).map(|(index, row)| {
        let mut names = nameless_section(elf, row.name.into(), row.address, &row.range);
        names.section.number = Some(index);
        names
    });
    rows.collect()
}

/// A section without number, symbols and relocations.
fn nameless_section<'a>(elf: &Elf<'a>, name: Cow<'a, str>, address: u64, range: &Range<usize>) -> SectionNames<'a> {
    let bytes = elf.data.get(range.clone()).unwrap_or_default();
    let (symbols, relocations) = (Vec::new(), Vec::new());
    let section = CodeSection { number: None, name, address, range: range.clone(), bytes, symbols, relocations };
    SectionNames { section }
}

fn is_executable_segment(segment: &&crate::ElfSegment) -> bool {
    segment.kind == PT_LOAD && segment.flags & PF_X != 0
}

fn is_code_section_row((_, section): &(usize, &ElfSectionView)) -> bool {
    section.is_code() && section.kind != SHT_NOBITS
}

/// A skipped part: its offset, and the fault.
fn left_out(offset: usize, what: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(codes::MALFORMED, what)
        .at_offset(offset as u64)
        .advise("it is left out; check the tool that made it")
}
