//! Jumps and calls through registers, by their bytes alone.

use hotswap_code_object::CodeStarts;
use hotswap_isa::{Entry, Flag, Isa};

/// Whether code has dwords that decode as a jump or a call through registers. Without one, only branches from symbols
/// can reach code.
pub(super) fn has_transfers(code: &[CodeStarts<'_>], isa: Isa) -> bool {
    let is_indirect = |entry: &Entry| entry.is(Flag::IndirectBranch) && entry.available(isa);
    let fixed = Entry::all().filter(is_indirect).map(|entry| entry.fixed());
    let fixed: Vec<(u32, u32)> = fixed.map(|(value, mask)| (value as u32, mask as u32)).collect();
    let is_one = |dword: &[u8; 4]| {
        let dword = u32::from_le_bytes(*dword);
        fixed.iter().any(|(value, mask)| dword & mask == *value)
    };
    code.iter().any(|section| section.bytes.as_chunks().0.iter().any(is_one))
}
