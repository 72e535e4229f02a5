//! Code derived from one compilation is, byte for byte, what clang compiles for each GPU, because the source is checked
//! first. Coalesced builds leave out siblings that are requested, and plans add siblings that are not. Where the text
//! depends on the GPU, the GPUs with a text of their own are compiled.

use hotswap_tests::artifact::{Device, devices};
use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, Scratch, in_turn, parallel, say};

const RDNA2: &str = "gfx1030,gfx1031,gfx1032,gfx1033,gfx1034,gfx1035,gfx1036";
/// Enough where HIP's headers are compiled.
const THREE: &str = "gfx1030,gfx1031,gfx1032";
/// Two classes, one GPU of a group alone, and one that has no siblings.
const MIXED: &str = "gfx1100,gfx902,gfx900,gfx1031,gfx1036,gfx1010";

/// A program and its expected results.
#[derive(Debug, Clone)]
struct Case {
    name: &'static str,
    /// Text after the sources of every test.
    text: &'static str,
    /// The real HIP headers.
    headers: bool,
    words: &'static [&'static str],
    gpus: &'static str,
    /// The derived targets.
    derived: &'static [&'static str],
}

/// How siblings of the first GPU are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Clang,
    Coalesce,
    Plan,
}

/// All but the one that the text tests for.
const NOT_1031: &[&str] = &["gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"];
const ALL: &[&str] = &["gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"];

const fn case(name: &'static str, text: &'static str, derived: &'static [&'static str]) -> Case {
    Case { name, text, headers: false, words: &["-O2"], gpus: RDNA2, derived }
}

/// The text itself tests for no GPU; `asks.h` and arguments do.
const fn asks_before(name: &'static str) -> Case {
    case(
        name,
        "\n#ifdef __HIP_DEVICE_COMPILE__\n#ifdef ASKED\n__device__ int asked(int) { return ASKED + 0; }\n\
         __device__ int (*keep)(int) = asked;\n#endif\n#endif\n",
        NOT_1031,
    )
}

/// Another value for one of the GPUs.
const ASKS: &str = "#ifdef __gfx1031__\n#define ASKED 31\n#else\n#define ASKED 0\n#endif\n";

/// The front end links what the device code calls; nothing on the host does.
const ASKS_IN_BITCODE: &str = "define i32 @asks() {\n  call void asm sideeffect \".if \
    .amdgcn.gfx_generation_stepping == 1\\0As_nop 3\\0A.endif\", \"\"()\n  ret i32 1\n}\n";

/// As rocPRIM does: a table of names that has the source's and none of the others'.
const COMPARES_NAME: &str = r#"
#ifdef __HIP_DEVICE_COMPILE__
constexpr bool starts(const char *name, const char *with) {
  return *with == 0 || (*name == *with && starts(name + 1, with + 1));
}
constexpr int known(const char *name) { return starts(name, "gfx900") ? 1 : starts(name, "gfx1030") ? 2 : 0; }
template <int Arch> __device__ int body(int x) { return x * Arch + 1; }
__device__ int (*by_name)(int) = body<known(__amdgcn_processor__)>;
#endif
"#;

/// As rocPRIM does: the name stands in one function, whose value chooses. `USE` uses it.
const CALLS_FUNCTION: &str = r#"
namespace arch { inline namespace v1 {
constexpr bool starts(const char *name, const char *with) {
  return *with == 0 || (*name == *with && starts(name + 1, with + 1));
}
constexpr int known(const char *name) { return starts(name, "gfx900") ? 1 : starts(name, "gfx1030") ? 2 : 0; }
enum class kind { other, vega, navi };
constexpr kind current() {
#ifdef __HIP_DEVICE_COMPILE__
  return static_cast<kind>(known(__amdgcn_processor__) * (sizeof(__amdgcn_processor__) == 8));
#else
  return kind::other;
#endif
}
}}
template <arch::kind Kind> __device__ int chosen(int x) { return x * int(Kind) + 1; }
#ifdef __HIP_DEVICE_COMPILE__
USE
#endif
"#;

