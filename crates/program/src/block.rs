//! Basic blocks.

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Exit {
    /// Into the next block, which something else leads to as well.
    Fall,
    /// By a branch that is always taken.
    Branch,
    /// By a branch that may be taken: the target, then the next block.
    Conditional,
    /// By a call, which comes back behind it.
    Call,
    /// By a jump to an address that was found in scalar registers: a long branch. It has no successor where no path comes to
    /// it, because the sign of a distance is known that is asked for before.
    Jump,
    /// Back to where the function was called from; the address is in a pair of scalar registers.
    Return,
    /// Into another function, for good.
    Tail,
    /// The wave ends.
    End,
    /// Nobody knows: a [`Problem`](crate::Problem) of the function says why.
    Unknown,
}

/// Instructions of which, if the first is executed, all are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Offset of the first instruction.
    pub start: u32,
    /// Offset of the last instruction.
    pub last: u32,
    /// Offset behind the last instruction.
    pub end: u32,
    /// Where its edges begin.
    pub(crate) first_edge: u32,
    /// How many successors it has in its function.
    pub(crate) edges: u8,
    /// How it ends.
    pub exit: Exit,
    /// For a return the first register of the pair; it is 255 otherwise.
    pub(crate) link: u8,
}
