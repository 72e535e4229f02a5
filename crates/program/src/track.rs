//! Addresses in scalar registers: the target of a jump or a call through a register.
//!
//! Values are followed forward through the function's blocks, only in registers whose value can reach a jump, a call or
//! a program counter ([`steps`]), and only instructions that touch these are examined ([`touches`]). An address is
//! known relative to the load address of the image, so its halves are symbols of one another ([`value`]); a value on
//! which two paths disagree is not known.
//!
//! Evidence: a known callee preserves the registers that neither it nor its callees write, and callee-saved registers
//! that it writes and loads again ([`Clobbers`]). An unknown one, or one with an unknown transfer, preserves
//! callee-saved registers, as LLVM's calling convention has it. Callers of a function that turns out to write more are
//! followed again. Functions are entered, and return, with the first bank of vector registers.

mod clobbers;
mod fetches;
mod flow;
mod leads;
mod steps;
mod sums;
mod touches;
mod value;

pub(crate) use clobbers::Clobbers;
pub(crate) use leads::leads;
pub(crate) use touches::Touches;

use crate::place::Place;
use crate::scan::{Context, Draft};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Inst, Isa};

/// An address that code computes from the program counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcValue {
    /// Offset of the instruction that reads the program counter.
    pub pc: u32,
    /// Offset of the instruction that adds the low half of the distance, or all of it.
    pub low: u32,
    /// Offset of the instruction that adds the high half; the same as `low` where one instruction adds all.
    pub high: u32,
    /// The address.
    pub to: Place,
}

/// The target of a jump through a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Jump {
    To(Place),
    /// To the value that the register and the next one held at the function's entry.
    Return(u8),
    /// No path reaches it: a known number decides against it.
    Never,
    Unknown,
}

/// The result of following addresses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracked {
    /// By offset.
    pub(crate) jumps: Vec<(u32, Jump)>,
    /// By offset, with the first register of the return address.
    pub(crate) calls: Vec<(u32, Option<Place>, u8)>,
    pub(crate) values: Vec<PcValue>,
    /// Get-PCs that only serve prefetching, and all instructions that use their results; by offset.
    pub(crate) serving: Vec<u32>,
    /// Code whose address is used where it is not tracked.
    pub(crate) taken: Vec<u32>,
    /// An address in code is used where it is not tracked, before it is the address of a function.
    pub(crate) escapes: bool,
    /// Addresses of code that stay in a register in which they are no longer tracked.
    pub(crate) lost: Vec<LostAddress>,
}

/// An address of code, or half of one, in a register whose value is no longer known: it can be called from there on, if
/// the register is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LostAddress {
    /// The code at the address.
    pub(crate) to: u32,
    /// The register that holds it.
    pub(crate) reg: Reg,
    pub(crate) at: LossPoint,
}

/// The point at which an address is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LossPoint {
    /// At the start of the block at this offset: paths disagree, or a callee may have overwritten the register.
    Block(u32),
    /// The callee of the call, or of the jump into another function, at this offset has it.
    Callee(u32),
    /// The code to which the function returns has it, or unknown code.
    Exit,
}

/// Follows the addresses of a function.
pub(crate) fn track(context: &Context<'_, '_>, draft: &Draft, touches: &Touches) -> Tracked {
    let points = touches.points();
    let serving = fetches::serving(context, draft, touches);
    let steps = steps::Steps::read(context, &points, draft.beyond, serving);
    flow::solve(context, draft, &steps, touches)
}

/// The first of the scalar registers that an instruction writes; 255 if it writes none.
pub(crate) fn destination(inst: &Inst, isa: Isa) -> u8 {
    let written = inst.writes(isa).find(|effect| effect.reg.file == RegFile::Sgpr);
    written.map_or(255, |effect| effect.reg.index.min(255) as u8)
}
