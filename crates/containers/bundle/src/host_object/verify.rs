//! Reads the result with the `object` crate and compares it with the input, section by section.

use super::SECTION;
use crate::bytes::malformed_at;
use hotswap_report::{Diagnostic, codes};
use object::{Object, ObjectSection, ObjectSymbol, SectionIndex};

fn verify_failed(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, what).in_entry(SECTION)
}

/// A section with new content.
#[derive(Clone, Copy)]
pub(super) struct PlannedSection<'p> {
    /// Its number, not its name: COFF objects may have several of one name.
    pub(super) index: SectionIndex,
    /// The size of its new content.
    pub(super) size: u64,
    /// Whether given bytes are that content.
    pub(super) is_content: &'p dyn Fn(&[u8]) -> bool,
}

pub(super) fn check_object(old: &[u8], new: &[u8], planned: PlannedSection<'_>) -> Result<(), Diagnostic> {
    let PlannedSection { index: section, size, .. } = planned;
    // Unreadable input is not a defect of ours.
    let before = object::File::parse(old).map_err(|error| malformed_at(format!("object file: {error}"), 0))?;
    let after = object::File::parse(new).map_err(|error| verify_failed(error.to_string()))?;
    if before.sections().count() != after.sections().count() {
        return Err(verify_failed("the number of sections differs"));
    }
    for (was, is) in before.sections().zip(after.sections()) {
        check_section(&was, &is, planned)?;
    }
    let old_size = before.section_by_index(section).map_err(|error| malformed_at(error.to_string(), 0))?.size();
    let exchanged = ReplacedSection { index: section, old: old_size, new: size };
    let planned = before.symbols().map(|symbol| symbol_facts(&symbol, Some(exchanged)));
    if !planned.eq(after.symbols().map(|symbol| symbol_facts(&symbol, None))) {
        return Err(verify_failed("the symbols differ"));
    }
    Ok(())
}

/// The section that got other content, and its sizes before and after.
#[derive(Clone, Copy)]
struct ReplacedSection {
    index: SectionIndex,
    old: u64,
    new: u64,
}

type ComparedSymbol = (Option<Vec<u8>>, u64, Option<SectionIndex>, u64);

/// The fields of a symbol, with its expected size after the replacement. A label without a size remains a label.
fn symbol_facts(symbol: &object::Symbol<'_, '_>, exchanged: Option<ReplacedSection>) -> ComparedSymbol {
    let (section, size) = (symbol.section_index(), symbol.size());
    let size = exchanged.filter(|one| names_whole_section(one, &section, size)).map_or(size, |exchanged| exchanged.new);
    (symbol.name_bytes().ok().map(<[u8]>::to_vec), symbol.address(), section, size)
}

fn names_whole_section(exchanged: &ReplacedSection, section: &Option<SectionIndex>, size: u64) -> bool {
    *section == Some(exchanged.index) && size != 0 && size == exchanged.old
}

fn check_section(
    was: &object::Section<'_, '_>,
    is: &object::Section<'_, '_>,
    PlannedSection { index: section, is_content, .. }: PlannedSection<'_>,
) -> Result<(), Diagnostic> {
    if is.name_bytes().ok() != was.name_bytes().ok() || is.align() != was.align() || is.flags() != was.flags() {
        return Err(verify_failed(format!("section {} differs", was.index())));
    }
    let same = if was.index() == section {
        is.data().is_ok_and(is_content)
    } else {
        // The symbol table holds the sizes that had to change; its symbols are compared one by one, and so are
        // relocations. A damaged file may give it another name.
        let is_table = was.kind() == object::SectionKind::Metadata && was.size() == is.size();
        is_table || was.data().ok() == is.data().ok()
    };
    if !same {
        return Err(verify_failed(format!("the content of section {} is not as planned", was.index())));
    }
    let relocations =
        |section: &object::Section<'_, '_>| section.relocations().map(|r| format!("{r:?}")).collect::<Vec<_>>();
    if relocations(was) != relocations(is) {
        return Err(verify_failed(format!("the relocations of section {} differ", was.index())));
    }
    Ok(())
}
