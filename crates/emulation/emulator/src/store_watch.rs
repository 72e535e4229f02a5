//! Lanes that store to one place by one instruction: no document says which one is the last.
//!
//! Invariants: found by bytes, whatever the instruction is: two lanes give one byte of LDS or of memory different values.
//! Read-modify-writes are left out: each of them sees the one before, in any order.

use foldhash::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// A byte that more than one lane has stored.
const SEVERAL: u8 = u8::MAX;

/// Where a byte is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StoredPlace {
    /// Memory of the device.
    Memory(u64),
    Lds(u32),
}

/// The bytes that an instruction has stored so far.
#[derive(Debug, Default)]
pub(crate) struct StoreWatch {
    /// The number of the instruction in its wave.
    instruction: u64,
    /// The lane that has stored to a place, and the value.
    bytes: HashMap<StoredPlace, (u8, u8)>,
    /// The instruction is counted already.
    is_counted: bool,
}

impl StoreWatch {
    /// A lane stores bytes by the instruction with that number; `count` counts instructions in which lanes meet.
    pub(crate) fn record_store(
        &mut self,
        instruction: u64,
        (place, lane): (StoredPlace, usize),
        bytes: &[u8],
        count: &AtomicU64,
    ) {
        if instruction != self.instruction {
            self.bytes.clear();
            (self.instruction, self.is_counted) = (instruction, false);
        }
        for (number, value) in bytes.iter().enumerate() {
            let is_met = self.record_byte(place.offset_by(number), lane as u8, *value);
            if is_met && !self.is_counted {
                self.is_counted = true;
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether another lane has stored another value there.
    fn record_byte(&mut self, place: StoredPlace, lane: u8, value: u8) -> bool {
        let old = self.bytes.insert(place, (lane, value));
        let Some((by, held)) = old.filter(|(by, _)| *by != lane) else { return false };
        if by == SEVERAL || held == value {
            self.bytes.insert(place, (SEVERAL, value));
        }
        held != value
    }
}

impl StoredPlace {
    fn offset_by(self, bytes: usize) -> Self {
        match self {
            Self::Memory(address) => Self::Memory(address.wrapping_add(bytes as u64)),
            Self::Lds(address) => Self::Lds(address.wrapping_add(bytes as u32)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether one instruction with these stores (lane, address, value) is counted.
    fn meets(stores: &[(usize, u32, u16)]) -> bool {
        let (mut watch, count) = (StoreWatch::default(), AtomicU64::new(0));
        for (lane, address, value) in stores {
            watch.record_store(7, (StoredPlace::Lds(*address), *lane), &value.to_le_bytes(), &count);
        }
        // The next instruction has nothing to do with it.
        watch.record_store(8, (StoredPlace::Lds(0), 5), &[0xee], &count);
        let count = count.into_inner();
        assert!(count <= 1);
        count == 1
    }

    #[test]
    fn lanes_meet_where_they_store_different_bytes() {
        assert!(meets(&[(0, 0, 1), (1, 0, 2)]));
        assert!(meets(&[(0, 0, 0x101), (1, 1, 2)]));
        assert!(meets(&[(0, 0, 1), (1, 0, 1), (0, 0, 2)]), "lane 1 has stored the first value, too");
        assert!(meets(&[(0, 0, 1), (1, 0, 1), (2, 0, 1), (1, 0, 2)]));
        assert!(!meets(&[(0, 0, 1), (1, 0, 1)]));
        assert!(!meets(&[(0, 0, 1), (0, 0, 2), (1, 2, 3)]));
    }
}
