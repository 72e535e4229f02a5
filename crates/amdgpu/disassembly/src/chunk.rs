//! Splits a code section into chunks: ranges that begin at a symbol or end where a symbol's bytes end.
//!
//! Invariants: the chunks of a section are contiguous and cover it; none is empty.

use hotswap_code_object::{CodeMap, CodeSection, CodeSymbol, SymbolKind};

/// The contents of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkRole {
    /// Instructions that belong to a symbol.
    Code,
    Data,
    /// Bytes after the end of a symbol, or before the first one: usually padding.
    Gap,
}

/// A range of a section.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'s> {
    pub start: usize,
    pub end: usize,
    /// The symbols at its start, the most specific one first; none for a gap.
    pub symbols: &'s [CodeSymbol<'s>],
    /// The enclosing function or kernel, where a label is inside of one.
    pub around: Option<&'s CodeSymbol<'s>>,
    pub role: ChunkRole,
    /// Lanes of a wave, where a kernel states them.
    pub lanes: Option<u8>,
}

/// The lanes of all kernels of a file, if they agree: the best guess for its functions.
pub fn common_lanes(map: &CodeMap<'_>) -> Option<u8> {
    let mut lanes = map.sections.iter().flat_map(|section| &section.symbols).filter_map(lanes_of);
    let first = lanes.next()?;
    lanes.all(|other| other == first).then_some(first)
}

fn lanes_of(symbol: &CodeSymbol<'_>) -> Option<u8> {
    match &symbol.kind {
        SymbolKind::Kernel(facts) => Some(facts.lanes),
        _ => None,
    }
}

