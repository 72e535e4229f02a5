//! Companion objects: data that a device link passes along with a code object to the step that makes the fat binary.
//!
//! Some targets need more than the code object that the compiler's link leaves: the same code with its relocations, or
//! the same bitcode compiled for another target. The two steps share nothing but the file, which every mode of the
//! driver passes on unchanged. So the companion is appended to the code object, and removed before the fat binary is
//! complete.
//!
//! ```text
//! code object | zeros up to 8 bytes | companion | magic (16 bytes) | size of the code object, u64 | size of the companion, u64
//! ```
//!
//! The companion is a code object, too. For the same target it is the same code with relocations, otherwise the code
//! for its target. Where a file gets into a fat binary without HotSwap, the loader ignores everything after the code
//! object.
//!
//! Invariants: removing the companion leaves the compiler's own bytes; a companion with relocations is compared with
//! the code object that it belongs to, section by section.

use hotswap_bundle::{Bundle, EntryBytes};
use hotswap_code_object::{CodeMap, CodeObject, ElfSectionView};
use hotswap_families::FamilyRegistry;
use hotswap_isa::{Isa, Target};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use std::collections::BTreeSet;

const MAGIC: [u8; 16] = *b"HotSwap: beside\n";
const TRAILER: usize = MAGIC.len() + 16;

/// Section flag `SHF_ALLOC`: it is loaded.
const ALLOC: u64 = 2;

/// The bytes that surround a companion.
pub struct CompanionFrame {
    /// Zeros between the code object and the companion.
    pub padding: Vec<u8>,
    /// Magic and sizes, which follow the companion.
    pub trailer: Vec<u8>,
}

/// The bytes before and after a companion of that size, which follows a code object of that size.
pub fn frame_companion(code_object: usize, companion: usize) -> CompanionFrame {
    let padding = vec![0; code_object.next_multiple_of(8) - code_object];
    let sizes = [code_object as u64, companion as u64].map(u64::to_le_bytes);
    CompanionFrame { padding, trailer: [&MAGIC[..], &sizes[0], &sizes[1]].concat() }
}

/// The sizes in a trailer, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CompanionSizes {
    code_object: u64,
    companion: u64,
}

/// Sizes of code object and companion; `None` without a companion.
fn companion_sizes(bytes: &[u8]) -> Option<CompanionSizes> {
    let trailer = bytes.len().checked_sub(TRAILER)?;
    let (magic, sizes) = bytes[trailer..].split_at(MAGIC.len());
    let (code_object, companion) = (read_companion_size(0, sizes)?, read_companion_size(8, sizes)?);
    let expected = code_object.checked_next_multiple_of(8)?.checked_add(companion)?;
    (magic == MAGIC && expected == trailer as u64).then_some(CompanionSizes { code_object, companion })
}

fn read_companion_size(at: usize, sizes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(sizes.get(at..at + 8)?.try_into().ok()?))
}

/// The companion of an entry.
pub(crate) struct Companion<'a> {
    pub(crate) entry: String,
    companion: EntryBytes<'a>,
}

/// Removes the companions from the bundle's entries.
pub(crate) fn take_companions<'a>(bundle: &mut Bundle<'a>) -> Result<Vec<Companion<'a>>, Diagnostic> {
    let mut taken = Vec::new();
    for (id, data) in bundle.entries().iter().map(|entry| (entry.id.clone(), entry.data.clone())).collect::<Vec<_>>() {
        let Some(sizes) = companion_sizes(&data) else { continue };
        let start = sizes.code_object.next_multiple_of(8);
        let parts = data.part(0..sizes.code_object).zip(data.part(start..start + sizes.companion));
        let (own, companion) = parts.ok_or_else(|| companion_range_error(&id))?;
        bundle.set_data(&id, own);
        taken.push(Companion { entry: id, companion });
    }
    Ok(taken)
}

fn companion_range_error(id: &str) -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, "a companion leaves its entry").in_entry(id)
}

impl Companion<'_> {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.companion
    }
}

/// Whether `other` is the same code as `one` when it is loaded; the order of its symbols may differ.
///
/// # Errors
/// The difference, as half a sentence; a file that cannot be read.
pub fn is_same_code(one: &CodeObject<'_>, other: &[u8]) -> Result<(), String> {
    let other = parse_companion(other)?;
    let (here, there) = (loaded_sections(one), loaded_sections(&other));
    if one.e_flags() != other.e_flags() || here.len() != there.len() {
        return Err("the target or the number of loaded sections differs".to_owned());
    }
    for (one_section, other_section) in here.iter().zip(&there) {
        let named = one_section.name == other_section.name && has_same_header(one_section, other_section);
        let (content, again) =
            (one.bytes().get(one_section.range.clone()), other.bytes().get(other_section.range.clone()));
        let same = SYMBOLS.contains(&one_section.name) || content == again;
        if !named || !same {
            return Err(format!("section `{}` differs", one_section.name));
        }
    }
    if dynamic_symbols(one) == dynamic_symbols(&other) { Ok(()) } else { Err("a dynamic symbol differs".to_owned()) }
}

