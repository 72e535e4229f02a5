//! Functions under symbols without a type: assembly without `.type NAME,@function`.
//!
//! Other files call a visible symbol, so one in code begins a function. It does not where a symbol with a type has the place: at it, or
//! with a size around it. Local symbols are labels, of which compilers and assemblers write many: one names a function only where
//! known code calls it.

use hotswap_program::{CodeSource, MarkKind};

/// Makes visible symbols without a type those of functions.
pub(crate) fn with_untyped_functions(mut source: CodeSource<'_>) -> CodeSource<'_> {
    let mut end = 0;
    for number in 0..source.marks.len() {
        let mark = &source.marks[number];
        let has_own_place = mark.offset >= end && !is_typed_at(&source, number);
        if mark.kind == MarkKind::Label && mark.exported && has_own_place && mark.offset.is_multiple_of(4) {
            source.marks[number].kind = MarkKind::Function;
        } else if mark.kind != MarkKind::Label {
            end = end.max(mark.offset.saturating_add(mark.size));
        }
    }
    source
}

/// Whether a symbol with a type is at the same place. At one place these come first.
fn is_typed_at(source: &CodeSource<'_>, number: usize) -> bool {
    let offset = source.marks[number].offset;
    let same = source.marks[..number].iter().rev().take_while(|mark| mark.offset == offset);
    same.into_iter().any(|mark| mark.kind != MarkKind::Label)
}
