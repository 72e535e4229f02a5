//! Generated call graphs, compiled apart: budgets compared with those of LTO, and with what the code does on the emulated GPU, where
//! exact budgets suffice and planted shortages are faults. `check` finds each shortage, and nothing else. A library for waves of the other
//! size is told, or does no harm. Functions shuffle lanes, and have assertions and `printf` that are not reached: code after traps, LDS
//! opcodes without LDS, and hidden arguments.

use hotswap_code_object::kernel_descriptor::{KernelDescriptor, SCRATCH, VGPRS};
use hotswap_code_object::{CodeObject, KernelNumber, with_kernel_numbers};
use hotswap_device_link::{DynamicStack, LinkReport, StackRules, check_link, link_inputs, raise_kernels};
use hotswap_emulator::{DirectLaunch, EmulatedDevice, LoadedObject, SparseMemory, launch_kernel, read_back};
use hotswap_report::codes;
use hotswap_userland::{Workbench, run_cases, say, slice, tool};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Graphs of a night; a slice of them runs in CI.
const GRAPHS: u64 = 500;
/// Work-items of a launch.
const ITEMS: u16 = 64;
/// Scratch of kernels with a recursion.
const STACK: u64 = 131_072;
/// Objects: the kernels, and two libraries.
const OBJECTS: [&str; 3] = ["kernels", "one", "two"];

/// The configurations that graphs take in turn.
const SETTINGS: [Setting; 11] = [
    Setting { version: 24, target: "gfx90a", options: "" },
    Setting { version: 23, target: "gfx1030", options: "" },
    Setting { version: 24, target: "gfx1100", options: "-mcode-object-version=5" },
    Setting { version: 24, target: "gfx1201", options: "" },
    Setting { version: 24, target: "gfx1250", options: "" },
    Setting { version: 24, target: "gfx1030", options: "-mwavefrontsize64" },
    Setting { version: 23, target: "gfx90a", options: "-mcode-object-version=4" },
    Setting { version: 23, target: "gfx1100", options: "-mwavefrontsize64" },
    Setting { version: 24, target: "gfx1201", options: "-mwavefrontsize64 -mcode-object-version=6" },
    Setting { version: 24, target: "gfx942", options: "-mllvm -amdgpu-enable-object-linking" },
    Setting { version: 24, target: "gfx1030", options: "-mllvm -amdgpu-enable-object-linking" },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Setting {
    version: u32,
    target: &'static str,
    options: &'static str,
}

/// Code beside the computation, which does not change its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Aside {
    Nothing,
    /// An assertion that holds.
    Assert,
    /// A `printf` that is not reached.
    Print,
    /// A shuffle of each lane with itself.
    Shuffle,
}

impl Aside {
    const ALL: [Self; 4] = [Self::Nothing, Self::Assert, Self::Print, Self::Shuffle];

    fn code(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Assert => "  assert(x != 0x7ffffff1);\n",
            Self::Print => "  if (x == 0x7ffffff2) printf(\"%d\\n\", x);\n",
            Self::Shuffle => "  x = __builtin_amdgcn_ds_bpermute(lane() * 4, x);\n",
        }
    }
}

/// Declarations of the asides, as HIP's headers have them.
const ASIDES: &str = r#"#define DEVICE __attribute__((device))
extern "C" DEVICE int printf(const char *, ...);
extern "C" DEVICE __attribute__((noinline, weak)) void __assert_fail(const char *, const char *, unsigned, const char *) { __builtin_trap(); }
#define assert(x) ((x) ? (void)0 : __assert_fail(#x, __FILE__, __LINE__, __func__))
static DEVICE int lane() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
"#;

