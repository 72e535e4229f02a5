//! Functions of a code section, by the symbol tables.

use crate::padding::NOP;
use hotswap_code_object::image::{ObjectImage, SymbolRow, SymbolRows};
use hotswap_code_object::kernel_descriptor::{self, KernelDescriptor};
use object::elf;
use std::collections::HashMap;
use std::ops::Range;

/// A named range of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
    /// Hardware that preloads arguments starts at [`SECOND_ENTRY`] bytes from the begin.
    pub(crate) has_second_entry: bool,
    /// Kernels that begin inside.
    pub(crate) inside: Vec<InnerKernel>,
}

/// A kernel that begins inside of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InnerKernel {
    pub(crate) offset: u64,
    pub(crate) name: String,
}

/// Bytes between the two entries of a kernel.
pub(crate) const SECOND_ENTRY: u64 = 256;

/// The functions of each section by offset; overlapping ones are merged.
pub(crate) fn function_ranges(image: &ObjectImage<'_>, tables: &[SymbolRows<'_>]) -> Vec<Vec<NamedRange>> {
    let symbols = tables.iter().flat_map(|table| &table.rows);
    let descriptors: HashMap<&str, bool> = symbols
        .clone()
        .filter_map(|symbol| Some((symbol.name.strip_suffix(".kd")?, preloads_arguments(image, symbol))))
        .collect();
    let mut found: Vec<Vec<NamedRange>> = image.sections.iter().map(|_| Vec::new()).collect();
    for symbol in symbols.filter(|symbol| symbol.kind == elf::STT_FUNC) {
        let Some(number) = symbol.section else { continue };
        let section = &image.sections[number];
        let descriptor = descriptors.get(symbol.name);
        let (is_kernel, has_second_entry) = (descriptor.is_some(), descriptor == Some(&true));
        // A kernel without instructions may begin at the end, and must be aligned there, too.
        let length = section.bytes.len() as u64;
        let start = symbol.value.checked_sub(section.address).filter(|one| is_inside_section(one, length, is_kernel));
        let Some(start) = start.filter(|_| section.is_code()) else { continue };
        let end = start.saturating_add(symbol.size).min(section.size);
        let (name, inside) = (symbol.name.to_owned(), Vec::new());
        found[number].push(NamedRange { start, end, name, is_kernel, has_second_entry, inside });
    }
    found.into_iter().zip(&image.sections).map(|(found, section)| complete_sizes(found, section.bytes)).collect()
}

fn is_inside_section(start: &u64, length: u64, is_kernel: bool) -> bool {
    *start < length || *start == length && is_kernel
}

/// The data with a name and a size in each section with code, by place.
pub(crate) fn named_data(image: &ObjectImage<'_>, tables: &[SymbolRows<'_>]) -> Vec<Vec<Range<u64>>> {
    let mut found: Vec<Vec<Range<u64>>> = image.sections.iter().map(|_| Vec::new()).collect();
    let objects = tables.iter().flat_map(|table| &table.rows).filter(|row| row.kind == elf::STT_OBJECT && row.size > 0);
    for symbol in objects {
        let Some(number) = symbol.section else { continue };
        let section = &image.sections[number];
        let start = symbol.value.checked_sub(section.address).filter(|start| *start < section.bytes.len() as u64);
        found[number]
            .extend(start.filter(|_| section.is_code()).map(|start| start..clamped_symbol_end(start, symbol, section)));
    }
    found.iter_mut().for_each(|ranges| ranges.sort_unstable_by_key(|range| (range.start, range.end)));
    found
}

fn clamped_symbol_end(
    start: u64,
    symbol: &SymbolRow<'_>,
    section: &hotswap_code_object::image::SectionPart<'_>,
) -> u64 {
    start.saturating_add(symbol.size).min(section.size)
}

/// Whether a kernel with that descriptor has a second entry. From GFX12.5 on the only entry
/// finds its arguments preloaded.
fn preloads_arguments(image: &ObjectImage<'_>, symbol: &SymbolRow<'_>) -> bool {
    let processor = image.flags.target_id().processor;
    let bytes = symbol.section.and_then(|number| {
        let section = &image.sections[number];
        let start = usize::try_from(symbol.value.checked_sub(section.address)?).ok()?;
        section.bytes.get(start..)?.get(..kernel_descriptor::SIZE)
    });
    let descriptor = bytes.and_then(|bytes| KernelDescriptor::new(bytes, processor));
    let count = descriptor.and_then(|descriptor| descriptor.get(kernel_descriptor::PRELOAD_LENGTH));
    processor.name.starts_with("gfx9") && count.is_some_and(|count| count > 0)
}

/// Sorts functions, and extends those without a size up to the next one.
fn complete_sizes(mut found: Vec<NamedRange>, bytes: &[u8]) -> Vec<NamedRange> {
    let size = bytes.len() as u64;
    found.sort_by(|a, b| (a.start, a.end, &a.name).cmp(&(b.start, b.end, &b.name)));
    let starts: Vec<u64> = found.iter().map(|function| function.start).collect();
    for function in found.iter_mut().filter(|function| function.end == function.start) {
        let next = starts[starts.partition_point(|start| *start <= function.start)..].first().copied().unwrap_or(size);
        let rest = &bytes[function.start as usize..next as usize];
        function.end = function.start + code_before_padding(rest);
    }
    merge_ranges(found)
}

fn merge_ranges(found: Vec<NamedRange>) -> Vec<NamedRange> {
    let mut merged: Vec<NamedRange> = Vec::with_capacity(found.len());
    for function in found {
        match merged.last_mut().filter(|last| function.start < last.end || function.start == last.start) {
            Some(last) => {
                last.end = last.end.max(function.end);
                last.is_kernel |= function.is_kernel && function.start == last.start;
                last.has_second_entry |= function.has_second_entry && function.start == last.start;
                if function.is_kernel && function.start != last.start {
                    last.inside.push(InnerKernel { offset: function.start, name: function.name });
                }
            }
            None => merged.push(function),
        }
    }
    merged
}

/// The size of the bytes without the padding words at their end.
pub(crate) fn code_before_padding(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    if rest.iter().any(|byte| *byte != 0) {
        return bytes.len() as u64;
    }
    let code = words.iter().rposition(|word| !is_padding_encoding(word)).map_or(0, |last| last + 1);
    code as u64 * 4
}

fn is_padding_encoding(word: &[u8; 4]) -> bool {
    [NOP, crate::padding::CODE_END, 0].contains(&u32::from_le_bytes(*word))
}
