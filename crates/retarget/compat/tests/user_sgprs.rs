//! The oracle of the check `user-sgprs-16` and the family `user_sgpr_count`: code that passes becomes, byte for byte,
//! clang's output for the GPU with LLVM's `user-sgpr-init16-bug`. A kernel that reads a work-group ID, which would move,
//! needs new code; what that does is compared by execution (`tests/prove-exam`, `tests/emulated-hip`).
//!
//! `gfx1101` and `gfx1100` differ in nothing else, nor do `gfx1103` and `gfx1102`. `gfx1103` and `gfx11-generic` also
//! differ in names of the target, so there kernels are compared.

use hotswap_code_object::{CodeObject, same_but_for_label};
use hotswap_compat::{check_object, shifts_to_make};
use hotswap_families::FamilyRegistry;
use hotswap_report::codes;
use hotswap_targets::TargetId;
use hotswap_userland::{Workbench, everything, in_turn, say};

const KERNELS: &str = "\
    #define KERNEL __attribute__((amdgpu_kernel)) void\n\
    #define G __attribute__((address_space(1)))\n\
    #define item() __builtin_amdgcn_workitem_id_x()\n\
    #ifdef ITEM\n\
    KERNEL k(int G *p) { p[item()] = item(); }\n\
    #endif\n\
    #ifdef ARGUMENTS\n\
    KERNEL k(int G *p, float a, long b, int G *q, short c) { p[item()] = a * b + q[__builtin_amdgcn_workitem_id_y()] + c; }\n\
    #endif\n\
    #ifdef SCRATCH\n\
    KERNEL k(int G *p) { volatile int a[16]; for (int i = 0; i < 16; i++) a[i] = p[i]; p[item()] = a[p[0] & 15]; }\n\
    #endif\n\
    #ifdef CALL\n\
    __attribute__((noinline)) int f(int G *p, int n) { return n > 1 ? f(p, n - 1) * p[n] : 1; }\n\
    KERNEL k(int G *p) { p[item()] = f(p, item()); }\n\
    #endif\n\
    #ifdef DISPATCH\n\
    KERNEL k(int G *p) { p[item()] = *(const int __attribute__((address_space(4))) *)__builtin_amdgcn_dispatch_ptr(); }\n\
    #endif\n\
    #ifdef LOOP\n\
    KERNEL k(int G *p, int n) { int s = 0; for (int i = 0; i < n; i++) s += p[i * 7] * p[i + 3]; p[item()] = s; }\n\
    #endif\n\
    #ifdef LDS\n\
    extern __attribute__((address_space(3))) int t[];\n\
    KERNEL k(int G *p) { t[item()] = p[item()]; __builtin_amdgcn_s_barrier(); p[item()] = t[63 - item()]; }\n\
    #endif\n\
    #ifdef TWO\n\
    KERNEL k(int G *p) { p[item()] = 1; }\n\
    KERNEL other(int G *p) { p[item()] = 2; }\n\
    #endif\n\
    #ifdef GROUP\n\
    KERNEL k(int G *p) { p[__builtin_amdgcn_workgroup_id_x()] = 1; }\n\
    #endif\n\
    #ifdef GROUPS\n\
    KERNEL k(int G *p) { p[item()] = 1; }\n\
    KERNEL other(int G *p) { p[__builtin_amdgcn_workgroup_id_y() + __builtin_amdgcn_workgroup_id_z()] = 1; }\n\
    #endif\n";

/// Kernels that read no system SGPR when optimised, and those that do.
const FREE: &[&str] = &["ITEM", "ARGUMENTS", "SCRATCH", "CALL", "DISPATCH", "LOOP", "LDS", "TWO"];
const BOUND: &[&str] = &["GROUP", "GROUPS"];
/// Each clang uses one of them in rotation, with `--everything` each.
const LEVELS: &[&str] = &["-O2", "-O1", "-O3"];
const PAIRS: &[(&str, &str)] = &[("gfx1101", "gfx1100"), ("gfx1103", "gfx1102"), ("gfx1103", "gfx11-generic")];

fn compile(bench: &Workbench, (version, words): (u32, &str), processor: &str, name: &str) -> Vec<u8> {
    bench.run(&format!(
        "clang-{version} --target=amdgcn-amd-amdhsa -mcpu={processor} -mcode-object-version=6 -nogpulib -w {words} -D{name} \
         kernels.c -o object"
    ));
    bench.read("object")
}