/// A function: it names a vector register, has a frame, and calls functions of higher numbers.
#[derive(Debug)]
struct Node {
    object: usize,
    register: u32,
    /// Words of an array in scratch.
    frame: u32,
    callees: Vec<usize>,
    is_recursive: bool,
    aside: Aside,
}

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The graph of a seed. Leaves have no arrays: the code does not show the size of their frames.
fn generate(seed: u64) -> Vec<Node> {
    let mut random = Random(seed * 7919 + 1);
    let count = 3 + random.below(6) as usize;
    let node = |number: usize| {
        let later = count - number - 1;
        let calls = if later == 0 { 0 } else { 1 + random.below(3.min(later as u64)) as usize };
        let callees: Vec<usize> = (0..calls).map(|_| number + 1 + random.below(later as u64) as usize).collect();
        let frame = if callees.is_empty() { 0 } else { [0, 60, 250, 600][random.below(4) as usize] };
        let is_recursive = seed.is_multiple_of(5) && number == 1 && !callees.is_empty();
        let register = 8 + random.below(112) as u32;
        let object = 1 + random.below(2) as usize;
        let aside = Aside::ALL[random.below(4) as usize];
        Node { object, register, frame, callees, is_recursive, aside }
    };
    (0..count).map(node).collect()
}

fn setting_of(seed: u64) -> Setting {
    SETTINGS[(seed % SETTINGS.len() as u64) as usize]
}

/// The value of a function, as the host computes it.
fn value(graph: &[Node], number: usize, x: i32) -> i32 {
    let node = &graph[number];
    let mut sum = x.wrapping_mul(number as i32 + 3);
    for callee in &node.callees {
        sum = sum.wrapping_mul(31).wrapping_add(value(graph, *callee, (x & 15).wrapping_add(1)));
    }
    if node.is_recursive && x & 31 > 0 {
        sum = sum.wrapping_add(value(graph, number, (x & 31) - 1));
    }
    if node.frame > 0 { sum.wrapping_add((x & 7).wrapping_mul(x)) } else { sum }
}

/// The body of a function, which computes [`value`].
fn body(number: usize, node: &Node) -> String {
    let mut text = format!("extern \"C\" __attribute__((device, noinline)) int f{number}(int x) {{\n");
    if node.frame > 0 {
        let _ = writeln!(text, "  volatile int a[{0}];\n  for (int i = 0; i < {0}; i++) a[i] = i * x;", node.frame);
    }
    let _ = writeln!(
        text,
        "  asm volatile(\"v_mov_b32 v{0}, 0\" ::: \"v{0}\");\n  int sum = x * {1};",
        node.register,
        number + 3
    );
    text += node.aside.code();
    for callee in &node.callees {
        let _ = writeln!(text, "  sum = sum * 31 + f{callee}((x & 15) + 1);");
    }
    if node.is_recursive {
        let _ = writeln!(text, "  if ((x & 31) > 0) sum += f{number}((x & 31) - 1);");
    }
    text + if node.frame > 0 { "  return sum + a[x & 7];\n}\n" } else { "  return sum;\n}\n" }
}

/// The sources of the three objects.
fn sources(graph: &[Node]) -> [String; 3] {
    let mut declarations = ASIDES.to_owned();
    for number in 0..graph.len() {
        let _ = writeln!(declarations, "extern \"C\" DEVICE int f{number}(int);");
    }
    let mut texts = [declarations.clone(), declarations.clone(), declarations];
    texts[0] += "extern \"C\" __attribute__((global)) void k(int *p) { int i = __builtin_amdgcn_workitem_id_x(); p[i] = f0(i); }\n";
    for (number, node) in graph.iter().enumerate() {
        texts[node.object] += &body(number, node);
    }
    texts
}

/// The compiler with its options.
fn compile_words(setting: Setting, graph: &[Node]) -> String {
    let Setting { version, target, options } = setting;
    // Only `printf` needs device libraries.
    let prints = graph.iter().any(|node| node.aside == Aside::Print);
    let libraries = match (prints, version > 22) {
        (false, _) => "-nogpulib",
        (true, true) => "${ROCM:+--rocm-path=$ROCM}",
        (true, false) => "",
    };
    format!(
        "{} -x hip --offload-arch={target} -nogpuinc {libraries} --offload-device-only -fgpu-rdc --no-gpu-bundle-output -O2 -w {options}",
        tool(version, "clang++")
    )
}

