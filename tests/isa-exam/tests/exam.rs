//! The exams at a size for every day: all of LLVM's vectors, a short sweep, the kernels; and tests that they can fail.

use hotswap_isa_exam::code::{self, Bytes};
use hotswap_isa_exam::exam::Exam;
use hotswap_isa_exam::left_out::{self, Entry};
use hotswap_isa_exam::oracle::{Answer, Oracle, Word};
use hotswap_isa_exam::ours::Ours;
use hotswap_isa_exam::report::Report;
use hotswap_isa_exam::setting::Setting;
use hotswap_isa_exam::sweep::{FAMILIES, Sweep};
use hotswap_isa_exam::tools::Tools;
use hotswap_isa_exam::vectors;
use hotswap_isa_exam::verdict::{Decoded, Subject};
use hotswap_userland::{SLICE, everything, say, skip};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Words of each family: by default, and with `--everything`.
const SHORT: [usize; 2] = [6_000, 20_000];

/// The userland, or `None` after printing what is not tested.
fn tools(test: &str) -> Option<Tools> {
    let tools = Tools::from_env().expect("the userland's /tmp is writable");
    if tools.is_none() {
        skip(test, "no ROCm userland, HOTSWAP_TEST_ROOT is not set (`cargo xtask test` sets it)");
    }
    tools
}

fn judge(tools: &Tools, version: u32) -> String {
    let built = Oracle::build(tools, version).expect("the judge compiles");
    built.unwrap_or_else(|| panic!("the userland has no LLVM {version}"))
}

fn list() -> Vec<Entry> {
    left_out::read(left_out::LIST).expect("left-out.txt has four parts a line")
}

fn directory(parts: &[&str]) -> PathBuf {
    [&[env!("CARGO_MANIFEST_DIR")], parts].concat().iter().collect()
}

/// No differences, no empty count, and not too many exceptions.
fn assert_good(name: &str, report: &Report) {
    report.lines().iter().for_each(|line| say(&format!("{name}: {line}")));
    assert!(report.sum().total > 0, "{name}: no words");
    assert_eq!(report.sum().different, 0, "{name}\n{}", report.differences());
    assert!(report.over_limit().is_empty(), "{name}: more than 0.1 % left out on {:?}", report.over_limit());
}

#[test]
fn llvms_vectors_of_every_target_agree() {
    let Some(tools) = tools("LLVM's vectors") else { return };
    let (Some(tests), Some(cache)) = (vectors::tests_of_env(), vectors::cache_of_env()) else {
        skip("LLVM's vectors", "HOTSWAP_TEST_LLVM or HOTSWAP_TEST_CACHE is not set (`cargo xtask test` sets them)");
        return;
    };
    let list = list();
    let exam = Exam { tools: &tools, subject: &Ours, list: &list, threads: 2 };
    let vectors =
        vectors::collect(&tools, &tests, &cache, &|setting| Ours.knows(setting)).expect("LLVM's tests are read");
    let (report, checks) = exam.vectors(&judge(&tools, 23), &vectors).expect("the judge answers");
    assert_good("vectors", &report);
    assert!(
        checks.contradicted.is_empty(),
        "the judge is not the LLVM of the tests: {:?}",
        checks.contradicted.first()
    );
    say(&format!("vectors: {} checks of LLVM's files are what the judge says", checks.confirmed));
    for target in
        ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1030", "gfx1100", "gfx1150"]
    {
        assert!(report.count(target).total > 0, "no vectors of {target}");
    }
    for target in ["gfx1170", "gfx1200", "gfx1250", "gfx1251"] {
        assert!(report.count(target).total > 0, "no vectors of {target}");
    }
    assert!(report.sum().rejected > 1000, "invalid words are words too");
}

