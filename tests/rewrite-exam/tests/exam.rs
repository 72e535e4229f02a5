//! A part of the corpus through the engine, small enough for every day; `cargo xtask rewrite exam` uses all of it.

use hotswap_rewrite_exam::compile::{Form, Setting};
use hotswap_rewrite_exam::corpus::units;
use hotswap_rewrite_exam::exam::{Tally, stripped, unit};
use hotswap_userland::{Workbench, say, slice};

/// The selection of every unit: version, level, debug information, forms. By default the first one and another in turn.
const SAMPLE: &[(u32, char, bool, &[Form])] = &[
    (24, '2', true, &[Form::Relocatable, Form::Relocations, Form::Parts]),
    (24, '3', false, &[Form::Rdc]),
    (23, '1', false, &[Form::Linked]),
];

/// Units that are taken without optimization, too.
const PLAIN: [&str; 8] =
    ["calls", "cluster", "control", "e5m3", "lds_by_hand", "matrix_source_call", "pressure_source", "tensor"];

#[test]
fn the_corpus_goes_through_without_refusals_and_llvm_finds_nothing() {
    let Some(bench) = Workbench::with_llvm(24, "corpus for the other stepping") else { return };
    let mut sum = Tally::default();
    let units = units();
    let with = |(number, one)| SAMPLE.iter().enumerate().map(move |(turn, sample)| (number, one, turn, sample));
    let all = units.iter().enumerate().flat_map(with).filter(|(.., (version, ..))| bench.versions.contains(version));
    let all = slice("corpus for the other stepping", all.collect(), |_, (number, _, turn, _)| {
        *turn == 0 || number % (SAMPLE.len() - 1) == turn - 1
    });
    for (_, one, _, &(version, level, debug, forms)) in all {
        sum.merge(unit(&bench, one, Setting { version, level, debug }, forms));
    }
    for one in &units {
        if PLAIN.contains(&&*one.name) {
            let setting = Setting { version: 24, level: '0', debug: true };
            sum.merge(unit(&bench, one, setting, &[Form::Relocations, Form::Linked]));
        }
    }
    say(&format!("corpus for the other stepping: {}", sum.line()));
    assert!(sum.refused.is_empty(), "{}", sum.refused.join("\n"));
    assert!(sum.problems.is_empty(), "{}", sum.problems.join("\n"));
    assert!(sum.nearer().is_empty(), "{}", sum.nearer().join("\n"));
    // A family without any site would not be tested.
    for family in [
        "cluster_load",
        "ds_addtid",
        "ds_two_address",
        "e5m3_conversion",
        "f8f6f4_wrap",
        "flat_scratch_base",
        "mode_setreg",
        "tensor_mask",
        "wmma_hazard",
        "wmma_split",
    ] {
        assert!(sum.families.contains_key(family), "nothing in the corpus concerns {family}");
    }
}

/// Units with functions that are called, whose copies without symbols are tested here.
const CALLING: [&str; 4] = ["calls", "control", "local_calls", "matrix_source_call"];

/// Versions and levels of these copies.
const STRIPPED: [(u32, char); 3] = [(22, '2'), (24, '0'), (24, '2')];

#[test]
fn copies_without_symbols_become_what_the_corpus_becomes() {
    let Some(bench) = Workbench::with_llvm(24, "corpus without symbols") else { return };
    let mut sum = Tally::default();
    for one in units().iter().filter(|one| CALLING.contains(&&*one.name)) {
        let forms = [Form::Relocatable, Form::Relocations, Form::Linked];
        for (version, level) in STRIPPED.into_iter().filter(|(version, _)| bench.versions.contains(version)) {
            sum.merge(stripped(&bench, one, Setting { version, level, debug: false }, &forms));
        }
    }
    say(&format!("corpus without symbols: {}", sum.line()));
    assert!(sum.objects >= 20, "{} copies", sum.objects);
    assert!(sum.refused.is_empty(), "{}", sum.refused.join("\n"));
    assert!(sum.problems.is_empty(), "{}", sum.problems.join("\n"));
    assert!(sum.nearer().is_empty(), "{}", sum.nearer().join("\n"));
}