/// Compiles the objects apart, and links them natively and by LTO.
fn build(bench: &Workbench, setting: Setting, graph: &[Node]) {
    for (name, text) in OBJECTS.iter().zip(sources(graph)) {
        bench.write(&format!("{name}.hip"), text.as_bytes());
    }
    let Setting { version, target, .. } = setting;
    let (compile, lld, names) = (compile_words(setting, graph), tool(version, "ld.lld"), OBJECTS.join(" "));
    bench.run(&format!(
        "for name in {names}; do {compile} -fno-offload-lto -c $name.hip -o $name.o || exit 1; \
         {compile} -emit-llvm -c $name.hip -o $name.bc || exit 1; done; {lld} -shared kernels.o one.o two.o -o native.co && \
         {lld} -shared -plugin-opt=mcpu={target} -plugin-opt=-amdgpu-internalize-symbols --lto-O2 kernels.bc one.bc two.bc -o lto.co"
    ));
}

/// The same objects, but the library that the kernel calls for waves of the other size; nothing for processors with one size.
fn build_with_other_waves(bench: &Workbench, setting: Setting, graph: &[Node]) -> Option<Vec<u8>> {
    const LARGE: &str = "-mwavefrontsize64";
    let has_both = setting.target.starts_with("gfx1") && setting.target != "gfx1250";
    let words = compile_words(setting, graph);
    let compile = if words.contains(LARGE) { words.replace(LARGE, "") } else { format!("{words} {LARGE}") };
    let (library, lld) = (OBJECTS[graph[0].object], tool(setting.version, "ld.lld"));
    has_both.then(|| {
        bench.run(&format!(
            "{compile} -fno-offload-lto -c {library}.hip -o {library}.o && {lld} -shared kernels.o one.o two.o -o waves.co"
        ));
        bench.read("waves.co")
    })
}

fn check_graph_link(bench: &Workbench, linked: &[u8], rules: StackRules) -> LinkReport {
    let files = OBJECTS.map(|name| (name, bench.read(&format!("{name}.o"))));
    let inputs: Vec<_> = files.iter().flat_map(|(name, bytes)| link_inputs(name, bytes)).collect();
    check_link(linked, &inputs, rules).unwrap()
}

/// Whether the kernel computes what the host does; a fault is the other way to end.
fn is_right(graph: &[Node], bytes: &[u8]) -> Result<bool, String> {
    let mut memory = SparseMemory::new();
    let loaded = LoadedObject::load(bytes, &mut memory).map_err(|error| error.to_string())?;
    let device = EmulatedDevice::new(loaded.processor).map_err(|error| error.to_string())?;
    let output = memory.allocate(u64::from(ITEMS) * 4);
    let arguments = [output.to_le_bytes().to_vec()];
    let (grid, workgroup) = ([u32::from(ITEMS), 1, 1], [ITEMS, 1, 1]);
    let request = DirectLaunch { grid, workgroup, arguments: &arguments, dynamic_lds: 0 };
    let kernel = loaded.find_kernel("k").ok_or("no kernel")?;
    launch_kernel(&device, &mut memory, kernel, &request).map_err(|error| error.to_string())?;
    let found = read_back(&memory, output, usize::from(ITEMS) * 4);
    let mut words = found.as_chunks::<4>().0.iter().enumerate();
    Ok(words.all(|(item, word)| i32::from_le_bytes(*word) == value(graph, 0, item as i32)))
}

/// The numbers of the kernel's descriptor.
struct Stated {
    vgprs: u64,
    scratch: u64,
}

fn stated(bytes: &[u8]) -> Stated {
    let object = CodeObject::parse(bytes).unwrap();
    let kernel = &object.note().kernels[0];
    Stated { vgprs: kernel.vgpr_count.unwrap_or(0), scratch: kernel.scratch.unwrap_or(0) }
}

/// The file with one granule of vector registers less than the kernel needs.
fn with_fewer_registers(bytes: &[u8]) -> Vec<u8> {
    let mut planted = bytes.to_vec();
    let object = CodeObject::parse(bytes).unwrap();
    let range = object.descriptors()[0].range.clone();
    let mut descriptor = KernelDescriptor::new(&mut planted[range], object.target_id().processor).unwrap();
    let blocks = descriptor.get(VGPRS).unwrap();
    descriptor.set_field(VGPRS, blocks - 1).unwrap();
    let lower = object.note().kernels[0].vgpr_count.unwrap_or(0).saturating_sub(16);
    let symbol = object.note().kernels[0].symbol;
    let numbers = [KernelNumber { symbol, key: ".vgpr_count", value: lower }];
    with_kernel_numbers(&planted, &numbers).unwrap()
}

