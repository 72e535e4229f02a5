//! LDS of functions that were compiled apart from the kernels that reach them.

mod common;

use common::{check_pair, compiler, make_pair};
use hotswap_device_link::{BoundObject, LinkReport, bind, import_stub, raise_kernels};
use hotswap_device_symbols::note::{table_of, with_exports};
use hotswap_report::Severity;
use hotswap_userland::{Workbench, say, tool};
use std::collections::BTreeSet;

const KERNELS: &str = r#"
#define DEVICE __attribute__((device, noinline))
extern "C" DEVICE int uses_lds(int n);
extern "C" DEVICE int takes_pointer(int *p, int n);
extern "C" __attribute__((global)) void k_none(int *p) { p[0] = uses_lds(p[1]); }
extern "C" __attribute__((global)) void k_some(int *p) {
  __attribute__((shared)) static int own[200];
  own[p[2]] = p[3];
  __builtin_amdgcn_s_barrier();
  p[0] = uses_lds(p[1]) + own[p[4]];
}
extern "C" __attribute__((global)) void k_pointer(int *p) {
  __attribute__((shared)) static int own[200];
  p[0] = takes_pointer(own, p[1]);
}
"#;

const LIBRARY: &str = r#"
#define DEVICE __attribute__((device, noinline))
extern "C" DEVICE int uses_lds(int n) {
  __attribute__((shared)) static int buffer[100];
  buffer[n] = n;
  __builtin_amdgcn_s_barrier();
  return buffer[n ^ 1];
}
extern "C" DEVICE int takes_pointer(int *p, int n) { p[n] = n; return p[n ^ 1]; }
"#;

const OWN_KERNELS: &str = r#"
extern "C" __attribute__((global)) void k_own(int *p) { p[0] = uses_lds(p[1]); }
extern "C" __attribute__((global)) void k_more(int *p) {
  __attribute__((shared)) static int more[300];
  more[p[2]] = p[3];
  __builtin_amdgcn_s_barrier();
  p[0] = uses_lds(p[1]) + more[p[4]];
}
"#;

fn report(bench: &Workbench, version: u32, target: &str, library: &str) -> (LinkReport, Vec<u8>) {
    make_pair(bench, version, target, [""; 2], &[KERNELS, library].map(str::to_owned));
    (check_pair(bench), bench.read("native.co"))
}

#[test]
fn lds_of_a_function_counts_for_kernels_of_other_objects() {
    let Some(bench) = Workbench::with_llvm(24, "lds_of_a_function_counts_for_kernels_of_other_objects") else { return };
    for (version, target) in [(23, "gfx90a"), (24, "gfx1030"), (24, "gfx1250")] {
        let (found, linked) = report(&bench, version, target, &format!("{LIBRARY}{OWN_KERNELS}"));
        let short: Vec<_> =
            found.short.iter().map(|one| (&*one.kernel, one.has.lds, one.needs.lds, &*one.forced_by)).collect();
        assert_eq!(short, [("k_none", 0, 400, "uses_lds")], "{version} {target}");
        let told = found.problems()[0].to_string();
        assert!(told.contains("bytes of scratch and 400 of LDS"), "{told}");
        let error = raise_kernels(&linked, &found).unwrap_err();
        assert!(error.code.id == "HS0425" && error.what.contains("no linker lays the LDS of functions out"), "{error}");
        let mixes: Vec<_> = found.mixes.iter().map(|one| one.what.as_str()).collect();
        assert!(
            matches!(mixes[..], [one] if one.contains("kernel `k_some` has 800 bytes of LDS, and `uses_lds`") && one.contains("(library.o) with up to 400")),
            "{version} {target}: {mixes:?}"
        );
    }
}

const USER: &str = r#"
extern "C" __attribute__((device)) int uses_lds(int n);
extern "C" __attribute__((global)) void k_some(int *p) {
  __attribute__((shared)) static int own[200];
  own[p[2]] = p[3];
  __builtin_amdgcn_s_barrier();
  p[0] = uses_lds(p[1]) + own[p[4]];
}
"#;

/// A kernel with enough LDS of its own gets a warning, which stops nothing.
#[test]
fn a_warning_about_lds_does_not_stop_a_binding() {
    let test = "a_warning_about_lds_does_not_stop_a_binding";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    report(&bench, 24, "gfx1030", &format!("{LIBRARY}{OWN_KERNELS}"));
    bench.write("user.hip", USER.as_bytes());
    bench.run(&format!("{} -fno-offload-lto -c user.hip -o user.o", compiler(24, "gfx1030")));
    bench.write("stub.o", &import_stub("uses_lds", &bench.read("user.o")).unwrap());
    let lld = tool(24, "ld.lld");
    bench.run(&format!("{lld} -shared user.o stub.o -o user.co && {lld} -shared library.o -o library.co"));
    let (library, _) = with_exports(&bench.read("library.co"), &BTreeSet::from(["uses_lds".to_owned()])).unwrap();
    let user = bench.read("user.co");
    let tables = [&user, &library].map(|bytes| table_of(bytes).unwrap().0);
    let object = |number: usize, bytes| BoundObject { name: number.to_string(), bytes, table: &tables[number] };
    let binding = bind(&object(0, &user), &[object(1, &library)]).unwrap();
    let told: Vec<_> = binding.problems().iter().map(|one| (one.code.id, one.severity)).collect();
    assert_eq!(told, [("HS0426", Severity::Warning)], "{:?}", binding.problems());
    assert!(binding.prepared_file(&user).is_ok_and(|made| made.len() >= user.len()));
}

