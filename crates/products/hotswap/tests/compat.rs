//! `hotswap compat`: verdicts about pairs, and the page of the documentation.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn compat(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
    command.arg("compat").args(words.split_whitespace());
    command
}

fn json(words: &str) -> Value {
    serde_json::from_slice(&compat(words).output().unwrap().stdout).unwrap()
}

#[test]
fn a_pair_is_explained_in_words() {
    compat("gfx1030 gfx1031").assert().success().stdout(
        contains("gfx1030=>gfx1031: allowed: the same code by another name\n")
            .and(contains("pair: validated since 0.1.0")),
    );
    compat("gfx1153 gfx1150")
        .assert()
        .success()
        .stdout(contains("if the object passes").not().and(contains("passes one check")));
    compat("gfx1102 gfx11-generic").assert().success().stdout(
        contains("allowed if the code object passes 4 checks")
            .and(contains("  exports              Is the code free of exports"))
            .and(contains("gfx1150: point sampling is accelerated"))
            .and(contains("pair: validated")),
    );
    compat("gfx1030 gfx1030").assert().success().stdout(contains("the same processor").and(contains("HSA_").not()));
}

/// Without a target: both directions, and the generic targets. The matrix's own pairs are the expectation.
#[test]
fn all_pairs_of_a_processor_are_listed() {
    compat("--pairs-of gfx1031").assert().success().stdout(
        contains("code for gfx1031 serves:\n  gfx1030 ")
            .and(contains("gfx1031 is served by code for:\n  gfx1010 "))
            .and(contains("gfx1031 runs code as it is for: gfx10-3-generic\n")),
    );
    compat("--pairs-of gfx10-3-generic").assert().stdout(
        contains("code for gfx10-3-generic serves: nothing\n")
            .and(contains("runs as it is on: gfx1030, gfx1031, gfx1032, gfx1033, gfx1034, gfx1035, gfx1036\n")),
    );
    compat("--pairs-of gfx9999").assert().code(11).stderr(contains("HS0202"));
    let matrix = json("--matrix --format json");
    let mut named = 0;
    for processor in ["gfx900", "gfx942", "gfx1030", "gfx1103", "gfx1153", "gfx1250", "gfx11-generic"] {
        let listed = json(&format!("--pairs-of {processor} --format json"));
        for (key, side) in [("serves", "source"), ("served_by", "target")] {
            let expected = matrix["pairs"].as_array().unwrap().iter();
            let expected = expected.filter(|pair| pair[side] == processor && pair["verdict"] != "unsafe");
            let pairs = |pair: &Value| format!("{}=>{}", pair["source"], pair["target"]);
            let expected: BTreeSet<String> = expected.map(pairs).collect();
            let found: BTreeSet<String> = listed[key].as_array().unwrap().iter().map(pairs).collect();
            assert_eq!(found, expected, "{processor} {key}");
            named += found.len();
        }
    }
    assert!(named > 40, "{named}");
}

/// The variable shows the GPU by another name: right where no code needs a check.
#[test]
fn the_variable_is_judged() {
    compat("gfx1030 gfx1031").assert().stdout(contains("HSA_OVERRIDE_GFX_VERSION=10.3.0: safe on gfx1031"));
    compat("gfx90c gfx900").assert().stdout(contains("HSA_OVERRIDE_GFX_VERSION=9.0.12: safe on gfx900"));
    compat("gfx1100 gfx1103 --allow-experimental").assert().stdout(
        contains("HSA_OVERRIDE_GFX_VERSION=11.0.0: not safe on gfx1103: code must pass checks (")
            .and(contains("vgpr-fit")),
    );
    compat("gfx1030 gfx1031").assert().stdout(contains("hotswap serve gfx1031 --from gfx1030: the same"));
    compat("gfx1100 gfx1103").assert().stdout(contains("hotswap serve gfx1103 --from gfx1100: runs the checks"));
    compat("gfx1030 gfx1100").assert().stdout(contains("hotswap serve").not());
    compat("gfx1030 gfx10-3-generic").assert().stdout(contains("HSA_OVERRIDE").not());
    assert_eq!(json("gfx1030 gfx1031 --format json")["override"]["safe"], true);
    assert_eq!(json("gfx1030 gfx1100 --format json")["override"]["safe"], false);
}

