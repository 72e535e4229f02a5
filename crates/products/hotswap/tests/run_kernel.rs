//! `hotswap run --kernel`: a kernel of clang's output, executed; wrong arguments, kernels that do not end.

mod made;

use assert_cmd::assert::Assert;
use hotswap_userland::Workbench;
use made::RunsHotswap;
use predicates::prelude::*;
use predicates::str::contains;

const KERNEL: &str = "extern \"C\" __attribute__((global)) void twice(const unsigned *in, unsigned *out, float by, unsigned limit) {
    unsigned id = __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
    if (id < limit) out[id] = (unsigned)((float)in[id] * by);
}
extern \"C\" __attribute__((global)) void endless(unsigned *out) { while (__atomic_load_n(out, 0) == 0) {} }
";

struct KernelBench(Workbench);

impl KernelBench {
    fn new(test: &str) -> Option<Self> {
        let bench = Workbench::new(test)?;
        bench.write("k.hip", KERNEL.as_bytes());
        let (clang, words) = (bench.versions[0], "--offload-device-only -nogpuinc -nogpulib -O2 -g");
        bench.run(&format!("clang++-{clang} {words} --no-gpu-bundle-output --offload-arch=gfx1250 k.hip -o k.co"));
        bench.run(&format!("clang++-{clang} {words} --offload-arch=gfx1030,gfx1100 k.hip -o k.hipfb"));
        bench.write("in", &(0..100_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
        Some(Self(bench))
    }

    fn run(&self, gpu: &str, file: &str, words: &[&str]) -> Assert {
        self.0.hotswap(&["run", "--gpu", gpu]).args(words).arg(file).assert()
    }
}

#[test]
fn a_kernel_is_executed_and_its_output_is_a_file() {
    let Some(bench) = KernelBench::new("a_kernel_is_executed_and_its_output_is_a_file") else { return };
    let expected: Vec<u8> = (0..100_u32).flat_map(|number| (number * 3).to_le_bytes()).collect();
    for (gpu, file) in [("gfx1250", "k.co"), ("gfx1030", "k.hipfb"), ("gfx1100", "k.hipfb")] {
        let words = [
            "--kernel",
            "twice",
            "--grid",
            "128",
            "--group",
            "32",
            "--arg",
            "in:in",
            "--arg",
            "out:out:400",
            "--arg",
            "f32:3",
            "--arg",
            "u32:100",
            "--counters",
        ];
        bench.run(gpu, file, &words).success().stdout(contains("4 waves, 4 work-groups"));
        assert!(bench.0.read("out") == expected, "{gpu}");
    }
}

/// All lanes have the same row and the same column, so that every element of the product is the same sum.
const PRODUCT: &str = "typedef _Float16 half16 __attribute__((ext_vector_type(16)));
typedef float float8 __attribute__((ext_vector_type(8)));
extern \"C\" __attribute__((global)) void product(const half16 *in, float8 *out) {
    out[__builtin_amdgcn_workitem_id_x()] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(in[0], in[1], (float8)0);
}
";

#[test]
fn products_whose_order_matters_are_told_and_have_models() {
    let Some(bench) = KernelBench::new("products_whose_order_matters_are_told_and_have_models") else { return };
    bench.0.write("p.hip", PRODUCT.as_bytes());
    let words = "--offload-device-only -nogpuinc -nogpulib -O2 --no-gpu-bundle-output --offload-arch=gfx1100";
    bench.0.run(&format!("clang++-{} {words} p.hip -o p.co", bench.0.versions[0]));
    let run = |first: [u16; 3], model: &[&str]| {
        // Halves: the row, then the column, 13 zeros behind each.
        let padded = |numbers: [u16; 3]| [&numbers[..], &[0; 13]].concat();
        // 4096, 1, 4096.
        let both = [padded(first), padded([0x6c00, 0x3c00, 0x6c00])].concat();
        bench.0.write("in", &both.iter().flat_map(|half| half.to_le_bytes()).collect::<Vec<u8>>());
        let launch =
            ["--kernel", "product", "--grid", "32", "--group", "32", "--arg", "in:in", "--arg", "out:out:1024"];
        bench.run("gfx1100", "p.co", &[&launch[..], model].concat())
    };
    let is_all = |number: f32| bench.0.read("out").chunks(4).all(|bytes| bytes == number.to_le_bytes());
    // 2^24 + 1 - 2^24: a float has no room for the 1 if the sums are rounded one by one.
    let hidden = [0x6c00, 0x3c00, 0xec00];
    run(hidden, &[]).success().stderr(contains("[HS0433] p.co").and(contains("256 elements")));
    assert!(is_all(0.0));
    run(hidden, &["--matrix", "exact"]).success();
    assert!(is_all(1.0));
    run(hidden, &["--matrix", "refuse"]).code(13).stderr(contains("[HS0431] p.co"));
    // 0 + 1 + 4096: every order gives the same.
    run([0, 0x3c00, 0x3c00], &["--matrix", "refuse"]).success().stderr("");
    assert!(is_all(4097.0));
}

#[test]
fn kernels_that_do_not_end_and_wrong_arguments_write_nothing() {
    let Some(bench) = KernelBench::new("kernels_that_do_not_end_and_wrong_arguments_write_nothing") else { return };
    let twice = ["--kernel", "twice", "--arg", "in:in", "--arg", "out:new:100", "--arg", "f32:3", "--arg"];
    let with = |last: &'static str| [&twice[..], &[last]].concat();
    bench
        .run("gfx1250", "k.co", &with("u32:64"))
        .code(13)
        .stderr(contains("[HS0431] k.co").and(contains("lane 25")).and(contains("(k.hip:3)")));
    bench.run("gfx1250", "k.co", &with("u64:64")).code(2).stderr(contains("argument 3 of the kernel has 4 bytes"));
    bench.run("gfx1250", "k.co", &twice[..8]).code(2).stderr(contains("4 arguments, 3 are given"));
    bench.run("gfx1251", "k.co", &with("u32:64")).code(11).stderr(contains("[HS0208]"));
    bench.run("gfx1201", "k.hipfb", &with("u32:64")).code(12).stderr(contains("[HS0304]"));
    bench.run("gfx1250", "k.co", &["--kernel", "third"]).code(12).stderr(contains("kernels are"));
    let endless = ["--kernel", "endless", "--budget", "1000", "--arg", "out:new:4"];
    bench.run("gfx1250", "k.co", &endless).code(13).stderr(contains("budget is exhausted at PC 0x"));
    let large = ["--kernel", "endless", "--arg", "out:new:1152921504606846976"];
    bench.run("gfx1250", "k.co", &large).code(2).stderr(contains("at most 4294967296 are possible"));
    let lds = ["--kernel", "endless", "--lds", "1000000", "--arg", "out:new:4"];
    bench.run("gfx1250", "k.co", &lds).code(13).stderr(contains("more LDS than the processor at PC 0x0,"));
    assert!(!bench.0.path("new").exists());
}
