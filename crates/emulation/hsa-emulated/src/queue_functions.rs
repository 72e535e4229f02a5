//! Queues as functions of HSA, and the thread of each that takes its packets.
//!
//! Invariants: packets of a queue are executed one after the other, in their order. A packet is taken when its index is below
//! the write index and its header is valid; the doorbell only wakes the thread, because threads of the program may ring in
//! another order than they wrote.
#![allow(unsafe_code)] // the functions of HSA's interface

use crate::abi::{AgentHandle, QueueCallback, QueueHeader};
use crate::boundary::{hsa_api, not_null, or_after_panic, put_as, put_result};
use crate::devices::gpu_of;
use crate::executor::SETTLE;
use crate::gpu::{MAX_QUEUE, MIN_QUEUE};
use crate::packet_format::INVALID;
use crate::packets::process_packet;
use crate::program_end::wait_before_freeing;
use crate::queue::{EmulatedQueue, QueueErrorCall};
use crate::status::HsaStatus;
use crate::users;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

/// Queues by the address of their record.
static QUEUES: RwLock<BTreeMap<usize, Arc<EmulatedQueue>>> = RwLock::new(BTreeMap::new());

/// The name of the threads of queues.
const THREAD: &str = "hsa-queue";
/// Milliseconds that [`settle`] has waited, and may wait in a process.
static SETTLED: AtomicU64 = AtomicU64::new(0);
const MOST_SETTLED: u64 = 3000;

fn find_queue(queue: *const QueueHeader) -> Result<Arc<EmulatedQueue>, HsaStatus> {
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    let found = queues.get(&(queue as usize)).cloned().ok_or(HsaStatus::INVALID_QUEUE)?;
    // A child of fork lacks a thread for it: HIP hears of an error.
    if users::is_forked_child() && !found.has_failed.load(Ordering::Acquire) {
        found.fail_with_status(HsaStatus::ERROR);
    }
    Ok(found)
}

/// A queue with its write index.
struct WrittenQueue {
    queue: Arc<EmulatedQueue>,
    written: u64,
}

/// All queues as they are now. The lock is held meanwhile: a queue that another thread destroys leaves the table before its pages
/// are given back, and the index is in them.
fn written_queues() -> Vec<WrittenQueue> {
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    let values = queues.values();
    values
        .map(|queue| WrittenQueue { queue: queue.clone(), written: queue.write_index().load(Ordering::Acquire) })
        .collect()
}

/// Waits for the packets that all queues have now: HIP frees the memory of kernels that it has not waited for when a device
/// is reset, and hardware is faster than the reset. Bounded, because kernels may wait for the thread that frees.
fn wait_for_packets() {
    // A callback of a queue would wait for itself, and a child of fork for threads that it does not have.
    if thread::current().name() == Some(THREAD) || users::is_other_process() {
        return;
    }
    let waited_for = written_queues();
    while waited_for.iter().any(|WrittenQueue { queue, written }| queue.is_behind(*written))
        && SETTLED.fetch_add(1, Ordering::Relaxed) < MOST_SETTLED
    {
        thread::sleep(Duration::from_millis(1));
    }
}

/// The thread of a queue.
fn take_packets(queue: &EmulatedQueue) {
    let mut number = 0;
    while !queue.is_over() {
        let is_written = number < queue.write_index().load(Ordering::Acquire);
        if !is_written || queue.packet_header(number).load(Ordering::Acquire) & 0xff == INVALID {
            queue.bell.wait();
            continue;
        }
        let packet = queue.read_packet(number);
        // The place is free before the packet completes: a program that waits for it may reuse its memory.
        let is_free = Cell::new(false);
        let finish = || {
            // Once: afterwards the program may write another packet there.
            if !is_free.replace(true) {
                queue.packet_header(number).store(INVALID, Ordering::Release);
                queue.read_index().store(number + 1, Ordering::Release);
            }
        };
        queue.complete_packet(number, || {
            or_after_panic("a queue", (), || process_packet(queue, &packet, finish));
            finish();
        });
        number += 1;
    }
}

