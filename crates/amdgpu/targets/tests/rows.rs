//! Compares the processor table with the targets of the instruction set's rows: the same names, and the same answer to
//! every query that both support.

use hotswap_isa_meta::model::TargetRow;
use hotswap_targets::{Capability, IsaFamily, PROCESSORS, Processor, Support, WaveSizes, find_processor};
use std::collections::BTreeSet;
use std::path::Path;

fn targets() -> Vec<TargetRow> {
    let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("../isa-tables/rows");
    hotswap_isa_meta::rows::read(&rows).unwrap_or_else(|error| panic!("{error}")).targets
}

/// GFX9 to GFX12.5; older and newer ones have no rows.
fn has_rows(processor: &Processor) -> bool {
    !processor.withdrawn && (IsaFamily::Vega..=IsaFamily::Gfx125).contains(&processor.family)
}

#[test]
fn the_rows_and_the_table_list_the_same_processors() {
    let rows: BTreeSet<String> = targets().into_iter().map(|target| target.name).collect();
    let table: BTreeSet<String> = PROCESSORS.iter().filter(|p| has_rows(p)).map(|p| p.name.to_owned()).collect();
    let differing: Vec<&String> = rows.symmetric_difference(&table).collect();
    assert!(differing.is_empty(), "only the table of processors, or only the rows of instructions, has {differing:?}");
}

fn check_waves(target: &TargetRow, processor: &Processor) {
    let has = |feature: &str| target.features.iter().any(|name| name == feature);
    // The assembler's default; no feature gives the mode of a processor that has both sizes.
    let lanes = if has("wavefrontsize32") { 32 } else { 64 };
    assert!(has("wavefrontsize32") != has("wavefrontsize64"), "{}", target.name);
    assert!(processor.waves.contains(lanes), "{processor}");
    assert_eq!(processor.waves == WaveSizes::Only64, !has("gfx10-insts"), "{processor}");
}

#[test]
fn the_rows_and_the_table_agree_on_shared_features() {
    let targets = targets();
    let asked: BTreeSet<&str> = targets.iter().flat_map(|target| &target.features).map(String::as_str).collect();
    let shared: Vec<(Capability, &str)> = Capability::ALL
        .iter()
        .filter_map(|capability| Some((*capability, capability.llvm().filter(|name| asked.contains(name))?)))
        .collect();
    assert!(shared.len() >= 5, "too little is shared: {shared:?}");
    for target in &targets {
        let processor = find_processor(&target.name).unwrap();
        let has = |feature: &str| target.features.iter().any(|name| name == feature);
        for (capability, feature) in &shared {
            assert_eq!(processor.has(*capability), has(feature), "{processor} {capability} {feature}");
        }
        for (support, feature) in [(processor.xnack, "xnack-support"), (processor.sramecc, "sramecc-support")] {
            if asked.contains(feature) && support != Support::Unsettled {
                assert_eq!(support == Support::Yes, has(feature), "{processor} {feature}");
            }
        }
        check_waves(target, processor);
    }
    println!("{} targets, {} capabilities compared with the rows' features", targets.len(), shared.len());
}
