//! A queue: a ring of packets in the program's memory, with its indices and its doorbell.
//!
//! Invariant: after an error a queue executes nothing more, but its packets complete: a program that waits for them goes on.
#![allow(unsafe_code)] // words that the program writes, the program's callback

use crate::abi::{AgentHandle, QueueCallback, QueueHeader, QueueRecord, SIGNAL_KIND_DOORBELL};
use crate::devices::gpu_of;
use crate::doorbell::{self, QueueDoorbell};
use crate::executor;
use crate::memory::allocations::{register_pages, release_pages};
use crate::memory::mapping::{PAGE, PageMapping};
use crate::packet_format::{self, PACKET_SIZE, QueuePacket};
use crate::signals::{EmulatedSignal, wake_all};
use crate::status::HsaStatus;
use hotswap_emulator::{EmulatedDevice, PRIVATE_APERTURE, SHARED_APERTURE};
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// A function of the program that is called with an error of a queue.
#[derive(Clone, Copy)]
pub(crate) struct QueueErrorCall {
    pub(crate) function: QueueCallback,
    /// Address that the function gets.
    pub(crate) data: usize,
}

pub(crate) struct EmulatedQueue {
    /// Address of its [`QueueRecord`], which is its handle.
    pub(crate) record: usize,
    pub(crate) agent: AgentHandle,
    pub(crate) device: EmulatedDevice,
    /// Called where the queue fails.
    callback: Option<QueueErrorCall>,
    pub(crate) doorbell: EmulatedSignal,
    size: u64,
    ring: usize,
    /// Whether the queue is destroyed.
    is_over: AtomicBool,
    /// An error has ended it.
    pub(crate) has_failed: AtomicBool,
    /// How many packets are over: their signals are set, and the program was told of errors.
    completed: AtomicU64,
    /// The thread is at a packet.
    is_busy: AtomicBool,
    pub(crate) bell: Arc<QueueDoorbell>,
    pages: Mutex<Option<PageMapping>>,
    pub(crate) thread: Mutex<Option<JoinHandle<()>>>,
}

/// The bytes of the record and of the ring, each on pages of their own.
fn mapping_size(size: u32) -> usize {
    PAGE + size as usize * PACKET_SIZE
}

impl EmulatedQueue {
    pub(crate) fn new(
        agent: AgentHandle,
        size: u32,
        kind: u32,
        callback: Option<QueueErrorCall>,
    ) -> Result<Arc<Self>, HsaStatus> {
        let device = gpu_of(agent)?.executor.make_device().map_err(|_| HsaStatus::ERROR)?;
        let pages = PageMapping::new(mapping_size(size)).ok_or(HsaStatus::OUT_OF_RESOURCES)?;
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
            completed: AtomicU64::new(0),
            is_busy: AtomicBool::new(false),
            bell: QueueDoorbell::register_signal(doorbell.handle()),
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
            self.packet_header(number).store(packet_format::INVALID, Ordering::Release);
        }
    }

    fn index(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: a word of the record, which lives as long as the queue and is accessed as an atomic.
        unsafe { AtomicU64::from_ptr((self.record + offset) as *mut u64) }
    }

    pub(crate) fn write_index(&self) -> &AtomicU64 {
        self.index(offset_of!(QueueRecord, write_index))
    }

    pub(crate) fn read_index(&self) -> &AtomicU64 {
        self.index(offset_of!(QueueRecord, read_index))
    }

    fn packet_place(&self, number: u64) -> usize {
        self.ring + (number % self.size) as usize * PACKET_SIZE
    }

    /// The header of a packet, which the program writes last.
    pub(crate) fn packet_header(&self, number: u64) -> &AtomicU16 {
        // SAFETY: a packet of the ring, which lives as long as the queue.
        unsafe { AtomicU16::from_ptr(self.packet_place(number) as *mut u16) }
    }

    pub(crate) fn read_packet(&self, number: u64) -> QueuePacket {
        // SAFETY: a packet of the ring; the program has written it before its header, which was read with acquire order.
        let bytes = unsafe { (self.packet_place(number) as *const [u8; PACKET_SIZE]).read() };
        QueuePacket { bytes, address: self.packet_place(number) as u64, number }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Executes no further kernel.
    pub(crate) fn stop(&self) {
        executor::lose_gpu();
        self.has_failed.store(true, Ordering::Release);
    }

    /// Runs `process` for a packet.
    pub(crate) fn complete_packet(&self, number: u64, process: impl FnOnce()) {
        self.is_busy.store(true, Ordering::SeqCst);
        process();
        self.completed.store(number + 1, Ordering::SeqCst);
        self.is_busy.store(false, Ordering::SeqCst);
    }

    /// Whether something of the packets below that index is still to come. The read index does not say it: a packet's place is free
    /// before its signal is set, and an error ends a queue before the program has been told of it.
    pub(crate) fn is_behind(&self, written: u64) -> bool {
        let is_executing = !self.has_failed.load(Ordering::SeqCst) && self.completed.load(Ordering::SeqCst) < written;
        is_executing || self.is_busy.load(Ordering::SeqCst)
    }

    /// Tells the program that an error has ended the queue.
    pub(crate) fn fail_with_status(&self, status: HsaStatus) {
        self.stop();
        if let Some(QueueErrorCall { function, data }) = self.callback {
            // SAFETY: the callback that the program registered for this queue, with its own data.
            unsafe { function(status, self.record as *mut QueueHeader, data as *mut c_void) };
        }
    }

    /// Ends the thread, and frees the memory.
    pub(crate) fn destroy(&self) {
        self.is_over.store(true, Ordering::Release);
        self.device.stop.store(true, Ordering::Release);
        self.bell.ring();
        wake_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A callback of the queue may destroy it, on its own thread.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = thread.join();
            doorbell::remove_doorbell(self.doorbell.handle());
            self.doorbell.destroy();
            if let Some(pages) = self.pages.lock().unwrap_or_else(PoisonError::into_inner).take() {
                release_pages(pages);
            }
        }
    }
}
