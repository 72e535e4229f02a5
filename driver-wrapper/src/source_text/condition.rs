//! Conditional directives that test names of GPUs and have one value for all of them.
//!
//! `#if defined(__gfx1030__) || defined(__gfx1031__)` uses names that differ, and the compiler sees the same program for both
//! GPUs all the same. Such a directive is proven to be one from its tokens alone, and written with the source's values in the
//! names' places.
//!
//! Invariants: what is not understood is not proven. A part without names may have any value: each part with names must have
//! one value for all GPUs by itself, so that other parts are evaluated for all of them or for none.
//!
//! Absent on purpose: reading files ([`super::overlay`]), and macros: a name in the body of one is no condition.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The names that are poisoned, and the GPUs that define them.
#[derive(Debug)]
pub(super) struct NameValues<'a> {
    pub(super) poisoned: &'a BTreeSet<String>,
    /// Whether each GPU defines the name, as `1`; the source comes first. Names with other values are absent.
    pub(super) defined: BTreeMap<&'a str, Vec<bool>>,
}

/// The value of a part of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PartValue {
    /// Of names alone: the value for each GPU.
    Names(Vec<bool>),
    /// The same for all GPUs, whatever it is.
    Common,
}

/// A preprocessing token, as far as conditions need it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token<'a> {
    text: &'a str,
    /// In the directive's bytes.
    place: Range<usize>,
}

/// Signs of two characters; others have one.
const LONG_SIGNS: [&str; 8] = ["||", "&&", "==", "!=", "<=", ">=", "<<", ">>"];
/// Characters that begin what is not understood: comments, texts, characters, trigraphs, `?:`, and further `#`.
const NOT_UNDERSTOOD: &str = "\"'?#`@$\\";

/// The directive with the source's values in the names' places and of the same length, if its condition has one value for all
/// GPUs. `directive` is a logical line, with the `\` at the ends of its physical lines.
pub(super) fn settle_condition(directive: &[u8], names: &NameValues<'_>) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(directive).ok()?;
    let tokens = split_tokens(text)?;
    let [hash, keyword, condition @ ..] = &tokens[..] else { return None };
    if hash.text != "#" {
        return None;
    }
    let mut settled = directive.to_vec();
    match keyword.text {
        "if" | "elif" => {
            let parts = Condition { names, tokens: condition };
            let tests = parts.name_tests()?;
            if parts.part_value(0..condition.len())?.differs() {
                return None;
            }
            tests.iter().for_each(|one| one.write(&mut settled));
        }
        "ifdef" | "ifndef" | "elifdef" | "elifndef" => return settle_definedness(keyword, condition, names, settled),
        _ => return None,
    }
    Some(settled)
}

/// `#ifdef NAME` becomes `#if 1` or `#if 0`.
fn settle_definedness(
    keyword: &Token<'_>,
    condition: &[Token<'_>],
    names: &NameValues<'_>,
    mut settled: Vec<u8>,
) -> Option<Vec<u8>> {
    let [name] = condition else { return None };
    let values = names.defined.get(name.text)?;
    if PartValue::Names(values.clone()).differs() {
        return None;
    }
    let is_negated = keyword.text.ends_with("ndef");
    let plain = if keyword.text.starts_with("el") { "elif" } else { "if" };
    write_padded(&mut settled, &keyword.place, plain);
    write_padded(&mut settled, &name.place, if values[0] != is_negated { "1" } else { "0" });
    Some(settled)
}

impl PartValue {
    fn differs(&self) -> bool {
        matches!(self, Self::Names(values) if values.iter().any(|value| *value != values[0]))
    }
}

/// A test of a name in a condition.
struct NameTest {
    place: Range<usize>,
    /// Its value for the source.
    value: bool,
}

impl NameTest {
    fn write(&self, directive: &mut [u8]) {
        write_padded(directive, &self.place, if self.value { "1" } else { "0" });
    }
}

/// Line ends stay, so that line numbers do.
fn write_padded(bytes: &mut [u8], place: &Range<usize>, text: &str) {
    let old = &mut bytes[place.clone()];
    old.iter_mut().filter(|byte| !matches!(byte, b'\\' | b'\r' | b'\n')).for_each(|byte| *byte = b' ');
    old[..text.len()].copy_from_slice(text.as_bytes());
}

/// The tokens of an `#if` behind the keyword.
struct Condition<'a> {
    names: &'a NameValues<'a>,
    tokens: &'a [Token<'a>],
}

