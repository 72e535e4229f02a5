//! Executing the packets of a queue: kernels, barriers, conditions.
//!
//! Invariant: a packet completes once, whatever it was: its completion signal is decremented and its times are written.

use crate::abi::SignalHandle;
use crate::agent_handles::number_of;
use crate::clock::current_ticks;
use crate::counters;
use crate::executor::execute_dispatch;
use crate::faults::report_fault;
use crate::loader;
use crate::message::report_message;
use crate::packet_format::{BARRIER_AND, BARRIER_OR, BARRIER_VALUE, KERNEL_DISPATCH, QueuePacket, VENDOR_SPECIFIC};
use crate::queue::EmulatedQueue;
use crate::signals::{EmulatedSignal, SignalCondition, complete_signal, wait_a_moment};
use crate::status::HsaStatus;
use std::sync::atomic::Ordering;

/// Executes a packet and completes it. `finish` frees its place.
pub(crate) fn process_packet(queue: &EmulatedQueue, packet: &QueuePacket, finish: impl Fn()) {
    let start = current_ticks();
    match packet.kind() {
        KERNEL_DISPATCH if !queue.has_failed.load(Ordering::Acquire) => process_dispatch(queue, packet),
        KERNEL_DISPATCH => {}
        BARRIER_AND => wait_for_dependencies(queue, packet, false),
        BARRIER_OR => wait_for_dependencies(queue, packet, true),
        VENDOR_SPECIFIC if packet.bytes[2] == BARRIER_VALUE => wait_for_value(queue, packet),
        _ => {
            report_message(&format!("a packet with header 0x{:04x}, which is not known", packet.u16(0)));
            queue.fail_with_status(HsaStatus::INVALID_PACKET_FORMAT);
        }
    }
    finish();
    complete_signal(packet.completion_signal(), start);
}

fn process_dispatch(queue: &EmulatedQueue, packet: &QueuePacket) {
    let dispatch = packet.dispatch(queue.record as u64);
    if !QueuePacket::is_valid_dispatch(&dispatch.packet) {
        report_message("a dispatch without a kernel, or with an empty grid or work-group");
        queue.fail_with_status(HsaStatus::INVALID_PACKET_FORMAT);
        return;
    }
    let kernel = loader::kernel_at(dispatch.packet.kernel_object);
    let Some(gpu) = number_of(queue.agent) else { return };
    match execute_dispatch(gpu, &queue.device, &dispatch) {
        Ok(counts) => counters::count_dispatch(queue.agent, kernel.as_deref(), &counts),
        // The queue is destroyed: the program does not wait for the kernel.
        Err(_) if queue.is_over() => {}
        Err(fault) => match report_fault(queue.agent, kernel.as_deref(), &fault) {
            Some(status) => queue.fail_with_status(status),
            None => queue.stop(),
        },
    }
}

/// Waits for all of five signals to become zero, or for one of them.
fn wait_for_dependencies(queue: &EmulatedQueue, packet: &QueuePacket, any: bool) {
    let signals: Vec<EmulatedSignal> =
        (0..5).filter_map(|number| EmulatedSignal::find(SignalHandle(packet.u64(8 + 8 * number)))).collect();
    wait_until(queue, || are_dependencies_met(&signals, any));
}

fn are_dependencies_met(signals: &[EmulatedSignal], any: bool) -> bool {
    let mut values = signals.iter().map(|signal| signal.load() == 0);
    if any { signals.is_empty() || values.any(|met| met) } else { values.all(|met| met) }
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
