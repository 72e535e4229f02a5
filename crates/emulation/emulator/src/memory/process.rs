//! Memory of this process: an address of the device is a pointer, and each GPU has a view of it.
//!
//! Invariants: only bytes of registered ranges are touched, and only those that the GPU may access. Whoever registers a range promises that it stays mapped
//! until it is unregistered, and unregisters it before it is unmapped.
//!
//! Host threads access the same bytes at the same time (queues, signals, host calls), so aligned words are accessed as
//! atomics.
#![allow(unsafe_code, reason = "addresses of the device are pointers of this process")]

use super::{DeviceMemory, LaneAddresses, MemoryFault, farthest_distance, is_row};
use hotswap_semantics::{BITS, LANES, Lanes};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// The GPUs that may read a range, and those that may write it: a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeAccess {
    pub readers: u64,
    pub writers: u64,
}

impl RangeAccess {
    /// No GPU may access it.
    pub const NONE: Self = Self { readers: 0, writers: 0 };
    /// All GPUs may read and write it.
    pub const ALL: Self = Self { readers: u64::MAX, writers: u64::MAX };

    /// One GPU may read and write it.
    pub fn of_gpu(number: usize) -> Self {
        Self { readers: gpu_bit(number), writers: gpu_bit(number) }
    }

    /// Sets what one GPU may do.
    pub fn set_gpu(&mut self, number: usize, access: GpuAccess) {
        let bit = gpu_bit(number);
        self.readers = if access.may_read { self.readers | bit } else { self.readers & !bit };
        self.writers = if access.may_write { self.writers | bit } else { self.writers & !bit };
    }

    /// The accesses of one GPU.
    pub fn for_gpu(self, number: usize) -> GpuAccess {
        let bit = gpu_bit(number);
        GpuAccess { may_read: self.readers & bit != 0, may_write: self.writers & bit != 0 }
    }

    #[inline]
    fn bits(self, is_write: bool) -> u64 {
        if is_write { self.writers } else { self.readers }
    }
}

/// The accesses of one GPU to a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GpuAccess {
    pub may_read: bool,
    pub may_write: bool,
}

/// The bit of a GPU. All from number 63 on share one.
fn gpu_bit(number: usize) -> u64 {
    1 << number.min(63)
}

/// Memory of this process, as far as it is registered.
#[derive(Debug)]
pub struct ProcessMemory {
    /// Start to end and its accesses.
    ranges: RwLock<BTreeMap<u64, MemoryRange>>,
    version: AtomicU64,
    code_version: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct MemoryRange {
    end: u64,
    access: RangeAccess,
}

/// Memory of this process as one GPU sees it.
#[derive(Debug, Clone, Copy)]
pub struct GpuMemory<'a> {
    memory: &'a ProcessMemory,
    /// The bits of which one must be set.
    bits: u64,
}

/// The range of the last access of this thread: most accesses of a kernel are to few ranges.
#[derive(Debug, Clone, Copy)]
struct LastRange {
    version: u64,
    start: u64,
    end: u64,
    access: RangeAccess,
}

/// Versions are unique in the process, so that the last range of one memory is never taken for another's.
static VERSIONS: AtomicU64 = AtomicU64::new(1);

impl LastRange {
    const UNKNOWN: Self = Self { version: 0, start: 0, end: 0, access: RangeAccess::NONE };
}

/// The places of the ranges that a thread has found. With one place, a kernel that reads its arguments and two arrays looked for a
/// range at every access, a tenth of its time.
const PLACES: usize = 8;

thread_local! {
    static LAST: [Cell<LastRange>; PLACES] = const { [const { Cell::new(LastRange::UNKNOWN) }; PLACES] };
}

/// The place for the range of an address: large pages take turns.
fn place_of_address(address: u64) -> usize {
    (address >> 21) as usize % PLACES
}

impl Default for ProcessMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl ProcessMemory {
    /// No range is valid.
    pub fn new() -> Self {
        Self {
            ranges: RwLock::default(),
            version: AtomicU64::new(next_version()),
            code_version: AtomicU64::new(next_version()),
        }
    }

