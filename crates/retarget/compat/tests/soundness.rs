//! The matrix against independent sources: the instruction tables of `hotswap-isa`, the processors' resources in
//! `hotswap-targets`, and LLVM's features.

use hotswap_compat::{
    Check, Consequence, FEATURES, MATRIX, MatrixRow, MatrixVerdict, Strategy, Verdict, all_pairs, by_limits,
    feature_differences, find_pair, pair_verdict,
};
use hotswap_isa::{Feature, Isa, TableEntry, Target, Wave};
use hotswap_targets::{Capability, PROCESSORS, Processor, Support, find_processor};
use std::collections::{BTreeMap, BTreeSet};

fn ordered_pairs() -> impl Iterator<Item = (&'static Processor, &'static Processor)> {
    let with = |source: &'static Processor| PROCESSORS.iter().map(move |target| (source, target));
    PROCESSORS.iter().flat_map(with).filter(|(source, target)| source.name != target.name)
}

fn rows(source: &Processor, target: &Processor) -> Vec<&'static MatrixRow> {
    MATRIX.iter().filter(|row| row.speaks_for(source, target)).collect()
}

/// Pairs whose unchanged code may get another label, with their checks.
fn allowed() -> impl Iterator<Item = (&'static Processor, &'static Processor, &'static [Check])> {
    let relabelled = ordered_pairs().filter(|(source, target)| pair_verdict(source, target) != Verdict::Rewrite);
    relabelled.filter_map(|(source, target)| Some((source, target, pair_verdict(source, target).checks()?)))
}

#[test]
fn no_pair_has_two_rows_and_no_row_is_without_a_pair() {
    for (source, target) in ordered_pairs() {
        let found = rows(source, target);
        assert!(found.len() <= 1, "{source}=>{target}: {found:?}");
        assert!(
            found.is_empty() || !(source.withdrawn || target.withdrawn || source.is_generic()),
            "{source}=>{target}"
        );
    }
    for row in MATRIX {
        for name in row.sources.iter().chain(row.targets) {
            assert!(find_processor(name).is_some(), "{name}");
        }
        // Every source and every target of it, so that a list is not longer than the row's coverage.
        let speaks = |source: &&str, target: &&str| {
            row.speaks_for(find_processor(source).unwrap(), find_processor(target).unwrap())
        };
        assert!(row.sources.iter().all(|source| row.targets.iter().any(|target| speaks(source, target))), "{row:?}");
        assert!(row.targets.iter().all(|target| row.sources.iter().any(|source| speaks(source, target))), "{row:?}");
        assert!(!row.evidence.is_empty());
    }
}

/// Within a family, and to its generic targets, no pair is left to the catch-all reasons.
#[test]
fn every_pair_of_a_family_has_a_row() {
    let families = |one: &Processor, other: &Processor| one.family == other.family;
    let covered = |source: &Processor, target: &Processor| {
        target.covers.iter().any(|name| find_processor(name).is_some_and(|covered| families(source, covered)))
    };
    let judged = |source: &Processor| !source.is_generic() && !source.withdrawn && Target::find(source.name).is_some();
    let mut count = 0;
    for (source, target) in ordered_pairs().filter(|(source, target)| judged(source) && !target.withdrawn) {
        if families(source, target) || covered(source, target) {
            assert_eq!(rows(source, target).len(), 1, "{source}=>{target}");
            count += 1;
        }
    }
    assert!(count >= 166, "only {count} pairs are of one family");
}

/// A row's checks are those that follow from LLVM's features and the resources: one too few would be unsafe, one too
/// many refuses code for no reason. `SameInstructions` runs for every pair for which the compiler's objects are not
/// equal.
#[test]
fn the_checks_of_a_row_are_those_that_the_differences_need() {
    for (source, target, checks) in allowed() {
        let mut needed = by_limits(source, target);
        for difference in feature_differences(source, target) {
            let Some(check) = difference.check else {
                panic!("{source}=>{target}: {} of {} has no check", difference.feature.names[0], difference.owner)
            };
            needed.insert(check);
        }
        if matches!(pair_verdict(source, target), Verdict::Conditional { .. }) {
            needed.insert(Check::SameInstructions);
        }
        assert_eq!(checks.to_vec(), needed.into_iter().collect::<Vec<_>>(), "{source}=>{target}");
    }
}

