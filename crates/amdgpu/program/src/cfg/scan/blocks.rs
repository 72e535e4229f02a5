//! Blocks of the code that was found, their exits and their successors.

use crate::bits::Ranks;
use crate::block::{BlockExit, PackedBlocks, SuccessorEdges};
use crate::cfg::const_prop;
use crate::cfg::context::{CfgContext, EdgeTarget, direct_target, resolve_target};
use crate::cfg::draft::{FunctionDraft, JumpTarget, RawCall, TAIL_OFFSET, TrackedCall};
use crate::cfg::sift;
use crate::ops::AddressOp;
use crate::place::ProgramByte;
use crate::problem::ProblemReason;
use hotswap_isa::Inst;
use hotswap_isa::effects::ControlFlow;

impl FunctionDraft {
    /// Makes blocks from the decoded instructions.
    pub(super) fn build_blocks(&mut self, context: &CfgContext<'_, '_>) {
        self.grown = false;
        self.calls.clear();
        // Excludes targets at which no instruction begins.
        self.ranks = Ranks::of(&self.leaders, &self.starts);
        let heads = self.ranks.iter().map(|head| self.start + head as u32 * 4);
        self.blocks = PackedBlocks::new(heads, self.ranks.count());
        if let Some(table) = &self.table {
            self.blocks.set_table(table.targets.iter().filter_map(|one| block_number_of(one, self)).collect());
        }
        for number in 0..self.blocks.len() {
            self.finish_block(context, number);
        }
        self.ranks = Ranks::default();
        self.calls.shrink_to_fit();
    }

    /// Puts the call targets that were found into the existing blocks; their exits and successors do
    /// not depend on them.
    pub(super) fn link_calls(&mut self) {
        for call in self.calls.iter_mut().filter(|call| !is_tail_offset_call(call)) {
            if let Ok(found) = self.tracked.calls.binary_search_by_key(&call.offset, |call| call.offset) {
                (call.to, call.link) = (self.tracked.calls[found].to, self.tracked.calls[found].link);
            }
        }
    }

    /// Sets the exit of a block, and its successors.
    fn finish_block(&mut self, context: &CfgContext<'_, '_>, number: usize) {
        let limit = self.index(self.blocks.end_limit(number, self.end).next_multiple_of(4));
        let Some(last) = self.starts.previous_set_bit(limit) else { return };
        let offset = self.start + last as u32 * 4;
        self.goes = SuccessorEdges::default();
        let (len, LinkedExit { exit, link }) = if let Some(seen) = context.classify_at(offset) {
            let next = offset + u32::from(seen.len);
            (seen.len, LinkedExit::without_link(self.seen_exit(context, offset, seen.class, next)))
        } else {
            let Some(inst) = context.decode_at(offset) else { return };
            let next = offset + u32::from(inst.len());
            (inst.len(), self.exit_of_block(context, offset, &inst, next))
        };
        debug_assert!(!self.goes.next || self.blocks.end_limit(number, self.end) == offset + u32::from(len));
        self.blocks.finish_block(number, len, exit, link, self.goes);
    }

    /// The exit by an instruction that was not decoded.
    fn seen_exit(&mut self, context: &CfgContext<'_, '_>, offset: u32, class: u8, next: u32) -> BlockExit {
        match class {
            sift::END => BlockExit::End,
            sift::CONDITIONAL => self.branch_exit(offset, context.seen_target(offset), Some(next)),
            sift::BRANCH => self.branch_exit(offset, context.seen_target(offset), None),
            _ => self.go_on(offset, next, BlockExit::Fall),
        }
    }

    fn exit_of_block(&mut self, context: &CfgContext<'_, '_>, offset: u32, inst: &Inst, next: u32) -> LinkedExit {
        match context.ops.address_op(inst) {
            AddressOp::Branch | AddressOp::AddPc => {}
            AddressOp::SetPc => return self.jump_exit(context, offset),
            AddressOp::SwapPc => {
                let found = self.tracked.calls.binary_search_by_key(&offset, |call| call.offset).ok();
                let found = found.map(|found| self.tracked.calls[found]);
                let TrackedCall { to, link, .. } = found.unwrap_or(TrackedCall { offset, to: None, link: 255 });
                self.calls.push(RawCall { offset, to, link });
                return LinkedExit::without_link(self.go_on(offset, next, BlockExit::Call));
            }
            AddressOp::Call => {
                let link = const_prop::first_scalar_destination(inst, context.isa());
                let to = match direct_target(context, offset, inst) {
                    Some(EdgeTarget::Offset(target)) => Some(context.source.place_of(target)),
                    Some(EdgeTarget::Outside(place)) => Some(place),
                    _ => None,
                };
                self.calls.push(RawCall { offset, to, link });
                return LinkedExit::without_link(self.go_on(offset, next, BlockExit::Call));
            }
            _ => return LinkedExit::without_link(self.go_on(offset, next, BlockExit::Fall)),
        }
        let exit = match inst.control_flow(context.address_of_offset(offset), context.isa()) {
            ControlFlow::Next => self.go_on(offset, next, BlockExit::Fall),
            ControlFlow::End => BlockExit::End,
            ControlFlow::Call { .. } => {
                self.calls.push(RawCall { offset, to: None, link: 255 });
                self.go_on(offset, next, BlockExit::Call)
            }
            ControlFlow::Indirect { conditional } => {
                if conditional {
                    self.go_on(offset, next, BlockExit::Fall);
                }
                self.record_fault(offset, ProblemReason::Exception);
                BlockExit::Unknown
            }
            ControlFlow::Branch { conditional, target } => {
                let taken = resolve_target(context, offset, Some(target)).unwrap_or(EdgeTarget::Wrong);
                self.branch_exit(offset, taken, conditional.then_some(next))
            }
        };
        LinkedExit::without_link(exit)
    }

