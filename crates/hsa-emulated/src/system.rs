//! The system: who uses it, what it consists of, its properties and extensions.
//!
//! Invariants: the environment is read once in a process, by the first `hsa_init`. Users are counted, because the profile
//! drain initialises HSA beside HIP.
#![allow(unsafe_code)] // the functions of HSA's interface

use crate::abi::{AgentHandle, EventHandler, IsaHandle, MemoryFaultEvent};
use crate::boundary::{hsa_api, not_null, put, put_as, put_bytes, record_panics};
use crate::gpu::EmulatedGpu;
use crate::loader;
use crate::message::report;
use crate::settings::EmulationSettings;
use crate::status::HsaStatus;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// The host's agent.
pub(crate) const HOST: AgentHandle = AgentHandle(0x100);
/// The first GPU; the others follow.
const FIRST_GPU: u64 = 0x1000;
/// The ISA of the first GPU.
const FIRST_ISA: u64 = 0x2000;

/// What the environment asked for.
pub(crate) struct EmulatedSystem {
    pub(crate) settings: EmulationSettings,
    pub(crate) gpus: Vec<EmulatedGpu>,
}

static SYSTEM: OnceLock<Option<EmulatedSystem>> = OnceLock::new();
static USERS: AtomicU32 = AtomicU32::new(0);

/// Whether `hsa_init` was called more often than `hsa_shut_down`.
pub(crate) fn is_initialised() -> bool {
    USERS.load(Ordering::Acquire) > 0
}

/// The system, after the first successful `hsa_init`.
pub(crate) fn system() -> Result<&'static EmulatedSystem, HsaStatus> {
    SYSTEM.get().and_then(Option::as_ref).ok_or(HsaStatus::NOT_INITIALIZED)
}

impl EmulatedSystem {
    fn new(settings: EmulationSettings) -> Result<Self, String> {
        let gpus = settings.targets.iter().enumerate();
        let gpus =
            gpus.map(|(number, target)| EmulatedGpu::new(number, *target, &settings)).collect::<Result<_, _>>()?;
        Ok(Self { settings, gpus })
    }

    /// The agents: the host, then each GPU.
    fn agents(&self) -> impl Iterator<Item = AgentHandle> + use<> {
        let count = self.gpus.len() as u64;
        std::iter::once(HOST).chain((0..count).map(|number| AgentHandle(FIRST_GPU + number)))
    }
}

/// The GPU of an agent.
pub(crate) fn gpu_of(agent: AgentHandle) -> Result<&'static EmulatedGpu, HsaStatus> {
    numbered(agent.0, FIRST_GPU).ok_or(HsaStatus::INVALID_AGENT)
}

/// The GPU of an ISA.
pub(crate) fn gpu_of_isa(isa: IsaHandle) -> Result<&'static EmulatedGpu, HsaStatus> {
    numbered(isa.0, FIRST_ISA).ok_or(HsaStatus::INVALID_ISA)
}

fn numbered(handle: u64, first: u64) -> Option<&'static EmulatedGpu> {
    system().ok()?.gpus.get(usize::try_from(handle.checked_sub(first)?).ok()?)
}

/// The agent of a GPU.
pub(crate) fn agent_of(number: usize) -> AgentHandle {
    AgentHandle(FIRST_GPU + number as u64)
}

/// The ISA of a GPU.
pub(crate) fn isa_of(number: usize) -> IsaHandle {
    IsaHandle(FIRST_ISA + number as u64)
}

/// Whether it is the host or a GPU.
pub(crate) fn check_agent(agent: AgentHandle) -> Result<(), HsaStatus> {
    if agent == HOST { Ok(()) } else { gpu_of(agent).map(drop) }
}

/// Ticks of the system clock in a second.
pub(crate) const TICKS_PER_SECOND: u64 = 100_000_000;

/// The system clock. It starts at one, because HIP takes a time of zero for one that was not taken.
pub(crate) fn ticks() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let elapsed = START.get_or_init(Instant::now).elapsed();
    1 + u64::try_from(elapsed.as_nanos() / 10).unwrap_or(u64::MAX - 1)
}

/// The handlers of memory faults, with their data.
static EVENT_HANDLERS: Mutex<Vec<(EventHandler, usize)>> = Mutex::new(Vec::new());

/// Calls the handlers; whether one of them has taken the event over.
pub(crate) fn raise(event: &MemoryFaultEvent) -> bool {
    // Handlers may call functions of HSA, so no lock is held.
    let handlers = EVENT_HANDLERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let call = |(handler, data): &(EventHandler, usize)| {
        // SAFETY: a handler that the program registered, with its own data.
        unsafe { handler(event, *data as *mut c_void) == HsaStatus::SUCCESS }
    };
    // Every handler sees the event.
    handlers.iter().filter(|handler| call(handler)).count() > 0
}

/// Reads the environment, once.
fn prepare() -> Option<&'static EmulatedSystem> {
    let system = SYSTEM.get_or_init(|| {
        record_panics();
        let made = EmulationSettings::from_environment().and_then(EmulatedSystem::new);
        made.map_err(|error| report(&error)).ok()
    });
    system.as_ref()
}

/// An extension of HSA.
const EXTENSION_LOADER: u16 = 0x201;
/// Its version.
const LOADER_VERSION: (u16, u16) = (1, 3);

/// A bit for each extension that is there.
fn extensions() -> [u8; 128] {
    let mut bits = [0; 128];
    bits[usize::from(EXTENSION_LOADER) / 8] |= 1 << (EXTENSION_LOADER % 8);
    bits
}

