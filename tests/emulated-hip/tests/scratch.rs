//! Scratch without a known bound, executed: each line of the advice of HS0440 works, and without it the kernel fails.

use hotswap_device_link::{DynamicStack, StackRules, check_link, link_inputs, raise_kernels};
use hotswap_emulated_hip::EmulationBench;
use hotswap_userland::{say, tool};

const OBJECT_LINKING: &str = "-mllvm -amdgpu-enable-object-linking";

/// The code object `app.co` of kernels and library that were compiled apart; with `rules` as `--hotswap-device-link=fix` makes it.
fn link(bench: &EmulationBench, gpu: &str, options: &str, rules: Option<StackRules>) {
    let (clang, lld) = (tool(24, "clang++"), tool(24, "ld.lld"));
    bench.work.run(&format!(
        "for name in kernels library; do {clang} -x hip --offload-arch={gpu} -nogpuinc -nogpulib --offload-device-only -fgpu-rdc \
         --no-gpu-bundle-output -fno-offload-lto {options} -O2 -w -c stack-$name.hip -o $name.o || exit 1; done; \
         {lld} -shared kernels.o library.o -o app.co"
    ));
    let Some(rules) = rules else { return };
    let files = ["kernels.o", "library.o"].map(|name| (name, bench.work.read(name)));
    let inputs: Vec<_> = files.iter().flat_map(|(name, bytes)| link_inputs(name, bytes)).collect();
    let linked = bench.work.read("app.co");
    let report = check_link(&linked, &inputs, rules).unwrap();
    bench.work.write("app.co", &raise_kernels(&linked, &report).unwrap());
}

fn link_by_lto(bench: &EmulationBench, gpu: &str) {
    let (clang, lld) = (tool(24, "clang++"), tool(24, "ld.lld"));
    bench.work.run(&format!(
        "for name in kernels library; do {clang} -x hip --offload-arch={gpu} -nogpuinc -nogpulib --offload-device-only -fgpu-rdc \
         --no-gpu-bundle-output -emit-llvm -O2 -w -c stack-$name.hip -o $name.bc || exit 1; done; \
         {lld} -shared -plugin-opt=mcpu={gpu} -plugin-opt=-amdgpu-internalize-symbols --lto-O2 kernels.bc library.bc -o app.co"
    ));
}

/// Whether the kernel computes what the host does.
fn is_right(bench: &EmulationBench, gpu: &str, arguments: &str) -> bool {
    let run = bench.run(gpu, "", &format!("./stack app.co {arguments}"));
    let is_right = run.code == Some(0) && run.output.contains("64 of 64 values");
    assert!(is_right || run.error.contains("of scratch"), "{gpu} {arguments}: {}{}", run.output, run.error);
    is_right
}

#[test]
fn each_line_of_the_advice_works_and_is_needed() {
    let Some(bench) = EmulationBench::new("each_line_of_the_advice_works_and_is_needed") else { return };
    for (name, text) in [
        ("stack.h", include_str!("../cases/stack.h")),
        ("stack.cpp", include_str!("../cases/stack.cpp")),
        ("stack-kernels.hip", include_str!("../cases/stack-kernels.hip")),
        ("stack-library.hip", include_str!("../cases/stack-library.hip")),
    ] {
        bench.work.write(name, text.as_bytes());
    }
    bench.work.run("g++ -O1 -w -D__HIP_PLATFORM_AMD__ stack.cpp -o stack -lamdhip64");
    let written = StackRules::from(DynamicStack::AsStated);
    let bounded = StackRules { unbounded: Some(8192), ..written };
    for gpu in ["gfx1030", "gfx90a"] {
        for options in ["", OBJECT_LINKING] {
            let case = format!("{gpu} {options}");
            link(&bench, gpu, options, None);
            assert!(!is_right(&bench, gpu, "again 10 0"), "{case}: no scratch");
            link(&bench, gpu, options, Some(written));
            assert!(is_right(&bench, gpu, "again 0 0"), "{case}: the known frames");
            assert!(!is_right(&bench, gpu, "again 10 0"), "{case}: known frames are too few");
            assert!(is_right(&bench, gpu, "again 10 8192"), "{case}: fix and hipDeviceSetLimit");
            link(&bench, gpu, options, Some(bounded));
            assert!(is_right(&bench, gpu, "again 10 0"), "{case}: --hotswap-device-link-stack");
            assert!(is_right(&bench, gpu, "hidden 3 0"), "{case}: --hotswap-device-link-stack, a hidden frame");
        }
        link(&bench, gpu, "", Some(written));
        assert!(is_right(&bench, gpu, "hidden 3 8192"), "{gpu}: hipDeviceSetLimit, a hidden frame");
        link(&bench, gpu, OBJECT_LINKING, Some(written));
        assert!(is_right(&bench, gpu, "hidden 3 0"), "{gpu}: the compiler's record of the frame");
        link_by_lto(&bench, gpu);
        assert!(is_right(&bench, gpu, "hidden 3 0"), "{gpu}: LTO knows the frame");
        assert!(is_right(&bench, gpu, "again 10 8192"), "{gpu}: LTO and hipDeviceSetLimit");
        say(&format!("exam stacks | {gpu} |"));
    }
}
