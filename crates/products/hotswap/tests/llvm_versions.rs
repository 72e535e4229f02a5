//! Instructions that LLVM 23 reads and LLVM 24 rejects: `lint`, `check` and `disasm` name them, in text and JSON, and succeed.

use assert_cmd::Command;
use hotswap_userland::Workbench;
use serde_json::{Value, json};

const KERNEL: &str = ".amdgcn_target \"amdgcn-amd-amdhsa-unknown-gfx1100\"
.amdhsa_code_object_version 5
.text
.globl k
.p2align 8
.type k,@function
k:
v_mov_b32 v0, s4
// v_mov_b32 v1, src_vccz
.long 0x7e0202fb
s_endpgm
.Lend:
.size k, .Lend-k
.section .rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_next_free_vgpr 8
.amdhsa_next_free_sgpr 8
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 0
    .kernarg_segment_align: 4
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 8
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
amdhsa.target: amdgcn-amd-amdhsa-unknown-gfx1100
amdhsa.version:
  - 1
  - 2
...
.end_amdgpu_metadata
";
const LINE: &str = "rejected by LLVM 24, accepted by LLVM 23: src_vccz or src_execz as an operand";

/// Standard output of a command that succeeds.
fn printed(bench: &Workbench, words: &[&str]) -> String {
    let result =
        Command::new(env!("CARGO_BIN_EXE_hotswap")).current_dir(bench.directory()).args(words).assert().success();
    String::from_utf8(result.get_output().stdout.clone()).unwrap()
}

fn printed_json(bench: &Workbench, words: &[&str]) -> Value {
    serde_json::from_str(&printed(bench, &[words, &["--format", "json"]].concat())).unwrap()
}

#[test]
fn forms_that_a_newer_llvm_rejects_are_named_without_an_error() {
    let Some(bench) = Workbench::with_llvm(23, "forms of LLVM 23") else { return };
    bench.assemble(23, "-mcpu=gfx1100", "old", KERNEL);
    bench.link(23, "", "old");
    assert!(bench.disassemble(23, "", "old.co").contains("v_mov_b32_e32 v1, src_vccz"));
    if bench.versions.contains(&24) {
        assert!(!bench.disassemble(24, "", "old.co").contains("v_mov_b32_e32 v1"), "LLVM 24 rejects it");
    }
    bench.assemble(23, "-mcpu=gfx1100", "new", &KERNEL.replace("0x7e0202fb", "0x7e020300"));
    bench.link(23, "", "new");
    let place = format!("  {LINE}: `v_mov_b32` at .text + 0x4 in k\n");
    let form = json!({
        "section": ".text", "function": "k", "offset": 4, "mnemonic": "v_mov_b32", "accepted_by": 23, "rejected_by": 24,
        "form": "src_vccz or src_execz as an operand",
    });
    assert!(printed(&bench, &["lint", "old.co"]).ends_with(&place));
    assert!(!printed(&bench, &["lint", "new.co"]).contains("rejected"));
    assert_eq!(printed_json(&bench, &["lint", "old.co"])["files"][0]["objects"][0]["rejected"], json!([form]));
    assert_eq!(printed_json(&bench, &["lint", "new.co"])["files"][0]["objects"][0]["rejected"], json!([]));
    let check = ["check", "--before", "old.co", "--after", "old.co"];
    assert!(printed(&bench, &check).ends_with(&format!("before:\n{place}after:\n{place}")));
    assert_eq!(printed_json(&bench, &check)["rejected"], json!({ "before": [form], "after": [form] }));
    let listing = printed(&bench, &["disasm", "old.co"]);
    assert_eq!(listing.lines().filter(|line| line.contains(LINE)).count(), 1, "{listing}");
    assert!(!printed(&bench, &["disasm", "new.co"]).contains("rejected"));
}
