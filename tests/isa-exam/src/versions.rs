//! The forms that LLVM 23 reads and LLVM 24 rejects ([`hotswap_isa::versions`]): both versions are asked about every row, about words of
//! every encoding and about LLVM's own vectors.
//!
//! Invariant: a word that 24 rejects has a row, and a word with a row is read by 23 and rejected by 24.
//!
//! Absent on purpose: words that we do not decode, and those with an operand outside of its class, which LLVM 23 prints with a comment
//! and no assembler takes.

use crate::oracle::{Answer, Oracle, Word};
use crate::ours::isa;
use crate::setting::Setting;
use crate::sweep::Sweep;
use crate::tools::Tools;
use crate::vectors::Vectors;
use hotswap_isa::versions::{VersionJudgment, version_judgment};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Versions of LLVM that are asked.
pub const VERSIONS: [u32; 2] = [23, 24];

/// Mnemonics of which LLVM 24 rejects some words by a rule that no row has, with that reason.
pub const UNSETTLED: &[&str] = &[
    // Sixteen-bit sources in halves of registers (true16): the rule is not known.
    "v_interp_p10_f16_f32",
    "v_interp_p10_rtz_f16_f32",
    "v_interp_p2_f16_f32",
    "v_interp_p2_rtz_f16_f32",
];

/// Words by setting.
#[derive(Debug, Default)]
pub struct SettingWords(BTreeMap<Setting, BTreeSet<Word>>);

impl SettingWords {
    /// Adds the words of a sweep.
    pub fn add_sweep(&mut self, sweep: &Sweep, count: usize, seed: u64) {
        for (setting, words) in sweep.words(0, count, seed) {
            self.0.entry(setting.clone()).or_default().extend(words.into_iter().map(|(word, _)| word));
        }
    }

    /// Adds the first instruction of every vector.
    pub fn add_vectors(&mut self, vectors: &Vectors) {
        for (setting, group) in vectors.by_setting() {
            self.0.entry(setting.clone()).or_default().extend(group.iter().map(|vector| Word::new(&vector.bytes)));
        }
    }

    /// Adds one word.
    pub fn add_word(&mut self, setting: Setting, word: Word) {
        self.0.entry(setting).or_default().insert(word);
    }
}

/// Our own answer about a word.
#[derive(Debug, Clone, Copy)]
pub enum OurJudgment {
    /// Not decoded, or with an operand outside of its class.
    NotJudged,
    /// Both versions read it.
    ReadByBoth,
    /// Only the older one does.
    Row(&'static VersionJudgment),
}

/// The answer of the rows.
pub fn judge_word(setting: &Setting, word: &Word) -> OurJudgment {
    let Some(isa) = isa(setting) else { return OurJudgment::NotJudged };
    let Ok(inst) = isa.decode(word.bytes()) else { return OurJudgment::NotJudged };
    if UNSETTLED.contains(&inst.mnemonic()) || inst.operands(isa).any(|operand| !operand.in_class()) {
        return OurJudgment::NotJudged;
    }
    version_judgment(&inst, isa).map_or(OurJudgment::ReadByBoth, OurJudgment::Row)
}

/// The answers of both versions about all words.
#[derive(Debug, Default)]
pub struct VersionReport {
    /// Words that the older version reads.
    pub read: usize,
    /// Words of each row that the newer version rejects.
    pub rejected: BTreeMap<&'static str, usize>,
    /// Words about which a row, or the lack of one, is wrong.
    pub problems: Vec<String>,
}

/// Asks the two judges about all words.
///
/// # Errors
/// If a judge cannot be started or ends early.
pub fn compare_versions(
    tools: &Tools,
    programs: &[String; 2],
    words: &SettingWords,
    judge: fn(&Setting, &Word) -> OurJudgment,
) -> io::Result<VersionReport> {
    let (mut older, mut newer) = (Oracle::start(tools, &programs[0])?, Oracle::start(tools, &programs[1])?);
    let mut report = VersionReport::default();
    for (setting, words) in &words.0 {
        let words: Vec<Word> = words.iter().copied().collect();
        let answers = [older.ask(setting, &words)?, newer.ask(setting, &words)?];
        for (number, word) in words.iter().enumerate() {
            report.enter(setting, word, [&answers[0][number], &answers[1][number]], judge(setting, word));
        }
    }
    Ok(report)
}

impl VersionReport {
    fn enter(&mut self, setting: &Setting, word: &Word, answers: [&Answer; 2], ours: OurJudgment) {
        let [Answer::Valid { text, .. }, newer] = answers else { return };
        self.read += 1;
        let is_read = matches!(newer, Answer::Valid { .. });
        let problem = match ours {
            OurJudgment::Row(row) if is_read => Some(format!("LLVM {} reads it: {}", row.rejected_by, row.form)),
            OurJudgment::Row(row) => {
                *self.rejected.entry(row.form).or_default() += 1;
                None
            }
            OurJudgment::ReadByBoth if !is_read => Some("rejected, and no row says so".to_owned()),
            OurJudgment::ReadByBoth | OurJudgment::NotJudged => None,
        };
        self.problems.extend(problem.map(|problem| format!("{setting} {word} {}: {problem}", text.trim())));
    }
}
