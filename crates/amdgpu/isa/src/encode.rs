//! Encoding: changing a field of an instruction, and building instructions from operands.
//!
//! A change never assembles anew: the bits of the field are replaced and all other bits are kept, including those that
//! do not matter ([`crate::Inst::with_field`], [`crate::Inst::with_operand`]). Building starts from the fixed bits of a
//! table entry, puts the operands into their fields and sets the bits that do not matter as LLVM's assembler does
//! ([`InstructionBuilder`]).
//!
//! Invariants: every result was decoded again and is the requested table entry. Every refusal names the operand and the
//! reason. Nothing is allocated.
//!
//! Absent on purpose: assembly text, the rules of which registers a dual instruction may combine, and hazards.

mod build;
mod constant;
mod error;
mod field;
mod fill;
mod operand;
mod raw;
mod rules;
mod usual;

pub use build::{InstructionBuilder, OperandArg, build_among, reassemble};
pub use error::EncodeError;