    /// Makes `range` valid. A range that begins at the same address is replaced.
    ///
    /// # Safety
    /// All bytes are mapped, readable and, where a GPU may write them now or later, writable, until
    /// [`ProcessMemory::unregister_range`] returns. Host code that accesses them at the same time does so as it would if a
    /// GPU accessed them.
    pub unsafe fn register_range(&self, range: Range<u64>, access: RangeAccess) {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        ranges.insert(range.start, MemoryRange { end: range.end, access });
        self.version.store(next_version(), Ordering::Release);
    }

    /// Changes the accesses of the range that begins at `start`; returns whether there is one.
    pub fn set_access(&self, start: u64, access: RangeAccess) -> bool {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        let Some(range) = ranges.get_mut(&start) else { return false };
        range.access = access;
        self.version.store(next_version(), Ordering::Release);
        true
    }

    /// The memory as the GPU with that number sees it.
    pub fn view_of_gpu(&self, number: usize) -> GpuMemory<'_> {
        GpuMemory { memory: self, bits: gpu_bit(number) }
    }

    /// The memory without a check of which GPU accesses it.
    pub fn view_of_all(&self) -> GpuMemory<'_> {
        GpuMemory { memory: self, bits: u64::MAX }
    }

    /// Makes the range that begins at `start` invalid; returns whether there was one.
    pub fn unregister_range(&self, start: u64) -> bool {
        let mut ranges = self.ranges.write().unwrap_or_else(PoisonError::into_inner);
        let found = ranges.remove(&start).is_some();
        self.version.store(next_version(), Ordering::Release);
        found
    }

    /// Says that code was loaded or unloaded: decoded instructions are forgotten.
    pub fn code_changed(&self) {
        self.code_version.store(next_version(), Ordering::Release);
    }

    /// The registered range that holds `address`.
    pub fn range_at(&self, address: u64) -> Option<Range<u64>> {
        self.find_range(address).map(|found| found.start..found.end)
    }

    fn find_range(&self, address: u64) -> Option<LastRange> {
        let ranges = self.ranges.read().unwrap_or_else(PoisonError::into_inner);
        let version = self.version.load(Ordering::Acquire);
        let (start, range) = ranges.range(..=address).next_back()?;
        let found = LastRange { version, start: *start, end: range.end, access: range.access };
        (address < range.end).then_some(found)
    }
}

impl GpuMemory<'_> {
    #[inline]
    fn check_access(&self, address: u64, size: usize, is_write: bool) -> Result<(), MemoryFault> {
        match self.range_of_access(address, size, is_write) {
            Some(_) => Ok(()),
            None => self.check_ranges(address, size, is_write),
        }
    }

    /// The range that holds all bytes of an access that is allowed.
    #[inline]
    fn range_of_access(&self, address: u64, size: usize, is_write: bool) -> Option<LastRange> {
        let place = place_of_address(address);
        let last = LAST.with(|places| places[place].get());
        if last.version == self.memory.version.load(Ordering::Acquire)
            && self.allows_access(&last, address, size, is_write)
        {
            return Some(last);
        }
        let found = self.memory.find_range(address)?;
        LAST.with(|places| places[place].set(found));
        self.allows_access(&found, address, size, is_write).then_some(found)
    }

    /// Checks an access that may run across ranges that touch each other.
    fn check_ranges(&self, address: u64, size: usize, is_write: bool) -> Result<(), MemoryFault> {
        let fault = MemoryFault { address, size: size as u32, is_write };
        let mut from = address;
        let end = address.checked_add(size as u64).ok_or(fault)?;
        while from < end {
            let found = self.memory.find_range(from).ok_or(fault)?;
            if self.bits & found.access.bits(is_write) == 0 {
                return Err(fault);
            }
            from = found.end;
        }
        Ok(())
    }

    #[inline]
    fn allows_access(&self, range: &LastRange, address: u64, size: usize, is_write: bool) -> bool {
        let is_inside = address >= range.start && address < range.end && size as u64 <= range.end - address;
        is_inside && self.bits & range.access.bits(is_write) != 0
    }

    /// Whether the bytes of all lanes in `mask` are in one range.
    fn holds_all(&self, addresses: &LaneAddresses, mask: u32, size: usize, is_write: bool) -> bool {
        let first = addresses[mask.trailing_zeros() as usize % LANES];
        let Some(last) = self.range_of_access(first, size, is_write) else { return false };
        let room = (last.end - last.start).checked_sub(size as u64);
        room.is_some_and(|room| farthest_distance(addresses, mask, last.start) <= room)
    }
}

