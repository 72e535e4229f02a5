//! `hotswap lint` on clang's output: there are no findings, or they are explained in `lint.explained`.
//!
//! A line of that file is `rule | mnemonic | why`: rules that HotSwap follows and LLVM 24 does not, for code of
//! gfx1250-strict. Every line must be needed.

use hotswap_lint::{compare_with_original, lint_object};
use hotswap_rewrite_exam::assembly::{Kernel, assemble_for};
use hotswap_rewrite_exam::compile::{SOURCE, TARGET};
use hotswap_rewrite_exam::corpus::{Unit, units};
use hotswap_rewrite_exam::exam::run;
use hotswap_userland::{Workbench, everything, one_of_each, say, slice};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A version of clang, a level and a processor.
type Setting = (u32, char, &'static str);

/// Those that units are compiled with.
const SETTINGS: [Setting; 16] = [
    (22, '0', SOURCE),
    (22, '1', SOURCE),
    (22, '2', SOURCE),
    (22, '3', SOURCE),
    (23, '0', SOURCE),
    (23, '1', SOURCE),
    (23, '2', SOURCE),
    (23, '3', SOURCE),
    (24, '0', SOURCE),
    (24, '1', SOURCE),
    (24, '2', SOURCE),
    (24, '3', SOURCE),
    (24, '0', TARGET),
    (24, '1', TARGET),
    (24, '2', TARGET),
    (24, '3', TARGET),
];

/// Units with settings: by default each unit with a quarter of the settings of the source in turn, and with two levels of the
/// target.
fn some<'u>(bench: &Workbench, units: &'u [Unit]) -> Vec<(&'u Unit, Setting)> {
    let mut all = Vec::new();
    for (number, unit) in units.iter().enumerate() {
        for (turn, setting) in SETTINGS.into_iter().enumerate() {
            let is_native = setting.2 == TARGET;
            if bench.versions.contains(&setting.0) && (!is_native || unit.native) {
                let taken = if is_native { turn % 2 == 0 } else { (number + turn / 4 + turn) % 4 == 0 };
                all.push((taken, unit, setting));
            }
        }
    }
    let some = slice("lint of clang's code", all, |_, (taken, ..)| *taken);
    some.into_iter().map(|(_, unit, setting)| (unit, setting)).collect()
}

#[test]
fn what_clang_compiles_has_no_finding_that_is_not_explained() {
    let Some(bench) = Workbench::with_llvm(24, "lint of clang's code") else { return };
    let table = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint.explained")).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#'));
    let explained: BTreeSet<(String, String)> = rows
        .map(|line| {
            let parts: Vec<&str> = line.split(" | ").collect();
            (parts[0].to_owned(), parts[1].to_owned())
        })
        .collect();
    let (mut objects, mut found, mut unexplained) = (0, BTreeMap::<(String, String), usize>::new(), Vec::new());
    let mut not_taken: BTreeMap<u32, usize> = BTreeMap::new();
    for (unit, (version, level, processor)) in some(&bench, &units()) {
        bench.write("unit.c", unit.source().as_bytes());
        let made = bench.shell(&format!(
            "clang-{version} --target=amdgcn-amd-amdhsa -mcpu={processor} -nogpulib -O{level} -w -c unit.c -o unit.o && \
             ld.lld-{version} -shared unit.o -o unit.co || ld.lld-24 -shared unit.o -o unit.co"
        ));
        if !made.status.success() {
            // Builtins that this version lacks, or has with other operands.
            *not_taken.entry(version).or_default() += 1;
            continue;
        }
        objects += 1;
        for finding in lint_object(&bench.read("unit.co")).unwrap() {
            let key = (finding.rule.id.to_owned(), finding.mnemonic.clone().unwrap_or_default());
            if processor == TARGET && explained.contains(&key) {
                *found.entry(key).or_default() += 1;
            } else {
                let name = format!("{} clang {version} -O{level} {processor}", unit.name);
                unexplained.push(format!("{name}: {}", finding.to_diagnostic()));
            }
        }
    }
    let counts: Vec<String> = found.iter().map(|((rule, name), count)| format!("{rule} {name} {count}")).collect();
    say(&format!(
        "lint of clang's code: {objects} code objects, {} findings without an explanation; explained: {}; not taken: {not_taken:?}",
        unexplained.len(),
        counts.join(", ")
    ));
    let fewest = if everything() { 100 } else { 80 };
    assert!(objects > fewest && unexplained.is_empty(), "{}", unexplained.join("\n"));
    let needless: Vec<_> = explained.iter().filter(|key| !found.contains_key(*key)).collect();
    assert!(needless.is_empty(), "nothing is found that these lines explain: {needless:?}");
}

