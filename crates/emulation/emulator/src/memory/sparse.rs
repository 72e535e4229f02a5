//! Memory of its own: an address space that the direct launcher and tests fill.
//!
//! Invariants: only bytes of allocated ranges exist. Ranges do not overlap, and between two of them are at least as many
//! invalid bytes as [`GAP`], so that an access out of bounds meets none.

use super::process::next_version;
use super::{DeviceMemory, LaneAddresses, MemoryFault, farthest_distance, is_row};
use hotswap_semantics::{BITS, LANES, Lanes};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Invalid bytes after each range.
const GAP: u64 = 1 << 16;
/// Address of the first range.
const FIRST: u64 = 0x7000_0000_0000;

/// A write of a kernel, in the order of execution of one wave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRecord {
    pub address: u64,
    /// The bytes that it wrote.
    pub bytes: Vec<u8>,
}

/// Memory that consists of allocated ranges. Words are atomic, so waves on several threads share it.
#[derive(Debug, Default)]
pub struct SparseMemory {
    /// By address.
    ranges: Vec<SparseRange>,
    /// Unique among all memories; 0 for one whose code is never kept.
    code_version: u64,
    log: Option<Mutex<Vec<WriteRecord>>>,
}

#[derive(Debug)]
struct SparseRange {
    start: u64,
    size: u64,
    words: Vec<AtomicU64>,
}

impl SparseMemory {
    /// No range is valid.
    pub fn new() -> Self {
        Self { code_version: next_version(), ..Self::default() }
    }

    /// Says that code was loaded: decoded instructions are forgotten.
    pub fn code_changed(&mut self) {
        self.code_version = next_version();
    }

    /// The same with a log of all writes.
    #[must_use]
    pub fn with_log(self) -> Self {
        Self { log: Some(Mutex::default()), ..self }
    }

    /// The writes so far; they are forgotten.
    pub fn take_log(&self) -> Vec<WriteRecord> {
        self.log
            .as_ref()
            .map(|log| std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner)))
            .unwrap_or_default()
    }

    /// Allocates `size` bytes of 0, aligned to 4096; returns their address.
    pub fn allocate(&mut self, size: u64) -> u64 {
        let start = self.ranges.last().map_or(FIRST, |last| (last.start + last.size + GAP).next_multiple_of(4096));
        let words = (0..size.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        self.ranges.push(SparseRange { start, size, words });
        start
    }

    /// Allocates a copy of `bytes`; returns its address.
    pub fn allocate_copy(&mut self, bytes: &[u8]) -> u64 {
        let start = self.allocate(bytes.len() as u64);
        if let Some(range) = self.ranges.last() {
            range.store_bytes(0, bytes);
        }
        start
    }

    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|range| range.start..range.start + range.size)
    }

    fn find_range(&self, address: u64, size: usize, is_write: bool) -> Result<(&SparseRange, u64), MemoryFault> {
        let fault = MemoryFault { address, size: size as u32, is_write };
        let after = self.ranges.partition_point(|range| range.start <= address);
        let range = after.checked_sub(1).and_then(|number| self.ranges.get(number)).ok_or(fault)?;
        let offset = address - range.start;
        let fits = offset.checked_add(size as u64).is_some_and(|end| end <= range.size);
        if fits { Ok((range, offset)) } else { Err(fault) }
    }

    /// The range with the bytes of all lanes in `mask`, if there is one.
    fn range_of_all(&self, addresses: &LaneAddresses, mask: u32, size: usize) -> Option<&SparseRange> {
        let first = addresses[mask.trailing_zeros() as usize % LANES];
        let (range, _) = self.find_range(first, size, false).ok()?;
        (farthest_distance(addresses, mask, range.start) <= range.size - size as u64).then_some(range)
    }

    fn log_write(&self, address: u64, bytes: &[u8]) {
        if let Some(log) = &self.log {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            log.push(WriteRecord { address, bytes: bytes.to_vec() });
        }
    }
}

impl SparseRange {
    /// The aligned word at an offset that is in the range.
    #[cfg(target_endian = "little")]
    #[allow(unsafe_code, reason = "halves of words")]
    #[inline]
    fn half_word(&self, offset: u64) -> Option<&AtomicU32> {
        let word = self.words.get(offset as usize / 8).filter(|_| offset.is_multiple_of(4))?;
        // SAFETY: the half is aligned, inside of the word, and lives as long as the range. Everything that accesses it does
        // so as an atomic.
        Some(unsafe { AtomicU32::from_ptr(word.as_ptr().cast::<u32>().add(offset as usize % 8 / 4)) })
    }

