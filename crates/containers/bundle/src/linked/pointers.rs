//! The pointers into a section of bundles: the wrappers, and the relocations of their pointers.
//!
//! A relocation adds a base to a number of its own, or names a symbol of the section: `-fgpu-rdc` gives each source file a
//! symbol for the bundle of all of them, which libraries export (RCCL). Such a pointer moves with its symbol, which the
//! layout moves in every symbol table.

use super::no_place;
use super::program::{LinkedProgram, ProgramSegment};
use crate::bytes::{malformed_at, slice, u16_at, u32_at, u64_at};
use crate::elf::{SYMBOL, SectionHeader};
use crate::host_object::SECTION;
use hotswap_report::Diagnostic;
use std::collections::BTreeMap;
use std::ops::Range;

const WRAPPER: u64 = 24;
const MAGIC: u32 = 0x4849_5046; // HIPF
const RELA: u64 = 24;
/// Relocations that store base + addend: `R_X86_64_RELATIVE`, `R_AARCH64_RELATIVE`.
const RELATIVE: [u32; 2] = [8, 1027];
/// Relocations that store symbol + addend: `R_X86_64_64`, `R_AARCH64_ABS64`.
const ABSOLUTE: [u32; 2] = [1, 257];
const DT_SYMTAB: u64 = object::elf::DT_SYMTAB as u64;
const DT_RELA: u64 = object::elf::DT_RELA as u64;
const DT_RELASZ: u64 = object::elf::DT_RELASZ as u64;
const DT_REL: u64 = object::elf::DT_REL as u64;
const DT_RELRSZ: u64 = 35;
const DT_RELR: u64 = 36;
const DT_ANDROID: [u64; 2] = [0x6000_000f, 0x6000_0011];

/// A wrapper and the offsets in the file that hold its pointer.
#[derive(Debug)]
pub(super) struct WrapperPointer {
    /// The address that it points to.
    pub(super) to: u64,
    /// Offset of the pointer in the file.
    pub(super) at: u64,
    /// Whether the pointer's bytes are its value. Otherwise only the addend is, and they are zero.
    pub(super) stored: bool,
    /// Offset of the addend of the relocation that makes it.
    pub(super) addend: Option<u64>,
    /// Offset of the value of the symbol that the relocation names.
    pub(super) symbol: Option<u64>,
}

/// The pointers of all wrappers into `range`.
///
/// # Errors
/// A pointer that cannot be changed, or a relocation outside of all wrappers that points there, too.
pub(super) fn pointers_into(
    program: &LinkedProgram<'_>,
    range: &Range<u64>,
) -> Result<Vec<WrapperPointer>, Diagnostic> {
    let relocations = DynamicRelocations::read(program)?;
    let mut found = Vec::new();
    let mut places = Vec::new();
    for section in program.sections.all.iter().filter(|section| program.is_named(section, ".hipFatBinSegment")) {
        // The stated memory size of a section may exceed any file.
        let content = program.section_content(section);
        for start in (0..content.len() as u64 / WRAPPER).map(|number| number * WRAPPER) {
            if u32_at(content, start) != Some(MAGIC) || u32_at(content, start + 4) != Some(1) {
                continue;
            }
            let pointer = wrapper_pointer(program, &relocations, section, start + 8)?;
            if range.contains(&pointer.to) {
                places.push(section.address + start + 8);
                found.push(pointer);
            }
        }
    }
    if let Some(place) = relocations.other_pointer_into(program, range, &places) {
        return Err(no_place(format!("what is no wrapper points to it, too (at address {place:#x})")));
    }
    Ok(found)
}

fn wrapper_pointer(
    program: &LinkedProgram<'_>,
    relocations: &DynamicRelocations,
    section: &SectionHeader,
    start: u64,
) -> Result<WrapperPointer, Diagnostic> {
    let address = section.address + start;
    let field = program.offset_of(address, 8).and_then(|at| Some((at, u64_at(program.bytes, at)?)));
    let Some((at, value)) = field else {
        return Err(malformed_at("a wrapper is not in a loaded segment", section.offset + start));
    };
    if let Some(relocation) = relocations.rela.get(&address) {
        if ABSOLUTE.contains(&relocation.kind) {
            return by_symbol(program, relocations, relocation, at);
        }
        if !RELATIVE.contains(&relocation.kind) {
            return Err(no_place(format!("a wrapper's pointer has relocation type {}", relocation.kind)));
        }
        let stored = value == relocation.addend;
        return Ok(WrapperPointer {
            to: relocation.addend,
            at,
            stored,
            addend: Some(relocation.addend_at),
            symbol: None,
        });
    }
    if program.is_movable() && !relocations.relr.contains(&address) {
        return Err(no_place(format!("no relocation is known for a wrapper's pointer at address {address:#x}")));
    }
    Ok(WrapperPointer { to: value, at, stored: true, addend: None, symbol: None })
}

