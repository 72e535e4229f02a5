//! Calls that are the last instruction of a function: LLVM emits nothing after a call of a function that never returns.
//!
//! Invariants: a call of a function of this section is taken not to return only where all code of the callee is known and none of
//! it returns, goes elsewhere, or calls at its own end a function that may. A call of code outside of the section (LLVM puts
//! functions that do not return into `.text.unlikely.`), or by an unknown address, is taken not to return where the symbol
//! of the caller states that the function ends there. Otherwise execution runs on into the code that follows, as after
//! any other call.
//!
//! Absent on purpose: calls of such functions before the end; an edge too many after these loses nothing.

use super::context::CfgContext;
use super::draft::{FunctionDraft, GroupedBytes, LastCall};
use crate::block::BlockExit;
use crate::ops::AddressOp;
use hotswap_isa::Flag;

impl FunctionDraft {
    /// Keeps a call at the function's end until it is known whether it may return. Returns whether it is one.
    pub(super) fn keep_last_call(&mut self, context: &CfgContext<'_, '_>, offset: u32) -> bool {
        let returns = self.last_call.is_some_and(|call| call.returns);
        let is_last_call = !returns && is_call(context, offset);
        if is_last_call {
            self.last_call = Some(LastCall { offset, returns });
        }
        is_last_call
    }

    /// Whether execution ends at the call there, because its callee never returns.
    pub(super) fn ends_with_call(&self, offset: u32) -> bool {
        self.last_call == Some(LastCall { offset, returns: false })
    }
}

fn is_call(context: &CfgContext<'_, '_>, offset: u32) -> bool {
    context.decode_at(offset).is_some_and(|inst| {
        matches!(context.ops.address_op(&inst), AddressOp::SwapPc | AddressOp::Call) || inst.is(Flag::Call)
    })
}

/// Whether a symbol with a size says that the function ends where its bytes do.
fn ends_by_symbol(context: &CfgContext<'_, '_>, stretch: &GroupedBytes) -> bool {
    let mark = stretch.mark.and_then(|number| context.source.marks.get(number as usize));
    mark.is_some_and(|mark| mark.size > 0 && mark.offset.saturating_add(mark.size) == stretch.end)
}

/// Numbers of the stretches whose last call may return, and was not known to.
pub(super) fn returning(context: &CfgContext<'_, '_>, stretches: &[GroupedBytes]) -> Vec<u32> {
    let kept = (0..stretches.len() as u32).filter(|number| {
        let draft = stretches[*number as usize].draft.as_deref();
        draft.is_some_and(|draft| draft.last_call.is_some_and(|call| !call.returns))
    });
    let kept: Vec<u32> = kept.collect();
    if kept.is_empty() {
        return kept;
    }
    let may_return = ReturnSearch::new(context, stretches).may_return;
    kept.into_iter().filter(|number| may_return[*number as usize]).collect()
}

/// The functions that may return to their callers.
struct ReturnSearch {
    /// By the number of the stretch.
    may_return: Vec<bool>,
    /// A function that ends with a jump into another one, or a call of it.
    ends_in: Vec<EndsIn>,
}

struct EndsIn {
    function: u32,
    callee: u32,
}

impl ReturnSearch {
    fn new(context: &CfgContext<'_, '_>, stretches: &[GroupedBytes]) -> Self {
        let mut search = Self { may_return: vec![false; stretches.len()], ends_in: Vec::new() };
        for (number, stretch) in stretches.iter().enumerate() {
            search.may_return[number] =
                stretch.draft.is_none() || search.returns_itself(context, number as u32, stretch);
        }
        search.propagate();
        search
    }

    /// Whether a function has a return, or anything that is not known; records the functions that it ends in.
    fn returns_itself(&mut self, context: &CfgContext<'_, '_>, function: u32, stretch: &GroupedBytes) -> bool {
        let Some(draft) = stretch.draft.as_deref() else { return true };
        let mut returns = !draft.faults.is_empty() || draft.table.as_ref().is_some_and(|table| table.strays);
        for block in (0..draft.blocks.len()).map(|number| draft.block(number)) {
            let ends_elsewhere = block.exit == BlockExit::Tail || draft.ends_with_call(block.last);
            returns |= matches!(block.exit, BlockExit::Return | BlockExit::Unknown);
            for call in draft.calls.iter().filter(|call| ends_elsewhere && call.offset == block.last) {
                match context.clobbers.callee_stretch(context.source, call.to) {
                    Some(callee) => self.ends_in.push(EndsIn { function, callee }),
                    None => returns |= block.exit == BlockExit::Tail || !ends_by_symbol(context, stretch),
                }
            }
        }
        returns
    }

    fn propagate(&mut self) {
        let mut has_news = true;
        while has_news {
            has_news = false;
            for EndsIn { function, callee } in &self.ends_in {
                if self.may_return[*callee as usize] && !self.may_return[*function as usize] {
                    self.may_return[*function as usize] = true;
                    has_news = true;
                }
            }
        }
    }
}
