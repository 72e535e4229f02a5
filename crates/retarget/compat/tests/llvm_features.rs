//! The table of features against LLVM's own: tablegen reads the definitions of features and processors again.
//!
//! Needs LLVM's sources and `llvm-tblgen` of the same version (`cargo xtask test` provides both). Only the part of
//! `AMDGPU.td` before the instructions is read, which takes a second where all of it takes two minutes.

use hotswap_compat::FEATURES;
use hotswap_targets::{PROCESSORS, find_processor};
use hotswap_userland::{ENV_LLVM, Workbench, say};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const AMDGPU: &str = "llvm/lib/Target/AMDGPU";

/// Beginnings of the names of the processors between which code is relabelled.
const FAMILIES: &[&[&str]] = &[
    &["gfx90", "gfx9-generic"],
    &["gfx94", "gfx95", "gfx9-4-generic"],
    &["gfx10"],
    &["gfx110", "gfx115", "gfx11-generic"],
    &["gfx117", "gfx11-7-generic"],
    &["gfx120", "gfx12-generic"],
    &["gfx125", "gfx12-5-generic"],
];

/// Features that not all members of a family have, and the reasons why the table has no row for them.
#[rustfmt::skip]
const LEFT_OUT: &[(&str, &str)] = &[
    ("requires-cov6", "the code object version of generic targets: Check::CodeObjectVersion asks"),
    ("1536-physical-vgprs", "a resource: Check::VgprFit asks"),
    ("addressablelocalmemorysize65536 addressablelocalmemorysize163840", "a resource: Check::Lds asks"),
    ("xnack-support xnack-on-off-modes", "Check::Features asks"),
    ("full-rate-64-ops half-rate-64-ops", "rates, by which the compiler chooses"),
    ("use-add-pc64-inst", "the compiler's choice of a way to jump"),
    ("vop3px2-increments-va-vdst-twice", "both native members have it"),
    ("get-wave-id-inst", "instructions of RDNA 1, which a row about scalar stores and atomics names already"),
    ("atomic-buffer-global-pk-add-f16-insts atomic-fadd-rtn-insts atomic-fmin-fmax-flat-f64 atomic-fmin-fmax-global-f64 \
      back-off-barrier dpp-64bit flat-buffer-global-fadd-f64-inst fmacf64-inst packed-fp32-ops tgsplit-support",
     "gfx90a has no pair with the others: its row about the setup of kernels forbids all"),
    ("ds-src2-insts extended-image-insts gds", "gfx9 without gfx90a, which has no pair with the others"),
];

/// Features of every processor, with the implied ones.
fn features(bench: &Workbench, llvm: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let target = llvm.join(AMDGPU);
    let all = fs::read_to_string(target.join("AMDGPU.td")).unwrap();
    let (head, _) = all.split_once("include \"AMDGPUInstrInfo.td\"").expect("processors come before instructions");
    bench.write("head.td", head.as_bytes());
    for file in ["AMDGPUFeatures.td", "AMDGPUPredicateControl.td", "SISchedule.td", "GCNProcessors.td"] {
        bench.write(file, &fs::read(target.join(file)).unwrap());
    }
    copy_definitions(&llvm.join("llvm/include/llvm"), &bench.path("llvm"));
    bench.run("llvm-tblgen-23 -I . --dump-json head.td -o features.json");
    let records: Value = serde_json::from_slice(&bench.read("features.json")).unwrap();
    let names =
        |of: &Value| of.as_array().unwrap().iter().map(|item| item["def"].as_str().unwrap().to_owned()).collect();
    let instances = |class: &str| -> Vec<String> {
        let list = records["!instanceof"][class].as_array().unwrap();
        list.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let closure = |mut open: Vec<String>| {
        let mut seen = BTreeSet::new();
        while let Some(name) = open.pop() {
            let implied: Vec<String> = names(&records[&name]["Implies"]);
            if seen.insert(name) {
                open.extend(implied);
            }
        }
        seen.iter().map(|name| records[name]["Name"].as_str().unwrap().to_owned()).collect()
    };
    let processor = |name: String| {
        let record = &records[&name];
        (record["Name"].as_str().unwrap().to_owned(), closure(names(&record["Features"])))
    };
    instances("Processor").into_iter().map(processor).collect()
}

/// Copies tablegen's files and their directories.
fn copy_definitions(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_definitions(&path, &target);
        } else if path.extension().is_some_and(|extension| extension == "td") {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn llvm_says_the_same_of_every_feature_and_no_other_differs() {
    let Some(bench) = Workbench::new("llvm_says_the_same_of_every_feature_and_no_other_differs") else { return };
    let llvm =
        std::env::var_os(ENV_LLVM).unwrap_or_else(|| panic!("{ENV_LLVM} is not set: `cargo xtask test` sets it"));
    let llvm = features(&bench, Path::new(&llvm));
    let left_out: BTreeSet<&str> = LEFT_OUT.iter().flat_map(|(names, _)| names.split_whitespace()).collect();
    let (mut wrong, mut used, mut compared) = (Vec::new(), BTreeSet::new(), 0);
    for family in FAMILIES {
        let is_member = |name: &str| family.iter().any(|start| name.starts_with(start));
        let members: BTreeSet<&str> = llvm.keys().map(String::as_str).filter(|name| is_member(name)).collect();
        let unknown: Vec<_> = members.iter().filter(|name| find_processor(name).is_none()).collect();
        assert!(unknown.is_empty(), "processors that only LLVM knows: {unknown:?}");
        let names: BTreeSet<&String> = members.iter().flat_map(|name| &llvm[*name]).collect();
        for name in names {
            let theirs: BTreeSet<&str> =
                members.iter().copied().filter(|member| llvm[*member].contains(name)).collect();
            let is_row =
                |row: &&hotswap_compat::Feature| row.names.contains(&name.as_str()) && is_member(row.processors[0]);
            let rows: Vec<BTreeSet<&str>> =
                FEATURES.iter().filter(is_row).map(|row| row.processors.iter().copied().collect()).collect();
            compared += rows.len();
            match rows.iter().find(|ours| **ours != theirs) {
                Some(ours) => wrong.push(format!("{name}: LLVM: {theirs:?}, the table: {ours:?}")),
                None if !rows.is_empty() => {}
                None if theirs == members => {}
                None if left_out.contains(name.as_str()) => used.extend([name.clone()]),
                None => wrong.push(format!("{name}: only {theirs:?} of a family have it, and the table has no row")),
            }
        }
    }
    wrong.extend(
        left_out.iter().filter(|name| !used.contains(**name)).map(|name| format!("{name}: left out for nothing")),
    );
    let rows: usize = FEATURES.iter().map(|row| row.names.len()).sum();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(compared, rows, "rows with names that LLVM does not have");
    let known = PROCESSORS.iter().filter(|processor| llvm.contains_key(processor.name)).count();
    say(&format!("features: {compared} differences within families are LLVM's, {known} processors"));
}
