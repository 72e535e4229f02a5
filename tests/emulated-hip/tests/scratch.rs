//! Scratch without a known bound, executed: each line of the advice of HS0440 works, and without it the kernel fails.

use hotswap_device_link::{DynamicStack, StackRules, check_link, link_inputs, raise_kernels};
use hotswap_emulated_hip::EmulationBench;
use hotswap_report::codes;
use hotswap_userland::{say, slice, tool};

const OBJECT_LINKING: &str = "-mllvm -amdgpu-enable-object-linking";

/// Kernels with arguments by which they need more than the 1,024 bytes that HIP gives: they reach a recursion, a recursion through a
/// pointer, a frame of unknown size.
const RUNS: [&str; 3] = ["again 10", "pointed 10", "hidden 3"];
/// Scratch that is enough for each.
const BYTES: u64 = 8192;

/// The link of kernels and library that were compiled apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// Of machine code.
    Native,
    /// Of machine code with the compiler's records.
    ObjectLinking,
    Lto,
}

/// `--hotswap-device-link=fix`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fix {
    No,
    Yes,
    /// With `--hotswap-device-link-stack=`[`BYTES`].
    WithStack,
}

/// A code object, and the limit that the program sets, or 0.
#[derive(Debug)]
struct StackCase {
    link: Link,
    fix: Fix,
    limit: u64,
    /// Whether each of [`RUNS`] is right.
    right: [bool; 3],
    /// The words of the advice that this case executes.
    advice: &'static str,
}

const fn case(link: Link, fix: Fix, limit: u64, right: [bool; 3], advice: &'static str) -> StackCase {
    StackCase { link, fix, limit, right, advice }
}

const NONE: [bool; 3] = [false; 3];
const ALL: [bool; 3] = [true; 3];
const FRAME: [bool; 3] = [false, false, true];

/// The rows of the table in `docs/guide/device-functions.md`, and what is missing without each.
const CASES: [StackCase; 12] = [
    case(Link::Native, Fix::No, 0, NONE, ""),
    case(Link::Native, Fix::Yes, 0, NONE, ""),
    case(
        Link::Native,
        Fix::WithStack,
        0,
        ALL,
        "write enough by --hotswap-device-link=fix --hotswap-device-link-stack=BYTES",
    ),
    case(
        Link::Native,
        Fix::Yes,
        BYTES,
        ALL,
        "let the program ask for it (fix, and hipDeviceSetLimit(hipLimitStackSize, BYTES))",
    ),
    case(Link::Lto, Fix::No, 0, FRAME, "frames of unknown size are known to LTO (without -fno-offload-lto)"),
    case(Link::Lto, Fix::No, BYTES, ALL, "which a recursion needs after LTO, too"),
    case(Link::ObjectLinking, Fix::No, 0, NONE, ""),
    case(Link::ObjectLinking, Fix::No, BYTES, NONE, ""),
    case(
        Link::ObjectLinking,
        Fix::Yes,
        0,
        FRAME,
        "recorded by clang 23 and later with -mllvm -amdgpu-enable-object-linking",
    ),
    case(Link::ObjectLinking, Fix::Yes, BYTES, ALL, ""),
    case(Link::ObjectLinking, Fix::WithStack, 0, ALL, ""),
    case(Link::ObjectLinking, Fix::WithStack, BYTES, ALL, ""),
];

