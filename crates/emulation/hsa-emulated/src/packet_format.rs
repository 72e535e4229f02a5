//! The packets of a queue, as bytes.

use crate::abi::SignalHandle;
use hotswap_emulator::{AqlDispatch, KernelDispatch};

/// Bytes of a packet.
pub(crate) const PACKET_SIZE: usize = 64;
/// The type of a place without a packet.
pub(crate) const INVALID: u16 = 1;
pub(crate) const VENDOR_SPECIFIC: u16 = 0;
pub(crate) const KERNEL_DISPATCH: u16 = 2;
pub(crate) const BARRIER_AND: u16 = 3;
pub(crate) const BARRIER_OR: u16 = 5;
/// AMD's packet that waits for a signal's value.
pub(crate) const BARRIER_VALUE: u8 = 2;

/// A packet as it was written.
#[derive(Debug, Clone)]
pub(crate) struct QueuePacket {
    pub(crate) bytes: [u8; PACKET_SIZE],
    /// Its place, which kernels may read.
    pub(crate) address: u64,
    pub(crate) number: u64,
}

impl QueuePacket {
    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }

    pub(crate) fn kind(&self) -> u16 {
        self.u16(0) & 0xff
    }

    pub(crate) fn completion_signal(&self) -> SignalHandle {
        SignalHandle(self.u64(56))
    }

    /// The dispatch of a kernel. Dimensions beyond those that the packet states are 1.
    pub(crate) fn dispatch(&self, queue: u64) -> KernelDispatch {
        let dimensions = usize::from(self.u16(2) & 3);
        let mut packet = AqlDispatch {
            workgroup: [self.u16(4), self.u16(6), self.u16(8)],
            grid: [self.u32(12), self.u32(16), self.u32(20)],
            private_segment_size: self.u32(24),
            group_segment_size: self.u32(28),
            kernel_object: self.u64(32),
            kernarg_address: self.u64(40),
        };
        for dimension in dimensions.max(1)..3 {
            (packet.workgroup[dimension], packet.grid[dimension]) = (1, 1);
        }
        KernelDispatch { packet, packet_address: self.address, queue_address: queue, dispatch_id: self.number }
    }

    /// Whether the packet can be a dispatch.
    pub(crate) fn is_valid_dispatch(dispatch: &AqlDispatch) -> bool {
        dispatch.kernel_object != 0
            && dispatch.workgroup.iter().all(|size| *size > 0)
            && dispatch.grid.iter().all(|size| *size > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_beyond_the_stated_ones_are_one() {
        let mut bytes = [0; PACKET_SIZE];
        (bytes[0], bytes[2], bytes[4], bytes[6]) = (2, 1, 64, 9);
        (bytes[12], bytes[16], bytes[32]) = (128, 77, 1);
        let packet = QueuePacket { bytes, address: 0x1000, number: 3 };
        let dispatch = packet.dispatch(0x2000);
        assert_eq!((dispatch.packet.grid, dispatch.packet.workgroup), ([128, 1, 1], [64, 1, 1]));
        assert_eq!((dispatch.packet_address, dispatch.queue_address, dispatch.dispatch_id), (0x1000, 0x2000, 3));
        assert!(QueuePacket::is_valid_dispatch(&dispatch.packet));
        assert!(!QueuePacket::is_valid_dispatch(&AqlDispatch { kernel_object: 0, ..dispatch.packet }));
    }
}
