//! A function as families of scope `Function` see it.

use super::site::Scheduling;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::{Inst, Isa};

/// Instructions that run one after another.
#[derive(Debug, Clone)]
pub struct Block<'a> {
    /// In order.
    pub code: &'a [Inst],
    /// The bank mode before the first one.
    pub banks: VgprBanks,
    /// Numbers of the blocks that may come next.
    pub successors: &'a [usize],
    /// Whether execution may also go on, or come from, where the control flow is not known: calls, returns, jumps
    /// through registers. The end of a wave is no such place.
    pub leaves: bool,
    /// Whether waves begin here.
    pub begins: bool,
}

/// A function after the families of scope `Instruction`.
#[derive(Debug, Clone)]
pub struct Flow<'a> {
    /// What it is to run on.
    pub target: Isa,
    /// The blocks, in the order of the code; each number of a successor is one of theirs.
    pub blocks: &'a [Block<'a>],
    /// How the program keeps vector instructions apart.
    pub scheduling: Scheduling,
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