/// A number that no memory has had before.
pub(super) fn next_version() -> u64 {
    VERSIONS.fetch_add(1, Ordering::Relaxed)
}

impl DeviceMemory for GpuMemory<'_> {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        self.check_access(address, into.len(), false)?;
        let mut at = address;
        for part in aligned_parts(address, into.len()) {
            let offset = (at - address) as usize;
            // SAFETY: the bytes are in a registered range, and `part` is a power of two that divides `at`.
            let value = unsafe { load_word(at, part) };
            into[offset..offset + part].copy_from_slice(&value.to_le_bytes()[..part]);
            at += part as u64;
        }
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        self.check_access(address, from.len(), true)?;
        let mut at = address;
        for part in aligned_parts(address, from.len()) {
            let offset = (at - address) as usize;
            let mut value = [0; 8];
            value[..part].copy_from_slice(&from[offset..offset + part]);
            // SAFETY: the bytes are in a registered writable range, and `part` is a power of two that divides `at`.
            unsafe { store_word(at, part, u64::from_le_bytes(value)) };
            at += part as u64;
        }
        Ok(())
    }

    fn read_u32(&self, address: u64) -> Result<u32, MemoryFault> {
        if !address.is_multiple_of(4) {
            let mut bytes = [0; 4];
            self.read(address, &mut bytes)?;
            return Ok(u32::from_le_bytes(bytes));
        }
        self.check_access(address, 4, false)?;
        // SAFETY: the word is aligned and in a registered range.
        Ok(unsafe { AtomicU32::from_ptr(address as *mut u32) }.load(Ordering::Acquire))
    }

    fn write_u32(&self, address: u64, value: u32) -> Result<(), MemoryFault> {
        if !address.is_multiple_of(4) {
            return self.write(address, &value.to_le_bytes());
        }
        self.check_access(address, 4, true)?;
        // SAFETY: the word is aligned and in a registered writable range.
        unsafe { AtomicU32::from_ptr(address as *mut u32) }.store(value, Ordering::Release);
        Ok(())
    }

    fn read_lanes(&self, addresses: &LaneAddresses, mask: u32, into: &mut [Lanes]) -> Result<(), (usize, MemoryFault)> {
        if self.holds_all(addresses, mask, 4 * into.len(), false) {
            // SAFETY: all bytes of lanes in the mask are in a registered range.
            unsafe { load_lanes(addresses, mask, into) };
            return Ok(());
        }
        for lane in (0..LANES).filter(|lane| mask & BITS[*lane] != 0) {
            let address = addresses[lane];
            self.check_access(address, 4 * into.len(), false).map_err(|fault| (lane, fault))?;
            // SAFETY: all bytes are in registered ranges.
            unsafe { load_words(address, lane, into) };
        }
        Ok(())
    }

    fn write_lanes(&self, addresses: &LaneAddresses, mask: u32, from: &[&Lanes]) -> Result<(), (usize, MemoryFault)> {
        if self.holds_all(addresses, mask, 4 * from.len(), true) {
            // SAFETY: all bytes of lanes in the mask are in a registered writable range.
            unsafe { store_lanes(addresses, mask, from) };
            return Ok(());
        }
        for lane in (0..LANES).filter(|lane| mask & BITS[*lane] != 0) {
            let address = addresses[lane];
            self.check_access(address, 4 * from.len(), true).map_err(|fault| (lane, fault))?;
            // SAFETY: all bytes are in registered writable ranges.
            unsafe { store_words(address, lane, from) };
        }
        Ok(())
    }

    fn update_u32(&self, address: u64, change: &mut dyn FnMut(u32) -> u32) -> Result<u32, MemoryFault> {
        self.check_access(address, 4, true)?;
        if !address.is_multiple_of(4) {
            return Err(MemoryFault { address, size: 4, is_write: true });
        }
        // SAFETY: the word is aligned and in a registered writable range.
        let word = unsafe { AtomicU32::from_ptr(address as *mut u32) };
        let update = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(change(old)));
        Ok(update.unwrap_or_default())
    }

    fn update_u64(&self, address: u64, change: &mut dyn FnMut(u64) -> u64) -> Result<u64, MemoryFault> {
        self.check_access(address, 8, true)?;
        if !address.is_multiple_of(8) {
            return Err(MemoryFault { address, size: 8, is_write: true });
        }
        // SAFETY: the word is aligned and in a registered writable range.
        let word = unsafe { AtomicU64::from_ptr(address as *mut u64) };
        let update = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some(change(old)));
        Ok(update.unwrap_or_default())
    }

    fn code_version(&self) -> u64 {
        self.memory.code_version.load(Ordering::Acquire)
    }
}

