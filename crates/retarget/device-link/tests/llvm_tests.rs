//! LLVM's own tests of code generation with calls: the usual code of llc links and runs without HotSwap, so `check` has no finding. Where
//! the compiler leaves the numbers of kernels to the linker (`-amdgpu-enable-object-linking`), `fix` writes those of the usual code, and
//! `check` has nothing to report afterwards but recursions.
//!
//! A test that llc does not compile for a GPU is counted, and so is one that no linker takes: objects that leave their LDS to it.

use hotswap_code_object::CodeObject;
use hotswap_device_link::{DynamicStack, LinkReport, check_link, link_inputs, raise_kernels};
use hotswap_report::{Diagnostic, codes};
use hotswap_userland::{ENV_LLVM, Workbench, run_cases, say, skip, slice, tool};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The version of LLVM's sources.
const VERSION: u32 = 23;
const TARGETS: [&str; 6] = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"];
const OBJECT_LINKING: &str = "-amdgpu-enable-object-linking";

/// A test of LLVM's, compiled for a GPU.
struct Case {
    test: PathBuf,
    target: &'static str,
}

/// A finding that is right.
struct Explained {
    /// The end of the name of the test, and the GPU.
    case: &'static str,
    finding: &'static str,
    #[allow(dead_code, reason = "for readers")]
    why: &'static str,
}

const EXPLAINED: [Explained; 2] = [
    Explained {
        case: "agpr-register-count.ll gfx1250",
        finding: "kernel_call_func_32_agprs: 0 vector registers, LLVM's 9",
        why: "the kernel names no register, and is granted 16, of which its function needs 9: nothing is short",
    },
    Explained {
        case: "call-alias-register-usage3.ll gfx90a",
        finding: "[HS0425]",
        why: "the kernel needs 253 vector registers, and states work-groups of up to 1024, of which none would fit",
    },
];

/// Sums over the tests of a GPU.
#[derive(Debug, Default, Clone)]
struct Sums {
    tests: usize,
    not_compiled: usize,
    kernels: usize,
    not_linked: usize,
    /// Kernels of object linking with all of their functions, and those of them that were short.
    finished: usize,
    short: usize,
    findings: Vec<String>,
}

/// The code that a compilation makes.
enum Compiled {
    NoObject,
    NotLinked,
    Linked { code: Vec<u8>, report: LinkReport },
}

/// Whether a test has a kernel, and calls of functions that are no intrinsics.
fn has_calls(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("define") && line.contains("amdgpu_kernel")) && text.lines().any(is_call)
}

fn is_call(line: &str) -> bool {
    let callee = line.split("call ").nth(1).and_then(|rest| rest.split_once('@'));
    callee.is_some_and(|(_, name)| name.contains('(') && !name.starts_with("llvm."))
}

/// The tests with calls, each for a GPU; those that speak of object linking for all of them.
fn all_cases(directory: &Path) -> Vec<Case> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|told| panic!("{}: {told}", directory.display()));
    let paths = entries.map(|entry| entry.expect("the directory is readable").path());
    let mut tests: Vec<(PathBuf, String)> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "ll"))
        .map(|path| (path.clone(), String::from_utf8_lossy(&std::fs::read(path).expect("it is there")).into_owned()))
        .filter(|(_, text)| has_calls(text))
        .collect();
    tests.sort();
    let mut cases = Vec::new();
    for (number, (test, text)) in tests.into_iter().enumerate() {
        let is_usual = !text.contains(OBJECT_LINKING);
        let targets = TARGETS.iter().enumerate().filter(|(place, _)| !is_usual || number % TARGETS.len() == *place);
        cases.extend(targets.map(|(_, target)| Case { test: test.clone(), target }));
    }
    cases
}

/// The code of a test, with the answer of `check` for a link of this one object.
fn compile(bench: &Workbench, target: &str, options: &str) -> Compiled {
    let (llc, lld) = (tool(VERSION, "llc"), tool(VERSION, "ld.lld"));
    let words = format!("-mtriple=amdgcn-amd-amdhsa -mcpu={target} {options} -filetype=obj a.ll -o a.o");
    if !bench.shell(&format!("timeout 60 {llc} {words}")).status.success() {
        return Compiled::NoObject;
    }
    if !bench.shell(&format!("{lld} -shared a.o -o a.co")).status.success() {
        return Compiled::NotLinked;
    }
    let code = bench.read("a.co");
    // A test sets features that the GPU lacks, and its header names them.
    if CodeObject::parse(&code).is_err_and(|told| told.what.contains("does not fit")) {
        return Compiled::NoObject;
    }
    let report = check_code(bench, &code);
    Compiled::Linked { code, report }
}

fn check_code(bench: &Workbench, code: &[u8]) -> LinkReport {
    check_link(code, &link_inputs("a.o", &bench.read("a.o")), DynamicStack::OfHip).expect("LLVM's code is read")
}

