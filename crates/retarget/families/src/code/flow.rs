//! A function in the view of families of scope `Function`.
//!
//! Invariants: the code of a block is only decoded when a family queries it. Most functions are large, and few of their
//! blocks concern a family.

use super::site::Scheduling;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::{Inst, Isa};

/// Instructions that run one after another.
#[derive(Debug, Clone)]
pub struct FlowBlock<'a> {
    /// The bank mode before the first one.
    pub banks: VgprBanks,
    /// Numbers of the possible successors.
    pub successors: &'a [u32],
    /// Whether control flow may also leave to, or arrive from, unknown code: calls, returns, jumps through registers.
    /// The end of a wave does not count.
    pub leaves: bool,
    /// Whether waves start here.
    pub begins: bool,
}

/// The instructions of a function.
pub trait FunctionCode {
    /// Those of a block, in order.
    fn of_block(&self, number: usize) -> &[Inst];
}

/// A function after the families of scope `Instruction`.
#[derive(Clone, Copy)]
pub struct FunctionFlow<'a> {
    /// The target that it is to run on.
    pub target: Isa,
    /// The blocks, in the order of the code; each number of a successor is one of theirs.
    pub blocks: &'a [FlowBlock<'a>],
    pub code: &'a dyn FunctionCode,
    /// Numbers of the blocks with instructions that concern the current family, in ascending order.
    /// The others have none.
    pub concerned: &'a [usize],
    /// How the program keeps vector instructions apart.
    pub scheduling: Scheduling,
}

impl FunctionFlow<'_> {
    /// The instructions of a block.
    pub fn block_code(&self, block: usize) -> &[Inst] {
        self.code.of_block(block)
    }
}

/// Instructions to put before one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insertion {
    /// Number of the block.
    pub block: usize,
    /// Index of the instruction that they precede; the block's length means the end of the block.
    pub before: usize,
    /// The instructions to insert. None: a clause that holds the instruction ends before it.
    pub code: Vec<Inst>,
}
