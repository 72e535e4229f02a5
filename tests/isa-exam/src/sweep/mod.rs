//! The differential sweep: words of every encoding of every row, and noise, for both decoders.

pub mod pattern;
pub mod random;

use crate::exam::Exam;
use crate::oracle::{Oracle, Word};
use crate::report::Report;
use crate::setting::Setting;
use hotswap_isa_meta::model::{Condition, Model, TargetRow};
use pattern::Pattern;
use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Words of one piece of work.
const PIECE: usize = 32768;
/// One word in so many is noise.
const NOISE: usize = 10;

/// Processors that have nearly the same instructions, and the LLVM that judges them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    pub name: &'static str,
    /// Version of LLVM.
    pub version: u32,
    /// Settings, in the text form of [`Setting`].
    pub settings: &'static [&'static str],
    /// The processor of LLVM 23 that replaces one that only LLVM 24 knows. The rows are those of LLVM 23, so only words
    /// are judged for which both versions have the same answer about that processor.
    pub twin: Option<&'static str>,
}

/// All families. LLVM 23 does not know `gfx1250-strict`.
#[rustfmt::skip]
pub const FAMILIES: &[Family] = &[
    family("gfx9", &["gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90c", "gfx9-generic"]),
    family("gfx90a", &["gfx90a"]),
    family("gfx942", &["gfx942", "gfx9-4-generic"]),
    family("gfx950", &["gfx950"]),
    family("gfx10.1", &["gfx1010", "gfx1010/wave64", "gfx1011", "gfx1012/wave64", "gfx1013", "gfx1013/wave64",
                        "gfx10-1-generic"]),
    family("gfx10.3", &["gfx1030", "gfx1030/wave64", "gfx1036", "gfx1034/wave64", "gfx10-3-generic"]),
    family("gfx11", &["gfx1100/true16", "gfx1100/wave64/true16", "gfx1100/fake16", "gfx1101/wave64/fake16",
                      "gfx1103/true16", "gfx11-generic"]),
    family("gfx11.5", &["gfx1150/true16", "gfx1151/wave64/true16", "gfx1152/fake16", "gfx1153/wave64/fake16"]),
    family("gfx11.7", &["gfx1170/true16", "gfx1170/wave64/true16", "gfx1171/fake16", "gfx11-7-generic/wave64/fake16"]),
    family("gfx12", &["gfx1200/true16", "gfx1201/wave64/true16", "gfx1200/fake16", "gfx1201/wave64/fake16",
                      "gfx12-generic"]),
    family("gfx12.5", &["gfx1250/true16", "gfx1250/fake16", "gfx1250", "gfx1251/true16", "gfx12-5-generic"]),
    Family { twin: Some("gfx1250"), version: 24,
             ..family("gfx12.5-strict", &["gfx1250-strict/true16", "gfx1250-strict/fake16"]) },
];

const fn family(name: &'static str, settings: &'static [&'static str]) -> Family {
    Family { name, version: 23, settings, twin: None }
}

/// The configuration of a sweep.
pub struct Sweep {
    pub family: Family,
    /// The settings that the decoder under test knows.
    pub settings: Vec<Setting>,
    patterns: Vec<Pattern>,
}

impl Sweep {
    /// The encodings of the rows that any of the family's processors may have.
    pub fn new(model: &Model, family: Family, knows: impl Fn(&Setting) -> bool) -> Self {
        let settings: Vec<_> =
            family.settings.iter().filter_map(|text| Setting::parse(text)).filter(|setting| knows(setting)).collect();
        let features: Vec<_> = settings.iter().filter_map(|setting| features(model, setting)).collect();
        Self { family, settings, patterns: patterns(model, &features) }
    }

    /// Number of encodings.
    pub fn encodings(&self) -> usize {
        self.patterns.len()
    }

    /// Compares `count` words; also returns the number of words on which the versions of LLVM disagree.
    ///
    /// # Errors
    /// If a judge cannot be started or ends early.
    pub fn run(&self, exam: &Exam<'_>, program: &str, count: usize, seed: u64) -> io::Result<(Report, usize)> {
        if self.settings.is_empty() || self.patterns.is_empty() {
            return Ok((Report::default(), 0));
        }
        let second = self.family.twin.map(|twin| Ok::<_, io::Error>((twin, self.second(exam)?))).transpose()?;
        let dropped = AtomicUsize::new(0);
        let pieces: Vec<(usize, usize)> = (0..count).step_by(PIECE).map(|at| (at, count.min(at + PIECE))).collect();
        let report = exam.parallel(program, &pieces, |oracle, &(from, to), report| {
            for (setting, words) in self.words(from, to, seed) {
                let mut items: Vec<_> = words.iter().map(|(word, name)| (*word, name.as_str())).collect();
                if let Some((twin, second)) = &second {
                    agreed(&mut items, oracle, &mut Oracle::start(exam.tools, second)?, setting, twin)?;
                    dropped.fetch_add(words.len() - items.len(), Ordering::Relaxed);
                }
                exam.judge(oracle, setting, items, report)?;
            }
            Ok(())
        })?;
        Ok((report, dropped.into_inner()))
    }

    /// The judge of the version from which our rows come.
    fn second(&self, exam: &Exam<'_>) -> io::Result<String> {
        Oracle::build(exam.tools, 23)?.ok_or_else(|| io::Error::other("the userland has no LLVM 23"))
    }

    /// Words with the numbers `from` to `to`, by setting, each with its row.
    pub(crate) fn words(&self, from: usize, to: usize, seed: u64) -> BTreeMap<&Setting, Vec<(Word, &String)>> {
        static NOISE_NAME: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "noise".to_owned());
        let mut all: BTreeMap<&Setting, Vec<_>> = BTreeMap::new();
        for number in from..to {
            let mut random = Random::new(seed ^ u64::try_from(number).unwrap_or(0).wrapping_mul(0x9e37_79b9));
            let (round, at) = (number / self.patterns.len(), number % self.patterns.len());
            let setting = &self.settings[random.below(self.settings.len())];
            let pattern = &self.patterns[at];
            // Small sweeps have few rounds, so each encoding begins at another edge.
            let word = match random.one_in(NOISE) {
                true => (pattern::noise(&mut random), &*NOISE_NAME),
                false => (pattern.word(round + at * 14, &mut random), &pattern.name),
            };
            all.entry(setting).or_default().push(word);
        }
        all
    }
}

