//! Granted registers count, not those that a kernel declares: registers come in granules, and scalar registers are allocated on GFX9
//! alone.

mod common;

use common::{check_pair, make_pair};
use hotswap_device_link::LinkReport;
use hotswap_userland::{Workbench, say};

/// A kernel that names one register, and a function that names another one.
struct GranuleCase {
    target: &'static str,
    options: &'static str,
    /// The kernel's highest register.
    kernel: &'static str,
    /// The highest register of its granule, for which the function finds room.
    fits: &'static str,
    /// The first one beyond.
    beyond: &'static str,
}

const fn case(target: &'static str, options: &'static str, [kernel, fits, beyond]: [&'static str; 3]) -> GranuleCase {
    GranuleCase { target, options, kernel, fits, beyond }
}

/// Granules by generation and wave size, as LLVM's AMDGPU usage guide has them: 4, 8 and 16.
const VECTOR: [GranuleCase; 10] = [
    case("gfx908", "", ["v48", "v51", "v52"]),
    case("gfx90a", "", ["v48", "v51", "v52"]),
    case("gfx942", "", ["v48", "v51", "v52"]),
    case("gfx1030", "", ["v48", "v55", "v56"]),
    case("gfx1030", "-mwavefrontsize64", ["v48", "v51", "v52"]),
    case("gfx1100", "", ["v48", "v55", "v56"]),
    case("gfx1100", "-mwavefrontsize64", ["v48", "v51", "v52"]),
    case("gfx1201", "", ["v48", "v55", "v56"]),
    case("gfx1201", "-mwavefrontsize64", ["v48", "v51", "v52"]),
    case("gfx1250", "", ["v48", "v63", "v64"]),
];

const SCALAR: [GranuleCase; 2] = [case("gfx90a", "", ["s34", "s41", "s42"]), case("gfx942", "", ["s34", "s41", "s42"])];

fn sources(kernel: &str, function: &str) -> [String; 2] {
    let touch = |register: &str| {
        let set = if register.starts_with('v') { "v_mov_b32" } else { "s_mov_b32" };
        format!("asm volatile(\"{set} {register}, 0\" ::: \"{register}\");")
    };
    [
        format!(
            "extern \"C\" __attribute__((device)) int need(int);\n\
             extern \"C\" __attribute__((global)) void k(int *p) {{ {} p[0] = need(p[1]); }}\n",
            touch(kernel)
        ),
        format!(
            "extern \"C\" __attribute__((device, noinline)) int need(int x) {{ {} return x + 1; }}\n",
            touch(function)
        ),
    ]
}

fn report(bench: &Workbench, case: &GranuleCase, function: &str) -> LinkReport {
    make_pair(bench, 24, case.target, [case.options; 2], &sources(case.kernel, function));
    check_pair(bench)
}

#[test]
fn registers_inside_of_a_granule_are_granted() {
    let Some(bench) = Workbench::with_llvm(24, "registers_inside_of_a_granule_are_granted") else { return };
    for case in VECTOR.iter().chain(&SCALAR) {
        let name = format!("{} {}", case.target, case.options);
        let found = report(&bench, case, case.fits);
        assert!(found.short.is_empty(), "{name}: {:?}", found.problems());
        let found = report(&bench, case, case.beyond);
        assert_eq!(found.short.len(), 1, "{name}");
        let told = found.problems()[0].to_string();
        let unit = if case.kernel.starts_with('v') { "VGPRs" } else { "SGPRs" };
        let [declared, granted, needed] = numbers_before(&told, unit);
        assert!(declared < granted && needed == granted + 1, "{name}: {told}");
        say(&format!("exam granted | {name} | {unit} | {declared} | {granted} | {needed} |"));
    }
}

/// The three numbers of a kind in a message: declared, granted, needed.
fn numbers_before(message: &str, unit: &str) -> [u64; 3] {
    let parts: Vec<&str> = message.split(unit).collect();
    let last_number = |part: &&str| part.split_whitespace().last().and_then(|word| word.parse().ok());
    let numbers: Vec<u64> = parts.iter().take(3).filter_map(last_number).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{message}"))
}

/// Each wave has all scalar registers from GFX10 on: the descriptor's field is reserved.
#[test]
fn scalar_registers_are_never_short_from_gfx10_on() {
    let Some(bench) = Workbench::with_llvm(24, "scalar_registers_are_never_short_from_gfx10_on") else { return };
    for target in ["gfx1030", "gfx1100", "gfx1201", "gfx1250"] {
        // The kernel with its last scalar register declares 108: VCC is counted behind it.
        for kernel in ["v52", "s105"] {
            let found = report(&bench, &case(target, "", [kernel, "", ""]), "s92");
            assert!(found.short.is_empty(), "{target} {kernel}: {:?}", found.problems());
        }
    }
}

/// Memory instructions with generic addresses read the base of scratch in hardware. Where the code has no scratch LLVM reserves no
/// registers for that: with 12 registers of its own the kernel declares 16, as many as it is granted.
#[test]
fn generic_addresses_alone_need_no_base_of_scratch() {
    const KERNEL: &str = "extern \"C\" __attribute__((global)) void k(volatile float *p) { \
         asm volatile(\"s_mov_b32 s11, 0\" ::: \"s11\", \"vcc\"); p[__builtin_amdgcn_workitem_id_x()] = 3; }\n";
    const LIBRARY: &str = "extern \"C\" __attribute__((device)) int f(int x) { return x; }\n";
    let Some(bench) = Workbench::with_llvm(24, "generic_addresses_alone_need_no_base_of_scratch") else { return };
    for target in ["gfx90a", "gfx906"] {
        make_pair(&bench, 24, target, [""; 2], &[KERNEL, LIBRARY].map(str::to_owned));
        assert!(bench.disassemble(24, "-d", "kernels.o").contains("flat_store_dword"), "{target}");
        let found = check_pair(&bench);
        assert!(found.short.is_empty(), "{target}: {:?}", found.problems());
    }
}
