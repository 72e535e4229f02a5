//! Memory in which every address exists, and whose content depends on a seed.
//!
//! Invariants: what was not written is the loaded file, or a number of the seed and the address. Two memories of the same
//! seed differ only in what was written.

use crate::random::{NumberTheme, Random, mix_seed};
use foldhash::HashMap;
use hotswap_emulator::{DeviceMemory, MemoryFault};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that exist from the start.
#[derive(Debug, Clone)]
pub(crate) struct MemoryImage {
    pub(crate) start: u64,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct SeededMemory {
    image: MemoryImage,
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    seed: u64,
    theme: Option<NumberTheme>,
    /// Words of 8 bytes by address that are there from the start.
    given: HashMap<u64, u64>,
    /// Those that code has written.
    written: HashMap<u64, u64>,
    /// The write that is a fault.
    tripwire: Option<WatchedWrite>,
    /// Writes to that word so far.
    writes: u64,
}

/// A write to a word of 8 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WatchedWrite {
    pub(crate) address: u64,
    /// Counts the writes to the word from 1; with 0 all of them are executed.
    pub(crate) number: u64,
}

/// A word of 8 bytes that code has written.
#[derive(PartialEq, Eq)]
pub(crate) struct WrittenWord {
    address: u64,
    value: u64,
}

impl SeededMemory {
    pub(crate) fn new(image: MemoryImage) -> Self {
        Self { image, state: Mutex::default() }
    }

    fn lock_state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was written, and has the content of another seed.
    pub(crate) fn reset(&self, seed: u64, theme: NumberTheme) {
        let mut state = self.lock_state();
        state.written.clear();
        state.given.clear();
        (state.seed, state.theme, state.tripwire, state.writes) = (seed, Some(theme), None, 0);
    }

    /// That write becomes a fault; with the number 0 the writes to the word are only counted.
    pub(crate) fn watch_write(&self, write: WatchedWrite) {
        let mut state = self.lock_state();
        (state.tripwire, state.writes) = (Some(WatchedWrite { address: write.address & !7, ..write }), 0);
    }

    /// Writes to the watched word so far.
    pub(crate) fn watched_writes(&self) -> u64 {
        self.lock_state().writes
    }

    /// Addresses of the words that were written, ascending.
    pub(crate) fn written_addresses(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.lock_state().written.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// The words that were written, in the order of their addresses.
    pub(crate) fn written_words(&self) -> Vec<WrittenWord> {
        let addresses = self.written_addresses().into_iter();
        addresses.map(|address| WrittenWord { address, value: self.word(address) }).collect()
    }

    /// The word of 8 bytes at a multiple of 8.
    pub(crate) fn word(&self, address: u64) -> u64 {
        self.lock_state().word(&self.image, address)
    }

    /// Sets bytes before code runs: they do not count as written by it.
    pub(crate) fn preset_bytes(&self, address: u64, bytes: &[u8]) {
        // Writing cannot fail without a tripwire.
        let _ = self.write(address, bytes);
        let mut state = self.lock_state();
        let given = std::mem::take(&mut state.written);
        state.given.extend(given);
    }

    fn update_word(
        &self,
        address: u64,
        change: &mut dyn FnMut(u64) -> u64,
        shift: u32,
        mask: u64,
    ) -> Result<u64, MemoryFault> {
        let mut state = self.lock_state();
        let old = state.word(&self.image, address & !7);
        let new = change(old >> shift & mask) & mask;
        state.set(address & !7, old & !(mask << shift) | new << shift)?;
        Ok(old >> shift & mask)
    }
}

impl MemoryState {
    fn word(&self, image: &MemoryImage, address: u64) -> u64 {
        if let Some(word) = self.written.get(&address).or_else(|| self.given.get(&address)) {
            return *word;
        }
        let offset = address.wrapping_sub(image.start);
        match image.bytes.get(offset as usize..).filter(|rest| offset < image.bytes.len() as u64 && rest.len() >= 8) {
            Some(rest) => u64::from_le_bytes(std::array::from_fn(|number| rest[number])),
            None => self.generate_word(address),
        }
    }

    fn generate_word(&self, address: u64) -> u64 {
        let seed = mix_seed(self.seed, address);
        match self.theme {
            None | Some(NumberTheme::Uniform) => seed,
            Some(theme) => {
                let mut random = Random::new(seed);
                u64::from(random.draw_word(theme)) | u64::from(random.draw_word(theme)) << 32
            }
        }
    }

    fn set(&mut self, address: u64, word: u64) -> Result<(), MemoryFault> {
        if let Some(watched) = self.tripwire.filter(|watched| watched.address == address) {
            self.writes += 1;
            if self.writes == watched.number {
                return Err(MemoryFault { address: watched.address, size: 8, is_write: true });
            }
        }
        self.written.insert(address, word);
        Ok(())
    }
}

impl DeviceMemory for SeededMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        let state = self.lock_state();
        let mut at = address;
        let mut rest = into;
        while !rest.is_empty() {
            let word = state.word(&self.image, at & !7).to_le_bytes();
            let inside = (at & 7) as usize;
            let count = rest.len().min(8 - inside);
            let (part, after) = rest.split_at_mut(count);
            part.copy_from_slice(&word[inside..inside + count]);
            (rest, at) = (after, at.wrapping_add(count as u64));
        }
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        let mut state = self.lock_state();
        let mut at = address;
        let mut rest = from;
        while !rest.is_empty() {
            let mut word = state.word(&self.image, at & !7).to_le_bytes();
            let inside = (at & 7) as usize;
            let count = rest.len().min(8 - inside);
            let (part, after) = rest.split_at(count);
            word[inside..inside + count].copy_from_slice(part);
            state.set(at & !7, u64::from_le_bytes(word))?;
            (rest, at) = (after, at.wrapping_add(count as u64));
        }
        Ok(())
    }

    fn update_u32(&self, address: u64, change: &mut dyn FnMut(u32) -> u32) -> Result<u32, MemoryFault> {
        let shift = (address & 4) as u32 * 8;
        let old = self.update_word(address, &mut |old| change(old as u32).into(), shift, 0xffff_ffff)?;
        Ok(old as u32)
    }

    fn update_u64(&self, address: u64, change: &mut dyn FnMut(u64) -> u64) -> Result<u64, MemoryFault> {
        self.update_word(address, change, 0, u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_of_one_seed_differ_in_what_was_written() {
        let memory = || SeededMemory::new(MemoryImage { start: 0x1000, bytes: (0..64).collect() });
        let (one, other) = (memory(), memory());
        one.reset(7, NumberTheme::Mixed);
        other.reset(7, NumberTheme::Mixed);
        let read = |memory: &SeededMemory, address| {
            let mut bytes = [0; 11];
            memory.read(address, &mut bytes).unwrap();
            bytes
        };
        assert_eq!(read(&one, 0x1003), [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(read(&one, u64::MAX - 3), read(&other, u64::MAX - 3));
        one.write(u64::MAX - 1, &[1, 2, 3]).unwrap();
        assert_eq!(read(&one, u64::MAX - 1)[..3], [1, 2, 3]);
        assert_eq!(one.written_addresses(), [0, 0xffff_ffff_ffff_fff8]);
        assert_eq!(one.update_u32(4, &mut |old| old ^ 5), Ok((other.word(0) >> 32) as u32));
        assert_eq!(one.word(0) ^ other.word(0) & !0xff, 5 << 32 | 3);
        other.watch_write(WatchedWrite { address: 0x1008, number: 2 });
        assert!(other.write(0x1008, &[0]).is_ok() && other.write(0x100f, &[0, 0]).is_err());
    }
}
