//! Which addresses belong to which allocation.
//!
//! Invariants: allocations do not overlap, except that memory of the host may be locked several times (HIP locks the pages
//! around each copy). Kernels see what is here and nothing else. Memory that is freed while a kernel runs is unmapped when
//! none runs: a kernel that still accesses it gets a fault, not the program a signal.
#![allow(unsafe_code)] // registering ranges for the emulator

use super::mapping::{PAGE, PageMapping};
use super::shared_ranges;
use crate::abi::{AgentHandle, FreeCallback, PoolHandle};
use crate::agent_handles::number_of;
use crate::executor::{MEMORY, is_running};
use hotswap_emulator::{GpuAccess, RangeAccess};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kind of an allocation, with HSA's numbers for types of pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllocationKind {
    Pool = 1,
    /// The program's own, locked.
    Locked = 2,
    /// Reserved addresses without memory.
    Reserved = 5,
    /// Memory that is mapped at reserved addresses.
    Virtual = 6,
}

#[derive(Debug)]
pub(crate) struct MemoryAllocation {
    pub(crate) kind: AllocationKind,
    pub(crate) size: usize,
    pub(crate) pool: PoolHandle,
    pub(crate) user_data: u64,
    /// Called when it is freed, with data.
    pub(crate) callbacks: Vec<(FreeCallback, usize)>,
    /// How often it is locked.
    pub(crate) locks: u32,
    /// The GPUs that may access it.
    access: RangeAccess,
    pages: Option<PageMapping>,
}

/// The allocation of a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AllocationFacts {
    pub(crate) start: usize,
    pub(crate) size: usize,
    pub(crate) kind: AllocationKind,
    pub(crate) pool: PoolHandle,
    pub(crate) user_data: u64,
    pub(crate) access: RangeAccess,
}

impl AllocationFacts {
    /// The agent that has the pool.
    pub(crate) fn owner(&self) -> AgentHandle {
        owner_of_pool(self.pool)
    }
}

fn owner_of_pool(pool: PoolHandle) -> AgentHandle {
    AgentHandle(pool.0 / 16)
}

/// The GPUs that may access an allocation before the program states others: all of them memory of the host, only the owner its own
/// memory, and none what is mapped at reserved addresses.
fn first_access(kind: AllocationKind, owner: AgentHandle) -> RangeAccess {
    match (kind, number_of(owner)) {
        (AllocationKind::Virtual | AllocationKind::Reserved, _) => RangeAccess::NONE,
        (_, Some(gpu)) => RangeAccess::of_gpu(gpu),
        (_, None) => RangeAccess::ALL,
    }
}

#[derive(Default)]
struct AllocationMap {
    by_start: BTreeMap<usize, MemoryAllocation>,
    /// Freed while a kernel ran.
    waiting: Vec<PageMapping>,
    /// Pages of locked memory that kernels may access.
    locked: Vec<Range<usize>>,
}

static ALLOCATIONS: Mutex<AllocationMap> =
    Mutex::new(AllocationMap { by_start: BTreeMap::new(), waiting: Vec::new(), locked: Vec::new() });

fn lock_map() -> MutexGuard<'static, AllocationMap> {
    // The map is whole between its steps.
    ALLOCATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryAllocation {
    pub(crate) fn new(kind: AllocationKind, size: usize, pool: PoolHandle, pages: Option<PageMapping>) -> Self {
        let access = first_access(kind, owner_of_pool(pool));
        Self { kind, size, pool, user_data: 0, callbacks: Vec::new(), locks: 1, access, pages }
    }

    /// The agent that has the pool.
    pub(crate) fn owner(&self) -> AgentHandle {
        owner_of_pool(self.pool)
    }

    fn is_accessible(&self) -> bool {
        self.kind != AllocationKind::Reserved
    }
}

/// Lets kernels of GPUs access a range.
fn register_range(start: usize, size: usize, access: RangeAccess) {
    // SAFETY: the pages are mapped until `unregister`: they belong to an allocation, or the program has locked them.
    unsafe { MEMORY.register_range(start as u64..(start + size) as u64, access) };
}

pub(crate) fn add_allocation(start: usize, allocation: MemoryAllocation) {
    shared_ranges::forget_attributes(start, allocation.size);
    let mut map = lock_map();
    forget_locked(&mut map, start..start + allocation.size);
    if allocation.is_accessible() {
        register_range(start, allocation.size, allocation.access);
    }
    map.by_start.insert(start, allocation);
}

/// Adds pages for kernels and host outside of the pools' allocations: signals, queues, code. They are never freed.
pub(crate) fn add_pages(pages: PageMapping) -> usize {
    register_range(pages.start, pages.size, RangeAccess::ALL);
    pages.leak()
}

