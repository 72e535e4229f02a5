//! Writes the first inputs of each fuzz target: hand-made profiles, and small code objects of LLVM.

#![allow(missing_docs)]

use hotswap_userland::Workbench;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Sizes of header and record, and the header words of the sizes of names and of the counters' delta, by version.
const LAYOUTS: &[(u64, usize, usize, usize, usize)] = &[(10, 16, 64, 9, 48), (11, 19, 72, 12, 56)];

/// A profile of one function with two counters.
fn profile(&(version, words, record, names, count): &(u64, usize, usize, usize, usize)) -> Vec<u8> {
    let mut head = vec![0_u64; words];
    (head[0], head[1], head[3], head[5]) = (0xff6c_7072_6f66_7281, version, 1, 2);
    (head[names], head[names + 1]) = (3, record as u64);
    let mut data = vec![0; record];
    data[16..24].copy_from_slice(&(record as u64).to_le_bytes());
    data[count] = 2;
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    [words(&head), data, words(&[1, 2]), b"abc\0\0\0\0\0".to_vec()].concat()
}

const SOURCE: &str = "
__attribute__((noinline)) int helper(int a) { return a * 7; }
kernel void k(global int *x) { for (int i = 0; i < x[3]; i++) *x += helper(x[i]); }
";

fn main() -> io::Result<()> {
    let Some(directory) = env::args_os().nth(1) else { return Err(io::Error::other("usage: seeds DIRECTORY")) };
    let directory = PathBuf::from(directory);
    for layout in LAYOUTS {
        let one = profile(layout);
        put(&directory, "raw_profile", &format!("version-{}", layout.0), &one)?;
        put(&directory, "raw_profile", &format!("twice-{}", layout.0), &[one.as_slice(), &one].concat())?;
    }
    let Some(bench) = Workbench::new("seeds of code objects") else {
        return Err(io::Error::other("the seeds need the userland: `cargo xtask setup`"));
    };
    bench.write("k.cl", SOURCE.as_bytes());
    for processor in ["gfx900", "gfx1030", "gfx1250"] {
        let file = compiled(&bench, processor, "k.cl", "-x cl -cl-std=CL2.0 -O1");
        put(&directory, "disasm_json", processor, &file)?;
    }
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../tests/rewrite-exam/cases");
    for case in fs::read_dir(cases)?.flatten().map(|entry| entry.path()) {
        if case.extension().is_some_and(|extension| extension == "s") {
            bench.write("case.s", kernel(&fs::read_to_string(&case)?).as_bytes());
            let name = case.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            put(&directory, "families", &name, &compiled(&bench, "gfx1250", "case.s", ""))?;
            put(&directory, "families", &format!("{name}-o"), &bench.read("out.o"))?;
        }
    }
    Ok(())
}

/// The code of a case as a kernel `k`, with descriptor and metadata.
fn kernel(code: &str) -> String {
    let end = if code.contains("\n.Lk_end:") { "" } else { ".Lk_end:\n" };
    format!(
        ".amdgcn_target \"amdgcn-amd-amdhsa-unknown-gfx1250\"\n.amdhsa_code_object_version 5\n.text\n.globl k\n.p2align 8\n\
         .type k,@function\n{code}{end}.text\n.size k, .Lk_end-k\n.section .rodata\n.p2align 6\n.amdhsa_kernel k\n\
         .amdhsa_next_free_vgpr 128\n.amdhsa_next_free_sgpr 100\n.end_amdhsa_kernel\n.amdgpu_metadata\n---\namdhsa.kernels:\n  \
         - .name: k\n    .symbol: k.kd\n    .kernarg_segment_size: 0\n    .kernarg_segment_align: 4\n    \
         .group_segment_fixed_size: 0\n    .private_segment_fixed_size: 0\n    .wavefront_size: 32\n    .sgpr_count: 102\n    \
         .vgpr_count: 128\n    .max_flat_workgroup_size: 256\n\
         amdhsa.target: amdgcn-amd-amdhsa-unknown-gfx1250\namdhsa.version:\n  - 1\n  - 2\n...\n.end_amdgpu_metadata\n"
    )
}

/// A linked code object; `out.o` is the relocatable one.
fn compiled(bench: &Workbench, processor: &str, file: &str, options: &str) -> Vec<u8> {
    let bin = "/usr/lib/llvm-24/bin";
    bench.run(&format!(
        "{bin}/clang --target=amdgcn-amd-amdhsa -mcpu={processor} -nogpulib -fPIC -w {options} -c {file} -o out.o"
    ));
    bench.run(&format!("{bin}/ld.lld -shared --emit-relocs out.o -o linked"));
    bench.read("linked")
}

fn put(directory: &Path, target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(directory.join(target))?;
    fs::write(directory.join(target).join(name), bytes)
}