/// Keeps the words about which both judges agree under the twin's name.
fn agreed(
    items: &mut Vec<(Word, &str)>,
    first: &mut Oracle,
    second: &mut Oracle,
    setting: &Setting,
    twin: &str,
) -> io::Result<()> {
    let words: Vec<Word> = items.iter().map(|(word, _)| *word).collect();
    let setting = Setting { cpu: twin.to_owned(), ..setting.clone() };
    let (first, second) = (first.ask(&setting, &words)?, second.ask(&setting, &words)?);
    let mut same = first.iter().zip(&second).map(|(first, second)| first == second);
    items.retain(|_| same.next().unwrap_or(false));
    Ok(())
}

/// The features of a setting's processor; its wave size and spelling replace the defaults.
pub(crate) fn features<'m>(model: &'m Model, setting: &Setting) -> Option<BTreeSet<&'m str>> {
    let target: &TargetRow = model.targets.iter().find(|target| target.name == setting.cpu)?;
    let mut features: BTreeSet<&str> = target.features.iter().map(String::as_str).collect();
    if let Some(wave) = setting.wave {
        let (on, off) = if wave == 32 { (32, 64) } else { (64, 32) };
        features.remove(format!("wavefrontsize{off}").as_str());
        features.insert(if on == 32 { "wavefrontsize32" } else { "wavefrontsize64" });
    }
    match setting.true16 {
        Some(true) => drop(features.insert("real-true16")),
        Some(false) => drop(features.remove("real-true16")),
        None => {}
    }
    Some(features)
}

fn patterns(model: &Model, features: &[BTreeSet<&str>]) -> Vec<Pattern> {
    let conditions: BTreeMap<&str, &Condition> =
        model.predicates.iter().map(|predicate| (predicate.name.as_str(), &predicate.condition)).collect();
    let layouts: BTreeMap<&str, _> = model.layouts.iter().map(|layout| (layout.name.as_str(), layout)).collect();
    let mut patterns = Vec::new();
    for row in &model.rows {
        for column in &row.columns {
            let Some(layout) = layouts.get(column.layout.as_str()) else { continue };
            let predicate = |name: &String, features: &BTreeSet<&str>| {
                conditions.get(name.as_str()).is_none_or(|condition| holds(condition, features))
            };
            let has = |features: &BTreeSet<&str>| {
                has_enabled_step(features, model, column)
                    && column.predicates.iter().all(|name| predicate(name, features))
            };
            if features.iter().any(has) {
                patterns.push(Pattern::new(format!("{} {}", row.mnemonic, column.table), layout, column));
            }
        }
    }
    patterns
}

fn has_enabled_step(
    features: &BTreeSet<&str>,
    model: &Model,
    column: &hotswap_isa_meta::model::EncodingColumn,
) -> bool {
    model.steps.iter().any(|step| step.table == column.table && holds(&step.condition, features))
}

pub(crate) fn holds(condition: &Condition, features: &BTreeSet<&str>) -> bool {
    match condition {
        Condition::Has(name) => features.contains(name.as_str()),
        Condition::Not(inner) => !holds(inner, features),
        Condition::All(all) => all.iter().all(|inner| holds(inner, features)),
        Condition::Any(any) => any.iter().any(|inner| holds(inner, features)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_all_families_can_be_read() {
        for family in FAMILIES {
            assert!(family.settings.iter().all(|text| Setting::parse(text).is_some()), "{}", family.name);
        }
    }

    #[test]
    fn conditions_hold_as_they_say() {
        let has = |name: &str| Condition::Has(name.into());
        let features = BTreeSet::from(["a", "b"]);
        assert!(holds(&Condition::All(vec![has("a"), Condition::Not(Box::new(has("c")))]), &features));
        assert!(holds(&Condition::Any(vec![has("c"), has("b")]), &features));
        assert!(!holds(&Condition::Any(Vec::new()), &features));
    }
}
