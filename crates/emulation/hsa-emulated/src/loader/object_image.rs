//! The tables of a code object: segments, symbols and relocations, all inside of the file.

use crate::status::HsaStatus;
use hotswap_targets::{EFlags, TargetId};
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, Sym, SymbolTable};

/// `EI_OSABI` of code objects for HSA, and `e_machine`.
const OS_ABI_HSA: u8 = 64;
const MACHINE: u16 = 224;
/// The type of kernels in code objects of version 2, of which the loader knows the number.
const STT_AMDGPU_HSA_KERNEL: u8 = 10;
/// A code object has less: it is mapped as one block.
const MAX_SIZE: u64 = 4 << 30;

/// A file that is not loaded: HSA's status, and the reason for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoadRefusal {
    pub(crate) status: HsaStatus,
    pub(crate) reason: String,
}

impl LoadRefusal {
    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self { status: HsaStatus::INVALID_CODE_OBJECT, reason: reason.into() }
    }
}

/// Bytes of the file that are placed at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageSegment {
    pub(crate) address: u64,
    /// Size in memory, in bytes.
    pub(crate) size: u64,
    /// The bytes of the file; zeros follow.
    pub(crate) content: std::ops::Range<usize>,
}

/// A symbol that programs can ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageSymbol {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) alignment: u64,
    /// It is in a section that is not written.
    pub(crate) is_constant: bool,
    /// Its name ends with `.kd`.
    pub(crate) is_kernel: bool,
}

/// The object of a relocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RelocationSource {
    /// No symbol.
    Base,
    /// An address of this code object.
    Own(u64),
    /// A variable that the program or another code object defines.
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageRelocation {
    pub(crate) kind: u32,
    pub(crate) address: u64,
    pub(crate) addend: i64,
    pub(crate) source: RelocationSource,
}

/// The tables of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectImage {
    /// The target that the header states.
    pub(crate) target: TargetId,
    pub(crate) segments: Vec<ImageSegment>,
    pub(crate) symbols: Vec<ImageSymbol>,
    /// Functions, which messages name.
    pub(crate) functions: Vec<ImageSymbol>,
    pub(crate) relocations: Vec<ImageRelocation>,
}

type ElfImageHeader = FileHeader64<LE>;

fn damaged_file(error: object::read::Error) -> LoadRefusal {
    LoadRefusal::invalid(error.to_string())
}

impl ObjectImage {
    /// Reads a file. `use_dynsym`: symbols are those of the dynamic table.
    pub(crate) fn parse(file: &[u8], use_dynsym: bool) -> Result<Self, LoadRefusal> {
        let header = ElfImageHeader::parse(file).map_err(damaged_file)?;
        let target = target_of_header(header)?;
        let sections = header.sections(LE, file).map_err(damaged_file)?;
        let kind = if use_dynsym { elf::SHT_DYNSYM } else { elf::SHT_SYMTAB };
        let table = sections.symbols(LE, file, kind).map_err(damaged_file)?;
        let (mut symbols, mut functions) = (Vec::new(), Vec::new());
        for symbol in table.iter() {
            let name = symbol.name(LE, table.strings()).map_err(damaged_file)?;
            let name = String::from_utf8_lossy(name).into_owned();
            let section = sections.section(object::SectionIndex(usize::from(symbol.st_shndx(LE)))).ok();
            let made = ImageSymbol {
                is_kernel: name.ends_with(".kd"),
                name,
                address: symbol.st_value(LE),
                size: symbol.st_size(LE),
                alignment: section.map_or(1, |section| section.sh_addralign(LE).max(1)),
                is_constant: section.is_some_and(|section| section.sh_flags(LE) & u64::from(elf::SHF_WRITE) == 0),
            };
            match symbol.st_type() {
                elf::STT_FUNC => functions.push(made),
                kind if is_visible(kind, symbol.st_bind()) => symbols.push(require_section(made, symbol.st_shndx(LE))?),
                _ => {}
            }
        }
        let segments = load_segments(header, file)?;
        let relocations = dynamic_relocations(header, file)?;
        Ok(Self { target, segments, symbols, functions, relocations })
    }

    /// The addresses of all segments.
    pub(crate) fn address_range(&self) -> std::ops::Range<u64> {
        let start = self.segments.first().map_or(0, |segment| segment.address);
        let end = self.segments.iter().map(|segment| segment.address + segment.size).max().unwrap_or(0);
        start..end.max(start)
    }
}