/// The report without calls of functions that the file lacks, of which the compiler's numbers are lower bounds, too.
fn findings(report: &LinkReport) -> impl Iterator<Item = Diagnostic> {
    report.problems().into_iter().filter(|one| one.code != codes::UNKNOWN_CALLEES)
}

/// The vector registers of the kernels of a code object, by name.
fn kernel_vgprs(bytes: &[u8]) -> BTreeMap<String, u64> {
    let object = CodeObject::parse(bytes).expect("it was checked");
    let kernels = object.note().kernels.iter();
    kernels.map(|kernel| (kernel.name.to_owned(), kernel.vgpr_count.unwrap_or(0))).collect()
}

fn examine(bench: &Workbench, case: &Case) -> Sums {
    let mut sums = Sums { tests: 1, ..Sums::default() };
    bench.write("a.ll", &std::fs::read(&case.test).expect("it was there"));
    let Compiled::Linked { code, report } = compile(bench, case.target, "") else {
        return Sums { not_compiled: 1, ..sums };
    };
    sums.kernels = report.kernels;
    sums.findings.extend(findings(&report).map(|one| one.to_string()));
    match compile(bench, case.target, OBJECT_LINKING) {
        Compiled::Linked { code: unfinished, report } => {
            sums.add_finished(bench, &kernel_vgprs(&code), &unfinished, &report)
        }
        _ => sums.not_linked = 1,
    }
    let name = format!("{} {}", case.test.file_name().unwrap_or_default().to_string_lossy(), case.target);
    let is_explained =
        |told: &String| EXPLAINED.iter().any(|one| name.ends_with(one.case) && told.contains(one.finding));
    sums.findings.retain(|told| !is_explained(told));
    sums.findings.iter_mut().for_each(|told| told.insert_str(0, &format!("{name}: ")));
    sums
}

impl Sums {
    /// Adds the kernels that `fix` finishes, compared with those of the usual code.
    fn add_finished(&mut self, bench: &Workbench, usual: &BTreeMap<String, u64>, code: &[u8], report: &LinkReport) {
        let made = match raise_kernels(code, report) {
            Ok(made) => made,
            Err(error) => return self.findings.push(error.to_string()),
        };
        let again = check_code(bench, &made);
        let wrong = findings(&again).filter(|one| one.code != codes::UNBOUNDED_SCRATCH);
        self.findings.extend(wrong.map(|one| format!("after fix: {one}")));
        self.short += report.short.len();
        let made = kernel_vgprs(&made);
        for (kernel, wanted) in usual.iter().filter(|(kernel, _)| !report.open.contains(*kernel)) {
            self.finished += 1;
            let found = made.get(kernel).copied().unwrap_or_default();
            if found != *wanted {
                self.findings.push(format!("{kernel}: {found} vector registers, LLVM's {wanted}"));
            }
        }
    }

    fn add(&mut self, other: &Self) {
        self.tests += other.tests;
        self.not_compiled += other.not_compiled;
        self.kernels += other.kernels;
        self.not_linked += other.not_linked;
        self.finished += other.finished;
        self.short += other.short;
        self.findings.extend(other.findings.iter().cloned());
    }

    /// The row of a GPU in the table of `cargo xtask symbols exam`.
    fn row(&self, target: &str) -> String {
        let Self { tests, not_compiled, kernels, not_linked, finished, short, findings } = self;
        format!(
            "exam llvm | {target} | {tests} | {not_compiled} | {kernels} | {not_linked} | {finished} | {short} | {} |",
            findings.len()
        )
    }
}

#[test]
fn code_of_llvms_tests_has_no_finding() {
    let test = "code_of_llvms_tests_has_no_finding";
    let Some(source) = std::env::var_os(ENV_LLVM).filter(|path| !path.is_empty()) else {
        return skip(test, &format!("{ENV_LLVM} names no sources of LLVM"));
    };
    if Workbench::with_llvm(VERSION, test).is_none() {
        return;
    }
    let all = all_cases(&PathBuf::from(source).join("llvm/test/CodeGen/AMDGPU"));
    let cases = slice(test, all, |number, _| number % 9 == 0);
    let found = run_cases(&cases, || Workbench::with_llvm(VERSION, test).expect("it was there"), examine);
    let mut by_target: BTreeMap<&str, Sums> = BTreeMap::new();
    let mut all = Sums::default();
    for (case, sums) in cases.iter().zip(&found) {
        by_target.entry(case.target).or_default().add(sums);
        all.add(sums);
    }
    by_target.iter().for_each(|(target, sums)| say(&sums.row(target)));
    assert_eq!(all.findings, Vec::<String>::new());
    assert!(all.kernels > 50 && all.finished > 20 && all.short > 3, "{all:?}");
}
