//! Files of words: `0x01,0x02,…` followed by the expected text, or the expected refusal.

use super::run_line::{self, Run};

/// The file's expectation about a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    Text(String),
    /// No instruction.
    Invalid,
}

/// A line of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// Number of the line, from 1.
    pub number: usize,
    pub bytes: Vec<u8>,
    /// The lines that may contain its check: up to the next line with words, or in files whose expectations come first,
    /// up to the one before.
    beside: Vec<&'a str>,
}

/// All lines of words.
pub fn lines(text: &str) -> Vec<Line<'_>> {
    let mut found: Vec<Line<'_>> = Vec::new();
    let mut above = Vec::new();
    for (at, line) in text.lines().enumerate() {
        match bytes(line) {
            Some(bytes) => found.push(Line { number: at + 1, bytes, beside: std::mem::take(&mut above) }),
            None => above.push(line),
        }
    }
    let runs = run_line::runs(text);
    let checks_above = found.first().is_some_and(|first| runs.iter().any(|run| first.check(run).is_some()));
    if !checks_above {
        for at in 0..found.len() {
            found[at].beside = found.get_mut(at + 1).map_or_else(Vec::new, |next| std::mem::take(&mut next.beside));
        }
        if let Some(last) = found.last_mut() {
            last.beside = above;
        }
    }
    found
}

/// `0x01,0x02`, optionally in brackets, optionally followed by a comment.
fn bytes(line: &str) -> Option<Vec<u8>> {
    let list = line.split(['#', ';']).next()?.split("//").next()?.trim();
    let list = list.strip_prefix('[').map_or(list, |rest| rest.strip_suffix(']').unwrap_or(rest));
    if !list.starts_with("0x") {
        return None;
    }
    list.split([',', ' ', '\t']).filter(|word| !word.is_empty()).map(parse_input_byte).collect()
}

fn parse_input_byte(word: &str) -> Option<u8> {
    u8::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

impl Line<'_> {
    /// The file's expectation under one of the prefixes of a run.
    pub fn check(&self, run: &Run) -> Option<Check> {
        self.beside.iter().find_map(|line| {
            let comment = line.trim_start_matches(['#', '/', ';', ' ']);
            let (label, text) = comment.split_once(':')?;
            run.prefixes.iter().any(|prefix| prefix == label).then(|| check(text))?
        })
    }
}

fn check(text: &str) -> Option<Check> {
    if text.contains("invalid instruction encoding") {
        return Some(Check::Invalid);
    }
    // Patterns cannot be compared; LLVM's own answer replaces them.
    let text = text.split("; encoding").next().unwrap_or(text).trim();
    (!text.is_empty() && !text.contains("{{") && !text.contains("[[")).then(|| Check::Text(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# RUN: none
0x01,0x71,0x0a,0x7e
# GFX11-FAKE16: v_a v5, v1.h ; encoding: [0x01]
# GFX11: v_b v5, v1                  ; encoding: [0x01,0x71,0x0a,0x7e]

[0x00,0xc0,0x24,0xcc] # clamp
# GFX11: [[@LINE-1]]:1: warning: invalid instruction encoding
0xzz,0x00
";

    #[test]
    fn checks_may_stand_above_their_words() {
        let text = "# RUN: llvm-mc -mcpu=a | FileCheck -check-prefix=X\n# X: s_a ; encoding: [0x00]\n0x00,0x00,0x80,0xbf\n# X: s_b\n0x01,0x00,0x80,0xbf\n";
        let run = Run { prefixes: vec!["X".to_owned()], ..Run::default() };
        let checks: Vec<_> = lines(text).iter().map(|line| line.check(&run)).collect();
        assert_eq!(checks, [Some(Check::Text("s_a".into())), Some(Check::Text("s_b".into()))]);
    }

    #[test]
    fn words_and_checks_are_found_by_prefix() {
        let found = lines(TEXT);
        let run = |prefix: &str| Run { prefixes: vec![prefix.to_owned()], ..Run::default() };
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].number, found[0].bytes.as_slice()), (2, [1, 0x71, 0x0a, 0x7e].as_slice()));
        assert_eq!(found[0].check(&run("GFX11")), Some(Check::Text("v_b v5, v1".into())));
        assert_eq!(found[0].check(&run("GFX11-FAKE16")), Some(Check::Text("v_a v5, v1.h".into())));
        assert_eq!(found[0].check(&run("GFX12")), None);
        assert_eq!(found[1].check(&run("GFX11")), Some(Check::Invalid));
    }
}
