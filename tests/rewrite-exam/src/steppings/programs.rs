//! Programs of the matrix, compiled for both processors: which instructions one has more often than the other.

use super::{PairDifferences, SteppingPair};
use crate::corpus::{Unit, units};
use hotswap_userland::Workbench;
use std::collections::BTreeMap;

/// Address spaces with their numbers.
const SPACES: [(&str, u32); 5] = [("flat", 0), ("global", 1), ("lds", 3), ("constant", 4), ("private", 5)];
/// Types, and their alignment.
const TYPES: [(&str, u32); 7] =
    [("i8", 1), ("i16", 2), ("i32", 4), ("i64", 8), ("i64", 4), ("<2 x i32>", 4), ("<4 x i32>", 16)];
const HINTS: [&str; 3] = ["", ", !nontemporal !0", "volatile"];
const SCOPES: [&str; 7] = ["singlethread", "wavefront", "workgroup", "cluster", "agent", "", "agent-one-as"];
const ORDERS: [&str; 3] = ["monotonic", "acquire", "seq_cst"];
const CHANGES: [(&str, &str); 5] =
    [("add", "i32"), ("xchg", "i64"), ("umax", "i32"), ("fadd", "float"), ("fmin", "double")];

/// How LLVM arranges what it compiles.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    /// The name in kinds of differences.
    code: &'static str,
    options: &'static [&'static str],
}

/// LLVM's own choice; one without schedulers and dual instructions, where an order is not chosen by latencies, so that only rules
/// are left; and its mode in which the program waits for results of the vector unit itself.
const SCHEDULES: [Schedule; 3] = [
    Schedule { code: "code", options: &[] },
    Schedule {
        code: "unscheduled code",
        options: &[
            "-enable-misched=0",
            "-enable-post-misched=0",
            "-amdgpu-enable-vopd=0",
            "-amdgpu-enable-delay-alu=0",
        ],
    },
    Schedule { code: "expert code", options: &["-amdgpu-expert-scheduling-mode=1"] },
];

/// One instruction's count, less that of the other processor.
type CountDifference = BTreeMap<String, i64>;

/// Compiles the matrix in IR.
pub(super) fn compare_programs(bench: &Workbench, pair: &SteppingPair, found: &mut PairDifferences) {
    let mut functions = accesses();
    functions.extend(atomics());
    functions.extend(pairs_of_scopes());
    let mut text = String::from("target triple = \"amdgcn-amd-amdhsa\"\n!0 = !{i32 1}\n");
    functions.iter().enumerate().for_each(|(number, body)| {
        text += &format!("define amdgpu_kernel void @k{number}{body}\n");
    });
    bench.write("matrix.ll", text.as_bytes());
    for schedule in SCHEDULES {
        let options = schedule.options.join(" ");
        let listings = [pair.source, pair.target].map(|processor| {
            bench.run(&format!(
                "llc-24 -mcpu={processor} -O2 {options} -filetype=obj matrix.ll -o matrix.o && llvm-objdump-24 -d --no-show-raw-insn matrix.o"
            ))
        });
        let [left, right] = listings.map(|listing| by_function(&listing));
        found.count_cases("programs in IR", functions.len());
        compare_functions(schedule.code, &left, &right, found);
    }
}

/// Compiles the units in C.
pub(super) fn compare_corpus(bench: &Workbench, pair: &SteppingPair, found: &mut PairDifferences) {
    for unit in units() {
        bench.write("unit.c", unit.source().as_bytes());
        for schedule in SCHEDULES {
            compare_unit(bench, pair, &unit, schedule, found);
        }
    }
}

fn compare_unit(bench: &Workbench, pair: &SteppingPair, unit: &Unit, schedule: Schedule, found: &mut PairDifferences) {
    let options: String = schedule.options.iter().map(|option| format!(" -mllvm {option}")).collect();
    let compiled = [pair.source, pair.target].map(|processor| {
        bench.shell(&format!(
            "clang-24 --target=amdgcn-amd-amdhsa -mcpu={processor} -nogpulib -O2 -w -ferror-limit=0{options} -c unit.c -o unit.o && \
             llvm-objdump-24 -d --no-show-raw-insn unit.o"
        ))
    });
    found.count_cases("kernels in C", unit.kernels);
    let needs = missing_features(&String::from_utf8_lossy(&compiled[1].stderr));
    for feature in &needs {
        found.add(format!("clang needs {feature}"), &unit.name);
    }
    if needs.is_empty() {
        assert!(compiled.iter().all(|output| output.status.success()), "{}: {compiled:?}", unit.name);
        let [left, right] = compiled.map(|output| by_function(&String::from_utf8_lossy(&output.stdout)));
        compare_functions(schedule.code, &left, &right, found);
    }
}

