//! Colours of assembly text on a terminal.
//!
//! Colours change the appearance only: with colours off the text has the same characters.

use crate::out::TextOutput;
use std::io::Write;

/// Kinds of text with a colour of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Mnemonic,
    Register,
    Number,
    Label,
    Directive,
    Comment,
}

const RESET: &str = "\x1b[0m";

impl Style {
    /// From the 16 colours that every terminal has, readable on dark and light ground.
    fn code(self) -> &'static str {
        match self {
            Self::Mnemonic => "\x1b[1m",
            Self::Register => "\x1b[36m",
            Self::Number => "\x1b[35m",
            Self::Label => "\x1b[1;33m",
            Self::Directive => "\x1b[33m",
            Self::Comment => "\x1b[2m",
        }
    }
}

pub fn start<W: Write>(out: &mut TextOutput<W>, style: Style) {
    out.text(style.code());
}

pub fn end<W: Write>(out: &mut TextOutput<W>) {
    out.text(RESET);
}

pub fn painted<W: Write>(out: &mut TextOutput<W>, style: Style, text: &str) {
    start(out, style);
    out.text(text);
    end(out);
}

/// Paints an instruction: the mnemonic, then the tokens of its operands by their form.
pub fn instruction<W: Write>(out: &mut TextOutput<W>, text: &str) {
    let (mnemonic, mut rest) = text.split_at(text.find(' ').unwrap_or(text.len()));
    painted(out, Style::Mnemonic, mnemonic);
    while let Some(c) = rest.chars().next() {
        let size = match is_word_char(c) {
            true => rest.find(|c| !is_word_char(c)).unwrap_or(rest.len()),
            false => rest.find(is_word_char).unwrap_or(rest.len()),
        };
        let (mut word, mut tail) = rest.split_at(size);
        // A register range with its brackets is one token.
        if is_file(word) && tail.starts_with('[') {
            (word, tail) = rest.split_at(rest.find(']').map_or(rest.len(), |at| at + 1));
        }
        match style(word) {
            Some(style) => painted(out, style, word),
            // VOPD has a second mnemonic after `::`.
            None if word.starts_with("v_") => painted(out, Style::Mnemonic, word),
            None => out.text(word),
        }
        rest = tail;
    }
}

fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

fn is_file(word: &str) -> bool {
    matches!(word, "v" | "s" | "a" | "ttmp")
}

fn style(word: &str) -> Option<Style> {
    if word.starts_with(".L") {
        return Some(Style::Label);
    }
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(Style::Number);
    }
    let number = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let file = &word[..word.len() - number.len()];
    let number = number.trim_end_matches(".l").trim_end_matches(".h");
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_tuple = word.ends_with(']');
    let is_special = ["vcc", "exec", "m0", "null", "scc", "flat_scratch", "xnack_mask", "src_", "tba", "tma", "off"]
        .iter()
        .any(|special| word.starts_with(special));
    let is_register = is_tuple || is_file(file) && is_number || is_special && !word.starts_with("offset");
    is_register.then_some(Style::Register)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paint(text: &str) -> String {
        let mut bytes = Vec::new();
        let mut out = TextOutput::new(&mut bytes);
        instruction(&mut out, text);
        assert!(out.finish().is_none());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn without_the_colours_the_text_is_the_same() {
        for text in [
            "s_endpgm",
            "v_add_f32_e64 v1, |v2|, -s3 clamp mul:2",
            "s_load_b128 s[4:7], s[0:1], 0x0",
            "v_dual_mov_b32 v0, 1.0 :: v_dual_mov_b32 v1, vcc_lo",
            "global_load_b32 v1, v2, s[2:3] offset:16",
            "s_cbranch_execz .L1a40",
            "v[",
            "",
            "s_waitcnt vmcnt(0) & lgkmcnt(0)",
        ] {
            let mut painted = paint(text);
            for style in [Style::Mnemonic, Style::Register, Style::Number, Style::Label] {
                painted = painted.replace(style.code(), "");
            }
            assert_eq!(painted.replace(RESET, ""), text);
        }
    }

    #[test]
    fn words_are_known_by_their_looks() {
        for (word, expected) in [
            ("v1", Some(Style::Register)),
            ("v1.l", Some(Style::Register)),
            ("s[4:7]", Some(Style::Register)),
            ("vcc_lo", Some(Style::Register)),
            ("ttmp3", Some(Style::Register)),
            ("0x10", Some(Style::Number)),
            ("1.0", Some(Style::Number)),
            (".L40", Some(Style::Label)),
            ("offset", None),
            ("off", Some(Style::Register)),
            ("vmcnt", None),
            ("glc", None),
        ] {
            assert_eq!(style(word), expected, "{word}");
        }
    }
}