/// A script must not take a no for a yes, and a pair that is not validated is a no unless it is allowed.
#[test]
fn the_exit_code_is_the_answer() {
    compat("gfx904 gfx900")
        .assert()
        .code(11)
        .stdout(contains("possible if the code object passes one check").and(contains("v_fma_mix_f32")))
        .stderr(contains("[HS0203]").and(contains("experimental")).and(contains("--allow-experimental")));
    compat("gfx904 gfx900 --allow-experimental").assert().success().stdout(contains("allowed if"));
    compat("gfx1030 gfx1010 --allow-experimental")
        .assert()
        .code(11)
        .stdout(contains("unsafe").and(contains("no check settles it")))
        .stderr(contains("scratch encodings"));
    compat("gfx1030 gfx1100").assert().code(11).stderr(contains("encode instructions differently"));
    compat("gfx1030 gfx9999").assert().code(11).stderr(contains("[HS0202]"));
    compat("gfx1030").assert().code(2);
    compat("gfx1030 gfx1031 --matrix").assert().code(2);
    compat("gfx1030 gfx1031 --format markdown").assert().code(2);
}

#[test]
fn programs_read_the_same() {
    let value = json("gfx900 gfx906 --format json");
    assert_eq!((&value["allowed"], &value["verdict"]), (&false.into(), &"conditional".into()));
    assert_eq!(value["checks"][2]["name"], "d16-loads");
    assert_eq!(value["pair"]["status"], "experimental");
    let owners: Vec<&str> =
        value["differences"].as_array().unwrap().iter().map(|row| row["owner"].as_str().unwrap()).collect();
    assert_eq!(owners, ["gfx900", "gfx906"]);
    let refused = json("gfx1030 gfx1100 --format json");
    assert_eq!((&refused["allowed"], &refused["pair"]), (&false.into(), &Value::Null));
    assert!(refused["why"].as_str().unwrap().contains("encode"));
    let matrix = json("--matrix --format json");
    let pairs = matrix["pairs"].as_array().unwrap();
    let count = |verdict: &str| pairs.iter().filter(|pair| pair["verdict"] == verdict).count();
    assert_eq!((count("identical"), count("conditional"), count("rewrite"), count("unsafe")), (66, 180, 1, 59));
    assert!(pairs.iter().all(|pair| (pair["verdict"] == "unsafe") == pair["pair"].is_null()));
}

#[test]
fn code_that_changes_is_told_as_such() {
    compat("gfx1250 gfx1250-strict").assert().success().stdout(
        contains("its code is changed").and(contains("rewrite; code oracle")).and(contains("difference").not()),
    );
    let value = json("gfx1250 gfx1250-strict --format json");
    assert_eq!((&value["allowed"], &value["verdict"]), (&true.into(), &"rewrite".into()));
    assert_eq!(value["pair"]["strategy"], "rewrite");
    compat("gfx1250-strict gfx1250").assert().code(11).stderr(contains("have not been compared"));
}

#[test]
fn the_matrix_is_a_table() {
    compat("--matrix").assert().success().stdout(
        predicates::str::starts_with("FROM ")
            .and(contains("gfx1102"))
            .and(contains("validated"))
            .and(contains("unsafe")),
    );
}

#[test]
fn a_plan_says_what_it_allows() {
    let directory = tempfile::tempdir().unwrap();
    let plan = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        command.current_dir(directory.path()).args(["plan", "gfx1102=>gfx1150"]).args(words.split_whitespace());
        command
    };
    plan("").assert().code(11).stderr(contains("[HS0203]").and(contains("--allow-experimental")));
    let output = plan("--allow-experimental --format json").output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&value["experimental"], &value["targets"][0]), (&true.into(), &"gfx1150".into()));
    let text = std::fs::read_to_string(directory.path().join(value["file"].as_str().unwrap())).unwrap();
    assert!(text.contains("\nallow experimental\n"), "{text}");
}

/// The page is generated: `hotswap compat --matrix --format markdown > docs/reference/compatibility.md`.
#[test]
fn the_page_of_the_documentation_is_what_the_command_prints() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/compatibility.md");
    let printed = String::from_utf8(compat("--matrix --format markdown").output().unwrap().stdout).unwrap();
    assert_eq!(
        std::fs::read_to_string(page).unwrap_or_default(),
        printed,
        "docs/reference/compatibility.md is out of date"
    );
}
