//! The allocations of pointers, memory of the host that is locked, and questions for attributes of shared virtual memory.
#![allow(unsafe_code)] // the functions of HSA's interface

use super::allocations::{self, AllocationFacts, AllocationKind};
use super::mapping::is_mapped;
use super::pools::{global_flags, host_pool};
use super::shared_ranges::{self, ACCESSIBLE, ACCESSIBLE_IN_PLACE};
use crate::abi::{AgentHandle, FreeCallback, PointerInfo, PoolHandle, SvmAttribute};
use crate::agent_handles::HOST;
use crate::boundary::{caller_slice, hsa_api, not_null, put_bytes, put_result};
use crate::devices::{check_agent, emulated_system};
use crate::status::HsaStatus;
use std::ffi::{c_int, c_void};
use std::slice;

/// The facts as HSA states them; nothing is known of a pointer of the program's own.
fn pointer_info(found: Option<AllocationFacts>) -> PointerInfo {
    let nothing = PointerInfo {
        size: 0,
        kind: 0,
        agent_base: 0,
        host_base: 0,
        bytes: 0,
        user_data: 0,
        owner: AgentHandle(0),
        global_flags: 0,
        registered: false,
    };
    found.map_or(nothing, |found| PointerInfo {
        size: 0,
        kind: found.kind as u32,
        agent_base: found.start as u64,
        host_base: found.start as u64,
        bytes: found.size,
        user_data: found.user_data,
        owner: AgentHandle(found.pool.0 / 16),
        global_flags: global_flags(found.pool),
        registered: false,
    })
}

/// The agents that see an allocation: the host, and the GPUs that may read it.
///
/// # Safety
/// `allocate` is the caller's `malloc`; the other pointers are null or places of the caller's.
unsafe fn put_agents(
    found: Option<AllocationFacts>,
    allocate: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
    count: *mut u32,
    agents: *mut *mut AgentHandle,
) -> Result<(), HsaStatus> {
    let (Some(allocate), false, false) = (allocate, count.is_null(), agents.is_null()) else { return Ok(()) };
    let all: Vec<AgentHandle> = match found {
        Some(found) => {
            let gpus = emulated_system()?.gpus.iter().filter(|gpu| found.access.for_gpu(gpu.number).may_read);
            std::iter::once(HOST).chain(gpus.map(|gpu| gpu.agent())).collect()
        }
        None => Vec::new(),
    };
    // SAFETY: the caller's promise; the list has the size that was allocated for it.
    unsafe {
        put_result(count, all.len() as u32)?;
        if all.is_empty() {
            return put_result(agents, std::ptr::null_mut());
        }
        let list = allocate(all.len() * size_of::<AgentHandle>()).cast::<AgentHandle>();
        if list.is_null() {
            return Err(HsaStatus::OUT_OF_RESOURCES);
        }
        list.copy_from_nonoverlapping(all.as_ptr(), all.len());
        put_result(agents, list)
    }
}

