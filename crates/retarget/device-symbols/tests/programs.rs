//! The calls of HIP programs, compared with those that LLVM's assembly of the same code names: those of the emulated GPUs' tests, the
//! examples, and one with everything that ends, prints, shuffles or calls by tables. Every function that LLVM emits is found once,
//! and no other.

mod common;

use common::calls::{Compared, compare_calls};
use common::{Setting, TARGETS, libraries, make_with};
use hotswap_device_symbols::{Callee, SymbolTable, analyse_file};
use hotswap_userland::{Workbench, cases_in, say, slice};
use std::path::{Path, PathBuf};

/// A compilation of a program.
struct Case {
    program: PathBuf,
    setting: Setting,
    options: &'static str,
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Parts of programs, which do not compile or link alone: a unit with definitions by the command line, one that is included, one
/// that needs the sources of another project, those that call a device library.
const PARTS: [&str; 7] = [
    "counted-unit.hip",
    "epilogue.hip",
    "ggml.hip",
    "exchange-user.hip",
    "stack-kernels.hip",
    "smooth.hip",
    "sharpen.hip",
];

/// Programs that compile for any GPU.
fn programs() -> Vec<PathBuf> {
    let tests = workspace().join("tests/emulated-hip/cases");
    let examples = ["hello-hip", "gemm", "pgo", "device-library"].map(|name| workspace().join("examples").join(name));
    let directories = [tests.join("programs"), tests].into_iter().chain(examples);
    let all = directories.flat_map(|directory| cases_in(&directory, "hip"));
    all.filter(|path| PARTS.iter().all(|part| !path.ends_with(part))).collect()
}

/// The code object versions, each with waves of both sizes.
const OPTIONS: [[&str; 3]; 2] = [
    ["-mcode-object-version=4", "-mcode-object-version=5", "-mcode-object-version=6"],
    [
        "-mwavefrontsize64 -mcode-object-version=4",
        "-mwavefrontsize64 -mcode-object-version=5",
        "-mwavefrontsize64 -mcode-object-version=6",
    ],
];

/// All of them that a GPU has: waves of 64 lanes are an option of RDNA.
fn all_options(target: &str) -> Vec<&'static str> {
    let is_rdna = target.starts_with("gfx1") && target != "gfx1250";
    OPTIONS[..1 + usize::from(is_rdna)].concat()
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
    let compared = compare_calls(&table, &made).unwrap_or_else(|told| panic!("{shown}: {told}"));
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
    cases.iter().map(|case| examine(bench, case)).fold(Compared::default(), Compared::plus)
}

#[test]
fn the_exam_program_calls_what_llvm_says() {
    let test = "the_exam_program_calls_what_llvm_says";
    let Some(bench) = Workbench::new(test) else { return };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exam.hip");
    let versions: Vec<u32> = bench.versions.iter().copied().filter(|version| (22..=24).contains(version)).collect();
    let mut cases = Vec::new();
    for target in TARGETS {
        for options in all_options(target) {
            for version in versions.iter().copied() {
                // One of the versions is without optimisation, another one for each kind of code object.
                let level = if (cases.len() + cases.len() / 3) % 3 == 1 { '0' } else { '2' };
                cases.push(Case { program: program.clone(), setting: Setting { version, target, level }, options });
            }
        }
    }
    let chosen = slice(test, cases, |number, _| number % 10 == 0);
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
        Case { program, setting, options: all_options(target)[number % all_options(target).len()] }
    });
    let chosen = slice(test, cases.collect(), |number, _| number % 5 == 0);
    let sum = examine_all(&bench, &chosen);
    say(&format!("{test}: {sum:?}"));
    assert!(sum.functions > 20, "{sum:?}");
}

/// A change of a right table, and words of the finding.
struct Plant {
    change: fn(&mut SymbolTable),
    told: &'static str,
}

const fn plant(change: fn(&mut SymbolTable), told: &'static str) -> Plant {
    Plant { change, told }
}