fn has_same_header(one: &ElfSectionView<'_>, other: &ElfSectionView<'_>) -> bool {
    one.kind == other.kind
        && one.flags == other.flags
        && one.address == other.address
        && one.range.len() == other.range.len()
        && one.align == other.align
}

fn parse_companion(data: &[u8]) -> Result<CodeObject<'_>, String> {
    CodeObject::parse(data).map_err(|error| error.what)
}

/// Sections whose content follows the order of symbols.
const SYMBOLS: &[&str] = &[".dynsym", ".dynstr", ".hash", ".gnu.hash"];

fn loaded_sections<'o, 'a>(object: &'o CodeObject<'a>) -> Vec<&'o ElfSectionView<'a>> {
    object.sections().iter().filter(|section| section.flags & ALLOC != 0).collect()
}

/// An entry of `.dynsym`. A section's number counts the loaded ones, which come first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct DynamicSymbol<'a> {
    name: &'a [u8],
    /// The entry without the offset of its name.
    fields: &'a [u8],
}

fn dynamic_symbols<'a>(object: &CodeObject<'a>) -> BTreeSet<DynamicSymbol<'a>> {
    let (rows, names) = (section_content(object, ".dynsym"), section_content(object, ".dynstr"));
    rows.chunks_exact(24).map(|row| read_dynamic_symbol(row, names)).collect()
}

fn section_content<'a>(object: &CodeObject<'a>, name: &str) -> &'a [u8] {
    let section = object.sections().iter().find(|section| section.name == name);
    section.and_then(|section| object.bytes().get(section.range.clone())).unwrap_or_default()
}

fn read_dynamic_symbol<'a>(row: &'a [u8], names: &'a [u8]) -> DynamicSymbol<'a> {
    let at = u32::from_le_bytes([row[0], row[1], row[2], row[3]]) as usize;
    let name = names.get(at..).unwrap_or_default();
    DynamicSymbol { name: name.split(|byte| *byte == 0).next().unwrap_or_default(), fields: &row[4..] }
}

/// Whether a code object that was compiled again may replace the one it shares its bitcode with: the same kernels.
///
/// # Errors
/// The difference, as half a sentence.
pub fn has_same_kernels(one: &CodeObject<'_>, other: &CodeObject<'_>, target: &TargetId) -> Result<(), String> {
    if other.target_id() != *target {
        return Err(format!("it is for {}", other.target_id()));
    }
    if kernel_names(one) == kernel_names(other) { Ok(()) } else { Err("it has other kernels".to_owned()) }
}

fn kernel_names<'o>(object: &'o CodeObject<'_>) -> BTreeSet<&'o str> {
    object.note().kernels.iter().map(|kernel| kernel.name).collect()
}

/// [`has_same_kernels`], and it contains no instruction that the compiler copies unchanged from the source.
///
/// # Errors
/// As for [`has_same_kernels`]; the family that an instruction needs.
pub fn may_stand_for(code_object: &CodeObject<'_>, other: &[u8], target: &TargetId) -> Result<(), String> {
    let object = parse_companion(other)?;
    has_same_kernels(code_object, &object, target)?;
    let isa = Target::find(target.processor.name).map(Isa::new).ok_or("its instructions are not known")?;
    let rewriter = FamilyRegistry::installed().prepare_rewriter().map_err(|error| error.what)?;
    let sections = CodeMap::from_object(&object).sections;
    let mut entries =
        sections.iter().flat_map(|section| isa.walk(section.bytes)).filter_map(|(_, inst)| Some(inst.ok()?.entry()));
    let found = entries.find_map(|entry| Some((entry, rewriter.asked_for(entry)?)));
    found.map_or(Ok(()), |(entry, family)| {
        Err(format!("{} needs the family {}, which the compiler lacks", entry.mnemonic(), family.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rides_behind_comes_off_whole_or_not_at_all() {
        let whole = |own: &[u8], companion: &[u8]| {
            let frame = frame_companion(own.len(), companion.len());
            [own, &frame.padding, companion, &frame.trailer].concat()
        };
        for own in [&b"code"[..], b"an object", b"12345678"] {
            let bytes = whole(own, b"its companion");
            assert_eq!(companion_sizes(&bytes), Some(CompanionSizes { code_object: own.len() as u64, companion: 13 }));
            for cut in 0..bytes.len() {
                assert_eq!(companion_sizes(&bytes[..cut]), None, "{cut}");
            }
            let mut bundle = Bundle::default();
            bundle.push("x", bytes).unwrap();
            let taken = take_companions(&mut bundle).unwrap();
            assert_eq!((&*bundle.entry("x").unwrap().data, &*taken[0].companion), (own, &b"its companion"[..]));
            assert!(take_companions(&mut bundle).unwrap().is_empty());
        }
        let mut wrong = whole(b"code", b"its companion");
        let at = wrong.len() - 8;
        wrong[at..].fill(0xff);
        assert_eq!(companion_sizes(&wrong), None);
    }
}
