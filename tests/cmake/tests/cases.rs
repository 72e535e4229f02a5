//! Runs the table of cases inside the ROCm userland and prints how many were run.

use hotswap_cmake_tests::run::run;
use hotswap_cmake_tests::setup::{Extent, Offer, Unit, deal};
use hotswap_cmake_tests::table::CASES;
use hotswap_tests::{Bench, everything, parallel, say, skip};
use hotswap_userland::SLICE;
use std::collections::BTreeSet;
use std::env;

#[test]
fn every_case_holds() {
    let Some(bench) = Bench::ready("CMake cases") else { return };
    let offer = Offer::of(&bench);
    let filter = env::var("HOTSWAP_TEST_CASES").unwrap_or_default();
    let named =
        |units: Vec<Unit>| units.into_iter().filter(|unit| unit.case.name.contains(&filter)).collect::<Vec<_>>();
    let all = named(deal(CASES, &offer, Extent::EverySetUp));
    let extent = if everything() { Extent::EverySetUp } else { Extent::OneMode };
    let units = named(deal(CASES, &offer, extent));
    say(&format!("CMake: {SLICE}{} of {} cases; `cargo xtask test --everything` runs all", units.len(), all.len()));
    for version in [(3, 28), (3, 31), (4, 0)] {
        if !offer.cmakes.iter().any(|cmake| cmake.version == version) {
            skip("CMake cases", &format!("CMake {}.{} is not in the userland", version.0, version.1));
        }
    }
    if offer.old_cmake.is_none() {
        skip("CMake case old-cmake", "no CMake older than 3.27 is in the userland");
    }
    let results = parallel(&units, |unit| run(&bench, unit));
    let failures: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    let setups: BTreeSet<_> = units.iter().map(|unit| unit.setup.to_string()).collect();
    let names: BTreeSet<_> = units.iter().map(|unit| unit.case.name).collect();
    say(&format!(
        "CMake: {} of {} units hold ({} cases, {} set-ups)",
        units.len() - failures.len(),
        units.len(),
        names.len(),
        setups.len()
    ));
    assert!(!units.is_empty(), "no case has `{filter}` in its name");
    assert!(failures.is_empty(), "{}", failures.join("\n----\n"));
}
