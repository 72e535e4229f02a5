//! The symbol tables.

use super::{CodeSymbol, SectionNames, SymbolKind, left_out};
use crate::elf::{Elf, ElfSectionView, record_table, string_at};
use foldhash::HashMap;
use hotswap_report::Diagnostic;
use object::LittleEndian as LE;
use object::elf::{self, Sym64};
use std::borrow::Cow;

/// `STT_AMDGPU_HSA_KERNEL` of code object V2, in the range for operating systems.
const STT_AMDGPU_HSA_KERNEL: u8 = elf::STT_LOOS;
/// `SHT_SYMTAB_SHNDX`: section numbers above 65279.
const WIDE_INDEX: u32 = elf::SHT_SYMTAB_SHNDX;
/// Names of one offset among which a twin is searched; more than that are sorted out later.
const FEW: usize = 8;
/// Further damage in one table is not reported.
const TOLD: usize = 4;

/// A defined symbol that is of interest.
pub(super) struct TableRow<'a> {
    pub(super) name: Cow<'a, str>,
    /// Offset of its record in the file.
    pub(super) at: usize,
    pub(super) value: u64,
    pub(super) size: u64,
    /// Number of its section, `None` where that does not exist (absolute symbols).
    pub(super) section: Option<usize>,
    pub(super) kind: u8,
    pub(super) is_global: bool,
}

/// The named, defined symbols of all tables; a symbol that is equal in several tables is included once.
pub(super) fn read_symbols<'a>(elf: &Elf<'a>, problems: &mut Vec<Diagnostic>) -> Vec<TableRow<'a>> {
    let mut rows = Vec::new();
    let mut known = EarlierRows::default();
    for (index, section) in symbol_tables(elf) {
        known.add_rows(&rows);
        match table_records(elf, section) {
            Ok((symbols, strings)) => read_table(elf, index, symbols, strings, &mut rows, &known, problems),
            Err(error) => problems.push(error),
        }
    }
    rows
}

/// The rows of earlier tables by value: most of `.dynsym` is in `.symtab` as well.
#[derive(Default)]
struct EarlierRows {
    /// The last row with that value.
    last: HashMap<u64, usize>,
    /// For each row, the row before it with the same value.
    before: Vec<Option<usize>>,
}

impl EarlierRows {
    /// Adds the new rows.
    fn add_rows(&mut self, rows: &[TableRow<'_>]) {
        let new = self.before.len()..rows.len();
        self.last.reserve(new.len());
        for (number, row) in new.clone().zip(&rows[new]) {
            self.before.push(self.last.insert(row.value, number));
        }
    }

    /// The number of an equal row, whatever its binding.
    fn find_duplicate(&self, rows: &[TableRow<'_>], row: &TableRow<'_>) -> Option<usize> {
        let mut at = self.last.get(&row.value).copied();
        let mut steps = 0..FEW;
        while let Some(number) = at.filter(|_| steps.next().is_some()) {
            let one = &rows[number];
            if (one.section, one.kind, one.size) == (row.section, row.kind, row.size) && one.name == row.name {
                return Some(number);
            }
            at = self.before[number];
        }
        None
    }
}

/// The symbol tables, with their numbers.
pub(super) fn symbol_tables<'e, 'a>(elf: &'e Elf<'a>) -> impl Iterator<Item = (usize, &'e ElfSectionView<'a>)> {
    elf.sections.iter().enumerate().filter(move |(_, section)| is_symbol_table_section(section))
}

fn is_symbol_table_section(section: &ElfSectionView<'_>) -> bool {
    section.kind == elf::SHT_DYNSYM || section.kind == elf::SHT_SYMTAB
}

/// The defined symbols of a table that are of interest: number, record, and number of its section.
pub(super) fn defined_symbols<'a>(
    elf: &Elf<'a>,
    index: usize,
    symbols: &'a [Sym64<LE>],
) -> impl Iterator<Item = (usize, &'a Sym64<LE>, Option<usize>)> {
    let wide = wide_indices(elf, index);
    symbols.iter().enumerate().filter_map(move |(number, symbol)| {
        let section = match symbol.st_shndx.get(LE) {
            elf::SHN_UNDEF => return None,
            elf::SHN_XINDEX => wide_index(wide, number),
            special @ elf::SHN_LORESERVE.. => (special != elf::SHN_ABS).then_some(usize::MAX),
            section => Some(usize::from(section)),
        };
        let is_other = matches!(symbol.st_type(), elf::STT_SECTION | elf::STT_FILE | elf::STT_TLS | elf::STT_COMMON);
        (!is_other).then_some((number, symbol, section))
    })
}

/// The records of a symbol table, and its strings.
pub(super) fn table_records<'a>(
    elf: &Elf<'a>,
    section: &ElfSectionView,
) -> Result<(&'a [Sym64<LE>], &'a [u8]), Diagnostic> {
    let at = section.range.start;
    let strings = elf.sections.get(section.link as usize).filter(|strings| strings.kind == elf::SHT_STRTAB);
    let strings = strings.ok_or_else(|| left_out(at, "a symbol table has no string table"))?;
    let count = section.range.len() / size_of::<Sym64<LE>>();
    let symbols = record_table::<Sym64<LE>>(elf.data, at as u64, count as u64, at, "the symbol table");
    let symbols = symbols.map_err(|error| left_out(at, error.what))?;
    Ok((symbols, elf.data.get(strings.range.clone()).unwrap_or_default()))
}

