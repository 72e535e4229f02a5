//! Objects of many small functions that call each other, in the shapes that make an analysis of calls slow: a summary
//! that waits for another one, thousands of times.
//!
//! Each function has a site, and saves its return address in lanes of a vector
//! register, and that register on the stack, as clang's code does. The
//! instructions are the same in every shape; only the callees differ.

use super::LLVM;
use crate::outcome::{During, Outcome};
use crate::run;
use crate::session::Session;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Who calls whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Each function calls the next one.
    Chain,
    /// Each function calls the one before it.
    Backward,
    /// Each calls the next one, and the last one calls the first.
    Cycle,
    /// Each calls two others.
    Tree,
}

/// All of them, with their names.
pub(super) const SHAPES: [(Shape, &str); 4] =
    [(Shape::Chain, "chain"), (Shape::Backward, "backward chain"), (Shape::Cycle, "cycle"), (Shape::Tree, "tree")];

const HEAD: &str = "\
\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx1250\"
\t.amdhsa_code_object_version 6
\t.text
";
/// The kernel calls the function in the place of `FIRST`.
const KERNEL: &str = "
\t.globl k
\t.p2align 8
\t.type k,@function
k:
\ts_mov_b32 s32, 0
\tv_mov_b32_e32 v1, v0
\ts_get_pc_i64 s[0:1]
\ts_add_nc_u64 s[0:1], s[0:1], FIRST@rel64+4
\ts_swap_pc_i64 s[30:31], s[0:1]
\ts_endpgm
\t.size k, .-k
\t.section .rodata,\"a\",@progbits
\t.p2align 6
\t.amdhsa_kernel k
\t\t.amdhsa_next_free_vgpr 64
\t\t.amdhsa_next_free_sgpr 64
\t\t.amdhsa_private_segment_fixed_size 16384
\t\t.amdhsa_uses_dynamic_stack 1
\t.end_amdhsa_kernel
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 0
    .max_flat_workgroup_size: 256
    .name: k
    .private_segment_fixed_size: 16384
    .sgpr_count: 64
    .symbol: k.kd
    .vgpr_count: 64
    .wavefront_size: 32
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.version:
  - 1
  - 2
...
\t.end_amdgpu_metadata
";
const ENTRY: &str = "
\ts_wait_loadcnt_dscnt 0x0
\ts_wait_kmcnt 0x0
\ts_xor_saveexec_b32 s0, -1
\tscratch_store_b32 off, v40, s32
\ts_wait_xcnt 0x0
\ts_mov_b32 exec_lo, s0
\tv_writelane_b32 v40, s30, 0
\tv_writelane_b32 v40, s31, 1
\ts_add_co_i32 s32, s32, 16
\tds_load_2addr_b32 v[2:3], v0 offset0:5 offset1:69
\tv_add_nc_u32_e32 v0, 20, v0
\ts_wait_dscnt 0x0
\tv_mad_u32 v1, v3, v2, v1
";
const CALL: &str = "\
\ts_get_pc_i64 s[0:1]
\ts_add_nc_u64 s[0:1], s[0:1], CALLEE@rel64+4
\ts_swap_pc_i64 s[30:31], s[0:1]
";
const RETURN: &str = "\
\tv_readlane_b32 s30, v40, 0
\tv_readlane_b32 s31, v40, 1
\ts_add_co_i32 s32, s32, -16
\ts_xor_saveexec_b32 s0, -1
\tscratch_load_b32 v40, off, s32
\ts_wait_xcnt 0x0
\ts_mov_b32 exec_lo, s0
\ts_wait_loadcnt 0x0
\ts_set_pc_i64 s[30:31]
";

impl Shape {
    /// The functions that a function calls.
    fn callees(self, index: usize, count: usize) -> Vec<usize> {
        match self {
            Self::Chain => (index + 1..count).take(1).collect(),
            Self::Backward => index.checked_sub(1).into_iter().collect(),
            Self::Cycle => vec![(index + 1) % count],
            Self::Tree => [2 * index + 1, 2 * index + 2].into_iter().filter(|callee| *callee < count).collect(),
        }
    }

    /// The function that the kernel calls: all others are called from there.
    fn first(self, count: usize) -> usize {
        if self == Self::Backward { count - 1 } else { 0 }
    }

    /// Assembly of a kernel and so many functions.
    fn text(self, count: usize) -> String {
        let mut text = HEAD.to_owned();
        for index in 0..count {
            let _ = write!(text, "\t.p2align 3\n\t.type f{index},@function\nf{index}:{ENTRY}");
            for callee in self.callees(index, count) {
                text += &CALL.replace("CALLEE", &format!("f{callee}"));
            }
            let _ = writeln!(text, "{RETURN}\t.size f{index}, .-f{index}");
        }
        text + &KERNEL.replace("FIRST", &format!("f{}", self.first(count)))
    }

    /// An object of so many functions, linked without relocations. Returns its name in the directory.
    pub(super) fn link(self, session: &Session, directory: &Path, count: usize) -> Outcome<String> {
        let name = format!("{self:?}-{count}");
        let source = directory.join(format!("{name}.s"));
        fs::write(&source, self.text(count)).during("write", &source)?;
        let inside = session.work.join("bench-rewrite");
        let tool = |tool: &str, words: &str| {
            let mut command = session.inside(&inside, &format!("{LLVM}/{tool}"));
            command.args(shell_words::split(words)?);
            run::output(&mut command)
        };
        tool("llvm-mc", &format!("-triple=amdgcn-amd-amdhsa -mcpu=gfx1250 -filetype=obj {name}.s -o {name}.o"))?;
        tool("ld.lld", &format!("-shared {name}.o -o {name}.co"))?;
        Ok(format!("{name}.co"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_kernel_reaches_every_function_of_every_shape() {
        const COUNT: usize = 100;
        for (shape, name) in SHAPES {
            let (mut seen, mut next) = (BTreeSet::new(), vec![shape.first(COUNT)]);
            while let Some(index) = next.pop() {
                if seen.insert(index) {
                    next.extend(shape.callees(index, COUNT));
                }
            }
            assert_eq!(seen.len(), COUNT, "{name}");
        }
        assert_eq!(Shape::Cycle.callees(COUNT - 1, COUNT), [0]);
    }
}