/// Features that clang names in its errors.
fn missing_features(errors: &str) -> Vec<String> {
    let mut all: Vec<String> = errors
        .lines()
        .filter_map(|line| line.split_once("needs target feature "))
        .map(|(_, rest)| rest.split([' ', '[']).next().unwrap_or_default())
        .map(str::to_owned)
        .collect();
    all.sort();
    all.dedup();
    all
}

/// The lines of each function of a listing.
fn by_function(listing: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut name = String::new();
    for line in listing.lines() {
        if let Some((_, label)) = line.strip_suffix(">:").and_then(|line| line.split_once('<')) {
            label.clone_into(&mut name);
        } else if line.starts_with('\t') {
            let code = line.split("//").next().unwrap_or_default().trim();
            if !name.is_empty() && !code.starts_with('.') {
                all.entry(name.clone()).or_default().push(code.to_owned());
            }
        }
    }
    // Padding after the code depends on its length.
    for code in all.values_mut() {
        while code.last().is_some_and(|line| line == "s_nop 0" || line == "s_code_end") {
            code.pop();
        }
    }
    all
}

fn compare_functions(
    part: &str,
    left: &BTreeMap<String, Vec<String>>,
    right: &BTreeMap<String, Vec<String>>,
    found: &mut PairDifferences,
) {
    for (function, code) in left {
        let other = right.get(function).map(Vec::as_slice).unwrap_or_default();
        if code == other {
            continue;
        }
        let counts = count_difference(code, other);
        if !counts.is_empty() && code.iter().chain(other).any(|line| is_matrix(line)) {
            // Matrix instructions take other times, so that the compiler arranges all the rest anew.
            for (name, count) in &counts {
                found.add(format!("matrix {part} {}{name}", sign(*count)), function);
            }
        } else {
            found.add(format!("{part} {}", difference_text(&counts, code, other)), function);
        }
    }
}