/// The file with half of its scratch.
fn with_less_scratch(bytes: &[u8]) -> Vec<u8> {
    let mut planted = bytes.to_vec();
    let object = CodeObject::parse(bytes).unwrap();
    let less = stated(bytes).scratch / 2;
    let range = object.descriptors()[0].range.clone();
    KernelDescriptor::new(&mut planted[range], object.target_id().processor).unwrap().set_field(SCRATCH, less).unwrap();
    let symbol = object.note().kernels[0].symbol;
    let numbers = [KernelNumber { symbol, key: ".private_segment_fixed_size", value: less }];
    with_kernel_numbers(&planted, &numbers).unwrap()
}

/// Numbers of what was seen.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    graphs: u32,
    short: u32,
    registers: u32,
    scratch: u32,
    /// Libraries for waves of the other size, and those that are told. The others run right.
    waves: u32,
    told_waves: u32,
    /// Graphs whose budget has fewer vector registers than LTO's.
    below_lto: u32,
}

impl Seen {
    /// The row of a setting in the table of `cargo xtask symbols exam`.
    fn row(&self, setting: Setting) -> String {
        let Setting { version, target, options } = setting;
        let Self { graphs, short, registers, scratch, waves, told_waves, below_lto } = self;
        let options = if options.is_empty() { "-" } else { options };
        format!(
            "exam graphs | {version} | {target} | {options} | {graphs} | {short} | {registers} | {scratch} | {told_waves} of {waves} | {below_lto} |"
        )
    }

    fn plus(self, other: Self) -> Self {
        Self {
            graphs: self.graphs + other.graphs,
            short: self.short + other.short,
            registers: self.registers + other.registers,
            scratch: self.scratch + other.scratch,
            waves: self.waves + other.waves,
            told_waves: self.told_waves + other.told_waves,
            below_lto: self.below_lto + other.below_lto,
        }
    }
}

/// One graph: exact budgets are enough and not below LTO's, planted ones are found and fail.
fn examine(bench: &Workbench, seed: u64) -> Seen {
    let (setting, graph) = (setting_of(seed), generate(seed));
    let case = format!("graph {seed}, {setting:?}");
    build(bench, setting, &graph);
    let has_recursion = graph.iter().any(|node| node.is_recursive);
    let unbounded = has_recursion.then_some(STACK);
    let [written, checked] =
        [DynamicStack::AsStated, DynamicStack::OfHip].map(|dynamic| StackRules { dynamic, unbounded });
    let native = bench.read("native.co");
    let report = check_graph_link(bench, &native, written);
    let made = raise_kernels(&native, &report).unwrap();
    assert_eq!(is_right(&graph, &made), Ok(true), "{case}: with its budget");
    let again = check_graph_link(bench, &made, checked);
    assert!(again.short.is_empty(), "{case}: the raised link has a finding: {:?}", again.problems());
    // A link without a finding runs right as it is.
    let is_short = !check_graph_link(bench, &native, checked).short.is_empty();
    assert!(is_short || is_right(&graph, &native) == Ok(true), "{case}: a shortage was not found");
    let mut seen = Seen { graphs: 1, short: u32::from(is_short), ..Seen::default() };
    compare_with_lto(bench, &graph, &made, (&case, &mut seen));
    plant(bench, &graph, &made, (&case, checked), &mut seen);
    plant_waves(bench, &graph, (&case, setting), written, &mut seen);
    seen
}

