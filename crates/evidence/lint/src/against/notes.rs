//! The notes: each note of the original is in the rewritten file, in its order, and says the same.
//!
//! The metadata (`AMDGPU`, type 32) is compared as a tree of values: every key of every kernel and every argument, in its
//! order. Permitted differences: the target, counts of registers (no fewer), and the private segments of kernels that
//! spill registers. The last note, the certificate, is compared elsewhere; it is a hint.

use super::spill::PrivateNeeds;
use hotswap_code_object::CodeObject;
use hotswap_code_object::image::{ObjectImage, SectionPart};
use object::elf;
use rmpv::ValueRef;

/// Owner and type of the metadata.
const METADATA: (&[u8], u32) = (b"AMDGPU\0", 32);
/// Owner of the certificate.
const CERTIFICATE: &[u8] = b"HotSwap\0";
/// Levels of maps and arrays: files of compilers have five.
const DEPTH: usize = 32;

struct NoteRow<'a> {
    owner: &'a [u8],
    kind: u32,
    content: &'a [u8],
}

/// A file with its object: the text of its target is the object's.
pub(super) type NotedFile<'f, 'a> = (&'f CodeObject<'a>, &'f ObjectImage<'a>);

/// Compares the notes of all sections of notes.
pub(super) fn compare_notes(
    (old_object, old): NotedFile<'_, '_>,
    (new_object, new): NotedFile<'_, '_>,
    needs: &PrivateNeeds,
) -> Result<(), String> {
    let comparison = MetadataComparison { target: expected_target(old_object, new_object), needs };
    if count_note_sections(new) < count_note_sections(old) {
        return Err("a section of notes is missing".to_owned());
    }
    for (before, after) in old.sections.iter().zip(&new.sections).filter(|(part, _)| part.kind == elf::SHT_NOTE) {
        let (before, after) = (without_certificate(before)?, without_certificate(after)?);
        if before.len() != after.len() {
            return Err("the number of notes differs".to_owned());
        }
        for (before, after) in before.iter().zip(&after) {
            if (before.owner, before.kind) != (after.owner, after.kind) {
                return Err("a note has another owner or type".to_owned());
            }
            match (before.owner, before.kind) == METADATA {
                true => comparison.compare_note(before.content, after.content)?,
                false if before.content != after.content => return Err("a note has other contents".to_owned()),
                false => {}
            }
        }
    }
    Ok(())
}

fn count_note_sections(image: &ObjectImage<'_>) -> usize {
    image.sections.iter().filter(|part| part.kind == elf::SHT_NOTE).count()
}

/// The text that names the target: the original's, with the other processor, which LLVM 24 names in the triple as well.
fn expected_target(old: &CodeObject<'_>, new: &CodeObject<'_>) -> String {
    let [before, after] = [old, new].map(|object| object.target_id().processor);
    let text = old.note().target;
    let own_arch = format!("amdgpu{}-", before.subarch);
    let (arch, rest) = match text.strip_prefix(&own_arch) {
        Some(rest) => (format!("amdgpu{}-", after.subarch), rest),
        None => (String::new(), text),
    };
    arch + &rest.replacen(before.name, after.name, 1)
}

fn without_certificate<'a>(part: &SectionPart<'a>) -> Result<Vec<NoteRow<'a>>, String> {
    let mut rows = note_rows(part).ok_or_else(|| format!("the notes of `{}` cannot be read", part.name))?;
    rows.retain(|row| row.owner != CERTIFICATE);
    Ok(rows)
}

/// The notes of a section; `None` if their sizes do not add up, or padding is not zero.
fn note_rows<'a>(part: &SectionPart<'a>) -> Option<Vec<NoteRow<'a>>> {
    let align = usize::try_from(part.align).ok().filter(|align| *align > 4).unwrap_or(4);
    let mut rows = Vec::new();
    let mut rest = part.bytes;
    while !rest.is_empty() {
        let (owner_size, size, kind) =
            (note_header_word(0, rest)? as usize, note_header_word(4, rest)? as usize, note_header_word(8, rest)?);
        let owner_end = 12_usize.checked_add(owner_size)?;
        let begin = owner_end.checked_next_multiple_of(align)?;
        let end = begin.checked_add(size)?;
        let next = end.checked_next_multiple_of(align)?.min(rest.len());
        let padding = [rest.get(owner_end..begin)?, rest.get(end..next)?];
        if padding.into_iter().flatten().any(|byte| *byte != 0) {
            return None;
        }
        rows.push(NoteRow { owner: rest.get(12..owner_end)?, kind, content: rest.get(begin..end)? });
        rest = rest.get(next..)?;
    }
    Some(rows)
}

