//! Proofs of replacements without floats: the instruction and its replacement as terms, compared by an SMT solver.
//!
//! - [`term`]: terms, printed and evaluated; [`symbolic`]: instructions of one active lane as terms;
//! - [`obligations`]: for each site a question, whether the two can differ; [`solver`]: its answers, kept by hash.
//!
//! The meaning of an instruction as a term is written a second time here, since functions of the emulator cannot be read as
//! terms; [`obligations::disagreement`] compares both on generated states, instruction sequence by instruction sequence.

pub mod obligations;
pub mod solver;
pub mod symbolic;
pub mod term;

use crate::evidence::EvidenceRow;
use crate::subjects::{self, RewrittenPair, SubjectKind};
use hotswap_rewrite_exam::assembly::Kernel;
use hotswap_userland::Workbench;
use obligations::{disagreement, obligations};
use solver::SolverAnswers;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The answers that are kept.
pub fn answers_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("proofs.answers")
}

/// The sum over all obligations.
#[derive(Debug, Default)]
pub struct ProofTally {
    /// Sites that have one.
    pub obligations: usize,
    /// Those of which instruction and replacement never differ.
    pub proven: usize,
    /// Those that can differ, and those on which terms and emulator do not agree, one line each.
    pub refuted: Vec<String>,
    /// Those without an answer.
    pub open: Vec<String>,
    /// Reasons why other sites lack one.
    pub refused: BTreeMap<String, usize>,
}

/// Accesses of LDS in every overlap of their registers.
fn overlaps() -> Vec<Kernel> {
    let mut insts = Vec::new();
    for (address, target) in [(0, 2), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (7, 4)] {
        insts.push(format!("ds_load_2addr_b32 v[{target}:{}], v{address} offset0:1 offset1:9", target + 1));
        insts.push(format!("ds_load_2addr_stride64_b32 v[{target}:{}], v{address} offset0:3 offset1:2", target + 1));
        insts.push(format!("ds_load_2addr_b64 v[{target}:{}], v{address} offset0:1 offset1:9", target + 3));
        insts.push(format!("ds_load_2addr_b64 v[{target}:{}], v{address} offset0:4 offset1:5", target + 3));
        insts.push(format!("ds_store_2addr_b32 v{address}, v{target}, v{} offset0:1 offset1:1", target + 1));
        insts.push(format!("ds_store_2addr_b64 v{address}, v[{target}:{}], v[4:5] offset0:8 offset1:7", target + 1));
        insts.push(format!(
            "ds_storexchg_2addr_rtn_b32 v[{target}:{}], v{address}, v3, v4 offset0:1 offset1:2",
            target + 1
        ));
    }
    insts.into_iter().enumerate().map(overlap_test_kernel).collect()
}

fn overlap_test_kernel((number, inst): (usize, String)) -> Kernel {
    let name = format!("overlap{number}");
    let code = format!("// vgprs: 64\n// workgroup: 32\n{name}:\n\t{inst}\n\ts_wait_dscnt 0x0\n\ts_endpgm\n");
    Kernel { name, code }
}

/// The objects whose sites are proven.
pub fn subjects(bench: &Workbench) -> Vec<RewrittenPair> {
    let mut all = subjects::assembly(bench, SubjectKind::Variants);
    // An access that cannot be rewritten in one overlap must not take the others with it.
    all.extend(
        overlaps().iter().filter_map(|kernel| subjects::assembled(bench, &kernel.name, std::slice::from_ref(kernel))),
    );
    all
}

/// Asks about every site.
pub fn prove(pairs: &[RewrittenPair], answers: &mut SolverAnswers) -> ProofTally {
    let mut tally = ProofTally::default();
    for pair in pairs {
        let (all, refused) = obligations(pair);
        refused.into_iter().for_each(|(reason, sites)| *tally.refused.entry(reason).or_default() += sites);
        for obligation in all {
            tally.obligations += 1;
            if tally.obligations.is_multiple_of(20) {
                println!("proofs: {} sites, {} proven", tally.obligations, tally.proven);
            }
            if let Some(what) = disagreement(&obligation) {
                tally.refuted.push(format!("{}: term and emulator disagree: {what}", obligation.name));
                continue;
            }
            match answers.answer(&obligation.question).as_deref() {
                Some("unsat") => tally.proven += 1,
                Some("sat") => tally.refuted.push(format!("{}: they can differ", obligation.name)),
                _ => tally.open.push(obligation.name),
            }
        }
    }
    tally
}

/// The line of the table; new answers are kept.
pub fn row(bench: &Workbench) -> EvidenceRow {
    let mut answers = SolverAnswers::read(&answers_file());
    let tally = prove(&subjects(bench), &mut answers);
    if answers.fresh > 0
        && let Err(error) = answers.write(&answers_file())
    {
        eprintln!("prove: error: {}: {error}", answers_file().display());
    }
    tally.refuted.iter().chain(&tally.open).for_each(|line| println!("{line}"));
    tally.refused.iter().for_each(|(reason, sites)| println!("no terms ({sites} sites): {reason}"));
    EvidenceRow {
        claim: "Replacements without floats never differ, whatever the registers and LDS hold".to_owned(),
        method: "SMT (bit vectors and arrays), one lane; terms compared with the emulator on 40 states a side"
            .to_owned(),
        cases: format!("{} different sites in every overlap of registers", tally.obligations),
        result: format!("{} proven, {} refuted, {} open", tally.proven, tally.refuted.len(), tally.open.len()),
        open: "floats, matrix products, other lanes, and LDS's end: judged by states".to_owned(),
        holds: tally.refuted.is_empty() && tally.open.is_empty() && tally.proven > 0,
    }
}
