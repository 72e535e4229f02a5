//! Jumps and calls through registers, by their bytes alone.

use hotswap_code_object::CodeStarts;
use hotswap_isa::{Flag, Isa, TableEntry};
use rayon::prelude::*;

/// Dwords that are looked at without a branch between them, which the compiler turns into vector instructions: nearly all
/// code lacks these instructions, so nothing would be gained by ending early.
const BLOCK: usize = 4096;

/// Whether code has dwords that decode as a jump or a call through registers. Without one, only branches from
/// symbols can reach code.
pub(super) fn has_transfers(code: &[CodeStarts<'_>], isa: Isa) -> bool {
    let fixed = TableEntry::all_entries()
        .filter(|entry: &TableEntry| entry.is(Flag::IndirectBranch) && entry.available(isa))
        .map(|entry| entry.fixed());
    let fixed: Vec<FixedDword> =
        fixed.map(|(value, mask)| FixedDword { value: value as u32, mask: mask as u32 }).collect();
    code.iter().any(|section| {
        let dwords: &[[u8; 4]] = section.bytes.as_chunks().0;
        dwords.par_chunks(BLOCK).any(|block| has_any(block, &fixed))
    })
}

/// Whether a dword has one of these values under its mask.
fn has_any(block: &[[u8; 4]], fixed: &[FixedDword]) -> bool {
    fixed.iter().any(|fixed| block.iter().fold(false, |found, dword| found | fixed.matches(dword)))
}

/// The fixed bits of the first dword of an instruction.
struct FixedDword {
    value: u32,
    mask: u32,
}

impl FixedDword {
    fn matches(&self, dword: &[u8; 4]) -> bool {
        u32::from_le_bytes(*dword) & self.mask == self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dword_among_many_is_found_wherever_it_is() {
        let fixed = [
            FixedDword { value: 0xbe80_4800, mask: 0xff80_ff00 },
            FixedDword { value: 0x1234_0000, mask: 0xffff_0000 },
        ];
        for place in [0, 1, 4095, 4096, 9999] {
            let mut code = vec![0xbf80_0000_u32.to_le_bytes(); 10_000];
            assert!(!code.chunks(BLOCK).any(|block| has_any(block, &fixed)));
            for dword in [0xbe81_4802_u32, 0x1234_5678] {
                code[place] = dword.to_le_bytes();
                assert!(code.chunks(BLOCK).any(|block| has_any(block, &fixed)), "{dword:#x} at {place}");
            }
        }
    }
}
