//! A loader without a GPU: a linked code object laid out at an address, with its relocations applied.
//!
//! The rules are those of ROCr's loader: one allocation from the first loaded segment to the end of the last one;
//! relocations of the sections that are not about another section (`sh_info` is 0); five types; a symbol of a function or
//! variable means its place in the file, one without a type the address that the caller defines for its name.
//!
//! Invariants: what ROCr would load wrongly without a word is refused: undefined symbols that have a type (it writes the
//! load address), and packed relative relocations (it leaves the words as they are).

use crate::call_error::{CallError, c_string};
use hotswap_report::{Diagnostic, codes};
use object::elf::SHT_RELR;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, Rela, SectionHeader, Sym, SymbolTable};
use object::{LittleEndian as LE, elf};
use std::collections::{BTreeSet, HashMap};
use std::ffi::CString;
use std::ops::Range;

type File<'d> = ElfFile64<'d, LE>;

/// Memory beyond the bytes of the file, for variables that are zero at first.
const MOST_ZEROS: u64 = 1 << 30;

/// The relocation types that ROCr applies.
mod kind {
    pub(super) const ABS32_LO: u32 = 1;
    pub(super) const ABS32_HI: u32 = 2;
    pub(super) const ABS64: u32 = 3;
    pub(super) const ABS32: u32 = 6;
    pub(super) const RELATIVE64: u32 = 13;
}

/// A segment as the loader lays it out.
#[derive(Debug)]
pub(crate) struct ModelSegment {
    pub(crate) address: u64,
    /// Its bytes in [`LoadedCode::memory`].
    range: Range<usize>,
    pub(crate) flags: u32,
}

/// A relocation, applied or not.
#[derive(Debug)]
pub(crate) struct ModelRelocation {
    pub(crate) address: u64,
    pub(crate) kind: u32,
    pub(crate) value: Option<u64>,
    pub(crate) symbol: CString,
}

/// The code object behind a `hotswap_loaded`, laid out at an address.
#[derive(Debug)]
pub struct LoadedCode {
    pub(crate) base: u64,
    memory: Vec<u8>,
    pub(crate) segments: Vec<ModelSegment>,
    pub(crate) relocations: Vec<ModelRelocation>,
    pub(crate) undefined: Vec<CString>,
}

fn malformed_code(what: impl Into<String>) -> CallError {
    Diagnostic::error(codes::MALFORMED, what).into()
}

fn damaged_code(error: object::Error) -> CallError {
    malformed_code(error.to_string())
}

impl LoadedCode {
    pub(crate) fn new(data: &[u8], base: u64, externals: &HashMap<String, u64>) -> Result<Self, CallError> {
        let file = File::parse(data).map_err(damaged_code)?;
        if file.elf_header().e_type(LE) != elf::ET_DYN {
            return Err(malformed_code("only linked code objects can be loaded; this one is relocatable"));
        }
        let loads: Vec<_> = file.elf_program_headers().iter().filter(|row| row.p_type(LE) == elf::PT_LOAD).collect();
        let start =
            loads.first().map(|row| row.p_vaddr(LE)).ok_or_else(|| malformed_code("it has no segment to load"))?;
        let ends = loads.iter().map(|row| row.p_vaddr(LE).checked_add(row.p_memsz(LE)));
        let end = ends.max().flatten().filter(|end| *end - start.min(*end) <= data.len() as u64 + MOST_ZEROS);
        let size = end.and_then(|end| usize::try_from(end.checked_sub(start)?).ok());
        let size =
            size.ok_or_else(|| malformed_code("its segments leave the address space, or need over a gigabyte"))?;
        let segments = Vec::new();
        let mut loaded = Self { base, memory: vec![0; size], segments, relocations: Vec::new(), undefined: Vec::new() };
        for row in loads {
            loaded.add_segment(data, row, start)?;
        }
        loaded.relocate_all(&file, data, base.wrapping_sub(start), start, externals)?;
        Ok(loaded)
    }

    pub(crate) fn size(&self) -> u64 {
        self.memory.len() as u64
    }

    pub(crate) fn segment_bytes(&self, segment: &ModelSegment) -> &[u8] {
        self.memory.get(segment.range.clone()).unwrap_or_default()
    }