fn create_queue(
    agent: AgentHandle,
    size: u32,
    kind: u32,
    callback: Option<QueueErrorCall>,
) -> Result<usize, HsaStatus> {
    if !size.is_power_of_two() || kind > 2 {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    if !(MIN_QUEUE..=MAX_QUEUE).contains(&size) {
        return Err(HsaStatus::INVALID_QUEUE_CREATION);
    }
    let queue = EmulatedQueue::new(agent, size, kind, callback)?;
    SETTLE.get_or_init(|| wait_for_packets);
    let worker = queue.clone();
    let thread = thread::Builder::new().name(THREAD.to_owned()).spawn(move || take_packets(&worker));
    let thread = thread.map_err(|_| HsaStatus::OUT_OF_RESOURCES)?;
    *queue.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    let record = queue.record;
    QUEUES.write().unwrap_or_else(PoisonError::into_inner).insert(record, queue);
    Ok(record)
}

/// Defines functions on an index for every memory order; each is done in the strictest one.
macro_rules! index_functions {
    ($($index:ident $arguments:tt = $operation:expr, [$($name:ident)*];)*) => {
        $($(index_functions!(@ $name $index $arguments $operation);)*)*
    };
    (@ $name:ident $index:ident ($($argument:ident),*) $operation:expr) => {
        #[unsafe(export_name = concat!("hotswap_own_", stringify!($name)))]
        extern "C" fn $name(queue: *const QueueHeader $(, $argument: u64)*) -> u64 {
            let operation: fn(&AtomicU64 $(, index_functions!(@ $argument))*) -> u64 = $operation;
            or_after_panic(stringify!($name), 0, || {
                find_queue(queue).map_or(0, |queue| operation(queue.$index() $(, $argument)*))
            })
        }
    };
    (@ $argument:ident) => { u64 };
}

index_functions! {
    read_index() = |index| index.load(Ordering::SeqCst),
        [hsa_queue_load_read_index_relaxed hsa_queue_load_read_index_acquire hsa_queue_load_read_index_scacquire];
    write_index() = |index| index.load(Ordering::SeqCst),
        [hsa_queue_load_write_index_relaxed hsa_queue_load_write_index_acquire hsa_queue_load_write_index_scacquire];
    read_index(value) = |index, value| index.swap(value, Ordering::SeqCst),
        [hsa_queue_store_read_index_relaxed hsa_queue_store_read_index_release hsa_queue_store_read_index_screlease];
    write_index(value) = |index, value| index.swap(value, Ordering::SeqCst),
        [hsa_queue_store_write_index_relaxed hsa_queue_store_write_index_release hsa_queue_store_write_index_screlease];
    write_index(count) = |index, count| index.fetch_add(count, Ordering::SeqCst),
        [hsa_queue_add_write_index_relaxed hsa_queue_add_write_index_acquire hsa_queue_add_write_index_release
        hsa_queue_add_write_index_acq_rel hsa_queue_add_write_index_scacquire hsa_queue_add_write_index_screlease
        hsa_queue_add_write_index_scacq_screl];
    write_index(expected, value) = |index, expected, value| {
            index.compare_exchange(expected, value, Ordering::SeqCst, Ordering::SeqCst).unwrap_or_else(|old| old)
        },
        [hsa_queue_cas_write_index_relaxed hsa_queue_cas_write_index_acquire hsa_queue_cas_write_index_release
        hsa_queue_cas_write_index_acq_rel hsa_queue_cas_write_index_scacquire hsa_queue_cas_write_index_screlease
        hsa_queue_cas_write_index_scacq_screl];
}

hsa_api! {
    fn hsa_queue_create(
        agent: AgentHandle, size: u32, kind: u32, callback: Option<QueueCallback>, data: *mut c_void, _private: u32,
        _group: u32, queue: *mut *mut QueueHeader,
    ) {
        not_null(queue)?;
        let callback = callback.map(|function| QueueErrorCall { function, data: data as usize });
        put_result(queue, create_queue(agent, size, kind, callback)? as *mut QueueHeader)
    }

    fn hsa_queue_destroy(queue: *mut QueueHeader) {
        not_null(queue)?;
        wait_before_freeing();
        let found = QUEUES.write().unwrap_or_else(PoisonError::into_inner).remove(&(queue as usize));
        found.ok_or(HsaStatus::INVALID_QUEUE)?.destroy();
        Ok(())
    }

    fn hsa_queue_inactivate(queue: *mut QueueHeader) {
        let queue = find_queue(queue)?;
        queue.has_failed.store(true, Ordering::Release);
        queue.device.stop.store(true, Ordering::Release);
        Ok(())
    }

    fn hsa_amd_queue_set_priority(queue: *mut QueueHeader, _priority: u32) {
        find_queue(queue).map(drop)
    }

    fn hsa_amd_queue_cu_set_mask(queue: *const QueueHeader, _bits: u32, _mask: *const u32) {
        find_queue(queue).map(drop)
    }

    fn hsa_amd_queue_cu_get_mask(queue: *const QueueHeader, bits: u32, mask: *mut u32) {
        let units = gpu_of(find_queue(queue)?.agent)?.product.compute_units;
        not_null(mask)?;
        for word in 0..bits / 32 {
            let enabled = units.saturating_sub(word * 32).min(32);
            mask.add(word as usize).write_unaligned(u32::MAX.checked_shr(32 - enabled).unwrap_or(0));
        }
        Ok(())
    }

    fn hsa_amd_queue_get_info(queue: *mut QueueHeader, attribute: u32, value: *mut c_void) {
        let queue = find_queue(queue)?;
        match attribute {
            0 => put_as(value, queue.agent),
            1 => put_as(value, queue.doorbell.handle()),
            _ => Err(HsaStatus::INVALID_ARGUMENT),
        }
    }

    fn hsa_amd_profiling_set_profiler_enabled(queue: *mut QueueHeader, _enabled: i32) {
        // Times are always taken.
        find_queue(queue).map(drop)
    }
}
