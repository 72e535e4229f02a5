//! Pools: the host's fine-grained, kernel-argument and coarse-grained memory; a GPU's own memory and its LDS. Regions of the
//! older interface are the same.
//!
//! Invariant: a GPU's memory is limited to what the product has, so that programs see the error of a full GPU.
#![allow(unsafe_code)] // the functions of HSA's interface

use super::allocations::{self, AllocationKind, MemoryAllocation};
use super::mapping::{PAGE, PageMapping};
use crate::abi::{AgentHandle, COARSE_GRAINED, FINE_GRAINED, KERNARG_INIT, LinkInfo, PoolHandle, Visitor};
use crate::agent_handles::{HOST, number_of};
use crate::boundary::{caller_slice, hsa_api, not_null, put_as, put_result, visit_all};
use crate::devices::{check_agent, gpu_of};
use crate::executor::settle_queues;
use crate::program_end::wait_before_freeing;
use crate::status::HsaStatus;
use hotswap_emulator::POISON_WORD;
use std::ffi::c_void;
use std::sync::atomic::Ordering;

/// Larger allocations are left as they are: writing them takes time and the machine's memory.
const LARGEST_POISONED: usize = 256 << 20;

/// The last digit of a pool's handle; the others are its agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PoolKind {
    Fine = 1,
    Kernarg = 2,
    Coarse = 3,
    Group = 4,
}

#[derive(Debug, Clone, Copy)]
struct MemoryPool {
    agent: AgentHandle,
    kind: PoolKind,
}

/// The pools of an agent, in the order in which HSA shows them.
fn pools_of_agent(agent: AgentHandle) -> Result<&'static [PoolKind], HsaStatus> {
    check_agent(agent)?;
    let host = agent == HOST;
    Ok(if host { &[PoolKind::Fine, PoolKind::Kernarg, PoolKind::Coarse] } else { &[PoolKind::Coarse, PoolKind::Group] })
}

fn find_pool(handle: PoolHandle) -> Result<MemoryPool, HsaStatus> {
    let agent = AgentHandle(handle.0 / 16);
    let known = pools_of_agent(agent).map_err(|_| HsaStatus::INVALID_MEMORY_POOL)?;
    let kind = known.iter().find(|kind| **kind as u64 == handle.0 % 16);
    kind.map(|kind| MemoryPool { agent, kind: *kind }).ok_or(HsaStatus::INVALID_MEMORY_POOL)
}

/// The host's pool for memory that is locked without a pool.
pub(crate) fn host_pool() -> PoolHandle {
    PoolHandle(HOST.0 * 16 + PoolKind::Fine as u64)
}

impl MemoryPool {
    fn handle(self) -> PoolHandle {
        PoolHandle(self.agent.0 * 16 + self.kind as u64)
    }

    fn is_group(self) -> bool {
        self.kind == PoolKind::Group
    }

    fn size(self) -> u64 {
        match gpu_of(self.agent) {
            Ok(gpu) if self.is_group() => gpu.lds().into(),
            Ok(gpu) => gpu.memory,
            Err(_) => host_memory(),
        }
    }

    /// Takes memory of the GPU, or fails if it is full.
    fn take_memory(self, size: u64) -> Result<(), HsaStatus> {
        let Ok(gpu) = gpu_of(self.agent) else { return Ok(()) };
        let taken = gpu.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used: u64| {
            used.checked_add(size).filter(|sum| *sum <= gpu.memory)
        });
        taken.map(drop).map_err(|_| HsaStatus::OUT_OF_RESOURCES)
    }
}

/// Gives memory of a GPU back.
pub(crate) fn give_back(agent: AgentHandle, size: usize) {
    if let Ok(gpu) = gpu_of(agent) {
        gpu.used.fetch_sub(size as u64, Ordering::AcqRel);
    }
}