fn compare_with_lto(bench: &Workbench, graph: &[Node], made: &[u8], (case, seen): (&str, &mut Seen)) {
    let lto = bench.read("lto.co");
    let (own, other) = (stated(made), stated(&lto));
    // The code of LTO is another one: callers that see their callees may keep values in further registers.
    seen.below_lto += u32::from(own.vgprs < other.vgprs);
    let slack = 16 * graph.len() as u64;
    assert!(own.scratch + slack >= other.scratch, "{case}: {} bytes of scratch, LTO {}", own.scratch, other.scratch);
    let found = check_link(&lto, &[], DynamicStack::OfHip).unwrap();
    assert!(found.short.is_empty(), "{case}: LTO has a finding: {:?}", found.problems());
}

fn plant(bench: &Workbench, graph: &[Node], made: &[u8], (case, rules): (&str, StackRules), seen: &mut Seen) {
    let highest = graph.iter().map(|node| node.register).max().unwrap_or(0);
    let planted = with_fewer_registers(made);
    // The kernel itself may need the last granule, and its own code then fails as well.
    if highest >= 48 {
        assert!(!check_graph_link(bench, &planted, rules).short.is_empty(), "{case}: a planted register was not found");
        assert!(is_right(graph, &planted).is_err(), "{case}: a planted register has no effect");
        seen.registers += 1;
    }
    // HIP gives a dynamic stack 1,024 bytes. Kernels of code object version 4 declare 16 KB for calls of other objects, which is enough.
    let is_raised = stated(&bench.read("native.co")).scratch < stated(made).scratch;
    if stated(made).scratch > 2400 && is_raised && rules.unbounded.is_none() {
        let planted = with_less_scratch(made);
        assert!(!check_graph_link(bench, &planted, rules).short.is_empty(), "{case}: planted scratch was not found");
        assert!(is_right(graph, &planted).is_err(), "{case}: planted scratch has no effect");
        seen.scratch += 1;
    }
}

/// A library for waves of the other size: told, or of code that is the same.
fn plant_waves(
    bench: &Workbench,
    graph: &[Node],
    (case, setting): (&str, Setting),
    rules: StackRules,
    seen: &mut Seen,
) {
    let Some(planted) = build_with_other_waves(bench, setting, graph) else { return };
    let report = check_graph_link(bench, &planted, rules);
    let is_told = report.mixes.iter().any(|one| one.code == codes::CONVENTION_MIX && one.what.contains("waves of"));
    seen.waves += 1;
    seen.told_waves += u32::from(is_told);
    let made = raise_kernels(&planted, &report).unwrap();
    assert!(is_told || is_right(graph, &made) == Ok(true), "{case}: waves of the other size are not told");
}

#[test]
fn generated_graphs_run_with_their_budgets_and_fail_with_less() {
    let test = "generated_graphs_run_with_their_budgets_and_fail_with_less";
    if Workbench::with_llvm(24, test).is_none() {
        return;
    }
    let seeds = slice(test, (0..GRAPHS).collect(), |number, _| number < 40);
    let make_bench = || Workbench::with_llvm(24, test).expect("it was there");
    let found = run_cases(&seeds, make_bench, |bench, seed| examine(bench, *seed));
    let mut by_setting: BTreeMap<Setting, Seen> = BTreeMap::new();
    for (seed, seen) in seeds.iter().zip(&found) {
        let sum = by_setting.entry(setting_of(*seed)).or_default();
        *sum = sum.plus(*seen);
    }
    by_setting.iter().for_each(|(setting, seen)| say(&seen.row(*setting)));
    let seen = by_setting.into_values().fold(Seen::default(), Seen::plus);
    let Seen { graphs, short, registers, scratch, waves, told_waves, below_lto } = seen;
    say(&format!(
        "exam note graphs {graphs} of {GRAPHS} graphs ran, all right with their budgets; {short} were short as linked; {registers} planted \
         registers and {scratch} planted sizes of scratch, each found by `check` and a fault on the emulated GPU; of {waves} libraries for waves of the other size {told_waves} are \
         told, the others run right; LTO has more registers for {below_lto}"
    ));
    assert!(seen.graphs >= 40 && seen.short >= 20 && seen.registers >= 20 && seen.scratch >= 5, "{seen:?}");
    assert!(seen.told_waves >= 10 && seen.told_waves * 10 >= seen.waves * 9, "{seen:?}");
    assert!(seen.below_lto * 10 <= seen.graphs, "{seen:?}");
}