/// Sources of this repository that only need HIP's headers.
const HIP_SOURCES: [&str; 7] = [
    "examples/hello-hip/hello.hip",
    "examples/gemm/naive.hip",
    "examples/gemm/tiled.hip",
    "examples/stepping/product.hip",
    "examples/pgo/clamp.hip",
    "crates/retarget/compat/tests/checks/math.hip",
    "crates/retarget/compat/tests/checks/resources.hip",
];

/// GPUs of earlier generations, whose waits are judged.
const OLDER_TARGETS: [&str; 7] = ["gfx900", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1151"];

/// A source, compiled for a GPU by a version of clang at a level.
type ProgramSetting = (&'static str, &'static str, u32, char);

/// Each source for gfx1250 with every version and level, by default with one in turn; each earlier GPU with every source that it can
/// have, by default with one in turn.
fn program_settings(versions: &[u32]) -> Vec<ProgramSetting> {
    let compilers: Vec<(u32, char)> = versions.iter().flat_map(|one| ['0', '3'].map(|level| (*one, level))).collect();
    let current =
        HIP_SOURCES.into_iter().flat_map(|source| compilers.iter().map(move |one| (source, SOURCE, one.0, one.1)));
    let mut all = one_of_each("lint of HIP programs", current.collect(), |(source, ..)| *source, |_| false);
    let mut older: Vec<ProgramSetting> = Vec::new();
    for (target, turn) in
        OLDER_TARGETS.into_iter().flat_map(|target| (0..compilers.len()).map(move |turn| (target, turn)))
    {
        let sources = HIP_SOURCES.into_iter().filter(|source| !source.contains("/stepping/"));
        older.extend(sources.enumerate().map(|(number, source)| {
            let (version, level) = compilers[(turn + number + 1) % compilers.len()];
            (source, target, version, level)
        }));
    }
    all.extend(one_of_each("lint of HIP programs for earlier GPUs", older, |(_, target, ..)| *target, |_| false));
    all
}

#[test]
fn hip_programs_have_no_finding() {
    let Some(bench) = Workbench::new("lint of HIP programs") else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for header in ["examples/gemm/epilogue.h", "examples/gemm/gemm.h"] {
        bench.write(header.rsplit('/').next().unwrap(), &fs::read(root.join(header)).unwrap());
    }
    let versions: Vec<u32> = [22, 23, 24].into_iter().filter(|version| bench.versions.contains(version)).collect();
    let (mut objects, mut findings) = (0, Vec::new());
    for (source, target, version, level) in program_settings(&versions) {
        bench.write("program.hip", &fs::read(root.join(source)).unwrap());
        let rocm = if version > 22 { "${ROCM:+--rocm-path=$ROCM}" } else { "" };
        bench.run(&format!(
            "clang++-{version} {rocm} --offload-arch={target} --cuda-device-only --no-gpu-bundle-output \
             -O{level} -g -w -c program.hip -o program.co"
        ));
        objects += 1;
        let found = lint_object(&bench.read("program.co")).unwrap();
        findings.extend(
            found.iter().map(|one| format!("{source} clang {version} -O{level} {target}: {}", one.to_diagnostic())),
        );
    }
    say(&format!("lint of HIP programs: {objects} code objects, {} findings", findings.len()));
    let fewest = if everything() { HIP_SOURCES.len() * 2 } else { HIP_SOURCES.len() + OLDER_TARGETS.len() };
    assert!(objects >= fewest && findings.is_empty(), "{}", findings.join("\n"));
}

/// Scopes, and accesses of each kind that a clause may hold.
const SCOPES: [&str; 4] = ["", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS"];
const ACCESSES: [&str; 7] = [
    "s_load_b32 s{}, s[0:1], 0x0",
    "global_load_b32 v{}, v[2:3], off",
    "global_store_b32 v[2:3], v{}, off",
    "flat_load_b32 v{}, v[2:3]",
    "scratch_load_b32 v{}, off, s1",
    "buffer_load_b32 v{}, off, s[4:7], s1",
    "global_load_async_to_lds_b32 v{}, v[2:3], off",
];

/// A kernel for each access with each pair of scopes in a clause, and whether the two are different.
fn clauses_of_two() -> Vec<(Kernel, bool)> {
    let mut kernels = Vec::new();
    for (number, access) in ACCESSES.iter().enumerate() {
        let member = |register: &str, scope: usize| access.replace("{}", register) + SCOPES[scope] + "\n";
        for (first, second) in (0..4).flat_map(|first| (0..4).map(move |second| (first, second))) {
            let name = format!("k{number}_{first}_{second}");
            let members = member("8", first) + &member("9", second);
            let code = format!("{name}:\ns_clause 0x1\n{members}s_wait_idle\ns_endpgm\n");
            kernels.push((Kernel { name, code }, first != second));
        }
    }
    kernels
}

#[test]
fn clauses_of_two_scopes_are_found_for_the_target_and_mended_by_a_rewrite() {
    let Some(bench) = Workbench::with_llvm(24, "lint of clauses") else { return };
    let (kernels, differ): (Vec<Kernel>, Vec<bool>) = clauses_of_two().into_iter().unzip();
    // Unchanged code of the source under the target's name: the fault that the rule is there for.
    let [_, (_, planted)] = assemble_for(&bench, TARGET, "planted", &kernels);
    let found: BTreeSet<String> = lint_object(&planted)
        .unwrap()
        .into_iter()
        .filter(|one| one.rule.id == "clause")
        .filter_map(|one| one.function)
        .collect();
    let named = kernels.iter().zip(&differ).filter(|(_, differ)| **differ).map(|(kernel, _)| kernel.name.clone());
    assert_eq!(found, named.collect::<BTreeSet<_>>());
    let [_, (_, original)] = assemble_for(&bench, SOURCE, "original", &kernels);
    assert!(lint_object(&original).unwrap().is_empty(), "the source has no such rule");
    let made = run(&original, false).unwrap().bytes;
    assert_eq!(lint_object(&made).unwrap(), []);
    assert_eq!(compare_with_original(&original, &made).unwrap().findings, []);
    say(&format!("lint of clauses: {} of {} clauses found, none after the rewrite", found.len(), kernels.len()));
}

#[test]
fn a_wait_for_stores_is_in_clauses_where_llvm_inserts_it() {
    let Some(bench) = Workbench::with_llvm(24, "lint of waits in clauses") else { return };
    let code = "waits:\ns_clause 0x1\ns_waitcnt_vscnt null, 0x0\nglobal_load_dword v1, v[2:3], off\ns_endpgm\n";
    let kernel = Kernel { name: "waits".to_owned(), code: code.to_owned() };
    for (target, count) in [("gfx1010", 0), ("gfx1030", 1)] {
        let [_, (_, made)] = assemble_for(&bench, target, "waits", std::slice::from_ref(&kernel));
        let found = lint_object(&made).unwrap();
        assert_eq!(found.iter().filter(|one| one.rule.id == "clause").count(), count, "{target}: {found:?}");
    }
}

/// Loads into halves of registers for GFX12, and the register that is used too early.
const HALVES: [(&str, &str, Option<&str>); 4] = [
    ("both_halves", "global_load_d16_b16 v1, v[2:3], off\nglobal_load_d16_hi_b16 v1, v[2:3], off offset:2\n", None),
    ("address", "global_load_b32 v2, v[4:5], off\nglobal_load_d16_hi_b16 v2, v[2:3], off\n", Some("v2")),
    ("other_counter", "ds_load_b32 v1, v0\nglobal_load_d16_hi_b16 v1, v[2:3], off\n", Some("v1")),
    ("value", "global_load_d16_hi_b16 v1, v[2:3], off\nv_mov_b32 v4, v1\n", Some("v1")),
];

#[test]
fn loads_into_halves_are_in_order_with_their_own_counter_alone() {
    let Some(bench) = Workbench::with_llvm(24, "lint of halves") else { return };
    let kernel = |(name, code, _): &(&str, &str, Option<&str>)| {
        let code = format!("{name}:\n{code}s_wait_loadcnt 0x0\ns_wait_dscnt 0x0\nv_mov_b32 v6, v1\ns_endpgm\n");
        Kernel { name: (*name).to_owned(), code }
    };
    let kernels: Vec<Kernel> = HALVES.iter().map(kernel).collect();
    let [_, (_, made)] = assemble_for(&bench, "gfx1201", "halves", &kernels);
    let found: BTreeMap<String, String> =
        lint_object(&made).unwrap().into_iter().map(|one| (one.function.unwrap_or_default(), one.reason)).collect();
    for (name, _, register) in HALVES {
        let reason = found.get(name).map(String::as_str);
        let expected = register.map(|register| format!("{register} is used before"));
        assert_eq!(reason.is_some(), expected.is_some(), "{name}: {reason:?}");
        assert!(
            reason.zip(expected).is_none_or(|(reason, expected)| reason.starts_with(&expected)),
            "{name}: {reason:?}"
        );
    }
}

/// Instructions after a V_PERM_PK16: as assembly, and as LLVM's machine instruction.
const AFTER_PERMUTATION: [(&str, &str); 17] = [
    ("v_mov_b32 v10, v11", "$vgpr10 = V_MOV_B32_e32 $vgpr11, implicit $exec"),
    ("v_lshlrev_b32 v10, 2, v11", "$vgpr10 = V_LSHLREV_B32_e64 2, $vgpr11, implicit $exec"),
    ("v_exp_f32 v10, v11", "$vgpr10 = V_EXP_F32_e32 $vgpr11, implicit $mode, implicit $exec"),
    ("v_mul_lo_u32 v10, v11, v12", "$vgpr10 = V_MUL_LO_U32_e64 $vgpr11, $vgpr12, implicit $exec"),
    ("v_mul_hi_u32 v10, v11, v12", "$vgpr10 = V_MUL_HI_U32_e64 $vgpr11, $vgpr12, implicit $exec"),
    ("v_readfirstlane_b32 s10, v11", "$sgpr10 = V_READFIRSTLANE_B32 $vgpr11, implicit $exec"),
    ("v_cmp_eq_u32 vcc_lo, v11, v12", "V_CMP_EQ_U32_e32 $vgpr11, $vgpr12, implicit-def $vcc, implicit $exec"),
    (
        "v_cmp_eq_u64 s10, v[12:13], v[14:15]",
        "$sgpr10 = V_CMP_EQ_U64_e64 $vgpr12_vgpr13, $vgpr14_vgpr15, implicit $exec",
    ),
    (
        "v_add_f64 v[10:11], v[12:13], v[14:15]",
        "$vgpr10_vgpr11 = V_ADD_F64_e64 0, $vgpr12_vgpr13, 0, $vgpr14_vgpr15, 0, 0, implicit $mode, implicit $exec",
    ),
    (
        "v_cvt_f32_f64 v10, v[12:13]",
        "$vgpr10 = V_CVT_F32_F64_e64 0, $vgpr12_vgpr13, 0, 0, implicit $mode, implicit $exec",
    ),
    (
        "v_lshlrev_b64 v[10:11], 2, v[12:13]",
        "$vgpr10_vgpr11 = V_LSHLREV_B64_pseudo_e64 2, $vgpr12_vgpr13, implicit $exec",
    ),
    ("v_mov_b64 v[10:11], v[12:13]", "$vgpr10_vgpr11 = V_MOV_B64_e32 $vgpr12_vgpr13, implicit $exec"),
    (
        "v_pk_add_f32 v[10:11], v[12:13], v[14:15]",
        "$vgpr10_vgpr11 = V_PK_ADD_F32 8, $vgpr12_vgpr13, 8, $vgpr14_vgpr15, 0, 0, 0, 0, 0, implicit $mode, implicit $exec",
    ),
    (
        "v_mov_b32_dpp v10, v11 quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf",
        "$vgpr10 = V_MOV_B32_dpp $vgpr10, $vgpr11, 0, 15, 15, 0, implicit $exec",
    ),
    (
        "v_perm_pk16_b4_u4 v[10:11], v2, v3, v[4:5]",
        "$vgpr10_vgpr11 = V_PERM_PK16_B4_U4_e64 $vgpr2, $vgpr3, $vgpr4_vgpr5, implicit $exec",
    ),
    ("s_mov_b32 s10, 0", "$sgpr10 = S_MOV_B32 0"),
    ("global_load_b32 v10, v[12:13], off", "$vgpr10 = GLOBAL_LOAD_DWORD $vgpr12_vgpr13, 0, 0, implicit $exec"),
];

/// LLVM's own hazard recognizer says which of them need a `v_nop`.
fn needs_nop(bench: &Workbench) -> Vec<bool> {
    let body = |(number, (_, mir)): (usize, &(&str, &str))| {
        let first = "$vgpr0_vgpr1 = V_PERM_PK16_B4_U4_e64 $vgpr2, $vgpr3, $vgpr4_vgpr5, implicit $exec";
        format!("---\nname: k{number}\nbody: |\n  bb.0:\n    {first}\n    {mir}\n    S_ENDPGM 0\n...\n")
    };
    let text: String = AFTER_PERMUTATION.iter().enumerate().map(body).collect();
    bench.write("after.mir", text.as_bytes());
    bench.run(&format!(
        "llc-24 -mtriple=amdgcn-amd-amdhsa -mcpu={TARGET} -run-pass post-RA-hazard-rec after.mir -o after.out"
    ));
    let made = String::from_utf8(bench.read("after.out")).unwrap();
    let next_is_nop = |function: &str| {
        let first = function.lines().skip_while(|line| !line.contains("V_PERM_PK16")).nth(1);
        first.is_some_and(|line| line.contains("V_NOP"))
    };
    made.split("\nname:").skip(1).map(next_is_nop).collect()
}

#[test]
fn instructions_after_a_permutation_are_judged_as_llvm_judges_them() {
    let Some(bench) = Workbench::with_llvm(24, "lint of permutations") else { return };
    let expected = needs_nop(&bench);
    let kernel = |(number, (code, _)): (usize, &(&str, &str))| {
        let name = format!("k{number}");
        let first = "v_perm_pk16_b4_u4 v[0:1], v2, v3, v[4:5]";
        // Only the first of two permutations is followed by the row's instruction.
        Kernel { code: format!("{name}:\n{first}\n{code}\nv_nop\ns_wait_idle\ns_endpgm\n"), name }
    };
    let kernels: Vec<Kernel> = AFTER_PERMUTATION.iter().enumerate().map(kernel).collect();
    let [_, (_, made)] = assemble_for(&bench, TARGET, "permutations", &kernels);
    let found: BTreeSet<String> = lint_object(&made)
        .unwrap()
        .into_iter()
        .filter(|one| one.rule.id == "hazard" && one.reason.contains("perm-pk16-next"))
        .filter_map(|one| one.function)
        .collect();
    assert_eq!(expected.len(), kernels.len());
    for ((kernel, needs), (code, _)) in kernels.iter().zip(&expected).zip(AFTER_PERMUTATION) {
        assert_eq!(found.contains(&kernel.name), *needs, "{code}");
    }
    let needy = expected.iter().filter(|needs| **needs).count();
    say(&format!("lint of permutations: {needy} of {} instructions need a v_nop, as LLVM has it", expected.len()));
}