    #[cfg(not(target_endian = "little"))]
    fn half_word(&self, _: u64) -> Option<&AtomicU32> {
        None
    }

    #[inline]
    fn holds(&self, address: u64, size: usize) -> bool {
        let offset = address.wrapping_sub(self.start);
        offset < self.size && size as u64 <= self.size - offset
    }

    /// Loads the words of a lane from an offset that is in the range with all of them.
    #[inline]
    fn load_words(&self, offset: u64, lane: usize, into: &mut [Lanes]) {
        if let ([word], Some(half)) = (&mut *into, self.half_word(offset)) {
            word[lane] = half.load(Ordering::Acquire);
        } else if offset.is_multiple_of(8) && into.len().is_multiple_of(2) {
            for (number, pair) in into.chunks_exact_mut(2).enumerate() {
                let value = self.words[offset as usize / 8 + number].load(Ordering::Acquire);
                (pair[0][lane], pair[1][lane]) = (value as u32, (value >> 32) as u32);
            }
        } else {
            let mut word = [0; 4];
            for (number, block) in into.iter_mut().enumerate() {
                self.load_bytes(offset + 4 * number as u64, &mut word);
                block[lane] = u32::from_le_bytes(word);
            }
        }
    }

    #[inline]
    fn store_words(&self, offset: u64, lane: usize, from: &[&Lanes]) {
        if let ([word], Some(half)) = (from, self.half_word(offset)) {
            half.store(word[lane], Ordering::Release);
        } else if offset.is_multiple_of(8) && from.len().is_multiple_of(2) {
            for (number, pair) in from.chunks_exact(2).enumerate() {
                let value = u64::from(pair[0][lane]) | u64::from(pair[1][lane]) << 32;
                self.words[offset as usize / 8 + number].store(value, Ordering::Release);
            }
        } else {
            let words = from.iter().enumerate();
            words.for_each(|(number, block)| self.store_bytes(offset + 4 * number as u64, &block[lane].to_le_bytes()));
        }
    }

    /// Loads the words of all lanes in `mask`, which are in the range.
    fn load_lanes(&self, addresses: &LaneAddresses, mask: u32, into: &mut [Lanes]) {
        if let ([word], true) = (&mut *into, is_row(addresses, mask)) {
            return self.load_row(addresses[0] - self.start, word);
        }
        for lane in (0..LANES).filter(|lane| mask & BITS[*lane] != 0) {
            let offset = addresses[lane] - self.start;
            match &mut *into {
                [word] => self.load_words(offset, lane, std::slice::from_mut(word)),
                [low, high] => self.load_pair(offset, lane, [low, high]),
                [a, b, c, d] => {
                    self.load_pair(offset, lane, [a, b]);
                    self.load_pair(offset + 8, lane, [c, d]);
                }
                _ => self.load_words(offset, lane, into),
            }
        }
    }

    /// Loads words one after the other, from an offset that is a multiple of 4.
    fn load_row(&self, offset: u64, words: &mut Lanes) {
        let is_upper = !offset.is_multiple_of(8);
        let mut places = self.words[offset as usize / 8..].iter();
        let mut next = || places.next().map_or(0, |place| place.load(Ordering::Acquire));
        let mut upper = if is_upper { (next() >> 32) as u32 } else { 0 };
        for pair in words.chunks_exact_mut(2) {
            let value = next();
            let (low, high) = (value as u32, (value >> 32) as u32);
            (pair[0], pair[1]) = if is_upper { (upper, low) } else { (low, high) };
            upper = high;
        }
    }

    fn store_row(&self, offset: u64, words: &Lanes) {
        if offset.is_multiple_of(8) {
            for (pair, place) in words.chunks_exact(2).zip(&self.words[offset as usize / 8..]) {
                place.store(u64::from(pair[0]) | u64::from(pair[1]) << 32, Ordering::Release);
            }
        } else {
            words.iter().zip(0..).for_each(|(word, number)| self.store_bytes(offset + 4 * number, &word.to_le_bytes()));
        }
    }