    fn add_segment(&mut self, data: &[u8], row: &elf::ProgramHeader64<LE>, start: u64) -> Result<(), CallError> {
        let content = row.data(LE, data).map_err(|()| segment_outside_error())?;
        let offset = row.p_vaddr(LE).checked_sub(start).and_then(|offset| usize::try_from(offset).ok());
        let offset = offset.ok_or_else(segment_outside_error)?;
        let size = usize::try_from(row.p_memsz(LE)).map_err(|_| segment_outside_error())?;
        let range = offset
            ..offset.checked_add(size).filter(|end| *end <= self.memory.len()).ok_or_else(segment_outside_error)?;
        let filled = self.memory.get_mut(offset..offset + content.len()).filter(|_| content.len() <= size);
        filled.ok_or_else(segment_outside_error)?.copy_from_slice(content);
        let address = self.base.wrapping_add(offset as u64);
        self.segments.push(ModelSegment { address, range, flags: row.p_flags(LE) });
        Ok(())
    }

    fn relocate_all(
        &mut self,
        file: &File<'_>,
        data: &[u8],
        delta: u64,
        start: u64,
        externals: &HashMap<String, u64>,
    ) -> Result<(), CallError> {
        let symbols = file.elf_dynamic_symbol_table();
        let mut undefined = BTreeSet::new();
        for section in file.elf_section_table().iter() {
            if section.sh_type(LE) == SHT_RELR {
                return Err(malformed_code("it has packed relative relocations, which ROCr's loader does not apply"));
            }
            let rows = section.rela(LE, data).map_err(damaged_code)?;
            for row in rows.filter(|_| section.sh_info(LE) == 0).map_or(&[][..], |(rows, _)| rows) {
                let (symbol, kind) = (row.r_sym(LE, false), row.r_type(LE, false));
                let place = row.r_offset(LE).checked_sub(start).and_then(|at| usize::try_from(at).ok());
                let target = RelocationValue::of_symbol(symbols, symbol, kind, delta, externals)?;
                let value = target.value.map(|value| value.wrapping_add_signed(row.r_addend(LE)));
                let value = value.map(|value| self.write_word(place, kind, value)).transpose()?;
                if value.is_none() {
                    undefined.insert(target.name.clone());
                }
                let address = row.r_offset(LE).wrapping_add(delta);
                self.relocations.push(ModelRelocation { address, kind, value, symbol: target.name });
            }
        }
        self.undefined = undefined.into_iter().collect();
        Ok(())
    }

    /// Writes a word; returns what it holds then.
    fn write_word(&mut self, place: Option<usize>, kind: u32, value: u64) -> Result<u64, CallError> {
        let (value, size) = match kind {
            kind::ABS64 | kind::RELATIVE64 => (value, 8),
            kind::ABS32_LO | kind::ABS32 => (value & 0xffff_ffff, 4),
            kind::ABS32_HI => (value >> 32, 4),
            other => return Err(malformed_code(format!("relocation type {other} is none that ROCr's loader applies"))),
        };
        let word = place.and_then(|place| self.memory.get_mut(place..place.checked_add(size)?));
        let word = word.ok_or_else(|| malformed_code("a relocation is outside of the loaded segments"))?;
        word.copy_from_slice(&value.to_le_bytes()[..size]);
        Ok(value)
    }
}

fn segment_outside_error() -> CallError {
    malformed_code("a segment leaves the file, or the memory of the others")
}

/// The target of a relocation.
struct RelocationValue {
    name: CString,
    /// `None` where no one has defined it.
    value: Option<u64>,
}

impl RelocationValue {
    fn of_symbol(
        symbols: &SymbolTable<'_, elf::FileHeader64<LE>>,
        number: u32,
        kind: u32,
        delta: u64,
        externals: &HashMap<String, u64>,
    ) -> Result<Self, CallError> {
        if kind == kind::RELATIVE64 {
            return Ok(Self { name: CString::default(), value: Some(delta) });
        }
        let symbol = symbols.symbol(object::SymbolIndex(number as usize)).map_err(damaged_code)?;
        let name = symbols.symbol_name(LE, symbol).map_err(damaged_code)?;
        let name = String::from_utf8_lossy(name).into_owned();
        let is_defined = symbol.st_shndx(LE) != elf::SHN_UNDEF;
        let value = match symbol.st_type() {
            // The last one is the type of kernels of code object V2.
            elf::STT_OBJECT | elf::STT_FUNC | elf::STT_LOOS if is_defined => {
                Some(symbol.st_value(LE).wrapping_add(delta))
            }
            elf::STT_OBJECT | elf::STT_FUNC | elf::STT_LOOS => {
                let what =
                    format!("`{name}` is undefined and has a type: ROCr's loader would use the load address for it");
                return Err(malformed_code(what));
            }
            elf::STT_NOTYPE => externals.get(&name).copied(),
            other => {
                return Err(malformed_code(format!(
                    "`{name}` has the type {other}, which ROCr's loader does not resolve"
                )));
            }
        };
        Ok(Self { name: c_string(name), value })
    }
}
