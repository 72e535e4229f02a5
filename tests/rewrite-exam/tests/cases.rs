//! Regressions: each failure of the other rewriters of this chip is a case, named after its row; and every family in
//! every position that is harder than straight-line code.
//!
//! `cases/NAME.expect` is LLVM's listing of the result of `cases/NAME.s`, with the sites of each family, or the
//! refusals. With `HOTSWAP_BLESS=1` the actual output is written there.

use hotswap_rewrite_exam::assembly::{Kernel, assemble};
use hotswap_rewrite_exam::exam::{Tally, object_of, run};
use hotswap_rewrite_exam::variants::variants;
use hotswap_userland::{Workbench, cases_in, golden, say};
use std::fs;
use std::path::{Path, PathBuf};

fn bench(test: &str) -> Option<Workbench> {
    Workbench::with_llvm(24, test)
}

fn cases() -> Vec<PathBuf> {
    cases_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"), "s")
}

/// The result for an object: sites, then code, symbols and relocations as LLVM lists them.
fn outcome(bench: &Workbench, name: &str, bytes: &[u8], problems: &mut Vec<String>) -> String {
    let made = match run(bytes, false) {
        Err(refusals) => return refusals.iter().map(|refusal| format!("{refusal}\n")).collect(),
        Ok(made) => made,
    };
    let mut tally = Tally::default();
    object_of(bench, name, bytes, None, &mut tally);
    problems.append(&mut tally.problems);
    let families: Vec<String> =
        made.record.families.iter().map(|family| format!("{} {}", family.name, family.sites)).collect();
    let text = bench.run(&format!(
        "llvm-objdump-24 -dr --no-show-raw-insn {name}.made | grep -P '^(\\t|[0-9a-f]+ <)' | sed 's,//.*,,'; \
         llvm-readelf-24 -sW {name}.made | grep -E ' (FUNC|NOTYPE|OBJECT) ' | awk '{{print $2, $3, $4, $NF}}'"
    ));
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.fold(format!("{}\n", families.join(", ")), |text, line| text + &line + "\n")
}

#[test]
fn failures_of_other_rewriters_come_out_as_pinned() {
    let Some(bench) = bench("failures of other rewriters") else { return };
    let (mut wrong, mut problems, mut refused) = (Vec::new(), Vec::new(), 0);
    for path in cases() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let kernel = Kernel { name: "k".to_owned(), code: fs::read_to_string(&path).unwrap() };
        let [object, linked] = assemble(&bench, name, &[kernel]);
        let found = outcome(&bench, &object.0, &object.1, &mut problems);
        let second = outcome(&bench, &linked.0, &linked.1, &mut problems);
        refused += usize::from(found.starts_with("error"));
        if found.starts_with("error") != second.starts_with("error") {
            problems.push(format!("{name}: linked with its relocations: {second}"));
        }
        wrong.extend(golden(&path.with_extension("expect"), &found).err());
    }
    say(&format!("failures of other rewriters: {} cases, {refused} of them refused", cases().len()));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_family_in_every_place_is_right() {
    let Some(bench) = bench("families in every place") else { return };
    let mut tally = Tally::default();
    for (name, kernels) in variants() {
        tally.kernels += kernels.len();
        for (name, bytes) in assemble(&bench, name, &kernels) {
            tally.objects += 1;
            object_of(&bench, &name, &bytes, None, &mut tally);
        }
    }
    say(&format!("families in every place: {}", tally.line()));
    assert!(tally.problems.is_empty(), "{}", tally.problems.join("\n"));
    assert!(tally.refused.is_empty(), "{}", tally.refused.join("\n"));
}
