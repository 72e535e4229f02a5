//! The report of a run: for people, and as JSON to be pasted into an issue.
//!
//! Invariants: it has nothing about the machine but the GPU, HIP's version and the build of HotSwap; a probe that was not run is
//! never confirmed.
//!
//! JSON: `{schema: 1, hotswap, expected, card: {name, target, emulated}, hip: {runtime, driver}, confirmed, sentence, native: [PROBE],
//! siblings: [{source, refused, probes: [PROBE]}], stopped}` with PROBE `{probe, group, verdict, cases, reason, differing, examples:
//! [{case, inputs, expected, found}], blocks: [{first, expected, found}]}`; words are hexadecimal.

use crate::inputs::STATED;
use crate::judge::{CaseDifference, ProbeDifference};
use serde_json::{Value, json};
use std::fmt::Write;

/// The GPU and the runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardFacts {
    /// As HIP states it.
    pub name: String,
    /// The target ID with its features.
    pub target: String,
    /// The versions of HIP's runtime and driver, as HIP states them.
    pub runtime: i32,
    pub driver: i32,
    /// Whether it is an emulated GPU.
    pub is_emulated: bool,
}

/// The outcome of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeVerdict {
    /// All of these cases are as expected.
    Confirmed {
        cases: usize,
    },
    Differs(ProbeDifference),
    /// The kernel did not end, or HIP refused it.
    Failed {
        reason: String,
    },
    NotRun {
        reason: String,
    },
}

/// A probe with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeOutcome {
    pub probe: String,
    pub group: &'static str,
    pub verdict: ProbeVerdict,
}

/// The outcomes of code that was made for another GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiblingOutcome {
    /// The GPU that the code was made for.
    pub source: String,
    pub probes: Vec<ProbeOutcome>,
}

/// How far derived code computes the same as the GPU's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DerivedState {
    Same,
    /// A result differs, or a kernel failed.
    Other,
    NotRun,
}

impl SiblingOutcome {
    fn state(&self) -> DerivedState {
        let counts = OutcomeCounts::count(&self.probes);
        match (counts.is_complete(), counts.differs + counts.failed) {
            (true, _) => DerivedState::Same,
            (false, 0) => DerivedState::NotRun,
            (false, _) => DerivedState::Other,
        }
    }
}

/// The outcomes of a whole run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfirmReport {
    /// The version of HotSwap.
    pub version: &'static str,
    /// Digest of the table of expected results.
    pub expected: u32,
    pub card: CardFacts,
    /// Code that was made for this GPU.
    pub native: Vec<ProbeOutcome>,
    pub siblings: Vec<SiblingOutcome>,
    /// Why the run ended early.
    pub stopped: Option<String>,
}

/// Numbers of outcomes of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OutcomeCounts {
    confirmed: usize,
    differs: usize,
    failed: usize,
    not_run: usize,
    cases: usize,
}

impl OutcomeCounts {
    fn count<'o>(outcomes: impl IntoIterator<Item = &'o ProbeOutcome>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            match &outcome.verdict {
                ProbeVerdict::Confirmed { cases } => {
                    counts.confirmed += 1;
                    counts.cases += cases;
                }
                ProbeVerdict::Differs(_) => counts.differs += 1,
                ProbeVerdict::Failed { .. } => counts.failed += 1,
                ProbeVerdict::NotRun { .. } => counts.not_run += 1,
            }
        }
        counts
    }

    fn total(self) -> usize {
        self.confirmed + self.differs + self.failed + self.not_run
    }

    fn is_complete(self) -> bool {
        self.confirmed == self.total() && self.confirmed > 0
    }

    fn text(self) -> String {
        let mut text = format!("{} of {} confirmed", self.confirmed, self.total());
        for (count, what) in [(self.differs, "differ"), (self.failed, "failed"), (self.not_run, "not run")] {
            if count > 0 {
                text += &format!(", {count} {what}");
            }
        }
        text
    }
}

impl ConfirmReport {
    /// Whether everything was run and is as expected.
    pub fn is_confirmed(&self) -> bool {
        OutcomeCounts::count(&self.native).is_complete()
            && self.siblings.iter().all(|sibling| sibling.state() == DerivedState::Same)
    }