const BY_FUNCTION: &str = "chooses by a function with the name";

/// A program that uses [`CALLS_FUNCTION`] in this way.
fn calls_function(name: &'static str, usage: &str, derived: &'static [&'static str]) -> Case {
    let text = CALLS_FUNCTION.replace("USE", usage).leak();
    Case { headers: true, gpus: THREE, ..case(name, text, derived) }
}

/// A loop behind these lines, where `N` has another value for one of the GPUs.
fn in_a_pragma(lines: &str) -> String {
    format!(
        "\n#ifdef __gfx1031__\n#define N 2\n#else\n#define N 4\n#endif\n\
         __global__ void unrolled(float *p, int n) {{\n{lines}\nfor (int i = 0; i < n; ++i) p[i] *= 2; }}\n"
    )
}

fn is_asked_of_every_clang(case: &Case) -> bool {
    case.text == COMPARES_NAME || case.name == BY_FUNCTION
}

fn cases() -> Vec<Case> {
    let kernels = "\n__global__ void more(float *p, int n) { __attribute__((shared)) float t[64]; int i = \
        __builtin_amdgcn_workitem_id_x(); t[i] = p[i]; __builtin_amdgcn_s_barrier(); for (int k = 0; k < n; ++k) \
        t[63 - i] += t[i] * p[k]; p[i] = __builtin_sqrtf(t[i]); }\n";
    let plain = case("plain", kernels, ALL);
    let by_value = "__device__ int (*by_value)(int) = chosen<arch::current()>;";
    let in_conditions = "__device__ int asks(int x) { if (arch::current() == arch::kind::navi) return x + 1; return x; }\n\
                         __device__ int (*keep)(int) = asks;";
    vec![
        calls_function(BY_FUNCTION, by_value, &["gfx1032"]),
        calls_function("asks a function with the name in conditions", in_conditions, &["gfx1032"]),
        Case { words: &["-O0"], ..calls_function("chooses by such a function, unoptimised", by_value, &["gfx1032"]) },
        calls_function(
            "calls a function with the name when it runs",
            "__device__ arch::kind (*volatile by_pointer)() = arch::current;",
            &[],
        ),
        calls_function(
            "has the name beside a function with it",
            "__device__ int (*by_value)(int) = chosen<arch::current()>;\n__device__ const char *name = __amdgcn_processor__;",
            &[],
        ),
        calls_function(
            "has another name in a function with the name",
            "constexpr int last() { return __amdgcn_processor__[6]; }\n\
             __device__ int (*by_value)(int) = chosen<arch::kind(last())>;",
            &[],
        ),
        plain.clone(),
        Case { name: "unoptimised", words: &["-O0", "-g", "-fdebug-compilation-dir=."], ..plain.clone() },
        Case {
            name: "fast, compressed",
            words: &["-O3", "-ffast-math", "--offload-compress", "-Werror"],
            ..plain.clone()
        },
        Case { name: "two classes", gpus: MIXED, derived: &["gfx900", "gfx1036"], ..plain.clone() },
        Case { name: "HIP's headers", headers: true, ..plain.clone() },
        Case { name: "HIP's headers, unoptimised", headers: true, words: &["-O0"], ..plain.clone() },
        Case {
            name: "HIP's headers, unoptimised, two classes",
            headers: true,
            words: &[],
            gpus: MIXED,
            derived: &["gfx900", "gfx1036"],
            ..plain
        },
        case("asks for one", "\n#ifdef __gfx1031__\n__device__ int only = 1;\n#endif\n", NOT_1031),
        case("asks for the source", "\n#ifdef __gfx1030__\n__device__ int only = 1;\n#endif\n", NOT_1031),
        case("compares the name", COMPARES_NAME, NOT_1031),
        case(
            "asks by a pasted name",
            "\n#define C(a, b) a##b\n#if C(__gfx10, 31__)\n__device__ int only = 1;\n#endif\n",
            NOT_1031,
        ),
        case(
            "has the name",
            "\n#ifdef __HIP_DEVICE_COMPILE__\n__device__ const char *name = __amdgcn_processor__;\n#endif\n",
            &[],
        ),
        case(
            "asks in assembly",
            "\n__device__ void a() { asm(\".if .amdgcn.gfx_generation_stepping == 1\\ns_nop 3\\n.endif\"); }\n",
            &[],
        ),
        case(
            "asks in assembly of several literals",
            "\n__device__ void a() { asm(\".if .amd\" \"gcn.gfx_gen\"\n\"eration_step\" \"ping == 1\\ns_nop 3\\n.endif\"); }\n",
            &[],
        ),
        case(
            "asks in assembly with escapes",
            "\n__device__ void a() { asm(\".if .amdgcn.gfx\\x5fgeneration_stepping == 1\\ns_nop 3\\n.endif\"); }\n",
            &[],
        ),
        case(
            "asks in assembly with macros",
            "\n__device__ void a() { asm(\".macro ask a, b\\n.if \\\\a\\\\b == 1\\ns_nop 3\\n.endif\\n.endm\\nask .amdgcn.gfx, _generation_stepping\"); }\n",
            &[],
        ),
        case("asks in a file of the assembly", "\n__device__ void a() { asm(\".include \\\"asks.s\\\"\"); }\n", &[]),
        case(
            "asks by the name of a symbol",
            "\nextern __device__ int g asm(\".amdgcn\" \".gfx_generation_stepping\");\n\
             __device__ void a() { asm(\".if %0 == 1\\ns_nop 3\\n.endif\" :: \"i\"(&g)); }\n",
            &[],
        ),
        case(
            "asks by the name in an attribute, to which assembly adds its end",
            "\n#ifdef __HIP_DEVICE_COMPILE__\nstatic __device__ void gen() __attribute__((weakref(\".amdgcn.gfx_gen\")));\n\
             __global__ void glued() { asm volatile(\".if %c0eration_stepping == 1\\ns_nop 3\\n.endif\" :: \"i\"(gen)); }\n#endif\n",
            &[],
        ),
        case(
            "asks in assembly of the file",
            "\n#ifdef __HIP_DEVICE_COMPILE__\n__asm__(\".pushsection .rodata\\n.if .amdgcn.gfx_generation_stepping == 1\\n\
             .byte 31\\n.endif\\n.byte 1\\n.popsection\");\n#endif\n",
            &[],
        ),
        case(
            "asks in repeated assembly",
            "\n__global__ void a() { asm volatile(\".irp s, stepping\\n.if .amdgcn.gfx_generation_\\\\s == 1\\ns_nop 3\\n.endif\\n.endr\"); }\n",
            &[],
        ),
        case(
            "has the bytes of a file by assembly",
            "\n#ifdef __HIP_DEVICE_COMPILE__\n__asm__(\".pushsection .rodata\\n.incbin \\\"asks.s\\\"\\n.popsection\");\n#endif\n",
            &[],
        ),
        Case {
            words: &["-O1", "-Xclang", "-mlink-builtin-bitcode", "-Xclang", "asks.bc"],
            ..case(
                "asks in bitcode",
                "\nextern \"C\" __device__ int asks();\n__device__ int (*by_bitcode)() = asks;\n",
                &[],
            )
        },
        Case {
            words: &["-O1", "-std=c++2c", "-Wno-c23-extensions"],
            ..case("embeds a file", "\n__device__ const unsigned char bytes[] = {\n#embed \"asks.s\"\n};\n", ALL)
        },
        Case { words: &["-include", "asks.h"], ..asks_before("asks in a header of the words") },
        Case { words: &["-imacros", "asks.h"], ..asks_before("asks in macros of the words") },
        Case {
            words: &["-D", "ASKED=__gfx1031__"],
            ..case("asks by a macro of the words", "\n#if ASKED\n__device__ int only = 1;\n#endif\n", NOT_1031)
        },
        Case {
            words: &["-DASKED=__amdgcn_processor__[6] - '0'"],
            derived: &[],
            ..asks_before("has the name by a macro")
        },
        case("asks by the operand of a pragma", in_a_pragma("#pragma unroll N").leak(), NOT_1031),
        case(
            "asks by a macro in the operand of a pragma",
            in_a_pragma("#define M N\n#pragma clang loop unroll_count(M)").leak(),
            NOT_1031,
        ),
        case("asks by a pragma in a macro", in_a_pragma("_Pragma(\"unroll N\")").leak(), NOT_1031),
        case("asks by a pragma in vain", in_a_pragma("#undef N\n#define N 3\n#pragma unroll N").leak(), ALL),
        case(
            "has the name in the operand of a pragma",
            "\n#ifdef __HIP_DEVICE_COMPILE__\n#define G __amdgcn_processor__\n\
             #pragma clang attribute push(__attribute__((section(G))), apply_to = variable(is_global))\n\
             __device__ int there = 1;\n#pragma clang attribute pop\n#endif\n",
            &[],
        ),
        case(
            "has the name of its file by the name",
            "\n#ifdef __HIP_DEVICE_COMPILE__\n#line 7 __amdgcn_processor__\n__device__ const char *file = __builtin_FILE();\n#endif\n",
            &[],
        ),
        case(
            "asks for a file by the name",
            "\n#ifdef __HIP_DEVICE_COMPILE__\n#if __has_include(__amdgcn_processor__)\n__device__ int only = 1;\n#endif\n#endif\n",
            NOT_1031,
        ),
        case(
            "asks in vain",
            "\n#if defined(__gfx1031__) || defined(__GFX10__)\n__device__ int all = 1;\n#endif\n",
            ALL,
        ),
        case("asks for another family", "\n#ifdef __gfx1100__\n__device__ int none = 1;\n#endif\n", ALL),
    ]
}

fn build(bench: &Bench, clang: &Clang, case: &Case, way: Way) -> Result<(Scratch, Vec<Device>), String> {
    let scratch = bench.scratch();
    write_sources(&scratch, case.headers);
    let text = String::from_utf8_lossy(&scratch.read("a.hip")).into_owned();
    scratch.write("a.hip", text + case.text);
    scratch.write("asks.h", ASKS);
    scratch.write("gfx1031", "");
    scratch.write("asks.s", ".if .amdgcn.gfx_generation_stepping == 1\ns_nop 3\n.endif\n");
    if case.words.contains(&"asks.bc") {
        scratch.write("asks.ll", ASKS_IN_BITCODE);
        let words = [clang.tool("llvm-as"), "asks.ll".into(), "-o".into(), "asks.bc".into()];
        let ran = Call::new(bench, &scratch.inside, &words).run();
        assert!(ran.ok(), "{}", ran.brief());
    }
    let ours = bench.installed("bin/hotswap-clang++");
    let (first, others) = case.gpus.split_once(',').unwrap_or((case.gpus, ""));
    let (mut words, gpus) = match way {
        Way::Clang => (vec![clang.program.clone()], case.gpus),
        Way::Coalesce => (vec![ours, "-fhotswap-coalesce".to_owned()], case.gpus),
        Way::Plan => {
            (vec![ours, "-Xoffload-linker".to_owned(), format!("--hotswap-retarget={first}=>{others}")], first)
        }
    };
    words.extend(if case.headers { clang.hip.clone() } else { clang.light() });
    words.extend(case.words.iter().map(|word| (*word).to_owned()));
    // The ID of a compilation is hashed from its arguments, which differ here.
    words.extend([format!("--offload-arch={gpus}"), "-fuse-cuid=none".into()]);
    words.extend(["-MD", "-MF", "a.d", "-c", "a.hip", "-o", "a.o"].map(str::to_owned));
    let ran = Call::new(bench, &scratch.inside, &words).env("HOTSWAP_CLANG", clang.program.clone()).run();
    if !ran.ok() {
        return Err(format!("{way:?}: {}", ran.brief()));
    }
    let found = devices(&scratch.read("a.o"))?;
    Ok((scratch, found))
}

/// Targets of the code objects that are derived according to the file's record.
fn derived(bench: &Bench, scratch: &Scratch) -> Result<Vec<String>, String> {
    let words = [bench.installed("bin/hotswap"), "list".into(), "--format".into(), "json".into(), "a.o".into()];
    let ran = Call::new(bench, &scratch.inside, &words).run();
    let value: serde_json::Value =
        serde_json::from_str(&ran.stdout).map_err(|error| format!("{error}: {}", ran.brief()))?;
    let mut found = Vec::new();
    collect(&value, &mut found);
    found.sort();
    Ok(found)
}

fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Array(list) => list.iter().for_each(|value| collect(value, found)),
        serde_json::Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(serde_json::Value::as_str);
            if let (Some(target), Some(_)) = (text("target"), text("source")) {
                found.push(target.to_owned());
            }
            fields.values().for_each(|value| collect(value, found));
        }
        _ => {}
    }
}

