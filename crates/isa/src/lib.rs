//! AMDGPU machine code from gfx900 to gfx1251: one table-driven decoder and encoder.
//!
//! Invariants: every function is total, whatever the bytes; what no row of the tables accepts is an explicit
//! outcome, never a guess; bits that an instruction does not define stay as they were found.
//!
//! Absent on purpose: files and symbols (`hotswap-code-object`), and LLVM, which judges in tests only.
#![no_std]
