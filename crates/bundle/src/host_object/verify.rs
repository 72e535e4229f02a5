//! Reads the result with the `object` crate and compares it with the input, section by section.

use super::SECTION;
use hotswap_report::{Diagnostic, codes};
use object::{Object, ObjectSection, ObjectSymbol};

fn failed(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, what).in_entry(SECTION)
}

pub(super) fn check(old: &[u8], new: &[u8], (section, content): (&str, &[u8])) -> Result<(), Diagnostic> {
    let read = |bytes| object::File::parse(bytes).map_err(|error| failed(error.to_string()));
    let (before, after) = (read(old)?, read(new)?);
    if before.sections().count() != after.sections().count() {
        return Err(failed("the number of sections differs"));
    }
    for (was, is) in before.sections().zip(after.sections()) {
        check_section(&was, &is, (section, content))?;
    }
    let symbols = |file: &object::File<'_>, size: Option<u64>| -> Vec<_> {
        let size =
            |symbol: &object::Symbol<'_, '_>| if Some(symbol.size()) == size { None } else { Some(symbol.size()) };
        file.symbols()
            .map(|s| (s.name_bytes().ok().map(<[u8]>::to_vec), s.address(), s.section_index(), size(&s)))
            .collect()
    };
    let old_size = before.section_by_name(section).map(|section| section.size());
    if symbols(&before, old_size) != symbols(&after, Some(content.len() as u64)) {
        return Err(failed("the symbols differ"));
    }
    Ok(())
}

fn check_section(
    was: &object::Section<'_, '_>,
    is: &object::Section<'_, '_>,
    (section, content): (&str, &[u8]),
) -> Result<(), Diagnostic> {
    let name = was.name_bytes().unwrap_or_default();
    if is.name_bytes().ok() != Some(name) || is.align() != was.align() || is.flags() != was.flags() {
        return Err(failed(format!("section {} differs", was.index())));
    }
    let same = if name == section.as_bytes() {
        is.data().is_ok_and(|data| data == content)
    } else {
        // The symbol table holds the sizes that had to change; its symbols are compared one by one.
        name == b".symtab" || was.data().ok() == is.data().ok()
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
