//! The GPUs that the environment asks for.
//!
//! Invariant: the environment is read once in a process, by the first `hsa_init`.

use crate::abi::{AgentHandle, IsaHandle};
use crate::agent_handles::{HOST, agent_of, number_of, number_of_isa};
use crate::boundary::record_panics;
use crate::gpu::EmulatedGpu;
use crate::message::report_message;
use crate::settings::EmulationSettings;
use crate::status::HsaStatus;
use std::sync::OnceLock;

/// The GPUs and their settings.
pub(crate) struct EmulatedSystem {
    pub(crate) settings: EmulationSettings,
    pub(crate) gpus: Vec<EmulatedGpu>,
}

static SYSTEM: OnceLock<Option<EmulatedSystem>> = OnceLock::new();

impl EmulatedSystem {
    fn new(settings: EmulationSettings) -> Result<Self, String> {
        let gpus = settings.targets.iter().enumerate();
        let gpus =
            gpus.map(|(number, target)| EmulatedGpu::new(number, *target, &settings)).collect::<Result<_, _>>()?;
        Ok(Self { settings, gpus })
    }

    /// The agents: the host, then each GPU.
    pub(crate) fn agents(&self) -> impl Iterator<Item = AgentHandle> + use<> {
        std::iter::once(HOST).chain((0..self.gpus.len()).map(agent_of))
    }
}

/// Reads the environment, once; a wrong one is reported, and gives no GPU.
pub(crate) fn prepare_system() -> Option<&'static EmulatedSystem> {
    let system = SYSTEM.get_or_init(|| {
        record_panics();
        let made = EmulationSettings::from_environment().and_then(EmulatedSystem::new);
        made.map_err(|error| report_message(&error)).ok()
    });
    system.as_ref()
}

/// The system, after the first successful `hsa_init`.
pub(crate) fn emulated_system() -> Result<&'static EmulatedSystem, HsaStatus> {
    SYSTEM.get().and_then(Option::as_ref).ok_or(HsaStatus::NOT_INITIALIZED)
}

/// The GPU of an agent.
pub(crate) fn gpu_of(agent: AgentHandle) -> Result<&'static EmulatedGpu, HsaStatus> {
    number_of(agent).and_then(gpu_by_number).ok_or(HsaStatus::INVALID_AGENT)
}

/// The GPU of an ISA.
pub(crate) fn gpu_of_isa(isa: IsaHandle) -> Result<&'static EmulatedGpu, HsaStatus> {
    number_of_isa(isa).and_then(gpu_by_number).ok_or(HsaStatus::INVALID_ISA)
}

fn gpu_by_number(number: usize) -> Option<&'static EmulatedGpu> {
    emulated_system().ok()?.gpus.get(number)
}

/// Whether it is the host or a GPU.
pub(crate) fn check_agent(agent: AgentHandle) -> Result<(), HsaStatus> {
    if agent == HOST { Ok(()) } else { gpu_of(agent).map(drop) }
}
