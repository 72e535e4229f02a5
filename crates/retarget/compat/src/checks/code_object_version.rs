//! Generic targets are stated in bits of `e_flags` that only code object V6 has. V5 differs from V6 in nothing else, so
//! its ABI version is raised when the code object is relabelled.
//!
//! V4 has other implicit arguments (`hidden_*`), at other places. A kernel without any is the same in V6: the runtime takes
//! what else it needs from the descriptor, and from the metadata, whose own version stays 1.1: the HIP runtime goes by that
//! (clr: `createKernelMetadataMap`), so it treats such kernels as those of V4. V3 has other features in
//! `e_flags`.

use super::{ObjectFinding, ProcessorPair};
use hotswap_code_object::{CodeObject, implicit_arguments};

/// `EI_ABIVERSION` of V4 and V5.
const V4: u8 = 2;
const V5: u8 = 3;
/// Its offset in the file.
const AT: u64 = 8;

pub(super) fn judge_version(pair: &ProcessorPair, object: &CodeObject<'_>) -> Option<ObjectFinding> {
    let (target, version) = (pair.target.processor, object.abi_version());
    if !target.is_generic() || version >= V5 {
        return None;
    }
    let cannot = format!("code object V{} cannot state the generic target {target}; V6 can", version + 2);
    if version < V4 {
        return Some(ObjectFinding { offset: AT, why: cannot });
    }
    let why = match implicit_arguments(object) {
        Ok(None) => return None,
        Ok(Some(found)) => match found.kind {
            Some(kind) => {
                format!("kernel `{}` has the argument {kind}, which V6 passes at another place", found.kernel)
            }
            None => format!("kernel `{}` has arguments that its metadata does not state", found.kernel),
        },
        Err(error) => error.what,
    };
    Some(ObjectFinding { offset: AT, why: format!("{cannot}, and {why}") })
}
