//! Functions while their code is being found: plain data, which the passes of this module fill in.

use crate::address::{LostAddress, PcValue};
use crate::bits::{DwordSet, Ranks};
use crate::block::{BasicBlock, PackedBlocks, SuccessorEdges};
use crate::named::NamedRegisterSets;
use crate::place::ProgramByte;
use crate::problem::AnalysisProblem;
use std::collections::BTreeSet;

/// The target of a jump through a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JumpTarget {
    To(ProgramByte),
    /// To the value that the register and the next one held at the function's entry.
    Return(u8),
    /// No path reaches it: a known number decides against it.
    Never,
    Unknown,
}

/// A jump through registers, with its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrackedJump {
    pub(crate) offset: u32,
    pub(crate) target: JumpTarget,
}

/// A call through registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrackedCall {
    pub(crate) offset: u32,
    pub(crate) to: Option<ProgramByte>,
    /// The first register of the return address.
    pub(crate) link: u8,
}

/// The result of following addresses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracked {
    /// In ascending order of their offsets.
    pub(crate) jumps: Vec<TrackedJump>,
    /// In ascending order of their offsets.
    pub(crate) calls: Vec<TrackedCall>,
    pub(crate) values: Vec<PcValue>,
    /// Get-PCs that only serve prefetching, and all instructions that use their results; by offset.
    pub(crate) serving: Vec<u32>,
    /// Code whose address is used where it is not tracked.
    pub(crate) taken: Vec<u32>,
    /// An address in code is used where it is not tracked, before it is the address of a function.
    pub(crate) escapes: bool,
    /// Addresses of code that stay in a register in which they are not tracked any more.
    pub(crate) lost: Vec<LostAddress>,
}

/// Jumps of a function by tables.
#[derive(Debug, Clone, Default)]
pub(crate) struct DraftTable {
    /// Offsets of the jumps, ascending.
    pub(crate) jumps: Vec<u32>,
    /// Offsets of the targets, ascending.
    pub(crate) targets: Vec<u32>,
    /// They may leave the function.
    pub(crate) strays: bool,
    /// No other transfer reaches the addresses that are named inside of the function.
    pub(crate) closes: bool,
}

/// Base of a [`ProgramByte`] that is an offset in the section, in a draft's calls only.
pub(crate) const TAIL_OFFSET: u32 = u32::MAX;

/// A call or a jump into another function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawCall {
    pub(crate) offset: u32,
    pub(crate) to: Option<ProgramByte>,
    /// First register of the return address; 255 for a jump.
    pub(crate) link: u8,
}

/// A call that is the last instruction of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastCall {
    pub(crate) offset: u32,
    /// Its callee may return.
    pub(crate) returns: bool,
}

/// A function while its code is being found.
pub(crate) struct FunctionDraft {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) entries: Vec<u32>,
    pub(crate) starts: DwordSet,
    pub(super) leaders: DwordSet,
    /// Numbers of the blocks, while they are made.
    pub(super) ranks: Ranks,
    /// Registers that its instructions name, computed on demand.
    pub(crate) named: Option<Box<NamedRegisterSets>>,
    pub(crate) banked: bool,
    /// An instruction of it may select another bank than the first.
    pub(crate) beyond: bool,
    /// Offsets of instructions that may set the bank mode.
    pub(crate) modes: Vec<u32>,
    pub(crate) indexed: bool,
    /// It has jumps or calls to addresses in registers, or reads the program counter.
    pub(crate) tracks: bool,
    /// Offsets of the instructions that read the program counter, in the order found.
    pub(crate) counters: Vec<u32>,
    /// Its addresses are still to be followed.
    pub(crate) due: bool,
    /// Until then: numbers of the stretches to which it seems to refer.
    pub(crate) leads: Vec<u32>,
    /// The knowledge of calls when its addresses were followed; see `Clobbers::clock`.
    pub(crate) clock: u32,
    /// Code was found since the blocks were made.
    pub(super) grown: bool,
    pub(super) stack: Vec<u32>,
    /// Targets of direct calls, wherever they are.
    pub(crate) called: BTreeSet<u32>,
    /// Targets of branches outside of it, and the offset at which it runs on into another function.
    pub(crate) reached: BTreeSet<u32>,
    /// The call that is its last instruction.
    pub(crate) last_call: Option<LastCall>,
    pub(crate) faults: BTreeSet<AnalysisProblem>,
    pub(crate) tracked: Tracked,
    pub(crate) blocks: PackedBlocks,
    /// Successors of the current block.
    pub(super) goes: SuccessorEdges,
    pub(crate) calls: Vec<RawCall>,
    /// Its jumps to addresses that were loaded, once they are resolved.
    pub(crate) table: Option<DraftTable>,
}

impl FunctionDraft {
    pub(crate) fn new(start: u32, end: u32) -> Self {
        let dwords = (end - start).div_ceil(4) as usize;
        Self {
            start,
            end,
            entries: Vec::new(),
            starts: DwordSet::new(dwords),
            leaders: DwordSet::new(dwords),
            ranks: Ranks::default(),
            named: None,
            banked: false,
            beyond: false,
            modes: Vec::new(),
            indexed: false,
            tracks: false,
            counters: Vec::new(),
            due: false,
            leads: Vec::new(),
            clock: 0,
            grown: true,
            stack: Vec::new(),
            called: BTreeSet::new(),
            reached: BTreeSet::new(),
            last_call: None,
            faults: BTreeSet::new(),
            tracked: Tracked::default(),
            blocks: PackedBlocks::default(),
            goes: SuccessorEdges::default(),
            calls: Vec::new(),
            table: None,
        }
    }

    /// Whether an unknown target of it may be found when more is known about its callees.
    pub(crate) fn is_open(&self) -> bool {
        self.unknown() != 0
    }

    /// Whether it has an unknown successor that is not a call.
    pub(crate) fn goes_astray(&self) -> bool {
        !self.faults.is_empty() || self.tracked.jumps.iter().any(|jump| jump.target == JumpTarget::Unknown)
    }

    /// The number of its unknown targets.
    pub(crate) fn unknown(&self) -> usize {
        self.tracked.calls.iter().filter(|call| call.to.is_none()).count()
            + self.tracked.jumps.iter().filter(|jump| jump.target == JumpTarget::Unknown).count()
    }

    /// The block with that number.
    #[inline]
    pub(crate) fn block(&self, number: usize) -> BasicBlock {
        self.blocks.get(number, &self.starts, (self.start, self.end))
    }

    pub(super) fn index(&self, offset: u32) -> usize {
        (offset - self.start) as usize / 4
    }

    pub(crate) fn holds(&self, offset: u32) -> bool {
        (self.start..self.end).contains(&offset)
    }
}

/// Bytes that symbols group together, or the bytes between two such groups.
pub(crate) struct GroupedBytes {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The mark that names it.
    pub(super) mark: Option<u32>,
    /// Whether it is skipped, because it is plain code.
    pub(super) plain: bool,
    /// The result of following it, once an entry in it is known.
    pub(crate) draft: Option<Box<FunctionDraft>>,
}

impl GroupedBytes {
    /// Its draft, or a new one; the caller puts it back.
    pub(super) fn take(&mut self) -> Box<FunctionDraft> {
        self.draft.take().unwrap_or_else(|| self.new_draft())
    }

    pub(super) fn new_draft(&self) -> Box<FunctionDraft> {
        Box::new(FunctionDraft::new(self.start, self.end))
    }
}
