//! Where meanings are from.

/// Where the meaning of an operation is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeaningSource {
    /// LLVM selects the instruction for this operation or intrinsic.
    Llvm(&'static str),
    /// The topic in AMD's instruction set documents; the meaning is stated in own words.
    Document(&'static str),
}
