//! The memory that device code reads and writes.
//!
//! Invariants: an access outside of the valid ranges is a [`MemoryFault`], never a crash. Accesses of naturally aligned
//! 1, 2, 4 or 8 bytes are not torn: host threads and other work-groups see all of them or nothing.

use hotswap_semantics::{BITS, LANES, Lanes};

mod process;
mod sparse;

pub use process::ProcessMemory;
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

    /// Reads `into.len()` words of each lane in `mask`, one after the other in memory.
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
    /// unloaded), different for different memories. Decoded instructions are kept while it is the same; with 0, until the end
    /// of a dispatch.
    fn code_version(&self) -> u64 {
        0
    }
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
