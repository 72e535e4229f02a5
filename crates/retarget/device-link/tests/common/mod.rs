//! A kernel and a function of two objects, linked natively.

use hotswap_device_link::{DynamicStack, LinkReport, check_link, link_inputs};
use hotswap_userland::{Workbench, tool};

/// The options of every compilation here.
pub(crate) fn compiler(version: u32, target: &str) -> String {
    format!(
        "{} -x hip --offload-arch={target} -nogpuinc -nogpulib --offload-device-only -fgpu-rdc --no-gpu-bundle-output -O2 -w",
        tool(version, "clang++")
    )
}

/// Compiles both sources apart, each with its options, and links them to `native.co`.
pub(crate) fn make_pair(
    bench: &Workbench,
    version: u32,
    target: &str,
    [of_kernels, of_library]: [&str; 2],
    [kernels, library]: &[String; 2],
) {
    bench.write("kernels.hip", kernels.as_bytes());
    bench.write("library.hip", library.as_bytes());
    let compile = format!("{} -fno-offload-lto -c", compiler(version, target));
    bench.run(&format!(
        "{compile} {of_kernels} kernels.hip -o kernels.o && {compile} {of_library} library.hip -o library.o && \
         {} -shared kernels.o library.o -o native.co",
        tool(version, "ld.lld")
    ));
}

/// The check of that link.
pub(crate) fn check_pair(bench: &Workbench) -> LinkReport {
    let files = ["kernels.o", "library.o"].map(|name| (name, bench.read(name)));
    let inputs: Vec<_> = files.iter().flat_map(|(name, bytes)| link_inputs(name, bytes)).collect();
    check_link(&bench.read("native.co"), &inputs, DynamicStack::OfHip).unwrap()
}
