//! Products of matrices.

use crate::source::MeaningSource;

/// How a sum of products is rounded: hardware's order is not known for all targets, so code is compared under several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SumModel {
    /// One product after the other, each sum rounded.
    Sequential,
    /// The exact sum, rounded once.
    Exact,
}

/// The format of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementFormat {
    /// 16-bit float.
    F16,
    /// Brain float.
    Bf16,
    /// E4M3.
    Fp8,
    /// E5M2.
    Bf8,
    /// Integer of 8 bits, signed or not by a modifier.
    Int8,
    /// Integer of 4 bits.
    Int4,
    /// 32-bit float.
    F32,
    /// Integer of 32 bits.
    Int32,
}

/// The generation whose arrangement of elements in registers applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixShape {
    /// Columns of the first, rows of the second matrix.
    pub depth: u16,
}

/// A product of matrices.
#[derive(Debug, Clone, Copy)]
pub struct MatrixRow {
    /// Its mnemonic.
    pub name: &'static str,
    /// Its shape; rows and columns of the result are 16.
    pub shape: MatrixShape,
    /// Format of the factors.
    pub factors: [ElementFormat; 2],
    /// Format of the sum.
    pub sum: ElementFormat,
    /// Where the meaning is from.
    pub evidence: MeaningSource,
}

/// No product is known yet.
pub(crate) const ROWS: &[MatrixRow] = &[];
