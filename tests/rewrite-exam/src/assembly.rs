//! Hand-written assembly as code objects: kernels with descriptors and metadata.

use crate::compile::SOURCE;
use hotswap_userland::Workbench;
use std::fmt::Write;

/// A kernel of assembly: its name, and code that begins with the label of that name and may continue with other
/// functions after a label `.LNAME_end`. Comments `// vgprs: N`, `// sgprs: N`, `// lds: N` and
/// `// workgroup: N` state its resources.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// Its symbol.
    pub name: String,
    /// Assembly.
    pub code: String,
}

impl Kernel {
    /// The value of a comment `// KEY: VALUE`.
    fn setting(&self, key: &str, default: u32) -> u32 {
        let value = self.code.lines().find_map(|line| line.strip_prefix("// ")?.strip_prefix(key)?.strip_prefix(": "));
        value.and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    fn text(&self, processor: &str) -> String {
        let Self { name, code } = self;
        let own = own_directives(processor, name, self.setting("private", 0) > 0);
        let end = if code.contains(&format!("\n.L{name}_end:")) { String::new() } else { format!(".L{name}_end:\n") };
        let (vgprs, sgprs) = (self.setting("vgprs", 128), self.setting("sgprs", 100));
        let segment = self.setting("private", 0);
        format!(
            ".text\n.globl {name}\n.p2align 8\n.type {name},@function\n{code}{end}.text\n.size {name}, .L{name}_end-{name}\n\
             .section .rodata\n.p2align 6\n.amdhsa_kernel {name}\n.amdhsa_next_free_vgpr {vgprs}\n\
             .amdhsa_next_free_sgpr {sgprs}\n{own}.amdhsa_private_segment_fixed_size {segment}\n\
             .amdhsa_group_segment_fixed_size {}\n.end_amdhsa_kernel\n",
            self.setting("lds", 0)
        )
    }

    fn metadata(&self, processor: &str) -> String {
        let Self { name, .. } = self;
        let lanes = if is_gfx9(processor) { 64 } else { 32 };
        format!(
            "  - .name: {name}\n    .symbol: {name}.kd\n    .kernarg_segment_size: 0\n    .kernarg_segment_align: 4\n    \
             .group_segment_fixed_size: {}\n    .private_segment_fixed_size: {}\n    .wavefront_size: {lanes}\n    \
             .sgpr_count: {}\n    .vgpr_count: {}\n    .max_flat_workgroup_size: {}\n",
            self.setting("lds", 0),
            self.setting("private", 0),
            self.setting("sgprs", 100) + 2,
            self.setting("vgprs", 128),
            self.setting("workgroup", 256)
        )
    }
}

fn is_gfx9(processor: &str) -> bool {
    processor.len() == "gfx900".len() && processor.starts_with("gfx9")
}

/// Directives that only some processors have.
fn own_directives(processor: &str, name: &str, has_private: bool) -> String {
    let mut directives = String::new();
    if matches!(processor, "gfx90a" | "gfx942" | "gfx950") {
        directives += ".amdhsa_accum_offset 128\n";
    }
    let is_gfx11_or_later = !is_gfx9(processor) && !processor.starts_with("gfx10");
    if is_gfx11_or_later {
        directives += &format!(".amdhsa_inst_pref_size (.L{name}_end-{name}+127)/128\n");
    }
    if is_gfx11_or_later || matches!(processor, "gfx942" | "gfx950") {
        directives += &format!(".amdhsa_enable_private_segment {}\n", u32::from(has_private));
    }
    directives
}

/// A file of kernels for a processor.
fn file(processor: &str, kernels: &[Kernel]) -> String {
    let mut text = format!(".amdgcn_target \"amdgcn-amd-amdhsa-unknown-{processor}\"\n.amdhsa_code_object_version 5\n");
    kernels.iter().for_each(|kernel| text += &kernel.text(processor));
    text += ".amdgpu_metadata\n---\namdhsa.kernels:\n";
    kernels.iter().for_each(|kernel| text += &kernel.metadata(processor));
    let _ = write!(
        text,
        "amdhsa.target: amdgcn-amd-amdhsa-unknown-{processor}\namdhsa.version:\n  - 1\n  - 2\n...\n.end_amdgpu_metadata\n"
    );
    text
}

/// Object and linked code object with its relocations, for the source.
///
/// # Panics
/// If LLVM 24 does not assemble it.
pub fn assemble(bench: &Workbench, name: &str, kernels: &[Kernel]) -> [(String, Vec<u8>); 2] {
    assemble_for(bench, SOURCE, name, kernels)
}

/// The same for a processor.
///
/// # Panics
/// If LLVM 24 does not assemble it.
pub fn assemble_for(bench: &Workbench, processor: &str, name: &str, kernels: &[Kernel]) -> [(String, Vec<u8>); 2] {
    let object = bench.assemble(24, &format!("-mcpu={processor}"), name, &file(processor, kernels));
    let linked = bench.link(24, "--emit-relocs", name);
    [(format!("{name}.o"), object), (format!("{name}.relocs"), linked)]
}
