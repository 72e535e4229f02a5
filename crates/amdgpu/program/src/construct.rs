//! The ways to a program: all functions of a section, or those that matter for some places.
//!
//! Invariants: entries are open where the address of their code escapes ([`crate::escape`]), whichever way is taken; by the
//! cheapest way perhaps more of them.

use crate::escape;
use crate::program::Program;
use crate::source::CodeSource;

impl<'a> Program<'a> {
    /// Finds the functions of a section.
    #[must_use]
    pub fn build(source: CodeSource<'a>) -> Self {
        Self::analysed(source, None)
    }

    /// Finds the functions of a section for a caller that needs their calls, and not where their callers are: entries are also
    /// open where an address is only lost from sight. That takes a fraction of the time.
    #[must_use]
    pub fn with_calls(source: CodeSource<'a>) -> Self {
        let mut program = Self::make(source, None);
        escape::open_lost(&mut program);
        program
    }

    /// Finds the functions that hold some of the offsets, and all others that results about them may depend on.
    ///
    /// Stretches are skipped if they contain none of these offsets, call nothing, compute no address of
    /// code, jump only within themselves, and are not called by included code. Nothing is known about them,
    /// and [`function_at`](Self::function_at) returns `None`. All calls, all computations of addresses and
    /// all problems are included.
    #[must_use]
    pub fn around(source: CodeSource<'a>, offsets: &[u32]) -> Self {
        Self::analysed(source, Some(offsets))
    }

    fn analysed(source: CodeSource<'a>, offsets: Option<&[u32]>) -> Self {
        let mut program = Self::make(source, offsets);
        escape::open_escaping(&mut program);
        program
    }
}
