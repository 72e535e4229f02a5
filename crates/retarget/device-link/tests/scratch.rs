//! Scratch without a known bound: recursion, calls through pointers, hidden frames. The part that is known is compared and written, and
//! the stack is dynamic where LTO makes it so.

mod common;

use common::{check_pair, compiler, make_pair};
use hotswap_code_object::CodeObject;
use hotswap_code_object::kernel_descriptor::{DYNAMIC_STACK, KernelDescriptor, SCRATCH};
use hotswap_device_link::{LinkReport, raise_kernels};
use hotswap_userland::{Workbench, say, tool};

const KERNELS: &str = r#"
extern "C" __attribute__((device)) int again(int);
extern "C" __attribute__((device)) int ping(int);
extern "C" __attribute__((device)) int pointed(int, int);
extern "C" __attribute__((global)) void k_again(int *p) { p[0] = again(p[1]); }
extern "C" __attribute__((global)) void k_ping(int *p) { p[0] = ping(p[1]); }
extern "C" __attribute__((global)) void k_pointed(int *p) { p[0] = pointed(p[1], p[2]); }
"#;

const LIBRARY: &str = r#"
#define DEVICE extern "C" __attribute__((device, noinline))
DEVICE void fill(volatile int *a, int n) { for (int i = 0; i < n; i++) a[i] = i; }
DEVICE int again(int n) { volatile int a[1000]; fill(a, 1000); return n < 1 ? a[n & 7] : again(n - 1) + a[n & 511]; }
DEVICE int pong(int n);
DEVICE int ping(int n) { volatile int a[200]; fill(a, 200); return n < 1 ? a[n & 7] : pong(n - 1) + a[n & 63]; }
DEVICE int pong(int n) { volatile int a[300]; fill(a, 300); return n < 1 ? a[n & 7] : ping(n - 1) + a[n & 63]; }
typedef int (*Function)(int);
__attribute__((device)) Function table[2] = { again, ping };
DEVICE int pointed(int which, int n) { volatile int a[400]; fill(a, 400); return table[which & 1](n) + a[n & 63]; }
"#;

/// The scratch of a kernel, and whether its stack is dynamic, by descriptor and note, which must agree.
fn scratch_of(bytes: &[u8], name: &str) -> (u64, bool) {
    let object = CodeObject::parse(bytes).unwrap();
    let mut kernels = object.note().kernels.iter().zip(object.descriptors());
    let (kernel, place) = kernels.find(|(kernel, _)| kernel.name == name).unwrap();
    let descriptor = KernelDescriptor::new(&bytes[place.range.clone()], object.target_id().processor).unwrap();
    let found = (descriptor.get(SCRATCH).unwrap(), descriptor.get(DYNAMIC_STACK) == Some(1));
    assert_eq!((kernel.scratch, kernel.uses_dynamic_stack), (Some(found.0), Some(found.1)), "{name}");
    found
}

fn link_by_lto(bench: &Workbench, version: u32, target: &str) -> Vec<u8> {
    bench.run(&format!(
        "for name in kernels library; do {} -emit-llvm -c $name.hip -o $name.bc || exit 1; done; \
         {} -shared -plugin-opt=mcpu={target} -plugin-opt=-amdgpu-internalize-symbols --lto-O2 kernels.bc library.bc -o lto.co",
        compiler(version, target),
        tool(version, "ld.lld")
    ));
    bench.read("lto.co")
}

fn names_of_short(report: &LinkReport) -> Vec<&str> {
    report.short.iter().map(|one| one.kernel.as_str()).collect()
}

#[test]
fn known_scratch_is_compared_and_written_as_lto_writes_it() {
    let Some(bench) = Workbench::with_llvm(24, "known_scratch_is_compared_and_written_as_lto_writes_it") else {
        return;
    };
    let sources = [KERNELS, LIBRARY].map(str::to_owned);
    for (target, options) in [
        ("gfx90a", ""),
        ("gfx1030", ""),
        ("gfx1201", ""),
        ("gfx90a", "-mllvm -amdgpu-enable-object-linking"),
        ("gfx1030", "-mllvm -amdgpu-enable-object-linking"),
        ("gfx1250", "-mllvm -amdgpu-enable-object-linking"),
    ] {
        let case = format!("{target} {options}");
        make_pair(&bench, 24, target, [options; 2], &sources);
        let native = bench.read("native.co");
        let lto = link_by_lto(&bench, 24, target);
        let found = check_pair(&bench);
        assert_eq!(names_of_short(&found), ["k_again", "k_ping", "k_pointed"], "{case}: {found:?}");
        let made = raise_kernels(&native, &found).unwrap();
        for kernel in ["k_again", "k_ping"] {
            let ((bytes, is_dynamic), (wanted, _)) = (scratch_of(&made, kernel), scratch_of(&lto, kernel));
            assert!(is_dynamic, "{case} {kernel}");
            // Of functions that call each other LTO counts one frame.
            let least = if kernel == "k_ping" { 2000 } else { wanted - 32 };
            assert!((least..=least + 128).contains(&bytes), "{case} {kernel}: {bytes}, LTO {wanted}");
            assert!(scratch_of(&lto, kernel).1, "{case} {kernel}: LTO");
            say(&format!("exam scratch | {case} | {kernel} | {bytes} | {wanted} |"));
        }
        // The callee of a pointer is not known; the frame of the caller is.
        let (bytes, is_dynamic) = scratch_of(&made, "k_pointed");
        assert!(is_dynamic && bytes >= 1600, "{case}: {bytes}");
        bench.write("native.co", &made);
        let again = check_pair(&bench);
        assert!(again.short.is_empty(), "{case}: {again:?}");
    }
}

const SMALL_KERNEL: &str = r#"
extern "C" __attribute__((device)) int small(int);
extern "C" __attribute__((global)) void k_small(int *p) { p[0] = small(p[1]); }
"#;

/// The function saves its return address, and nothing else.
const SMALL_LIBRARY: &str = r#"
extern "C" __attribute__((device, noinline)) int leaf(int x) { return x * 3; }
extern "C" __attribute__((device, noinline)) int small(int x) { return leaf(x) + x; }
"#;

/// A kernel without scratch whose callees have frames of a few bytes: what a compiler may round is nothing here.
#[test]
fn small_frames_of_other_objects_are_not_rounded_away() {
    let test = "small_frames_of_other_objects_are_not_rounded_away";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    for target in ["gfx90a", "gfx1030", "gfx1201"] {
        let options = "-mllvm -amdgpu-enable-object-linking";
        make_pair(&bench, 24, target, [options; 2], &[SMALL_KERNEL, SMALL_LIBRARY].map(str::to_owned));
        let native = bench.read("native.co");
        assert_eq!(scratch_of(&native, "k_small").0, 0, "{target}");
        let found = check_pair(&bench);
        assert_eq!(names_of_short(&found), ["k_small"], "{target}: {found:?}");
        let made = raise_kernels(&native, &found).unwrap();
        let (bytes, _) = scratch_of(&made, "k_small");
        assert!((4..=64).contains(&bytes), "{target}: {bytes}");
        bench.write("native.co", &made);
        assert!(check_pair(&bench).short.is_empty(), "{target}");
        say(&format!("{test}: {target}, {bytes} bytes"));
    }
}