/// Without a kernel in its object, the compiler has no place for a function's LDS.
#[test]
fn a_function_with_a_trap_for_its_lds_is_told() {
    let Some(bench) = Workbench::with_llvm(24, "a_function_with_a_trap_for_its_lds_is_told") else { return };
    for target in ["gfx942", "gfx1100", "gfx1201"] {
        let (found, _) = report(&bench, 24, target, LIBRARY);
        let mixes: Vec<_> = found.mixes.iter().map(|one| (one.code.id, one.what.as_str())).collect();
        assert!(
            matches!(mixes[..], [("HS0426", one)] if one.starts_with("`uses_lds`, which kernel `k_none` reaches, uses LDS")),
            "{target}: {mixes:?}"
        );
        assert!(found.short.iter().all(|one| one.has.lds == one.needs.lds), "{target}: {:?}", found.short);
        if target == "gfx942" {
            let told = &found.mixes[0];
            say(&format!("exam refused | LDS of a function without a kernel | {} | {} |", told.code.id, told.what));
        }
    }
}

/// A trap of an assertion is none for LDS.
#[test]
fn other_traps_are_not_told() {
    let Some(bench) = Workbench::with_llvm(24, "other_traps_are_not_told") else { return };
    let library = LIBRARY.replace("buffer[n] = n;", "if (n > 99) __builtin_trap(); buffer[n] = n;");
    let (found, _) = report(&bench, 24, "gfx1100", &format!("{library}{OWN_KERNELS}"));
    assert!(found.mixes.iter().all(|one| !one.what.contains("trap")), "{:?}", found.mixes);
}

/// The exchange between lanes of `__shfl` uses the hardware of LDS, and none of its memory.
#[test]
fn exchanges_between_lanes_need_no_lds() {
    let Some(bench) = Workbench::with_llvm(24, "exchanges_between_lanes_need_no_lds") else { return };
    let library = r#"
#define DEVICE __attribute__((device, noinline))
extern "C" DEVICE int uses_lds(int n) {
  return __builtin_amdgcn_ds_bpermute(n * 4, n) + __builtin_amdgcn_ds_permute(n, 7) + __builtin_amdgcn_ds_swizzle(n, 31);
}
extern "C" DEVICE int takes_pointer(int *p, int n) { p[n] = n; return p[n ^ 1]; }
extern "C" __attribute__((global)) void k_more(int *p) {
  __attribute__((shared)) static int more[300];
  more[p[2]] = p[3];
  __builtin_amdgcn_s_barrier();
  p[0] = uses_lds(p[1]) + more[p[4]];
}
"#;
    for (version, target) in [(23, "gfx90a"), (24, "gfx1030"), (24, "gfx1250")] {
        let (found, _) = report(&bench, version, target, library);
        assert!(found.short.iter().all(|one| one.has.lds == one.needs.lds), "{version} {target}: {:?}", found.short);
        assert!(found.mixes.is_empty(), "{version} {target}: {:?}", found.mixes);
    }
}

/// Objects whose LDS the compiler leaves to the linker (`-amdgpu-enable-object-linking`) link nowhere: the page says so. When a linker
/// takes them, this test fails, and the page has to change.
#[test]
fn no_linker_takes_objects_that_leave_their_lds_to_it() {
    let test = "no_linker_takes_objects_that_leave_their_lds_to_it";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    for version in bench.versions.iter().filter(|version| (23..=24).contains(*version)) {
        for target in ["gfx90a", "gfx1030", "gfx1250"] {
            for (library, is_linked) in [(format!("{LIBRARY}{OWN_KERNELS}"), false), (WITHOUT_LDS.to_owned(), true)] {
                bench.write("a.hip", library.as_bytes());
                let linked = bench.shell(&format!(
                    "{} -x hip --offload-arch={target} -nogpuinc -nogpulib --offload-device-only -fgpu-rdc --no-gpu-bundle-output \
                     -fno-offload-lto -mllvm -amdgpu-enable-object-linking -O2 -w -c a.hip -o a.o && {} -shared a.o -o a.co",
                    tool(*version, "clang++"),
                    tool(*version, "ld.lld")
                ));
                let told = String::from_utf8_lossy(&linked.stderr).into_owned();
                assert_eq!(linked.status.success(), is_linked, "clang {version} {target}: {told}");
                assert!(is_linked || told.contains("unknown relocation"), "clang {version} {target}: {told}");
            }
        }
    }
}

const WITHOUT_LDS: &str = r#"
extern "C" __attribute__((device, noinline)) int triple(int n) { return n * 3; }
extern "C" __attribute__((global)) void k_own(int *p) { p[0] = triple(p[1]); }
"#;
