//! Small programs that a GPU runs, so that it judges our claims: what the emulator says about instructions, and that code made for
//! another GPU does the same.
//!
//! | step | modules |
//! | --- | --- |
//! | which instructions | `probe_table`, one table; `inputs` of each sort |
//! | kernels | `kernels`, and larger ones in `programs`, written by `assembler` for any processor, without a compiler |
//! | code objects | `object_writer`; `probe_objects` has one for each group, `siblings` derives those of other GPUs |
//! | runs | `card` asks HIP for the GPU; `session` runs all groups, `batches` each in a process of its own (`hip_process`, by `hip`) |
//! | judgement | `expected` results, which the emulator gave when the table was written; `judge` compares; `report` |
//!
//! The expected results are data (`expected.txt`), written by a test and read in review: a change of the emulator that changes a
//! result is seen there, a report names results that do not depend on the build, and this crate does not contain the
//! emulator that the GPU is to judge.
//!
//! Invariant: whatever touches the GPU is done by child processes with a time limit.
//!
//! Absent on purpose: the emulator, and printing (the command `hotswap confirm`).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod assembler;
mod batches;
mod card;
mod error;
mod expected;
mod hip;
mod hip_process;
mod inputs;
mod judge;
mod kernels;
mod object_writer;
mod probe_objects;
mod probe_table;
mod programs;
mod report;
mod session;
mod siblings;

pub use card::{check_environment, examine_card};
pub use error::ConfirmError;
pub use expected::{EXPECTED_TEXT, ExpectedKey, ExpectedResults, ExpectedTable, digest_words, parse_words};
pub use hip_process::{ASK_HIP, ask_hip};
pub use inputs::{CASES, INPUT_WORDS, InputSort, RESULT_WORDS, STATED, all_inputs, case_inputs};
pub use judge::{BlockDifference, CaseDifference, ProbeDifference, compare_expected, compare_runs, judged_cases};
pub use object_writer::ARGUMENT_BYTES;
pub use probe_objects::{ProbeLaunch, ProbeObject, judged_processors, make_objects};
pub use probe_table::{Judgement, Probe, ProbeKind, all_groups, all_probes};
pub use report::{CardFacts, ConfirmReport, ProbeOutcome, ProbeVerdict, SiblingOutcome};
pub use session::{ConfirmProgress, ConfirmRequest, confirm_card};
pub use siblings::{derive_object, sibling_processors};
