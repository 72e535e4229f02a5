//! Addresses in scalar registers: the target of a jump or a call through a register.
//!
//! Values are followed forward through the function's blocks, only in registers whose value can reach a jump, a call or
//! a program counter ([`steps`]), and only instructions that touch these are examined ([`def_use`]). An address is
//! known relative to the load address of the image, so its halves are symbols of one another ([`value`]); a value on
//! which two paths disagree is not known.
//!
//! Evidence: a known callee preserves the registers that neither it nor its callees write, and callee-saved registers
//! that it writes and loads again ([`super::clobbers`]). An unknown one, or one with an unknown transfer, preserves
//! callee-saved registers, as LLVM's calling convention has it. Callers of a function that turns out to write more are
//! followed again. Functions are entered, and return, with the first bank of vector registers.

mod def_use;
mod events;
mod fetches;
mod flow;
mod leads;
mod steps;
mod sums;
mod value;

pub(crate) use def_use::DefUseList;
pub(crate) use leads::referenced_stretches;

use super::context::CfgContext;
use super::draft::{FunctionDraft, Tracked};
use hotswap_isa::reg::RegFile;
use hotswap_isa::{Inst, Isa};

/// Follows the addresses of a function.
pub(crate) fn track_addresses(context: &CfgContext<'_, '_>, draft: &FunctionDraft, touches: &DefUseList) -> Tracked {
    let points = touches.address_points();
    let serving = fetches::prefetch_only_offsets(context, draft, touches);
    let steps = steps::AddressSteps::read_steps(context, &points, draft.beyond, serving);
    flow::solve_values(context, draft, &steps, touches)
}

/// The first of the scalar registers that an instruction writes; 255 if it writes none.
pub(crate) fn first_scalar_destination(inst: &Inst, isa: Isa) -> u8 {
    let written = inst.writes(isa).find(|effect| effect.reg.file == RegFile::Sgpr);
    written.map_or(255, |effect| effect.reg.index.min(255) as u8)
}
