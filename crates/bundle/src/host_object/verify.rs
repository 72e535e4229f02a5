//! Reads the result with the `object` crate and compares it with the input, section by section.

use super::SECTION;
use crate::bytes::malformed;
use hotswap_report::{Diagnostic, codes};
use object::{Object, ObjectSection, ObjectSymbol};

fn failed(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, what).in_entry(SECTION)
}

/// The section's name, the size of its new content, and whether bytes are that.
type Planned<'p> = (&'p str, u64, &'p dyn Fn(&[u8]) -> bool);

pub(super) fn check(old: &[u8], new: &[u8], planned: Planned<'_>) -> Result<(), Diagnostic> {
    let (section, size, _) = planned;
    // What the input cannot be read as is not our fault.
    let before = object::File::parse(old).map_err(|error| malformed(format!("object file: {error}"), 0))?;
    let after = object::File::parse(new).map_err(|error| failed(error.to_string()))?;
    if before.sections().count() != after.sections().count() {
        return Err(failed("the number of sections differs"));
    }
    for (was, is) in before.sections().zip(after.sections()) {
        check_section(&was, &is, planned)?;
    }
    let place = before.section_by_name(section).map(|section| section.index());
    let old_size = before.section_by_name(section).map(|section| section.size());
    if symbols(&before, place, old_size) != symbols(&after, place, Some(size)) {
        return Err(failed("the symbols differ"));
    }
    Ok(())
}

type Symbol = (Option<Vec<u8>>, u64, Option<object::SectionIndex>, Option<u64>);

/// The symbols, without the size of those that name the whole content of the section.
fn symbols(file: &object::File<'_>, place: Option<object::SectionIndex>, size: Option<u64>) -> Vec<Symbol> {
    let one = |symbol: object::Symbol<'_, '_>| {
        let section = symbol.section_index();
        let is_whole = section.is_some() && section == place && Some(symbol.size()) == size;
        let name = symbol.name_bytes().ok().map(<[u8]>::to_vec);
        (name, symbol.address(), section, (!is_whole).then(|| symbol.size()))
    };
    file.symbols().map(one).collect()
}

fn check_section(
    was: &object::Section<'_, '_>,
    is: &object::Section<'_, '_>,
    (section, _, is_planned): Planned<'_>,
) -> Result<(), Diagnostic> {
    let name = was.name_bytes().unwrap_or_default();
    if is.name_bytes().ok() != was.name_bytes().ok() || is.align() != was.align() || is.flags() != was.flags() {
        return Err(failed(format!("section {} differs", was.index())));
    }
    let same = if name == section.as_bytes() {
        is.data().is_ok_and(is_planned)
    } else {
        // The symbol table holds the sizes that had to change; its symbols are compared one by one, and so
        // are relocations. A damaged file may call it by another name.
        let is_table = was.kind() == object::SectionKind::Metadata && was.size() == is.size();
        is_table || was.data().ok() == is.data().ok()
    };
    if !same {
        return Err(failed(format!("the content of section {} is not as planned", was.index())));
    }
    let relocations =
        |section: &object::Section<'_, '_>| section.relocations().map(|r| format!("{r:?}")).collect::<Vec<_>>();
    if relocations(was) != relocations(is) {
        return Err(failed(format!("the relocations of section {} differ", was.index())));
    }
    Ok(())
}
