//! Every row of the table of distances has a planted fault that `hotswap lint` finds on every target of the row, and
//! LLVM's own hazard recognizer inserts the wait states of the row between the two instructions.
//!
//! `distances/ROW.s`, or `distances/ROW.CASE.s`, is the pair of instructions: a line is `INSTRUCTION //mir: MACHINE
//! INSTRUCTION`.

use hotswap_hazards::distance::{DistanceRule, distances_for};
use hotswap_isa::{Isa, Target};
use hotswap_lint::lint_object;
use hotswap_rewrite_exam::assembly::{Kernel, assemble_for};
use hotswap_userland::{Workbench, cases_in, say};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const TARGETS: [&str; 6] = ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950"];

/// Two instructions, in assembly and as machine instructions of LLVM.
struct InstructionPair {
    row: String,
    kernel: String,
    assembly: Vec<String>,
    machine: Vec<String>,
}

impl InstructionPair {
    fn read(path: &Path) -> Self {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let code = fs::read_to_string(path).unwrap();
        let lines: Vec<(&str, &str)> = code.lines().map(|line| line.split_once(" //mir: ").unwrap()).collect();
        assert_eq!(lines.len(), 2, "{name}");
        Self {
            row: name.split('.').next().unwrap().to_owned(),
            kernel: name.replace(['-', '.'], "_"),
            assembly: lines.iter().map(|line| line.0.to_owned()).collect(),
            machine: lines.iter().map(|line| line.1.to_owned()).collect(),
        }
    }

    /// The pair with so many wait states between.
    fn kernel(&self, wait_states: u8) -> Kernel {
        let between = if wait_states > 0 { format!("\ts_nop {}\n", wait_states - 1) } else { String::new() };
        let (first, second) = (&self.assembly[0], &self.assembly[1]);
        let code = format!("{}:\n{first}\n{between}{second}\n\ts_nop 15\n\ts_endpgm\n", self.kernel);
        Kernel { name: self.kernel.clone(), code }
    }

    fn machine_function(&self) -> String {
        let lines = self.machine.iter().map(|line| format!("    {line}\n"));
        format!("---\nname: {}\nbody: |\n  bb.0:\n{}    S_ENDPGM 0\n...\n", self.kernel, lines.collect::<String>())
    }
}

/// The wait states that LLVM's hazard recognizer inserts into each function.
fn inserted_wait_states(
    bench: &Workbench,
    version: u32,
    processor: &str,
    pairs: &[&InstructionPair],
) -> BTreeMap<String, u64> {
    let text: String = pairs.iter().map(|pair| pair.machine_function()).collect();
    bench.write("pairs.mir", text.as_bytes());
    let out = bench.run(&format!(
        "llc-{version} -mtriple=amdgcn-amd-amdhsa -mcpu={processor} -run-pass post-RA-hazard-rec pairs.mir -o -"
    ));
    let mut found = BTreeMap::new();
    let mut function = String::new();
    for line in out.lines() {
        if let Some(name) = line.strip_prefix("name:") {
            name.trim().clone_into(&mut function);
            found.insert(function.clone(), 0);
        } else if let Some(count) = line.trim().strip_prefix("S_NOP ") {
            *found.get_mut(&function).unwrap() += count.parse::<u64>().unwrap() + 1;
        }
    }
    found
}

/// The functions with a finding of their row.
fn found(bench: &Workbench, processor: &str, kernels: &[Kernel], pairs: &[&InstructionPair]) -> BTreeSet<String> {
    let [_, (_, made)] = assemble_for(bench, processor, "distances", kernels);
    let rows: BTreeMap<&str, &str> = pairs.iter().map(|pair| (pair.kernel.as_str(), pair.row.as_str())).collect();
    let findings = lint_object(&made).unwrap().into_iter();
    let own = findings.filter_map(|one| {
        let function = one.function?;
        let is_own = one.reason.ends_with(&format!("({})", rows.get(function.as_str())?));
        is_own.then_some(function)
    });
    own.collect()
}

fn check_target(bench: &Workbench, processor: &'static str, pairs: &[InstructionPair], problems: &mut Vec<String>) -> usize {
    let isa = Isa::new(Target::find(processor).unwrap());
    let rows: BTreeMap<&str, &DistanceRule> = distances_for(isa).map(|rule| (rule.name, rule)).collect();
    let own: Vec<&InstructionPair> = pairs.iter().filter(|pair| rows.contains_key(pair.row.as_str())).collect();
    let without = rows.keys().filter(|row| !own.iter().any(|pair| pair.row == **row));
    problems.extend(without.map(|row| format!("{processor}: {row}: no fault is planted")));
    let needed = |pair: &InstructionPair| rows[pair.row.as_str()].wait_states;
    for version in bench.versions.iter().filter(|version| **version >= 23) {
        for (kernel, count) in inserted_wait_states(bench, *version, processor, &own) {
            let expected = own.iter().find(|pair| pair.kernel == kernel).map(|pair| needed(pair));
            if expected.map(u64::from) != Some(count) {
                problems.push(format!("{processor}: {kernel}: LLVM {version} inserts {count}, the row has {expected:?}"));
            }
        }
    }
    let close: Vec<Kernel> = own.iter().map(|pair| pair.kernel(needed(pair) - 1)).collect();
    let far: Vec<Kernel> = own.iter().map(|pair| pair.kernel(needed(pair))).collect();
    let seen = found(bench, processor, &close, &own);
    let missed = own.iter().filter(|pair| !seen.contains(&pair.kernel));
    problems.extend(missed.map(|pair| format!("{processor}: {} is not found", pair.kernel)));
    let alarms = found(bench, processor, &far, &own);
    problems.extend(alarms.into_iter().map(|kernel| format!("{processor}: {kernel} has a finding with the distance")));
    own.len()
}

#[test]
fn every_distance_is_llvms_and_has_a_planted_fault_that_is_found() {
    let Some(bench) = Workbench::with_llvm(24, "distances in wait states") else { return };
    let cases = cases_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("distances"), "s");
    let pairs: Vec<InstructionPair> = cases.iter().map(|path| InstructionPair::read(path)).collect();
    let mut problems = Vec::new();
    let counts = TARGETS.map(|processor| check_target(&bench, processor, &pairs, &mut problems));
    say(&format!("distances in wait states: {} faults for {} targets", counts.iter().sum::<usize>(), TARGETS.len()));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
