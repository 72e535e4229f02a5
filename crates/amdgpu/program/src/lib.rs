//! The program in a section of AMDGPU machine code: functions, basic blocks, edges, calls, and liveness.
//!
//! Terms: an *entry* is an offset at which execution may begin: a kernel, the second entry of a kernel with preloaded
//! arguments (256 bytes later), a function, the target of a call. A *function* is a range of the section with one entry
//! or several; bytes that no symbol covers are functions without a name, if something refers to them. A *problem* is an
//! unknown in the control flow, with its offset; it limits the knowledge of its function and of no other. A *table* is
//! made of all words of the file that name addresses in one function: a jump there to an address that was loaded may
//! reach each of them.
//!
//! Invariants: functions are disjoint and sorted. Only code that an entry reaches is code, so data between functions is
//! never taken for instructions. An edge that is not certain is a problem, never a guess. No input causes a panic here,
//! and work is linear in the code, and in the edges of tables, except for nested loops of one function.
//!
//! A [`SectionProgram`] is a program with its analyses, each computed when it is first needed (`analysis`).
//!
//! Absent on purpose: changing code, and files (a [`CodeSource`] is plain data that [`CodeSource::read`] can fill).

mod address;
mod address_slice;
mod analysis;
mod bits;
mod block;
mod calls;
mod cfg;
mod construct;
mod coverage;
mod dataflow;
mod dump;
mod escape;
mod function;
mod loops;
mod named;
mod ops;
mod place;
mod problem;
mod program;
mod query;
mod resources;
mod source;
mod waves;

pub use address::PcValue;
pub use analysis::banks::BankMap;
pub use analysis::cursor::{BankCursor, BlockCursor, LivenessCursor};
pub use analysis::interprocedural::caller_saved_vectors;
pub use analysis::liveness::{DeadLanes, LiveAround, LiveSet, Liveness, Summaries};
pub use analysis::reaching_defs::{LastDefs, ReachingDefs};
pub use analysis::section::{FunctionLiveness, SectionProgram};
pub use analysis::waitcnt::{OutstandingWrites, WaitcntState};
pub use block::{BasicBlock, BlockExit, Predecessors, Successors};
pub use calls::{CallDestination, CallSite, LINK, bottom_up};
pub use coverage::{Coverage, UnknownTransfer};
pub use dump::dump;
pub use function::{EntryKind, EntryPoint, Function};
pub use loops::{Loop, LoopNest};
pub use place::ProgramByte;
pub use problem::{AnalysisProblem, ProblemReason};
pub use program::{Program, ProgramSums};
pub use query::{CoveringInst, CoveringInsts, FunctionPaths, PathSteps};
pub use resources::{Occupancy, RegisterNeeds, occupancy};
pub use source::{
    AddressSlot, CodeSource, FixupKind, FunctionWave, KernelNeeds, LinkerFixup, MarkKind, SectionSymbol, code_lanes,
    instructions, mask_lanes,
};