fn note_header_word(at: usize, rest: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?))
}

/// The permitted differences of the metadata.
struct MetadataComparison<'n> {
    target: String,
    needs: &'n PrivateNeeds,
}

impl MetadataComparison<'_> {
    fn compare_note(&self, old: &[u8], new: &[u8]) -> Result<(), String> {
        let (before, after) = (decode_tree(old)?, decode_tree(new)?);
        let (before, after) = (map_entries(&before)?, map_entries(&after)?);
        compare_pairs(before, after, |key, before, after| match key {
            "amdhsa.target" if text_of(after) == Some(&self.target) => Ok(()),
            "amdhsa.kernels" => self.compare_kernels(before, after),
            _ => compare_values(key, before, after),
        })
    }

    fn compare_kernels(&self, old: &ValueRef<'_>, new: &ValueRef<'_>) -> Result<(), String> {
        let (ValueRef::Array(before), ValueRef::Array(after)) = (old, new) else {
            return Err("`amdhsa.kernels` is not a list".to_owned());
        };
        if before.len() != after.len() {
            return Err("the number of kernels differs".to_owned());
        }
        before
            .iter()
            .zip(after)
            .try_for_each(|(before, after)| self.compare_kernel(map_entries(before)?, map_entries(after)?))
    }

    fn compare_kernel(&self, old: &NoteEntries<'_>, new: &NoteEntries<'_>) -> Result<(), String> {
        let symbol = text_value(old, ".symbol").and_then(|symbol| symbol.strip_suffix(".kd"));
        let symbol = symbol.or(text_value(old, ".name")).unwrap_or_default();
        let needed = self.needs.needed_size(symbol);
        let result = compare_pairs(old, new, |key, before, after| match (key, before.as_u64(), after.as_u64()) {
            (".vgpr_count" | ".sgpr_count", Some(before), Some(after)) if before <= after => Ok(()),
            (".private_segment_fixed_size", Some(_), Some(after)) if needed.map(u64::from) == Some(after) => Ok(()),
            _ => compare_values(key, before, after),
        });
        result.map_err(|what| format!("`{symbol}`: {what}"))
    }
}

/// Keys with their values, in the order of the note.
type NoteEntries<'a> = Vec<(ValueRef<'a>, ValueRef<'a>)>;

fn decode_tree(content: &[u8]) -> Result<ValueRef<'_>, String> {
    let mut rest = content;
    let value = rmpv::decode::read_value_ref_with_max_depth(&mut rest, DEPTH).map_err(|error| error.to_string())?;
    match rest.is_empty() {
        true => Ok(value),
        false => Err("bytes follow the metadata".to_owned()),
    }
}

fn map_entries<'v, 'a>(value: &'v ValueRef<'a>) -> Result<&'v NoteEntries<'a>, String> {
    match value {
        ValueRef::Map(entries) => Ok(entries),
        _ => Err("a table of keys is missing".to_owned()),
    }
}

fn text_value<'v>(entries: &'v NoteEntries<'_>, key: &str) -> Option<&'v str> {
    value_of(entries, key).and_then(text_of)
}

fn text_of<'v>(value: &'v ValueRef<'_>) -> Option<&'v str> {
    match value {
        ValueRef::String(text) => text.as_str(),
        _ => None,
    }
}

fn value_of<'v, 'a>(entries: &'v NoteEntries<'a>, key: &str) -> Option<&'v ValueRef<'a>> {
    entries.iter().find(|(own, _)| text_of(own) == Some(key)).map(|(_, value)| value)
}

/// Compares the values of the same keys; the keys have the same order.
fn compare_pairs<'a, 'b>(
    old: &NoteEntries<'a>,
    new: &NoteEntries<'b>,
    mut each: impl FnMut(&str, &ValueRef<'a>, &ValueRef<'b>) -> Result<(), String>,
) -> Result<(), String> {
    if old.len() != new.len() {
        return Err("the number of keys differs".to_owned());
    }
    for ((old_key, before), (new_key, after)) in old.iter().zip(new) {
        let Some(key) = text_of(old_key).filter(|key| text_of(new_key) == Some(key)) else {
            return Err(format!("the key `{}` is another", text_of(old_key).unwrap_or("?")));
        };
        each(key, before, after)?;
    }
    Ok(())
}

fn compare_values(key: &str, old: &ValueRef<'_>, new: &ValueRef<'_>) -> Result<(), String> {
    match old == new {
        true => Ok(()),
        false => Err(format!("`{key}` is described otherwise")),
    }
}