fn mnemonic(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

fn is_matrix(line: &str) -> bool {
    ["v_wmma_", "v_swmmac_", "v_mfma_", "v_smfmac_"].iter().any(|start| line.starts_with(start))
}

fn sign(count: i64) -> char {
    if count > 0 { '+' } else { '-' }
}

fn count_difference(left: &[String], right: &[String]) -> CountDifference {
    let mut counts = CountDifference::new();
    left.iter().for_each(|line| *counts.entry(mnemonic(line).to_owned()).or_default() -= 1);
    right.iter().for_each(|line| *counts.entry(mnemonic(line).to_owned()).or_default() += 1);
    counts.retain(|_, count| *count != 0);
    counts
}

/// `+v_nop -s_clause`, without how often; `operands`, where the instructions are the same in their order; `order`.
fn difference_text(counts: &CountDifference, left: &[String], right: &[String]) -> String {
    if !counts.is_empty() {
        let all: Vec<String> = counts.iter().map(|(name, count)| format!("{}{name}", sign(*count))).collect();
        return all.join(" ");
    }
    let is_same_order = left.iter().zip(right).all(|(left, right)| mnemonic(left) == mnemonic(right));
    let changed = left.iter().zip(right).find(|(left, right)| left != right);
    match changed {
        Some((left, _)) if is_same_order => format!("operands of {}", mnemonic(left)),
        _ => "order".to_owned(),
    }
}

fn pointer(space: u32) -> String {
    if space == 0 { "ptr".to_owned() } else { format!("ptr addrspace({space})") }
}

/// Loads and stores, one and two side by side.
fn accesses() -> Vec<String> {
    let mut all = Vec::new();
    for (name, space) in SPACES {
        for (kind, align) in TYPES {
            for hint in HINTS {
                for count in [1, 2, 4] {
                    all.push(access(space, (kind, align), hint, count));
                    if name != "constant" {
                        all.push(store(space, (kind, align), hint, count));
                    }
                }
            }
        }
    }
    all
}

fn access(space: u32, (kind, align): (&str, u32), hint: &str, count: usize) -> String {
    let (volatile, metadata) = if hint == "volatile" { ("volatile ", "") } else { ("", hint) };
    let pointer = pointer(space);
    let mut body = format!("({pointer} %p, ptr addrspace(1) %o) {{\n");
    for number in 0..count {
        body += &format!(
            "  %g{number} = getelementptr {kind}, {pointer} %p, i32 {number}\n  \
             %v{number} = load {volatile}{kind}, {pointer} %g{number}, align {align}{metadata}\n"
        );
    }
    for number in 0..count {
        body += &format!(
            "  %h{number} = getelementptr [64 x i8], ptr addrspace(1) %o, i32 {number}\n  \
             store {kind} %v{number}, ptr addrspace(1) %h{number}, align 16\n"
        );
    }
    body + "  ret void\n}"
}

fn store(space: u32, (kind, align): (&str, u32), hint: &str, count: usize) -> String {
    let (volatile, metadata) = if hint == "volatile" { ("volatile ", "") } else { ("", hint) };
    let pointer = pointer(space);
    let mut body = format!("({pointer} %p, {kind} %v) {{\n");
    for number in 0..count {
        body += &format!(
            "  %g{number} = getelementptr {kind}, {pointer} %p, i32 {number}\n  \
             store {volatile}{kind} %v, {pointer} %g{number}, align {align}{metadata}\n"
        );
    }
    body + "  ret void\n}"
}

fn scope_text(scope: &str) -> String {
    if scope.is_empty() { String::new() } else { format!("syncscope(\"{scope}\") ") }
}

/// Atomic loads and stores, read-modify-writes, exchanges with a comparison, fences.
fn atomics() -> Vec<String> {
    let mut all = Vec::new();
    for scope in SCOPES.map(scope_text) {
        for (_, space) in SPACES.into_iter().filter(|(name, _)| ["flat", "global", "lds"].contains(name)) {
            let pointer = pointer(space);
            for order in ORDERS {
                let stored = if order == "acquire" { "release" } else { order };
                for kind in ["i32", "i64"] {
                    all.push(format!(
                        "({pointer} %p, {kind} %v) {{\n  %x = load atomic {kind}, {pointer} %p {scope}{order}, align 8\n  \
                         store atomic {kind} %x, {pointer} %p {scope}{stored}, align 8\n  ret void\n}}"
                    ));
                }
            }
            for (change, kind) in CHANGES {
                all.push(format!(
                    "({pointer} %p, {kind} %v, ptr addrspace(1) %o) {{\n  %x = atomicrmw {change} {pointer} %p, {kind} %v {scope}acq_rel\n  \
                     store {kind} %x, ptr addrspace(1) %o\n  ret void\n}}"
                ));
            }
            all.push(format!(
                "({pointer} %p, i32 %v, ptr addrspace(1) %o) {{\n  %x = cmpxchg {pointer} %p, i32 %v, i32 7 {scope}acq_rel monotonic\n  \
                 %y = extractvalue {{ i32, i1 }} %x, 0\n  store i32 %y, ptr addrspace(1) %o\n  ret void\n}}"
            ));
        }
        for order in ["acquire", "release", "seq_cst"] {
            all.push(format!(
                "(ptr %p) {{\n  store i32 1, ptr %p\n  fence {scope}{order}\n  store i32 2, ptr %p\n  ret void\n}}"
            ));
        }
    }
    all
}

/// Two loads side by side with every pair of scopes; the last one is a plain load.
fn pairs_of_scopes() -> Vec<String> {
    let mut all = Vec::new();
    let load = |number: usize, scope: Option<&str>| {
        let text = match scope {
            Some(scope) => {
                format!("load atomic i32, ptr addrspace(1) %g{number} {}monotonic, align 4", scope_text(scope))
            }
            None => format!("load i32, ptr addrspace(1) %g{number}, align 4"),
        };
        format!("  %g{number} = getelementptr i32, ptr addrspace(1) %p, i32 {}\n  %v{number} = {text}\n", 3 * number)
    };
    let scopes: Vec<Option<&str>> = SCOPES[..6].iter().copied().map(Some).chain([None]).collect();
    for first in &scopes {
        for second in &scopes {
            all.push(format!(
                "(ptr addrspace(1) %p, ptr addrspace(1) %o) {{\n{}{}  %s = add i32 %v0, %v1\n  store i32 %s, ptr addrspace(1) %o\n  ret void\n}}",
                load(0, *first),
                load(1, *second)
            ));
        }
    }
    all
}
