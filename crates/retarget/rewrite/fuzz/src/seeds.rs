//! Writes the first inputs of both fuzz targets: small code objects of LLVM in every form.

#![allow(missing_docs)]

use hotswap_userland::Workbench;
use std::path::Path;
use std::{env, fs, io};

const SOURCE: &str = "
__global int counter = 3;
__constant int numbers[4] = {1, 2, 3, 4};
__attribute__((noinline)) int helper(int a) { return a * counter + numbers[a & 3]; }
kernel void k(global int *x) { for (int i = 0; i < x[3]; i++) *x += helper(x[i]); }
";

/// Arguments of the compiler, and of the linker; `None` for a relocatable file.
const FORMS: &[(&str, Option<&str>)] = &[
    ("-O2", None),
    ("-O2 -g1", None),
    ("-O2", Some("")),
    ("-O2", Some("--strip-all")),
    ("-O2", Some("--emit-relocs")),
    ("-O2 -g", Some("")),
    ("-O1 -gdwarf-4", Some("--emit-relocs")),
    ("-O2 -g", Some("--compress-debug-sections=zlib")),
];

fn main() -> io::Result<()> {
    let Some(directory) = env::args_os().nth(1) else { return Err(io::Error::other("usage: seeds DIRECTORY")) };
    let Some(bench) = Workbench::new("seeds of code objects") else {
        return Err(io::Error::other("the seeds need the userland: `cargo xtask setup`"));
    };
    bench.write("k.cl", SOURCE.as_bytes());
    let bin = format!("/usr/lib/llvm-{}/bin", bench.versions.last().copied().unwrap_or(23));
    for target in ["image", "rewrite"] {
        let directory = Path::new(&directory).join(target);
        fs::create_dir_all(&directory)?;
        for processor in ["gfx90a", "gfx1100", "gfx1250"] {
            for (number, (compile, link)) in FORMS.iter().enumerate() {
                bench.run(&format!(
                    "{bin}/clang --target=amdgcn-amd-amdhsa -mcpu={processor} -nogpulib -x cl -cl-std=CL2.0 -fPIC -w \
                     {compile} -c k.cl -o out"
                ));
                if let Some(link) = link {
                    bench.run(&format!("{bin}/ld.lld -shared {link} out -o linked && mv linked out"));
                }
                fs::write(directory.join(format!("{processor}-{number}")), bench.read("out"))?;
            }
        }
    }
    Ok(())
}
