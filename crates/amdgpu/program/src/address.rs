//! Addresses of code that a function computes, and those that it loses track of.

use crate::place::ProgramByte;
use hotswap_isa::reg::Reg;

/// An address that code computes from the program counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PcValue {
    /// Offset of the instruction that reads the program counter.
    pub pc: u32,
    /// Offset of the instruction that adds the low half of the distance, or all of it.
    pub low: u32,
    /// Offset of the instruction that adds the high half; the same as `low` where one instruction adds all.
    pub high: u32,
    pub to: ProgramByte,
}

/// An address of code, or half of one, in a register of now unknown value: it can be called from there on, if
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
