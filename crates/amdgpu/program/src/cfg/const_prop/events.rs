//! Events that change or use the values of followed registers.

/// An event for followed registers; those of one instruction are in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RegisterEvent {
    Step(u32),
    /// Registers are read by an instruction that is not a step.
    Read(u64),
    /// Registers are overwritten by such an instruction.
    Write(u64),
    /// SCC is overwritten by such an instruction.
    Scc,
}

/// An event at an offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OffsetEvent {
    pub(super) offset: u32,
    pub(super) event: RegisterEvent,
}