/// The code object `app.co` of a case.
fn make(bench: &EmulationBench, gpu: &str, case: &StackCase) {
    let options = match case.link {
        Link::Native => "-fno-offload-lto",
        Link::ObjectLinking => &format!("-fno-offload-lto {OBJECT_LINKING}"),
        Link::Lto => "-emit-llvm",
    };
    let lto = match case.link {
        Link::Lto => format!("-plugin-opt=mcpu={gpu} -plugin-opt=-amdgpu-internalize-symbols --lto-O2"),
        Link::Native | Link::ObjectLinking => String::new(),
    };
    bench.work.run(&format!(
        "for name in kernels library; do {} -x hip --offload-arch={gpu} -nogpuinc -nogpulib --offload-device-only -fgpu-rdc \
         --no-gpu-bundle-output {options} -O2 -w -c stack-$name.hip -o $name.o || exit 1; done; \
         {} -shared {lto} kernels.o library.o -o app.co",
        tool(24, "clang++"),
        tool(24, "ld.lld")
    ));
    let unbounded = match case.fix {
        Fix::No => return,
        Fix::Yes => None,
        Fix::WithStack => Some(BYTES),
    };
    let files = ["kernels.o", "library.o"].map(|name| (name, bench.work.read(name)));
    let inputs: Vec<_> = files.iter().flat_map(|(name, bytes)| link_inputs(name, bytes)).collect();
    let linked = bench.work.read("app.co");
    let report = check_link(&linked, &inputs, StackRules { dynamic: DynamicStack::AsStated, unbounded }).unwrap();
    bench.work.write("app.co", &raise_kernels(&linked, &report).unwrap());
}

/// Whether the kernel computes what the host does; otherwise it has too little scratch, and nothing else is wrong.
fn is_right(bench: &EmulationBench, gpu: &str, arguments: &str) -> bool {
    let run = bench.run(gpu, "", &format!("./stack app.co {arguments}"));
    let is_right = run.code == Some(0) && run.output.contains("64 of 64 values");
    assert!(is_right || run.error.contains("of scratch"), "{gpu} {arguments}: {run:?}");
    is_right
}

fn write_program(bench: &EmulationBench) {
    for (name, text) in [
        ("stack.h", include_str!("../cases/stack.h")),
        ("stack.cpp", include_str!("../cases/stack.cpp")),
        ("stack-kernels.hip", include_str!("../cases/stack-kernels.hip")),
        ("stack-library.hip", include_str!("../cases/stack-library.hip")),
    ] {
        bench.work.write(name, text.as_bytes());
    }
    bench.work.run("g++ -O1 -w -D__HIP_PLATFORM_AMD__ stack.cpp -o stack -lamdhip64");
}

#[test]
fn each_line_of_the_advice_works_and_is_needed() {
    let test = "each_line_of_the_advice_works_and_is_needed";
    let Some(bench) = EmulationBench::new(test) else { return };
    write_program(&bench);
    let gpus = vec!["gfx1030", "gfx90a", "gfx942", "gfx1100", "gfx1201"];
    for gpu in slice(test, gpus, |number, _| number < 2) {
        let mut right = 0;
        for case in &CASES {
            make(&bench, gpu, case);
            let found = RUNS.map(|run| is_right(&bench, gpu, &format!("{run} {}", case.limit)));
            assert_eq!(found, case.right, "{gpu} {case:?}: {RUNS:?}");
            right += found.iter().filter(|one| **one).count();
            // One frame, which is known, fits.
            assert!(case.fix == Fix::No || is_right(&bench, gpu, "again 0 0"), "{gpu} {case:?}: the known frames");
        }
        let links = CASES.len();
        say(&format!("exam stacks | {gpu} | {links} | {right} | {} |", links * RUNS.len() - right));
    }
}

/// Words of the advice that nothing executes are a fault of the advice.
#[test]
fn all_words_of_the_advice_are_executed() {
    let mut rest = codes::UNBOUNDED_SCRATCH.advice.to_owned();
    for case in CASES.iter().filter(|case| !case.advice.is_empty()) {
        assert_eq!(rest.matches(case.advice).count(), 1, "{case:?}: {rest}");
        assert!(case.right != NONE, "{case:?}");
        rest = rest.replace(case.advice, "|");
    }
    let between: Vec<&str> = rest.split('|').collect();
    assert_eq!(between, ["", ", or ", ", ", "; ", ", and ", ""]);
}
