//! Counts by target, and differences in groups small enough for manual review.

use crate::defects::DEFECTS;
use crate::left_out::Entry;
use crate::oracle::Word;
use crate::setting::Setting;
use crate::verdict::{Difference, Kind, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Differences of one group that are kept completely.
const EXAMPLES: usize = 5;

/// The verdicts on the words of one target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Words.
    pub total: usize,
    /// Both accept and agree in everything.
    pub same: usize,
    /// Both reject.
    pub rejected: usize,
    pub crashed: usize,
    /// Differences that are caused by a known defect of LLVM.
    pub defects: usize,
    /// Differences that the list explains.
    pub left_out: usize,
    /// Differences without an explanation.
    pub different: usize,
}

impl Count {
    fn add(&mut self, other: &Self) {
        self.total += other.total;
        self.same += other.same;
        self.rejected += other.rejected;
        self.crashed += other.crashed;
        self.defects += other.defects;
        self.left_out += other.left_out;
        self.different += other.different;
    }
}

/// Differences of the same form.
#[derive(Debug, Clone, Default)]
struct Group {
    count: usize,
    mnemonics: BTreeMap<String, usize>,
    targets: BTreeSet<String>,
    examples: Vec<Difference>,
}

/// The account of an exam.
#[derive(Debug, Default)]
pub struct Report {
    counts: BTreeMap<String, Count>,
    groups: BTreeMap<(Kind, String), Group>,
    used: BTreeSet<usize>,
    defects: BTreeMap<&'static str, usize>,
    crashes: BTreeMap<String, usize>,
}

impl Report {
    /// Enters the verdict on a word. `source` names the word where a difference is listed.
    pub fn enter(&mut self, list: &[Entry], setting: &Setting, verdict: Verdict, source: impl FnOnce() -> String) {
        let count = self.counts.entry(setting.cpu.clone()).or_default();
        count.total += 1;
        match verdict {
            Verdict::Same => count.same += 1,
            Verdict::BothReject => count.rejected += 1,
            Verdict::Crashed => {
                count.crashed += 1;
                *self.crashes.entry(source()).or_default() += 1;
            }
            Verdict::Different(mut difference) => {
                difference.source = source();
                if let Some(defect) = DEFECTS.iter().find(|defect| (defect.explains)(&difference)) {
                    count.defects += 1;
                    *self.defects.entry(defect.name).or_default() += 1;
                } else if let Some(at) = list.iter().position(|entry| entry.explains(&difference)) {
                    count.left_out += 1;
                    self.used.insert(at);
                } else {
                    count.different += 1;
                    self.keep(difference);
                }
            }
        }
    }

    fn keep(&mut self, difference: Difference) {
        let text = if difference.theirs.is_empty() { &difference.ours } else { &difference.theirs };
        let mnemonic = text.split(' ').next().unwrap_or_default().to_owned();
        let group = self.groups.entry((difference.kind, look(&difference))).or_default();
        group.count += 1;
        group.targets.insert(difference.setting.to_string());
        let known = group.mnemonics.entry(mnemonic).or_default();
        *known += 1;
        if group.examples.len() < EXAMPLES && (*known == 1 || group.count > 100) {
            group.examples.push(difference);
        }
    }

    /// Adds the contents of another report.
    pub fn merge(&mut self, other: Self) {
        for (target, count) in &other.counts {
            self.counts.entry(target.clone()).or_default().add(count);
        }
        self.used.extend(other.used);
        for (name, count) in other.crashes {
            *self.crashes.entry(name).or_default() += count;
        }
        for (name, count) in other.defects {
            *self.defects.entry(name).or_default() += count;
        }
        for (key, group) in other.groups {
            let ours = self.groups.entry(key).or_default();
            ours.count += group.count;
            ours.targets.extend(group.targets);
            for (mnemonic, count) in group.mnemonics {
                *ours.mnemonics.entry(mnemonic).or_default() += count;
            }
            ours.examples.extend(group.examples);
            ours.examples.truncate(EXAMPLES);
        }
    }

    /// Counts of one target.
    pub fn count(&self, target: &str) -> Count {
        self.counts.get(target).copied().unwrap_or_default()
    }

    /// Counts of all targets together.
    pub fn sum(&self) -> Count {
        let mut sum = Count::default();
        self.counts.values().for_each(|count| sum.add(count));
        sum
    }

    /// Numbers of the list's entries that explained something.
    pub fn used(&self) -> &BTreeSet<usize> {
        &self.used
    }

    /// Targets of which more than one word in a thousand is left out.
    pub fn over_limit(&self) -> Vec<&str> {
        self.counts
            .iter()
            .filter(|(_, count)| exceeds_left_out_limit(count))
            .map(|(target, _)| target.as_str())
            .collect()
    }

