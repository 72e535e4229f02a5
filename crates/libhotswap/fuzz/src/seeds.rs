//! Writes the first inputs: small code objects and bundles of LLVM.

#![allow(missing_docs)]

use hotswap_userland::{Workbench, tool};
use std::path::Path;
use std::{env, fs, io};

const SOURCE: &str = "
#define DEVICE __attribute__((device, noinline))
DEVICE int helper(int a) { return a * 3 + 1; }
DEVICE int chain(int a) { return helper(a) + helper(a + 1); }
__attribute__((device)) int (*table[2])(int) = {helper, chain};
extern \"C\" __attribute__((global)) void k(int *x) { x[0] = chain(x[1]) + table[x[2] & 1](x[3]); }
";

fn main() -> io::Result<()> {
    let Some(directory) = env::args_os().nth(1) else { return Err(io::Error::other("usage: seeds DIRECTORY")) };
    let Some(bench) = Workbench::new("seeds of code objects") else {
        return Err(io::Error::other("the seeds need the userland: `cargo xtask setup`"));
    };
    bench.write("k.hip", SOURCE.as_bytes());
    let directory = Path::new(&directory).join("c_interface");
    fs::create_dir_all(&directory)?;
    let clang = tool(bench.versions.last().copied().unwrap_or(23), "clang++");
    let common = format!("{clang} -x hip -nogpuinc -nogpulib --offload-device-only -O2 -w k.hip -o out");
    for gpu in ["gfx90a", "gfx1030", "gfx1250"] {
        let forms = ["--no-gpu-bundle-output", "--no-gpu-bundle-output -g", "--offload-compress", "-fgpu-rdc -fno-offload-lto -c --no-gpu-bundle-output"];
        for (number, words) in forms.iter().enumerate() {
            bench.run(&format!("{common} --offload-arch={gpu} {words}"));
            fs::write(directory.join(format!("{gpu}-{number}")), bench.read("out"))?;
        }
    }
    Ok(())
}