    /// The sentence that the run ends with.
    pub fn sentence(&self) -> String {
        let counts = OutcomeCounts::count(&self.native);
        let kind = if self.card.is_emulated { "emulated GPU" } else { "GPU" };
        let sources: Vec<&str> = self.siblings.iter().map(|sibling| sibling.source.as_str()).collect();
        let names = if sources.is_empty() { "no other GPU".to_owned() } else { sources.join(", ") };
        if self.is_confirmed() {
            let derived = match sources.len() {
                0 => "HotSwap derives no code for it from other GPUs".to_owned(),
                _ => format!("code made for {names} computes the same on it"),
            };
            return format!(
                "Confirmed: this {kind} {} computes what the emulator states ({} instructions and programs, {} cases), and {derived}.",
                self.card.target, counts.confirmed, counts.cases
            );
        }
        let derived: String = [
            (DerivedState::Same, "computes the same as its own"),
            (DerivedState::Other, "does not"),
            (DerivedState::NotRun, "was not run"),
        ]
        .into_iter()
        .map(|(state, what)| self.derived_text(state, what))
        .collect();
        format!("Not confirmed: on this {kind} {} {}{derived}.", self.card.target, counts.text())
    }

    /// The GPUs whose code is in that state, as a part of the sentence.
    fn derived_text(&self, state: DerivedState, what: &str) -> String {
        let siblings = self.siblings.iter().filter(|sibling| sibling.state() == state);
        let names: Vec<&str> = siblings.map(|sibling| sibling.source.as_str()).collect();
        if names.is_empty() { String::new() } else { format!("; code made for {} {what}", names.join(", ")) }
    }

    /// The report for people.
    pub fn to_text(&self) -> String {
        let CardFacts { name, target, runtime, driver, is_emulated } = &self.card;
        let mut text = format!(
            "GPU: {name} ({target}){}\nHIP: runtime {runtime}, driver {driver}\nHotSwap: {}, expected results {:08x}\n\n",
            if *is_emulated { ", emulated: no evidence about hardware" } else { "" },
            self.version,
            self.expected
        );
        text += &part_text("code made for this GPU, judged by the emulator's results", &self.native);
        for sibling in &self.siblings {
            let title = format!("code made for {}, judged by the results of this GPU's own", sibling.source);
            text += &part_text(&title, &sibling.probes);
        }
        if let Some(stopped) = &self.stopped {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "The run ended early: {stopped}.");
        }
        text + &self.sentence() + "\n"
    }

    /// The report for programs.
    pub fn to_json(&self) -> Value {
        let siblings: Vec<Value> = self
            .siblings
            .iter()
            .map(|sibling| json!({ "source": sibling.source, "probes": outcomes_json(&sibling.probes) }))
            .collect();
        json!({
            "schema": 1,
            "hotswap": self.version,
            "expected": format!("{:08x}", self.expected),
            "card": { "name": self.card.name, "target": self.card.target, "emulated": self.card.is_emulated },
            "hip": { "runtime": self.card.runtime, "driver": self.card.driver },
            "confirmed": self.is_confirmed(),
            "sentence": self.sentence(),
            "native": outcomes_json(&self.native),
            "siblings": siblings,
            "stopped": self.stopped,
        })
    }
}

/// A line for each group, and the differences.
fn part_text(title: &str, outcomes: &[ProbeOutcome]) -> String {
    let mut text = format!("{title}: {}\n", OutcomeCounts::count(outcomes).text());
    let mut groups: Vec<&str> = outcomes.iter().map(|outcome| outcome.group).collect();
    groups.dedup();
    for group in groups {
        let counts = OutcomeCounts::count(outcomes.iter().filter(|outcome| outcome.group == group));
        let _ = writeln!(text, "  {group:<12} {}, {} cases", counts.text(), counts.cases);
    }
    for outcome in outcomes {
        match &outcome.verdict {
            ProbeVerdict::Confirmed { .. } | ProbeVerdict::NotRun { .. } => {}
            ProbeVerdict::Failed { reason } => {
                let _ = writeln!(text, "  {}: {reason}", outcome.probe);
            }
            ProbeVerdict::Differs(difference) => text += &difference_text(&outcome.probe, difference),
        }
    }
    text + "\n"
}

