//! The four answers about one object: the rewriter's own, those of `lint` and `verify --against` about its result, and that of
//! `check`. Where they contradict each other, one of them is wrong.
//!
//! - What the rewriter made is right for all judges, and is what a second run makes of it.
//! - Where the rewriter changed something, a judge finds a fault in the unchanged code under the target's name.
//! - What `check` finds different, `lint` or `verify --against` does not accept ([`planted_disagreements`]).
//!
//! Invariants: a finding that the original has, too, is not one about the rewrite. What a judge does not answer is counted,
//! with its reason, and is never agreement.

use crate::judged_pairs::JudgedPair;
use crate::mutations::{MUTATIONS, PlantedMutation, caught, planted};
use crate::subjects::RewrittenPair;
use crate::workers::on_all_processors;
use hotswap_check::{CheckOptions, compare_code_objects};
use hotswap_code_object::{CodeObject, ObjectEdit};
use hotswap_lint::{LintFinding, compare_with_original, lint_object};
use hotswap_report::codes;
use hotswap_targets::{EFlags, TargetId};
use std::collections::BTreeMap;

/// The code in refusals that are a fault of the rewriter.
const INTERNAL: &str = "HS0601";
/// Lines of a judge that are shown of one object.
const SHOWN: usize = 3;

/// The answers of the judges about one rewritten object.
#[derive(Debug, Default)]
pub struct JudgeAnswers {
    /// Findings of `lint` that the original does not have.
    pub lint: Vec<String>,
    /// Findings of `verify --against`.
    pub verify: Vec<String>,
    /// Differences that `check` finds.
    pub check: Vec<String>,
    /// Kernels that `check` did not compare completely, by the reason.
    pub unchecked: BTreeMap<String, u64>,
    /// Instructions that `verify --against` proved unchanged, or replaced by the same.
    pub proven: u64,
    /// Kernels that `check` found equal.
    pub equal: u64,
    /// States and launches of `check`.
    pub executed: u64,
}

impl JudgeAnswers {
    /// The faults that the judges name.
    fn faults(&self) -> Vec<String> {
        let named = [("lint", &self.lint), ("verify", &self.verify), ("check", &self.check)];
        let lines = named.into_iter().flat_map(|(judge, lines)| lines.iter().map(move |line| (judge, line)));
        lines.map(|(judge, line)| format!("{judge}: {line}")).collect()
    }
}

/// Sums over some objects.
#[derive(Debug, Default)]
pub struct JudgeTally {
    /// Objects that were given to the rewriter.
    pub objects: u64,
    /// Objects that it refused, by the code of the first reason.
    pub refused: BTreeMap<String, u64>,
    /// Objects in which it changed code.
    pub changed: u64,
    /// Changed objects whose unchanged code a judge found wrong under the target's name.
    pub caught: u64,
    /// Changed instructions by family.
    pub families: BTreeMap<String, u64>,
    /// Instructions that `verify --against` compared.
    pub proven: u64,
    /// Kernels that `check` found equal.
    pub equal: u64,
    /// States and launches of `check`.
    pub executed: u64,
    /// Kernels that it did not compare completely, by the reason.
    pub unchecked: BTreeMap<String, u64>,
    /// Contradictions, one line each.
    pub disagreements: Vec<String>,
}

impl JudgeTally {
    pub fn merge(&mut self, other: Self) {
        self.objects += other.objects;
        self.changed += other.changed;
        self.caught += other.caught;
        self.proven += other.proven;
        self.equal += other.equal;
        self.executed += other.executed;
        merge_counts(&mut self.refused, other.refused);
        merge_counts(&mut self.families, other.families);
        merge_counts(&mut self.unchecked, other.unchecked);
        self.disagreements.extend(other.disagreements);
    }

    /// One line of text.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{} objects, {} refused ({}); {} changed, {} of them wrong for a judge if they are left unchanged; {} instructions \
             proven, {} kernels equal, {} states and launches; not compared completely: {}; {} disagreements",
            self.objects,
            self.refused.values().sum::<u64>(),
            counts_text(&self.refused),
            self.changed,
            self.caught,
            self.proven,
            self.equal,
            self.executed,
            counts_text(&self.unchecked),
            self.disagreements.len()
        )
    }
}

fn merge_counts(into: &mut BTreeMap<String, u64>, other: BTreeMap<String, u64>) {
    for (name, count) in other {
        *into.entry(name).or_default() += count;
    }
}

