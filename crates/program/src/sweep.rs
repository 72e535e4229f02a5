//! A quick look at a stretch of code: whether it is plain, so that no answer about other code depends on it.
//!
//! Plain code reads from its first byte to its last as instructions, ends by one that does not go on, and leads nowhere
//! but to its own instructions by branches that state their target. So it calls nobody, computes no address of code,
//! and whatever execution reaches in it from its entries is among the instructions that were seen.

use crate::bits::Bits;
use crate::ops::Op;
use crate::scan::{Context, Target, resolved};
use hotswap_isa::Inst;
use hotswap_isa::effects::Flow;

/// Buffers of one thread.
#[derive(Default)]
pub(crate) struct Sweep {
    starts: Bits,
    targets: Vec<u32>,
}

impl Sweep {
    /// Whether the stretch is plain and the entries are instructions of it.
    pub(crate) fn is_plain(&mut self, context: &Context<'_, '_>, start: u32, end: u32, entries: &[u32]) -> bool {
        self.starts.reset((end - start).div_ceil(4) as usize);
        self.targets.clear();
        self.targets.extend(entries);
        let (mut at, mut goes_on) = (start, true);
        // What reads beyond the stretch does not end where it ends.
        for (_, inst) in context.isa().walk(context.source.bytes.get(start as usize..).unwrap_or_default()) {
            if at >= end {
                break;
            }
            let Ok(inst) = inst else { return false };
            self.starts.set((at - start) as usize / 4);
            goes_on = match context.ops.of(&inst) {
                Op::GetPc | Op::SetPc | Op::SwapPc | Op::Call | Op::AddPc => return false,
                Op::Branch => match self.branch(context, at, &inst, start..end) {
                    Some(goes_on) => goes_on,
                    None => return false,
                },
                _ => true,
            };
            at += u32::from(inst.len());
        }
        let is_start = |target: &u32| self.starts.get((*target - start) as usize / 4);
        at == end && !goes_on && self.targets.iter().all(is_start)
    }

    /// Whether execution goes on behind a branch; `None` if it may leave the stretch.
    fn branch(
        &mut self,
        context: &Context<'_, '_>,
        at: u32,
        inst: &Inst,
        stretch: std::ops::Range<u32>,
    ) -> Option<bool> {
        match inst.flow(context.address(at), context.isa()) {
            Flow::Next => Some(true),
            Flow::End => Some(false),
            Flow::Call { .. } | Flow::Indirect { .. } => None,
            Flow::Branch { conditional, target } => match resolved(context, at, Some(target)) {
                Some(Target::Offset(target)) if stretch.contains(&target) => {
                    self.targets.push(target);
                    Some(conditional)
                }
                _ => None,
            },
        }
    }
}
