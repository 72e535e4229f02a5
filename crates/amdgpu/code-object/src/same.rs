//! Whether two code objects are the same except for the label: the check of a relabelled copy.
//!
//! Every byte that is not listed here must be the same at the same offset; bytes for which that was established while
//! the file was written are not compared again.
//!
//! | may differ | how |
//! |---|---|
//! | `EI_ABIVERSION`, `e_flags` | freely: [`crate::CodeObject::parse`] checks their meaning |
//! | the area of the notes | `amdhsa.target`, with the sizes and padding that follow from it |
//! | rows of `PT_NOTE` and of the note's section | offset, address, size; the section may lose `SHF_ALLOC` |
//! | `.dynsym`, `.dynstr`, `.hash`, `.gnu.hash` after the note | position only, up to the next section |
//! | their rows and their `DT_*` entries | addresses and offsets, which must point to them |
//! | after the old end | the note alone |
//! | `__oclc_ISA_version`, by symbol | the number of each file's own target |
//! | user SGPR count of descriptors | so that they are 16 with the system SGPRs, which were fewer, in waves of 32 lanes, where the new target needs 16 |

use crate::descriptor::MANY;
use crate::elf::ObjectKind;
use crate::note::respell_notes;
use crate::object_file::{ABI_VERSION, CodeObject, E_FLAGS};
use crate::patch::{AppendedPiece, BytePatch};
use crate::relabel::{NotePosition, RelabelLayout, section_row, segment_row};
use hotswap_targets::{Capability, find_processor};
use object::LittleEndian as LE;
use object::elf;
use std::ops::Range;

/// Facts about the new file, because it was checked against a patch and the old file.
#[derive(Clone, Copy)]
struct CheckedPatch<'k>(Option<&'k BytePatch>);

impl CheckedPatch<'_> {
    /// Whether the bytes of that range are the same in both.
    fn keeps_range(self, range: &Range<usize>) -> bool {
        self.0.is_some_and(|patch| patch.keeps_range(range))
    }

    /// Whether those of the old file are at that offset of the new one.
    fn moves_range(self, old: &Range<usize>, new: usize) -> bool {
        self.0.is_some_and(|patch| patch.moves_range(old, new))
    }

    /// Whether those of the new file are zero.
    fn erases_range(self, range: &Range<usize>) -> bool {
        self.0.is_some_and(|patch| patch.erases_range(range))
    }
}

/// Compares; the error names the difference.
///
/// # Errors
/// A sentence that names the first difference.
pub fn same_but_for_label(old: &CodeObject<'_>, new: &CodeObject<'_>) -> Result<(), String> {
    if old.bytes() == new.bytes() {
        return Ok(());
    }
    compare_objects(old, new, CheckedPatch(None))
}

/// As [`same_but_for_label`], for a new file that was checked against the patch and the old file already: bytes that
/// the patch keeps, moves or erases are not compared again.
///
/// # Errors
/// A sentence that names the first difference.
pub fn same_but_for_patch(old: &CodeObject<'_>, new: &CodeObject<'_>, patch: &BytePatch) -> Result<(), String> {
    check_same(new.bytes().len() == patch.size(), "its size")?;
    compare_objects(old, new, CheckedPatch(Some(patch)))
}

fn compare_objects(old: &CodeObject<'_>, new: &CodeObject<'_>, known: CheckedPatch<'_>) -> Result<(), String> {
    let (notes, contents) = match old.note().kernels.len() {
        0..MANY => (compare_notes(old, new), compare_contents(old, new, known)),
        _ => rayon::join(|| compare_notes(old, new), || compare_contents(old, new, known)),
    };
    notes.and(contents)
}