fn counts_text(counts: &BTreeMap<String, u64>) -> String {
    let all: Vec<String> = counts.iter().map(|(name, count)| format!("{name}: {count}")).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// Makes the target's object of a pair and asks all judges.
#[must_use]
pub fn judge_object(pair: &JudgedPair, name: &str, original: &[u8], options: &CheckOptions) -> JudgeTally {
    let mut tally = JudgeTally { objects: 1, ..JudgeTally::default() };
    let made = match pair.make(original) {
        Ok(made) => made,
        Err(refusals) => {
            let first = refusals.first().map(String::as_str).unwrap_or_default();
            if refusals.iter().any(|refusal| refusal.contains(INTERNAL)) {
                tally.disagreements.push(format!("{name}: rewrite: {first}"));
            }
            *tally.refused.entry(code_of(first)).or_default() += 1;
            return tally;
        }
    };
    let sites = made.families.iter().map(|family| family.sites).sum::<u64>();
    for family in made.families {
        *tally.families.entry(family.name).or_default() += family.sites;
    }
    if pair.is_rewritten {
        judge_second_run(name, &made.bytes, pair, &mut tally);
    }
    judge_pair(name, original, &made.bytes, options, &mut tally);
    if sites > 0 {
        judge_unchanged_code(name, original, (pair, sites), options, &mut tally);
    }
    tally
}

/// A second run changes nothing.
fn judge_second_run(name: &str, made: &[u8], pair: &JudgedPair, tally: &mut JudgeTally) {
    match pair.make(made) {
        Ok(again) if again.bytes == made => {}
        Ok(_) => tally.disagreements.push(format!("{name}: rewrite changes its own result")),
        Err(refusals) => {
            tally.disagreements.push(format!("{name}: rewrite refuses its own result: {}", refusals.join("; ")));
        }
    }
}

/// A judge finds a fault in code that the rewriter changes if it is left unchanged.
fn judge_unchanged_code(
    name: &str,
    original: &[u8],
    (pair, sites): (&JudgedPair, u64),
    options: &CheckOptions,
    tally: &mut JudgeTally,
) {
    tally.changed += 1;
    match is_unchanged_code_caught(original, pair.target, options) {
        Ok(true) => tally.caught += 1,
        Ok(false) => {
            let what =
                format!("{name}: rewrite changes {sites} instructions, and no judge finds a fault in the old ones");
            tally.disagreements.push(what);
        }
        // A file whose note cannot name the target has no unchanged form.
        Err(reason) => *tally.unchecked.entry(reason).or_default() += 1,
    }
}

/// Asks the judges about a result that the rewriter calls right.
pub fn judge_pair(name: &str, original: &[u8], made: &[u8], options: &CheckOptions, tally: &mut JudgeTally) {
    let answers = ask_judges(original, made, options);
    let faults = answers.faults();
    tally.disagreements.extend(faults.iter().take(SHOWN).map(|fault| format!("{name}: rewrite: right; {fault}")));
    if faults.len() > SHOWN {
        tally.disagreements.push(format!("{name}: {} more", faults.len() - SHOWN));
    }
    tally.proven += answers.proven;
    tally.equal += answers.equal;
    tally.executed += answers.executed;
    merge_counts(&mut tally.unchecked, answers.unchecked);
}

/// The answers of all judges.
#[must_use]
pub fn ask_judges(original: &[u8], made: &[u8], options: &CheckOptions) -> JudgeAnswers {
    let mut answers = static_answers(original, made);
    match compare_code_objects(original, made, options) {
        Ok(report) => {
            for kernel in &report.kernels {
                answers.executed += kernel.states + kernel.launches;
                match &kernel.difference {
                    Some(difference) => answers.check.push(format!("{}: {}", kernel.kernel, difference.summary())),
                    None if kernel.is_equal() => answers.equal += 1,
                    None => {
                        let reason = kernel.unchecked.first().map_or("nothing of it was executed", String::as_str);
                        *answers.unchecked.entry(reason.to_owned()).or_default() += 1;
                    }
                }
            }
        }
        Err(error) if error.code == codes::NO_PART => {
            *answers.unchecked.entry("objects without kernels".to_owned()).or_default() += 1;
        }
        // A symbol of another object: nothing of the kernels can be executed before the link.
        Err(error) if error.what.contains("to a link") => {
            *answers.unchecked.entry("relocatable files with undefined symbols".to_owned()).or_default() += 1;
        }
        // ROCr does not load such a file either.
        Err(error) if error.what.contains("is not defined in the code object") => {
            *answers.unchecked.entry("linked files with undefined symbols".to_owned()).or_default() += 1;
        }
        Err(error) => answers.check.push(error.to_string()),
    }
    answers
}

/// The answers of the judges that do not execute kernels.
fn static_answers(original: &[u8], made: &[u8]) -> JudgeAnswers {
    let mut answers = JudgeAnswers::default();
    match (lint_object(original), lint_object(made)) {
        (Ok(old), Ok(new)) => answers.lint = new_findings(&old, &new),
        (Err(error), _) | (_, Err(error)) => answers.lint.push(error.to_string()),
    }
    match compare_with_original(original, made) {
        Ok(proof) => {
            answers.proven = proof.unchanged + proof.sites;
            answers.verify = proof.findings.iter().map(|finding| finding.to_diagnostic().to_string()).collect();
        }
        Err(error) => answers.verify.push(error.to_string()),
    }
    answers
}

/// A finding without its place, which a rewrite moves.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FindingKind<'f> {
    rule: &'static str,
    function: Option<&'f str>,
    mnemonic: Option<&'f str>,
}

