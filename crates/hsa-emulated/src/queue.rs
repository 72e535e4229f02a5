//! Queues: rings of packets in the program's memory, and a thread for each that takes them.
//!
//! Invariants: packets of a queue are executed one after the other, in their order. A packet is taken when its index is below
//! the write index and its header is valid; the doorbell only wakes the thread, because threads of the program may ring in
//! another order than they wrote. After an error a queue executes nothing more, but its packets complete: a program that
//! waits for them goes on.
#![allow(unsafe_code)] // the functions of HSA's interface, and words that the program writes

use crate::abi::{AgentHandle, QueueCallback, QueueHeader, QueueRecord, SIGNAL_KIND_DOORBELL, SignalHandle};
use crate::boundary::{hsa_api, not_null, or_after_panic, put, put_as};
use crate::gpu::{MAX_QUEUE, MIN_QUEUE};
use crate::memory::allocations::{register_pages, release_pages};
use crate::memory::mapping::{PAGE, PageMapping};
use crate::packets::{self, PACKET_SIZE, QueuePacket};
use crate::signals::EmulatedSignal;
use crate::status::HsaStatus;
use crate::system::gpu_of;
use hotswap_emulator::{EmulatedDevice, PRIVATE_APERTURE, SHARED_APERTURE};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A kernel of another queue may ring without waking the thread.
const LOOK: Duration = Duration::from_millis(20);

/// A queue.
pub(crate) struct EmulatedQueue {
    /// Address of its [`QueueRecord`], which is its handle.
    pub(crate) record: usize,
    pub(crate) agent: AgentHandle,
    pub(crate) device: EmulatedDevice,
    /// Called with an error.
    callback: Option<(QueueCallback, usize)>,
    doorbell: EmulatedSignal,
    size: u64,
    ring: usize,
    /// It is destroyed.
    is_over: AtomicBool,
    /// An error has ended it.
    pub(crate) has_failed: AtomicBool,
    rung: (Mutex<bool>, Condvar),
    pages: Mutex<Option<PageMapping>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Queues by the address of their record.
static QUEUES: RwLock<BTreeMap<usize, Arc<EmulatedQueue>>> = RwLock::new(BTreeMap::new());
static NEXT_ID: AtomicU64 = AtomicU64::new(0);

fn find(queue: *const QueueHeader) -> Result<Arc<EmulatedQueue>, HsaStatus> {
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    queues.get(&(queue as usize)).cloned().ok_or(HsaStatus::INVALID_QUEUE)
}

/// Wakes the thread of the queue with that doorbell.
pub(crate) fn ring(doorbell: SignalHandle) {
    let queues = QUEUES.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(queue) = queues.values().find(|queue| queue.doorbell.handle() == doorbell) {
        queue.wake();
    }
}

/// The bytes of the record and of the ring, each on pages of their own.
fn layout(size: u32) -> usize {
    PAGE + size as usize * PACKET_SIZE
}

impl EmulatedQueue {
    fn new(
        agent: AgentHandle,
        size: u32,
        kind: u32,
        callback: Option<(QueueCallback, usize)>,
    ) -> Result<Arc<Self>, HsaStatus> {
        let device = gpu_of(agent)?.executor.device().map_err(|_| HsaStatus::ERROR)?;
        let pages = PageMapping::new(layout(size)).ok_or(HsaStatus::OUT_OF_RESOURCES)?;
        let doorbell = EmulatedSignal::new(SIGNAL_KIND_DOORBELL, -1).ok_or(HsaStatus::OUT_OF_RESOURCES)?;
        let (record, ring) = (pages.start, pages.start + PAGE);
        let queue = Self {
            record,
            agent,
            device,
            callback,
            doorbell,
            size: size.into(),
            ring,
            is_over: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            rung: (Mutex::new(false), Condvar::new()),
            pages: Mutex::new(None),
            thread: Mutex::new(None),
        };
        queue.write_record(kind, size);
        register_pages(&pages);
        *queue.pages.lock().unwrap_or_else(PoisonError::into_inner) = Some(pages);
        Ok(Arc::new(queue))
    }

    /// Writes the record, and makes every packet invalid.
    fn write_record(&self, kind: u32, size: u32) {
        let header = QueueHeader {
            kind,
            features: 1, // Kernels are dispatched.
            base_address: self.ring as *mut c_void,
            doorbell: self.doorbell.handle(),
            size,
            reserved1: 0,
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        };
        let record = self.record as *mut QueueRecord;
        // SAFETY: new zeroed pages; a record of zeros is valid, and its fields are written before another thread sees them.
        unsafe {
            (*record).header = header;
            (*record).group_aperture_hi = (SHARED_APERTURE >> 32) as u32;
            (*record).private_aperture_hi = (PRIVATE_APERTURE >> 32) as u32;
            (*record).read_index_offset = offset_of!(QueueRecord, read_index) as u32;
            (*record).properties = 1 << 1; // Pointers of 64 bits.
        }
        for number in 0..u64::from(size) {
            self.header(number).store(packets::INVALID, Ordering::Release);
        }
    }

    fn index(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: a word of the record, which lives as long as the queue and is accessed as an atomic.
        unsafe { AtomicU64::from_ptr((self.record + offset) as *mut u64) }
    }

    fn write_index(&self) -> &AtomicU64 {
        self.index(offset_of!(QueueRecord, write_index))
    }

    fn read_index(&self) -> &AtomicU64 {
        self.index(offset_of!(QueueRecord, read_index))
    }

    fn place(&self, number: u64) -> usize {
        self.ring + (number % self.size) as usize * PACKET_SIZE
    }

