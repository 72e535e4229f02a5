//! Virtual memory: addresses are reserved, memory is made and mapped there. HIP's memory pools are made of it.
//!
//! A handle of memory is a file in memory, so that it can be mapped at several addresses.
#![allow(unsafe_code)] // the functions of HSA's interface, mmap and memfd_create

use super::allocations::{self, AllocationKind, MemoryAllocation};
use super::mapping::PAGE;
use super::pools::{give_back, take_from_pool};
use crate::abi::{AccessDescription, AgentHandle, PhysicalHandle, PoolHandle};
use crate::agent_handles::number_of;
use crate::boundary::{HsaResult, caller_slice, hsa_api, not_null, put_result};
use crate::devices::check_agent;
use crate::handles::HandleTable;
use crate::status::HsaStatus;
use hotswap_emulator::GpuAccess;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::null_mut;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// Memory without an address.
struct PhysicalMemory {
    file: File,
    size: usize,
    pool: PoolHandle,
    owner: AgentHandle,
    kind: u32,
}

impl Drop for PhysicalMemory {
    fn drop(&mut self) {
        give_back(self.owner, self.size);
    }
}

static MEMORY: LazyLock<HandleTable<PhysicalMemory>> = LazyLock::new(|| HandleTable::new(0x50));
/// Memory that is mapped, by address: it lives as long as its mapping.
static MAPPED: Mutex<BTreeMap<usize, (PhysicalHandle, Arc<PhysicalMemory>)>> = Mutex::new(BTreeMap::new());
/// Reserved ranges: start, and the pages that were mapped for it.
static RESERVED: Mutex<BTreeMap<usize, (usize, usize, usize)>> = Mutex::new(BTreeMap::new());

/// HIP asks for no alignment where it maps large pages.
const DEFAULT_ALIGNMENT: u64 = 2 << 20;