/// The number of derived code objects, in all ways together.
fn judge(bench: &Bench, clang: &Clang, case: &Case) -> Result<usize, String> {
    let clangs = build(bench, clang, case, Way::Clang)?;
    // A plan names siblings of one GPU.
    let ways = if case.gpus != MIXED { &[Way::Coalesce, Way::Plan][..] } else { &[Way::Coalesce] };
    ways.iter().map(|way| judge_way(bench, clang, case, *way, &clangs)).sum()
}

fn judge_way(
    bench: &Bench,
    clang: &Clang,
    case: &Case,
    way: Way,
    (plain, clangs): &(Scratch, Vec<Device>),
) -> Result<usize, String> {
    let told = |error: String| format!("{way:?}: {error}");
    let (scratch, mut ours) = build(bench, clang, case, way)?;
    let mut clangs = clangs.clone();
    let by_target = |list: &mut Vec<Device>| list.sort_by(|a, b| a.target().cmp(b.target()));
    by_target(&mut ours);
    by_target(&mut clangs);
    let targets = |list: &[Device]| list.iter().map(|device| device.target().to_owned()).collect::<Vec<_>>();
    if targets(&ours) != targets(&clangs) {
        return Err(told(format!("{:?}, clang has {:?}", targets(&ours), targets(&clangs))));
    }
    if let Some((one, _)) = ours.iter().zip(&clangs).find(|(a, b)| a.bytes != b.bytes) {
        return Err(told(format!("the code object for {} is not clang's", one.target())));
    }
    if scratch.read("a.d") != plain.read("a.d") || !scratch.names(".").eq(&plain.names(".")) {
        return Err(told("the dependency file is not clang's, or files are left".to_owned()));
    }
    let mut expected: Vec<_> = case.derived.iter().map(|name| (*name).to_owned()).collect();
    expected.sort();
    let found = derived(bench, &scratch)?;
    if found == expected { Ok(found.len()) } else { Err(told(format!("derived are {found:?}, not {expected:?}"))) }
}

#[test]
fn one_compilation_or_a_plan_derives_what_clang_would_compile() {
    let Some(bench) = Bench::ready("derived builds") else { return };
    let all = cases();
    // Each clang has its own names for comparison.
    let cases = in_turn("derived builds", &all, &bench.clangs, is_asked_of_every_clang);
    let results = parallel(&cases, |(clang, case)| judge(&bench, clang, case));
    let derived: usize = results.iter().flatten().sum();
    let equal = results.iter().flatten().count();
    say(&format!(
        "derived builds: {equal} of {} programs equal clang's own, coalesced and by a plan, {derived} code objects derived in them",
        cases.len()
    ));
    let wrong = cases.iter().zip(&results).filter_map(|((clang, case), result)| {
        Some(format!("clang {} {}: {}", clang.version, case.name, result.as_ref().err()?))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{} of {} programs:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
