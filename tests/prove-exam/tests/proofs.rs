//! Terms agree with the emulator, every question about them has the kept answer, and a planted fault is another question
//! whose answer is that they can differ.

use hotswap_prove_exam::mutations::{MUTATIONS, planted};
use hotswap_prove_exam::proof::obligations::{disagreement, obligations};
use hotswap_prove_exam::proof::solver::SolverAnswers;
use hotswap_prove_exam::proof::{answers_file, prove, subjects};
use hotswap_prove_exam::subjects::RewrittenPair;
use hotswap_userland::{Workbench, say};

#[test]
fn replacements_without_floats_are_proven() {
    let Some(bench) = Workbench::with_llvm(24, "proofs") else { return };
    let pairs = subjects(&bench);
    let mut answers = SolverAnswers::read(&answers_file());
    let tally = prove(&pairs, &mut answers);
    say(&format!("proofs: {} of {} sites proven", tally.proven, tally.obligations));
    assert!(tally.refuted.is_empty(), "{}", tally.refuted.join("\n"));
    assert!(tally.open.is_empty(), "no answer is kept (`cargo xtask prove proofs`):\n{}", tally.open.join("\n"));
    assert!(tally.proven >= 40, "{} proofs", tally.proven);
    // A fault is never proven: its question has no kept answer, or that they can differ; terms follow the fault.
    let mut faults = 0;
    for mutation in
        MUTATIONS.iter().filter(|mutation| mutation.object.starts_with("ds_") || mutation.object == "addtid_load")
    {
        let Some(pair) = pairs.iter().find(|pair| pair.name.trim_end_matches(".relocs") == mutation.object) else {
            continue;
        };
        let Some(made) = planted(pair, mutation) else { continue };
        let wrong = RewrittenPair { made, ..pair.clone() };
        let sound: Vec<String> = obligations(pair).0.into_iter().map(|one| one.question).collect();
        let fresh: Vec<_> = obligations(&wrong).0.into_iter().filter(|one| !sound.contains(&one.question)).collect();
        for one in &fresh {
            faults += 1;
            assert_eq!(disagreement(one), None, "{}", mutation.text);
            assert_ne!(answers.answer(&one.question).as_deref(), Some("unsat"), "{}", mutation.text);
        }
    }
    assert!(faults >= 10, "{faults} faults");
}
