//! Generic targets are stated in bits of `e_flags` that only code object V6 has. V5 differs from V6 in nothing else, so
//! its ABI version is raised when the code object is relabelled; V3 and V4 have other metadata.

use super::ProcessorPair;
use hotswap_code_object::CodeObject;

/// `EI_ABIVERSION` of V5.
const V5: u8 = 3;
/// Its offset in the file.
const AT: u64 = 8;

pub(super) fn judge(pair: &ProcessorPair, object: &CodeObject<'_>) -> Option<(u64, String)> {
    let (target, version) = (pair.target.processor, object.abi_version());
    let older = target.is_generic() && version < V5;
    older.then(|| (AT, format!("code object V{} cannot state the generic target {target}; V6 can", version + 2)))
}
