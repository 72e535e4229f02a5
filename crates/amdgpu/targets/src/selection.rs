//! Lists of processors that follow from the columns of the table: tables of other crates name a group or a family, so that a
//! new row of the table is in them.
//!
//! The lists are made when the crate that asks is compiled: [`processors!`](crate::processors).
//!
//! Absent on purpose: which processors one list should have; that is said where it is used.

use crate::{IsaFamily, PROCESSORS, Processor, ProcessorKind};

/// Processors with one thing in common.
#[derive(Debug, Clone, Copy)]
pub enum Selection {
    /// The siblings of this group.
    Group(&'static str),
    /// The native processors of a family, those apart that LLVM has withdrawn.
    Family(IsaFamily),
    /// The processor of that name.
    Named(&'static str),
}

impl Selection {
    const fn has(&self, processor: &Processor) -> bool {
        match self {
            Self::Group(name) => matches!(processor.group, Some(group) if is_same_text(group, name)),
            Self::Family(family) => {
                let is_native = matches!(processor.kind, ProcessorKind::Native);
                is_native && !processor.withdrawn && processor.family as u8 == *family as u8
            }
            Self::Named(name) => is_same_text(processor.name, name),
        }
    }
}

/// `==` of texts is not for constants.
const fn is_same_text(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

const fn is_selected(processor: &Processor, selections: &[Selection]) -> bool {
    let mut at = 0;
    while at < selections.len() {
        if selections[at].has(processor) {
            return true;
        }
        at += 1;
    }
    false
}

/// The number of processors in a list.
///
/// # Panics
/// A selection has none: its name is misspelt. For constants this is an error of the compiler.
#[must_use]
pub const fn selected_count(selections: &[Selection]) -> usize {
    let mut at = 0;
    while at < selections.len() {
        let one = [selections[at]];
        assert!(count_rows(&one) > 0, "no processor is selected by that name");
        at += 1;
    }
    count_rows(selections)
}

const fn count_rows(selections: &[Selection]) -> usize {
    let (mut count, mut row) = (0, 0);
    while row < PROCESSORS.len() {
        if is_selected(&PROCESSORS[row], selections) {
            count += 1;
        }
        row += 1;
    }
    count
}

/// The names in a list, in the order of the table.
///
/// # Panics
/// `N` is not [`selected_count`].
#[must_use]
pub const fn selected_names<const N: usize>(selections: &[Selection]) -> [&'static str; N] {
    let (mut names, mut count, mut row) = ([""; N], 0, 0);
    while row < PROCESSORS.len() {
        if is_selected(&PROCESSORS[row], selections) {
            names[count] = PROCESSORS[row].name;
            count += 1;
        }
        row += 1;
    }
    assert!(count == N, "another number of processors");
    names
}

/// The names of the processors in [`Selection`]s, as a `&'static [&'static str]` for constants.
#[macro_export]
macro_rules! processors {
    ($($selection:expr),+ $(,)?) => {
        &$crate::selected_names::<{ $crate::selected_count(&[$($selection),+]) }>(&[$($selection),+])
    };
}

#[cfg(test)]
mod tests {
    use super::Selection::{Family, Group, Named};
    use crate::IsaFamily::Cdna3;

    const SIBLINGS: &[&str] = processors![Named("gfx908"), Group("gfx900")];
    const FAMILIES: &[&str] = processors![Named("gfx10-3-generic"), Family(Cdna3)];

    #[test]
    fn lists_follow_from_the_columns_in_the_order_of_the_table() {
        assert_eq!(SIBLINGS, ["gfx900", "gfx902", "gfx908", "gfx909", "gfx90c"]);
        assert_eq!(FAMILIES, ["gfx942", "gfx10-3-generic"]);
    }

    #[test]
    #[should_panic(expected = "no processor is selected by that name")]
    fn a_name_that_the_table_lacks_is_refused() {
        let _ = super::selected_count(&[Group("gfx1030"), Group("gfx1037")]);
    }
}
