//! Assembles a case into a code object, and returns LLVM's listing of the result.
#![allow(dead_code, reason = "each test uses its part")]

use hotswap_adapt::{AdaptRequest, AdaptedObject, adapt_object};
use hotswap_report::Diagnostic;
use hotswap_userland::{Workbench, cases_in};
use std::fmt::Write;
use std::path::{Path, PathBuf};

pub(crate) const SOURCE: &str = "gfx1250";
pub(crate) const TARGET: &str = "gfx1250-strict";

/// An order for the target.
pub(crate) fn order(keep_machine: bool) -> AdaptRequest {
    AdaptRequest { target: TARGET.parse().unwrap(), keep_machine }
}

pub(crate) fn run(data: &[u8], keep_machine: bool) -> Result<AdaptedObject, Vec<Diagnostic>> {
    adapt_object(data, &order(keep_machine))
}

/// Paths of the `.s` files of a directory, sorted.
pub(crate) fn cases(directory: &str) -> Vec<PathBuf> {
    cases_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join(directory), "s")
}

pub(crate) fn stem(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

/// The value of a case's comment `// KEY: VALUE`.
pub(crate) fn setting<'c>(case: &'c str, key: &str) -> Option<&'c str> {
    case.lines().find_map(|line| line.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(": "))
}

/// A file of assembly around plain instructions: one kernel, with descriptor and metadata. The settings `vgprs`,
/// `sgprs` and `workgroup` have defaults; `descriptor` is an additional directive of the descriptor.
pub(crate) fn as_kernel(case: &str) -> String {
    let number = |key: &str, default: u32| setting(case, key).map_or(default, |value| value.parse().unwrap());
    let (vgprs, sgprs, workgroup) = (number("vgprs", 128), number("sgprs", 100), number("workgroup", 256));
    let descriptor = setting(case, "descriptor").unwrap_or_default();
    let mut text = String::from(
        ".amdgcn_target \"amdgcn-amd-amdhsa-unknown-gfx1250\"\n.amdhsa_code_object_version 5\n.text\n.globl k\n.p2align 8\n.type k,@function\nk:\n",
    );
    text += case;
    let _ = write!(
        text,
        "\n.Lk_end:\n.size k, .Lk_end-k\n.rodata\n.p2align 6\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr {vgprs}\n\
         .amdhsa_next_free_sgpr {sgprs}\n.amdhsa_inst_pref_size (.Lk_end-k+127)/128\n{descriptor}\n.end_amdhsa_kernel\n.amdgpu_metadata\n---\n\
         amdhsa.kernels:\n  - .name: k\n    .symbol: k.kd\n    .kernarg_segment_size: 0\n    .kernarg_segment_align: 4\n    \
         .group_segment_fixed_size: 0\n    .private_segment_fixed_size: 0\n    .wavefront_size: 32\n    \
         .sgpr_count: {}\n    .vgpr_count: {vgprs}\n    .max_flat_workgroup_size: {workgroup}\n\
         amdhsa.target: amdgcn-amd-amdhsa-unknown-gfx1250\namdhsa.version:\n  - 1\n  - 2\n...\n.end_amdgpu_metadata\n",
        sgprs + 2
    );
    text
}

/// Assembles and links files by one script: `NAME.o`, and `NAME.co` with its relocations.
pub(crate) fn assemble(bench: &Workbench, files: &[(String, String)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    for (name, text) in files {
        bench.write(&format!("{name}.s"), text.as_bytes());
    }
    bench.run(&format!(
        "for case in *.s; do llvm-mc-24 -triple=amdgcn-amd-amdhsa -mcpu={SOURCE} -filetype=obj $case -o ${{case%.s}}.o && \
         ld.lld-24 -shared --emit-relocs ${{case%.s}}.o -o ${{case%.s}}.co || {{ echo $case; exit 1; }}; done"
    ));
    let read = |name: &str, kind: &str| bench.read(&format!("{name}.{kind}"));
    files.iter().map(|(name, _)| (read(name, "o"), read(name, "co"))).collect()
}

/// LLVM's lines for the code of each object. None may be invalid for the target.
pub(crate) fn disassembled(bench: &Workbench, objects: &[(String, Vec<u8>)]) -> Vec<Vec<String>> {
    for (name, bytes) in objects {
        bench.write(&format!("{name}.made"), bytes);
    }
    bench.run(&format!(
        "for made in *.made; do llvm-objdump-24 -d --no-show-raw-insn --mcpu={TARGET} $made >${{made%.made}}.lines || \
         {{ echo $made; exit 1; }}; done"
    ));
    let lines = |name: &str| {
        let text = String::from_utf8(bench.read(&format!("{name}.lines"))).unwrap();
        let code = text.lines().filter(|line| line.starts_with('\t') || line.ends_with(">:"));
        let plain = |line: &str| {
            let line = line.split("//").next().unwrap().trim();
            line.split_once(" <").map_or(line, |(_, name)| name).trim().to_owned()
        };
        code.map(plain).collect::<Vec<_>>()
    };
    objects.iter().map(|(name, _)| lines(name)).collect()
}
