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
    let fixed: Vec<(u32, u32)> = fixed.map(|(value, mask)| (value as u32, mask as u32)).collect();
    code.iter().any(|section| {
        let dwords: &[[u8; 4]] = section.bytes.as_chunks().0;
        dwords.par_chunks(BLOCK).any(|block| has_any(block, &fixed))
    })
}

/// Whether a dword has one of these values under its mask.
fn has_any(block: &[[u8; 4]], fixed: &[(u32, u32)]) -> bool {
    fixed
        .iter()
        .any(|(value, mask)| block.iter().fold(false, |found, dword| found | matches_masked_value(dword, mask, value)))
}

fn matches_masked_value(dword: &[u8; 4], mask: &u32, value: &u32) -> bool {
    u32::from_le_bytes(*dword) & mask == *value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dword_among_many_is_found_wherever_it_is() {
        let fixed = [(0xbe80_4800, 0xff80_ff00), (0x1234_0000, 0xffff_0000)];
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
