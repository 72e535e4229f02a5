//! The functions to which a function seems to refer, before its addresses are followed.
//!
//! This only decides the order in which functions are best analysed: no result depends on it.

use super::steps::{StepSource, from};
use super::sums::fixup_target;
use crate::cfg::context::CfgContext;
use crate::cfg::draft::FunctionDraft;
use crate::ops::AddressOp;
use crate::place::ProgramByte;
use hotswap_isa::Name;

/// Instructions after one that reads the program counter among which the sum is searched.
const AHEAD: usize = 6;

/// Numbers of the stretches, each once, that branches and calls of a function, or its sums of
/// program counters, refer to.
pub(crate) fn referenced_stretches(context: &CfgContext<'_, '_>, draft: &FunctionDraft) -> Vec<u32> {
    let sums = draft.counters.iter().filter_map(|counter| sum_target(context, *counter));
    let mut targets: Vec<u32> = draft.called.iter().chain(&draft.reached).copied().chain(sums).collect();
    targets.sort_unstable();
    targets.dedup();
    let mut leads: Vec<u32> = targets.into_iter().filter_map(|target| context.clobbers.index_of(target)).collect();
    leads.dedup();
    leads
}

/// The code at the sum of a program counter and the next number that is added to something, or the code whose address
/// is loaded from there.
fn sum_target(context: &CfgContext<'_, '_>, counter: u32) -> Option<u32> {
    let source = context.source;
    let mut at = counter + u32::from(context.decode_at(counter)?.len());
    let pc = context.address_of_offset(at);
    for _ in 0..AHEAD {
        let inst = context.decode_at(at)?;
        if matches!(context.ops.address_op(&inst), AddressOp::Add | AddressOp::AddSigned | AddressOp::Add64) {
            let operands = [Name::Src1, Name::Src0].map(|name| inst.operand(context.isa(), name));
            let place = operands.into_iter().find_map(|operand| match from(context, at, &inst, operand) {
                // The low half; few functions are more than 2 GiB away.
                StepSource::Number(number) => {
                    Some(ProgramByte { base: ProgramByte::CODE, at: pc.wrapping_add(number as i32 as u64) })
                }
                StepSource::Fixup(number) => Some(fixup_target(source, number, pc)?.place),
                _ => None,
            })?;
            return source.offset_of(place).or_else(|| source.loaded(place).and_then(|place| source.offset_of(place)));
        }
        at += u32::from(inst.len());
    }
    None
}
