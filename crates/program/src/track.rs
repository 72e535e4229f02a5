//! Addresses in scalar registers: which value a jump or a call to a register goes to.
//!
//! Values are followed forward through the function's blocks, only in registers that a jump, a call or a program counter
//! can get to ([`steps`]), and only instructions that touch these are looked at ([`touches`]). An address is known up to
//! where the image is loaded, so its halves are symbols of one another ([`value`]); what two paths disagree on is not
//! known.
//!
//! Evidence: a known callee leaves what neither it nor its callees write, and callee-saved registers that it writes and
//! loads again ([`Clobbers`]); an unknown one, or one that goes on where nobody knows, leaves callee-saved registers, as
//! LLVM's calling convention has it. Who calls a function that turns out to write more is followed again. Functions are
//! entered, and come back, with the first bank of vector registers.

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

/// Where a jump to a register goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Jump {
    To(Place),
    /// To what the register and the next one held at the function's entry.
    Return(u8),
    /// No path comes there: a number that is known decides against it.
    Never,
    Unknown,
}

/// What following addresses found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tracked {
    /// By offset.
    pub(crate) jumps: Vec<(u32, Jump)>,
    /// By offset, with the first register of the return address.
    pub(crate) calls: Vec<(u32, Option<Place>, u8)>,
    pub(crate) values: Vec<PcValue>,
    /// Get-PCs that serve fetching ahead alone, and all instructions that work on what they give; by offset.
    pub(crate) serving: Vec<u32>,
    /// Code whose address goes where it is not followed.
    pub(crate) taken: Vec<u32>,
    /// An address in code goes where it is not followed, before it is one of a function.
    pub(crate) escapes: bool,
    /// Addresses of code that stay in a register where they are not followed any further.
    pub(crate) lost: Vec<LostAddress>,
}

/// An address of code, or half of one, in a register whose value is not known any more: it can be called from there on, if
/// the register is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LostAddress {
    /// The code at the address.
    pub(crate) to: u32,
    /// The register that holds it.
    pub(crate) reg: Reg,
    pub(crate) at: LossPoint,
}

/// Where an address is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LossPoint {
    /// At the start of the block at this offset: paths disagree, or a callee may have overwritten the register.
    Block(u32),
    /// The callee of the call, or of the jump into another function, at this offset has it.
    Callee(u32),
    /// The code to which the function returns has it, or code that is not known.
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