/// Kernels according to metadata and descriptors, and the instructions.
fn parts<'o>(object: &'o CodeObject<'_>) -> (Vec<String>, Vec<&'o [u8]>, Vec<&'o [u8]>) {
    let descriptors = object.descriptors().iter();
    // The position of the entry depends on the length of the note.
    let descriptors = descriptors.flat_map(|descriptor| {
        let bytes = &object.bytes()[descriptor.range.clone()];
        [&bytes[..16], &bytes[24..]]
    });
    let code = object.sections().iter().filter(|section| section.name == ".text");
    let kernels = object.note().kernels.iter().map(|kernel| format!("{kernel:?}"));
    (kernels.collect(), descriptors.collect(), code.map(|section| &object.bytes()[section.range.clone()]).collect())
}

/// The number of kernels that were changed, or the fault.
fn judge(old: &[u8], own: &[u8], target: &str) -> Result<u64, String> {
    let object = CodeObject::parse(old).map_err(|error| error.to_string())?;
    let target_id: TargetId = target.parse().unwrap();
    check_object(&object, &target_id).map_err(|found| found[0].to_string())?;
    let (made, counts) =
        FamilyRegistry::installed().apply_families(&object, &target_id).map_err(|error| error.to_string())?;
    let (new, own_object) = (CodeObject::parse(&made).unwrap(), CodeObject::parse(own).unwrap());
    same_but_for_label(&object, &new)?;
    if parts(&new) != parts(&own_object) {
        return Err("kernels differ from clang's".to_owned());
    }
    if !target.ends_with("generic") && made != own {
        return Err("bytes differ from clang's".to_owned());
    }
    let (again, _) = FamilyRegistry::installed().apply_families(&new, &target_id).unwrap();
    if again != made {
        return Err("a second run changes something".to_owned());
    }
    Ok(counts.iter().find(|family| family.name == "user_sgpr_count").map_or(0, |family| family.sites))
}