/// Takes memory of a pool for a mapping of virtual memory.
pub(crate) fn take_from_pool(handle: PoolHandle, size: usize) -> Result<AgentHandle, HsaStatus> {
    let pool = find_pool(handle)?;
    pool.take_memory(size as u64)?;
    Ok(pool.agent)
}

/// Bytes of the machine's memory.
fn host_memory() -> u64 {
    // SAFETY: two questions to the system.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(size).unwrap_or(0))
}

/// `HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_*` of a pool.
pub(crate) fn global_flags(handle: PoolHandle) -> u32 {
    match find_pool(handle).map(|pool| pool.kind) {
        Ok(PoolKind::Fine) => FINE_GRAINED,
        Ok(PoolKind::Kernarg) => FINE_GRAINED | KERNARG_INIT,
        Ok(PoolKind::Coarse) => COARSE_GRAINED,
        _ => 0,
    }
}

/// Allocates memory of a pool.
pub(crate) fn allocate_from_pool(handle: PoolHandle, size: usize) -> Result<usize, HsaStatus> {
    let pool = find_pool(handle)?;
    if size == 0 || pool.is_group() {
        return Err(if size == 0 { HsaStatus::INVALID_ARGUMENT } else { HsaStatus::INVALID_ALLOCATION });
    }
    let size = size.checked_next_multiple_of(PAGE).ok_or(HsaStatus::OUT_OF_RESOURCES)?;
    pool.take_memory(size as u64)?;
    let Some(pages) = PageMapping::new(size) else {
        give_back(pool.agent, size);
        return Err(HsaStatus::OUT_OF_RESOURCES);
    };
    if gpu_of(pool.agent).is_ok_and(|gpu| gpu.executor.poisons()) && size <= LARGEST_POISONED {
        pages.fill(POISON_WORD);
    }
    let start = pages.start;
    allocations::add_allocation(start, MemoryAllocation::new(AllocationKind::Pool, size, pool.handle(), Some(pages)));
    Ok(start)
}

/// Frees memory of a pool; null is freed at once, as HIP does when it ends.
pub(crate) fn free_memory(start: *mut c_void) -> Result<(), HsaStatus> {
    wait_before_freeing();
    if start.is_null() {
        return Ok(());
    }
    settle_queues();
    let removed =
        allocations::remove_allocation(start as usize, AllocationKind::Pool).ok_or(HsaStatus::INVALID_ALLOCATION)?;
    give_back(removed.owner(), removed.size);
    for (callback, data) in removed.callbacks {
        // SAFETY: a callback that the program registered, with its own data.
        unsafe { callback(start, data as *mut c_void) };
    }
    Ok(())
}

/// # Safety
/// `value` has room for the attribute.
unsafe fn put_attribute(pool: MemoryPool, attribute: u32, value: *mut c_void) -> Result<(), HsaStatus> {
    let (group, host) = (pool.is_group(), pool.agent == HOST);
    // SAFETY: the types are those of HSA's headers; the caller has room for them.
    unsafe {
        match attribute {
            // Segments: global 0, group 3.
            0 => put_as(value, if group { 3u32 } else { 0 }),
            1 => put_as(value, global_flags(pool.handle())),
            2 | 4 | 16 => put_as(value, pool.size()),
            5 => put_as(value, !group),
            6 | 7 => put_as(value, pool_granule_size(PAGE, group)),
            15 => put_as(value, host),
            17 => put_as(value, u32::from(!host)),
            18 => put_as(value, pool_granule_size(if host { PAGE } else { 2 << 20 }, group)),
            // Of regions: whether the host sees it, its base.
            0xa000 => put_as(value, host),
            0xa001 => put_as(value, 0u64),
            _ => Err(HsaStatus::INVALID_ARGUMENT),
        }
    }
}

fn pool_granule_size(bytes: usize, group: bool) -> usize {
    if group { 0 } else { bytes }
}