fn difference_text(probe: &str, difference: &ProbeDifference) -> String {
    let mut text = format!("  {probe}: {} cases differ", difference.count);
    if !difference.blocks.is_empty() {
        let _ = write!(text, ", and {} blocks of {STATED} further cases", difference.blocks.len());
    }
    text.push('\n');
    for CaseDifference { case, inputs, expected, found } in &difference.cases {
        let _ = writeln!(
            text,
            "    case {case}: inputs {}; expected {}; found {}",
            words_text(&inputs[..6]),
            words_text(expected),
            words_text(found)
        );
    }
    text
}

fn words_text(words: &[u32]) -> String {
    words.iter().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(" ")
}

fn outcomes_json(outcomes: &[ProbeOutcome]) -> Vec<Value> {
    outcomes.iter().map(outcome_json).collect()
}

fn outcome_json(outcome: &ProbeOutcome) -> Value {
    let ProbeOutcome { probe, group, verdict } = outcome;
    match verdict {
        ProbeVerdict::Confirmed { cases } => {
            json!({ "probe": probe, "group": group, "verdict": "confirmed", "cases": cases })
        }
        ProbeVerdict::Failed { reason } => {
            json!({ "probe": probe, "group": group, "verdict": "failed", "reason": reason })
        }
        ProbeVerdict::NotRun { reason } => {
            json!({ "probe": probe, "group": group, "verdict": "not run", "reason": reason })
        }
        ProbeVerdict::Differs(difference) => {
            let examples: Vec<Value> = difference.cases.iter().map(case_json).collect();
            let blocks: Vec<Value> = difference
                .blocks
                .iter()
                .map(|block| {
                    let [expected, found] = [block.expected, block.found].map(|digest| format!("{digest:08x}"));
                    json!({ "first": block.first, "expected": expected, "found": found })
                })
                .collect();
            json!({
                "probe": probe, "group": group, "verdict": "differs", "differing": difference.count, "examples": examples,
                "blocks": blocks,
            })
        }
    }
}

fn case_json(case: &CaseDifference) -> Value {
    json!({
        "case": case.case,
        "inputs": words_text(&case.inputs[..6]),
        "expected": words_text(&case.expected),
        "found": words_text(&case.found),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(verdict: ProbeVerdict) -> ProbeOutcome {
        ProbeOutcome { probe: "v_and_b32".to_owned(), group: "bits", verdict }
    }

    fn report(native: ProbeVerdict, sibling: ProbeVerdict) -> ConfirmReport {
        ConfirmReport {
            card: CardFacts { target: "gfx1031".to_owned(), ..CardFacts::default() },
            native: vec![outcome(native)],
            siblings: vec![SiblingOutcome { source: "gfx1030".to_owned(), probes: vec![outcome(sibling)] }],
            ..ConfirmReport::default()
        }
    }

    #[test]
    fn one_sentence_says_the_result() {
        let confirmed = ProbeVerdict::Confirmed { cases: 1024 };
        let good = report(confirmed.clone(), confirmed.clone());
        assert!(
            good.is_confirmed() && good.sentence().starts_with("Confirmed: this GPU gfx1031 "),
            "{}",
            good.sentence()
        );
        let failed = ProbeVerdict::Failed { reason: "hipErrorLaunchFailure".to_owned() };
        let bad = report(confirmed.clone(), failed);
        assert!(
            !bad.is_confirmed() && bad.sentence().ends_with("; code made for gfx1030 does not."),
            "{}",
            bad.sentence()
        );
        assert!(bad.to_text().contains("v_and_b32: hipErrorLaunchFailure"), "{}", bad.to_text());
        let unfinished = report(ProbeVerdict::NotRun { reason: "time".to_owned() }, confirmed);
        assert!(!unfinished.is_confirmed() && unfinished.sentence().contains("1 not run"), "{}", unfinished.sentence());
        assert!(!ConfirmReport::default().is_confirmed());
    }

    #[test]
    fn differences_have_inputs_and_both_results() {
        let case = CaseDifference { case: 3, inputs: [1; 8], expected: [2; 4], found: [0xabc; 4] };
        let difference = ProbeDifference { count: 1, cases: vec![case], blocks: Vec::new() };
        let text = report(ProbeVerdict::Differs(difference.clone()), ProbeVerdict::Differs(difference)).to_json();
        let example = &text["native"][0]["examples"][0];
        assert_eq!(example["found"], "00000abc 00000abc 00000abc 00000abc");
        assert_eq!((example["case"].as_u64(), example["inputs"].as_str().map(str::len)), (Some(3), Some(53)));
    }
}
