//! The differences that have a reason: `effects-rules.txt`.
//!
//! Invariant: a rule that explains nothing fails the exam, so the list contains only true statements.

use std::fmt;

pub const LIST: &str = include_str!("../../effects-rules.txt");

/// How `hotswap-isa` and LLVM differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// LLVM has it, `hotswap-isa` has not.
    Missing,
    /// `hotswap-isa` has it, LLVM has not.
    Extra,
    /// Another register, or fewer of them.
    Other,
    /// More registers than LLVM has.
    Wider,
}

impl Kind {
    /// Its name in the list.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Extra => "extra",
            Self::Other => "other",
            Self::Wider => "wider",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    pub kind: Kind,
    /// A write rather than a read.
    pub written: bool,
    /// The register without an operand, or the name of the operand.
    pub what: String,
    /// The registers: LLVM's and ours.
    pub detail: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = if self.written { "write" } else { "read" };
        write!(out, "{} {access} {}", self.kind.as_str(), self.what)
    }
}

/// A line: the difference, mnemonics, tables, reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    difference: String,
    mnemonics: Vec<String>,
    tables: Vec<String>,
    pub reason: String,
}

/// Reads the list.
///
/// # Errors
/// The number of the line that does not have six parts.
pub fn read(text: &str) -> Result<Vec<Rule>, usize> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(at, line)| rule(line).ok_or(at + 1)).collect()
}

fn rule(line: &str) -> Option<Rule> {
    let words: Vec<&str> = line.splitn(6, ' ').collect();
    let [kind, access, what, mnemonics, tables, reason] = words[..] else { return None };
    let known = [Kind::Missing, Kind::Extra, Kind::Other, Kind::Wider].iter().any(|known| known.as_str() == kind);
    (known && ["read", "write"].contains(&access) && !reason.is_empty()).then(|| Rule {
        difference: format!("{kind} {access} {what}"),
        mnemonics: comma_separated_names(mnemonics),
        tables: comma_separated_names(tables),
        reason: reason.to_owned(),
    })
}

fn comma_separated_names(list: &str) -> Vec<String> {
    list.split(',').map(str::to_owned).collect()
}

impl Rule {
    /// Whether it explains the difference in that instruction.
    pub fn explains(&self, difference: &Difference, mnemonic: &str, table: &str) -> bool {
        self.difference == difference.to_string()
            && self.mnemonics.iter().any(|pattern| matches(pattern, mnemonic))
            && self.tables.iter().any(|pattern| matches(pattern, table))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = match self.mnemonics.as_slice() {
            [first, _, .., last] => format!("{first} … {last}"),
            names => names.join(","),
        };
        write!(out, "{} of {names}: {}", self.difference, self.reason)
    }
}

/// `*` at the end of a pattern matches any suffix.
fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |head| name.starts_with(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_list_can_be_read() {
        assert!(read(LIST).is_ok());
    }

    #[test]
    fn a_rule_explains_its_own_difference_only() {
        let rules = read("# list\nextra read EXEC v_swap* gfx11,gfx12* a reason of words\n").unwrap();
        let difference = |kind, written| Difference { kind, written, what: "EXEC".into(), detail: String::new() };
        let explains = |kind, written, mnemonic, table| rules[0].explains(&difference(kind, written), mnemonic, table);
        assert!(explains(Kind::Extra, false, "v_swaprel_b32", "gfx1250"));
        assert!(!explains(Kind::Missing, false, "v_swaprel_b32", "gfx11"));
        assert!(!explains(Kind::Extra, true, "v_swaprel_b32", "gfx11"));
        assert!(!explains(Kind::Extra, false, "v_mov_b32", "gfx11"));
        assert!(!explains(Kind::Extra, false, "v_swap_b32", "gfx11_fake16"));
        assert_eq!(rules[0].reason, "a reason of words");
        for bad in ["extra read EXEC v_a gfx11", "odd read EXEC v_a gfx11 reason", "extra reads EXEC v_a * reason"] {
            assert_eq!(read(bad), Err(1), "{bad}");
        }
    }
}