impl Condition<'_> {
    /// All tests of names; `None` where a name is used in another way.
    fn name_tests(&self) -> Option<Vec<NameTest>> {
        let named = (0..self.tokens.len()).filter(|at| self.names.poisoned.contains(self.tokens[*at].text));
        named.map(|at| self.name_test(at)).collect()
    }

    /// With the `defined` and the parentheses around the name.
    fn name_test(&self, at: usize) -> Option<NameTest> {
        let value = *self.names.defined.get(self.tokens[at].text)?.first()?;
        let before: Vec<&str> = self.tokens[at.saturating_sub(2)..at].iter().map(|token| token.text).collect();
        let [first, last] = match before[..] {
            ["defined", "("] => [at - 2, at + 1],
            [.., "defined"] => [at - 1, at],
            _ => [at, at],
        };
        let place = self.tokens[first].place.start..self.tokens.get(last)?.place.end;
        Some(NameTest { place, value })
    }

    /// Operands of `||`, of `&&` in them, and what these consist of.
    fn part_value(&self, part: Range<usize>) -> Option<PartValue> {
        for sign in ["||", "&&"] {
            let operands = self.split_operands(part.clone(), sign)?;
            if operands.len() > 1 {
                return self.joined_value(operands, sign == "||");
            }
        }
        self.operand_value(part)
    }

    /// Neighbours that consist of names are one part. Beside others it must not depend on the GPU: whether those are evaluated
    /// would depend on it.
    fn joined_value(&self, operands: Vec<Range<usize>>, is_or: bool) -> Option<PartValue> {
        let mut runs: Vec<PartValue> = Vec::new();
        for operand in operands {
            let value = self.part_value(operand)?;
            match (runs.last_mut(), value) {
                (Some(PartValue::Names(run)), PartValue::Names(value)) => {
                    for (one, other) in run.iter_mut().zip(value) {
                        *one = if is_or { *one || other } else { *one && other };
                    }
                }
                (_, value) => runs.push(value),
            }
        }
        match &runs[..] {
            [one] => Some(one.clone()),
            _ if runs.iter().any(PartValue::differs) => None,
            _ => Some(PartValue::Common),
        }
    }

    fn operand_value(&self, part: Range<usize>) -> Option<PartValue> {
        let texts: Vec<&str> = self.tokens[part.clone()].iter().map(|token| token.text).collect();
        match texts[..] {
            ["defined", name] | ["defined", "(", name, ")"] | [name] if self.names.poisoned.contains(name) => {
                self.names.defined.get(name).cloned().map(PartValue::Names)
            }
            ["!", _, ..] if self.is_primary(part.start + 1..part.end) => {
                Some(match self.part_value(part.start + 1..part.end)? {
                    PartValue::Names(values) => PartValue::Names(values.iter().map(|value| !value).collect()),
                    PartValue::Common => PartValue::Common,
                })
            }
            ["(", .., ")"] if self.is_primary(part.clone()) => self.part_value(part.start + 1..part.end - 1),
            [] => None,
            _ if texts.iter().any(|text| self.names.poisoned.contains(*text)) => None,
            _ => Some(PartValue::Common),
        }
    }

    /// One token, a `defined`, a negation of these, or one pair of parentheses around all.
    fn is_primary(&self, part: Range<usize>) -> bool {
        let tokens = &self.tokens[part.clone()];
        match tokens.iter().map(|token| token.text).collect::<Vec<_>>()[..] {
            [_] | ["defined", _] | ["defined", "(", _, ")"] => true,
            ["!", _, ..] => self.is_primary(part.start + 1..part.end),
            ["(", .., ")"] => self.end_of_parentheses(part.start) == Some(part.end - 1),
            _ => false,
        }
    }

    /// The parts between the signs outside parentheses; `None` if parentheses do not match.
    fn split_operands(&self, part: Range<usize>, sign: &str) -> Option<Vec<Range<usize>>> {
        let (mut operands, mut start, mut at) = (Vec::new(), part.start, part.start);
        while at < part.end {
            match self.tokens[at].text {
                "(" => at = self.end_of_parentheses(at).filter(|end| *end < part.end)?,
                ")" => return None,
                text if text == sign => {
                    operands.push(start..at);
                    start = at + 1;
                }
                _ => {}
            }
            at += 1;
        }
        operands.push(start..part.end);
        Some(operands)
    }

    fn end_of_parentheses(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match token.text {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(at);
            }
        }
        None
    }
}

