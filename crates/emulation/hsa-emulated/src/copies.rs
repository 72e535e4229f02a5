//! Copies: at once, or by a thread when signals allow it.
//!
//! Invariants: a copy waits for its own signals only, never for another copy. Memory that is not accessible to the GPU is not
//! touched: the copy is a memory fault then, as on a GPU.
#![allow(unsafe_code)] // the functions of HSA's interface, and memory of the program

use crate::abi::{AgentHandle, GridExtent, PitchedPointer, SignalHandle};
use crate::boundary::{caller_slice, hsa_api, not_null, put_result};
use crate::clock::current_ticks;
use crate::devices::check_agent;
use crate::faults::report_copy_fault;
use crate::memory::allocations::is_accessible;
use crate::memory::store_prefetch_location;
use crate::signals::{EmulatedSignal, complete_signal, wait_a_moment, wake_all};
use crate::status::HsaStatus;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;

/// Rows of bytes, in planes.
#[derive(Debug, Clone, Copy)]
struct CopyRegion {
    to: RowPlace,
    from: RowPlace,
    /// Bytes of a row, rows of a plane, planes.
    extent: [usize; 3],
}

/// The first row, and the distances of rows and planes.
#[derive(Debug, Clone, Copy)]
struct RowPlace {
    start: usize,
    pitch: usize,
    slice: usize,
}

struct PendingCopy {
    region: CopyRegion,
    agent: AgentHandle,
    dependencies: Vec<EmulatedSignal>,
    done: SignalHandle,
}

static PENDING: Mutex<VecDeque<PendingCopy>> = Mutex::new(VecDeque::new());

fn lock_pending() -> MutexGuard<'static, VecDeque<PendingCopy>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RowPlace {
    /// The address of a row; `None` beyond the end of addresses.
    fn row_address(&self, row: usize, plane: usize) -> Option<usize> {
        let offset = self.pitch.checked_mul(row)?.checked_add(self.slice.checked_mul(plane)?)?;
        self.start.checked_add(offset)
    }
}

impl CopyRegion {
    fn linear(to: usize, from: usize, size: usize) -> Self {
        let [to, from] = [to, from].map(|start| RowPlace { start, pitch: 0, slice: 0 });
        Self { to, from, extent: [size, 1, 1] }
    }

    /// Copies; the address that is not accessible, if there is one.
    fn copy_rows(&self) -> Result<(), usize> {
        let [bytes, rows, planes] = self.extent;
        for (plane, row) in (0..planes).flat_map(|plane| (0..rows).map(move |row| (plane, row))) {
            let to = self.to.row_address(row, plane).filter(|to| is_accessible(*to, bytes)).ok_or(self.to.start)?;
            let from =
                self.from.row_address(row, plane).filter(|from| is_accessible(*from, bytes)).ok_or(self.from.start)?;
            // SAFETY: both rows are accessible; they may overlap.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
        }
        Ok(())
    }
}

impl PendingCopy {
    fn is_due(&self) -> bool {
        self.dependencies.iter().all(|signal| signal.load() == 0)
    }

    fn run_copy(&self) {
        let start = current_ticks();
        if let Err(address) = self.region.copy_rows() {
            report_copy_fault(self.agent, address as u64);
        }
        complete_signal(self.done, start);
    }
}

/// The thread that makes all copies. It lives as long as the process.
fn make_copies() {
    loop {
        let due = {
            let mut all = lock_pending();
            let place = all.iter().position(PendingCopy::is_due);
            place.and_then(|place| all.remove(place))
        };
        match due {
            Some(copy) => copy.run_copy(),
            None => wait_a_moment(|| lock_pending().iter().any(PendingCopy::is_due)),
        }
    }
}

/// Makes a copy when its signals allow it.
///
/// # Safety
/// `dependencies` has `count` elements.
unsafe fn submit_copy(
    region: CopyRegion,
    agent: AgentHandle,
    (count, dependencies): (u32, *const SignalHandle),
    done: SignalHandle,
) -> Result<(), HsaStatus> {
    static THREAD: Once = Once::new();
    // SAFETY: the caller's promise.
    let handles = unsafe { caller_slice(dependencies, count)? };
    let dependencies = handles.iter().map(find_emulated_signal).collect::<Result<_, _>>()?;
    EmulatedSignal::find(done).ok_or(HsaStatus::INVALID_SIGNAL)?;
    lock_pending().push_back(PendingCopy { region, agent, dependencies, done });
    THREAD.call_once(|| {
        if let Err(error) = thread::Builder::new().name("hsa-copies".to_owned()).spawn(make_copies) {
            crate::message::report_message(&format!("no thread for copies: {error}"));
        }
    });
    wake_all();
    Ok(())
}