/// The bytes are the same except for the effects of another name of the target.
fn compare_contents(old: &CodeObject<'_>, new: &CodeObject<'_>, known: CheckedPatch<'_>) -> Result<(), String> {
    let mut numbers = isa_version_words(old, new)?;
    numbers.extend(user_sgprs(old, new)?);
    let mut allowed = vec![ABI_VERSION..ABI_VERSION + 1, E_FLAGS..E_FLAGS + 4];
    allowed.extend(numbers.iter().cloned());
    if old.note().target.len() == new.note().target.len() {
        allowed.extend(old.note().target_ranges.iter().cloned());
        check_same(old.bytes().len() == new.bytes().len(), "its size")?;
        return compare_bytes(old, new, allowed, known);
    }
    let (was, is) = (note_position(old)?, note_position(new)?);
    let expected = respell_notes(old.bytes(), &was.area, was.align, old.note(), new.note().target);
    let expected = expected.map_err(|error| error.what)?;
    let is_joined = are_joined(&expected.pieces, old.bytes(), (new.bytes(), &is.area), known);
    check_same(is_joined, "a note's header or padding")?;
    check_same(
        was.sections == is.sections
            && was.sections.iter().all(|index| {
                let place = was.new_section_range(old, *index, &expected);
                let there = &new.sections()[*index].range;
                place.is_some_and(|place| {
                    is.area.start + place.start == there.start && is.area.start + place.end == there.end
                })
            }),
        "the place of a section of notes",
    )?;
    compare_sections(old, new, &was, &numbers, known)?;
    compare_segments(old, new, &was)?;
    allowed.push(was.area.clone());
    allowed.extend(was.segments.iter().map(|index| row_fields(segment_row(old, *index), 8..48)));
    allowed.extend(was.sections.iter().map(|index| row_fields(section_row(old, *index), 8..40)));
    if was.area.start == is.area.start && old.bytes().len() == new.bytes().len() {
        allowed.extend(moved_table_ranges(old, new, &was, &is)?);
    } else {
        let padding = is.area.start.checked_sub(old.bytes().len()).filter(|padding| *padding < 8);
        let is_behind = padding.is_some() || was.area == (is.area.start..old.bytes().len());
        check_same(is_behind && is.area.end == new.bytes().len(), "the place of its note")?;
        let rest = old.bytes().len()..is.area.start;
        check_same(new.bytes().get(rest).is_none_or(is_zero), "bytes after its end")?;
        let zeros = was.area.start..was.area.end.min(new.bytes().len());
        let is_erased =
            was.area.start == is.area.start || known.erases_range(&zeros) || is_zero(&new.bytes()[zeros.clone()]);
        check_same(is_erased, "the old place of its note")?;
    }
    compare_bytes(old, new, allowed, known)
}

/// Whether the pieces together, some of them of the old file, are an area of the new one.
fn are_joined(
    pieces: &[AppendedPiece],
    old: &[u8],
    (new, area): (&[u8], &Range<usize>),
    known: CheckedPatch<'_>,
) -> bool {
    let mut at = area.start;
    for piece in pieces {
        let range = at..at + piece.size();
        at = range.end;
        let is_known = matches!(piece, AppendedPiece::Moved(from) if known.moves_range(from, range.start));
        if range.end > area.end || !is_known && piece.piece_bytes(old) != &new[range] {
            return false;
        }
    }
    at == area.end
}

fn check_same(is_right: bool, what: &str) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(format!("{what} differs")) }
}

fn is_zero(bytes: &[u8]) -> bool {
    // Chunk by chunk: all bytes of one are checked at once.
    bytes.chunks(64).all(|piece| piece.iter().fold(0, |all, byte| all | byte) == 0)
}

fn note_position(object: &CodeObject<'_>) -> Result<NotePosition, String> {
    NotePosition::find(object).map_err(|error| error.what)
}

fn row_fields(start: usize, fields: Range<usize>) -> Range<usize> {
    start + fields.start..start + fields.end
}

/// The notes have the same meaning; [`contents`] compares their bytes.
fn compare_notes(old: &CodeObject<'_>, new: &CodeObject<'_>) -> Result<(), String> {
    let (was, is) = (old.note(), new.note());
    let is_same =
        was.version == is.version && was.kernels == is.kernels && was.target.is_empty() == is.target.is_empty();
    check_same(is_same, "what its notes say of the kernels")?;
    let is_shared = std::ptr::eq(old.descriptors(), new.descriptors());
    check_same(is_shared || old.descriptors() == new.descriptors(), "a kernel descriptor")
}

