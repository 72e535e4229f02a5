//! A quick scan of a range of code: whether it is plain, so that no result about other code depends on it.
//!
//! Plain code decodes from its first byte to its last as instructions, ends with one that does not continue, and
//! transfers control only to its own instructions by branches that state their target. So it calls nothing, computes no
//! address of code, and everything that execution reaches in it from its entries is among the instructions that were
//! seen.

use super::context::{CfgContext, EdgeTarget, resolve_target};
use super::sift;
use crate::bits::DwordSet;
use crate::ops::AddressOp;
use hotswap_isa::Inst;
use hotswap_isa::effects::ControlFlow;
use std::hint::black_box;
use std::ops::Range;

/// Buffers of one thread.
#[derive(Default)]
pub(crate) struct Sweep {
    starts: DwordSet,
    targets: Vec<u32>,
}

impl Sweep {
    /// Whether the stretch is plain and the entries are instructions of it.
    pub(crate) fn is_plain(&mut self, context: &CfgContext<'_, '_>, start: u32, end: u32, entries: &[u32]) -> bool {
        self.starts.clear_and_resize((end - start).div_ceil(4) as usize);
        self.targets.clear();
        self.targets.extend(entries);
        let (mut at, mut goes_on) = (start, true);
        // Code that reads past the stretch does not end at its end.
        while at < end {
            self.starts.set_bit((at - start) as usize / 4);
            let Some(next) = self.step(context, at, start..end, &mut goes_on) else { return false };
            at = next;
        }
        at == end && !goes_on && self.targets.iter().all(|target: &u32| self.starts.get((*target - start) as usize / 4))
    }

    /// Scans an instruction and sets whether execution continues after it. Returns the offset after it, unless the
    /// stretch is not plain.
    #[inline(always)]
    fn step(&mut self, context: &CfgContext<'_, '_>, at: u32, stretch: Range<u32>, goes_on: &mut bool) -> Option<u32> {
        if let Some(seen) = context.classify_at(at) {
            *goes_on = matches!(seen.class, sift::PLAIN | sift::CONDITIONAL);
            if matches!(seen.class, sift::CONDITIONAL | sift::BRANCH) {
                self.lead(context.seen_target(at), stretch)?;
            }
            // Constants after predicted branches let the next instruction begin before this length is known.
            return Some(match seen.len {
                4 => black_box(at + 4),
                8 => black_box(at + 8),
                len => at + u32::from(len),
            });
        }
        let inst = context.decode_at(at)?;
        *goes_on = match context.ops.address_op(&inst) {
            AddressOp::GetPc | AddressOp::SetPc | AddressOp::SwapPc | AddressOp::Call | AddressOp::AddPc => {
                return None;
            }
            AddressOp::Branch => self.branch(context, at, &inst, stretch)?,
            _ => true,
        };
        Some(at + u32::from(inst.len()))
    }

    fn lead(&mut self, target: EdgeTarget, stretch: Range<u32>) -> Option<()> {
        match target {
            EdgeTarget::Offset(target) if stretch.contains(&target) => self.targets.push(target),
            _ => return None,
        }
        Some(())
    }

    /// Whether execution continues after a branch; `None` if it may leave the stretch.
    fn branch(&mut self, context: &CfgContext<'_, '_>, at: u32, inst: &Inst, stretch: Range<u32>) -> Option<bool> {
        match inst.control_flow(context.address_of_offset(at), context.isa()) {
            ControlFlow::Next => Some(true),
            ControlFlow::End => Some(false),
            ControlFlow::Call { .. } | ControlFlow::Indirect { .. } => None,
            ControlFlow::Branch { conditional, target } => {
                self.lead(resolve_target(context, at, Some(target))?, stretch)?;
                Some(conditional)
            }
        }
    }
}