#[test]
fn a_short_sweep_of_every_family_agrees() {
    let Some(tools) = tools("the sweep") else { return };
    let model = hotswap_isa_meta::rows::read(&directory(&["../../crates/amdgpu/isa-tables", "rows"]))
        .expect("the rows are read");
    let list = list();
    let exam = Exam { tools: &tools, subject: &Ours, list: &list, threads: 2 };
    let words = SHORT[usize::from(everything())];
    let [part, all] = [words, SHORT[1]].map(|words| words * FAMILIES.len());
    say(&format!("sweep: {SLICE}{part} of {all} cases; `cargo xtask test --everything` runs all"));
    let judges: BTreeMap<u32, String> = FAMILIES
        .iter()
        .map(|family| family.version)
        .collect::<BTreeSet<u32>>()
        .into_iter()
        .map(|version| (version, judge(&tools, version)))
        .collect();
    for family in FAMILIES {
        let sweep = Sweep::new(&model, *family, |setting| Ours.knows(setting));
        assert_eq!(sweep.settings.len(), family.settings.len(), "{}: a target is not known", family.name);
        let (report, _) = sweep.run(&exam, &judges[&family.version], words, 7).expect("the judge answers");
        assert_good(family.name, &report);
    }
}

#[test]
fn kernels_are_decoded_to_the_last_byte() {
    let Some(tools) = tools("kernels") else { return };
    let list = list();
    let exam = Exam { tools: &tools, subject: &Ours, list: &list, threads: 1 };
    let mut oracle = Oracle::start(&tools, &judge(&tools, code::VERSION)).expect("the judge starts");
    let (mut report, mut sum) = (Report::default(), Bytes::default());
    for setting in code::TARGETS.iter().filter_map(|text| Setting::parse(text)) {
        for level in code::LEVELS {
            let object = code::compile(&tools, &directory(&["kernels"]), &setting, level).expect("the kernels compile");
            let name = format!("kernels {setting} {level}");
            let compared = code::compare(&exam, &mut oracle, &setting, &object, &name, &mut report);
            let (bytes, problems) = compared.expect("llvm-objdump reads it");
            assert!(problems.is_empty(), "{name}: {problems:?}");
            assert_eq!(bytes.opaque, 0, "{name}");
            assert_eq!(bytes.decoded + bytes.padding, bytes.total, "{name}");
            sum.add(&bytes);
        }
    }
    say(&sum.line("kernels"));
    assert_good("kernels", &report);
}

/// The decoder with a defect in one mnemonic.
struct Planted;

impl Subject for Planted {
    fn knows(&self, setting: &Setting) -> bool {
        Ours.knows(setting)
    }

    fn decode(&self, setting: &Setting, word: &Word) -> Option<Decoded> {
        let decoded = Ours.decode(setting, word)?;
        let text = decoded.text.replace("s_nop 1", "s_nop 2");
        (!text.starts_with("s_sleep")).then_some(Decoded { text, ..decoded })
    }
}

#[test]
fn a_planted_defect_fails_the_exam_and_a_crash_of_llvm_does_not_end_it() {
    let Some(tools) = tools("planted defects") else { return };
    let exam = Exam { tools: &tools, subject: &Planted, list: &[], threads: 1 };
    let mut oracle = Oracle::start(&tools, &judge(&tools, 23)).expect("the judge starts");
    let setting = Setting::new("gfx1250");
    // The third word crashes LLVM 22 and 23 (a wrong SOP1 opcode with a literal).
    let words: [&[u8]; 5] = [
        &[0, 0, 0x80, 0xbf],
        &[1, 0, 0x80, 0xbf],
        &[0xff, 0x50, 0xe3, 0xbe, 0x1c, 0xd0, 0xcf, 0xb3],
        &[1, 0, 0x83, 0xbf],
        &[0xff, 0xff, 0xff, 0xff],
    ];
    let items = words.iter().map(|bytes| (Word::new(bytes), "planted")).collect();
    let mut report = Report::default();
    let answers = exam.judge(&mut oracle, &setting, items, &mut report).expect("the judge answers");
    assert_eq!(answers[2], Answer::Crashed);
    assert!(matches!(&answers[3], Answer::Valid { length: 4, text, .. } if text.contains("s_sleep 1")), "{answers:?}");
    let count = report.count("gfx1250");
    assert_eq!((count.total, count.same, count.crashed, count.rejected, count.different), (5, 1, 1, 1, 2));
    assert!(report.differences().contains("s_nop 2") && report.differences().contains("missing: s_sleep"));
}
