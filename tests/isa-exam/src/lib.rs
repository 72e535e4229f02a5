//! The exams of `hotswap-isa`: every answer of it is compared with LLVM's.
//!
//! - [`vectors`]: the words of LLVM's own MC tests, and its assembler's encodings of their assembly text;
//! - [`sweep`]: structured and random encodings of every row;
//! - [`code`]: kernels that clang compiled, and libraries that a distribution ships;
//! - [`effects`]: reads and writes of every encoding, compared with the records that LLVM is made from.
//!
//! Invariants: LLVM runs in processes of its own ([`oracle`]), because it crashes on some words. Every difference is
//! counted, and one that no line of the lists explains fails the exam. The same seed makes the same words.
//!
//! Absent on purpose: LLVM's test files (the set-up fetches them), and answers of `hotswap-isa` that are right by
//! definition: the expectation always comes from LLVM.

pub mod code;
pub mod defects;
pub mod effects;
pub mod exam;
pub mod left_out;
pub mod normal;
pub mod oracle;
pub mod ours;
pub mod report;
pub mod setting;
pub mod sweep;
pub mod tools;
pub mod vectors;
pub mod verdict;
pub mod versions;
