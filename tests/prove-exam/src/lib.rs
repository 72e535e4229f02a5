//! Evidence that what HotSwap makes does what it was made from, by execution.
//!
//! - [`subjects`]: objects and their rewritten forms; [`rewrites`]: both are executed on generated states.
//!
//! Invariants: expectations come from the host's processor, from the original, or from an SMT solver. The judge is the
//! emulator, which shares nothing with the rewriter.

pub mod rewrites;
pub mod subjects;
