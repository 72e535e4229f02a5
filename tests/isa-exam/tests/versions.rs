//! The rows of forms that LLVM 23 reads and LLVM 24 rejects, judged by both.

use hotswap_isa::versions::VERSION_JUDGMENTS;
use hotswap_isa_exam::oracle::{Oracle, Word};
use hotswap_isa_exam::ours::Ours;
use hotswap_isa_exam::setting::Setting;
use hotswap_isa_exam::sweep::{FAMILIES, Sweep};
use hotswap_isa_exam::tools::Tools;
use hotswap_isa_exam::vectors;
use hotswap_isa_exam::verdict::Subject;
use hotswap_isa_exam::versions::{OurJudgment, SettingWords, VERSIONS, compare_versions, judge_word};
use hotswap_userland::{SLICE, everything, say, skip};
use std::path::PathBuf;

/// Words of each family: by default, and with `--everything`.
const SHORT: [usize; 2] = [6_000, 60_000];

/// The userland and both judges, or `None` after printing what is not tested.
fn judges(test: &str) -> Option<(Tools, [String; 2])> {
    let Some(tools) = Tools::from_env().expect("the userland's /tmp is writable") else {
        skip(test, "no ROCm userland, HOTSWAP_TEST_ROOT is not set (`cargo xtask test` sets it)");
        return None;
    };
    let programs = VERSIONS.map(|version| {
        let built = Oracle::build(&tools, version).expect("the judge compiles");
        built.unwrap_or_else(|| panic!("the userland has no LLVM {version}"))
    });
    Some((tools, programs))
}

fn is_known(setting: &Setting) -> bool {
    Ours.knows(setting)
}

/// The words of the rows' examples.
fn examples() -> SettingWords {
    let mut words = SettingWords::default();
    for row in VERSION_JUDGMENTS {
        let (target, example) = row.example;
        let bytes: Vec<u8> = example.iter().flat_map(|word| word.to_le_bytes()).collect();
        words.add_word(Setting::new(target), Word::new(&bytes));
    }
    words
}

#[test]
fn both_versions_say_of_every_row_what_it_says() {
    let Some((tools, programs)) = judges("the rows of versions") else { return };
    let report = compare_versions(&tools, &programs, &examples(), judge_word).expect("the judges answer");
    assert!(report.problems.is_empty(), "{:#?}", report.problems);
    for row in VERSION_JUDGMENTS {
        assert_eq!(report.rejected.get(row.form), Some(&1), "{}: {:?}", row.form, row.example);
    }
    say(&format!("versions: {} rows, each true for LLVM 23 and 24", VERSION_JUDGMENTS.len()));
}

#[test]
fn words_that_only_llvm_23_reads_have_a_row() {
    let Some((tools, programs)) = judges("the versions' words") else { return };
    let rows: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../crates/amdgpu/isa-tables", "rows"].iter().collect();
    let model = hotswap_isa_meta::rows::read(&rows).expect("the rows are read");
    let count = SHORT[usize::from(everything())];
    let [part, all] = [count, SHORT[1]].map(|count| count * FAMILIES.len());
    say(&format!("versions: {SLICE}{part} of {all} cases; `cargo xtask test --everything` runs all"));
    let mut words = SettingWords::default();
    for family in FAMILIES.iter().filter(|family| family.version == VERSIONS[0]) {
        words.add_sweep(&Sweep::new(&model, *family, is_known), count, 3);
    }
    match (vectors::tests_of_env(), vectors::cache_of_env()) {
        (Some(tests), Some(cache)) => {
            words.add_vectors(&vectors::collect(&tools, &tests, &cache, &is_known).expect("LLVM's tests are read"));
        }
        _ => skip("LLVM's vectors for versions", "HOTSWAP_TEST_LLVM or HOTSWAP_TEST_CACHE is not set"),
    }
    let report = compare_versions(&tools, &programs, &words, judge_word).expect("the judges answer");
    let rejected: usize = report.rejected.values().sum();
    say(&format!("versions: {} words that LLVM 23 reads, {rejected} with a row are rejected by LLVM 24", report.read));
    assert!(
        report.problems.is_empty(),
        "{} problems: {:#?}",
        report.problems.len(),
        report.problems.iter().take(40).collect::<Vec<_>>()
    );
    assert!(rejected > 100, "{:?}", report.rejected);
}

/// An answer without rows.
fn judge_without_rows(_: &Setting, _: &Word) -> OurJudgment {
    OurJudgment::ReadByBoth
}

/// An answer with one row for all words.
fn judge_all_rejected(_: &Setting, _: &Word) -> OurJudgment {
    OurJudgment::Row(&VERSION_JUDGMENTS[0])
}

#[test]
fn a_missing_row_and_an_untrue_one_are_found() {
    let Some((tools, programs)) = judges("planted rows of versions") else { return };
    let report = compare_versions(&tools, &programs, &examples(), judge_without_rows).expect("the judges answer");
    assert_eq!(report.problems.len(), VERSION_JUDGMENTS.len(), "{:#?}", report.problems);
    let mut words = SettingWords::default();
    words.add_word(Setting::new("gfx1250"), Word::new(&[0, 0, 0x80, 0xbf]));
    let report = compare_versions(&tools, &programs, &words, judge_all_rejected).expect("the judges answer");
    assert!(report.problems[0].contains("s_nop 0: LLVM 24 reads it"), "{:?}", report.problems);
}