/// Unsafe pairs have a difference that no check settles, or so many that few objects could pass.
#[test]
fn unsafe_rows_have_a_difference() {
    let mut by_choice = BTreeSet::new();
    for (source, target) in ordered_pairs() {
        for row in rows(source, target).into_iter().filter(|row| matches!(row.answer, MatrixVerdict::Unsafe(_))) {
            if feature_differences(source, target).iter().all(|difference| difference.check.is_some()) {
                by_choice.extend(row.sources);
            }
        }
    }
    // The strict stepping is not in LLVM 23.
    assert_eq!(by_choice, BTreeSet::from(["gfx1250-strict", "gfx1251"]));
}

fn isas(name: &str) -> Vec<Isa> {
    let isa = Isa::new(Target::find(name).unwrap_or_else(|| panic!("{name} has no instructions")));
    let processor = find_processor(name).unwrap();
    let waves = [(32, Wave::W32), (64, Wave::W64)].into_iter().filter(|(lanes, _)| processor.waves.contains(*lanes));
    waves.map(|(_, wave)| isa.with_wave(wave)).collect()
}

/// Encodings by their fixed bits: the possible meanings of a word.
type Meanings = BTreeMap<(u128, u128), BTreeSet<u16>>;

fn meanings(isa: Isa) -> Meanings {
    let mut meanings = Meanings::new();
    for entry in TableEntry::all_entries().filter(|entry| entry.available(isa)) {
        meanings.entry(entry.fixed()).or_default().insert(entry.row());
    }
    meanings
}