/// The sizes of aligned words, at most eight bytes each, that cover `size` bytes from `address`.
fn aligned_parts(address: u64, size: usize) -> impl Iterator<Item = usize> {
    let (mut at, mut left) = (address, size);
    std::iter::from_fn(move || {
        let largest = 1_usize << usize::checked_ilog2(left)?.min(3);
        let part = if at == 0 { largest } else { largest.min(1 << at.trailing_zeros().min(3)) };
        at += part as u64;
        left -= part;
        Some(part)
    })
}

/// # Safety
/// `size` is 1, 2, 4 or 8 and divides `address`; the bytes are mapped and readable.
#[inline]
unsafe fn load_word(address: u64, size: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => AtomicU8::from_ptr(address as *mut u8).load(Ordering::Acquire).into(),
            2 => AtomicU16::from_ptr(address as *mut u16).load(Ordering::Acquire).into(),
            4 => AtomicU32::from_ptr(address as *mut u32).load(Ordering::Acquire).into(),
            _ => AtomicU64::from_ptr(address as *mut u64).load(Ordering::Acquire),
        }
    }
}

/// # Safety
/// `size` is 1, 2, 4 or 8 and divides `address`; the bytes are mapped and writable.
#[inline]
unsafe fn store_word(address: u64, size: usize, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            1 => AtomicU8::from_ptr(address as *mut u8).store(value as u8, Ordering::Release),
            2 => AtomicU16::from_ptr(address as *mut u16).store(value as u16, Ordering::Release),
            4 => AtomicU32::from_ptr(address as *mut u32).store(value as u32, Ordering::Release),
            _ => AtomicU64::from_ptr(address as *mut u64).store(value, Ordering::Release),
        }
    }
}

/// Loads the words of a lane; aligned pairs of them are not torn.
///
/// # Safety
/// All bytes from `address` on are mapped and readable.
#[inline]
unsafe fn load_words(address: u64, lane: usize, into: &mut [Lanes]) {
    if address.is_multiple_of(8) && into.len().is_multiple_of(2) {
        for (number, pair) in into.chunks_exact_mut(2).enumerate() {
            // SAFETY: the caller's promise.
            let value = unsafe { load_word(address + 8 * number as u64, 8) };
            (pair[0][lane], pair[1][lane]) = (value as u32, (value >> 32) as u32);
        }
        return;
    }
    for (number, block) in into.iter_mut().enumerate() {
        let at = address + 4 * number as u64;
        let size = if at.is_multiple_of(4) { 4 } else { 1 };
        // SAFETY: the caller's promise.
        let part = |from: usize| unsafe { load_word(at + from as u64, size) } << (8 * from);
        block[lane] = (0..4).step_by(size).map(part).fold(0, |word, part| word | part) as u32;
    }
}

/// Loads the words of all lanes in `mask`.
///
/// # Safety
/// All their bytes are mapped and readable.
unsafe fn load_lanes(addresses: &LaneAddresses, mask: u32, into: &mut [Lanes]) {
    if let ([word], true) = (&mut *into, is_row(addresses, mask)) {
        for (word, address) in word.iter_mut().zip(addresses) {
            // SAFETY: the word of a lane; all are at multiples of 4.
            *word = unsafe { load_word(*address, 4) } as u32;
        }
        return;
    }
    for lane in (0..LANES).filter(|lane| mask & BITS[*lane] != 0) {
        // SAFETY: the caller's promise.
        unsafe { load_words(addresses[lane], lane, into) };
    }
}