fn target_of_header(header: &ElfImageHeader) -> Result<TargetId, LoadRefusal> {
    let ident = header.e_ident();
    if header.e_machine(LE) != MACHINE || ident.os_abi != OS_ABI_HSA {
        return Err(LoadRefusal::invalid("the file is no code object for the HSA runtime"));
    }
    if header.e_type(LE) != elf::ET_DYN && header.e_type(LE) != elf::ET_EXEC {
        return Err(LoadRefusal::invalid("the file is not linked"));
    }
    let flags = EFlags::decode(header.e_flags(LE), ident.abi_version);
    flags.map(|flags| flags.target_id()).map_err(|error| LoadRefusal::invalid(error.to_string()))
}

fn is_visible(kind: u8, binding: u8) -> bool {
    match kind {
        STT_AMDGPU_HSA_KERNEL => true,
        elf::STT_OBJECT | elf::STT_COMMON => binding != elf::STB_LOCAL,
        _ => false,
    }
}

/// ROCr follows the section of such a symbol without looking.
fn require_section(symbol: ImageSymbol, section: u16) -> Result<ImageSymbol, LoadRefusal> {
    if section == elf::SHN_UNDEF || section == elf::SHN_ABS {
        return Err(LoadRefusal::invalid(format!("the object `{}` has no section", symbol.name)));
    }
    Ok(symbol)
}

fn load_segments(header: &ElfImageHeader, file: &[u8]) -> Result<Vec<ImageSegment>, LoadRefusal> {
    let mut segments = Vec::new();
    for segment in header.program_headers(LE, file).map_err(damaged_file)? {
        if segment.p_type(LE) != elf::PT_LOAD {
            continue;
        }
        let (address, size) = (segment.p_vaddr(LE), segment.p_memsz(LE));
        let content = segment.data(LE, file).map_err(|()| LoadRefusal::invalid("a segment is not in the file"))?;
        let is_small = address.checked_add(size).is_some_and(|end| end <= MAX_SIZE);
        if content.len() as u64 > size || !is_small {
            return Err(LoadRefusal::invalid("a segment has an impossible size"));
        }
        let start = segment.p_offset(LE) as usize;
        segments.push(ImageSegment { address, size, content: start..start + content.len() });
    }
    if segments.windows(2).any(|pair| pair[1].address < pair[0].address + pair[0].size) {
        return Err(LoadRefusal::invalid("segments are not in order"));
    }
    if segments.is_empty() { Err(LoadRefusal::invalid("the file has no segment to load")) } else { Ok(segments) }
}

fn dynamic_relocations(header: &ElfImageHeader, file: &[u8]) -> Result<Vec<ImageRelocation>, LoadRefusal> {
    let sections = header.sections(LE, file).map_err(damaged_file)?;
    let mut all = Vec::new();
    for section in sections.iter() {
        // Sections with a target are static ones, which a linker leaves with --emit-relocs.
        if section.sh_info(LE) != 0 {
            continue;
        }
        let Some((rows, link)) = section.rela(LE, file).map_err(damaged_file)? else { continue };
        let symbols = sections.section(link).map_err(damaged_file)?;
        // The reader takes the type for granted.
        if !matches!(symbols.sh_type(LE), elf::SHT_DYNSYM | elf::SHT_SYMTAB) {
            return Err(LoadRefusal::invalid("relocations refer to a section that is no table of symbols"));
        }
        let table = SymbolTable::parse(LE, file, &sections, link, symbols).map_err(damaged_file)?;
        for row in rows {
            let (kind, number) = (row.r_type(LE, false), row.r_sym(LE, false));
            let source = relocation_source(&table, number as usize)?;
            all.push(ImageRelocation { kind, address: row.r_offset(LE), addend: row.r_addend(LE), source });
        }
    }
    Ok(all)
}

fn relocation_source(table: &SymbolTable<'_, ElfImageHeader>, number: usize) -> Result<RelocationSource, LoadRefusal> {
    if number == 0 {
        return Ok(RelocationSource::Base);
    }
    let symbol = table.symbol(object::SymbolIndex(number)).map_err(damaged_file)?;
    let name = String::from_utf8_lossy(symbol.name(LE, table.strings()).map_err(damaged_file)?).into_owned();
    let is_here = symbol.st_shndx(LE) != elf::SHN_UNDEF;
    match symbol.st_type() {
        elf::STT_OBJECT | elf::STT_FUNC | STT_AMDGPU_HSA_KERNEL if is_here => {
            Ok(RelocationSource::Own(symbol.st_value(LE)))
        }
        // ROCr takes the load address for an undefined function; nothing can be right then.
        elf::STT_OBJECT | elf::STT_FUNC | elf::STT_NOTYPE => Ok(RelocationSource::Other(name)),
        other => Err(LoadRefusal::invalid(format!("a relocation refers to `{name}`, a symbol of type {other}"))),
    }
}