    /// One line a target, and the sum.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.counts.iter().map(|(target, count)| count_report_line(target, count)).collect();
        lines.push(count_report_line("all", &self.sum()));
        lines.extend(self.defects.iter().map(|(name, count)| format!("LLVM is wrong, {name}: {count} words")));
        lines
    }

    /// All groups of differences, the largest first.
    pub fn differences(&self) -> String {
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|(key, group)| (std::cmp::Reverse(group.count), *key));
        let mut text = String::new();
        for ((kind, look), group) in groups {
            let targets: Vec<_> = group.targets.iter().take(6).map(String::as_str).collect();
            let mut mnemonics: Vec<_> = group.mnemonics.iter().collect();
            mnemonics.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
            let names: Vec<_> = mnemonics.iter().take(12).map(|(name, count)| format!("{name} {count}")).collect();
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{} {}: {look}\n  on {} settings: {}\n  {} mnemonics: {}",
                group.count,
                kind.as_str(),
                group.targets.len(),
                targets.join(" "),
                mnemonics.len(),
                names.join(", ")
            );
            group.examples.iter().for_each(|example| text += &shown(example));
            text.push('\n');
        }
        text
    }

    /// Writes the counts and groups into a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let crashes: Vec<_> =
            self.crashes.iter().map(|(name, count)| format!("LLVM crashed: {name} {count}")).collect();
        let parts = [self.lines().join("\n"), self.differences(), crashes.join("\n")];
        std::fs::write(file, parts.join("\n\n") + "\n")
    }
}

fn exceeds_left_out_limit(count: &Count) -> bool {
    count.left_out * 1000 > count.total
}

fn count_report_line(name: &str, count: &Count) -> String {
    format!(
        "{name}: {} words: {} equal, {} refused by both, {} LLVM crashed, {} LLVM is wrong, {} left out, {} different",
        count.total, count.same, count.rejected, count.crashed, count.defects, count.left_out, count.different
    )
}

fn shown(difference: &Difference) -> String {
    let Difference { setting, word, theirs, ours, source, .. } = difference;
    format!("    {setting} {} ({source})\n      LLVM: {theirs}\n      ours: {ours}\n", dwords(word))
}

/// A word as 32-bit numbers, the way the tables of the manuals show it.
fn dwords(word: &Word) -> String {
    word.bytes().chunks(4).map(reversed_hex_dword).collect::<Vec<_>>().join(" ")
}

fn reversed_hex_dword(bytes: &[u8]) -> String {
    bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>()
}

/// The form of a difference, without numbers and without the parts that both sides share.
fn look(difference: &Difference) -> String {
    let (theirs, ours) = (&difference.theirs, &difference.ours);
    match difference.kind {
        Kind::Missing => theirs.split(' ').next().unwrap_or_default().to_owned(),
        Kind::Invented | Kind::Size => ours.split(' ').next().unwrap_or_default().to_owned(),
        Kind::Rebuilt => without_numbers(ours),
        _ => {
            let (left, right) = (words(theirs), words(ours));
            let head = left.iter().zip(&right).take_while(|(left, right)| left == right).count();
            let rest = left.len().min(right.len()) - head;
            let tail = left.iter().rev().zip(right.iter().rev()).take(rest).take_while(|(l, r)| l == r).count();
            let part = |words: &[&str]| without_numbers(&words[head..words.len() - tail].join(" "));
            let (left, right) = (part(&left), part(&right));
            if left == right { format!("a number in `{left}`") } else { format!("`{left}` is `{right}` in ours") }
        }
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// Replaces every run of hexadecimal digits that begins with a digit by `#`.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut within = false;
    let mut before = ' ';
    for letter in text.chars() {
        let begins = letter.is_ascii_digit() && (!before.is_ascii_alphabetic() || "svx".contains(before) || within);
        let goes_on = within && (letter.is_ascii_hexdigit() || letter == 'x' || letter == '.');
        if begins || goes_on {
            if !within {
                out.push('#');
            }
            within = true;
        } else {
            within = false;
            out.push(letter);
        }
        before = letter;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::left_out;

    fn difference(theirs: &str, ours: &str) -> Difference {
        let (setting, word) = (Setting::new("gfx900"), Word::new(&[1, 2, 3, 4, 5, 6, 7, 8]));
        Difference { setting, word, kind: Kind::Text, theirs: theirs.into(), ours: ours.into(), source: String::new() }
    }

    #[test]
    fn differences_of_the_same_look_are_one_group() {
        let mut report = Report::default();
        for (theirs, ours) in [("v_a v1, s2 glc", "v_a v1, s2"), ("v_b v7, s9 glc", "v_b v7, s9"), ("v_a 1", "v_a 2")] {
            report.enter(&[], &Setting::new("gfx900"), Verdict::Different(difference(theirs, ours)), String::new);
        }
        let text = report.differences();
        assert!(text.starts_with("2 text: `s# glc` is `s#` in ours") || text.contains("2 text:"), "{text}");
        assert!(text.contains("04030201 08070605"), "{text}");
        assert_eq!(report.sum().different, 3);
    }

    #[test]
    fn more_than_one_in_a_thousand_left_out_is_over_the_limit() {
        let list = left_out::read("text * v_a reason").unwrap();
        let mut report = Report::default();
        let setting = Setting::new("gfx900");
        report.enter(&list, &setting, Verdict::Different(difference("v_a 1", "v_a 2")), String::new);
        for _ in 0..998 {
            report.enter(&list, &setting, Verdict::Same, String::new);
        }
        assert_eq!(report.over_limit(), ["gfx900"]);
        report.enter(&list, &setting, Verdict::Same, String::new);
        assert!(report.over_limit().is_empty());
        assert_eq!((report.sum().left_out, report.used().len()), (1, 1));
    }

    #[test]
    fn numbers_do_not_make_a_look() {
        assert_eq!(
            without_numbers("v[12:13], 0xff12, s7 offset:0x10"),
            without_numbers("v[1:2], 0x1, s101 offset:0xa")
        );
        assert_ne!(without_numbers("v1"), without_numbers("s1"));
    }
}