/// # Safety
/// `value` has room for the attribute.
unsafe fn agent_attribute(own: bool, attribute: u32, value: *mut c_void) -> Result<(), HsaStatus> {
    let link = LinkInfo {
        min_latency: 0,
        max_latency: 0,
        min_bandwidth: 0,
        max_bandwidth: 0,
        atomic_32: true,
        atomic_64: true,
        coherent: false,
        link_type: 2, // PCIe
        numa_distance: 20,
    };
    // SAFETY: the types are those of HSA's headers; the caller has room for them.
    unsafe {
        match attribute {
            // Access: allowed by default 1, after a call 2.
            0 => put_as(value, if own { 1u32 } else { 2 }),
            1 => put_as(value, u32::from(!own)),
            // A link to one's own memory does not exist.
            2 if own => Ok(()),
            2 => put_as(value, link),
            _ => Err(HsaStatus::INVALID_ARGUMENT),
        }
    }
}

hsa_api! {
    fn hsa_amd_agent_iterate_memory_pools(agent: AgentHandle, visit: Option<Visitor<PoolHandle>>, data: *mut c_void) {
        let visit = visit.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        let handles = pools_of_agent(agent)?.iter().map(|kind| MemoryPool { agent, kind: *kind }.handle());
        visit_all(handles, |pool| visit(pool, data))
    }

    fn hsa_agent_iterate_regions(agent: AgentHandle, visit: Option<Visitor<PoolHandle>>, data: *mut c_void) {
        hsa_amd_agent_iterate_memory_pools(agent, visit, data).into_answer()
    }

    fn hsa_amd_memory_pool_get_info(handle: PoolHandle, wanted: u32, value: *mut c_void) {
        put_attribute(find_pool(handle)?, wanted, value)
    }

    fn hsa_region_get_info(handle: PoolHandle, wanted: u32, value: *mut c_void) {
        put_attribute(find_pool(handle).map_err(|_| HsaStatus::INVALID_REGION)?, wanted, value)
    }

    fn hsa_amd_agent_memory_pool_get_info(agent: AgentHandle, handle: PoolHandle, wanted: u32, value: *mut c_void) {
        check_agent(agent)?;
        agent_attribute(find_pool(handle)?.agent == agent, wanted, value)
    }

    fn hsa_amd_memory_pool_allocate(handle: PoolHandle, size: usize, _flags: u32, start: *mut *mut c_void) {
        not_null(start)?;
        put_result(start, allocate_from_pool(handle, size)? as *mut c_void)
    }

    fn hsa_amd_memory_pool_free(start: *mut c_void) {
        free_memory(start)
    }

    fn hsa_memory_allocate(region: PoolHandle, size: usize, start: *mut *mut c_void) {
        not_null(start)?;
        let made = allocate_from_pool(region, size).map_err(|status| match status {
            HsaStatus::INVALID_MEMORY_POOL => HsaStatus::INVALID_REGION,
            other => other,
        });
        put_result(start, made? as *mut c_void)
    }

    fn hsa_memory_free(start: *mut c_void) {
        free_memory(start)
    }

    fn hsa_amd_memory_pool_can_migrate(from: PoolHandle, to: PoolHandle, result: *mut bool) {
        find_pool(from)?;
        find_pool(to)?;
        put_result(result, false)
    }

    fn hsa_amd_memory_migrate(_start: *const c_void, to: PoolHandle, _flags: u32) {
        find_pool(to)?;
        Err(HsaStatus::NOT_SUPPORTED)
    }

    fn hsa_amd_agents_allow_access(count: u32, agents: *const AgentHandle, _flags: *const u32, start: *const c_void) {
        not_null(start)?;
        let agents = caller_slice(agents, count)?;
        agents.iter().try_for_each(|agent| check_agent(*agent))?;
        allocations::allow_only(start as usize, agents.iter().filter_map(|agent| number_of(*agent)));
        Ok(())
    }
}