    fn branch_exit(&mut self, offset: u32, taken: EdgeTarget, next: Option<u32>) -> BlockExit {
        let exit = self.edge_to(offset, taken, BlockExit::Branch);
        match next {
            None => exit,
            Some(next) => match (exit, self.go_on(offset, next, BlockExit::Conditional)) {
                (BlockExit::Unknown, _) | (_, BlockExit::Unknown) => BlockExit::Unknown,
                // One path leaves the function: the function's own edges give the other.
                (BlockExit::Tail, _) | (_, BlockExit::Tail) => BlockExit::Tail,
                _ => BlockExit::Conditional,
            },
        }
    }

    fn edge_to(&mut self, offset: u32, target: EdgeTarget, exit: BlockExit) -> BlockExit {
        match target {
            EdgeTarget::Offset(target) if self.holds(target) => self.inner_edge(target, exit),
            EdgeTarget::Offset(target) => {
                let to = Some(target);
                self.tail_exit(offset, to)
            }
            EdgeTarget::Outside(_) => {
                self.record_fault(offset, ProblemReason::Undefined);
                BlockExit::Unknown
            }
            EdgeTarget::Wrong => {
                self.record_fault(offset, ProblemReason::TargetOutside);
                BlockExit::Unknown
            }
        }
    }

    fn tail_exit(&mut self, offset: u32, target: Option<u32>) -> BlockExit {
        // The address is made from the offset when the draft is finished; see `RawCall`.
        let to = target.map(|target| ProgramByte { base: TAIL_OFFSET, at: u64::from(target) });
        self.calls.push(RawCall { offset, to, link: 255 });
        BlockExit::Tail
    }

    /// An edge to an offset of this function; bytes that could not be decoded are a fault already.
    fn inner_edge(&mut self, target: u32, exit: BlockExit) -> BlockExit {
        let block = self.ranks.rank_of_bit(self.index(target));
        self.goes.taken = block.map(|block| block as u32);
        block.map_or(BlockExit::Unknown, |_| exit)
    }

    fn go_on(&mut self, offset: u32, next: u32, exit: BlockExit) -> BlockExit {
        if self.holds(next) {
            self.goes.next = self.ranks.rank_of_bit(self.index(next)).is_some();
            return if self.goes.next { exit } else { BlockExit::Unknown };
        }
        if self.reached.contains(&next) {
            return self.tail_exit(offset, Some(next));
        }
        if self.ends_with_call(offset) { exit } else { BlockExit::Unknown }
    }

    fn jump_exit(&mut self, context: &CfgContext<'_, '_>, offset: u32) -> LinkedExit {
        let found = self.tracked.jumps.binary_search_by_key(&offset, |jump| jump.offset).ok();
        let exit = match found.map(|found| self.tracked.jumps[found].target) {
            Some(JumpTarget::To(place)) => match context.source.offset_of(place) {
                Some(target) if target.is_multiple_of(4) => {
                    self.edge_to(offset, EdgeTarget::Offset(target), BlockExit::Jump)
                }
                Some(_) => self.edge_to(offset, EdgeTarget::Wrong, BlockExit::Jump),
                None => {
                    self.calls.push(RawCall { offset, to: Some(place), link: 255 });
                    BlockExit::Tail
                }
            },
            Some(JumpTarget::Return(link)) => return LinkedExit { exit: BlockExit::Return, link },
            Some(JumpTarget::Never) => BlockExit::Jump,
            Some(JumpTarget::Unknown) | None => {
                let is_explained = self.table.as_ref().is_some_and(|table| table.jumps.binary_search(&offset).is_ok());
                if is_explained { BlockExit::Table } else { BlockExit::Unknown }
            }
        };
        LinkedExit::without_link(exit)
    }
}

/// The exit of a block.
struct LinkedExit {
    exit: BlockExit,
    /// The register whose value at the entry a return jumps to; 255 for other exits.
    link: u8,
}

impl LinkedExit {
    fn without_link(exit: BlockExit) -> Self {
        Self { exit, link: 255 }
    }
}

fn block_number_of(target: &u32, draft: &FunctionDraft) -> Option<u32> {
    draft.ranks.rank_of_bit(draft.index(*target)).map(|number| number as u32)
}

/// A call at the end may also run on into the next function, which does not depend on its target.
fn is_tail_offset_call(call: &RawCall) -> bool {
    call.to.is_some_and(|to| to.base == TAIL_OFFSET)
}