fn reserve_addresses(size: usize, alignment: u64) -> Result<usize, HsaStatus> {
    let alignment = usize::try_from(alignment.max(PAGE as u64)).unwrap_or(usize::MAX);
    if size == 0 || !size.is_multiple_of(PAGE) || !alignment.is_power_of_two() {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    let whole = size.checked_add(alignment).ok_or(HsaStatus::OUT_OF_RESOURCES)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new pages at an address that the system chooses.
    let base = unsafe { libc::mmap(null_mut(), whole, libc::PROT_NONE, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(HsaStatus::OUT_OF_RESOURCES);
    }
    let start = (base as usize).next_multiple_of(alignment);
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner).insert(start, (size, base as usize, whole));
    Ok(start)
}

/// Whether a range is inside of one reservation.
fn is_reserved(start: usize, size: usize) -> bool {
    let reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
    let below = reserved.range(..=start).next_back();
    below.is_some_and(|(first, (bytes, ..))| start - first <= *bytes && size <= bytes - (start - first))
}

fn create_physical(pool: PoolHandle, size: usize, kind: u32) -> Result<PhysicalHandle, HsaStatus> {
    if size == 0 || !size.is_multiple_of(PAGE) {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    // SAFETY: a C string; the result is checked.
    let descriptor = unsafe { libc::memfd_create(c"hotswap-emulated".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(HsaStatus::OUT_OF_RESOURCES);
    }
    // SAFETY: a new descriptor, which nothing else closes.
    let file = unsafe { File::from_raw_fd(descriptor) };
    file.set_len(size as u64).map_err(|_| HsaStatus::OUT_OF_RESOURCES)?;
    let owner = take_from_pool(pool, size)?;
    Ok(PhysicalHandle(MEMORY.add(PhysicalMemory { file, size, pool, owner, kind })))
}

fn map_memory(start: usize, size: usize, offset: usize, handle: PhysicalHandle) -> HsaResult {
    let memory = MEMORY.get(handle.0).ok_or(HsaStatus::INVALID_ALLOCATION)?;
    let fits = offset.checked_add(size).is_some_and(|end| end <= memory.size);
    if !fits || !is_reserved(start, size) || allocations::allocation_facts(start).is_some() {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    let offset = libc::off_t::try_from(offset).map_err(|_| HsaStatus::INVALID_ARGUMENT)?;
    // SAFETY: the range is reserved by this module and nothing is mapped there.
    let mapped = unsafe { libc::mmap(start as *mut c_void, size, access, flags, memory.file.as_raw_fd(), offset) };
    if mapped == libc::MAP_FAILED {
        return Err(HsaStatus::OUT_OF_RESOURCES);
    }
    allocations::add_allocation(start, MemoryAllocation::new(AllocationKind::Virtual, size, memory.pool, None));
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner).insert(start, (handle, memory));
    Ok(())
}

fn unmap_memory(start: usize, size: usize) -> HsaResult {
    allocations::remove_allocation(start, AllocationKind::Virtual).ok_or(HsaStatus::INVALID_ALLOCATION)?;
    MAPPED.lock().unwrap_or_else(PoisonError::into_inner).remove(&start);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the range is reserved by this module; its memory was removed above.
    let reserved = unsafe { libc::mmap(start as *mut c_void, size, libc::PROT_NONE, flags, -1, 0) };
    if reserved == libc::MAP_FAILED { Err(HsaStatus::OUT_OF_RESOURCES) } else { Ok(()) }
}

hsa_api! {
    fn hsa_amd_vmem_address_reserve(start: *mut *mut c_void, size: usize, _address: u64, _flags: u64) {
        not_null(start)?;
        put_result(start, reserve_addresses(size, DEFAULT_ALIGNMENT)? as *mut c_void)
    }

    fn hsa_amd_vmem_address_reserve_align(
        start: *mut *mut c_void, size: usize, _address: u64, alignment: u64, _flags: u64,
    ) {
        not_null(start)?;
        put_result(start, reserve_addresses(size, alignment)? as *mut c_void)
    }

    fn hsa_amd_vmem_address_free(start: *mut c_void, size: usize) {
        let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = reserved.get(&(start as usize)).filter(|(bytes, ..)| *bytes == size);
        let (_, base, whole) = *known.ok_or(HsaStatus::INVALID_ALLOCATION)?;
        if MAPPED.lock().unwrap_or_else(PoisonError::into_inner).range(base..base + whole).next().is_some() {
            return Err(HsaStatus::RESOURCE_FREE);
        }
        reserved.remove(&(start as usize));
        // The pages of a reservation of this module, in which nothing is mapped.
        libc::munmap(base as *mut c_void, whole);
        Ok(())
    }

    fn hsa_amd_vmem_handle_create(
        pool: PoolHandle, size: usize, kind: u32, _flags: u64, handle: *mut PhysicalHandle,
    ) {
        not_null(handle)?;
        put_result(handle, create_physical(pool, size, kind)?)
    }

    fn hsa_amd_vmem_handle_release(handle: PhysicalHandle) {
        MEMORY.remove(handle.0).map(drop).ok_or(HsaStatus::INVALID_ALLOCATION)
    }

    fn hsa_amd_vmem_map(start: *mut c_void, size: usize, offset: usize, handle: PhysicalHandle, _flags: u64) {
        map_memory(start as usize, size, offset, handle)
    }

    fn hsa_amd_vmem_unmap(start: *mut c_void, size: usize) {
        unmap_memory(start as usize, size)
    }

    fn hsa_amd_vmem_set_access(start: *mut c_void, size: usize, list: *const AccessDescription, count: usize) {
        let list = caller_slice(list, u32::try_from(count).unwrap_or(0))?;
        list.iter().try_for_each(|entry| check_agent(entry.agent))?;
        let end = (start as usize).checked_add(size).ok_or(HsaStatus::INVALID_ARGUMENT)?;
        let is_known = allocations::change_access(start as usize..end, |access| {
            for entry in list {
                let permissions = entry.permissions;
                if let Some(gpu) = number_of(entry.agent) {
                    access.set_gpu(gpu, GpuAccess { may_read: permissions & 1 != 0, may_write: permissions & 2 != 0 });
                }
            }
        });
        if is_known { Ok(()) } else { Err(HsaStatus::INVALID_ALLOCATION) }
    }

    fn hsa_amd_vmem_get_access(start: *mut c_void, access_bits: *mut u32, agent: AgentHandle) {
        check_agent(agent)?;
        let known = allocations::allocation_facts(start as usize);
        let access = match (known, number_of(agent)) {
            (None, _) => GpuAccess::default(),
            (Some(known), Some(gpu)) => known.access.for_gpu(gpu),
            // The host sees what is mapped.
            (Some(_), None) => GpuAccess { may_read: true, may_write: true },
        };
        put_result(access_bits, u32::from(access.may_read) | u32::from(access.may_write) << 1)
    }

    fn hsa_amd_vmem_retain_alloc_handle(handle: *mut PhysicalHandle, address: *mut c_void) {
        not_null(handle)?;
        let mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let below = mapped.range(..=address as usize).next_back();
        let found = below.filter(|(start, (_, memory))| address as usize - **start < memory.size);
        let (_, (known, memory)) = found.ok_or(HsaStatus::INVALID_ALLOCATION)?;
        // Its own handle may be released already; a further one is for the same memory.
        let more = if MEMORY.get(known.0).is_some() { *known } else { PhysicalHandle(MEMORY.add_shared(memory.clone())) };
        put_result(handle, more)
    }

    fn hsa_amd_vmem_get_alloc_properties_from_handle(
        handle: PhysicalHandle, pool: *mut PoolHandle, kind: *mut u32,
    ) {
        let memory = MEMORY.get(handle.0).ok_or(HsaStatus::INVALID_ALLOCATION)?;
        put_result(pool, memory.pool)?;
        put_result(kind, memory.kind)
    }

    fn hsa_amd_vmem_export_shareable_handle(descriptor: *mut c_int, handle: PhysicalHandle, _flags: u64) {
        not_null(descriptor)?;
        let memory = MEMORY.get(handle.0).ok_or(HsaStatus::INVALID_ALLOCATION)?;
        let copy = libc::dup(memory.file.as_raw_fd());
        if copy < 0 { Err(HsaStatus::OUT_OF_RESOURCES) } else { put_result(descriptor, copy) }
    }

    fn hsa_amd_vmem_import_shareable_handle(descriptor: c_int, handle: *mut PhysicalHandle) {
        not_null(handle)?;
        let copy = libc::dup(descriptor);
        if copy < 0 {
            return Err(HsaStatus::INVALID_ARGUMENT);
        }
        let file = File::from_raw_fd(copy);
        let size = usize::try_from(file.metadata().map_err(|_| HsaStatus::INVALID_FILE)?.len()).unwrap_or(0);
        let pool = super::pools::host_pool();
        let owner = take_from_pool(pool, size)?;
        put_result(handle, PhysicalHandle(MEMORY.add(PhysicalMemory { file, size, pool, owner, kind: 1 })))
    }
}