fn put_table(extension: u16, major: u16, size: usize, table: *mut c_void) -> Result<(), HsaStatus> {
    if extension != EXTENSION_LOADER || major != LOADER_VERSION.0 || table.is_null() {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    let functions = loader::table();
    // A caller of an older version asks for the first functions only; one of a newer version finds zeros.
    let mut bytes = vec![0u8; size.min(1024)];
    let all: Vec<u8> = functions.iter().flat_map(|function| function.to_ne_bytes()).collect();
    let length = all.len().min(bytes.len());
    bytes[..length].copy_from_slice(&all[..length]);
    // SAFETY: the caller's table has that size.
    unsafe { put_bytes(table, &bytes) }
}

hsa_api! {
    #[any_time]
    fn hsa_init() {
        // The real library finds no GPU either where this one has none to offer.
        prepare().ok_or(HsaStatus::OUT_OF_RESOURCES)?;
        let more = USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| users.checked_add(1));
        more.map(drop).map_err(|_| HsaStatus::REFCOUNT_OVERFLOW)
    }

    #[any_time]
    fn hsa_shut_down() {
        let fewer = USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |users| users.checked_sub(1));
        fewer.map(drop).map_err(|_| HsaStatus::NOT_INITIALIZED)
    }

    #[any_time]
    fn hsa_status_string(status: HsaStatus, text: *mut *const c_char) {
        not_null(text)?;
        let known = status.c_text().ok_or(HsaStatus::INVALID_ARGUMENT)?;
        put(text, known.as_ptr().cast())
    }

    fn hsa_system_get_info(attribute: u32, value: *mut c_void) {
        match attribute {
            // Versions of HSA, and of AMD's extensions.
            0 | 0x207 => put_as(value, 1u16),
            1 | 0x208 => put_as(value, 18u16),
            2 => put_as(value, ticks()),
            3 => put_as(value, TICKS_PER_SECOND),
            4 => put_as(value, u64::MAX),
            // Little endian; 64-bit addresses.
            5 => put_as(value, 0u32),
            6 => put_as(value, 1u32),
            7 => put_bytes(value, &extensions()),
            0x200 => put_as(value, c"HotSwap".as_ptr()),
            // Shared virtual memory, mwaitx, dmabuf, virtual memory, xnack: HIP uses what it needs all the same.
            0x201..=0x206 => put_as(value, false),
            _ => Err(HsaStatus::INVALID_ARGUMENT),
        }
    }

    fn hsa_iterate_agents(visit: Option<crate::abi::Visitor<AgentHandle>>, data: *mut c_void) {
        let visit = visit.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        visit_all(system()?.agents(), |agent| visit(agent, data))
    }

    fn hsa_amd_register_system_event_handler(handler: Option<EventHandler>, data: *mut c_void) {
        let handler = handler.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        EVENT_HANDLERS.lock().unwrap_or_else(PoisonError::into_inner).push((handler, data as usize));
        Ok(())
    }

    fn hsa_extension_get_name(extension: u16, name: *mut *const c_char) {
        let known = match extension {
            EXTENSION_LOADER => c"HSA_EXTENSION_AMD_LOADER",
            0 => c"HSA_EXTENSION_FINALIZER",
            1 => c"HSA_EXTENSION_IMAGES",
            2 => c"HSA_EXTENSION_PERFORMANCE_COUNTERS",
            3 => c"HSA_EXTENSION_PROFILING_EVENTS",
            0x200 => c"HSA_EXTENSION_AMD_PROFILER",
            0x202 => c"HSA_EXTENSION_AMD_AQLPROFILE",
            0x203 => c"HSA_EXTENSION_AMD_PC_SAMPLING",
            _ => return Err(HsaStatus::INVALID_ARGUMENT),
        };
        put(name, known.as_ptr())
    }

    fn hsa_system_extension_supported(extension: u16, major: u16, minor: u16, result: *mut bool) {
        let known = extension == EXTENSION_LOADER && major == LOADER_VERSION.0 && minor <= LOADER_VERSION.1;
        put(result, known)
    }

    fn hsa_system_major_extension_supported(extension: u16, major: u16, minor: *mut u16, result: *mut bool) {
        let known = extension == EXTENSION_LOADER && major == LOADER_VERSION.0;
        put(minor, if known { LOADER_VERSION.1 } else { 0 })?;
        put(result, known)
    }

    fn hsa_system_get_extension_table(extension: u16, major: u16, minor: u16, table: *mut c_void) {
        // The version fixes the size.
        let count = match minor { 0 => 3, 1 => 5, 2 => 6, _ => 7 };
        put_table(extension, major, count * size_of::<usize>(), table)
    }

    fn hsa_system_get_major_extension_table(extension: u16, major: u16, size: usize, table: *mut c_void) {
        put_table(extension, major, size, table)
    }

    fn hsa_agent_extension_supported(extension: u16, agent: AgentHandle, major: u16, minor: u16, result: *mut bool) {
        check_agent(agent)?;
        hsa_system_extension_supported(extension, major, minor, result).answer()
    }

    fn hsa_agent_major_extension_supported(
        extension: u16, agent: AgentHandle, major: u16, minor: *mut u16, result: *mut bool,
    ) {
        check_agent(agent)?;
        hsa_system_major_extension_supported(extension, major, minor, result).answer()
    }

    fn hsa_amd_enable_logging(_flags: *mut u8, _file: *mut c_void) {
        Ok(())
    }
}

impl HsaStatus {
    /// The result of a function that was called by another one.
    pub(crate) fn answer(self) -> Result<(), Self> {
        if self == Self::SUCCESS { Ok(()) } else { Err(self) }
    }
}

/// Visits handles until a callback returns another status than success, which is the result.
pub(crate) fn visit_all<H>(
    handles: impl IntoIterator<Item = H>,
    mut visit: impl FnMut(H) -> HsaStatus,
) -> Result<(), HsaStatus> {
    handles.into_iter().try_for_each(|handle| visit(handle).answer())
}
