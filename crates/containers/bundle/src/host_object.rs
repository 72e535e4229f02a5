//! Replacing the fat binary inside a relocatable host object.
//!
//! `clang-linker-wrapper` passes to the host linker an object whose `.hip_fatbin` holds one bundle. [`replace_fatbin`]
//! replaces its content: the new one is appended to the file at the section's alignment, section header and symbol size
//! are adjusted, and all other bytes are unchanged. The old content is zeroed, so that nothing finds it by its magic.
//!
//! Invariant: the result is read again by a second reader (`object`) and compared before it is returned.
//!
//! Absent on purpose: ELF32, big-endian, linked programs ([`crate::linked`]), COFF (`coff_object`).

mod edit;
mod verify;

use crate::bytes::{malformed_at, u16_at};
use crate::draft::{DraftContent, DraftFacts, FileRope};
use crate::elf::{SHT_LLVM_OFFLOADING, SHT_NOBITS, SHT_PROGBITS, SectionHeader, SectionTable};
use crate::fatbin::walk_fatbin;
use hotswap_report::{Diagnostic, codes};
use object::SectionIndex;
use object::elf::ET_REL;
use verify::PlannedSection;

/// Section that holds the bundles.
pub(crate) const SECTION: &str = ".hip_fatbin";
const MACHINES: [u16; 2] = [62, 183]; // EM_X86_64, EM_AARCH64
/// The headers of an ELF64 little-endian relocatable object.
#[derive(Debug)]
struct ElfObject<'a> {
    bytes: &'a [u8],
    sections: SectionTable,
    /// Index of the section to replace.
    fatbin: Option<usize>,
}

/// Whether `bytes` begin as an object that [`replace_fatbin`] handles.
pub fn is_host_object(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF\x02\x01")
        && u16_at(bytes, 16) == Some(ET_REL)
        && u16_at(bytes, 18).is_some_and(|machine| MACHINES.contains(&machine))
}

/// The content of `.hip_fatbin`; `None` where the object lacks that section.
///
/// # Errors
/// [`codes::UNKNOWN_FORMAT`] where it is not a relocatable ELF object of a known host;
/// [`codes::MALFORMED`] where its headers are damaged.
pub fn fatbin_of(object: &[u8]) -> Result<Option<&[u8]>, Diagnostic> {
    section_of(object, SECTION)
}

/// As [`fatbin_of`] for a section of that name.
pub(crate) fn section_of<'a>(object: &'a [u8], name: &str) -> Result<Option<&'a [u8]>, Diagnostic> {
    let object = ElfObject::read(object, name)?;
    let Some(section) = object.fatbin_section() else { return Ok(None) };
    object.section_content(section).map(Some)
}

/// A copy of `object` with `new` as the content of `.hip_fatbin`.
///
/// # Errors
/// As [`fatbin_of`]; [`codes::NOT_FOUND`] without the section; [`codes::NO_PLACE`] where the content cannot move:
/// relocations inside of it, several bundles, symbols or addends that point beyond its start; [`codes::VERIFY_FAILED`]
/// where the result does not read back.
pub fn replace_fatbin(object: &[u8], new: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    replace_section(object, SECTION, new)
}

/// As [`replace_fatbin`] for a section of that name.
pub(crate) fn replace_section(object: &[u8], name: &str, new: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    let new = FileRope::from(new);
    let changed = draft_section(object, name, &new)?.try_to_vec().ok_or_else(oversized_object_error)?;
    verify_section(object, &changed, (name, &new), DraftFacts::Nothing).map(|()| changed)
}

fn oversized_object_error() -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, "the object would be larger than memory")
}

/// The object with `new` as the content of that section, before it is written and verified.
pub(crate) fn draft_section<'a>(object: &'a [u8], name: &str, new: &FileRope<'a>) -> Result<FileRope<'a>, Diagnostic> {
    let parsed = ElfObject::read(object, name)?;
    let section = parsed.fatbin_section().ok_or_else(|| Diagnostic::error(codes::NOT_FOUND, format!("no {name}")))?;
    if parsed.fatbin == Some(parsed.sections.names) {
        return Err(malformed_at(format!("{name} holds the names of the sections"), section.header));
    }
    if section.kind == 0 || section.kind == SHT_NOBITS {
        return Err(malformed_at(
            format!("the header of {name} says that the file holds no bytes of it"),
            section.header,
        ));
    }
    // Strings of symbols, symbols, relocations: sections that others refer to by number must keep their meaning.
    if ![SHT_PROGBITS, SHT_LLVM_OFFLOADING].contains(&section.kind) {
        return Err(malformed_at(format!("{name} is a section of type {:#x}", section.kind), section.header));
    }
    let old = parsed.section_content(section)?;
    if walk_fatbin(old).take(2).filter(Result::is_ok).count() > 1 {
        return Err(no_place("it holds several bundles, and symbols point to each"));
    }
    edit::replace_section(&parsed, section, new)
}

/// Whether `changed` is the object with that section's new content.
pub(crate) fn verify_section(
    object: &[u8],
    changed: &[u8],
    (name, new): (&str, &FileRope<'_>),
    known: DraftFacts,
) -> Result<(), Diagnostic> {
    let parsed = ElfObject::read(object, name)?;
    let section = SectionIndex(parsed.fatbin.unwrap_or_default());
    let planned = PlannedSection {
        index: section,
        size: new.size(),
        is_content: &|found| DraftContent::New(new).equals_content(found, known),
    };
    match verify::check_object(object, changed, planned) {
        Err(_) if !parsed.sections.are_apart(object) => Err(malformed_at("sections overlap or leave the file", 40)),
        result => result,
    }
}

pub(crate) fn no_place(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, what).in_entry(SECTION).advise("report it with the object file")
}

/// Compares an object with itself before that section got that content.
pub(crate) fn verify_exchange(old: &[u8], new: &[u8], section: SectionIndex, content: &[u8]) -> Result<(), Diagnostic> {
    let size = content.len() as u64;
    verify::check_object(old, new, PlannedSection { index: section, size, is_content: &|found| found == content })
}

impl<'a> ElfObject<'a> {
    fn read(bytes: &'a [u8], name: &str) -> Result<Self, Diagnostic> {
        if !is_host_object(bytes) {
            let what = "it is no relocatable ELF64 object for x86-64 or AArch64";
            return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what));
        }
        let sections = SectionTable::read(bytes)?;
        if sections.all.is_empty() {
            // Zero headers stand for 65280 and more, too, whose symbols need a second table.
            let error = Diagnostic::error(codes::UNKNOWN_FORMAT, "it has no section headers, or more than 65279");
            return Err(error.at_offset(60).advise("build the object again; an object without them cannot be linked"));
        }
        let mut object = Self { bytes, sections, fatbin: None };
        object.fatbin = object.find_section(name)?;
        Ok(object)
    }

    fn find_section(&self, name: &str) -> Result<Option<usize>, Diagnostic> {
        let all = self.sections.all.iter().enumerate();
        let mut found = all.filter(|(_, section)| self.sections.is_named(self.bytes, section, name));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(no_place("the object has this section twice")),
            (first, _) => Ok(first.map(|(index, _)| index)),
        }
    }

    fn fatbin_section(&self) -> Option<&SectionHeader> {
        self.sections.all.get(self.fatbin?)
    }

    fn section_content(&self, section: &SectionHeader) -> Result<&'a [u8], Diagnostic> {
        section.content(self.bytes).ok_or_else(|| malformed_at("a section leaves the file", section.header))
    }
}