/// The chunks of a section in their order.
pub fn chunks<'s>(section: &'s CodeSection<'s>) -> Vec<Chunk<'s>> {
    let size = section.bytes.len();
    let symbols = section.symbols.as_slice();
    let mut chunks = Vec::new();
    let first = symbols.first().map_or(size, |symbol| symbol.offset);
    if first > 0 {
        chunks.push(gap_chunk(0, first));
    }
    let mut around: Option<(&CodeSymbol<'_>, usize)> = None;
    for group in symbols.chunk_by(|one, other| one.offset == other.offset) {
        let start = group[0].offset;
        let next = symbols.partition_point(|symbol| symbol.offset <= start);
        let next = symbols.get(next).map_or(size, |symbol| symbol.offset);
        around = around.filter(|(_, end)| start < *end);
        let own = group.iter().find(|symbol| is_function(symbol));
        let role = match &group[0].kind {
            SymbolKind::Object if group[0].size > 0 => ChunkRole::Data,
            _ => ChunkRole::Code,
        };
        let outer = around.map(|(outer, _)| outer);
        let lanes = own.or(outer).and_then(lanes_of);
        let own_size = group.iter().map(|symbol| symbol.size).max().unwrap_or_default();
        // A label lacks a size of its own: it extends to the end of the enclosing symbol.
        let last = match (own_size, around) {
            (0, Some((_, end))) => end,
            (0, None) => next,
            (own_size, _) => start + own_size,
        };
        let end = last.clamp(start + 1, next);
        let inside = outer.filter(|_| own.is_none());
        chunks.push(Chunk { start, end, symbols: group, around: inside, role, lanes });
        around = own.map(|own| (own, extent(section, own).end)).or(around);
        if end < next {
            chunks.push(gap_chunk(end, next));
        }
    }
    chunks
}

fn gap_chunk<'s>(start: usize, end: usize) -> Chunk<'s> {
    Chunk { start, end, symbols: &[], around: None, role: ChunkRole::Gap, lanes: None }
}

fn is_function(symbol: &CodeSymbol<'_>) -> bool {
    matches!(symbol.kind, SymbolKind::Kernel(_) | SymbolKind::Function)
}

/// The offsets that a symbol covers: its bytes, or without a size everything up to the next function.
pub fn extent(section: &CodeSection<'_>, symbol: &CodeSymbol<'_>) -> std::ops::Range<usize> {
    let after = section.symbols.partition_point(|other| other.offset <= symbol.offset);
    let mut later = section.symbols[after..].iter();
    let next = later.find(|other| symbol.kind == SymbolKind::Label || is_function(other));
    let end = match symbol.size {
        0 => next.map_or(section.bytes.len(), |next| next.offset),
        size => symbol.offset + size,
    };
    symbol.offset..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_code_object::KernelFacts;

    fn symbol(name: &'static str, kind: SymbolKind, offset: usize, size: usize) -> CodeSymbol<'static> {
        CodeSymbol { name: name.into(), kind, offset, size, is_global: true }
    }

    fn section(symbols: Vec<CodeSymbol<'static>>) -> CodeSection<'static> {
        let bytes = &[0; 64];
        let name = ".text".into();
        CodeSection { number: None, name, address: 0, range: 0..64, bytes, symbols, relocations: vec![] }
    }

    fn kernel(lanes: u8) -> SymbolKind {
        SymbolKind::Kernel(KernelFacts { lanes, ..KernelFacts::default() })
    }

    type Row = (usize, usize, ChunkRole, Option<u8>, &'static str, &'static str);

    fn check(symbols: Vec<CodeSymbol<'static>>, expected: &[Row]) {
        let section = section(symbols);
        let found = chunks(&section);
        let names =
            |symbols: &[CodeSymbol<'_>]| symbols.iter().map(|s| s.name.to_string()).collect::<Vec<_>>().join(" ");
        let rows: Vec<_> = found
            .iter()
            .map(|chunk| {
                let around = chunk.around.map(|symbol| symbol.name.to_string()).unwrap_or_default();
                (chunk.start, chunk.end, chunk.role, chunk.lanes, names(chunk.symbols), around)
            })
            .collect();
        let expected: Vec<_> =
            expected.iter().map(|row| (row.0, row.1, row.2, row.3, row.4.to_owned(), row.5.to_owned())).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_section_without_names_is_one_gap() {
        check(vec![], &[(0, 64, ChunkRole::Gap, None, "", "")]);
    }

    #[test]
    fn names_begin_chunks_and_their_ends_begin_gaps() {
        let symbols = vec![symbol("k", kernel(64), 8, 16), symbol("f", SymbolKind::Function, 32, 0)];
        let expected = [
            (0, 8, ChunkRole::Gap, None, "", ""),
            (8, 24, ChunkRole::Code, Some(64), "k", ""),
            (24, 32, ChunkRole::Gap, None, "", ""),
            (32, 64, ChunkRole::Code, None, "f", ""),
        ];
        check(symbols, &expected);
    }

    #[test]
    fn a_kernel_without_size_lasts_to_the_next_function() {
        let symbols = vec![
            symbol("k", kernel(64), 0, 0),
            symbol("loop", SymbolKind::Label, 8, 0),
            symbol("f", SymbolKind::Function, 32, 0),
        ];
        let expected = [
            (0, 8, ChunkRole::Code, Some(64), "k", ""),
            (8, 32, ChunkRole::Code, Some(64), "loop", "k"),
            (32, 64, ChunkRole::Code, None, "f", ""),
        ];
        check(symbols, &expected);
    }

    #[test]
    fn labels_inside_of_a_kernel_have_its_lanes() {
        let symbols = vec![
            symbol("k", kernel(32), 0, 40),
            symbol("alias", SymbolKind::Function, 0, 40),
            symbol("inner", SymbolKind::Label, 8, 0),
            symbol("table", SymbolKind::Object, 48, 8),
        ];
        let expected = [
            (0, 8, ChunkRole::Code, Some(32), "k alias", ""),
            (8, 40, ChunkRole::Code, Some(32), "inner", "k"),
            (40, 48, ChunkRole::Gap, None, "", ""),
            (48, 56, ChunkRole::Data, None, "table", ""),
            (56, 64, ChunkRole::Gap, None, "", ""),
        ];
        check(symbols, &expected);
    }

    #[test]
    fn a_function_without_size_lasts_to_the_next_one_across_labels() {
        let symbols = vec![
            symbol("f", SymbolKind::Function, 0, 0),
            symbol("inner", SymbolKind::Label, 8, 0),
            symbol("g", SymbolKind::Function, 16, 8),
        ];
        let section = section(symbols);
        let extents: Vec<_> = section.symbols.iter().map(|symbol| extent(&section, symbol)).collect();
        assert_eq!(extents, [0..16, 8..16, 16..24]);
    }
}
