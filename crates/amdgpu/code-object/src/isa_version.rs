//! `__oclc_ISA_version`: the constant with the number of the GPU ([`Processor::isa_version`]), which ROCm's device
//! library defines in each unit that uses it.
//!
//! Optimised code lacks a trace of it, since each comparison with it is folded by then. Code of -O0 loads it at run
//! time. Clang emits it as a local symbol of 4 bytes in read-only data; units that are linked as bitcode have one each,
//! with a suffix in the name.
//!
//! A symbol alone proves nothing: files are stripped, and a linker that merges constants gives one address to several.
//! So each aligned word of read-only data that holds the source's number counts, and must be one of these:
//!
//! | the word | is |
//! |---|---|
//! | has symbols of that name alone | the constant |
//! | has one of that name and another one | refused: both would change |
//! | has another symbol | data of the program |
//! | lacks a symbol, and no instruction has its address | data of the program: code reads it by its own address |
//! | lacks a symbol, and code may have its address | refused: it may be the constant of a stripped file |
//!
//! Absent on purpose: numbers that the compiler computed with. The library compares its constant and does nothing else
//! with it (a test reads the library's bitcode), and the results depend on bounds that no instruction shows.

use crate::elf::{Elf, ObjectKind};
use crate::object_file::CodeObject;
use crate::symbols::{FileSymbol, defined_symbols};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::Processor;
use object::LittleEndian as LE;
use object::elf;
use std::ops::Range;

const NAME: &str = "__oclc_ISA_version";
const SIZE: usize = 4;
/// Distance from the literal back to the program counter to which it is added: `s_add_u32` directly after
/// `s_getpc_b64`, or with one or two instructions between them (sign extension, waits).
const BACK: [u64; 3] = [4, 8, 12];

/// Whether a symbol of that name is the constant.
fn is_constant(name: &str) -> bool {
    name.strip_prefix(NAME).is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('.'))
}

/// Offsets in the file of the constants to change, so that code for the processor of `object` becomes code for
/// `target`; none where both have the same number.
///
/// # Errors
/// `NOT_SAFE`, with the offset: see the module.
pub(crate) fn find_constants(object: &CodeObject<'_>, target: &Processor) -> Result<Vec<usize>, Diagnostic> {
    let source = object.target_id().processor;
    let (own, wanted) = (source.isa_version, target.isa_version);
    if own == wanted {
        return Ok(Vec::new());
    }
    let constants = constant_positions(object)?;
    if let Some(at) = constants.first().filter(|_| own.is_none() || wanted.is_none()) {
        let unknown = if own.is_none() { source.name } else { target.name };
        return Err(isa_constant_refusal(
            *at,
            format!("the number of {unknown} in ROCm's device library is not known"),
        ));
    }
    let Some((own, wanted)) = own.zip(wanted) else { return Ok(Vec::new()) };
    let mut places = Vec::new();
    for at in constants {
        match word_at(object.bytes(), at) {
            Some(value) if value == own => places.push(at),
            Some(value) if value == wanted => {}
            value => {
                let value = value.unwrap_or_default();
                return Err(isa_constant_refusal(at, format!("`{NAME}` is {value}, which is not {source} ({own})"))
                    .advise("compile the source again: this object was made by hand or by an older HotSwap"));
            }
        }
    }
    check_unambiguous(object, &places, own).map(|()| places)
}

fn isa_constant_refusal(at: usize, what: String) -> Diagnostic {
    Diagnostic::error(codes::NOT_SAFE, what).at_offset(at as u64)
}

