//! The parts of a rewritten file that `verify --against` does not compare, or of which it accepts other values: one table
//! with reasons, which the command prints and a test reads that flips every bit of the rest.
//!
//! Invariants: bytes that are in no row are compared. A row names bytes of the rewritten file, never whole kinds of files.

use super::tables::{SectionRow, elf_header, section_headers, section_range, symbol_entries};
use hotswap_code_object::CodeObject;
use hotswap_code_object::image::ObjectImage;
use hotswap_isa::{Isa, Target};
use hotswap_report::Diagnostic;
use object::LittleEndian as LE;
use object::elf;
use std::ops::Range;

/// A part that is not compared, or that may have other values.
#[derive(Debug)]
pub struct ReleaseRule {
    /// The part, for messages.
    pub part: &'static str,
    /// Why it is not compared.
    pub reason: &'static str,
    find: fn(&ReleaseSubject<'_>) -> Vec<Range<usize>>,
}

/// Bytes of a file that a row of [`RELEASES`] names.
#[derive(Debug, Clone, Copy)]
pub struct ReleasedPart {
    pub release: &'static ReleaseRule,
    /// The number of its bytes.
    pub bytes: usize,
}

pub static RELEASES: &[ReleaseRule] = &[
    ReleaseRule {
        part: "certificate",
        reason: "a hint: a wrong one makes a proof fail and cannot make one succeed",
        find: certificate_ranges,
    },
    ReleaseRule {
        part: "debug information other than lines and call frames",
        reason: "no loader reads it, and it changes nothing that a kernel does",
        find: debug_information,
    },
    ReleaseRule {
        part: "counts of registers in the metadata",
        reason: "they may grow; a kernel gets the registers that its descriptor grants, which is compared",
        find: register_counts,
    },
    ReleaseRule {
        part: "prefetched lines in kernel descriptors",
        reason: "a hint, which may grow with the code",
        find: prefetched_lines,
    },
    ReleaseRule {
        part: "s_delay_alu, s_clause and distances of prefetches",
        reason: "hints: they may say less, and no result depends on them; members of clauses are compared",
        find: hint_ranges,
    },
    ReleaseRule {
        part: "names that no section and no symbol has",
        reason: "a link with relocations has more of them in its tables of names",
        find: unused_names,
    },
    ReleaseRule {
        part: "place in the file of sections without content",
        reason: "there is nothing at that place",
        find: places_of_nothing,
    },
];

/// A file in the forms that rows need.
struct ReleaseSubject<'a> {
    data: &'a [u8],
    rows: &'a [SectionRow],
    /// Where the section table is.
    table: usize,
    object: CodeObject<'a>,
    image: ObjectImage<'a>,
}

/// The bytes that a row names.
#[derive(Debug, Clone)]
pub struct ReleasedBytes {
    pub release: &'static ReleaseRule,
    /// Ranges of the file.
    pub ranges: Vec<Range<usize>>,
}

/// The released bytes of a rewritten file, by row.
///
/// # Errors
/// Files that cannot be read as code objects.
pub fn released_bytes(data: &[u8]) -> Result<Vec<ReleasedBytes>, Diagnostic> {
    let (object, image) = (CodeObject::parse(data)?, ObjectImage::parse(data)?);
    let table = elf_header(data).map_or(0, |header| header.e_shoff.get(LE) as usize);
    let subject = ReleaseSubject { data, rows: section_headers(data).unwrap_or_default(), table, object, image };
    let found = RELEASES.iter().map(|release| ReleasedBytes { release, ranges: (release.find)(&subject) });
    Ok(found.filter(|bytes| !bytes.ranges.is_empty()).collect())
}

/// The released parts of a file that can be read.
pub(super) fn released_parts(data: &[u8]) -> Vec<ReleasedPart> {
    let all = released_bytes(data).unwrap_or_default().into_iter();
    all.map(|ReleasedBytes { release, ranges }| ReleasedPart { release, bytes: ranges.iter().map(Range::len).sum() })
        .collect()
}

impl ReleaseSubject<'_> {
    /// Bytes of a row of the section table.
    fn row_bytes(&self, number: usize) -> Range<usize> {
        let start = self.table + number * size_of::<SectionRow>();
        start..start + size_of::<SectionRow>()
    }
}

/// The last section, if it is the certificate's, its row, and their counts in the header.
fn certificate_ranges(subject: &ReleaseSubject<'_>) -> Vec<Range<usize>> {
    if hotswap_code_object::certificate_note(subject.data).is_none() {
        return Vec::new();
    }
    let last = subject.rows.len().saturating_sub(1);
    let content = subject.rows.last().and_then(|row| section_range(subject.data, row));
    content.into_iter().chain([subject.row_bytes(last)]).collect()
}

fn debug_information(subject: &ReleaseSubject<'_>) -> Vec<Range<usize>> {
    let sections = subject.image.sections.iter().filter(|part| part.name.starts_with(".debug_"));
    sections.map(|part| part.offset as usize..part.offset as usize + part.bytes.len()).collect()
}

