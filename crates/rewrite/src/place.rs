//! Functions of a code section, by the symbol tables.

use crate::padding::NOP;
use hotswap_code_object::image::{Image, SymbolRows};
use object::elf;
use std::collections::HashSet;

/// A stretch of code with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
}

/// The functions of each section by place; those that overlap are one.
pub(crate) fn functions(image: &Image<'_>, tables: &[SymbolRows<'_>]) -> Vec<Vec<Function>> {
    let symbols = || tables.iter().flat_map(|table| &table.rows);
    let descriptors: HashSet<&str> = symbols().filter_map(|symbol| symbol.name.strip_suffix(".kd")).collect();
    let mut found: Vec<Vec<Function>> = image.sections.iter().map(|_| Vec::new()).collect();
    for symbol in symbols().filter(|symbol| symbol.kind == elf::STT_FUNC) {
        let Some(number) = symbol.section else { continue };
        let section = &image.sections[number];
        let start = symbol.value.checked_sub(section.address).filter(|start| *start < section.bytes.len() as u64);
        let Some(start) = start.filter(|_| section.is_code()) else { continue };
        let end = start.saturating_add(symbol.size).min(section.size);
        let is_kernel = descriptors.contains(symbol.name);
        found[number].push(Function { start, end, name: symbol.name.to_owned(), is_kernel });
    }
    found.into_iter().zip(&image.sections).map(|(found, section)| complete(found, section.bytes)).collect()
}

/// Sorts functions, and gives those without a size what is up to the next one.
fn complete(mut found: Vec<Function>, bytes: &[u8]) -> Vec<Function> {
    let size = bytes.len() as u64;
    found.sort_by(|a, b| (a.start, a.end, &a.name).cmp(&(b.start, b.end, &b.name)));
    let starts: Vec<u64> = found.iter().map(|function| function.start).collect();
    for function in found.iter_mut().filter(|function| function.end == function.start) {
        let next = starts[starts.partition_point(|start| *start <= function.start)..].first().copied().unwrap_or(size);
        let rest = &bytes[function.start as usize..next as usize];
        function.end = function.start + code_before_padding(rest);
    }
    merge(found)
}

fn merge(found: Vec<Function>) -> Vec<Function> {
    let mut merged: Vec<Function> = Vec::with_capacity(found.len());
    for function in found {
        match merged.last_mut().filter(|last| function.start < last.end || function.start == last.start) {
            Some(last) => {
                last.end = last.end.max(function.end);
                last.is_kernel |= function.is_kernel && function.start == last.start;
            }
            None => merged.push(function),
        }
    }
    merged
}

/// How much of the bytes is left when padding words at their end are taken away.
pub(crate) fn code_before_padding(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    if rest.iter().any(|byte| *byte != 0) {
        return bytes.len() as u64;
    }
    let is_padding = |word: &[u8; 4]| [NOP, crate::padding::CODE_END, 0].contains(&u32::from_le_bytes(*word));
    let code = words.iter().rposition(|word| !is_padding(word)).map_or(0, |last| last + 1);
    code as u64 * 4
}
