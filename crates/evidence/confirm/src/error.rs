//! Reasons why a kernel cannot be made, or a table cannot be read.

use hotswap_isa::encode::EncodeError;
use hotswap_report::{Diagnostic, codes};

/// Why nothing can be run.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    /// HotSwap does not know the processor's instructions.
    #[error("the instructions of {0} are not known")]
    NoInstructions(&'static str),
    /// The table of expected results has no column for the processor.
    #[error("there are no expected results for {0}")]
    NoExpectation(String),
    /// An instruction of a kernel cannot be encoded for the processor.
    #[error("{names} cannot be encoded for {processor}: {reason}")]
    NotEncoded {
        processor: &'static str,
        /// The names of the instruction in all generations.
        names: String,
        reason: EncodeError,
    },
    /// A branch leads nowhere, or too far.
    #[error("a branch has no target within its reach")]
    BranchTarget,
    /// A kernel needs more than the processor has.
    #[error("{0} cannot state the registers of a kernel")]
    Registers(&'static str),
    /// The metadata could not be written.
    #[error("metadata: {0}")]
    Metadata(String),
    /// A table of expected results is damaged.
    #[error("line {line} of the table of expected results: {reason}")]
    Table { line: usize, reason: String },
}

impl From<ConfirmError> for Diagnostic {
    fn from(error: ConfirmError) -> Self {
        Self::error(codes::NO_INSTRUCTIONS, error.to_string())
    }
}