fn find_emulated_signal(handle: &SignalHandle) -> Result<EmulatedSignal, HsaStatus> {
    EmulatedSignal::find(*handle).ok_or(HsaStatus::INVALID_SIGNAL)
}

/// A part of a pitched block.
fn row_place(block: &PitchedPointer, offset: &GridExtent) -> Result<RowPlace, HsaStatus> {
    let rows = block.pitch.checked_mul(offset.y as usize);
    let planes = block.slice.checked_mul(offset.z as usize);
    let start = (block.base as usize).checked_add(offset.x as usize);
    let sum = start.and_then(|start| start.checked_add(rows?)).and_then(|start| start.checked_add(planes?));
    Ok(RowPlace { start: sum.ok_or(HsaStatus::INVALID_ARGUMENT)?, pitch: block.pitch, slice: block.slice })
}

hsa_api! {
    fn hsa_memory_copy(to: *mut c_void, from: *const c_void, size: usize) {
        if size == 0 {
            return Ok(());
        }
        not_null(to)?;
        not_null(from)?;
        // Either may be memory of the program's own.
        std::ptr::copy(from.cast::<u8>(), to.cast::<u8>(), size);
        Ok(())
    }

    fn hsa_amd_memory_fill(start: *mut c_void, value: u32, count: usize) {
        let bytes = count.checked_mul(size_of::<u32>()).ok_or(HsaStatus::INVALID_ARGUMENT)?;
        if start.is_null() || !(start as usize).is_multiple_of(size_of::<u32>()) || !is_accessible(start as usize, bytes) {
            return Err(HsaStatus::INVALID_ARGUMENT);
        }
        std::slice::from_raw_parts_mut(start.cast::<u32>(), count).fill(value);
        Ok(())
    }

    fn hsa_amd_memory_async_copy(
        to: *mut c_void, to_agent: AgentHandle, from: *const c_void, from_agent: AgentHandle, size: usize, count: u32,
        dependencies: *const SignalHandle, done: SignalHandle,
    ) {
        check_agent(to_agent)?;
        check_agent(from_agent)?;
        not_null(to)?;
        not_null(from)?;
        let agent = to_agent.max(from_agent);
        submit_copy(CopyRegion::linear(to as usize, from as usize, size), agent, (count, dependencies), done)
    }

    fn hsa_amd_memory_async_copy_on_engine(
        to: *mut c_void, to_agent: AgentHandle, from: *const c_void, from_agent: AgentHandle, size: usize, count: u32,
        dependencies: *const SignalHandle, done: SignalHandle, _engine: u32, _force: bool,
    ) {
        hsa_amd_memory_async_copy(to, to_agent, from, from_agent, size, count, dependencies, done).into_answer()
    }

    fn hsa_amd_memory_async_copy_rect(
        to: *const PitchedPointer, to_offset: *const GridExtent, from: *const PitchedPointer,
        from_offset: *const GridExtent, range: *const GridExtent, agent: AgentHandle, _direction: u32, count: u32,
        dependencies: *const SignalHandle, done: SignalHandle,
    ) {
        check_agent(agent)?;
        not_null(to)?;
        not_null(from)?;
        let offset = |offset: *const GridExtent| if offset.is_null() { GridExtent::default() } else { *offset };
        not_null(range)?;
        let extent = [(*range).x, (*range).y, (*range).z].map(|length| length as usize);
        let region =
            CopyRegion { to: row_place(&*to, &offset(to_offset))?, from: row_place(&*from, &offset(from_offset))?, extent };
        submit_copy(region, agent, (count, dependencies), done)
    }

    fn hsa_amd_memory_copy_engine_status(to: AgentHandle, from: AgentHandle, mask: *mut u32) {
        check_agent(to)?;
        check_agent(from)?;
        // Two engines, both free.
        put_result(mask, 3u32)
    }

    fn hsa_amd_memory_get_preferred_copy_engine(to: AgentHandle, from: AgentHandle, mask: *mut u32) {
        check_agent(to)?;
        check_agent(from)?;
        put_result(mask, 1u32)
    }

    fn hsa_amd_svm_prefetch_async(
        start: *mut c_void, size: usize, agent: AgentHandle, count: u32, dependencies: *const SignalHandle,
        done: SignalHandle,
    ) {
        check_agent(agent)?;
        not_null(start)?;
        // The memory is where it is: only the signals and the answer to later questions matter.
        store_prefetch_location(start as usize, size, agent)?;
        submit_copy(CopyRegion::linear(start as usize, start as usize, 0), agent, (count, dependencies), done)
    }
}
