//! Kernel descriptors: 64 bytes each, found by the symbol `NAME.kd`.
//!
//! Only fields that runtimes and these tools rely on are read; the register settings stay bytes.

mod bounds;

use crate::CodeObject;
use crate::elf::{DefinedSymbol, Elf, ElfSectionView, ElfSegment, ObjectKind};
use crate::malformed;
use crate::metadata::KernelMetadata;
use bounds::CodeBounds;
use foldhash::{HashMap, HashMapExt};
use hotswap_report::Diagnostic;
use hotswap_targets::Processor;
use object::LittleEndian as LE;
use object::elf::{PF_X, PT_NOTE, SHT_DYNSYM, SHT_SYMTAB, Sym64};
use rayon::prelude::*;
use std::collections::hash_map::Entry;
use std::ops::Range;

/// Minimum number of kernels for a search on all cores: that many take about a millisecond.
pub(crate) const MANY: usize = 4096;

/// Size of a descriptor.
const SIZE: u64 = 64;
/// Bit 10 of the code properties: the kernel runs in waves of 32 lanes.
const WAVE32: u16 = 1 << 10;

/// Position and address of a kernel's descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptorLocation {
    /// Its 64 bytes in the file.
    pub range: Range<usize>,
    /// Address of the descriptor in a linked file, its offset in the section in a relocatable one.
    pub address: u64,
    /// Address of the first instruction; 0 in a relocatable file, where a relocation gives it.
    pub entry: u64,
}

pub(crate) struct DescriptorSymbol {
    /// Offset of the symbol's record.
    symbol: usize,
    value: u64,
    section: usize,
    is_local: bool,
}

/// The symbols of descriptors, by name.
pub(crate) type DescriptorSymbols<'a> = HashMap<&'a str, DescriptorSymbol>;

/// The descriptor of each kernel, in the order of the note.
pub(crate) fn find_descriptors(
    elf: &Elf<'_>,
    places: Result<DescriptorSymbols<'_>, Diagnostic>,
    kernels: &[KernelMetadata<'_>],
    processor: &Processor,
) -> Result<Vec<DescriptorLocation>, Diagnostic> {
    if kernels.is_empty() {
        return Ok(Vec::new());
    }
    let places = places?;
    let bounds = CodeBounds::new(elf);
    let finder = DescriptorFinder { elf, places: &places, bounds: &bounds, processor };
    if kernels.len() < MANY {
        return finder.find_all(kernels);
    }
    let chunks = kernels.par_chunks(MANY / 4);
    let found: Vec<Result<Vec<_>, _>> = chunks.map(|kernels| finder.find_all(kernels)).collect();
    let mut all = Vec::with_capacity(kernels.len());
    for some in found {
        all.append(&mut some?);
    }
    Ok(all)
}

struct DescriptorFinder<'f, 'a> {
    elf: &'f Elf<'a>,
    places: &'f DescriptorSymbols<'a>,
    bounds: &'f CodeBounds<'f, 'a>,
    processor: &'f Processor,
}

impl DescriptorFinder<'_, '_> {
    fn find_all(&self, kernels: &[KernelMetadata<'_>]) -> Result<Vec<DescriptorLocation>, Diagnostic> {
        kernels.iter().map(|kernel| self.find_of_kernel(kernel)).collect()
    }

    fn find_of_kernel(&self, kernel: &KernelMetadata<'_>) -> Result<DescriptorLocation, Diagnostic> {
        let place = self.places.get(kernel.symbol).ok_or_else(|| {
            kernel_descriptor_error(0, format!("there is no symbol `{}` of 64 bytes", kernel.symbol), kernel.name)
        })?;
        let descriptor = read_descriptor(self.elf, place).ok_or_else(|| descriptor_outside_error(place, kernel))?;
        let name = kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name);
        if self.elf.kind == ObjectKind::Linked && !self.bounds.can_enter(name, descriptor.entry)? {
            return Err(descriptor_outside_error(place, kernel));
        }
        check_wave(self.elf, &descriptor, kernel, self.processor)
            .map_err(|what| kernel_descriptor_error(descriptor.range.start, what, kernel.name))?;
        Ok(descriptor)
    }
}

fn kernel_descriptor_error(offset: usize, what: String, kernel_name: &str) -> Diagnostic {
    let mut error = malformed(offset, what);
    error.place.kernel = Some(kernel_name.to_owned());
    error
}

fn descriptor_outside_error(place: &DescriptorSymbol, kernel: &KernelMetadata<'_>) -> Diagnostic {
    kernel_descriptor_error(
        place.symbol,
        format!("`{}` leaves its section, or its code does", kernel.symbol),
        kernel.name,
    )
}

/// Whether `elf` has all bytes and positions from which the descriptors of `model` follow, kernels and target aside.
pub(crate) fn are_those(elf: &Elf<'_>, model: &CodeObject<'_>) -> bool {
    let old = model.elf();
    let pairs = old.sections.iter().zip(&elf.sections);
    let descriptor =
        |place: &DescriptorLocation| elf.data.get(place.range.clone()) == Some(&old.data[place.range.clone()]);
    old.kind == elf.kind
        && old.sections.len() == elf.sections.len()
        && pairs.clone().all(|one| is_similar_section(one, elf))
        && pairs.filter(is_symbol_table_pair).all(|one| has_equal_symbol_table(one, old, elf))
        && old.segments.iter().filter(is_compared_segment).eq(elf.segments.iter().filter(is_compared_segment))
        && model.descriptors().iter().all(descriptor)
}

fn is_similar_section((one, other): (&ElfSectionView<'_>, &ElfSectionView<'_>), elf: &Elf<'_>) -> bool {
    let is_there = elf.kind == ObjectKind::Linked || one.range == other.range;
    // At an empty section of code, kernels without instructions begin.
    let has_same_code = match [one.is_code(), other.is_code()] {
        [true, true] => one.address == other.address && one.range.len() == other.range.len(),
        [before, after] => before == after,
    };
    one.kind == other.kind && one.link == other.link && is_there && has_same_code
}

fn has_equal_content(one: &ElfSectionView<'_>, other: &ElfSectionView<'_>, old_data: &[u8], elf_data: &[u8]) -> bool {
    old_data[one.range.clone()] == elf_data[other.range.clone()]
}

fn has_equal_symbol_table(
    (one, other): (&ElfSectionView<'_>, &ElfSectionView<'_>),
    old: &Elf<'_>,
    elf: &Elf<'_>,
) -> bool {
    let strings = old.sections.get(one.link as usize).zip(elf.sections.get(other.link as usize));
    has_equal_content(one, other, old.data, elf.data)
        && strings.is_some_and(|(one, other)| has_equal_content(one, other, old.data, elf.data))
}

fn is_symbol_table_pair((one, _): &(&ElfSectionView<'_>, &ElfSectionView<'_>)) -> bool {
    [SHT_DYNSYM, SHT_SYMTAB].contains(&one.kind)
}

/// Segments of notes can hold nothing relevant.
fn is_compared_segment(segment: &&ElfSegment) -> bool {
    segment.kind != PT_NOTE || segment.flags & PF_X != 0
}

pub(crate) fn descriptor_symbols<'a>(elf: &Elf<'a>) -> Result<DescriptorSymbols<'a>, Diagnostic> {
    // Half of the symbols of a table are descriptors if only kernels have names.
    let tables = elf.sections.iter().filter(|section| [SHT_DYNSYM, SHT_SYMTAB].contains(&section.kind));
    let most = tables.map(|table| table.range.len() / size_of::<Sym64<LE>>()).max().unwrap_or(0);
    let mut places = HashMap::with_capacity(most / 2);
    let add =
        |symbol: DefinedSymbol<'a>| if symbol.name.ends_with(".kd") { add_symbol(&mut places, symbol) } else { Ok(()) };
    elf.for_symbols(|symbol| symbol.st_size.get(LE) == SIZE, add)?;
    Ok(places)
}