#[test]
fn user_sgprs_are_added_as_clang_adds_them() {
    let Some(bench) = Workbench::new("user SGPRs") else { return };
    bench.write("kernels.c", KERNELS.as_bytes());
    let (mut raised, mut kept, mut wrong) = (0, 0, Vec::new());
    let cases: Vec<_> = PAIRS.iter().flat_map(|pair| FREE.iter().map(move |name| (pair, name))).collect();
    let cases = in_turn("user SGPRs", &cases, &bench.versions, |_| false);
    for (turn, version) in bench.versions.iter().enumerate() {
        let levels = if everything() { LEVELS } else { &LEVELS[turn % LEVELS.len()..][..1] };
        for words in levels.iter().copied().chain(["-O2 -mwavefrontsize64"]) {
            for (_, ((source, target), name)) in cases.iter().filter(|(one, _)| *one == version) {
                let [old, own] = [source, target].map(|processor| compile(&bench, (*version, words), processor, name));
                let kernels = if **name == "TWO" { 2 } else { 1 };
                match judge(&old, &own, target) {
                    Ok(0) if words.contains("64") => kept += 1,
                    Ok(sites) if sites == kernels && !words.contains("64") => raised += sites,
                    other => wrong.push(format!("clang {version} {words} {name} {source}=>{target}: {other:?}")),
                }
            }
        }
    }
    say(&format!("user SGPRs: {raised} kernels raised, {kept} in waves of 64 lanes left, all as clang's own"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(raised > 0 && kept > 0);
}

/// The pair's checks accept kernels that read work-group IDs, because new code at their entries copies these. Without that
/// code the family refuses to raise their counts.
#[test]
fn work_group_ids_that_are_read_need_copies() {
    let Some(bench) = Workbench::new("user SGPRs before work-group IDs") else { return };
    bench.write("kernels.c", KERNELS.as_bytes());
    let target: TargetId = "gfx1102".parse().unwrap();
    for (version, name) in bench.versions.iter().flat_map(|version| BOUND.iter().map(move |name| (version, name))) {
        for words in ["-O0", "-O2"] {
            let old = compile(&bench, (*version, words), "gfx1103", name);
            let object = CodeObject::parse(&old).unwrap();
            check_object(&object, &target).unwrap();
            let shifts = shifts_to_make(&object, &target);
            assert!(shifts.iter().any(|shift| shift.raised + shift.system == 16), "{words} {name}: {shifts:?}");
            let error = FamilyRegistry::installed().apply_families(&object, &target).unwrap_err();
            assert_eq!(error.code, codes::NOT_SAFE, "{words} {name}");
            assert!(error.place.kernel.is_some() && error.to_string().contains("in which the target"), "{error}");
        }
    }
}

/// Its first instruction is the start of a loop, so that new code before it would run again.
const LOOPING: &str = "\
    .amdgcn_target \"amdgcn-amd-amdhsa--gfx1103\"\n\
    .text\n.globl k\n.p2align 8\n.type k,@function\n\
    k:\n s_sub_u32 s2, s2, 1\n s_cmp_lg_u32 s2, 0\n s_cbranch_scc1 k\n s_endpgm\n.size k, .-k\n\
    .rodata\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 1\n.amdhsa_next_free_sgpr 4\n\
    .amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_wavefront_size32 1\n.end_amdhsa_kernel\n\
    .amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.target: amdgcn-amd-amdhsa--gfx1103\namdhsa.kernels:\n\
    - .name: k\n  .symbol: k.kd\n  .kernarg_segment_size: 8\n  .kernarg_segment_align: 8\n\
    \x20 .group_segment_fixed_size: 0\n  .private_segment_fixed_size: 0\n  .wavefront_size: 32\n  .sgpr_count: 4\n\
    \x20 .vgpr_count: 1\n  .max_flat_workgroup_size: 256\n.end_amdgpu_metadata\n";

#[test]
fn a_kernel_that_branches_to_its_first_instruction_is_refused() {
    let Some(bench) = Workbench::new("user SGPRs before a loop") else { return };
    let version = bench.versions[0];
    for (branch, is_refused) in [("s_cbranch_scc1 k\n", true), ("s_nop 0\n", false)] {
        bench.write("looping.s", LOOPING.replace("s_cbranch_scc1 k\n", branch).as_bytes());
        bench.run(&format!(
            "clang-{version} --target=amdgcn-amd-amdhsa -mcpu=gfx1103 -mcode-object-version=5 -nogpulib looping.s -o object"
        ));
        let made = bench.read("object");
        let found = check_object(&CodeObject::parse(&made).unwrap(), &"gfx1102".parse().unwrap());
        let text = found.as_ref().err().map_or_else(String::new, |found| found[0].to_string());
        assert_eq!(text.contains("it branches to its first instruction"), is_refused, "{text}");
        assert_eq!(found.is_err(), is_refused, "{text}");
    }
}

/// Code of -O0 is the same as clang's, too, or it needs copies of work-group IDs.
#[test]
fn unoptimised_code_is_clangs_own_or_refused() {
    let Some(bench) = Workbench::new("user SGPRs at -O0") else { return };
    bench.write("kernels.c", KERNELS.as_bytes());
    let (mut equal, mut refused) = (0, 0);
    for (version, name) in bench.versions.iter().flat_map(|version| FREE.iter().map(move |name| (version, name))) {
        let [old, own] = ["gfx1103", "gfx1102"].map(|processor| compile(&bench, (*version, "-O0"), processor, name));
        match judge(&old, &own, "gfx1102") {
            Ok(_) => equal += 1,
            Err(why) if why.contains("in which the target does not put them") => refused += 1,
            Err(why) => panic!("clang {version} {name}: {why}"),
        }
    }
    say(&format!("user SGPRs at -O0: {equal} files are clang's own, {refused} need copies"));
}

/// Injected faults: a count that is raised where it must not be, and another count, are detected by the comparison that
/// every output undergoes.
#[test]
fn a_wrong_setup_is_seen() {
    let Some(bench) = Workbench::new("wrong user SGPRs") else { return };
    bench.write("kernels.c", KERNELS.as_bytes());
    let version = bench.versions[0];
    for (name, words, target, count, right) in [
        ("ITEM", "-O2", "gfx1102", 15, true),
        ("ITEM", "-O2", "gfx1102", 14, false),
        ("ITEM", "-O2", "gfx1102", 16, false),
        ("ITEM", "-O2", "gfx1101", 15, false),
        ("ITEM", "-O2 -mwavefrontsize64", "gfx1102", 15, false),
        ("GROUP", "-O2", "gfx1102", 16, false),
        ("ITEM", "-O2", "gfx1102", 2, false),
    ] {
        let old = compile(&bench, (version, words), "gfx1103", name);
        let object = CodeObject::parse(&old).unwrap();
        let mut made = old.clone();
        let flags = CodeObject::parse(&compile(&bench, (version, words), target, name)).unwrap().e_flags();
        made[48..52].copy_from_slice(&flags.to_le_bytes());
        let text = made.windows(7).position(|bytes| bytes == b"gfx1103").unwrap();
        made[text..text + 7].copy_from_slice(target.as_bytes());
        let at = object.descriptors()[0].range.start + 52;
        made[at] = made[at] & !(31 << 1) | count << 1;
        let compared = same_but_for_label(&object, &CodeObject::parse(&made).unwrap());
        assert_eq!(compared.is_ok(), right, "{name} {words} {target} {count}: {compared:?}");
    }
}