/// The values of these keys in the metadata: a key is a short text, and its value one number.
fn register_counts(subject: &ReleaseSubject<'_>) -> Vec<Range<usize>> {
    const KEYS: [&[u8]; 2] = [b".vgpr_count", b".sgpr_count"];
    let mut found = Vec::new();
    for note in &subject.object.note().ranges {
        let bytes = subject.data.get(note.clone()).unwrap_or_default();
        for key in KEYS {
            for (at, _) in bytes.windows(key.len()).enumerate().filter(|(_, window)| *window == key) {
                let value = note.start + at + key.len();
                // The marker of a number of one, two, four or eight bytes; small numbers are their own.
                let size = match subject.data.get(value) {
                    Some(marker @ 0xcc..=0xcf) => 1 + (1 << (marker - 0xcc)),
                    _ => 1,
                };
                found.push(value..value + size);
            }
        }
    }
    found
}

/// The bytes of a descriptor that hold the number of prefetched lines.
fn prefetched_lines(subject: &ReleaseSubject<'_>) -> Vec<Range<usize>> {
    /// COMPUTE_PGM_RSRC3, bits 4 to 11 from GFX12 on, 4 to 9 before.
    const BYTES: Range<usize> = 44..46;
    let starts = subject.object.descriptors().iter().map(|descriptor| descriptor.range.start);
    starts.map(|start| start + BYTES.start..start + BYTES.end).collect()
}

fn hint_ranges(subject: &ReleaseSubject<'_>) -> Vec<Range<usize>> {
    let Some(target) = Target::find(subject.object.target_id().processor.name) else { return Vec::new() };
    let mut found = Vec::new();
    for part in subject.image.sections.iter().filter(|part| part.is_code()) {
        for (at, inst) in Isa::new(target).walk(part.bytes) {
            if let Ok(inst) = inst
                && is_hint_mnemonic(inst.mnemonic())
            {
                let start = part.offset as usize + at;
                found.push(start..start + usize::from(inst.len()));
            }
        }
    }
    found
}

fn is_hint_mnemonic(name: &str) -> bool {
    matches!(name, "s_delay_alu" | "s_clause") || name.starts_with("s_prefetch_")
}

/// Bytes of the tables of names that are not loaded: all but the names of sections and symbols.
fn unused_names(subject: &ReleaseSubject<'_>) -> Vec<Range<usize>> {
    let tables = subject.rows.iter().enumerate().filter(|(_, row)| is_unloaded_strtab(row));
    tables.flat_map(|(number, row)| unused_of_table(subject, number, row)).collect()
}

fn is_unloaded_strtab(row: &SectionRow) -> bool {
    row.sh_type.get(LE) == elf::SHT_STRTAB && row.sh_flags.get(LE) & u64::from(elf::SHF_ALLOC) == 0
}

fn unused_of_table(subject: &ReleaseSubject<'_>, number: usize, table: &SectionRow) -> Vec<Range<usize>> {
    let Some(place) = section_range(subject.data, table) else { return Vec::new() };
    let bytes = &subject.data[place.clone()];
    let mut is_used = vec![false; bytes.len()];
    // The empty name.
    let starts = [0].into_iter().chain(name_offsets(subject, number));
    for start in starts.filter(|start| *start < bytes.len()) {
        let rest = &bytes[start..];
        let end = rest.iter().position(|byte| *byte == 0).map_or(rest.len(), |length| length + 1);
        is_used[start..start + end].fill(true);
    }
    (0..bytes.len())
        .filter(|one| is_unused_byte(one, &is_used))
        .map(|at| place.start + at..place.start + at + 1)
        .collect()
}

fn is_unused_byte(at: &usize, is_used: &[bool]) -> bool {
    !is_used[*at]
}

/// Offsets of names in a table.
fn name_offsets(subject: &ReleaseSubject<'_>, table: usize) -> Vec<usize> {
    let is_of_sections = elf_header(subject.data).is_some_and(|header| usize::from(header.e_shstrndx.get(LE)) == table);
    let mut offsets = Vec::new();
    if is_of_sections {
        offsets.extend(subject.rows.iter().map(|row| row.sh_name.get(LE) as usize));
    }
    let is_symbols =
        |row: &&SectionRow| row.sh_type.get(LE) == elf::SHT_SYMTAB && row.sh_link.get(LE) as usize == table;
    for row in subject.rows.iter().filter(is_symbols) {
        let symbols = symbol_entries(subject.data, row).unwrap_or_default();
        offsets.extend(symbols.iter().map(|symbol| symbol.st_name.get(LE) as usize));
    }
    offsets
}

fn places_of_nothing(subject: &ReleaseSubject<'_>) -> Vec<Range<usize>> {
    let numbered = subject.rows.iter().enumerate().skip(1).filter(|(_, row)| has_no_contents(row));
    numbered.map(|(number, _)| subject.row_bytes(number).start + 24..subject.row_bytes(number).start + 32).collect()
}

fn has_no_contents(row: &SectionRow) -> bool {
    row.sh_type.get(LE) == elf::SHT_NOBITS || row.sh_size.get(LE) == 0
}
