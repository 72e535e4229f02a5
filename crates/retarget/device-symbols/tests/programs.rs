//! The calls of HIP programs, compared with those that LLVM's assembly of the same code names: those of the emulated GPUs' tests, the
//! examples, and one with everything that ends, prints, shuffles or calls by tables. Every function that LLVM emits is found once,
//! and no other.

mod common;

use common::{Made, Setting, TARGETS, functions, make_with, references};
use hotswap_device_symbols::{Function, SymbolTable, analyse_file};
use hotswap_userland::{Workbench, cases_in, say, slice};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A compilation of a program.
struct Case {
    program: PathBuf,
    setting: Setting,
    options: &'static str,
}

/// Numbers of a comparison.
#[derive(Debug, Default, Clone, Copy)]
struct Compared {
    functions: usize,
    equal: usize,
    /// References to functions that are no calls: addresses that are stored or passed on.
    taken: usize,
    unresolved: usize,
}

/// HIP's headers and device libraries; those of clang 23 and later are in a directory of their own.
fn libraries(version: u32) -> &'static str {
    if version > 22 { "${ROCM:+--rocm-path=$ROCM}" } else { "" }
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Parts of programs, which do not compile alone: a unit with definitions by the command line, one that is included, one that needs
/// the sources of another project.
const PARTS: [&str; 3] = ["counted-unit.hip", "epilogue.hip", "ggml.hip"];

/// Programs that compile for any GPU.
fn programs() -> Vec<PathBuf> {
    let tests = workspace().join("tests/emulated-hip/cases");
    let examples = ["hello-hip", "gemm", "pgo", "device-library"].map(|name| workspace().join("examples").join(name));
    let directories = [tests.join("programs"), tests].into_iter().chain(examples);
    let all = directories.flat_map(|directory| cases_in(&directory, "hip"));
    all.filter(|path| PARTS.iter().all(|part| !path.ends_with(part))).collect()
}

/// The options that decide about code object and waves, in turn.
fn options(number: usize, target: &str) -> &'static str {
    let is_rdna = target.starts_with("gfx1") && target != "gfx1250";
    match (number % 6, is_rdna) {
        (0, _) => "-mcode-object-version=4",
        (1, true) => "-mwavefrontsize64",
        (2, _) => "-mcode-object-version=6",
        (3, true) => "-mwavefrontsize64 -mcode-object-version=4",
        _ => "-mcode-object-version=5",
    }
}

fn compare(case: &str, table: &SymbolTable, made: &Made) -> Compared {
    let (truth, symbols) = (references(&made.assembly), functions(&made.listing));
    let name = |one: &Function| symbols.get(&one.address).map_or(one.name.clone(), |(name, _)| name.clone());
    let starts: Vec<u64> = table.functions.iter().map(|one| one.address).collect();
    let emitted: Vec<u64> = symbols.keys().copied().collect();
    assert_eq!(starts, emitted, "{case}: every function once, and no other");
    let mut compared = Compared { functions: starts.len(), ..Compared::default() };
    for function in &table.functions {
        let wanted = truth.get(&name(function)).cloned().unwrap_or_default();
        let callees = function.callees.iter().map(|callee| &table.functions[callee.function as usize]);
        let found: BTreeSet<String> = callees.map(name).collect();
        let invented: Vec<&String> = found.difference(&wanted).collect();
        assert!(invented.is_empty(), "{case}: {} calls {invented:?}", function.name);
        compared.equal += found.len();
        compared.unresolved += function.indirect_calls.unresolved.len();
        for missed in wanted.difference(&found) {
            let callee = table.functions.iter().find(|one| name(one) == *missed);
            assert!(callee.is_some_and(|one| one.address_taken), "{case}: {} does not call {missed}", function.name);
            compared.taken += 1;
        }
    }
    compared
}

fn examine(bench: &Workbench, case: &Case) -> Compared {
    let Case { program, setting, options } = case;
    let source = std::fs::read_to_string(program).expect("a program is text");
    for directory in program.ancestors().skip(1).take(2) {
        for name in ["check.h", "stack.h", "epilogue.h", "gemm.h", "stencil.h"] {
            if let Ok(header) = std::fs::read(directory.join(name)) {
                bench.write(name, &header);
            }
        }
    }
    let made = make_with(bench, setting, &source, &format!("{} {options}", libraries(setting.version)));
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let shown = format!("{name}, {setting:?}, {options}");
    let (table, problems) = analyse_file(&made.linked).unwrap_or_else(|error| panic!("{shown}: {error}"));
    assert!(problems.is_empty(), "{shown}: {problems:?}");
    let compared = compare(&shown, &table, &made);
    say(&format!(
        "exam programs | {name} -O{} | {} | {} | {options} | {} | {} | {} | {} |",
        setting.level,
        setting.version,
        setting.target,
        compared.functions,
        compared.equal,
        compared.taken,
        compared.unresolved
    ));
    compared
}

/// The sums of all cases.
fn examine_all(bench: &Workbench, cases: &[Case]) -> Compared {
    cases.iter().map(|case| examine(bench, case)).fold(Compared::default(), |sum, one| Compared {
        functions: sum.functions + one.functions,
        equal: sum.equal + one.equal,
        taken: sum.taken + one.taken,
        unresolved: sum.unresolved + one.unresolved,
    })
}

#[test]
fn the_exam_program_calls_what_llvm_says() {
    let test = "the_exam_program_calls_what_llvm_says";
    let Some(bench) = Workbench::new(test) else { return };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exam.hip");
    let versions: Vec<u32> = bench.versions.iter().copied().filter(|version| (22..=24).contains(version)).collect();
    let mut cases = Vec::new();
    for turn in 0..3 {
        for (number, target) in TARGETS.into_iter().enumerate() {
            for (place, version) in versions.iter().copied().enumerate() {
                let setting = Setting { version, target, level: if turn == 1 { '0' } else { '2' } };
                cases.push(Case {
                    program: program.clone(),
                    setting,
                    options: options(turn + number + 3 * place, target),
                });
            }
        }
    }
    let chosen = slice(test, cases, |number, _| number % 7 == 0);
    let sum = examine_all(&bench, &chosen);
    say(&format!("{test}: {sum:?}"));
    assert!(sum.equal > 20 && sum.unresolved > 0, "{sum:?}");
}

#[test]
fn programs_call_what_llvm_says() {
    let test = "programs_call_what_llvm_says";
    // Headers of HIP 7.2 compile with its own clang alone.
    let Some(bench) = Workbench::with_llvm(22, test) else { return };
    let targets: Vec<&str> = TARGETS.into_iter().filter(|target| *target != "gfx1250").collect();
    let cases = programs().into_iter().enumerate().map(|(number, program)| {
        let (version, target) = (22, targets[number % targets.len()]);
        let setting = Setting { version, target, level: if number % 4 == 1 { '0' } else { '2' } };
        Case { program, setting, options: options(number, target) }
    });
    let chosen = slice(test, cases.collect(), |number, _| number % 5 == 0);
    let sum = examine_all(&bench, &chosen);
    say(&format!("{test}: {sum:?}"));
    assert!(sum.functions > 20, "{sum:?}");
}
