//! `prove`: evidence by execution, at full size.

use clap::Parser;
use hotswap_check::CheckOptions;
use hotswap_prove_exam::evidence::{EvidenceRow, page};
use hotswap_prove_exam::exhaustive;
use hotswap_prove_exam::judges;
use hotswap_prove_exam::libraries;
use hotswap_prove_exam::mutations::{self, MUTATIONS};
use hotswap_prove_exam::proof;
use hotswap_prove_exam::rewrites::{self, RewriteTally};
use hotswap_prove_exam::subjects::{self, RewrittenPair, SubjectKind};
use hotswap_prove_exam::twins;
use hotswap_rewrite_exam::compile::Setting;
use hotswap_rewrite_exam::corpus::units;
use hotswap_userland::Workbench;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Evidence by execution")]
enum Words {
    /// Everything; writes the table of evidence.
    All {
        /// The page.
        #[arg(long, default_value = "docs/evidence.md")]
        page: PathBuf,
        /// States of each site of objects of assembly.
        #[arg(long, default_value_t = 10_000)]
        states: u64,
        /// States of each site of compiled objects.
        #[arg(long, default_value_t = 10_000)]
        corpus_states: u64,
        /// Only objects whose name holds this.
        #[arg(long, default_value = "")]
        name: String,
        /// Sources of 20 generated programs each.
        #[arg(long, default_value_t = 10)]
        sources: u64,
        /// Conversions of every STEPth float, an odd number; 1 for all.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        step: u64,
    },
    /// Rewritten objects against their originals.
    Rewrites {
        /// Only objects whose name holds this.
        #[arg(default_value = "")]
        name: String,
        /// States of each site.
        #[arg(long, default_value_t = 10_000)]
        states: u64,
        /// Write both forms to this directory.
        #[arg(long)]
        keep: Option<PathBuf>,
    },
    /// Replacements with planted faults.
    Mutations,
    /// Proofs by an SMT solver (`HOTSWAP_SMT`, or z3 or bitwuzla on the path).
    Proofs,
    /// Conversions to 8-bit floats, every input.
    Exhaustive {
        /// Every STEPth float, an odd number.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        step: u64,
    },
    /// Single instructions against AMD's pseudo-code.
    Judges,
    /// Algorithms of real libraries on emulated GPUs.
    Libraries,
    /// Generated programs against the host.
    Twins {
        /// Sources of 20 programs each.
        #[arg(long, default_value_t = 10)]
        sources: u64,
    },
}

fn main() -> ExitCode {
    let Some(bench) = Workbench::new("prove") else {
        eprintln!("prove: error: no ROCm userland (`cargo xtask prove` gives one)");
        return ExitCode::FAILURE;
    };
    let rows = match Words::parse() {
        Words::All { page, states, corpus_states, name, sources, step } => {
            let tally = rewritten(&bench, &name, [states, corpus_states], None);
            return all(&bench, &page, rewrites::rows(&tally, [states, corpus_states]), (sources, step));
        }
        Words::Rewrites { name, states, keep } => {
            rewrites::rows(&rewritten(&bench, &name, [states; 2], keep.as_deref()), [states; 2])
        }
        Words::Mutations => vec![planted(&bench)],
        Words::Proofs => vec![proof::row(&bench)],
        Words::Exhaustive { step } => vec![exhaustive::row(&bench, step)],
        Words::Judges => judges::row(&bench).into_iter().collect(),
        Words::Libraries => libraries::row().into_iter().collect(),
        Words::Twins { sources } => vec![twins::run(&bench, sources)],
    };
    println!("{}", page(&rows, &words()));
    exit(&rows)
}

/// The words of this run.
fn words() -> String {
    std::env::args().skip(1).collect::<Vec<_>>().join(" ")
}

fn exit(rows: &[EvidenceRow]) -> ExitCode {
    if !rows.is_empty() && rows.iter().all(|row| row.holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn all(bench: &Workbench, file: &Path, mut rows: Vec<EvidenceRow>, (sources, step): (u64, u64)) -> ExitCode {
    rows.push(planted(bench));
    rows.push(proof::row(bench));
    rows.push(exhaustive::row(bench, step));
    rows.push(twins::run(bench, sources));
    rows.extend(judges::row(bench));
    rows.extend(libraries::row());
    if let Err(error) = std::fs::write(file, page(&rows, &words())) {
        eprintln!("prove: error: {}: {error}", file.display());
        return ExitCode::FAILURE;
    }
    println!("{}", page(&rows, &words()));
    exit(&rows)
}

/// Objects of assembly on `states` of the first number, compiled ones on the second.
fn rewritten(bench: &Workbench, name: &str, states: [u64; 2], keep: Option<&Path>) -> RewriteTally {
    let [assembly, corpus] = states.map(|states| CheckOptions { states, ..CheckOptions::default() });
    let mut tally = RewriteTally::default();
    let mut judge = |pairs: Vec<RewrittenPair>, options: &CheckOptions| {
        for pair in pairs.iter().filter(|pair| pair.name.contains(name)) {
            if let Some(directory) = keep {
                write_both(directory, pair);
            }
            let mut own = RewriteTally::default();
            let start = std::time::Instant::now();
            own.add(pair, options);
            println!("{} ({:.1} s): {}", pair.name, start.elapsed().as_secs_f64(), own.text());
            own.differences.iter().for_each(|difference| println!("{difference}"));
            tally.merge(own);
        }
    };
    judge(subjects::assembly(bench, SubjectKind::Variants), &assembly);
    judge(subjects::assembly(bench, SubjectKind::Spills), &assembly);
    let setting = Setting { version: 24, level: '2', debug: true };
    for unit in units().iter().filter(|unit| unit.name.contains(name)) {
        judge(subjects::corpus(bench, setting, |one| one.name == unit.name), &corpus);
    }
    println!("{}", tally.text());
    tally
}

fn write_both(directory: &Path, pair: &RewrittenPair) {
    for (extension, bytes) in [("before", &pair.original), ("after", &pair.made)] {
        let file = directory.join(format!("{}.{extension}", pair.name));
        if let Err(error) = std::fs::write(&file, bytes) {
            eprintln!("prove: error: {}: {error}", file.display());
        }
    }
}

fn planted(bench: &Workbench) -> EvidenceRow {
    let options = CheckOptions { states: 2000, launches: 4, ..CheckOptions::default() };
    let mut all = subjects::assembly(bench, SubjectKind::Variants);
    all.extend(subjects::assembly(bench, SubjectKind::Spills));
    let missed = mutations::missed(&all, &options);
    missed.iter().for_each(|what| println!("not caught: {what}"));
    EvidenceRow {
        claim: "A family that is wrong would be seen".to_owned(),
        method: "replacements with one planted fault each, executed".to_owned(),
        cases: format!("{} faults of 10 families", MUTATIONS.len()),
        result: format!("{} caught", MUTATIONS.len() - missed.len()),
        open: "distances (`v_nop`) are judged by `hotswap lint`".to_owned(),
        holds: missed.is_empty(),
    }
}
