//! The memory that device code reads and writes.
//!
//! Invariants: an access outside of the valid ranges is a [`MemoryFault`], never a crash. Accesses of naturally aligned
//! 1, 2, 4 or 8 bytes are not torn: host threads and other work-groups see all of them or nothing.

use hotswap_semantics::{BITS, LANES, Lanes, on_long_vectors};

mod process;
mod sparse;

pub use process::{GpuAccess, GpuMemory, ProcessMemory, RangeAccess};
pub use sparse::{SparseMemory, WriteRecord};

/// An access to memory that is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFault {
    /// First address of the access.
    pub address: u64,
    /// Bytes of the access.
    pub size: u32,
    /// A write, or a read-modify-write.
    pub is_write: bool,
}

/// An address of each lane of half a wave.
pub type LaneAddresses = [u64; LANES];

/// Memory of a device: global, constant and kernel arguments. Scratch and LDS are the emulator's own.
pub trait DeviceMemory: Sync {
    /// Reads `into.len()` bytes from `address`.
    ///
    /// # Errors
    /// Where a byte is not in a valid range.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault>;

    /// Writes `from` to `address`.
    ///
    /// # Errors
    /// Where a byte is not in a valid range.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryFault>;

    /// Reads a word of any alignment.
    ///
    /// # Errors
    /// Where a byte is not in a valid range.
    #[inline]
    fn read_u32(&self, address: u64) -> Result<u32, MemoryFault> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Writes a word of any alignment.
    ///
    /// # Errors
    /// Where a byte is not in a valid range.
    #[inline]
    fn write_u32(&self, address: u64, value: u32) -> Result<(), MemoryFault> {
        self.write(address, &value.to_le_bytes())
    }

    /// Reads `into.len()` words of each lane in `mask`, one after the other in memory. Those of other lanes are left as they are.
    ///
    /// # Errors
    /// The first lane, in ascending order, for which a byte is not in a valid range.
    fn read_lanes(&self, addresses: &LaneAddresses, mask: u32, into: &mut [Lanes]) -> Result<(), (usize, MemoryFault)> {
        for lane in (0..LANES).filter(|lane| mask & BITS[*lane] != 0) {
            read_lane(self, addresses[lane], lane, into).map_err(|fault| (lane, fault))?;
        }
        Ok(())
    }

    /// Writes words of each lane in `mask`.
    ///
    /// # Errors
    /// The first lane, in ascending order, for which a byte is not in a valid range. Lanes before it were written.
    fn write_lanes(&self, addresses: &LaneAddresses, mask: u32, from: &[&Lanes]) -> Result<(), (usize, MemoryFault)> {
        for lane in (0..LANES).filter(|lane| mask & BITS[*lane] != 0) {
            write_lane(self, addresses[lane], lane, from).map_err(|fault| (lane, fault))?;
        }
        Ok(())
    }

    /// Replaces the aligned 32-bit word at `address` by `change` of it, in one step; returns the old value. `change` may
    /// be called several times.
    ///
    /// # Errors
    /// Where the word is not in a valid range.
    fn update_u32(&self, address: u64, change: &mut dyn FnMut(u32) -> u32) -> Result<u32, MemoryFault>;

    /// The same for 64 bits.
    ///
    /// # Errors
    /// Where the word is not in a valid range.
    fn update_u64(&self, address: u64, change: &mut dyn FnMut(u64) -> u64) -> Result<u64, MemoryFault>;

    /// A number that changes whenever bytes that were executed may have been replaced (a code object is loaded or
    /// unloaded), different for different memories. Decoded instructions are kept while it is the same; with 0, until
    /// the end of a dispatch.
    fn code_version(&self) -> u64 {
        0
    }
}

/// The largest distance of the address of a lane in `mask` from `start`, modulo 2^64: lanes before it are far away.
fn farthest_distance(addresses: &LaneAddresses, mask: u32, start: u64) -> u64 {
    #[inline(always)]
    fn all(addresses: &LaneAddresses, mask: u32, start: u64) -> u64 {
        let mut largest = 0;
        for lane in 0..LANES {
            let distance = addresses[lane].wrapping_sub(start);
            largest = if mask & BITS[lane] != 0 { distance.max(largest) } else { largest };
        }
        largest
    }
    on_long_vectors!(all(addresses: &LaneAddresses, mask: u32, start: u64) -> u64)
}

/// Whether all lanes are in `mask` and each has the word after that of the lane before it, the first one at a multiple of 4.
fn is_row(addresses: &LaneAddresses, mask: u32) -> bool {
    #[inline(always)]
    fn all(addresses: &LaneAddresses) -> bool {
        let mut differing = 0;
        for lane in 0..LANES {
            differing |= addresses[lane].wrapping_sub(addresses[0]) ^ (4 * lane as u64);
        }
        differing == 0
    }
    mask == u32::MAX && addresses[0].is_multiple_of(4) && on_long_vectors!(all(addresses: &LaneAddresses) -> bool)
}

