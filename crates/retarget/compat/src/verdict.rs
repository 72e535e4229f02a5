//! The verdict about an ordered pair of processors.

use crate::matrix::{self, MatrixVerdict};
use crate::{Check, reasons};
use hotswap_targets::Processor;

/// Whether code for one processor may serve another, and the required conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The compiler emits the same code for both. For a few pairs that holds only for code that passes checks.
    Identical {
        /// The checks that [`crate::check`] runs on a code object.
        checks: &'static [Check],
    },
    /// The compiler emits different code, but code that passes the checks does the same on both.
    Conditional {
        /// The checks that [`crate::check`] runs on a code object.
        checks: &'static [Check],
    },
    /// Some of the code must be rewritten: code families can do that, or refuse.
    Rewrite,
    /// It may not serve.
    Refused {
        /// The reason, as half a sentence that names both processors.
        why: String,
    },
}

impl Verdict {
    /// The checks to run on a code object; `None` where the pair is refused whatever the code.
    pub fn checks(&self) -> Option<&'static [Check]> {
        match self {
            Self::Identical { checks } | Self::Conditional { checks } => Some(checks),
            Self::Rewrite => Some(&[]),
            Self::Refused { .. } => None,
        }
    }

    /// Whether the compiler emits the same code for both.
    pub fn is_identical(&self) -> bool {
        matches!(self, Self::Identical { .. })
    }
}

/// Whether code for `source` may serve `target`: the row of the matrix.
pub fn pair_verdict(source: &Processor, target: &Processor) -> Verdict {
    if source.name == target.name {
        return Verdict::Identical { checks: &[] };
    }
    match matrix::find_row(source, target).map(|row| row.answer) {
        Some(MatrixVerdict::Identical(checks)) => Verdict::Identical { checks },
        Some(MatrixVerdict::Conditional(checks)) => Verdict::Conditional { checks },
        Some(MatrixVerdict::Rewrite) => Verdict::Rewrite,
        Some(MatrixVerdict::Unsafe(why)) => {
            Verdict::Refused { why: format!("code for {source} cannot serve {target}: {why}") }
        }
        None => Verdict::Refused { why: reasons::refusal_reason(source, target) },
    }
}