    #[inline(always)]
    fn load_pair(&self, offset: u64, lane: usize, [low, high]: [&mut Lanes; 2]) {
        let mut bytes = [0; 8];
        match self.words.get(offset as usize / 8).filter(|_| offset.is_multiple_of(8)) {
            Some(place) => bytes = place.load(Ordering::Acquire).to_le_bytes(),
            None => self.load_bytes(offset, &mut bytes),
        }
        let value = u64::from_le_bytes(bytes);
        (low[lane], high[lane]) = (value as u32, (value >> 32) as u32);
    }

    #[inline(always)]
    fn store_pair(&self, offset: u64, lane: usize, [low, high]: [&Lanes; 2]) {
        let value = u64::from(low[lane]) | u64::from(high[lane]) << 32;
        match self.words.get(offset as usize / 8).filter(|_| offset.is_multiple_of(8)) {
            Some(place) => place.store(value, Ordering::Release),
            None => self.store_bytes(offset, &value.to_le_bytes()),
        }
    }

    fn store_lanes(&self, addresses: &LaneAddresses, mask: u32, from: &[&Lanes]) {
        if let ([word], true) = (from, is_row(addresses, mask)) {
            return self.store_row(addresses[0] - self.start, word);
        }
        for lane in (0..LANES).filter(|lane| mask & BITS[*lane] != 0) {
            let offset = addresses[lane] - self.start;
            match *from {
                [word] => self.store_words(offset, lane, &[word]),
                [low, high] => self.store_pair(offset, lane, [low, high]),
                [a, b, c, d] => {
                    self.store_pair(offset, lane, [a, b]);
                    self.store_pair(offset + 8, lane, [c, d]);
                }
                _ => self.store_words(offset, lane, from),
            }
        }
    }

    fn load_bytes(&self, offset: u64, into: &mut [u8]) {
        let mut at = offset as usize;
        let mut rest = into;
        if at.is_multiple_of(8) {
            let (whole, after) = rest.as_chunks_mut::<8>();
            for (bytes, word) in whole.iter_mut().zip(&self.words[at / 8..]) {
                *bytes = word.load(Ordering::Acquire).to_le_bytes();
            }
            (at, rest) = (at + 8 * whole.len(), after);
        }
        while !rest.is_empty() {
            let bytes = self.words[at / 8].load(Ordering::Acquire).to_le_bytes();
            let count = rest.len().min(8 - at % 8);
            let (part, after) = rest.split_at_mut(count);
            part.copy_from_slice(&bytes[at % 8..at % 8 + count]);
            (rest, at) = (after, at + count);
        }
    }

    fn store_bytes(&self, offset: u64, from: &[u8]) {
        let mut at = offset as usize;
        let mut rest = from;
        while !rest.is_empty() {
            let count = rest.len().min(8 - at % 8);
            let (part, after) = rest.split_at(count);
            self.store_part(at, part);
            (rest, at) = (after, at + count);
        }
    }

    fn store_part(&self, at: usize, part: &[u8]) {
        let (word, inside) = (&self.words[at / 8], at % 8);
        if let Ok(whole) = part.try_into() {
            word.store(u64::from_le_bytes(whole), Ordering::Release);
            return;
        }
        if let (Ok(half), Some(place)) = (part.try_into(), self.half_word(at as u64)) {
            place.store(u32::from_le_bytes(half), Ordering::Release);
            return;
        }
        let _ = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old: u64| {
            let mut bytes = old.to_le_bytes();
            bytes[inside..inside + part.len()].copy_from_slice(part);
            Some(u64::from_le_bytes(bytes))
        });
    }
}

