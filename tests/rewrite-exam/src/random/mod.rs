//! Random kernels for gfx1250, in assembly: matrix instructions, conversions of UE5M3, LDS at two addresses and by the number
//! of the lane, cluster and tensor loads, the scratch base, banks, loops, masked lanes, clauses, calls.
//!
//! Invariants: the code is valid for the source: registers that an operation in flight writes are waited for, modes of banks
//! agree where paths meet, and a result of a matrix instruction overlaps its factors nowhere. A seed gives one kernel.
//!
//! Absent on purpose: distances that LLVM leaves on the source, which a rewrite for the target must make larger anyway.

mod registers;
mod templates;
mod writer;

use crate::assembly::Kernel;
use registers::RandomSource;
use writer::KernelWriter;

/// Vector registers of kernels: one bank in part, and up to four.
const REGISTERS: [u32; 5] = [96, 128, 256, 512, 1024];

/// The kernel of a seed.
#[must_use]
pub fn random_kernel(seed: u64) -> Kernel {
    let mut random = RandomSource::new(seed);
    let registers = REGISTERS[random.below(REGISTERS.len() as u32) as usize];
    let name = format!("r{seed}");
    let calls = random.percent(25);
    let mut writer = KernelWriter::new(random, name.clone(), registers);
    writer.start_kernel();
    writer.write_body(calls);
    writer.end_kernel();
    let mut code = format!("// vgprs: {registers}\n// workgroup: 32\n// lds: 4096\n{name}:\n{}", writer.take_text());
    if calls {
        let mut callee = writer.into_callee();
        callee.write_body(false);
        callee.end_callee();
        code += &format!(
            ".L{name}_end:\n\t.p2align 8\n\t.type {name}_f,@function\n{name}_f:\n{}.L{name}_f_end:\n\t.size {name}_f, .L{name}_f_end-{name}_f\n",
            callee.take_text()
        );
    }
    Kernel { name, code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_kernel() {
        let code = |seed| random_kernel(seed).code;
        assert_eq!(code(7), code(7));
        assert_ne!(code(7), code(8));
    }
}
