//! Inputs for single sections: programs that the caller has, new bytes, and the ends that may move.

use hotswap_program::Program;

/// The program of a section, which the caller has already.
#[derive(Debug, Clone, Copy)]
pub struct LentProgram<'o> {
    /// Number of the section.
    pub section: usize,
    pub program: &'o Program<'o>,
}

/// New bytes of any size for a section without references into it: the metadata note.
#[derive(Debug, Clone, Copy)]
pub struct SectionContent<'o> {
    /// Number of the section.
    pub section: usize,
    pub bytes: &'o [u8],
}

/// The end of a section, whose positions matter only to code written by this crate. Bytes before it must not move if
/// something there cannot be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovableTail {
    /// Number of the section.
    pub section: usize,
    /// Offset in the section.
    pub from: u64,
}