/// Locks memory of the host: the pages around it.
fn lock_memory(start: *mut c_void, size: usize, pool: PoolHandle) -> Result<(), HsaStatus> {
    if start.is_null() || size == 0 || (start as usize).checked_add(size).is_none() {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    if !is_mapped(start as usize, size) {
        return Err(HsaStatus::OUT_OF_RESOURCES);
    }
    allocations::lock_host(start as usize, size, pool);
    Ok(())
}

/// Refuses an attribute that cannot be stated, or an agent that does not exist.
fn check_attribute(stated: &SvmAttribute) -> Result<(), HsaStatus> {
    if !shared_ranges::may_be_stated(stated.attribute) {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    if shared_ranges::names_agent(*stated) { check_agent(AgentHandle(stated.value)) } else { Ok(()) }
}

fn gives_access(stated: &SvmAttribute) -> bool {
    matches!(stated.attribute, ACCESSIBLE | ACCESSIBLE_IN_PLACE)
}

hsa_api! {
    fn hsa_amd_pointer_info(
        pointer: *const c_void, to: *mut PointerInfo, allocate: Option<unsafe extern "C" fn(usize) -> *mut c_void>,
        count: *mut u32, agents: *mut *mut AgentHandle,
    ) {
        not_null(pointer)?;
        not_null(to)?;
        // The first field is the size of the caller's version of the structure.
        let size = to.cast::<u32>().read_unaligned();
        let found = allocations::allocation_facts(pointer as usize);
        let answer = PointerInfo { size, ..pointer_info(found) };
        let bytes = slice::from_raw_parts((&raw const answer).cast::<u8>(), size_of::<PointerInfo>());
        put_bytes(to.cast(), &bytes[..bytes.len().min(size as usize)])?;
        put_agents(found, allocate, count, agents)
    }

    fn hsa_amd_pointer_info_set_userdata(pointer: *const c_void, data: *mut c_void) {
        allocations::change_allocation(pointer as usize, |known| known.user_data = data as u64).ok_or(HsaStatus::INVALID_ARGUMENT)
    }

    fn hsa_amd_memory_lock(
        start: *mut c_void, size: usize, agents: *const AgentHandle, count: c_int, device: *mut *mut c_void,
    ) {
        not_null(device)?;
        caller_slice(agents, u32::try_from(count).unwrap_or(0))?.iter().try_for_each(|agent| check_agent(*agent))?;
        lock_memory(start, size, host_pool())?;
        put_result(device, start)
    }

    fn hsa_amd_memory_lock_to_pool(
        start: *mut c_void, size: usize, agents: *const AgentHandle, count: c_int, pool: PoolHandle, _flags: u32,
        device: *mut *mut c_void,
    ) {
        not_null(device)?;
        caller_slice(agents, u32::try_from(count).unwrap_or(0))?.iter().try_for_each(|agent| check_agent(*agent))?;
        lock_memory(start, size, pool)?;
        put_result(device, start)
    }

    fn hsa_amd_memory_unlock(start: *mut c_void) {
        not_null(start)?;
        allocations::unlock_host(start as usize);
        Ok(())
    }

    fn hsa_memory_register(start: *mut c_void, size: usize) {
        lock_memory(start, size, host_pool())
    }

    fn hsa_memory_deregister(start: *mut c_void, _size: usize) {
        not_null(start)?;
        allocations::unlock_host(start as usize);
        Ok(())
    }

    fn hsa_memory_assign_agent(start: *mut c_void, agent: AgentHandle, _access: u32) {
        check_agent(agent)?;
        not_null(start)
    }

    fn hsa_amd_register_deallocation_callback(start: *mut c_void, callback: Option<FreeCallback>, data: *mut c_void) {
        let callback = callback.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        let added = allocations::change_allocation(start as usize, |known: &mut allocations::MemoryAllocation| {
            let of_pool = known.kind == AllocationKind::Pool;
            if of_pool {
                known.callbacks.push((callback, data as usize));
            }
            of_pool
        });
        added.filter(|added| *added).map(drop).ok_or(HsaStatus::INVALID_ALLOCATION)
    }

    fn hsa_amd_deregister_deallocation_callback(start: *mut c_void, callback: Option<FreeCallback>) {
        let callback = callback.ok_or(HsaStatus::INVALID_ARGUMENT)?;
        let taken = allocations::change_allocation(start as usize, |known| {
            let place = known.callbacks.iter().position(|(other, _)| *other as usize == callback as usize);
            place.map(|place| known.callbacks.remove(place))
        });
        taken.flatten().map(drop).ok_or(HsaStatus::INVALID_ARGUMENT)
    }

    fn hsa_amd_svm_attributes_set(start: *mut c_void, size: usize, attributes: *const SvmAttribute, count: usize) {
        let attributes = caller_slice(attributes, u32::try_from(count).unwrap_or(0))?;
        attributes.iter().try_for_each(check_attribute)?;
        // A GPU without xnack sees only memory that is registered for it.
        if attributes.iter().any(gives_access) {
            lock_memory(start, size, host_pool())?;
        }
        shared_ranges::store_attributes(start as usize, size, attributes)
    }

    fn hsa_amd_svm_attributes_get(start: *mut c_void, size: usize, attributes: *mut SvmAttribute, count: usize) {
        for number in 0..caller_slice(attributes.cast_const(), u32::try_from(count).unwrap_or(0))?.len() {
            let pair = attributes.add(number);
            pair.write(shared_ranges::answer_attribute(start as usize, size, pair.read())?);
        }
        Ok(())
    }
}
