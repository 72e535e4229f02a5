//! AMDGPU machine code from gfx900 to gfx1251: one table-driven decoder and encoder.
//!
//! Invariants: every function is total, whatever the bytes. Bytes that no row of the tables accepts are an explicit
//! outcome, never a guess. Bits that an instruction does not define are preserved.
//!
//! Absent on purpose: files and symbols (`hotswap-code-object`), and LLVM, which is the reference in tests only.
#![no_std]

extern crate alloc;

pub mod bank;
pub mod effects;
pub mod encode;
pub mod kind;
pub mod operand;
pub mod reg;
pub mod regset;
pub mod text;
pub mod value;
pub mod versions;

mod classify;
mod decode;
mod inst;
mod isa;
mod number;
mod quirks;
mod size;
mod tables;
mod target_class;
mod walk;

pub use classify::{ClassRule, ClassifiedInst, Classifier, QuickClass, QuickClassifier};
pub use decode::Undecoded;
pub use inst::Inst;
pub use isa::{FeatureSet, Isa, Wave};
pub use operand::{Operand, OperandAccess, OperandIter};
pub use tables::{
    Class, Feature, Flag, Image, ImageBase, Implicit, InstField, Name, Piece, Slot, TableEntry, Target, table_bytes,
};
pub use value::OperandValue;
pub use walk::InstructionWalk;
