//! The packets of a queue: kernels, barriers, conditions.
//!
//! Invariant: a packet completes once, whatever it was: its completion signal is decremented and its times are written.

use crate::abi::SignalHandle;
use crate::counters;
use crate::executor::execute;
use crate::faults::report_fault;
use crate::loader;
use crate::queue::EmulatedQueue;
use crate::signals::{EmulatedSignal, SignalCondition, complete, wait_a_moment};
use crate::status::HsaStatus;
use crate::system::ticks;
use hotswap_emulator::{AqlDispatch, KernelDispatch};
use std::sync::atomic::Ordering;

/// Bytes of a packet.
pub(crate) const PACKET_SIZE: usize = 64;
/// The type of a place without a packet.
pub(crate) const INVALID: u16 = 1;
const VENDOR_SPECIFIC: u16 = 0;
const KERNEL_DISPATCH: u16 = 2;
const BARRIER_AND: u16 = 3;
const BARRIER_OR: u16 = 5;
/// AMD's packet that waits for a signal's value.
const BARRIER_VALUE: u8 = 2;

/// A packet as it was written.
#[derive(Debug, Clone)]
pub(crate) struct QueuePacket {
    pub(crate) bytes: [u8; PACKET_SIZE],
    /// Its place, which kernels may read.
    pub(crate) address: u64,
    pub(crate) number: u64,
}

impl QueuePacket {
    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from(self.u16(at)) | u32::from(self.u16(at + 2)) << 16
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) | u64::from(self.u32(at + 4)) << 32
    }

    fn kind(&self) -> u16 {
        self.u16(0) & 0xff
    }

    fn completion(&self) -> SignalHandle {
        SignalHandle(self.u64(56))
    }

    /// The dispatch of a kernel. Dimensions beyond those that the packet states are 1.
    fn dispatch(&self, queue: u64) -> KernelDispatch {
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
    fn is_valid_dispatch(dispatch: &AqlDispatch) -> bool {
        dispatch.kernel_object != 0
            && dispatch.workgroup.iter().all(|size| *size > 0)
            && dispatch.grid.iter().all(|size| *size > 0)
    }
}

/// Executes a packet and completes it. `finish` frees its place.
pub(crate) fn process(queue: &EmulatedQueue, packet: &QueuePacket, finish: impl Fn()) {
    let start = ticks();
    match packet.kind() {
        KERNEL_DISPATCH if !queue.has_failed.load(Ordering::Acquire) => dispatch(queue, packet),
        KERNEL_DISPATCH => {}
        BARRIER_AND => wait_for_dependencies(queue, packet, false),
        BARRIER_OR => wait_for_dependencies(queue, packet, true),
        VENDOR_SPECIFIC if packet.bytes[2] == BARRIER_VALUE => wait_for_value(queue, packet),
        _ => {
            crate::message::report(&format!("a packet with header 0x{:04x}, which is not known", packet.u16(0)));
            queue.fail(HsaStatus::INVALID_PACKET_FORMAT);
        }
    }
    finish();
    complete(packet.completion(), start);
}

fn dispatch(queue: &EmulatedQueue, packet: &QueuePacket) {
    let dispatch = packet.dispatch(queue.record as u64);
    if !QueuePacket::is_valid_dispatch(&dispatch.packet) {
        crate::message::report("a dispatch without a kernel, or with an empty grid or work-group");
        queue.fail(HsaStatus::INVALID_PACKET_FORMAT);
        return;
    }
    let kernel = loader::kernel_at(dispatch.packet.kernel_object);
    match execute(&queue.device, &dispatch) {
        Ok(counts) => counters::count(queue.agent, kernel.as_deref(), &counts),
        // The queue is destroyed: the program does not wait for the kernel.
        Err(_) if queue.is_over() => {}
        Err(fault) => report_fault(queue, kernel.as_deref(), &fault),
    }
}

/// Waits for all of five signals to become zero, or for one of them.
fn wait_for_dependencies(queue: &EmulatedQueue, packet: &QueuePacket, any: bool) {
    let signals: Vec<EmulatedSignal> =
        (0..5).filter_map(|number| EmulatedSignal::find(SignalHandle(packet.u64(8 + 8 * number)))).collect();
    let is_met = || {
        let mut values = signals.iter().map(|signal| signal.load() == 0);
        if any { signals.is_empty() || values.any(|met| met) } else { values.all(|met| met) }
    };
    wait_until(queue, is_met);
}

/// Waits for a value of a signal, under a mask.
fn wait_for_value(queue: &EmulatedQueue, packet: &QueuePacket) {
    let Some(signal) = EmulatedSignal::find(SignalHandle(packet.u64(8))) else { return };
    let (value, mask) = (packet.u64(16) as i64, packet.u64(24) as i64);
    let condition = SignalCondition::new(packet.u32(32), value);
    wait_until(queue, || condition.holds(signal.load() & mask));
}

fn wait_until(queue: &EmulatedQueue, is_met: impl Fn() -> bool) {
    let is_met = || is_met() || queue.is_over();
    while !is_met() {
        wait_a_moment(is_met);
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
