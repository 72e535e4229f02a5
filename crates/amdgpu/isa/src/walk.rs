//! Iteration over instructions.
//!
//! Invariants: offsets increase. Every byte of the input belongs to exactly one item. Opaque bytes of unknown length
//! are skipped one dword at a time, as LLVM's disassembler does.

use crate::decode::Undecoded;
use crate::inst::Inst;
use crate::isa::Isa;
use core::hint::black_box;

impl Isa {
    /// The instructions of `bytes`, with their offsets; continues after bytes that do not decode.
    pub fn walk(self, bytes: &[u8]) -> InstructionWalk<'_> {
        InstructionWalk { isa: self, bytes, offset: 0, steps: black_box([4, 8]) }
    }
}

/// The instructions of a piece of code, see [`Isa::walk`].
#[derive(Debug, Clone)]
pub struct InstructionWalk<'a> {
    isa: Isa,
    bytes: &'a [u8],
    offset: usize,
    /// The commonest lengths. The processor predicts which one applies and begins with the next instruction before this
    /// one is decoded; constants known to the compiler would become a sum that has to be waited for.
    steps: [usize; 2],
}

impl InstructionWalk<'_> {
    /// The offset of the next item.
    pub fn offset(&self) -> usize {
        self.offset
    }

    #[inline(never)]
    fn slow_step(&mut self, rest: &[u8]) -> Result<Inst, Undecoded> {
        let result = self.isa.decode_slowly(rest);
        self.offset += match result {
            Ok(inst) => usize::from(inst.len()),
            Err(Undecoded::Opaque { len }) => usize::from(len.unwrap_or(4)).min(rest.len()),
            Err(Undecoded::Truncated { .. }) => rest.len(),
        };
        result
    }

    #[inline]
    fn step(&self, len: u8) -> usize {
        match len {
            4 => self.steps[0],
            8 => self.steps[1],
            _ => usize::from(len),
        }
    }
}

impl Iterator for InstructionWalk<'_> {
    type Item = (usize, Result<Inst, Undecoded>);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.offset..).filter(|rest| !rest.is_empty())?;
        let offset = self.offset;
        if let Some(inst) = self.isa.decode_fast(rest) {
            self.offset += self.step(inst.len());
            return Some((offset, Ok(inst)));
        }
        Some((offset, self.slow_step(rest)))
    }
}