/// Where instructions are not compared, the target must have each encoding of the source with the same meaning. Then a
/// word decodes on the target as on the source, unless an encoding that only the target has is tried before it: that
/// one has at least as many fixed bits, so its pattern would have to overlap with one of the source's.
#[test]
fn pairs_whose_instructions_are_not_compared_have_the_same_encodings() {
    let mut count = 0;
    for (source, target, _) in allowed().filter(|(.., checks)| !checks.contains(&Check::SameInstructions)) {
        for (one, other) in isas(source.name).into_iter().zip(isas(target.name)) {
            assert_eq!(one.wave(), other.wave());
            let (ours, theirs) = (meanings(one), meanings(other));
            for (bits, rows) in &ours {
                assert_eq!(theirs.get(bits), Some(rows), "{source}=>{target}: {bits:x?}");
            }
            for bits in theirs.keys().filter(|bits| !ours.contains_key(bits)) {
                let overlaps = |ours: &&(u128, u128)| (ours.0 ^ bits.0) & ours.1 & bits.1 == 0;
                let met = ours.keys().find(overlaps);
                assert!(met.is_none(), "{source}=>{target}: {bits:x?} and {met:x?}");
            }
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}

/// Where the matrix requires only a check of the instructions for a pair of a family, the source has encodings that the
/// target lacks or decodes differently. The counter-example is among them: code for gfx904 decodes for gfx900 without a
/// single unknown word.
#[test]
fn a_word_can_decode_on_both_and_mean_different_things() {
    let (one, other) = (meanings(isas("gfx904")[0]), meanings(isas("gfx900")[0]));
    let unknown: Vec<_> = one.keys().filter(|bits| !other.contains_key(bits)).collect();
    assert_eq!(unknown, [] as [&(u128, u128); 0]);
    let name = |row: u16| TableEntry::all_entries().find(|entry| entry.row() == row).unwrap().mnemonic();
    let differ = one.iter().filter(|(bits, rows)| other[bits] != **rows);
    let names: BTreeSet<&str> = differ.flat_map(|(_, rows)| rows.iter().map(|row| name(*row))).collect();
    assert_eq!(names, BTreeSet::from(["v_fma_mix_f32", "v_fma_mixhi_f16", "v_fma_mixlo_f16"]));
}

/// Features that the decoder has, too, must have the same owners in both tables.
#[test]
fn features_about_instructions_are_those_of_the_decoder() {
    let mut members: BTreeSet<&str> =
        MATRIX.iter().flat_map(|row| row.sources.iter().chain(row.targets)).copied().collect();
    members.remove("gfx1250-strict"); // not in LLVM 23
    let names: BTreeSet<&str> = FEATURES.iter().flat_map(|feature| feature.names).copied().collect();
    let mut compared = 0;
    for name in names {
        let Some(feature) = Feature::ALL.iter().find(|feature| feature.as_str() == name) else { continue };
        let listed: Vec<&str> =
            FEATURES.iter().filter(|row| row.names.contains(&name)).flat_map(|row| row.processors).copied().collect();
        for processor in &members {
            // A feature of one family may be common to all members of another, where no row needs it.
            let family =
                |other: &&str| find_processor(other).unwrap().family == find_processor(processor).unwrap().family;
            let here = listed.iter().any(family);
            let Some(target) = Target::find(processor).filter(|_| here) else { continue };
            assert_eq!(Isa::new(target).has(*feature), listed.contains(processor), "{name} of {processor}");
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared}");
}

/// Features that are in the table of processors, too, must have the same owners there.
#[test]
fn features_about_kernels_are_those_of_the_processors() {
    let mut compared = 0;
    for feature in FEATURES {
        let families: Vec<_> = feature.processors.iter().map(|name| find_processor(name).unwrap().family).collect();
        for name in feature.names {
            let capability = Capability::ALL.iter().find(|capability| capability.llvm() == Some(*name));
            if capability.is_none() && *name != "sramecc-support" {
                continue;
            }
            for processor in PROCESSORS.iter().filter(|processor| families.contains(&processor.family)) {
                let has = capability.map_or(processor.sramecc != Support::No, |capability| processor.has(*capability));
                // The strict stepping is not in LLVM 23.
                if processor.name != "gfx1250-strict" {
                    assert_eq!(has, feature.processors.contains(&processor.name), "{name} of {processor}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 20, "{compared}");
}

/// The initial state and the settings of kernels are equal in every allowed pair, or a check covers the difference.
#[test]
fn capabilities_of_allowed_pairs_are_equal_or_checked() {
    for (source, target, checks) in allowed() {
        for capability in Capability::ALL {
            if source.has(*capability) == target.has(*capability) {
                continue;
            }
            let settled = match capability {
                // No code without MFMA names an accumulation register.
                Capability::AccumulationRegisters => {
                    target.has(*capability) || checks.contains(&Check::SameInstructions)
                }
                Capability::UserSgprInit16Bug => source.has(*capability) || checks.contains(&Check::UserSgprs16),
                Capability::SetregClobbersBanks => source.has(*capability),
                _ => false,
            };
            assert!(settled, "{source}=>{target}: {capability}");
        }
        let settings = [(source.xnack, target.xnack), (source.sramecc, target.sramecc)];
        let lost = settings.iter().any(|(one, other)| (*one == Support::No) != (*other == Support::No));
        assert_eq!(lost, checks.contains(&Check::Features), "{source}=>{target}");
    }
}

#[test]
fn every_feature_matters_to_some_pair() {
    for feature in FEATURES {
        let used = ordered_pairs().any(|(source, target)| {
            feature_differences(source, target).iter().any(|difference| difference.feature == feature)
        });
        assert!(used, "{feature:?}");
        assert!(feature.processors.iter().all(|name| find_processor(name).is_some()), "{feature:?}");
        let known = |name: &&str| FEATURES.iter().any(|other| other.names.contains(name));
        assert!(feature.within.iter().all(known), "{feature:?}");
        assert!(feature.consequence != Consequence::Setup || feature.within.is_none());
    }
}

#[test]
fn the_product_has_every_pair_that_the_matrix_allows_once() {
    let mut known = BTreeSet::new();
    for row in all_pairs() {
        assert!(known.insert((row.source, row.target)), "{row:?} stands twice");
        let (source, target) = (find_processor(row.source).unwrap(), find_processor(row.target).unwrap());
        assert!(pair_verdict(source, target).checks().is_some(), "{row:?} is not allowed by the matrix");
        assert_eq!(find_pair(source, target), Some(row));
    }
    for (source, target, _) in allowed() {
        assert!(known.contains(&(source.name, target.name)), "{source}=>{target} is not in the product's table");
    }
}

/// A pair whose code must change and that is only relabelled would be wrong code; the families read the pair's strategy.
#[test]
fn the_strategy_of_each_pair_is_the_verdict_of_the_matrix() {
    let mut rewritten = 0;
    for row in all_pairs() {
        let (source, target) = (find_processor(row.source).unwrap(), find_processor(row.target).unwrap());
        let must_rewrite = pair_verdict(source, target) == Verdict::Rewrite;
        assert_eq!(row.strategy == Strategy::Rewrite, must_rewrite, "{source}=>{target}");
        rewritten += usize::from(must_rewrite);
    }
    let expected = ordered_pairs().filter(|(source, target)| pair_verdict(source, target) == Verdict::Rewrite).count();
    assert_eq!(rewritten, expected);
}
