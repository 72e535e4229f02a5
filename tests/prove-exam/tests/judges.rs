//! All judges about the same objects: they agree about rewritten assembly and random kernels, and a planted fault is a
//! disagreement.

use hotswap_check::CheckOptions;
use hotswap_prove_exam::judged_corpus::{JudgedSource, judge_sources, program_sources, sum_table};
use hotswap_prove_exam::judged_pairs::judged_pairs;
use hotswap_prove_exam::judges::{JudgeTally, judge_pair};
use hotswap_prove_exam::mutations::{MUTATIONS, planted};
use hotswap_prove_exam::random_kernels::judge_random;
use hotswap_prove_exam::subjects::assembled;
use hotswap_rewrite_exam::variants::variants;
use hotswap_userland::{Workbench, everything, say};

fn options() -> CheckOptions {
    CheckOptions { states: 20, launches: 2, ..CheckOptions::default() }
}

#[test]
fn judges_agree_about_assembly_as_object_files_and_linked() {
    let Some(bench) = Workbench::with_llvm(24, "judges of assembly") else { return };
    let source = |(name, kernels): (&str, _)| JudgedSource::Assembly { name: name.to_owned(), kernels };
    let taken = |(number, _): &(usize, _)| everything() || number % 4 == 0;
    let sources: Vec<JudgedSource> =
        variants().into_iter().enumerate().filter(taken).map(|(_, one)| source(one)).collect();
    let tally = sum_table(judge_sources(&bench, &sources, &options()));
    say(&format!("judges of assembly: {}", tally.text()));
    assert!(tally.disagreements.is_empty(), "{}", tally.disagreements.join("\n"));
    assert_eq!((tally.objects, tally.changed), (2 * sources.len() as u64, tally.caught));
}

/// Sources of pairs of each kind, whose programs a short run compiles.
const SHORT_RUN: [&str; 4] = ["gfx1030", "gfx1102", "gfx942", "gfx1250"];

/// Each pair that plans apply has objects, and nothing contradicts a judge.
#[test]
fn judges_agree_about_programs_for_every_pair() {
    let Some(bench) = Workbench::with_llvm(22, "judges of programs") else { return };
    let is_taken = |gpu: &str| everything() || SHORT_RUN.contains(&gpu);
    let is_short = |source: &JudgedSource| everything() || source.name().starts_with("shared-");
    let of_gpu = |source: &JudgedSource| matches!(source, JudgedSource::Program { gpu, .. } if is_taken(gpu));
    let sources = program_sources().into_iter().filter(|source| of_gpu(source) && is_short(source));
    let table = judge_sources(&bench, &sources.collect::<Vec<_>>(), &options());
    let wanted = judged_pairs().filter(|pair| is_taken(pair.source));
    let missing: Vec<String> = wanted.filter(|pair| !table.contains_key(pair)).map(|pair| pair.to_string()).collect();
    assert!(missing.is_empty(), "no object: {}", missing.join(", "));
    let tally = sum_table(table);
    say(&format!("judges of programs: {}", tally.text()));
    assert!(tally.disagreements.is_empty(), "{}", tally.disagreements.join("\n"));
    assert!(tally.equal > 0);
}

/// Padding that became shorter before a function that begins with a neutralised `s_delay_alu` is in 24.
#[test]
fn judges_agree_about_random_kernels() {
    let Some(bench) = Workbench::with_llvm(24, "judges of random kernels") else { return };
    let seeds = if everything() { 0..200 } else { 24..26 };
    let tally = judge_random(&bench, seeds, &options(), None);
    say(&format!("judges of random kernels: {}", tally.judged.text()));
    assert!(tally.judged.unchecked.is_empty(), "{:?}", tally.judged.unchecked);
    assert!(tally.judged.disagreements.is_empty(), "{}", tally.judged.disagreements.join("\n"));
    assert!(tally.judged.changed > 0 && tally.judged.changed == tally.judged.caught);
}

#[test]
fn a_planted_fault_is_a_disagreement() {
    let Some(bench) = Workbench::with_llvm(24, "planted disagreements") else { return };
    let (name, kernels) = variants().into_iter().find(|(name, _)| *name == "addtid_load").unwrap();
    let pair = assembled(&bench, name, &kernels).unwrap();
    let options = CheckOptions { states: 400, ..options() };
    let mut seen = 0;
    for mutation in MUTATIONS.iter().filter(|mutation| mutation.object == name) {
        let mut tally = JudgeTally::default();
        judge_pair(name, &pair.original, &planted(&pair, mutation).unwrap(), &options, &mut tally);
        assert!(!tally.disagreements.is_empty(), "{}", mutation.text);
        seen += 1;
    }
    let mut tally = JudgeTally::default();
    judge_pair(name, &pair.original, &pair.made, &options, &mut tally);
    assert!(tally.disagreements.is_empty(), "{:?}", tally.disagreements);
    say(&format!("planted disagreements: {seen} of {seen} are seen"));
    assert!(seen > 4);
}
