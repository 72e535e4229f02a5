//! `hotswap run --kernel`: a kernel of clang's output, executed; wrong arguments, kernels that do not end.

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use hotswap_userland::Workbench;
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
        let (clang, words) = (bench.versions[0], "--offload-device-only -nogpuinc -nogpulib -O2");
        bench.run(&format!("clang++-{clang} {words} --no-gpu-bundle-output --offload-arch=gfx1250 k.hip -o k.co"));
        bench.run(&format!("clang++-{clang} {words} --offload-arch=gfx1030,gfx1100 k.hip -o k.hipfb"));
        bench.write("in", &(0..100_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
        Some(Self(bench))
    }

    fn run(&self, gpu: &str, file: &str, words: &[&str]) -> Assert {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        command.current_dir(self.0.directory()).args(["run", "--gpu", gpu]).args(words).arg(file).assert()
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

#[test]
fn kernels_that_do_not_end_and_wrong_arguments_write_nothing() {
    let Some(bench) = KernelBench::new("kernels_that_do_not_end_and_wrong_arguments_write_nothing") else { return };
    let twice = ["--kernel", "twice", "--arg", "in:in", "--arg", "out:new:100", "--arg", "f32:3", "--arg"];
    let with = |last: &'static str| [&twice[..], &[last]].concat();
    bench.run("gfx1250", "k.co", &with("u32:64")).code(13).stderr(contains("[HS0431] k.co").and(contains("lane 25")));
    bench.run("gfx1250", "k.co", &with("u64:64")).code(2).stderr(contains("argument 3 of the kernel has 4 bytes"));
    bench.run("gfx1250", "k.co", &twice[..8]).code(2).stderr(contains("4 arguments, 3 are given"));
    bench.run("gfx1251", "k.co", &with("u32:64")).code(11).stderr(contains("[HS0208]"));
    bench.run("gfx1201", "k.hipfb", &with("u32:64")).code(12).stderr(contains("[HS0304]"));
    bench.run("gfx1250", "k.co", &["--kernel", "third"]).code(12).stderr(contains("kernels are"));
    let endless = ["--kernel", "endless", "--budget", "1000", "--arg", "out:new:4"];
    bench.run("gfx1250", "k.co", &endless).code(13).stderr(contains("budget is exhausted at PC 0x"));
    assert!(!bench.0.path("new").exists());
}
