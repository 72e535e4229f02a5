//! Registers: those that a function may use, those that its new code uses, and what kernels need for it.

pub(crate) mod budget;
pub(crate) mod kernel_registers;
pub(crate) mod spill;

use budget::VgprBudget;
use hotswap_families::code::SpillSlot;
use hotswap_isa::reg::Reg;

/// A list that belongs to the place with that offset.
#[derive(Debug)]
pub(crate) struct AtPlace<T> {
    pub(crate) offset: u32,
    pub(crate) list: Vec<T>,
}

/// The registers that the new code of a function uses.
#[derive(Debug, Default)]
pub(crate) struct RegisterUse {
    /// One more than the highest register used beyond those of the sites.
    pub(crate) vgprs: u16,
    pub(crate) sgprs: u16,
    /// The registers used at each place.
    pub(crate) scratch: Vec<AtPlace<Reg>>,
    /// Those of them that are spilled around the replacement, with their slots.
    pub(crate) spilled: Vec<AtPlace<SpillSlot>>,
    /// The registers that it may use.
    pub(crate) budget: VgprBudget,
}
