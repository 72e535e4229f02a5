//! The code in a file: functions by their symbols, and everything else that can be executed.
//!
//! A *stretch* is a run of bytes in which instructions follow each other from the first byte on. Every kernel and every
//! function begins one. The bytes between them (padding, code whose symbols were stripped) are a stretch, too, but not
//! a *declared* one: there bytes that do not decode are expected. Only ranges of object symbols are data.
//!
//! Invariants: every byte of the executable sections and segments is in a stretch, except for declared data. Where the
//! previous function extends past the start of the next, the wave sizes of both count.
//!
//! Absent on purpose: following branches. Compilers emit no jump into the middle of an instruction.

use hotswap_code_object::{CodeMap, CodeObject, CodeSection, SymbolKind};
use hotswap_isa::Wave;
use std::ops::Range;

/// The `p_type` of segments that are loaded.
const PT_LOAD: u32 = 1;
/// The bit of `p_flags` for executable segments.
const PF_X: u32 = 1;

/// Wave sizes in which code may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WaveSizeSet {
    pub(crate) small: bool,
    pub(crate) large: bool,
}

impl WaveSizeSet {
    pub(crate) fn from_lanes(lanes: u64) -> Self {
        Self { small: lanes == 32, large: lanes != 32 }
    }

    pub(crate) fn union_with(self, other: Self) -> Self {
        Self { small: self.small || other.small, large: self.large || other.large }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Wave> {
        [(self.small, Wave::W32), (self.large, Wave::W64)].into_iter().filter_map(|(is, wave)| is.then_some(wave))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeStretch<'a> {
    /// Its range in the file.
    pub(crate) range: Range<usize>,
    /// The kernel or function.
    pub(crate) name: Option<&'a str>,
    /// Whether a symbol declares it as code.
    pub(crate) declared: bool,
    pub(crate) waves: WaveSizeSet,
}

/// The stretches of a code object. `waves` are those of its kernels, in which functions may be called.
pub(crate) fn code_stretches<'m>(
    object: &CodeObject<'_>,
    map: &'m CodeMap<'_>,
    waves: WaveSizeSet,
) -> Vec<CodeStretch<'m>> {
    let mut found: Vec<CodeStretch<'m>> = map.sections.iter().flat_map(|section| of_section(section, waves)).collect();
    let known = merge_ranges(map.sections.iter().map(|section| section.range.clone()).collect());
    let executable = object.segments().iter().filter(|segment| segment.kind == PT_LOAD && segment.flags & PF_X != 0);
    for segment in executable {
        let rest = subtract_ranges(segment.range.clone(), &known);
        found.extend(rest.map(|range| CodeStretch { range, name: None, declared: false, waves }));
    }
    found.retain(|stretch| !stretch.range.is_empty());
    found
}

/// The same bytes as ranges that are sorted and do not touch.
fn merge_ranges(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        match merged.last_mut().filter(|last| last.end >= range.start) {
            Some(last) => last.end = last.end.max(range.end),
            None => merged.push(range),
        }
    }
    merged
}

/// `range` without `holes`, which are merged.
fn subtract_ranges(range: Range<usize>, holes: &[Range<usize>]) -> impl Iterator<Item = Range<usize>> {
    let first = holes.partition_point(|hole| hole.end <= range.start);
    let inside: Vec<Range<usize>> =
        holes.iter().skip(first).take_while(|hole| hole.start < range.end).cloned().collect();
    let starts: Vec<usize> = std::iter::once(range.start).chain(inside.iter().map(|hole| hole.end)).collect();
    let ends = inside.into_iter().map(|hole| hole.start).chain([range.end]);
    starts.into_iter().zip(ends.collect::<Vec<_>>()).map(|(start, end)| start..end).filter(|part| part.start < part.end)
}

/// The start of a function or kernel.
struct FunctionStart<'a> {
    offset: usize,
    /// 0: up to the next.
    size: usize,
    name: &'a str,
    /// Those of the kernels that begin here.
    waves: Option<WaveSizeSet>,
}

fn symbol_starts<'m>(section: &'m CodeSection<'_>) -> Vec<FunctionStart<'m>> {
    let mut starts: Vec<FunctionStart<'m>> = Vec::new();
    for symbol in &section.symbols {
        let waves = match &symbol.kind {
            SymbolKind::Kernel(facts) => Some(WaveSizeSet::from_lanes(u64::from(facts.lanes))),
            SymbolKind::Function => None,
            SymbolKind::Object | SymbolKind::Label => continue,
        };
        match starts.last_mut().filter(|last| last.offset == symbol.offset) {
            Some(last) => {
                last.size = last.size.max(symbol.size);
                last.waves = last.waves.into_iter().chain(waves).reduce(WaveSizeSet::union_with);
            }
            None => starts.push(FunctionStart { offset: symbol.offset, size: symbol.size, name: &symbol.name, waves }),
        }
    }
    starts
}

/// Code of a section that no symbol names.
struct NamelessCode<'n, 'm> {
    section: &'m CodeSection<'m>,
    /// The ranges that are data.
    data: &'n [Range<usize>],
    waves: WaveSizeSet,
}