const PLANTS: [Plant; 7] = [
    plant(lose_call, "does not call"),
    plant(invent_call, " calls "),
    plant(fall_through, " calls "),
    plant(move_function, "LLVM's at"),
    plant(lose_function, "LLVM's at"),
    plant(add_function, "LLVM's at"),
    plant(change_waves, "waves of"),
];

/// A function, and a place among its callees.
struct CallPlace {
    function: usize,
    callee: usize,
}

/// A call of a function whose address is not taken, so that a reference to it is a call.
fn sure_call(table: &SymbolTable) -> CallPlace {
    let is_sure = |callee: &Callee| !table.functions[callee.function as usize].address_taken;
    let mut places = table.functions.iter().enumerate().filter_map(|(function, row)| {
        let callee = row.callees.iter().position(is_sure)?;
        Some(CallPlace { function, callee })
    });
    places.next().expect("the program has calls")
}

fn lose_call(table: &mut SymbolTable) {
    let CallPlace { function, callee } = sure_call(table);
    table.functions[function].callees.remove(callee);
}

fn invent_call(table: &mut SymbolTable) {
    let CallPlace { function, callee } = sure_call(table);
    let callee = table.functions[function].callees[callee];
    let mut leaves = table.functions.iter_mut().filter(|function| function.callees.is_empty());
    leaves.next().expect("the program has leaves").callees.push(callee);
}

/// A function that may end in a trap, as if the code after it were its own: a call of the next function.
fn fall_through(table: &mut SymbolTable) {
    let CallPlace { function, callee } = sure_call(table);
    let mut call = table.functions[function].callees[callee];
    let at = table.functions.iter().position(|one| one.name.contains("stops")).expect("the program has it");
    let own = &table.functions[at];
    let numbers = 0..table.functions.len() as u32;
    let after = numbers.filter(|number| table.functions[*number as usize].address > own.address);
    let others = after.filter(|number| own.callees.iter().all(|callee| callee.function != *number));
    let next = others.min_by_key(|number| table.functions[*number as usize].address);
    call.function = next.expect("a function follows");
    table.functions[at].callees.push(call);
}

fn move_function(table: &mut SymbolTable) {
    table.functions.last_mut().expect("there are functions").address += 4;
}

fn lose_function(table: &mut SymbolTable) {
    table.functions.pop();
}

/// Padding that became a function.
fn add_function(table: &mut SymbolTable) {
    let mut row = table.functions.last().expect("there are functions").clone();
    row.address += row.size;
    table.functions.push(row);
}

fn change_waves(table: &mut SymbolTable) {
    let row = table.functions.last_mut().expect("there are functions");
    row.wave_size = row.wave_size.map(|lanes| 96 - lanes);
}

#[test]
fn planted_calls_and_functions_are_found() {
    let test = "planted_calls_and_functions_are_found";
    let Some(bench) = Workbench::new(test) else { return };
    let versions = bench.versions.iter().copied().filter(|version| (22..=24).contains(version));
    let all = versions.flat_map(|version| TARGETS.map(|target| Setting { version, target, level: '2' }));
    let mut found = 0;
    for (number, mut setting) in slice(test, all.collect(), |number, _| number % 5 == 0).into_iter().enumerate() {
        setting.level = if number % 2 == 0 { '0' } else { '2' };
        let options = all_options(setting.target);
        let options = options[number % options.len()];
        let words = format!("{} {options}", libraries(setting.version));
        let made = make_with(&bench, &setting, include_str!("exam.hip"), &words);
        let (table, _) = analyse_file(&made.linked).unwrap();
        assert!(compare_calls(&table, &made).unwrap().equal > 0, "{setting:?} {options}");
        for (number, Plant { change, told }) in PLANTS.iter().enumerate() {
            let mut planted = table.clone();
            change(&mut planted);
            let finding = compare_calls(&planted, &made).err().unwrap_or_default();
            assert!(finding.contains(told), "{setting:?} {options}: fault {number}: {finding}");
            found += 1;
        }
    }
    say(&format!("{test}: {found} faults"));
    assert!(found >= 3 * PLANTS.len());
}