/// Stores them.
///
/// # Safety
/// All their bytes are mapped and writable.
unsafe fn store_lanes(addresses: &LaneAddresses, mask: u32, from: &[&Lanes]) {
    if let ([word], true) = (from, is_row(addresses, mask)) {
        for (word, address) in word.iter().zip(addresses) {
            // SAFETY: the word of a lane; all are at multiples of 4.
            unsafe { store_word(*address, 4, (*word).into()) };
        }
        return;
    }
    for lane in (0..LANES).filter(|lane| mask & BITS[*lane] != 0) {
        // SAFETY: the caller's promise.
        unsafe { store_words(addresses[lane], lane, from) };
    }
}

/// Stores the words of a lane.
///
/// # Safety
/// All bytes from `address` on are mapped and writable.
#[inline]
unsafe fn store_words(address: u64, lane: usize, from: &[&Lanes]) {
    if address.is_multiple_of(8) && from.len().is_multiple_of(2) {
        for (number, pair) in from.chunks_exact(2).enumerate() {
            let value = u64::from(pair[0][lane]) | u64::from(pair[1][lane]) << 32;
            // SAFETY: the caller's promise.
            unsafe { store_word(address + 8 * number as u64, 8, value) };
        }
        return;
    }
    for (number, block) in from.iter().enumerate() {
        let at = address + 4 * number as u64;
        let size = if at.is_multiple_of(4) { 4 } else { 1 };
        for part in (0..4).step_by(size) {
            // SAFETY: the caller's promise.
            unsafe { store_word(at + part as u64, size, (block[lane] >> (8 * part)).into()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_registered_bytes_are_touched() {
        let mut bytes = [1_u8; 64];
        let start = bytes.as_mut_ptr() as u64;
        let process = ProcessMemory::new();
        let memory = process.view_of_gpu(0);
        let mut four = [0; 4];
        assert!(memory.read(start, &mut four).is_err());
        // SAFETY: the array outlives the memory.
        unsafe { process.register_range(start..start + 32, RangeAccess::of_gpu(0)) };
        assert!(memory.read(start + 28, &mut four).is_ok());
        assert_eq!(
            memory.read(start + 29, &mut four),
            Err(MemoryFault { address: start + 29, size: 4, is_write: false })
        );
        // The words of two lanes, the second one not aligned, and a lane that is not active.
        let mut lanes = [[0; LANES]; 3];
        let mut addresses = [0; LANES];
        (addresses[0], addresses[3], addresses[4]) = (start, start + 5, start + 21);
        assert_eq!(memory.read_lanes(&addresses, 9, &mut lanes), Ok(()));
        assert_eq!([lanes[0][0], lanes[2][3], lanes[0][1]], [0x0101_0101, 0x0101_0101, 0]);
        let fault = MemoryFault { address: start + 21, size: 12, is_write: true };
        assert_eq!(memory.write_lanes(&addresses, 25, &[&[7; LANES]; 3]), Err((4, fault)));
        // SAFETY: nothing else accesses the array.
        assert_eq!(unsafe { load_word(start + 16, 1) }, 0);
        assert!(memory.write(start + 18, &[1; 2]).is_ok());
        assert!(memory.write(start, &[1; 18]).is_ok());
        assert!(memory.write(start + 1, &[7; 9]).is_ok());
        assert!(memory.write(u64::MAX - 1, &[7; 9]).is_err());
        // Another GPU has no access; then it may read.
        let other = process.view_of_gpu(1);
        assert!(other.read(start, &mut four).is_err() && process.view_of_all().read(start, &mut four).is_ok());
        let mut access = RangeAccess::of_gpu(0);
        access.set_gpu(1, GpuAccess { may_read: true, may_write: false });
        assert!(process.set_access(start, access) && !process.set_access(start + 1, access));
        assert!(other.read(start, &mut four).is_ok() && other.write(start, &four).is_err());
        assert_eq!(access.for_gpu(1), GpuAccess { may_read: true, may_write: false });
        access.set_gpu(0, GpuAccess::default());
        assert!(process.set_access(start, access) && memory.read(start, &mut four).is_err());
        process.set_access(start, RangeAccess::ALL);
        assert!(process.unregister_range(start));
        assert!(memory.read(start, &mut four).is_err());
        assert_eq!((bytes[0], bytes[1], bytes[9], bytes[10]), (1, 7, 7, 1));
    }
}