impl<'m> NamelessCode<'_, 'm> {
    fn stretches_in(&self, range: Range<usize>) -> impl Iterator<Item = CodeStretch<'m>> {
        subtract_ranges(range, self.data).map(|part| CodeStretch {
            range: section_file_range(part, self.section),
            name: None,
            declared: false,
            waves: self.waves,
        })
    }
}

fn of_section<'m>(section: &'m CodeSection<'m>, of_object: WaveSizeSet) -> Vec<CodeStretch<'m>> {
    let (starts, data, length) = (symbol_starts(section), data_ranges(section), section.bytes.len());
    let nameless = NamelessCode { section, data: &data, waves: of_object };
    let before_first = 0..starts.first().map_or(length, |start| start.offset);
    let mut found: Vec<CodeStretch<'m>> = nameless.stretches_in(before_first).collect();
    // The end of the previous functions, and their wave sizes.
    let (mut end, mut before) = (0, WaveSizeSet::default());
    for (number, start) in starts.iter().enumerate() {
        let next = starts.get(number + 1).map_or(length, |next| next.offset);
        let own = start.waves.unwrap_or(of_object);
        let waves = if end > start.offset { own.union_with(before) } else { own };
        let own_end = if start.size == 0 { next } else { start.offset.saturating_add(start.size) };
        (end, before) = (end.max(own_end), waves);
        let declared = start.offset..end.min(next);
        let rest = declared.end..next;
        found.push(CodeStretch {
            range: section_file_range(declared, section),
            name: Some(start.name),
            declared: true,
            waves,
        });
        found.extend(nameless.stretches_in(rest));
    }
    found
}

fn section_file_range(range: Range<usize>, section: &CodeSection<'_>) -> Range<usize> {
    section.range.start + range.start..section.range.start + range.end
}

/// The ranges of object symbols.
fn data_ranges(section: &CodeSection<'_>) -> Vec<Range<usize>> {
    let objects = section.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Object && symbol.size > 0);
    merge_ranges(objects.map(|symbol| symbol.offset..symbol.offset.saturating_add(symbol.size)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_code_object::{CodeSymbol, KernelFacts};

    fn symbol(name: &'static str, kind: SymbolKind, offset: usize, size: usize) -> CodeSymbol<'static> {
        CodeSymbol { name: name.into(), kind, offset, size, is_global: true }
    }

    fn kernel(lanes: u8) -> SymbolKind {
        SymbolKind::Kernel(KernelFacts { lanes, ..KernelFacts::default() })
    }

    fn section(symbols: Vec<CodeSymbol<'static>>) -> CodeSection<'static> {
        static BYTES: [u8; 100] = [0; 100];
        let (name, relocations) = (".text".into(), vec![]);
        CodeSection { number: None, name, address: 0, range: 1000..1100, bytes: &BYTES, symbols, relocations }
    }

    /// Start and end in the section, name, lanes; `-` for ranges without a symbol.
    fn told(section: &CodeSection<'_>) -> Vec<String> {
        let both = WaveSizeSet { small: true, large: true };
        let row = |stretch: CodeStretch<'_>| {
            let Range { start, end } = stretch.range;
            let lanes = match (stretch.waves.small, stretch.waves.large) {
                (true, true) => "both",
                (true, false) => "32",
                (false, true) => "64",
                (false, false) => "none",
            };
            assert_eq!(stretch.declared, stretch.name.is_some());
            format!("{} {} {} {lanes}", start - 1000, end - 1000, stretch.name.unwrap_or("-"))
        };
        of_section(section, both).into_iter().filter(|stretch| !stretch.range.is_empty()).map(row).collect()
    }

    #[test]
    fn kernels_have_their_own_wave_size_and_functions_that_of_all_kernels() {
        let symbols = vec![
            symbol("a", kernel(32), 4, 16),
            symbol("a", SymbolKind::Function, 4, 20),
            symbol("label", SymbolKind::Label, 12, 0),
            symbol("b", kernel(64), 32, 0),
            symbol("f", SymbolKind::Function, 60, 20),
        ];
        assert_eq!(
            told(&section(symbols)),
            ["0 4 - both", "4 24 a 32", "24 32 - both", "32 60 b 64", "60 80 f both", "80 100 - both"]
        );
    }

    #[test]
    fn data_is_left_out_only_where_no_function_is() {
        let symbols = vec![
            symbol("a", kernel(32), 0, 40),
            symbol("inside", SymbolKind::Object, 8, 8),
            symbol("behind", SymbolKind::Object, 36, 12),
            symbol("empty", SymbolKind::Object, 60, 0),
            symbol("last", SymbolKind::Object, 92, 500),
        ];
        assert_eq!(told(&section(symbols)), ["0 40 a 32", "48 92 - both"]);
    }

    #[test]
    fn what_a_function_flows_into_is_read_in_its_waves_too() {
        let symbols = vec![
            symbol("a", kernel(32), 0, 60),
            symbol("b", kernel(64), 20, 20),
            symbol("c", kernel(64), 80, usize::MAX),
        ];
        assert_eq!(told(&section(symbols)), ["0 20 a 32", "20 60 b both", "60 80 - both", "80 100 c 64"]);
    }

    #[test]
    fn a_section_without_symbols_is_code_of_nobody() {
        assert_eq!(told(&section(vec![])), ["0 100 - both"]);
    }
}
