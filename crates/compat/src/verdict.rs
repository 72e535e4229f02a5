//! The verdict about an ordered pair of processors.

use crate::reasons;
use hotswap_targets::Processor;

/// Whether code for one processor may be relabelled for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The compiler makes the same code for both. For a few pairs that holds only for code without
    /// certain instructions: [`crate::check`] looks at the code object.
    Identical,
    /// It may not.
    Refused {
        /// The reason, as half a sentence that names both processors.
        why: String,
    },
}

/// Whether code for `source` may be relabelled for `target`.
pub fn verdict(source: &Processor, target: &Processor) -> Verdict {
    if source.name == target.name || (source.group.is_some() && source.group == target.group) {
        return Verdict::Identical;
    }
    Verdict::Refused { why: reasons::why(source, target) }
}
