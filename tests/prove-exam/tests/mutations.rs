//! Every planted fault of a family's replacement is caught by execution, and no rewritten object without one is different.

use hotswap_check::CheckOptions;
use hotswap_prove_exam::mutations::{MUTATIONS, missed};
use hotswap_prove_exam::rewrites::RewriteTally;
use hotswap_prove_exam::subjects::{self, SubjectKind};
use hotswap_userland::{Workbench, say};

#[test]
fn replacements_do_the_same_and_planted_faults_are_caught() {
    let Some(bench) = Workbench::with_llvm(24, "mutations") else { return };
    let options = CheckOptions { states: 400, launches: 4, ..CheckOptions::default() };
    let mut all = subjects::assembly(&bench, SubjectKind::Variants);
    all.extend(subjects::assembly(&bench, SubjectKind::Spills));
    let mut tally = RewriteTally::default();
    all.iter().for_each(|pair| tally.add(pair, &options));
    say(&format!("mutations: {}", tally.text()));
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
    assert!(tally.unchecked.is_empty(), "{:?}", tally.unchecked);
    // A family without any site would not be tested.
    assert_eq!(tally.families.len(), 10, "{:?}", tally.families.keys());
    let missed = missed(&all, &options);
    say(&format!("mutations: {} of {} are caught", MUTATIONS.len() - missed.len(), MUTATIONS.len()));
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
