//! The checks that read code: their table, and the one function that runs those of a pair.
//!
//! A check is a named question about one code object; a pair of processors whose code is the same *unless* names the
//! checks that settle it ([`crate::Verdict`]). All findings are collected, because who has to change a library wants to
//! know every kernel, not the first.
//!
//! Invariants: a check that cannot be answered is a refusal; a refusal names the kernel, the offset and, where there is
//! one, the instruction.
//!
//! Absent on purpose: which pair needs which check (the verdict), and changing the code.

use crate::{Verdict, condition, verdict};
use hotswap_code_object::CodeObject;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use std::fmt;

/// Declares [`Check`] from lines `Name "name" "what it asks"`.
macro_rules! checks {
    ($($name:ident $text:literal $doc:literal,)*) => {
        /// A question about a code object that decides whether it may serve another processor.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Check {
            $(#[doc = $doc] $name,)*
        }

        impl Check {
            /// All of them, in the order in which they run.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name in listings.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What it asks.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $doc,)* }
            }
        }
    };
}

checks! {
    CodeObjectVersion "code-object-version" "Is the code object of a version that can state the target? Generic targets need V6, which V5 can become.",
    Features "features" "Do the stated settings of XNACK and SRAMECC hold on the target?",
    WaveSize "wave-size" "Does the target have waves of the size that each kernel asks for?",
    Lds "lds" "Does the static LDS of each kernel fit the target?",
    VgprFit "vgpr-fit" "Do the largest workgroups of each kernel fit the vector registers of the target?",
    UserSgprs16 "user-sgprs-16" "Does each kernel in waves of 32 lanes set up the 16 scalar registers that the target needs?",
    SameInstructions "same-instructions" "Is every instruction there on the target, with the same operands and the same meaning?",
    D16Loads "d16-loads" "Is the code free of 16-bit loads into one half of a register, which lose the other half under SRAMECC?",
    ImageSampling "image-sampling" "Is the code free of image sampling, which the target accelerates and needs waits around?",
    Exports "exports" "Is the code free of exports, which the target orders by a priority that the source does not have?",
    MatrixWaits "matrix-waits" "Is the code free of matrix instructions that need longer waits on the target?",
    Hazards "hazards" "Is the code free of instructions around which the target, but not the source, needs a workaround?",
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What was looked at, when nothing was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// The checks of the pair, in the order in which they ran.
    pub ran: Vec<Ran>,
    /// Instructions that were decoded; 0 where no check asks about instructions.
    pub instructions: u64,
    /// Words outside of every function that neither processor decodes.
    pub opaque: u64,
}

/// A check that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// Which.
    pub check: Check,
    /// Kernels or instructions that it judged.
    pub judged: u64,
}

/// Runs the checks of the pair on a code object; `target` is what it shall be relabelled for.
///
/// # Errors
/// [`codes::PAIR_REFUSED`] where the verdict about the pair is no; otherwise a [`codes::NOT_SAFE`] for everything that
/// was found.
pub fn check(object: &CodeObject<'_>, target: &TargetId) -> Result<Checked, Vec<Diagnostic>> {
    let source = object.target_id().processor;
    let checks = match verdict(source, target.processor) {
        Verdict::Identical { checks } | Verdict::Conditional { checks } => checks,
        Verdict::Refused { why } => return Err(vec![Diagnostic::error(codes::PAIR_REFUSED, why)]),
    };
    condition::check(object, target.processor).map_err(|error| vec![error])?;
    Ok(Checked { ran: checks.iter().map(|check| Ran { check: *check, judged: 0 }).collect(), ..Checked::default() })
}