impl DeviceMemory for SparseMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        let (range, offset) = self.find_range(address, into.len(), false)?;
        range.load_bytes(offset, into);
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        let (range, offset) = self.find_range(address, from.len(), true)?;
        range.store_bytes(offset, from);
        self.log_write(address, from);
        Ok(())
    }

    fn read_u32(&self, address: u64) -> Result<u32, MemoryFault> {
        let (range, offset) = self.find_range(address, 4, false)?;
        let mut bytes = [0; 4];
        match range.half_word(offset) {
            Some(half) => return Ok(half.load(Ordering::Acquire)),
            None => range.load_bytes(offset, &mut bytes),
        }
        Ok(u32::from_le_bytes(bytes))
    }

    fn write_u32(&self, address: u64, value: u32) -> Result<(), MemoryFault> {
        let (range, offset) = self.find_range(address, 4, true)?;
        match range.half_word(offset) {
            Some(half) => half.store(value, Ordering::Release),
            None => range.store_bytes(offset, &value.to_le_bytes()),
        }
        self.log_write(address, &value.to_le_bytes());
        Ok(())
    }

    fn read_lanes(&self, addresses: &LaneAddresses, mask: u32, into: &mut [Lanes]) -> Result<(), (usize, MemoryFault)> {
        let size = 4 * into.len();
        if let Some(range) = self.range_of_all(addresses, mask, size) {
            range.load_lanes(addresses, mask, into);
            return Ok(());
        }
        let mut last: Option<&SparseRange> = None;
        for lane in (0..LANES).filter(|lane| mask & BITS[*lane] != 0) {
            let address = addresses[lane];
            let range = match last.filter(|range| range.holds(address, size)) {
                Some(range) => range,
                None => self.find_range(address, size, false).map_err(|fault| (lane, fault))?.0,
            };
            last = Some(range);
            range.load_words(address - range.start, lane, into);
        }
        Ok(())
    }

    fn write_lanes(&self, addresses: &LaneAddresses, mask: u32, from: &[&Lanes]) -> Result<(), (usize, MemoryFault)> {
        let size = 4 * from.len();
        if let Some(range) = self.range_of_all(addresses, mask, size).filter(|_| self.log.is_none()) {
            range.store_lanes(addresses, mask, from);
            return Ok(());
        }
        let mut last: Option<&SparseRange> = None;
        for lane in (0..LANES).filter(|lane| mask & BITS[*lane] != 0) {
            let address = addresses[lane];
            let range = match last.filter(|range| range.holds(address, size)) {
                Some(range) => range,
                None => self.find_range(address, size, true).map_err(|fault| (lane, fault))?.0,
            };
            last = Some(range);
            range.store_words(address - range.start, lane, from);
            if self.log.is_some() {
                let bytes: Vec<u8> = from.iter().flat_map(|block| block[lane].to_le_bytes()).collect();
                self.log_write(address, &bytes);
            }
        }
        Ok(())
    }

    fn update_u32(&self, address: u64, change: &mut dyn FnMut(u32) -> u32) -> Result<u32, MemoryFault> {
        let (range, offset) = self.find_range(address, 4, true)?;
        if offset % 4 != 0 {
            return Err(MemoryFault { address, size: 4, is_write: true });
        }
        let shift = offset % 8 * 8;
        let mut new = 0;
        let word = &range.words[offset as usize / 8];
        let old = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| {
            new = change((old >> shift) as u32);
            Some(old & !(0xffff_ffff << shift) | u64::from(new) << shift)
        });
        self.log_write(address, &new.to_le_bytes());
        Ok((old.unwrap_or_default() >> shift) as u32)
    }

    fn update_u64(&self, address: u64, change: &mut dyn FnMut(u64) -> u64) -> Result<u64, MemoryFault> {
        let (range, offset) = self.find_range(address, 8, true)?;
        if offset % 8 != 0 {
            return Err(MemoryFault { address, size: 8, is_write: true });
        }
        let mut new = 0;
        let word = &range.words[offset as usize / 8];
        let old = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| {
            new = change(old);
            Some(new)
        });
        self.log_write(address, &new.to_le_bytes());
        Ok(old.unwrap_or_default())
    }

    fn code_version(&self) -> u64 {
        self.code_version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_a_range_are_a_fault() {
        let mut memory = SparseMemory::new().with_log();
        let first = memory.allocate_copy(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        let second = memory.allocate(16);
        assert!(second >= first + 10 + GAP);
        let mut bytes = [0; 4];
        memory.read(first + 6, &mut bytes).unwrap();
        assert_eq!(bytes, [7, 8, 9, 10]);
        assert!(memory.read(first + 7, &mut bytes).is_err());
        assert!(memory.read(first - 1, &mut bytes).is_err());
        memory.write(second + 3, &[1; 9]).unwrap();
        assert_eq!(memory.update_u32(second + 8, &mut |old| old + 1), Ok(0x0101_0101));
        assert!(memory.update_u32(second + 9, &mut |old| old).is_err());
        assert_eq!(memory.take_log().len(), 2);
    }
}
