//! Clauses over accesses of different scopes, with LLVM 24 as the oracle: kernels that load with every pair of scopes,
//! and with longer sequences of them, are compiled for both steppings. The rewritten code for the first one has the
//! instructions that LLVM emits for it, except for the `s_nop 0` that takes the place of a clause of one member.

mod common;

use common::{SOURCE, TARGET, disassembled, run};
use hotswap_userland::{Workbench, say};
use std::fmt::Write;

/// Scopes of synchronization in LLVM IR; `None` is a load that is not atomic.
const SCOPES: [Option<&str>; 7] = [
    None,
    Some("singlethread"),
    Some("wavefront"),
    Some("workgroup"),
    Some("cluster"),
    Some("agent"),
    // The system has no name.
    Some(""),
];

/// The pairs of the five scopes that a program can name, with the workgroup twice: LLVM splits those that differ.
const NAMED: [usize; 5] = [2, 3, 4, 5, 6];
const SPLIT_PAIRS: usize = 18;

fn load(number: usize, scope: Option<&str>) -> String {
    let address = format!("  %g{number} = getelementptr i8, ptr addrspace(1) %p, i64 {}\n", 4 * number);
    let value = match scope {
        None => format!("load i32, ptr addrspace(1) %g{number}"),
        Some("") => format!("load atomic i32, ptr addrspace(1) %g{number} monotonic"),
        Some(scope) => format!("load atomic i32, ptr addrspace(1) %g{number} syncscope(\"{scope}\") monotonic"),
    };
    format!("{address}  %a{number} = {value}, align 4\n")
}

/// A kernel that stores the sum of its loads.
fn kernel(name: &str, scopes: &[usize]) -> String {
    let mut text = format!(
        "define amdgpu_kernel void @{name}(ptr addrspace(1) %q, ptr addrspace(1) %r) {{\n  \
         %i = call i32 @llvm.amdgcn.workitem.id.x()\n  %z = zext i32 %i to i64\n  \
         %p = getelementptr [256 x i8], ptr addrspace(1) %q, i64 %z\n  \
         %o = getelementptr [256 x i8], ptr addrspace(1) %r, i64 %z\n"
    );
    scopes.iter().enumerate().for_each(|(number, scope)| text += &load(number, SCOPES[*scope]));
    let mut sum = String::from("%a0");
    for number in 1..scopes.len() {
        let _ = writeln!(text, "  %s{number} = add i32 {sum}, %a{number}");
        sum = format!("%s{number}");
    }
    let _ = write!(text, "  store i32 {sum}, ptr addrspace(1) %o\n  ret void\n}}\n");
    text
}

/// Every pair, and sequences of three to nine scopes from a fixed generator.
fn sequences() -> Vec<Vec<usize>> {
    let pairs = (0..SCOPES.len()).flat_map(|first| (0..SCOPES.len()).map(move |second| vec![first, second]));
    let mut state = 7_u64;
    let mut next = move |bound: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % bound
    };
    // Repeats are likely, so that runs of one scope occur.
    const LIKELY: [usize; 8] = [0, 0, 0, 4, 5, 5, 6, 6];
    let longer = (0..80).map(|_| (0..3 + next(7)).map(|_| LIKELY[next(LIKELY.len())]).collect());
    let longer: Vec<Vec<usize>> = longer.collect();
    pairs.chain(longer).collect()
}

/// Lines of code by kernel, without `s_nop 0`.
fn by_kernel(lines: &[String]) -> Vec<(String, Vec<&str>)> {
    let mut kernels: Vec<(String, Vec<&str>)> = Vec::new();
    for line in lines {
        match (line.strip_suffix(">:"), kernels.last_mut()) {
            (Some(name), _) => kernels.push((name.to_owned(), Vec::new())),
            (None, Some((_, code))) if line != "s_nop 0" && line != "s_code_end" => code.push(line),
            _ => {}
        }
    }
    kernels
}

#[test]
fn clauses_are_split_as_llvm_splits_them() {
    let Some(bench) = Workbench::new("clauses") else { return };
    let sequences = sequences();
    let mut text = String::from("target triple = \"amdgcn-amd-amdhsa\"\ndeclare i32 @llvm.amdgcn.workitem.id.x()\n");
    sequences.iter().enumerate().for_each(|(number, scopes)| text += &kernel(&format!("k{number}"), scopes));
    bench.write("scopes.ll", text.as_bytes());
    bench.run(&format!(
        "for cpu in {SOURCE} {TARGET}; do llc-24 -mcpu=$cpu -filetype=obj scopes.ll -o $cpu.o && \
         ld.lld-24 -shared $cpu.o -o $cpu.co || exit 1; done"
    ));
    let rewritten = run(&bench.read(&format!("{SOURCE}.co")), false).unwrap();
    let theirs = bench.read(&format!("{TARGET}.co"));
    let lines = disassembled(&bench, &[("ours".to_owned(), rewritten.bytes), ("theirs".to_owned(), theirs)]);
    let [ours, theirs] = [by_kernel(&lines[0]), by_kernel(&lines[1])];
    assert_eq!((ours.len(), theirs.len()), (sequences.len(), sequences.len()));
    for ((ours, theirs), scopes) in ours.iter().zip(&theirs).zip(&sequences) {
        assert_eq!(ours, theirs, "{scopes:?}");
    }
    let is_whole = |scopes: &Vec<usize>, code: &[&str]| scopes.len() == 2 && code.contains(&"s_clause 0x1");
    let named = |scopes: &Vec<usize>| scopes.len() == 2 && scopes.iter().all(|scope| NAMED.contains(scope));
    let pairs = || sequences.iter().zip(&theirs).filter(|(scopes, _)| named(scopes));
    let split = pairs().filter(|(scopes, (_, code))| !is_whole(scopes, code)).count();
    assert_eq!((pairs().count(), split), (25, SPLIT_PAIRS));
    let changed = rewritten.record.functions.len();
    say(&format!(
        "clauses: {} kernels are as LLVM has them, {changed} of them changed, {split} of 25 pairs",
        ours.len()
    ));
}