/// All sections with their names, kinds and contents, except for the note and addresses in `.dynamic`.
fn compare_sections(
    old: &CodeObject<'_>,
    new: &CodeObject<'_>,
    was: &NotePosition,
    numbers: &[Range<usize>],
    known: CheckedPatch<'_>,
) -> Result<(), String> {
    check_same(old.sections().len() == new.sections().len(), "the number of sections")?;
    for (index, (one, other)) in old.sections().iter().zip(new.sections()).enumerate() {
        let is_note = was.sections.contains(&index);
        let alloc = if is_note { u64::from(elf::SHF_ALLOC) } else { 0 };
        let fields = (one.name, one.kind, one.link, one.info, one.align, one.flags & !alloc)
            == (other.name, other.kind, other.link, other.info, other.align, other.flags & !alloc);
        let in_place = one.range == other.range;
        let is_known = in_place && known.keeps_range(&one.range);
        let has_number =
            in_place && numbers.iter().any(|number| one.range.start <= number.start && number.end <= one.range.end);
        let content = is_known
            || old.bytes()[one.range.clone()] == new.bytes()[other.range.clone()]
            || has_number && compare_range(old, new, one.range.clone(), numbers.to_vec(), known).is_ok();
        let may_differ = is_note || one.kind == elf::SHT_DYNAMIC && one.range == other.range;
        check_same(fields && (content || may_differ), &format!("section `{}`", one.name))?;
    }
    Ok(())
}

/// All segments except those of the note.
fn compare_segments(old: &CodeObject<'_>, new: &CodeObject<'_>, was: &NotePosition) -> Result<(), String> {
    let [before, after] = [old.segments(), new.segments()].map(|segments| {
        let segments = segments.iter().enumerate();
        segments.filter(|(index, _)| !was.segments.contains(index)).collect::<Vec<_>>()
    });
    check_same(old.segments().len() == new.segments().len() && before == after, "a segment")
}

/// The tables after the note may have other positions; returns the ranges in which bytes may therefore differ.
fn moved_table_ranges(
    old: &CodeObject<'_>,
    new: &CodeObject<'_>,
    was: &NotePosition,
    is: &NotePosition,
) -> Result<Vec<Range<usize>>, String> {
    let (Some(before), Some(after)) = (RelabelLayout::movable_window(old, was), RelabelLayout::movable_window(new, is))
    else {
        // No section follows: the note became shorter in its place.
        return Ok(Vec::new());
    };
    check_same(before.window == after.window, "what follows the note")?;
    let [indices, now] =
        [&before, &after].map(|layout| layout.moved.iter().map(|moved| moved.section).collect::<Vec<_>>());
    check_same(indices == now, "the order of the tables after the note")?;
    let mut covered = vec![is.area.clone()];
    covered.extend(after.moved.iter().map(|moved| new.sections()[moved.section].range.clone()));
    covered.push(after.window.end..after.window.end);
    let gaps = covered.windows(2).map(|pair| new.bytes().get(pair[0].end..pair[1].start));
    check_same(gaps.into_iter().all(|gap| gap.is_some_and(is_zero)), "the padding after the note")?;
    let mut allowed = vec![before.window.clone()];
    for index in indices {
        check_same(
            section_address_bias(old, index) == section_address_bias(new, index),
            "the address of a table after the note",
        )?;
        allowed.push(row_fields(section_row(old, index), 16..32));
    }
    let (told, tells) = (before.dynamic_addresses(old), after.dynamic_addresses(new));
    check_same(told.is_some() && told == tells, "what .dynamic says")?;
    allowed.extend(told.unwrap_or_default().into_iter().map(|entry| entry.field..entry.field + 8));
    Ok(allowed)
}

fn section_address_bias(object: &CodeObject<'_>, index: usize) -> u64 {
    let section = &object.sections()[index];
    section.address.wrapping_sub(section.range.start as u64)
}

/// Words of the device library's constant: each must be the number of its file's own target, or that of the
/// new one in both.
fn isa_version_words(old: &CodeObject<'_>, new: &CodeObject<'_>) -> Result<Vec<Range<usize>>, String> {
    let (was, is) = (object_isa_version(old), object_isa_version(new));
    if was == is {
        return Ok(Vec::new());
    }
    let (elf, mut found) = (new.elf(), Vec::new());
    elf.for_symbols(|symbol| symbol.st_size.get(LE) == 4, |one| record_isa_version_range(one, &mut found, elf))
        .map_err(|error| error.what)?;
    let ranges: Option<Vec<_>> = found.into_iter().collect();
    let ranges = ranges.filter(|ranges| {
        ranges.iter().all(|range| {
            let (before, after) = (isa_version_word(old, range), isa_version_word(new, range));
            after.is_some() && after == is && (before == was || before == is)
        })
    });
    ranges.ok_or_else(|| "the number in `__oclc_ISA_version` is not the target's".to_owned())
}

