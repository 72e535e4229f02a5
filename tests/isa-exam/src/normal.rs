//! Spelling: the compared texts are normalized first.
//!
//! Invariant: each rule has the reason why the two spellings are equivalent; none of them drops a part of an operand.

/// A rule of spelling.
pub struct Rule {
    /// Why the spellings that it unifies are equivalent.
    pub reason: &'static str,
    /// The replacement.
    pub apply: fn(String) -> String,
}

/// All rules, in the order in which they are applied.
pub const RULES: &[Rule] = &[
    Rule {
        reason: "LLVM's C interface puts comments of the decoder behind the text; they are no part of the assembly",
        apply: |text| text.split('\n').next().and_then(|line| line.split(" ;").next()).unwrap_or_default().to_owned(),
    },
    Rule {
        reason: "blanks separate words, however many there are, and LLVM aligns some operands with tabs",
        apply: |text| text.split_ascii_whitespace().collect::<Vec<_>>().join(" "),
    },
];

/// The text after all rules.
pub fn normal(text: &str) -> String {
    RULES.iter().fold(text.to_owned(), |text, rule| (rule.apply)(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_is_made_equal_and_content_is_not() {
        assert_eq!(normal("\tv_add  v0,\tv1"), normal("v_add v0, v1"));
        assert_ne!(normal("v_add v0, v1"), normal("v_add v0, v2"));
        assert_eq!(normal("s_nop 0 ; comment"), "s_nop 0");
    }
}
