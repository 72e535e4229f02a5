//! Matches over enums whose variants are added by rows: `tidy` asks each file with such a match to let clippy refuse a `_`
//! in it, so that the compiler names every place where something must be decided about a new variant.
//!
//! Absent on purpose: reading Rust. That a match has no `_` is clippy's answer; here is asked only whether clippy is told to.

use crate::tidy::is_product;

/// Enums with a variant for each file or row that someone adds.
const GROWING_ENUMS: &[&str] = &["ContainerForm"];

const LINT: &str = "deny(clippy::wildcard_enum_match_arm)";

/// The complaint about a file, if it matches over such an enum without the lint.
pub(crate) fn complaint(name: &str, text: &str) -> Option<String> {
    if !is_product(name) || text.contains(LINT) {
        return None;
    }
    let growing = GROWING_ENUMS.iter().find(|growing| text.lines().any(|line| is_arm(line, growing)))?;
    Some(format!(
        "{name}: a match over {growing} without `#[{LINT}]` on its function or module: a new variant could be forgotten there"
    ))
}

/// Whether a line is an arm of a match, or a part of one, that names a variant.
fn is_arm(line: &str, growing: &str) -> bool {
    let line = line.trim_start().trim_start_matches("| ");
    let Some(rest) = line.strip_prefix(growing).and_then(|rest| rest.strip_prefix("::")) else { return false };
    rest.contains(" => ") || rest.contains(" | ") || !rest.contains([',', ';', '=', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_without_the_lint_is_told_and_other_uses_are_not() {
        let file = "crates/containers/bundle/src/some.rs";
        let arm = "match form {\n    ContainerForm::Bare => 1,\n    _ => 2,\n}\n";
        let told = complaint(file, arm).unwrap();
        assert!(told.starts_with(&format!("{file}: a match over ContainerForm")), "{told}");
        assert!(complaint(file, "    | ContainerForm::Bundle\n").is_some());
        assert_eq!(complaint(file, &format!("#[{LINT}]\n{arm}")), None);
        assert_eq!(complaint(file, "let form = ContainerForm::Bare;\nok(ContainerForm::Bundle, 3)\n"), None);
        assert_eq!(complaint("tests/harness/tests/some.rs", arm), None);
    }
}