/// A pointer whose relocation names a symbol. The loader ignores the bytes in its place.
fn by_symbol(
    program: &LinkedProgram<'_>,
    relocations: &DynamicRelocations,
    relocation: &DynamicRelocation,
    at: u64,
) -> Result<WrapperPointer, Diagnostic> {
    let number = relocation.symbol;
    let symbol = relocations.symbols.and_then(|table| table.checked_add(u64::from(number).checked_mul(SYMBOL)?));
    let header = symbol
        .and_then(|symbol| Some((symbol, u16_at(program.bytes, symbol + 6)?, u64_at(program.bytes, symbol + 8)?)));
    let Some((symbol, section, value)) = header else {
        return Err(malformed_at("a relocation names a symbol that is not there", relocation.addend_at));
    };
    let is_bundles =
        program.sections.all.get(usize::from(section)).is_some_and(|section| program.is_named(section, SECTION));
    if !is_bundles || relocation.addend != 0 {
        return Err(no_place(format!("a wrapper's pointer is made of symbol {number}, which is none of a bundle")));
    }
    Ok(WrapperPointer { to: value, at, stored: false, addend: None, symbol: Some(symbol + 8) })
}

#[derive(Debug)]
struct DynamicRelocation {
    kind: u32,
    /// The number of its symbol.
    symbol: u32,
    addend: u64,
    addend_at: u64,
}

/// Dynamic relocations by the address that they change.
#[derive(Debug, Default)]
struct DynamicRelocations {
    rela: BTreeMap<u64, DynamicRelocation>,
    relr: std::collections::BTreeSet<u64>,
    /// Offset of the table of symbols that they name.
    symbols: Option<u64>,
}

impl DynamicRelocations {
    fn read(program: &LinkedProgram<'_>) -> Result<Self, Diagnostic> {
        let mut found = Self::default();
        let Some(dynamic) = &program.dynamic else { return Ok(found) };
        let table = slice(program.bytes, dynamic.offset, dynamic.file_size).unwrap_or_default();
        let entries = table.chunks_exact(16).map(|entry| (u64_at(entry, 0), u64_at(entry, 8)));
        let entries: BTreeMap<u64, u64> =
            entries.map_while(|(tag, value)| Some((tag.filter(|tag| *tag != 0)?, value?))).collect();
        if entries.contains_key(&DT_REL) || DT_ANDROID.iter().any(|tag| entries.contains_key(tag)) {
            return Err(no_place("its dynamic relocations are of a form that x86-64 and AArch64 Linux do not use"));
        }
        found.symbols = entries.get(&DT_SYMTAB).and_then(|address| program.offset_of(*address, SYMBOL));
        if let Some(DynamicTable { address, size }) = dynamic_table(DT_RELA, DT_RELASZ, &entries) {
            let Some(offset) = program.offset_of(address, size) else { return Err(outside_segments(dynamic)) };
            found.rela =
                (0..size / RELA).filter_map(|number| read_rela(program.bytes, offset + number * RELA)).collect();
        }
        if let Some(DynamicTable { address, size }) = dynamic_table(DT_RELR, DT_RELRSZ, &entries) {
            let Some(offset) = program.offset_of(address, size) else { return Err(outside_segments(dynamic)) };
            found.read_relr(slice(program.bytes, offset, size).unwrap_or_default());
        }
        Ok(found)
    }

    /// Even words are addresses; odd ones are bits for the 63 words after the last one.
    fn read_relr(&mut self, table: &[u8]) {
        let mut next = 0u64;
        for word in table.chunks_exact(8).filter_map(|word| u64_at(word, 0)) {
            if word & 1 == 0 {
                self.relr.insert(word);
                next = word.wrapping_add(8);
                continue;
            }
            let bits = (0..63u64).filter(|bit| word >> (bit + 1) & 1 != 0);
            self.relr.extend(bits.map(|bit| next.wrapping_add(bit * 8)));
            next = next.wrapping_add(63 * 8);
        }
    }

    /// The address of a relocated pointer into `range` that is not in `known`.
    fn other_pointer_into(&self, program: &LinkedProgram<'_>, range: &Range<u64>, known: &[u64]) -> Option<u64> {
        let relative = self.rela.iter().filter(|(_, found)| RELATIVE.contains(&found.kind));
        let rela = relative.map(|(place, found)| (*place, Some(found.addend)));
        let relr = self.relr.iter().map(|place| (*place, stored_pointer_value(*place, program)));
        let mut inside = rela.chain(relr).filter(|(_, to)| to.is_some_and(|to| range.contains(&to)));
        inside.find(|(place, _)| !known.contains(place)).map(|(place, _)| place)
    }
}

/// A table that the dynamic section describes.
struct DynamicTable {
    address: u64,
    size: u64,
}

/// The table whose address and size have these tags.
fn dynamic_table(start: u64, size: u64, entries: &BTreeMap<u64, u64>) -> Option<DynamicTable> {
    Some(DynamicTable { address: *entries.get(&start)?, size: entries.get(&size).copied().unwrap_or_default() })
}

fn stored_pointer_value(place: u64, program: &LinkedProgram<'_>) -> Option<u64> {
    program.offset_of(place, 8).and_then(|at| u64_at(program.bytes, at))
}

fn read_rela(bytes: &[u8], at: u64) -> Option<(u64, DynamicRelocation)> {
    let (kind, symbol) = (u32_at(bytes, at + 8)?, u32_at(bytes, at + 12)?);
    let relocation = DynamicRelocation { kind, symbol, addend: u64_at(bytes, at + 16)?, addend_at: at + 16 };
    Some((u64_at(bytes, at)?, relocation))
}

fn outside_segments(dynamic: &ProgramSegment) -> Diagnostic {
    malformed_at("relocations lie in no segment", dynamic.offset)
}