/// The same for pages that are freed by [`release_pages`].
pub(crate) fn register_pages(pages: &PageMapping) {
    register_range(pages.start, pages.size, RangeAccess::ALL);
}

pub(crate) fn release_pages(pages: PageMapping) {
    MEMORY.unregister_range(pages.start as u64);
    free_pages(&mut lock_map(), Some(pages));
}

/// Locks memory of the program: counts it where it is an allocation already.
pub(crate) fn lock_host(start: usize, size: usize, pool: PoolHandle) {
    let mut map = lock_map();
    if let Some(known) = map.by_start.get_mut(&start).filter(|known| known.kind == AllocationKind::Locked) {
        known.locks += 1;
        known.size = known.size.max(size);
    } else if find_allocation(&map, start).is_some_and(|(_, known)| known.kind != AllocationKind::Locked) {
        return; // Memory of a pool is accessible already.
    } else {
        map.by_start.insert(start, MemoryAllocation::new(AllocationKind::Locked, size, pool, None));
    }
    register_locked(&mut map);
}

pub(crate) fn unlock_host(start: usize) {
    let mut map = lock_map();
    let Some(known) = map.by_start.get_mut(&start).filter(|known| known.kind == AllocationKind::Locked) else { return };
    known.locks -= 1;
    if known.locks == 0 {
        map.by_start.remove(&start);
        register_locked(&mut map);
    }
}

/// Lets kernels access the pages of all locked memory. The emulator's ranges must not overlap, and those that stay must not
/// be missing for a moment: new ones are added before old ones are removed.
fn register_locked(map: &mut AllocationMap) {
    let mut merged: Vec<Range<usize>> = Vec::new();
    for (start, known) in map.by_start.iter().filter(|(_, known)| known.kind == AllocationKind::Locked) {
        let pages = pages_around(*start, known.size);
        match merged.last_mut().filter(|last| pages.start <= last.end) {
            Some(last) => last.end = last.end.max(pages.end),
            None => merged.push(pages),
        }
    }
    for range in merged.iter().filter(|range| !map.locked.contains(range)) {
        register_range(range.start, range.len(), RangeAccess::ALL);
    }
    for range in map.locked.iter().filter(|old| merged.iter().all(|range| range.start != old.start)) {
        MEMORY.unregister_range(range.start as u64);
    }
    map.locked = merged;
}

/// Forgets locked memory at these addresses: the program has unmapped it without unlocking it.
fn forget_locked(map: &mut AllocationMap, range: Range<usize>) {
    let before = map.by_start.len();
    map.by_start.retain(|start, known| !overlaps_locked_range(*start, known, range.start, range.end));
    if map.by_start.len() < before {
        register_locked(map);
    }
}

fn overlaps_locked_range(start: usize, known: &MemoryAllocation, range_start: usize, range_end: usize) -> bool {
    known.kind == AllocationKind::Locked && start < range_end && range_start < start + known.size
}

/// Removes the allocation that begins there and frees its pages; its callbacks are the caller's to call, without a lock.
pub(crate) fn remove_allocation(start: usize, kind: AllocationKind) -> Option<MemoryAllocation> {
    let mut map = lock_map();
    map.by_start.get(&start).filter(|known| known.kind == kind)?;
    let mut removed = map.by_start.remove(&start)?;
    if removed.is_accessible() {
        MEMORY.unregister_range(start as u64);
    }
    let pages = removed.pages.take();
    free_pages(&mut map, pages);
    Some(removed)
}

fn free_pages(map: &mut AllocationMap, pages: Option<PageMapping>) {
    map.waiting.extend(pages);
    if !is_running() {
        map.waiting.clear();
    }
}

/// The allocation that holds an address.
pub(crate) fn allocation_facts(address: usize) -> Option<AllocationFacts> {
    let map = lock_map();
    let (start, known) = find_allocation(&map, address)?;
    let MemoryAllocation { kind, size, pool, user_data, access, .. } = *known;
    Some(AllocationFacts { start, size, kind, pool, user_data, access })
}

/// Gives only these GPUs, and the owner, access to the allocation of a pool. Memory of the host stays accessible to all.
pub(crate) fn allow_only(address: usize, gpus: impl Iterator<Item = usize>) {
    let mut map = lock_map();
    let Some((start, known)) = find_allocation(&map, address) else { return };
    if known.kind != AllocationKind::Pool || number_of(known.owner()).is_none() {
        return;
    }
    let mut access = first_access(known.kind, known.owner());
    gpus.for_each(|gpu| access.set_gpu(gpu, GpuAccess { may_read: true, may_write: true }));
    store_access(&mut map, start, access);
}

