//! Macros in the operands of pragmas, which the preprocessor prints as they are written and the compiler expands.
//!
//! So texts that are equal can be two programs: `#pragma unroll N` where `N` is another number for each GPU. The preprocessor prints its
//! definitions with the text (`-dD`), and the words of a pragma are followed through them.
//!
//! Invariant: a word is followed through all definitions that it has anywhere in the text, since `push_macro` and `pop_macro` are not
//! printed. A text of which it is not certain which lines are definitions is not split.
//!
//! Absent on purpose: which pragmas expand their operands, and the value of an operand.

use memchr::memmem;
use std::collections::BTreeSet;
use std::ffi::OsString;

/// Makes the preprocessor print definitions.
pub(super) const WITH_DEFINITIONS: &str = "-dD";
const PRAGMA: &[u8] = b"#pragma ";
const DEFINE: &[u8] = b"#define ";
const UNDEFINE: &[u8] = b"#undef ";
/// The most bytes of a raw literal's delimiter.
const DELIMITER_LENGTH: usize = 16;

/// A text that was printed with definitions.
pub(super) struct DefinedText {
    /// The text as it is printed without them; their lines are empty.
    pub(super) text: Vec<u8>,
    /// The lines of all definitions, from the macro's name on. There are some ten thousand, and few are looked at.
    definitions: Vec<u8>,
}

/// The words of all pragmas in a text, followed through definitions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PragmaOperands {
    words: BTreeSet<Vec<u8>>,
    has_macros: bool,
    pastes: bool,
}

impl PragmaOperands {
    /// Whether no pragma has a macro: each is as it was printed.
    pub(super) fn are_plain(&self) -> bool {
        !self.has_macros
    }

    /// Whether all words are known, and none of them is one of these.
    pub(super) fn are_without<'n>(&self, mut names: impl Iterator<Item = &'n String>) -> bool {
        !self.pastes && !names.any(|name| self.words.contains(name.as_bytes()))
    }
}

impl DefinedText {
    /// The parts of a text that was printed with definitions.
    pub(super) fn split(printed: &[u8]) -> Option<Self> {
        if has_raw_directive(printed) {
            return None;
        }
        let mut split = Self { text: Vec::with_capacity(printed.len()), definitions: Vec::new() };
        for line in printed.split_inclusive(|byte| *byte == b'\n') {
            if let Some(definition) = line.strip_prefix(DEFINE) {
                split.definitions.extend_from_slice(definition);
                split.text.push(b'\n');
            } else if line.starts_with(UNDEFINE) {
                split.text.push(b'\n');
            } else {
                split.text.extend_from_slice(line);
            }
        }
        Some(split)
    }

    pub(super) fn pragma_operands(&self) -> PragmaOperands {
        let mut operands = PragmaOperands::default();
        let pragmas = lines(&self.text).filter_map(|line| line.strip_prefix(PRAGMA));
        let mut unread: BTreeSet<&[u8]> = pragmas.flat_map(words_of_line).collect();
        while !unread.is_empty() {
            let mut further = BTreeSet::new();
            for definition in lines(&self.definitions) {
                let mut words = words_of_line(definition);
                if words.next().is_some_and(|name| unread.contains(name)) {
                    operands.has_macros = true;
                    operands.pastes |= is_pasting(definition);
                    further.extend(words);
                }
            }
            operands.words.extend(unread.into_iter().map(<[u8]>::to_vec));
            unread = further.into_iter().filter(|word| !operands.words.contains(*word)).collect();
        }
        operands
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
}

/// Whether a definition makes words out of parts.
fn is_pasting(definition: &[u8]) -> bool {
    [&b"##"[..], b"%:%:"].iter().any(|operator| memmem::find(definition, operator).is_some())
}

/// Whether there can be a pragma in the text.
pub(super) fn may_have_pragma(text: &[u8]) -> bool {
    memmem::find(text, PRAGMA).is_some()
}

/// Arguments that make the preprocessor print definitions.
pub(super) fn definition_words() -> [OsString; 1] {
    [WITH_DEFINITIONS.into()]
}

/// Whether a raw literal has a line that looks like a directive.
fn has_raw_directive(text: &[u8]) -> bool {
    memmem::find_iter(text, b"R\"").any(|at| {
        let content = &text[at + 2..];
        let start = content.iter().take(DELIMITER_LENGTH + 1).position(|byte| *byte == b'(');
        let Some(start) = start.filter(|start| !content[..*start].contains(&b'\n')) else { return false };
        let end = [b")", &content[..start], b"\""].concat();
        let length = memmem::find(content, &end).unwrap_or(content.len());
        memmem::find(&content[..length], b"\n#").is_some()
    })
}

/// The identifiers of a line outside of literals.
fn words_of_line(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < line.len() {
            let start = at;
            if is_word_byte(line[at]) {
                at += line[at..].iter().take_while(|byte| is_word_byte(**byte)).count();
                return Some(&line[start..at]);
            }
            at += if line[at] == b'"' { literal_length(&line[at..]) } else { 1 };
        }
        None
    })
}

/// Bytes of the literal with which the text begins, quotes included.
fn literal_length(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operands(text: &str) -> PragmaOperands {
        DefinedText::split(text.as_bytes()).unwrap().pragma_operands()
    }

    fn is_without(text: &str, name: &str) -> bool {
        operands(text).are_without([name.to_owned()].iter())
    }

    #[test]
    fn words_of_pragmas_are_followed_through_all_definitions() {
        let text = "#define N M\n#define M 4\n#undef M\n#define M GPU\n#define OTHER GPU2\nint a;\n#pragma unroll N\n";
        assert!(!is_without(text, "GPU"));
        assert!(is_without(text, "GPU2"));
        assert!(!operands(text).are_plain());
        assert!(operands("#define N 4\n#pragma unroll 4\nint N;\n#pragma GCC warning \"N\"\n").are_plain());
    }

    #[test]
    fn words_that_are_made_of_parts_are_unknown() {
        let text = "#define CAT(a, b) a##b\n#pragma unroll CAT(x, y)\n";
        assert!(!is_without(text, "other"));
        assert!(is_without("#define CAT(a, b) a##b\n#pragma unroll N\n", "other"));
        assert!(!is_without("#define CAT(a, b) a%:%:b\n#pragma unroll CAT(x, y)\n", "other"));
    }

    #[test]
    fn the_text_keeps_its_lines_without_definitions() {
        let split = DefinedText::split(b"# 1 \"a\"\n#define A(x) x\nint a;\n#undef A\n#pragma once").unwrap();
        assert_eq!(split.text, b"# 1 \"a\"\n\nint a;\n\n#pragma once");
    }

    #[test]
    fn a_raw_literal_with_directives_is_not_split() {
        assert!(DefinedText::split(b"auto a = R\"x(\n#define B 5\n)x\";\n").is_none());
        assert!(DefinedText::split(b"auto a = R\"(\n#define B 5\n").is_none(), "without an end");
        assert!(DefinedText::split(b"auto a = R\"(\n B 5\n)\";\n#define B 5\n").is_some());
        assert!(DefinedText::split(b"f(\"ERROR\");\n#define B 5\n").is_some());
    }

    #[test]
    fn escapes_do_not_end_a_literal() {
        let words: Vec<&[u8]> = words_of_line(b"a \"b\\\" c\" d(\"e").collect();
        assert_eq!(words, [b"a", b"d"]);
    }
}
