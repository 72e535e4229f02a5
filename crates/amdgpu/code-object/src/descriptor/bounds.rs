//! Start and end of the code of a linked file, for the check whether a kernel's entry is in it.
//!
//! A kernel whose body the compiler proves unreachable lacks instructions (rocPRIM has one for each architecture
//! except the one that is compiled for). If nothing follows it, its entry is the end of the code; a file with no other
//! kernels has an empty section of code and no executable segment. Loaders use the address without further checks.

use crate::elf::{Elf, ElfSectionView, ElfSegment};
use foldhash::HashSet;
use hotswap_report::Diagnostic;
use object::LittleEndian as LE;
use object::elf::{PF_X, PT_LOAD, SHT_PROGBITS, STT_FUNC, Sym64};
use std::ops::Range;
use std::sync::OnceLock;

pub(super) struct CodeBounds<'e, 'a> {
    elf: &'e Elf<'a>,
    /// Addresses of the executable segments.
    ranges: Vec<Range<u64>>,
    /// Addresses of the ends of code.
    ends: HashSet<u64>,
    cut_off: OnceLock<Result<HashSet<&'a str>, Diagnostic>>,
}

impl<'e, 'a> CodeBounds<'e, 'a> {
    pub(super) fn new(elf: &'e Elf<'a>) -> Self {
        let ranges: Vec<_> = elf.segments.iter().filter(is_executable_segment).map(segment_address_range).collect();
        let empty = elf.sections.iter().filter(is_empty_code_section).map(|section| section.address);
        let ends = ranges.iter().map(|range| range.end).chain(empty).collect();
        Self { elf, ranges, ends, cut_off: OnceLock::new() }
    }

    /// Whether the code of the kernel with that name can begin at that address.
    pub(super) fn can_enter(&self, name: &str, address: u64) -> Result<bool, Diagnostic> {
        if self.ranges.iter().any(|range| range.contains(&address)) {
            return Ok(true);
        }
        if !self.ends.contains(&address) {
            return Ok(false);
        }
        self.cut_off
            .get_or_init(|| self.find_cut_off())
            .as_ref()
            .map(|names| !names.contains(name))
            .map_err(Clone::clone)
    }

    /// The functions at the end of the code that have a size: their instructions are missing.
    fn find_cut_off(&self) -> Result<HashSet<&'a str>, Diagnostic> {
        let mut found = HashSet::default();
        self.elf.for_symbols(
            |one| ends_at_cut_symbol(one, self),
            |symbol| {
                found.insert(symbol.name);
                Ok(())
            },
        )?;
        Ok(found)
    }
}

fn is_empty_code_section(section: &&ElfSectionView<'_>) -> bool {
    section.is_code() && section.kind == SHT_PROGBITS && section.range.is_empty()
}

fn is_executable_segment(segment: &&ElfSegment) -> bool {
    segment.kind == PT_LOAD && segment.flags & PF_X != 0
}

fn segment_address_range(segment: &ElfSegment) -> Range<u64> {
    segment.address..segment.address.saturating_add(segment.range.len() as u64)
}

fn is_sized_function(symbol: &Sym64<LE>) -> bool {
    symbol.st_type() == STT_FUNC && symbol.st_size.get(LE) > 0
}

fn ends_at_cut_symbol(symbol: &Sym64<LE>, bounds: &CodeBounds<'_, '_>) -> bool {
    is_sized_function(symbol) && bounds.ends.contains(&symbol.st_value.get(LE))
}
