//! Instruction after instruction.
//!
//! Invariants: offsets grow; every byte of the input belongs to exactly one item; opaque bytes of unknown length are
//! passed over one dword at a time, as LLVM's disassembler does.

use crate::decode::Undecoded;
use crate::inst::Inst;
use crate::isa::Isa;

impl Isa {
    /// The instructions of `bytes`, with their offsets; goes on after bytes that are none.
    pub fn walk(self, bytes: &[u8]) -> Walk<'_> {
        Walk { isa: self, bytes, offset: 0 }
    }
}

/// See [`Isa::walk`].
#[derive(Debug, Clone)]
pub struct Walk<'a> {
    isa: Isa,
    bytes: &'a [u8],
    offset: usize,
}

impl Walk<'_> {
    /// Where the next item begins.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl Iterator for Walk<'_> {
    type Item = (usize, Result<Inst, Undecoded>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.bytes.get(self.offset..).filter(|rest| !rest.is_empty())?;
        let offset = self.offset;
        let result = self.isa.decode(rest);
        self.offset += match result {
            Ok(inst) => usize::from(inst.len()),
            Err(Undecoded::Opaque { len }) => usize::from(len.unwrap_or(4)).min(rest.len()),
            Err(Undecoded::Truncated { .. }) => rest.len(),
        };
        Some((offset, result))
    }
}
