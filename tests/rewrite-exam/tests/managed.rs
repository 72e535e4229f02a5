//! Waits for vector registers under SCHED_MODE, and before reads of the wave's state: clang's own code has them, and without them
//! `hotswap lint` finds what is missing.

use hotswap_lint::lint_object;
use hotswap_rewrite_exam::compile::{SOURCE, TARGET};
use hotswap_rewrite_exam::corpus::units;
use hotswap_userland::{Workbench, say, slice};

/// Reads of STATUS, STATE_PRIV, EXCP_FLAG_PRIV and EXCP_FLAG_USER, and of MODE, which changes with no instruction in flight.
const STATE: &str = "\
    #define READ(number) __builtin_amdgcn_s_getreg(31 << 11 | number)\n\
    __attribute__((amdgpu_kernel)) void state(int *p, float a) {\n\
        p[0] = a * 3; p[1] = READ(2); p[2] = READ(4); p[3] = READ(17); p[4] = READ(18); p[5] = READ(1);\n\
    }\n";
const READS: usize = 4;

/// The findings of rows of the hazard table in code of clang 24: as it is, and without its `s_wait_alu`, where clang reads its own
/// text again.
fn findings(bench: &Workbench, source: &str, (processor, words): (&str, &str)) -> [Vec<String>; 2] {
    bench.write("unit.c", source.as_bytes());
    let clang = format!("clang-24 --target=amdgcn-amd-amdhsa -mcpu={processor} -w");
    bench.run(&format!(
        "{clang} -nogpulib -O3 {words} -S unit.c -o unit.s && {clang} -nogpulib -O3 {words} unit.c -o unit"
    ));
    let code = String::from_utf8(bench.read("unit.s")).unwrap();
    let stripped: String = code.lines().map(|line| without_wait(line) + "\n").collect();
    bench.write("stripped.s", stripped.as_bytes());
    let made = bench.shell(&format!("{clang} -c stripped.s -o stripped.o && ld.lld-24 -shared stripped.o -o stripped"));
    let stripped = if made.status.success() { hazards(&bench.read("stripped")) } else { Vec::new() };
    [hazards(&bench.read("unit")), stripped]
}

fn hazards(object: &[u8]) -> Vec<String> {
    let found = lint_object(object).unwrap().into_iter();
    found.filter(|one| one.rule.id == "hazard").map(|one| one.to_diagnostic().to_string()).collect()
}

fn without_wait(line: &str) -> String {
    if line.trim_start().starts_with("s_wait_alu") { "\ts_nop 0".to_owned() } else { line.to_owned() }
}

fn count_row(findings: &[String], row: &str) -> usize {
    findings.iter().filter(|finding| finding.contains(row)).count()
}

#[test]
fn clangs_waits_under_sched_mode_are_complete_and_needed() {
    let Some(bench) = Workbench::with_llvm(24, "waits under SCHED_MODE") else { return };
    let units = units();
    let some = slice("waits under SCHED_MODE", units.iter().collect(), |number, _| number % 3 == 0);
    let (mut wrong, mut missed) = (Vec::new(), [0; 2]);
    for unit in &some {
        let [whole, stripped] = findings(&bench, &unit.source(), (SOURCE, "-mllvm -amdgpu-expert-scheduling-mode"));
        wrong.extend(whole.into_iter().map(|finding| format!("{}: {finding}", unit.name)));
        for (count, row) in missed.iter_mut().zip(["vector-memory-read", "memory-vector-write"]) {
            *count += count_row(&stripped, row);
        }
    }
    say(&format!(
        "waits under SCHED_MODE: {} units, {} findings; without waits {} vector-memory-read, {} memory-vector-write",
        some.len(),
        wrong.len(),
        missed[0],
        missed[1]
    ));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(missed.iter().all(|count| *count > 0), "{missed:?}");
}

#[test]
fn reads_of_the_waves_state_are_waited_for() {
    let Some(bench) = Workbench::with_llvm(24, "reads of the wave's state") else { return };
    for processor in [SOURCE, TARGET] {
        let [whole, stripped] = findings(&bench, STATE, (processor, ""));
        assert_eq!(whole, Vec::<String>::new(), "{processor}");
        assert_eq!(count_row(&stripped, "getreg-idle"), READS, "{processor}: {stripped:?}");
    }
}