fn object_isa_version(object: &CodeObject<'_>) -> Option<u32> {
    object.target_id().processor.isa_version
}

fn record_isa_version_range(
    symbol: crate::elf::DefinedSymbol<'_>,
    found: &mut Vec<Option<Range<usize>>>,
    elf: &crate::elf::Elf<'_>,
) -> Result<(), hotswap_report::Diagnostic> {
    if symbol.name.split('.').next() == Some("__oclc_ISA_version") {
        found.push(match elf.kind {
            ObjectKind::Linked => elf.file_range(symbol.value, 4),
            ObjectKind::Relocatable => elf.section_range(symbol.section, symbol.value, 4),
        });
    }
    Ok(())
}

fn isa_version_word(object: &CodeObject<'_>, range: &Range<usize>) -> Option<u32> {
    let word = object.bytes().get(range.clone())?.try_into().ok()?;
    Some(u32::from_le_bytes(word))
}

/// COMPUTE_PGM_RSRC2 of kernels that got user SGPRs.
///
/// The bits are read here without the table of fields with which they were written.
fn user_sgprs(old: &CodeObject<'_>, new: &CodeObject<'_>) -> Result<Vec<Range<usize>>, String> {
    let is_needed = needs_sixteen_user_sgprs(new) && !needs_sixteen_user_sgprs(old);
    let mut found = Vec::new();
    for (was, is) in old.descriptors().iter().zip(new.descriptors()) {
        let (before, after) = (
            descriptor_word_at(old.bytes(), was.range.start + 52),
            descriptor_word_at(new.bytes(), is.range.start + 52),
        );
        let in_wave32 = descriptor_word_at(old.bytes(), was.range.start + 56) & 1 << 10 != 0;
        let has_enough = (after >> 1 & 31) + (after >> 7 & 0xf).count_ones() >= 16;
        check_same(!is_needed || !in_wave32 || has_enough, "the setup of a kernel's registers, which is too small,")?;
        if was.range != is.range || before == after {
            continue;
        }
        let system = (before >> 7 & 0xf).count_ones();
        let is_raised = (before >> 1 & 31) + system < 16 && after == before & !(31 << 1) | (16 - system) << 1;
        check_same(is_needed && in_wave32 && is_raised, "the setup of a kernel's registers")?;
        found.push(is.range.start + 52..is.range.start + 56);
    }
    Ok(found)
}

fn needs_sixteen_user_sgprs(object: &CodeObject<'_>) -> bool {
    let target = object.target_id().processor;
    let mut runners = target.covers.iter().filter_map(|name| find_processor(name)).chain([target]);
    runners.any(|runner| runner.has(Capability::UserSgprInit16Bug))
}

fn descriptor_word_at(bytes: &[u8], start: usize) -> u32 {
    let word = bytes.get(start..start + 4).and_then(|word| word.try_into().ok());
    word.map_or(0, u32::from_le_bytes)
}

/// Every byte up to the old end outside of the allowed ranges.
fn compare_bytes(
    old: &CodeObject<'_>,
    new: &CodeObject<'_>,
    allowed: Vec<Range<usize>>,
    known: CheckedPatch<'_>,
) -> Result<(), String> {
    compare_range(old, new, 0..old.bytes().len().min(new.bytes().len()), allowed, known)
}

/// Every byte of a range outside of the allowed ones.
fn compare_range(
    old: &CodeObject<'_>,
    new: &CodeObject<'_>,
    whole: Range<usize>,
    mut allowed: Vec<Range<usize>>,
    known: CheckedPatch<'_>,
) -> Result<(), String> {
    let end = whole.end;
    allowed.push(end..end);
    allowed.sort_by_key(|range| range.start);
    let mut at = whole.start;
    for range in allowed {
        let outside = at..range.start.clamp(at, end);
        if !known.keeps_range(&outside) && old.bytes()[outside.clone()] != new.bytes()[outside.clone()] {
            return Err(format!("a byte between {:#x} and {:#x} differs", outside.start, outside.end));
        }
        at = at.max(range.end).min(end);
    }
    Ok(())
}
