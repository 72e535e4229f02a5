//! Cached queries for consecutive offsets: nearly all are in the same function, and between the same data, as the one
//! before, so that they need no look-up.
//!
//! Invariants: the answers are those of [`KnownProgram`], in whatever order offsets are queried.

use super::KnownProgram;
use hotswap_program::Function;
use std::ops::Range;

pub(crate) struct ProgramCursor<'k> {
    known: &'k KnownProgram<'k>,
    /// Offsets for which `function` is the answer.
    own: Range<u64>,
    function: Option<&'k Function>,
    /// Offsets between two ranges of data.
    free: Range<u64>,
}

impl<'k> ProgramCursor<'k> {
    pub(crate) fn new(known: &'k KnownProgram<'k>) -> Self {
        Self { known, own: 0..0, function: None, free: 0..0 }
    }

    /// The answer of [`KnownProgram::is_reached`], from the function that was found last where it holds the offset.
    #[inline]
    pub(crate) fn is_reached(&mut self, at: u64) -> bool {
        if !self.own.contains(&at) {
            self.look_up(at);
        }
        let is_reached = self.function.is_some_and(|function| function.is_instruction(at as u32));
        debug_assert_eq!(is_reached, self.known.is_reached(at), "{at:#x}");
        is_reached
    }

    /// The answer of [`KnownProgram::data_end`], at once within the last bytes that are free of data.
    #[inline]
    pub(crate) fn data_end(&mut self, at: u64) -> Option<u64> {
        if self.free.contains(&at) {
            debug_assert_eq!(self.known.data_end(at), None, "{at:#x}");
            return None;
        }
        let end = self.known.data_end(at);
        if end.is_none() {
            self.free = self.known.free_around(at);
        }
        end
    }

    #[cold]
    fn look_up(&mut self, at: u64) {
        self.function = self.known.known_function(at);
        // A function that begins inside of another one hides the rest of it.
        let functions = &self.known.program().functions;
        let next = functions.partition_point(|function| u64::from(function.start) <= at);
        let before = next.checked_sub(1).map(|last| &functions[last]);
        let start = before.map_or(0, |before| match self.function {
            Some(function) => u64::from(function.start),
            None => u64::from(before.end.max(before.start)),
        });
        let end = functions.get(next).map_or(u64::from(u32::MAX), |function| u64::from(function.start));
        let end = self.function.map_or(end, |function| end.min(u64::from(function.end)));
        self.own = start..end;
    }
}
