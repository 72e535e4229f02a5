//! Liveness of registers.
//!
//! Terms: a vector register is live *in active lanes* if some lane of EXEC holds a value that may still be read, and
//! *in other lanes* if some lane outside of EXEC does. A masked write ends a value's life in active lanes only. When
//! EXEC shrinks or grows, the two sets are carried over as far as that is certain, and joined where it is not. So a
//! write under a partial EXEC never kills the values of other lanes, and a register that is dead in active lanes may be
//! used for work under the same EXEC even where it is live in others.
//!
//! Invariants: too much may be live, never too little. A half of a register counts as all of it, and a partial write
//! kills nothing. Unknown callees (but see [`Summaries::by_convention`]), unknown jumps and returns to unknown callers
//! need everything. An operand whose bank is not known reads every bank and writes none. Work is linear except for
//! nested loops: blocks are visited in postorder until nothing changes.
//!
//! Absent on purpose: outstanding memory operations. A register that a load will write is not live, but it is not free
//! before the wait either (see [`super::waitcnt`]).

mod set;
mod solve;
mod step;
mod summary;

pub use set::{DeadLanes, LiveSet};
pub use solve::{LiveAround, Liveness};
pub use summary::Summaries;
