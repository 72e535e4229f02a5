//! What AMDGPU instructions compute: a table of operations, each with its source.
//!
//! Invariants: an operation that is not in the table is unknown; nothing is guessed.
//!
//! Absent on purpose: registers, memory and control flow (`hotswap-emulator`).