    /// The header of a packet, which the program writes last.
    fn header(&self, number: u64) -> &AtomicU16 {
        // SAFETY: a packet of the ring, which lives as long as the queue.
        unsafe { AtomicU16::from_ptr(self.place(number) as *mut u16) }
    }

    fn packet(&self, number: u64) -> QueuePacket {
        // SAFETY: a packet of the ring; the program has written it before its header, which was read with acquire order.
        let bytes = unsafe { (self.place(number) as *const [u8; PACKET_SIZE]).read() };
        QueuePacket { bytes, address: self.place(number) as u64, number }
    }

    fn wake(&self) {
        *self.rung.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rung.1.notify_one();
    }

    fn wait_for_ring(&self) {
        let rung = self.rung.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.rung.1.wait_timeout_while(rung, LOOK, |rung| !*rung);
        *waited.map_or_else(|error| error.into_inner().0, |(rung, _)| rung) = false;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Executes no further kernel.
    pub(crate) fn stop(&self) {
        self.has_failed.store(true, Ordering::Release);
    }

    /// Tells the program that an error has ended the queue.
    pub(crate) fn fail(&self, status: HsaStatus) {
        self.stop();
        if let Some((callback, data)) = self.callback {
            // SAFETY: the callback that the program registered for this queue, with its own data.
            unsafe { callback(status, self.record as *mut QueueHeader, data as *mut c_void) };
        }
    }

    /// The thread of the queue.
    fn take_packets(&self) {
        let mut number = 0;
        while !self.is_over() {
            let is_written = number < self.write_index().load(Ordering::Acquire);
            if !is_written || self.header(number).load(Ordering::Acquire) & 0xff == packets::INVALID {
                self.wait_for_ring();
                continue;
            }
            let packet = self.packet(number);
            // The place is free before the packet completes: a program that waits for it may reuse its memory.
            let is_free = Cell::new(false);
            let finish = || {
                // Once: afterwards the program may write another packet there.
                if !is_free.replace(true) {
                    self.header(number).store(packets::INVALID, Ordering::Release);
                    self.read_index().store(number + 1, Ordering::Release);
                }
            };
            or_after_panic("a queue", (), || packets::process(self, &packet, &finish));
            finish();
            number += 1;
        }
    }

    /// Ends the thread, and frees the memory.
    fn destroy(&self) {
        self.is_over.store(true, Ordering::Release);
        self.device.stop.store(true, Ordering::Release);
        self.wake();
        crate::signals::wake_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A callback of the queue may destroy it, on its own thread.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
            self.doorbell.destroy();
            if let Some(pages) = self.pages.lock().unwrap_or_else(PoisonError::into_inner).take() {
                release_pages(pages);
            }
        }
    }
}

fn create(
    agent: AgentHandle,
    size: u32,
    kind: u32,
    callback: Option<(QueueCallback, usize)>,
) -> Result<usize, HsaStatus> {
    if !size.is_power_of_two() || kind > 2 {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    if !(MIN_QUEUE..=MAX_QUEUE).contains(&size) {
        return Err(HsaStatus::INVALID_QUEUE_CREATION);
    }
    let queue = EmulatedQueue::new(agent, size, kind, callback)?;
    let worker = queue.clone();
    let thread = thread::Builder::new().name("hsa-queue".to_owned()).spawn(move || worker.take_packets());
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
        #[unsafe(no_mangle)]
        extern "C" fn $name(queue: *const QueueHeader $(, $argument: u64)*) -> u64 {
            let operation: fn(&AtomicU64 $(, index_functions!(@ $argument))*) -> u64 = $operation;
            or_after_panic(stringify!($name), 0, || {
                find(queue).map_or(0, |queue| operation(queue.$index() $(, $argument)*))
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
        let callback = callback.map(|callback| (callback, data as usize));
        put(queue, create(agent, size, kind, callback)? as *mut QueueHeader)
    }

    fn hsa_queue_destroy(queue: *mut QueueHeader) {
        not_null(queue)?;
        let found = QUEUES.write().unwrap_or_else(PoisonError::into_inner).remove(&(queue as usize));
        found.ok_or(HsaStatus::INVALID_QUEUE)?.destroy();
        Ok(())
    }

    fn hsa_queue_inactivate(queue: *mut QueueHeader) {
        let queue = find(queue)?;
        queue.has_failed.store(true, Ordering::Release);
        queue.device.stop.store(true, Ordering::Release);
        Ok(())
    }

    fn hsa_amd_queue_set_priority(queue: *mut QueueHeader, _priority: u32) {
        find(queue).map(drop)
    }

    fn hsa_amd_queue_cu_set_mask(queue: *const QueueHeader, _bits: u32, _mask: *const u32) {
        find(queue).map(drop)
    }

    fn hsa_amd_queue_cu_get_mask(queue: *const QueueHeader, bits: u32, mask: *mut u32) {
        let units = gpu_of(find(queue)?.agent)?.product.compute_units;
        not_null(mask)?;
        for word in 0..bits / 32 {
            let enabled = units.saturating_sub(word * 32).min(32);
            mask.add(word as usize).write_unaligned(u32::MAX.checked_shr(32 - enabled).unwrap_or(0));
        }
        Ok(())
    }

    fn hsa_amd_queue_get_info(queue: *mut QueueHeader, attribute: u32, value: *mut c_void) {
        let queue = find(queue)?;
        match attribute {
            0 => put_as(value, queue.agent),
            1 => put_as(value, queue.doorbell.handle()),
            _ => Err(HsaStatus::INVALID_ARGUMENT),
        }
    }

    fn hsa_amd_profiling_set_profiler_enabled(queue: *mut QueueHeader, _enabled: i32) {
        // Times are always taken.
        find(queue).map(drop)
    }
}
