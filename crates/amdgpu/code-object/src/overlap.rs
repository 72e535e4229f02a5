//! Parts of a damaged code object that share bytes: a change of one of them changes the other.
//!
//! Only checked where a result cannot be read back, to distinguish damage of the input from a defect of ours: files in
//! which changed bytes are not shared are handled without a message.

use crate::relabel::{PROGRAM_HEADERS, SECTION_HEADERS, header_table_range};
use crate::{CodeObject, ElfSectionView};
use hotswap_report::{Diagnostic, codes};
use object::elf;
use std::ops::Range;

/// A part that claims bytes of the file.
struct ClaimedPart {
    name: String,
    range: Range<usize>,
}

/// A byte with two owners.
struct OverlapFault {
    at: usize,
    what: String,
}

/// A diagnostic with the first byte of the file that two sections, or a section and a table of headers, both claim, or
/// that a segment of notes or the dynamic one shares with a section of another kind.
pub fn find_overlap(object: &CodeObject<'_>) -> Option<Diagnostic> {
    let mut parts = vec![
        ClaimedPart { name: "the file header".into(), range: 0..64 },
        ClaimedPart { name: "the program headers".into(), range: header_table_range(object, PROGRAM_HEADERS, 54, 56) },
        ClaimedPart { name: "the section headers".into(), range: header_table_range(object, SECTION_HEADERS, 58, 60) },
    ];
    let of_file = object.sections().iter().filter(|section| section.kind != elf::SHT_NOBITS);
    parts.extend(
        of_file
            .map(|section| ClaimedPart { name: format!("section `{}`", section.name), range: section.range.clone() }),
    );
    parts.retain(|part| !part.range.is_empty());
    parts.sort_by_key(|part| (part.range.start, part.range.end));
    let shared = parts.windows(2).find(|pair| pair[1].range.start < pair[0].range.end);
    let shared = shared.map(|pair| OverlapFault {
        at: pair[1].range.start,
        what: format!("{} and {} share bytes", pair[0].name, pair[1].name),
    });
    let OverlapFault { at, what } = shared.or_else(|| other_kind(object))?;
    Some(Diagnostic::error(codes::MALFORMED, what).at_offset(at as u64))
}

/// A section of another kind than its segment states, so that an edit of the segment is unexpected there.
fn other_kind(object: &CodeObject<'_>) -> Option<OverlapFault> {
    let claims = [(elf::PT_DYNAMIC, elf::SHT_DYNAMIC, "dynamic"), (elf::PT_NOTE, elf::SHT_NOTE, "note")];
    let all = claims.iter().flat_map(|claim| object.segments().iter().map(move |segment| (claim, segment)));
    let mut named = all.filter(|((kind, ..), segment)| segment.kind == *kind);
    named.find_map(|((_, kind, word), segment)| {
        let section = object
            .sections()
            .iter()
            .find(|section| overlaps_note_segment(&section.range, segment) && has_other_section_kind(section, kind))?;
        let what = format!("section `{}` is where the {word} segment is", section.name);
        Some(OverlapFault { at: segment.range.start, what })
    })
}

fn overlaps_note_segment(range: &Range<usize>, segment: &crate::ElfSegment) -> bool {
    range.start < segment.range.end && segment.range.start < range.end
}

fn has_other_section_kind(section: &&ElfSectionView<'_>, kind: &u32) -> bool {
    ![*kind, elf::SHT_NOBITS].contains(&section.kind)
}