/// Changes the accesses of the mappings of virtual memory that begin in a range; returns whether there are any.
pub(crate) fn change_access(range: Range<usize>, change: impl Fn(&mut RangeAccess)) -> bool {
    let mut map = lock_map();
    let found = map.by_start.range(range).filter(|(_, known)| known.kind == AllocationKind::Virtual);
    let starts: Vec<usize> = found.map(|(start, _)| *start).collect();
    for start in &starts {
        let Some(mut access) = map.by_start.get(start).map(|known| known.access) else { continue };
        change(&mut access);
        store_access(&mut map, *start, access);
    }
    !starts.is_empty()
}

fn store_access(map: &mut AllocationMap, start: usize, access: RangeAccess) {
    if let Some(known) = map.by_start.get_mut(&start) {
        known.access = access;
        MEMORY.set_access(start as u64, access);
    }
}

/// Changes the allocation that holds an address.
pub(crate) fn change_allocation<T>(address: usize, change: impl FnOnce(&mut MemoryAllocation) -> T) -> Option<T> {
    let mut map = lock_map();
    let (start, _) = find_allocation(&map, address)?;
    map.by_start.get_mut(&start).map(change)
}

fn find_allocation(map: &AllocationMap, address: usize) -> Option<(usize, &MemoryAllocation)> {
    // Locked ranges may overlap, so the nearest one below need not be the one.
    let below = map.by_start.range(..=address).rev().take(8);
    below.map(|(start, known)| (*start, known)).find(|(start, known)| address - start < known.size)
}

/// Whether all bytes are accessible to kernels and copies.
pub(crate) fn is_accessible(address: usize, size: usize) -> bool {
    let (mut at, end) = (address as u64, (address as u64).saturating_add(size as u64));
    while at < end {
        let Some(range) = MEMORY.range_at(at) else { return false };
        at = range.end;
    }
    true
}

/// The whole pages around bytes of the host.
fn pages_around(start: usize, size: usize) -> Range<usize> {
    start & !(PAGE - 1)..(start + size).next_multiple_of(PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: PoolHandle = PoolHandle(0x1003);

    fn allocate(size: usize) -> usize {
        let pages = PageMapping::new(size).unwrap();
        let (start, size) = (pages.start, pages.size);
        add_allocation(start, MemoryAllocation::new(AllocationKind::Pool, size, POOL, Some(pages)));
        start
    }

    #[test]
    fn pointers_belong_to_their_allocation() {
        let start = allocate(5000);
        let found = allocation_facts(start + 8191).unwrap();
        assert_eq!((found.start, found.size, found.kind), (start, 8192, AllocationKind::Pool));
        assert!(allocation_facts(start + 8192).is_none_or(|other| other.start != start));
        assert!(is_accessible(start, 8192) && !is_accessible(start, 8193) && !is_accessible(start - 1, 1));
        assert!(remove_allocation(start + 1, AllocationKind::Pool).is_none());
        assert!(remove_allocation(start, AllocationKind::Locked).is_none());
        assert!(remove_allocation(start, AllocationKind::Pool).is_some() && allocation_facts(start).is_none());
        assert!(!is_accessible(start, 1) && remove_allocation(start, AllocationKind::Pool).is_none());
    }

    #[test]
    fn host_memory_is_locked_as_often_as_it_is_asked_for() {
        let host = vec![0u8; 4 * PAGE];
        let start = (host.as_ptr() as usize).next_multiple_of(PAGE);
        lock_host(start, PAGE, POOL);
        lock_host(start, 2 * PAGE, POOL);
        assert!(is_accessible(start, 2 * PAGE) && allocation_facts(start).unwrap().kind == AllocationKind::Locked);
        unlock_host(start);
        assert!(is_accessible(start, PAGE));
        unlock_host(start);
        unlock_host(start);
        assert!(!is_accessible(start, 1) && allocation_facts(start).is_none());
    }

    #[test]
    fn locked_ranges_may_overlap() {
        let host = vec![0u8; 8 * PAGE];
        let start = (host.as_ptr() as usize).next_multiple_of(PAGE);
        lock_host(start + 100, 5 * PAGE, POOL);
        lock_host(start + PAGE + 7, 9, POOL);
        // The short one does not hide the long one.
        assert!(is_accessible(start, 5 * PAGE) && allocation_facts(start + PAGE + 8).unwrap().size == 9);
        assert_eq!(allocation_facts(start + PAGE + 20).unwrap().start, start + 100);
        unlock_host(start + 100);
        assert!(!is_accessible(start, 1) && is_accessible(start + PAGE, PAGE) && !is_accessible(start + 2 * PAGE, 1));
        unlock_host(start + PAGE + 7);
        assert!(!is_accessible(start + PAGE, 1));
    }

    #[test]
    fn more_than_the_system_has_is_refused() {
        assert!(PageMapping::new(usize::MAX).is_none() && PageMapping::new(1 << 60).is_none());
    }
}
