//! The numbers of handles of agents and instruction sets.

use crate::abi::{AgentHandle, IsaHandle};

pub(crate) const HOST: AgentHandle = AgentHandle(0x100);
/// The first GPU; the others follow.
const FIRST_GPU: u64 = 0x1000;
/// The ISA of the first GPU.
const FIRST_ISA: u64 = 0x2000;

/// The agent of a GPU.
pub(crate) fn agent_of(number: usize) -> AgentHandle {
    AgentHandle(FIRST_GPU + number as u64)
}

/// The ISA of a GPU.
pub(crate) fn isa_of(number: usize) -> IsaHandle {
    IsaHandle(FIRST_ISA + number as u64)
}

/// The number of the GPU of an agent.
pub(crate) fn number_of(agent: AgentHandle) -> Option<usize> {
    usize::try_from(agent.0.checked_sub(FIRST_GPU)?).ok()
}

/// The number of the GPU of an ISA.
pub(crate) fn number_of_isa(isa: IsaHandle) -> Option<usize> {
    usize::try_from(isa.0.checked_sub(FIRST_ISA)?).ok()
}
