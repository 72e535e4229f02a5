//! Every row of the tables of distances has planted faults that `hotswap lint` finds on every target of the row: LLVM's own
//! hazard recognizer says how many wait states a pair of instructions needs, and with one less there is a finding.
//!
//! `distances/ROW.s` has pairs of instructions for a row, a blank line between: a line is `INSTRUCTION //mir: MACHINE
//! INSTRUCTION`.

use hotswap_hazards::distance::{DistanceRule, WaitStates, distances_for};
use hotswap_isa::{Isa, Target};
use hotswap_lint::lint_object;
use hotswap_rewrite_exam::assembly::{Kernel, assemble_for};
use hotswap_userland::{Workbench, cases_in, say};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const TARGETS: [&str; 10] =
    ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1030", "gfx1100", "gfx1201"];

/// Two instructions, in assembly and as machine instructions of LLVM.
struct InstructionPair {
    row: String,
    kernel: String,
    assembly: Vec<String>,
    machine: Vec<String>,
}

/// LLVM looks back over so many wait states: where gfx950 needs 20, the row has no more.
const LOOK_BACK: u64 = 19;
impl InstructionPair {
    /// The pairs of a file.
    fn read_all(path: &Path) -> Vec<Self> {
        let row = path.file_stem().unwrap().to_str().unwrap();
        let code = fs::read_to_string(path).unwrap();
        code.split("\n\n").enumerate().map(|(number, pair)| Self::read(row, number, pair, 2)).collect()
    }

    /// One of a row, with so many instructions.
    fn read(row: &str, number: usize, code: &str, count: usize) -> Self {
        let lines: Vec<(&str, &str)> = code.lines().map(|line| line.split_once(" //mir: ").unwrap()).collect();
        assert_eq!(lines.len(), count, "{row}: {code}");
        Self {
            row: row.to_owned(),
            kernel: format!("{}_{number}", row.replace('-', "_")),
            assembly: lines.iter().map(|line| line.0.to_owned()).collect(),
            machine: lines.iter().map(|line| line.1.to_owned()).collect(),
        }
    }

    /// The pair with so many wait states between; those of WMMA are vector instructions.
    fn kernel(&self, wait_states: u64) -> Kernel {
        let unit = if self.row.starts_with("wmma-") { "\tv_nop\n" } else { "\ts_nop 0\n" };
        let between = unit.repeat(wait_states as usize);
        let (first, later) = (&self.assembly[0], self.assembly[1..].join("\n"));
        let code = format!("{}:\n{first}\n{between}{later}\n\ts_nop 15\n\ts_nop 15\n\ts_endpgm\n", self.kernel);
        Kernel { name: self.kernel.clone(), code }
    }

