//! The meaning of AMDGPU instructions: a table of operations, each with its source.
//!
//! A [`VectorRow`] says what a vector instruction computes in one lane, as a function over 32 lanes; a [`ScalarRow`] does
//! so for scalar instructions, an [`AtomicRow`] for read-modify-write accesses. Rows are found by mnemonic, once for each
//! entry of the decoder's table, and never while code runs.
//!
//! Invariants: an operation that is not in the table is unknown; nothing is guessed. Functions are total.
//!
//! Absent on purpose: registers, memory, modifiers of sources, and control flow (`hotswap-emulator`).

mod atomic;
mod compare;
mod convert;
mod double;
mod exact;
mod float;
mod float8;
mod half;
mod integer;
mod lanes;
mod lookup;
mod matrix;
mod micro_float;
mod mode;
mod packed;
mod rounding;
mod scalar;
mod single;
mod small_float;
mod source;
mod table;
mod transcendental;
mod wide;

pub use atomic::{AtomicRow, AtomicUpdate};
pub use compare::{CompareOperation, CompareRow};
pub use float::{bf16_to_f32, f16_to_f32, round_to_bf16, round_to_f16, round_to_f32};
pub use float8::Float8;
pub use integer::{TWO_SOURCE_TABLE, combine_bits};
pub use lanes::{
    BITS, CarryFunction, CarryWideFunction, LANES, LaneFunction, LaneType, Lanes, NarrowFunction, VectorRow,
    WideFunction, WideLanes, has_long_vectors, high_lanes, join_lanes, low_lanes,
};
pub use lookup::look_up_elements;
pub use matrix::{MatrixFormat, MatrixKind, MatrixModel, MatrixRow, MatrixSum, OPERAND_FORMATS, matrix_row};
pub use micro_float::MicroFloat;
pub use mode::{FloatMode, Rounding};
pub use packed::PackedRow;
pub use scalar::{ScalarFunction, ScalarInput, ScalarRow, ScalarUse};
pub use single::unfused_multiply_add;
pub use small_float::integer_dot;
pub use source::MeaningSource;
pub use table::{InstSemantics, evidence_rows, find_meaning};