/// Bytes of the largest access of a lane.
const LARGEST: usize = 64;

/// Reads the words of one lane.
fn read_lane<M: DeviceMemory + ?Sized>(
    memory: &M,
    address: u64,
    lane: usize,
    into: &mut [Lanes],
) -> Result<(), MemoryFault> {
    if let [word] = into {
        word[lane] = memory.read_u32(address)?;
        return Ok(());
    }
    let mut bytes = [0; LARGEST];
    let bytes = &mut bytes[..4 * into.len()];
    memory.read(address, bytes)?;
    for (block, word) in into.iter_mut().zip(bytes.chunks_exact(4)) {
        block[lane] = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
    }
    Ok(())
}

/// Writes the words of one lane.
fn write_lane<M: DeviceMemory + ?Sized>(
    memory: &M,
    address: u64,
    lane: usize,
    from: &[&Lanes],
) -> Result<(), MemoryFault> {
    if let [word] = from {
        return memory.write_u32(address, word[lane]);
    }
    let mut bytes = [0; LARGEST];
    for (block, word) in from.iter().zip(bytes.chunks_exact_mut(4)) {
        word.copy_from_slice(&block[lane].to_le_bytes());
    }
    memory.write(address, &bytes[..4 * from.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 1024;

    /// Addresses of lanes as kernels have them: rows, one word for all, any order, across the end.
    fn patterns(start: u64) -> Vec<LaneAddresses> {
        let of = |offset: fn(u64) -> u64| std::array::from_fn(|lane| start.wrapping_add(offset(lane as u64)));
        let places: [fn(u64) -> u64; 9] = [
            |lane| 16 + 4 * lane,
            |lane| 20 + 4 * lane,
            |lane| 17 + 4 * lane,
            |lane| 8 + 8 * lane,
            |_| 64,
            |lane| 500 - 12 * lane,
            |lane| lane * 389 % 997,
            |lane| 960 + 4 * lane,
            |lane| if lane == 9 { 0_u64.wrapping_sub(4) } else { 128 + 4 * lane },
        ];
        places.map(of).to_vec()
    }

    /// A value of which every byte depends on word and lane.
    fn value_of(word: usize, lane: usize) -> u32 {
        ((word * 1000 + lane) as u32).wrapping_mul(0x0101_0101)
    }

    /// Compares accesses of all lanes with those of one lane after the other.
    fn compare(memory: &dyn DeviceMemory, start: u64) {
        let content = |seed: u32| (0..BYTES).map(|at| (at as u32 * 37 + seed) as u8).collect::<Vec<u8>>();
        let all = |memory: &dyn DeviceMemory| {
            let mut bytes = [0; BYTES];
            memory.read(start, &mut bytes).unwrap();
            bytes
        };
        for (number, addresses) in patterns(start).into_iter().enumerate() {
            for (mask, words) in
                [u32::MAX, 0x8421_f00f, 1 << 31, 0].into_iter().flat_map(|mask| (1..=4).map(move |n| (mask, n)))
            {
                let label = format!("pattern {number}, {words} words of lanes {mask:#x}");
                let lanes = || (0..LANES).filter(|lane| mask & BITS[*lane] != 0);
                memory.write(start, &content(3)).unwrap();
                let mut found = [[7; LANES]; 4];
                let result = memory.read_lanes(&addresses, mask, &mut found[..words]);
                let mut expected = [[7; LANES]; 4];
                let one = |lane| {
                    read_lane(memory, addresses[lane], lane, &mut expected[..words]).err().map(|fault| (lane, fault))
                };
                let fault = lanes().find_map(one);
                assert_eq!(result.err(), fault, "{label}");
                if fault.is_none() {
                    assert_eq!(found, expected, "{label}");
                }
                let values: [Lanes; 4] = std::array::from_fn(|word| std::array::from_fn(|lane| value_of(word, lane)));
                let blocks = values.each_ref();
                let result = memory.write_lanes(&addresses, mask, &blocks[..words]);
                let found = all(memory);
                memory.write(start, &content(3)).unwrap();
                let one =
                    |lane| write_lane(memory, addresses[lane], lane, &blocks[..words]).err().map(|fault| (lane, fault));
                assert_eq!(result.err(), lanes().find_map(one), "{label}");
                assert_eq!(found, all(memory), "{label}");
            }
        }
    }

    #[test]
    fn lanes_together_do_what_lanes_one_by_one_do() {
        let mut sparse = SparseMemory::new();
        let start = sparse.allocate(BYTES as u64);
        compare(&sparse, start);
        let mut words = vec![0_u64; BYTES / 8];
        let (process, start) = (ProcessMemory::new(), words.as_mut_ptr() as u64);
        #[allow(unsafe_code, reason = "the bytes of a vector as memory of the device")]
        // SAFETY: the vector outlives the memory, and nothing else accesses it.
        unsafe {
            process.register_range(start..start + BYTES as u64, RangeAccess::ALL);
        }
        compare(&process.view_of_gpu(0), start);
    }
}
