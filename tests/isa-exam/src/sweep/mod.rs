//! The differential sweep: words of every encoding of every row, and noise, before both decoders.

pub mod pattern;
pub mod random;

use crate::exam::Exam;
use crate::oracle::Word;
use crate::report::Report;
use crate::setting::Setting;
use hotswap_isa_meta::model::{Condition, Model, Target};
use pattern::Pattern;
use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Words of one piece of work.
const PIECE: usize = 32768;
/// One word in so many is noise.
const NOISE: usize = 10;

/// Processors that have nearly the same instructions, and the LLVM that judges them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Version of LLVM.
    pub version: u32,
    /// Settings, in the text form of [`Setting`].
    pub settings: &'static [&'static str],
}

/// All families. LLVM 23 does not know `gfx1250-strict`.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "gfx9",
        version: 23,
        settings: &["gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90c", "gfx9-generic"],
    },
    Family { name: "gfx90a", version: 23, settings: &["gfx90a"] },
    Family { name: "gfx942", version: 23, settings: &["gfx942", "gfx9-4-generic"] },
    Family { name: "gfx950", version: 23, settings: &["gfx950"] },
    Family {
        name: "gfx10.1",
        version: 23,
        settings: &[
            "gfx1010",
            "gfx1010/wave64",
            "gfx1011",
            "gfx1012/wave64",
            "gfx1013",
            "gfx1013/wave64",
            "gfx10-1-generic",
        ],
    },
    Family {
        name: "gfx10.3",
        version: 23,
        settings: &["gfx1030", "gfx1030/wave64", "gfx1036", "gfx1034/wave64", "gfx10-3-generic"],
    },
    Family {
        name: "gfx11",
        version: 23,
        settings: &[
            "gfx1100/true16",
            "gfx1100/wave64/true16",
            "gfx1100/fake16",
            "gfx1101/wave64/fake16",
            "gfx1103/true16",
            "gfx11-generic",
        ],
    },
    Family {
        name: "gfx11.5",
        version: 23,
        settings: &["gfx1150/true16", "gfx1151/wave64/true16", "gfx1152/fake16", "gfx1153/wave64/fake16"],
    },
    Family {
        name: "gfx11.7",
        version: 23,
        settings: &["gfx1170/true16", "gfx1170/wave64/true16", "gfx1171/fake16", "gfx11-7-generic/wave64/fake16"],
    },
    Family {
        name: "gfx12",
        version: 23,
        settings: &[
            "gfx1200/true16",
            "gfx1201/wave64/true16",
            "gfx1200/fake16",
            "gfx1201/wave64/fake16",
            "gfx12-generic",
        ],
    },
    Family {
        name: "gfx12.5",
        version: 23,
        settings: &["gfx1250/true16", "gfx1250/fake16", "gfx1250", "gfx1251/true16", "gfx12-5-generic"],
    },
    Family { name: "gfx12.5-strict", version: 24, settings: &["gfx1250-strict/true16", "gfx1250-strict/fake16"] },
];

/// What is to be swept.
pub struct Sweep {
    /// The family.
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

    /// Compares `count` words.
    ///
    /// # Errors
    /// If a judge cannot be started or ends early.
    pub fn run(&self, exam: &Exam<'_>, program: &str, count: usize, seed: u64) -> io::Result<Report> {
        if self.settings.is_empty() || self.patterns.is_empty() {
            return Ok(Report::default());
        }
        let pieces: Vec<(usize, usize)> = (0..count).step_by(PIECE).map(|at| (at, count.min(at + PIECE))).collect();
        exam.parallel(program, &pieces, |oracle, &(from, to), report| {
            for (setting, words) in self.words(from, to, seed) {
                let items = words.iter().map(|(word, name)| (*word, name.as_str())).collect();
                exam.judge(oracle, setting, items, report)?;
            }
            Ok(())
        })
    }

    /// Words with the numbers `from` to `to`, by setting, each with the row that it was made from.
    fn words(&self, from: usize, to: usize, seed: u64) -> BTreeMap<&Setting, Vec<(Word, &String)>> {
        static NOISE_NAME: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "noise".to_owned());
        let mut all: BTreeMap<&Setting, Vec<_>> = BTreeMap::new();
        for number in from..to {
            let mut random = Random::new(seed ^ u64::try_from(number).unwrap_or(0).wrapping_mul(0x9e37_79b9));
            let (round, at) = (number / self.patterns.len(), number % self.patterns.len());
            let setting = &self.settings[random.below(self.settings.len())];
            let pattern = &self.patterns[at];
            // Small sweeps reach few rounds, so that each encoding begins at another edge.
            let word = match random.one_in(NOISE) {
                true => (pattern::noise(&mut random), &*NOISE_NAME),
                false => (pattern.word(round + at * 14, &mut random), &pattern.name),
            };
            all.entry(setting).or_default().push(word);
        }
        all
    }
}

/// The features of a setting's processor; its wave size and spelling replace the defaults.
fn features<'m>(model: &'m Model, setting: &Setting) -> Option<BTreeSet<&'m str>> {
    let target: &Target = model.targets.iter().find(|target| target.name == setting.cpu)?;
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
            let step = |features: &BTreeSet<&str>| {
                model.steps.iter().any(|step| step.table == column.table && holds(&step.condition, features))
            };
            let predicate = |name: &String, features: &BTreeSet<&str>| {
                conditions.get(name.as_str()).is_none_or(|condition| holds(condition, features))
            };
            let has = |features: &BTreeSet<&str>| {
                step(features) && column.predicates.iter().all(|name| predicate(name, features))
            };
            if features.iter().any(has) {
                patterns.push(Pattern::new(format!("{} {}", row.mnemonic, column.table), layout, column));
            }
        }
    }
    patterns
}

fn holds(condition: &Condition, features: &BTreeSet<&str>) -> bool {
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
