//! A function as families of scope `Function` see it.
//!
//! Invariants: the code of a block is only made when a family asks for it; most functions are large, and what concerns a
//! family is in few of their blocks.

use super::site::Scheduling;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::{Inst, Isa};

/// Instructions that run one after another.
#[derive(Debug, Clone)]
pub struct Block<'a> {
    /// The bank mode before the first one.
    pub banks: VgprBanks,
    /// Numbers of the blocks that may come next.
    pub successors: &'a [u32],
    /// Whether execution may also go on, or come from, where the control flow is not known: calls, returns, jumps
    /// through registers. The end of a wave is no such place.
    pub leaves: bool,
    /// Whether waves begin here.
    pub begins: bool,
}

/// The instructions of a function.
pub trait Code {
    /// Those of a block, in order.
    fn of_block(&self, number: usize) -> &[Inst];
}

/// A function after the families of scope `Instruction`.
#[derive(Clone, Copy)]
pub struct Flow<'a> {
    /// What it is to run on.
    pub target: Isa,
    /// The blocks, in the order of the code; each number of a successor is one of theirs.
    pub blocks: &'a [Block<'a>],
    /// Their instructions.
    pub code: &'a dyn Code,
    /// Numbers of the blocks with instructions that concern the family that is asked; rising. The others have none.
    pub concerned: &'a [usize],
    /// How the program keeps vector instructions apart.
    pub scheduling: Scheduling,
}

impl Flow<'_> {
    /// The instructions of a block.
    pub fn code(&self, block: usize) -> &[Inst] {
        self.code.of_block(block)
    }
}

/// Instructions to put before one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insertion {
    /// Number of the block.
    pub block: usize,
    /// Number of the instruction in it that they stand before; its length stands for the end of the block.
    pub before: usize,
    /// What to put there.
    pub code: Vec<Inst>,
}
