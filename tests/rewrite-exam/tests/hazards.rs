//! Every replacement of every family between neighbours that could be too close: LLVM's hazard recognizer for the
//! target inserts nothing. Where it inserts something into the original code, for the source, the code was wrong
//! before.

use hotswap_rewrite_exam::assembly::assemble;
use hotswap_rewrite_exam::compile::{SOURCE, TARGET};
use hotswap_rewrite_exam::exam::run;
use hotswap_rewrite_exam::listing::Listing;
use hotswap_rewrite_exam::mir::{Inserted, Spellings, inserted};
use hotswap_rewrite_exam::neighbours::{ALL, FEW, neighbours};
use hotswap_userland::{SLICE, Workbench, everything, say};
use std::collections::BTreeSet;

fn listed(bench: &Workbench, name: &str, bytes: &[u8]) -> Listing {
    bench.write(name, bytes);
    Listing::read(&bench.run(&format!("llvm-objdump-24 -d {name}")))
}

fn names(all: &[Inserted]) -> BTreeSet<&str> {
    all.iter().map(|one| one.function.as_str()).collect()
}

#[test]
fn llvms_hazard_recognizer_puts_nothing_into_replacements() {
    let Some(bench) = Workbench::with_llvm(24, "hazards of replacements") else { return };
    let step = if everything() { ALL } else { FEW };
    let count = |step| neighbours(step).iter().map(|(_, kernels)| kernels.len()).sum::<usize>();
    say(&format!(
        "hazards of replacements: {SLICE}{} of {} cases; `cargo xtask test --everything` runs all",
        count(step),
        count(ALL)
    ));
    let (mut judged, mut wrong_before, mut problems) = (0, 0, Vec::new());
    let mut spellings = Spellings::default();
    for (name, kernels) in neighbours(step) {
        let [(_, bytes), _] = assemble(&bench, name, &kernels);
        let made = run(&bytes, false).unwrap_or_else(|refusals| panic!("{name}: {}", refusals.join("\n")));
        let (before, _) = inserted(&bench, &mut spellings, &listed(&bench, "before", &bytes), SOURCE);
        let (after, count) = inserted(&bench, &mut spellings, &listed(&bench, "after", &made.bytes), TARGET);
        let known = names(&before);
        judged += count;
        wrong_before += known.len();
        let fresh = after.iter().filter(|one| !known.contains(one.function.as_str()));
        problems.extend(fresh.map(|one| format!("{}:\n  {}", one.function, one.lines.join("\n  "))));
    }
    say(&format!("hazards of replacements: {judged} kernels, {wrong_before} wrong before, {} after", problems.len()));
    assert!(judged - wrong_before > 1000, "{judged} {wrong_before}");
    assert!(problems.is_empty(), "{} of {judged}:\n{}", problems.len(), problems[..problems.len().min(12)].join("\n"));
}