    /// The same with a count in one instruction.
    fn counted_kernel(&self, wait_states: u64) -> Kernel {
        let many = "\ts_nop 0\n".repeat(wait_states as usize);
        let mut between = "\ts_nop 7\n".repeat(wait_states as usize / 8);
        if !wait_states.is_multiple_of(8) {
            between += &format!("\ts_nop {}\n", wait_states % 8 - 1);
        }
        let Kernel { name, code } = self.kernel(wait_states);
        Kernel { name, code: if many.is_empty() { code } else { code.replacen(&many, &between, 1) } }
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
        } else if line.trim().starts_with("V_NOP_e32") {
            *found.get_mut(&function).unwrap() += 1;
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

/// Whether a row has these wait states.
fn states_of_row(rule: &DistanceRule, count: u64) -> bool {
    match rule.wait_states {
        WaitStates::Always(own) => u64::from(own) == count,
        WaitStates::ByPasses(own) => own.map(u64::from).contains(&count),
    }
}

/// Checks that LLVM inserts the wait states of the rows, the same in both versions; they are the result, by pair.
fn check_rows(
    bench: &Workbench,
    processor: &str,
    pairs: &[&InstructionPair],
    rows: &BTreeMap<&str, &DistanceRule>,
    problems: &mut Vec<String>,
) -> Vec<u64> {
    let inserted = inserted_wait_states(bench, 24, processor, pairs);
    if inserted_wait_states(bench, 23, processor, pairs) != inserted {
        problems.push(format!("{processor}: LLVM 23 inserts other wait states than LLVM 24"));
    }
    let counts: Vec<u64> = pairs.iter().map(|pair| inserted[&pair.kernel].min(LOOK_BACK)).collect();
    let wrong = pairs.iter().zip(&counts).filter(|(pair, count)| {
        let is_of_row = states_of_row(rows[pair.row.as_str()], **count);
        **count == 0 || !is_of_row
    });
    problems.extend(wrong.map(|(pair, count)| format!("{processor}: {}: LLVM inserts {count}", pair.kernel)));
    counts
}

fn check_target(bench: &Workbench, processor: &str, pairs: &[InstructionPair], problems: &mut Vec<String>) -> usize {
    let isa = Isa::new(Target::find(processor).unwrap());
    let rows: BTreeMap<&str, &DistanceRule> = distances_for(isa).map(|rule| (rule.name, rule)).collect();
    let own: Vec<&InstructionPair> = pairs.iter().filter(|pair| rows.contains_key(pair.row.as_str())).collect();
    let without = rows.keys().filter(|row| !own.iter().any(|pair| pair.row == **row));
    problems.extend(without.map(|row| format!("{processor}: {row}: no fault is planted")));
    let counts = check_rows(bench, processor, &own, &rows, problems);
    let numbered = || own.iter().zip(&counts);
    let close: Vec<Kernel> = numbered().map(|(pair, count)| pair.counted_kernel(count.saturating_sub(1))).collect();
    let far: Vec<Kernel> = numbered().map(|(pair, count)| pair.kernel(*count)).collect();
    let counted: Vec<Kernel> = numbered().map(|(pair, count)| pair.counted_kernel(*count)).collect();
    let seen = found(bench, processor, &close, &own);
    let missed = own.iter().filter(|pair| !seen.contains(&pair.kernel));
    problems.extend(missed.map(|pair| format!("{processor}: {} is not found: {:?}", pair.kernel, pair.assembly)));
    let alarms = [far, counted].iter().flat_map(|kernels| found(bench, processor, kernels, &own)).collect::<Vec<_>>();
    problems.extend(alarms.into_iter().map(|kernel| format!("{processor}: {kernel} has a finding with the distance")));
    own.len()
}

#[test]
fn every_distance_is_llvms_and_has_a_planted_fault_that_is_found() {
    let Some(bench) = Workbench::with_llvm(24, "distances in wait states") else { return };
    let cases = cases_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("distances"), "s");
    let pairs: Vec<InstructionPair> = cases.iter().flat_map(|path| InstructionPair::read_all(path)).collect();
    let mut problems = Vec::new();
    let counts = TARGETS.map(|processor| check_target(&bench, processor, &pairs, &mut problems));
    say(&format!("distances in wait states: {} faults for {} targets", counts.iter().sum::<usize>(), TARGETS.len()));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Pairs whose distance an instruction between the two makes needless.
const ENDED: [&str; 3] = [
    "\tglobal_atomic_fmin v[0:1], v2, off //mir: GLOBAL_ATOMIC_FMIN $vgpr0_vgpr1, $vgpr2, 0, 0, implicit $exec
\tv_mov_b32_e32 v3, v4 //mir: $vgpr3 = V_MOV_B32_e32 $vgpr4, implicit $exec
\ts_denorm_mode 0 //mir: S_DENORM_MODE 0, implicit-def $mode, implicit $mode",
    "\tglobal_atomic_fmin v[0:1], v2, off //mir: GLOBAL_ATOMIC_FMIN $vgpr0_vgpr1, $vgpr2, 0, 0, implicit $exec
\ts_waitcnt_lgkmcnt null, 0x0 //mir: S_WAITCNT_LGKMCNT $sgpr_null, 0
\ts_denorm_mode 0 //mir: S_DENORM_MODE 0, implicit-def $mode, implicit $mode",
    "\tbuffer_atomic_fmax v0, off, s[0:3], 0 //mir: BUFFER_ATOMIC_FMAX_OFFSET $vgpr0, $sgpr0_sgpr1_sgpr2_sgpr3, 0, 0, 0, \
     implicit $exec
\ts_waitcnt 0 //mir: S_WAITCNT 0
\ts_denorm_mode 0 //mir: S_DENORM_MODE 0, implicit-def $mode, implicit $mode",
];

#[test]
fn other_instructions_end_what_a_row_asks_for() {
    let Some(bench) = Workbench::with_llvm(24, "distances that end") else { return };
    let pairs: Vec<InstructionPair> = ENDED
        .iter()
        .enumerate()
        .map(|(number, code)| InstructionPair::read("fp-atomic-denorm", number, code, 3))
        .collect();
    let own: Vec<&InstructionPair> = pairs.iter().collect();
    for processor in ["gfx1010", "gfx1030"] {
        let inserted = inserted_wait_states(&bench, 24, processor, &own);
        assert!(
            inserted.len() == ENDED.len() && inserted.values().all(|count| *count == 0),
            "{processor}: {inserted:?}"
        );
        let whole: Vec<Kernel> = own.iter().map(|pair| pair.kernel(0)).collect();
        assert_eq!(found(&bench, processor, &whole, &own), BTreeSet::new(), "{processor}");
        let wait = Kernel { code: whole[2].code.replace("s_waitcnt 0", "s_waitcnt_depctr 0"), ..whole[2].clone() };
        assert_eq!(found(&bench, processor, &[wait], &own).len(), 1, "{processor}: another wait ends nothing");
    }
}

/// Code in which the distance is too small on one of several paths: a line `INSTRUCTION //fixed` mends it.
const ON_ONE_PATH: [(&str, &str); 3] = [
    (
        "branch_around",
        "v_readfirstlane_b32 s4, v0\ns_cbranch_scc1 .Lplace\ns_nop 7\n.Lplace:\ns_nop 3 //fixed\n\
         buffer_load_dword v1, off, s[4:7], 0\n",
    ),
    (
        "loop_carried",
        ".Lplace:\nbuffer_load_dword v1, off, s[4:7], 0\nv_readfirstlane_b32 s4, v0\ns_nop 3 //fixed\n\
         s_cbranch_scc1 .Lplace\n",
    ),
    (
        "second_way_is_shorter",
        "v_mov_b32_e32 v1, v2\ns_cbranch_scc1 .Lplace\ns_nop 1\ns_branch .Lplace\n.Lplace:\ns_nop 0 //fixed\n\
         v_mov_b32_dpp v3, v1 quad_perm:[0,0,0,0] row_mask:0xf bank_mask:0xf\n",
    ),
];

fn path_kernels(is_mended: bool) -> Vec<Kernel> {
    let kernel = |(name, code): &(&str, &str)| {
        let lines = code.lines().filter(|line| is_mended || !line.ends_with(" //fixed"));
        let code: String = lines.map(|line| format!("{}\n", line.trim_end_matches(" //fixed"))).collect();
        let code = format!("{name}:\n{code}s_nop 7\ns_endpgm\n").replace(".Lplace", &format!(".L{name}_place"));
        Kernel { name: (*name).to_owned(), code }
    };
    ON_ONE_PATH.iter().map(kernel).collect()
}

#[test]
fn the_path_with_the_fewest_wait_states_counts() {
    let Some(bench) = Workbench::with_llvm(24, "distances on paths") else { return };
    for (is_mended, expected) in [(false, ON_ONE_PATH.len()), (true, 0)] {
        let [_, (_, made)] = assemble_for(&bench, "gfx90a", "paths", &path_kernels(is_mended));
        let found: BTreeSet<String> = lint_object(&made)
            .unwrap()
            .into_iter()
            .filter(|one| one.rule.id == "hazard")
            .filter_map(|one| one.function)
            .collect();
        assert_eq!(found.len(), expected, "mended: {is_mended}: {found:?}");
    }
}
