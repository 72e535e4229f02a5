//! The memory that device code reads and writes.
//!
//! Invariants: an access outside of the valid ranges is a [`MemoryFault`], never a crash. Accesses of naturally aligned
//! 1, 2, 4 or 8 bytes are not torn: host threads and other work-groups see all of them or nothing.

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