/// Both symbol tables have the descriptor; a local symbol never hides a global one.
fn add_symbol<'a>(places: &mut DescriptorSymbols<'a>, symbol: DefinedSymbol<'a>) -> Result<(), Diagnostic> {
    let DefinedSymbol { name, offset, value, section, is_local } = symbol;
    let place = DescriptorSymbol { symbol: offset, value, section, is_local };
    match places.entry(name) {
        Entry::Vacant(slot) => {
            slot.insert(place);
        }
        Entry::Occupied(mut slot) if slot.get().is_local => {
            slot.insert(place);
        }
        Entry::Occupied(slot) if !is_local && (slot.get().value, slot.get().section) != (value, section) => {
            return Err(malformed(offset, format!("the symbol `{name}` has two places")));
        }
        Entry::Occupied(_) => {}
    }
    Ok(())
}

fn read_descriptor(elf: &Elf<'_>, place: &DescriptorSymbol) -> Option<DescriptorLocation> {
    let address = place.value;
    let range = match elf.kind {
        ObjectKind::Linked => elf.file_range(address, SIZE)?,
        ObjectKind::Relocatable => elf.section_range(place.section, address, SIZE)?,
    };
    let entry = match elf.kind {
        ObjectKind::Linked => {
            let offset = i64::from_le_bytes(*elf.data[range.clone()].get(16..)?.first_chunk()?);
            address.checked_add_signed(offset)?
        }
        ObjectKind::Relocatable => 0,
    };
    Some(DescriptorLocation { range, address, entry })
}

/// Header, note and descriptor must agree on the number of lanes of a wave.
fn check_wave(
    elf: &Elf<'_>,
    descriptor: &DescriptorLocation,
    kernel: &KernelMetadata<'_>,
    processor: &Processor,
) -> Result<(), String> {
    let Some(lanes) = kernel.wavefront_size else { return Ok(()) };
    if !processor.waves.contains(lanes) {
        return Err(format!("the metadata states waves of {lanes} lanes, which {processor} does not have"));
    }
    let bytes = &elf.data[descriptor.range.clone()];
    let properties = u16::from_le_bytes([bytes[56], bytes[57]]);
    // Before GFX10 the bit is meaningless and 0.
    let stated = if properties & WAVE32 != 0 { 32 } else { 64 };
    if stated != lanes {
        return Err(format!("the metadata states waves of {lanes} lanes, the descriptor of {stated}"));
    }
    Ok(())
}
