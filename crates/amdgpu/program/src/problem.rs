//! Unknowns in the control flow of a function.

use hotswap_report::{Diagnostic, codes};
use std::fmt;

/// The reason why something is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ProblemReason {
    /// Execution reaches bytes that are not an instruction.
    Undecodable,
    /// Execution runs past the end of the section.
    LeavesSection,
    /// A branch leaves the section, or its target is not a multiple of four.
    TargetOutside,
    /// Two paths decode the same bytes as different instructions.
    Overlap,
    /// A jump has an unknown target.
    UnknownJump,
    /// The address of a jump is computed from unknown numbers: a table of distances, perhaps.
    ComputedJump,
    /// The address of a jump was loaded, and no word of the file names an address inside of the function.
    UnnamedJump,
    /// The address of a jump was loaded, and memory may hold other addresses of code than those that are known.
    UnclearJump,
    /// The address of a jump was loaded, and more addresses are named than are followed.
    CrowdedJump,
    /// A jump uses the address that a register had at an entry, but no caller is known to have put
    /// a return address there.
    UnknownReturn,
    /// An instruction of the trap handler or of the fork stack transfers control.
    Exception,
    /// Code refers to code that refers to other code, deeper than is followed.
    TooDeep,
    /// The branch is resolved by a linker and its target is a symbol that the file does not define.
    Undefined,
}

impl ProblemReason {
    /// All, in a fixed order.
    pub const ALL: [Self; 13] = [
        Self::Undecodable,
        Self::LeavesSection,
        Self::TargetOutside,
        Self::Overlap,
        Self::UnknownJump,
        Self::ComputedJump,
        Self::UnnamedJump,
        Self::UnclearJump,
        Self::CrowdedJump,
        Self::UnknownReturn,
        Self::Exception,
        Self::TooDeep,
        Self::Undefined,
    ];

    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Undecodable => "execution reaches bytes that are no instruction",
            Self::LeavesSection => "execution runs over the end of the section",
            Self::TargetOutside => "the branch target is outside of the section or between dwords",
            Self::Overlap => "two paths see the same bytes as different instructions",
            Self::UnknownJump => "the address of the jump is not known",
            Self::ComputedJump => "the address of the jump is computed of numbers that nothing explains",
            Self::UnnamedJump => {
                "the address of the jump comes from memory, and no word of the file names a place inside of the function"
            }
            Self::UnclearJump => {
                "the address of the jump comes from memory, which may hold other addresses of code than the file's words"
            }
            Self::CrowdedJump => {
                "the address of the jump comes from memory, and the file's words name more places than are followed"
            }
            Self::UnknownReturn => "no caller is known to put a return address into the register of the jump",
            Self::Exception => "the instruction continues at an address of the trap handler or the fork stack",
            Self::TooDeep => "too many entries lead to each other",
            Self::Undefined => "the branch target is a symbol that is not defined here",
        }
    }
}

impl ProblemReason {
    /// Whether a jump through registers has an unknown target.
    #[must_use]
    pub const fn is_unknown_jump(self) -> bool {
        matches!(
            self,
            Self::UnknownJump | Self::ComputedJump | Self::UnnamedJump | Self::UnclearJump | Self::CrowdedJump
        )
    }
}

impl fmt::Display for ProblemReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

/// An unknown, and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnalysisProblem {
    /// Offset in the section of the instruction, or of the bytes that are not one.
    pub offset: u32,
    pub reason: ProblemReason,
}

impl AnalysisProblem {
    /// As a diagnostic: the function's name, the offset, the reason.
    #[must_use]
    pub fn diagnostic(self, function: &str) -> Diagnostic {
        Diagnostic::error(codes::NOT_SAFE, format!("the control flow of `{function}` is not known: {}", self.reason))
            .at_offset(u64::from(self.offset))
    }
}