/// The tokens of a logical line; `None` with anything that conditions of this kind do not have, such as comments.
fn split_tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match first {
            ' ' | '\t' | '\n' | '\r' => 1,
            // A word may go on behind the line's end: then the space before is missing, and neither half is a name.
            '\\' => line_splice(rest).filter(|_| at == 0 || text[..at].ends_with([' ', '\t']))?,
            _ if is_word_character(first) => rest.find(|one| !is_word_character(one)).unwrap_or(rest.len()),
            _ if rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with("*/") => return None,
            '#' if tokens.is_empty() => 1,
            _ if !first.is_ascii_graphic() || NOT_UNDERSTOOD.contains(first) => return None,
            _ if LONG_SIGNS.iter().any(|sign| rest.starts_with(sign)) => 2,
            _ => 1,
        };
        let is_token = !first.is_ascii_whitespace() && first != '\\';
        if is_token {
            tokens.push(Token { text: &rest[..length], place: at..at + length });
        }
        at += length;
    }
    Some(tokens)
}

/// The length of a `\` and the line's end behind it.
fn line_splice(text: &str) -> Option<usize> {
    ["\\\n", "\\\r\n"].into_iter().find(|splice| text.starts_with(splice)).map(str::len)
}

fn is_word_character(one: char) -> bool {
    one.is_ascii_alphanumeric() || one == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["A", "B", "C", "TEXT"];

    /// The source defines A, the targets B and C; TEXT has other values than 1.
    fn settled(directive: &str) -> Option<String> {
        let poisoned: BTreeSet<String> = NAMES.map(str::to_owned).into();
        let values = [[true, false, false], [false, true, false], [false, false, true]].map(|values| values.to_vec());
        let names = NameValues { poisoned: &poisoned, defined: ["A", "B", "C"].into_iter().zip(values).collect() };
        settle_condition(directive.as_bytes(), &names).map(|line| String::from_utf8(line).unwrap())
    }

    #[test]
    fn conditions_with_one_value_are_settled_for_the_source() {
        for (directive, expected) in [
            ("#if defined(A) || defined(B) || defined(C)", "#if 1          || 0          || 0         "),
            ("  # elif defined A||defined ( B )||C", "  # elif 1        ||0            ||0"),
            (
                "#if defined(A) || \\\n    defined(B) || defined(C)",
                "#if 1          || \\\n    0          || 0         ",
            ),
            ("#if X > 3 && (A || B || C) && F(1, 2)", "#if X > 3 && (1 || 0 || 0) && F(1, 2)"),
            ("#if !A && !B && !C || X", "#if !1 && !0 && !0 || X"),
            ("#if !(A || B || C) || (X == 1)", "#if !(1 || 0 || 0) || (X == 1)"),
            ("#if A && B", "#if 1 && 0"),
            ("#if !defined(A) || !defined(B) || X", "#if !1          || !0          || X"),
        ] {
            assert_eq!(settled(directive).as_deref(), Some(expected), "{directive}");
        }
    }

    #[test]
    fn other_conditions_are_not() {
        for directive in [
            "#if defined(A) || defined(B)",
            "#ifdef A",
            "#ifndef B",
            "#elifdef C",
            "#if A && X",
            // Whether X is evaluated depends on the GPU.
            "#if A || X || B || C",
            "#if (A ? 1 : 1)",
            "#if A == 1 || B || C",
            "#if A + B + C",
            "#if A or B or C",
            "#if not A || A",
            "#if -A || B || C",
            "#if F(A) || B || C",
            "#if defined(TEXT)",
            "#if (A || B || C",
            "#if A || B || C)",
            "#if A || B || C // all",
            "#if /* a */ A || B || C",
            "#define G A",
            "#undef A",
            "#pragma A",
            "int A = 1;",
            "#if",
            "#if A ||",
            "#if defined(A || B)",
            "#if X == 'A' || A || B || C",
            "#if A\\\nB || A || B || C",
        ] {
            assert_eq!(settled(directive), None, "{directive}");
        }
    }

    #[test]
    fn definedness_of_one_name_is_a_condition() {
        let poisoned: BTreeSet<String> = ["A".to_owned()].into();
        let values = |value| NameValues { poisoned: &poisoned, defined: [("A", vec![value, value])].into() };
        for (directive, value, expected) in [
            ("#ifdef A", true, "#if    1"),
            ("#ifdef A", false, "#if    0"),
            ("# ifndef A ", true, "# if     0 "),
            ("#elifndef A", false, "#elif     1"),
        ] {
            let line = settle_condition(directive.as_bytes(), &values(value)).unwrap();
            assert_eq!(String::from_utf8(line).unwrap(), expected, "{directive}");
        }
        assert!(settle_condition(b"#ifdef A B", &values(true)).is_none());
    }
}
