//! A check of the checks: LLVM's own code for the target passes them all, its code for the source does not.

use hotswap_rewrite_exam::compile::{self, Form, Setting};
use hotswap_rewrite_exam::corpus::units;
use hotswap_rewrite_exam::judge::{Answer, judge};
use hotswap_userland::{Workbench, say};

/// Clang's code for one processor, disassembled.
fn listed(bench: &Workbench, name: &str) -> Answer {
    let code = bench.run(&format!("llvm-objdump-24 -d {name}"));
    Answer { code, elf: String::new(), complaints: String::new() }
}

#[test]
fn llvms_own_code_for_the_target_passes_and_its_code_for_the_source_does_not() {
    let Some(bench) = Workbench::with_llvm(24, "checks of rewritten code") else { return };
    let (mut lines, mut pairs, mut seen) = (0, 0, Vec::new());
    for unit in units() {
        // Code that is not optimized is long and slow to judge; a few units of it are enough here.
        let levels: &[char] =
            if ["cluster", "control", "matrix_common_used"].contains(&&*unit.name) { &['0', '2'] } else { &['2'] };
        for &level in levels {
            let setting = Setting { version: 24, level, debug: false };
            let objects = compile::compile(&bench, &unit, setting, &[Form::Relocatable]);
            seen.extend(judge(&listed(&bench, &objects[0].name), true).problems);
            let Some(code) = compile::native(&bench, &unit, setting) else { continue };
            let verdict = judge(&Answer { code, elf: String::new(), complaints: String::new() }, false);
            assert!(verdict.problems.is_empty(), "{}:\n{}", objects[0].name, verdict.problems.join("\n"));
            lines += verdict.lines;
            pairs += verdict.distances.pairs;
        }
    }
    for what in [
        "too near: ",
        "not on the target: ",
        "f8f6f4 without scales",
        "conversion of UE5M3",
        "the mask in m0",
        "the mask in s",
        "LDS at M0",
        "the base of scratch",
        "without two v_nop",
        "too near to a call or return",
    ] {
        assert!(seen.iter().any(|problem| problem.contains(what)), "nothing of the source breaks the rule: {what}");
    }
    say(&format!(
        "checks of rewritten code: {lines} instructions and {pairs} distances of LLVM's own pass; {} problems of the source are seen",
        seen.len()
    ));
}