fn read_table<'a>(
    elf: &Elf<'a>,
    index: usize,
    symbols: &'a [Sym64<LE>],
    strings: &'a [u8],
    rows: &mut Vec<TableRow<'a>>,
    known: &EarlierRows,
    problems: &mut Vec<Diagnostic>,
) {
    let start = elf.sections[index].range.start;
    let mut nameless = 0;
    for (number, symbol, section) in defined_symbols(elf, index, symbols) {
        let at = start + number * size_of::<Sym64<LE>>();
        let Some(name) = string_at(strings, symbol.st_name.get(LE)) else {
            nameless += 1;
            if nameless <= TOLD {
                problems.push(left_out(at, "a symbol's name leaves its string table"));
            }
            continue;
        };
        let row = TableRow {
            name: String::from_utf8_lossy(name),
            at,
            value: symbol.st_value.get(LE),
            size: symbol.st_size.get(LE),
            section,
            kind: symbol.st_type(),
            is_global: symbol.st_bind() != elf::STB_LOCAL,
        };
        match known.find_duplicate(rows, &row) {
            Some(twin) => rows[twin].is_global |= row.is_global,
            None => rows.push(row),
        }
    }
    if nameless > TOLD {
        problems.push(left_out(start, format!("{nameless} symbols of a table have names that leave its string table")));
    }
}

/// The table of wide section numbers that belongs to a symbol table.
fn wide_indices<'a>(elf: &Elf<'a>, symbols: usize) -> &'a [u8] {
    let section = elf.sections.iter().find(|one| is_wide_index_table(one, symbols));
    section.and_then(|section| elf.data.get(section.range.clone())).unwrap_or_default()
}

fn is_wide_index_table(section: &&ElfSectionView, symbols: usize) -> bool {
    section.kind == WIDE_INDEX && section.link as usize == symbols
}

fn wide_index(wide: &[u8], number: usize) -> Option<usize> {
    let word = wide.get(number.checked_mul(4)?..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*word)).ok()
}

/// Puts the symbols into their sections. Kernels are already there.
pub(super) fn place_symbols<'a>(
    elf: &Elf<'a>,
    rows: Vec<TableRow<'a>>,
    found: &mut [SectionNames<'a>],
    problems: &mut Vec<Diagnostic>,
) {
    let mut outside = 0;
    for row in rows {
        let kind = match row.kind {
            elf::STT_FUNC | STT_AMDGPU_HSA_KERNEL => SymbolKind::Function,
            elf::STT_OBJECT => SymbolKind::Object,
            _ => SymbolKind::Label,
        };
        let Some(owner) = owning_section(elf, found, &row) else { continue };
        let Some(offset) = owner.offset_of_value(elf.kind, row.value).filter(|_| !row.name.is_empty()) else {
            // A label at the very end names no instruction; lld's and assemblers' end marks are of this kind.
            if !owner.ends_at(elf.kind, row.value) && !row.name.is_empty() {
                outside += 1;
                if outside <= TOLD {
                    problems.push(left_out(row.at, format!("the symbol `{}` is outside of its section", row.name)));
                }
            }
            continue;
        };
        let size = usize::try_from(row.size).unwrap_or(usize::MAX);
        let rest = owner.section.bytes.len() - offset;
        if size > rest {
            problems.push(left_out(
                row.at,
                format!("the end of `{}` ({size:#x} bytes) is outside of its section", row.name),
            ));
        }
        let (name, is_global, size) = (row.name, row.is_global, size.min(rest));
        owner.section.symbols.push(CodeSymbol { name, kind, offset, size, is_global });
    }
    if outside > TOLD {
        problems.push(left_out(0, format!("{outside} symbols are outside of their sections")));
    }
    found.iter_mut().for_each(|found| sort_symbols(&mut found.section.symbols));
}

/// The section of a symbol, among those with code. Without sections, the segment that holds its address.
fn owning_section<'f, 'a>(
    elf: &Elf<'_>,
    found: &'f mut [SectionNames<'a>],
    row: &TableRow<'_>,
) -> Option<&'f mut SectionNames<'a>> {
    if elf.sections.is_empty() {
        return found.iter_mut().find(|found| found.offset_of_value(elf.kind, row.value).is_some());
    }
    found.iter_mut().find(|found| found.section.number == row.section)
}

/// Sorts by offset, the most informative name first; the same name at the same offset is kept once,
/// with the larger size.
fn sort_symbols(symbols: &mut Vec<CodeSymbol<'_>>) {
    symbols.sort_by(|a, b| symbol_sort_key(a).cmp(&symbol_sort_key(b)).then_with(|| a.name.cmp(&b.name)));
    // Twins (`.symtab` and `.dynsym`, a kernel and its function) need not be neighbours when an offset has several
    // names; offsets have few.
    let mut kept: Vec<CodeSymbol<'_>> = Vec::with_capacity(symbols.len());
    for symbol in symbols.drain(..) {
        let same_place = kept.iter_mut().rev().take_while(|one| one.offset == symbol.offset);
        match same_place.into_iter().find(|one| one.name == symbol.name) {
            Some(twin) => {
                twin.size = twin.size.max(symbol.size);
                twin.is_global |= symbol.is_global;
            }
            None => kept.push(symbol),
        }
    }
    *symbols = kept;
}

fn symbol_sort_key(symbol: &CodeSymbol<'_>) -> impl Ord + use<> {
    (symbol.offset, symbol.kind.name_rank(), !symbol.is_global)
}

impl SymbolKind {
    fn name_rank(&self) -> u8 {
        match self {
            Self::Kernel(_) => 0,
            Self::Function => 1,
            Self::Object => 2,
            Self::Label => 3,
        }
    }
}
