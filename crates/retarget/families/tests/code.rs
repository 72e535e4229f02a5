//! The families on assembled code: LLVM disassembles the result of each case for the target, the listing is compared
//! with the file next to the case, and a second run changes nothing.
//!
//! A case is `code/NAME.s`, assembled for gfx1250. `code/NAME.expect` is LLVM's listing of the result, or the refusals.
//! With `HOTSWAP_BLESS=1` the output is written there.

mod engine;

use engine::{Setting, decode, isa, run};
use hotswap_families::{FAMILIES, FamilyScope};
use hotswap_userland::{Workbench, cases_in, golden, say};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const SOURCE: &str = "gfx1250";
const TARGET: &str = "gfx1250-strict";

struct Case {
    path: PathBuf,
    text: String,
    bytes: Vec<u8>,
}

/// The cases, assembled by one script.
fn assembled(bench: &Workbench) -> Vec<Case> {
    let paths = cases_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/code"), "s");
    for path in &paths {
        bench.write(path.file_name().unwrap().to_str().unwrap(), &fs::read(path).unwrap());
    }
    bench.run(&format!(
        "for case in *.s; do llvm-mc-24 -triple=amdgcn-amd-amdhsa -mcpu={SOURCE} -filetype=obj $case -o case.o && \
         llvm-objcopy-24 -O binary -j .text case.o ${{case%.s}}.bin || {{ echo $case; exit 1; }}; done"
    ));
    let case = |path: PathBuf| {
        let bytes = bench.read(&format!("{}.bin", path.file_stem().unwrap().to_str().unwrap()));
        Case { text: fs::read_to_string(&path).unwrap(), bytes, path }
    };
    paths.into_iter().map(case).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:#04x} ")).collect::<String>() + "\n"
}

/// LLVM's lines for each piece of code. None of them may be invalid for the target.
fn disassembled(bench: &Workbench, pieces: &[(String, Vec<u8>)]) -> Vec<Vec<String>> {
    for (name, bytes) in pieces {
        bench.write(&format!("{name}.hex"), hex(bytes).as_bytes());
    }
    let output = bench.shell(&format!(
        "for code in *.hex; do llvm-mc-24 -triple=amdgcn-amd-amdhsa -mcpu={TARGET} -disassemble $code >${{code%.hex}}.out || exit 1; done"
    ));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !error.contains("invalid"), "{error}");
    let lines = |name: &str| {
        let text = String::from_utf8(bench.read(&format!("{name}.out"))).unwrap();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('.'));
        lines.map(|line| line.split(" //").next().unwrap().split(" ;").next().unwrap().trim().to_owned()).collect()
    };
    pieces.iter().map(|(name, _)| lines(name)).collect()
}

fn bytes_of(lines: &[engine::Line]) -> Vec<u8> {
    let instructions = lines.iter().flat_map(|line| &line.code);
    instructions.flat_map(|inst| inst.bytes()[..usize::from(inst.len())].to_vec()).collect()
}

fn listing(lines: &[engine::Line], text: &[String]) -> String {
    let mut out = String::new();
    let mut text = text.iter();
    for line in lines {
        if let Some(note) = &line.note {
            let _ = writeln!(out, "// {note}");
        }
        for _ in &line.code {
            let _ = writeln!(out, "{}", text.next().expect("LLVM sees as many instructions"));
        }
    }
    assert_eq!(text.next(), None, "LLVM sees more instructions\n{out}");
    out
}

#[test]
fn every_case_becomes_what_stands_beside_it_and_a_second_run_changes_nothing() {
    let Some(bench) = Workbench::new("families on code") else { return };
    let cases = assembled(&bench);
    let outcomes: Vec<_> = cases.iter().map(|case| run(&case.bytes, &Setting::of(&case.text))).collect();
    let name = |case: &Case| case.path.file_stem().unwrap().to_str().unwrap().to_owned();
    let pieces: Vec<_> = cases
        .iter()
        .zip(&outcomes)
        .filter_map(|(case, outcome)| Some((name(case), bytes_of(outcome.as_ref().ok()?))))
        .collect();
    let mut texts = disassembled(&bench, &pieces).into_iter();
    let mut wrong = Vec::new();
    for (case, outcome) in cases.iter().zip(&outcomes) {
        let found = match outcome {
            Err(refusals) => refusals.iter().map(|refusal| format!("refused: {refusal}\n")).collect(),
            Ok(lines) => {
                let bytes = bytes_of(lines);
                let again = run(&bytes, &Setting::of(&case.text))
                    .unwrap_or_else(|refused| panic!("{}: {refused:?}", name(case)));
                assert_eq!(
                    decode(isa(TARGET), &bytes_of(&again)),
                    decode(isa(TARGET), &bytes),
                    "{}: a second run",
                    name(case)
                );
                listing(lines, &texts.next().unwrap())
            }
        };
        wrong.extend(golden(&case.path.with_extension("expect"), &found).err());
    }
    let refused = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    say(&format!(
        "families on code: {} cases, {refused} of them refused, {} not as expected",
        cases.len(),
        wrong.len()
    ));
    assert!(!cases.is_empty() && wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Without the userland, too: the result of a family without a case was never looked at.
#[test]
fn every_family_of_code_has_a_case_and_every_case_what_it_expects() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/code");
    let cases = cases_in(&directory, "s");
    for case in &cases {
        assert!(case.with_extension("expect").is_file(), "{} has no file with what it expects", case.display());
    }
    for expected in cases_in(&directory, "expect") {
        assert!(expected.with_extension("s").is_file(), "{} is of no case", expected.display());
    }
    for family in FAMILIES.iter().filter(|family| family.scope != FamilyScope::CodeObject) {
        let is_own =
            |case: &PathBuf| case.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with(family.name));
        assert!(cases.iter().any(is_own), "{}: no case of tests/code begins with its name", family.name);
    }
}
