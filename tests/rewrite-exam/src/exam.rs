//! One unit in one setting through the engine, and the judge's verdict.

use crate::compile::{self, Form, Setting, TARGET};
use crate::corpus::Unit;
use crate::hazard::{Consumer, Distances};
use crate::judge::{Answer, ask, judge};
use crate::listing::Listing;
use hotswap_adapt::{AdaptRequest, AdaptedObject, adapt_object};
use hotswap_report::FamilyCount;
use hotswap_userland::Workbench;
use std::collections::BTreeMap;

/// Counts and problems of some objects.
#[derive(Debug, Default)]
pub struct Tally {
    /// Objects that were passed to the engine.
    pub objects: usize,
    /// Kernels of the units that were compiled.
    pub kernels: usize,
    /// Refusals, one line each.
    pub refused: Vec<String>,
    /// The judge's problems with a result.
    pub problems: Vec<String>,
    /// Instructions of the results.
    pub lines: usize,
    /// Sites that were changed, by family.
    pub families: BTreeMap<String, u64>,
    /// Distances in the results.
    pub ours: Distances,
    /// Distances in LLVM's code for the target from the same sources.
    pub theirs: Distances,
}

impl Tally {
    pub fn merge(&mut self, other: Self) {
        self.objects += other.objects;
        self.kernels += other.kernels;
        self.lines += other.lines;
        self.refused.extend(other.refused);
        self.problems.extend(other.problems);
        for (family, sites) in other.families {
            *self.families.entry(family).or_default() += sites;
        }
        self.ours.merge(other.ours);
        self.theirs.merge(other.theirs);
    }

    /// Distances of ours that are smaller than the smallest that LLVM leaves for the same pair of instructions, where
    /// LLVM's is one that it had to make: exactly the requirement of its rule.
    pub fn nearer(&self) -> Vec<String> {
        let ours = self.ours.fewest.iter().filter(|((_, consumer), _)| *consumer != Consumer::Leave);
        ours.filter_map(|((class, consumer), fewest)| {
            let theirs = *self.theirs.fewest.get(&(class.clone(), *consumer))?;
            let least = theirs.min(needed_wait_states(class, *consumer));
            (*fewest < least).then(|| format!("{class} before {consumer:?}: {fewest}, LLVM {theirs}"))
        })
        .collect()
    }

    /// One line of text.
    pub fn line(&self) -> String {
        let families: Vec<String> = self.families.iter().map(|(name, sites)| format!("{name} {sites}")).collect();
        format!(
            "{} objects of {} kernels, {} refusals, {} problems; {} instructions, {} distances beside {} of LLVM's; {}",
            self.objects,
            self.kernels,
            self.refused.len(),
            self.problems.len(),
            self.lines,
            self.ours.pairs,
            self.theirs.pairs,
            families.join(", ")
        )
    }
}

fn needed_wait_states(class: &str, consumer: Consumer) -> u8 {
    let vector: u8 = class.rsplit('/').next().and_then(|need| need.parse().ok()).unwrap_or(0);
    if consumer == Consumer::Matrix { vector + 1 } else { vector }
}

/// The engine with the request of this exam.
///
/// # Errors
/// The engine's refusals as text.
pub fn run(bytes: &[u8], keep_machine: bool) -> Result<AdaptedObject, Vec<String>> {
    let target = TARGET.parse().map_err(|_| vec![format!("{TARGET} is no target")])?;
    let refusals = |all: Vec<hotswap_report::Diagnostic>| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    adapt_object(bytes, &AdaptRequest { target, keep_machine }).map_err(refusals)
}

/// A unit in one setting, in the given forms.
///
/// # Panics
/// If a tool of the userland fails.
pub fn unit(bench: &Workbench, unit: &Unit, setting: Setting, forms: &[Form]) -> Tally {
    let mut tally = Tally { kernels: unit.kernels, ..Tally::default() };
    let native = compile::native(bench, unit, setting).map(|code| Answer { code, ..Answer::default() });
    let native = native.map(|answer| judge(&answer, false));
    for object in compile::compile(bench, unit, setting, forms) {
        tally.objects += 1;
        object_of(bench, &object.name, &object.bytes, native.as_ref().map(|native| &native.listing), &mut tally);
    }
    if let Some(native) = native {
        tally.problems.extend(native.problems.iter().map(|problem| format!("{}: LLVM's own: {problem}", unit.name)));
        tally.theirs.merge(native.distances);
    }
    tally
}