/// Positions of the symbols of that name, each once.
fn constant_positions(object: &CodeObject<'_>) -> Result<Vec<usize>, Diagnostic> {
    let elf = object.elf();
    let mut found = Vec::new();
    elf.for_symbols(
        |symbol| symbol.st_size.get(LE) == SIZE as u64,
        |symbol| {
            if is_constant(symbol.name) {
                let range = match elf.kind {
                    ObjectKind::Linked => elf.file_range(symbol.value, SIZE as u64),
                    ObjectKind::Relocatable => elf.section_range(symbol.section, symbol.value, SIZE as u64),
                };
                let range = range.filter(|range| read_only_data(elf).any(|(_, data)| contains_range(&data, range)));
                let Some(range) = range else {
                    let what = format!("`{}` is not in read-only data", symbol.name);
                    return Err(Diagnostic::error(codes::NOT_SAFE, what).at_offset(symbol.offset as u64));
                };
                found.push(range.start);
            }
            Ok(())
        },
    )?;
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Checks that no word that is or may be the constant is anything else or omitted.
fn check_unambiguous(object: &CodeObject<'_>, places: &[usize], own: u32) -> Result<(), Diagnostic> {
    let elf = object.elf();
    if elf.kind == ObjectKind::Relocatable {
        // Nothing is merged or stripped before the link, and relocations hold the addresses.
        return Ok(());
    }
    let words: Vec<ConstantWord> = matching_words(elf, own).collect();
    if words.is_empty() {
        return Ok(());
    }
    let symbols: Vec<FileSymbol<'_>> = defined_symbols(elf).filter(|symbol| !is_constant(&symbol.name)).collect();
    let mut nameless = Vec::new();
    for ConstantWord { address, at } in words {
        let other = symbols.iter().find(|symbol| symbol.is_data && symbol.covers_address(address));
        match (places.contains(&at), other) {
            (true, Some(other)) => {
                let what = format!("`{NAME}` and `{}` are one constant, because the linker merged them", other.name);
                return Err(Diagnostic::error(codes::NOT_SAFE, what).at_offset(at as u64));
            }
            (false, None) => nameless.push(ConstantWord { address, at }),
            _ => {}
        }
    }
    nameless.sort_unstable();
    let Some(at) = first_referenced(elf, &nameless) else { return Ok(()) };
    let source = object.target_id().processor;
    let what = format!(
        "code reads the number of {source} ({own}) from a place without a symbol: it may be `{NAME}`, by which code of -O0 \
         asks for the GPU"
    );
    Err(Diagnostic::error(codes::NOT_SAFE, what)
        .at_offset(at as u64)
        .advise("make it from the file before it was stripped, or compile with -O1 or more, or for the target"))
}

fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn contains_range(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Addresses and ranges of read-only data; without sections, the segments that cannot be written or executed.
fn read_only_data<'e>(elf: &'e Elf<'_>) -> Box<dyn Iterator<Item = (u64, Range<usize>)> + 'e> {
    let changing = u64::from(elf::SHF_WRITE | elf::SHF_EXECINSTR);
    if elf.sections.is_empty() {
        let read_only =
            elf.segments.iter().filter(|one| one.kind == elf::PT_LOAD && one.flags & (elf::PF_W | elf::PF_X) == 0);
        return Box::new(read_only.map(|segment| (segment.address, segment.range.clone())));
    }
    let data = elf.sections.iter().filter(move |section| {
        section.kind == elf::SHT_PROGBITS
            && section.flags & u64::from(elf::SHF_ALLOC) != 0
            && section.flags & changing == 0
    });
    Box::new(data.map(|section| (section.address, section.range.clone())))
}

/// A word of read-only data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ConstantWord {
    address: u64,
    /// Its offset in the file.
    at: usize,
}

/// The aligned words of read-only data with that value.
fn matching_words<'e>(elf: &'e Elf<'_>, value: u32) -> impl Iterator<Item = ConstantWord> + 'e {
    read_only_data(elf).flat_map(move |(address, range)| {
        let first = (address.next_multiple_of(SIZE as u64) - address) as usize;
        let bytes = elf.data.get(range.start + first..range.end).unwrap_or_default();
        let found = bytes.chunks_exact(SIZE).enumerate().filter(move |(_, word)| **word == value.to_le_bytes());
        found
            .map(move |(number, _)| first + number * SIZE)
            .map(move |offset| ConstantWord { address: address + offset as u64, at: range.start + offset })
    })
}

/// The position of the first of these words, which are sorted, whose address code may have.
fn first_referenced(elf: &Elf<'_>, words: &[ConstantWord]) -> Option<usize> {
    if words.is_empty() {
        return None;
    }
    let segments = elf.segments.iter().filter(|one| one.kind == elf::PT_LOAD && one.flags & elf::PF_X != 0);
    let literals = segments.flat_map(|segment| {
        let bytes = elf.data.get(segment.range.clone()).unwrap_or_default();
        bytes.chunks_exact(SIZE).zip((segment.address..).step_by(SIZE))
    });
    literals
        .flat_map(|(literal, address)| {
            let distance = i64::from(i32::from_le_bytes([literal[0], literal[1], literal[2], literal[3]]));
            BACK.map(|back| address.wrapping_sub(back).wrapping_add_signed(distance))
        })
        .find_map(|address| words.binary_search_by_key(&address, |word| word.address).ok())
        .and_then(|number| words.get(number))
        .map(|word| word.at)
}