impl<'f> FindingKind<'f> {
    fn new(finding: &'f LintFinding) -> Self {
        let LintFinding { rule, function, mnemonic, .. } = finding;
        Self { rule: rule.id, function: function.as_deref(), mnemonic: mnemonic.as_deref() }
    }
}

/// The findings of the result that are not those of the original.
fn new_findings(old: &[LintFinding], new: &[LintFinding]) -> Vec<String> {
    let mut known: BTreeMap<FindingKind<'_>, usize> = BTreeMap::new();
    old.iter().for_each(|finding| *known.entry(FindingKind::new(finding)).or_default() += 1);
    let mut fresh = Vec::new();
    for finding in new {
        match known.get_mut(&FindingKind::new(finding)) {
            Some(count) if *count > 0 => *count -= 1,
            _ => fresh.push(finding.to_diagnostic().to_string()),
        }
    }
    fresh
}

/// Whether a judge finds a fault in the unchanged code under the target's name.
///
/// # Errors
/// A file that cannot get the target's name.
fn is_unchanged_code_caught(original: &[u8], target: &str, options: &CheckOptions) -> Result<bool, String> {
    let unchanged = with_name_of_target(original, target)?;
    let answers = static_answers(original, &unchanged);
    if !answers.lint.is_empty() || !answers.verify.is_empty() {
        return Ok(true);
    }
    Ok(!ask_judges(original, &unchanged, options).check.is_empty())
}

/// The object with the target's name and its count of user SGPRs, and no other code.
fn with_name_of_target(original: &[u8], name: &str) -> Result<Vec<u8>, String> {
    let object = CodeObject::parse(original).map_err(|error| error.to_string())?;
    let source = object.target_id().processor.name;
    let target: TargetId = name.parse().map_err(|_| format!("{name} is not a target"))?;
    let mut edit = ObjectEdit::new(&object);
    edit.set_e_flags(EFlags::of(&target).encode());
    let named = object.note().target.replacen(source, name, 1);
    edit.set_note_target(&named).map_err(|_| "files whose notes cannot name the target".to_owned())?;
    edit.raise_user_sgprs(target.processor);
    Ok(edit.finish())
}

/// `HS0408` of `error[HS0408]…`.
fn code_of(refusal: &str) -> String {
    let from = refusal.find("HS").map_or("", |at| &refusal[at..]);
    from.chars().take(6).collect()
}

/// The outcome of planted faults.
#[derive(Debug, Default)]
pub struct PlantedTally {
    /// Faults that were planted and that `check` finds.
    pub faults: usize,
    /// Those that are a disagreement, as they must be: the rewriter calls the object right.
    pub seen: usize,
    /// Faults that `check` finds and that `lint` and `verify --against` accept.
    pub accepted: Vec<String>,
}

/// Plants faults in results of the rewriter: each must appear as a disagreement of the rewriter with `check` and with one of
/// the others.
#[must_use]
pub fn planted_disagreements(pairs: &[RewrittenPair], options: &CheckOptions) -> PlantedTally {
    let outcomes = on_all_processors(MUTATIONS, |mutation| planted_disagreement(pairs, mutation, options));
    let mut tally = PlantedTally::default();
    for outcome in outcomes.into_iter().flatten() {
        tally.faults += 1;
        tally.seen += usize::from(outcome.is_seen);
        tally.accepted.extend(outcome.accepted);
    }
    tally
}

struct PlantedOutcome {
    is_seen: bool,
    accepted: Option<String>,
}

fn planted_disagreement(
    pairs: &[RewrittenPair],
    mutation: &PlantedMutation,
    options: &CheckOptions,
) -> Option<PlantedOutcome> {
    let pair = pairs.iter().find(|pair| pair.name.trim_end_matches(".relocs") == mutation.object)?;
    let wrong = planted(pair, mutation)?;
    caught(pair, &wrong, options)?;
    let mut tally = JudgeTally::default();
    judge_pair(&pair.name, &pair.original, &wrong, options, &mut tally);
    let answers = static_answers(&pair.original, &wrong);
    let is_accepted = answers.lint.is_empty() && answers.verify.is_empty();
    let accepted = is_accepted.then(|| format!("{}: {}", mutation.object, mutation.text));
    Some(PlantedOutcome { is_seen: !tally.disagreements.is_empty(), accepted })
}