/// A unit in one setting, in the given forms, without symbols: the numbers of changed sites of each family are the same
/// as with them.
///
/// # Panics
/// If a tool of the userland fails.
pub fn stripped(bench: &Workbench, unit: &Unit, setting: Setting, forms: &[Form]) -> Tally {
    let mut tally = Tally { kernels: unit.kernels, ..Tally::default() };
    for object in compile::compile(bench, unit, setting, forms) {
        // An object that is refused with its symbols is an error of the plain exam.
        let Ok(whole) = run(&object.bytes, false) else { continue };
        for copy in compile::strip(bench, &object) {
            let mut one = Tally { objects: 1, ..Tally::default() };
            object_of(bench, &copy.name, &copy.bytes, None, &mut one);
            if one.refused.is_empty() && one.families != family_site_counts(&whole.record.families) {
                let (with, without) = (&whole.record.families, &one.families);
                one.problems.push(format!("{}: {without:?} without symbols, {with:?} with them", copy.name));
            }
            tally.merge(one);
        }
    }
    tally
}

fn family_site_counts(families: &[FamilyCount]) -> BTreeMap<String, u64> {
    families.iter().map(|family| (family.name.clone(), family.sites)).collect()
}

/// One object: through the engine, through it again, and then judged.
///
/// # Panics
/// If a tool of the userland fails.
pub fn object_of(bench: &Workbench, name: &str, bytes: &[u8], native: Option<&Listing>, tally: &mut Tally) {
    let made = match run(bytes, false) {
        Ok(made) => made,
        Err(refusals) => {
            tally.refused.extend(refusals.into_iter().map(|refusal| format!("{name}: {refusal}")));
            return;
        }
    };
    let mut problems = Vec::new();
    for (what, again) in [("a second run", run(&made.bytes, false)), ("the same run", run(bytes, false))] {
        match again {
            Ok(again) if again.bytes == made.bytes => {}
            Ok(_) => problems.push(format!("{what} gives another file")),
            Err(refusals) => problems.push(format!("{what} is refused: {}", refusals.join("; "))),
        }
    }
    let file = format!("{name}.made");
    bench.write(&file, &made.bytes);
    let mut verdict = judge(&ask(bench, &[&file])[0], true);
    if verdict.problems.iter().any(|problem| is_inherited(problem)) {
        bench.write(name, bytes);
        inherited(&judge(&ask(bench, &[name])[0], true).problems, &mut verdict.problems);
    }
    problems.append(&mut verdict.problems);
    problems.extend(native.into_iter().flat_map(|native| two_addresses(native, &verdict.listing)));
    tally.problems.extend(problems.into_iter().map(|problem| format!("{name}: {problem}")));
    tally.lines += verdict.lines;
    tally.ours.merge(verdict.distances);
    for family in made.record.families {
        *tally.families.entry(family.name).or_default() += family.sites;
    }
}

/// Problems of the input file itself: LLVM's tools complain about some relocations that LLVM itself writes, and
/// hand-written assembly omits the previous mode or uses more registers than it states.
fn is_inherited(problem: &str) -> bool {
    let said = ["the mode before is", ": the metadata says "];
    problem.starts_with("LLVM says: ") || said.iter().any(|what| problem.contains(what))
}

/// Removes the problems that the input has as well, each as often as the input has it.
fn inherited(input: &[String], problems: &mut Vec<String>) {
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    input
        .iter()
        .filter(|problem| is_inherited(problem))
        .for_each(|problem| *left.entry(plain(problem)).or_default() += 1);
    problems.retain(|problem| match left.get_mut(&plain(problem)).filter(|_| is_inherited(problem)) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
}

/// Without addresses.
fn plain(problem: &str) -> String {
    let words = problem.split(' ').filter(|word| !(word.starts_with("0x") && word.ends_with(':')));
    words.collect::<Vec<_>>().join(" ")
}

/// Where LLVM's code for the target lacks an access at two addresses in a kernel, ours lacks one, too.
fn two_addresses(native: &Listing, ours: &Listing) -> Vec<String> {
    let theirs = count_two_address_accesses(native);
    count_two_address_accesses(ours).into_iter().filter_map(|one| unexpected_two_address_access(one, &theirs)).collect()
}

fn count_two_address_accesses(listing: &Listing) -> BTreeMap<String, usize> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (number, line) in listing.lines.iter().enumerate() {
        *counts.entry(listing.function(number).to_owned()).or_default() +=
            usize::from(line.mnemonic().contains("_2addr_"));
    }
    counts
}

fn unexpected_two_address_access((name, count): (String, usize), theirs: &BTreeMap<String, usize>) -> Option<String> {
    (count > 0 && theirs.get(&name) == Some(&0))
        .then(|| format!("{name}: {count} accesses at two addresses, LLVM has none"))
}
