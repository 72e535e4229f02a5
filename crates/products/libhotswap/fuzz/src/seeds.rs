//! Writes the first inputs: small code objects and bundles of LLVM, with the table of functions and without, and a user of device
//! functions followed by its library.

#![allow(missing_docs)]

use hotswap_device_link::import_stub;
use hotswap_device_symbols::note::with_exports;
use hotswap_userland::{Workbench, tool};
use std::collections::BTreeSet;
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
        let [user, library] = user_and_library(&bench, &common, gpu);
        fs::write(directory.join(format!("{gpu}-pair")), [user, library.clone()].concat())?;
        fs::write(directory.join(format!("{gpu}-library")), library)?;
    }
    Ok(())
}

const USER: &str = "
__attribute__((device)) extern int state;
__attribute__((device)) float lib_fn(float a);
extern \"C\" __attribute__((global)) void k_use(float *x) { x[0] = lib_fn(x[1]) + state; }
";

const LIBRARY: &str = "
__attribute__((device)) int state = 3;
__attribute__((device)) float lib_fn(float a) {
  asm volatile(\"v_mov_b32 v99, 0\" ::: \"v99\");
  return a * state;
}
";

/// Two code objects: the first calls a function of the second.
fn user_and_library(bench: &Workbench, common: &str, gpu: &str) -> [Vec<u8>; 2] {
    for (name, source) in [("user", USER), ("library", LIBRARY)] {
        bench.write(&format!("{name}.hip"), source.as_bytes());
        let common = common.replace("k.hip -o out", &format!("{name}.hip -o {name}.o"));
        bench.run(&format!(
            "{common} --offload-arch={gpu} -fvisibility=default -fgpu-rdc -fno-offload-lto -c --no-gpu-bundle-output"
        ));
    }
    bench.write("stub.o", &import_stub("_Z6lib_fnf", &bench.read("user.o")).expect("the target has a stub"));
    let lld = tool(bench.versions.last().copied().unwrap_or(23), "ld.lld");
    bench.run(&format!("{lld} -shared -Bsymbolic user.o stub.o -o user.co"));
    bench.run(&format!("{lld} -shared library.o -o library.co"));
    let exports = BTreeSet::from(["_Z6lib_fnf".to_owned()]);
    let library = with_exports(&bench.read("library.co"), &exports).expect("it has the function").0;
    [bench.read("user.co"), library]
}
