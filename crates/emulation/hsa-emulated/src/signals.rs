//! Signals: values in memory that host and kernels change and wait for.
//!
//! A handle is the address of the structure, because kernels add to its value themselves. So a waiting thread is woken by
//! changes of the host, and looks by itself now and then for those of kernels.
//!
//! Invariants: handles not of this module are never dereferenced. Memory of signals is reused, never unmapped.
#![allow(unsafe_code)] // the functions of HSA's interface, and words that kernels change

use crate::abi::{AgentHandle, SIGNAL_KIND_USER, SignalGroupHandle, SignalHandle, SignalRecord, TimeSpan};
use crate::boundary::{caller_slice, hsa_api, not_null, or_after_panic, put_result};
use crate::clock::current_ticks;
use crate::doorbell;
use crate::handles::HandleTable;
use crate::memory::allocations::add_pages;
use crate::memory::mapping::PageMapping;
use crate::status::HsaStatus;
use crate::users;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Signals of one block of memory.
const BLOCK: usize = 1024;
/// The longest time between two looks at a value that a kernel may change.
const LOOK: Duration = Duration::from_millis(1);

/// Blocks of signals, and those that are free.
struct SignalStore {
    blocks: RwLock<Vec<usize>>,
    free: Mutex<VecDeque<usize>>,
}

static STORE: SignalStore = SignalStore { blocks: RwLock::new(Vec::new()), free: Mutex::new(VecDeque::new()) };

impl SignalStore {
    fn take_free(&self) -> Option<usize> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.is_empty() {
            let start = add_pages(PageMapping::new(BLOCK * size_of::<SignalRecord>())?);
            self.blocks.write().unwrap_or_else(PoisonError::into_inner).push(start);
            free.extend((0..BLOCK).map(|number| start + number * size_of::<SignalRecord>()));
        }
        free.pop_front()
    }

    fn give_back(&self, place: usize) {
        // At the other end: a handle that is used too late meets a new signal as late as possible.
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push_back(place);
    }

    /// Whether a handle is a place of a block.
    fn has(&self, place: usize) -> bool {
        let blocks = self.blocks.read().unwrap_or_else(PoisonError::into_inner);
        let size = BLOCK * size_of::<SignalRecord>();
        place.is_multiple_of(size_of::<SignalRecord>()) && blocks.iter().any(|start| place.wrapping_sub(*start) < size)
    }
}

/// A signal, as its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EmulatedSignal(usize);

impl EmulatedSignal {
    pub(crate) fn new(kind: i64, value: i64) -> Option<Self> {
        let signal = Self(STORE.take_free()?);
        let record = SignalRecord {
            kind,
            value,
            event_mailbox: 0,
            event_id: 0,
            reserved1: 0,
            start_ts: 0,
            end_ts: 0,
            queue: 0,
            reserved3: [0; 2],
        };
        // SAFETY: a free place, which nothing else uses.
        unsafe { (signal.0 as *mut SignalRecord).write(record) };
        Some(signal)
    }

    /// The signal of a handle; `None` for a handle that is not a signal's.
    pub(crate) fn find(handle: SignalHandle) -> Option<Self> {
        let signal = Self(usize::try_from(handle.0).ok()?);
        (STORE.has(signal.0) && signal.word_at(0).load(Ordering::Relaxed) != 0).then_some(signal)
    }

    pub(crate) fn handle(self) -> SignalHandle {
        SignalHandle(self.0 as u64)
    }

    /// A word of the structure.
    fn word_at(self, offset: usize) -> &'static AtomicI64 {
        // SAFETY: places of blocks are never unmapped, and their words are accessed as atomics alone.
        unsafe { AtomicI64::from_ptr((self.0 + offset) as *mut i64) }
    }

    pub(crate) fn kind(self) -> i64 {
        self.word_at(std::mem::offset_of!(SignalRecord, kind)).load(Ordering::Relaxed)
    }

    /// The value, which kernels change as well.
    pub(crate) fn value(self) -> &'static AtomicI64 {
        self.word_at(std::mem::offset_of!(SignalRecord, value))
    }

    pub(crate) fn load(self) -> i64 {
        self.value().load(Ordering::SeqCst)
    }

    pub(crate) fn set_times(self, span: TimeSpan) {
        self.word_at(std::mem::offset_of!(SignalRecord, start_ts)).store(span.start as i64, Ordering::Release);
        self.word_at(std::mem::offset_of!(SignalRecord, end_ts)).store(span.end as i64, Ordering::Release);
    }

    fn times(self) -> TimeSpan {
        TimeSpan {
            start: signal_timestamp_at(std::mem::offset_of!(SignalRecord, start_ts), &self),
            end: signal_timestamp_at(std::mem::offset_of!(SignalRecord, end_ts), &self),
        }
    }

    /// Ends it. Its kind becomes invalid.
    pub(crate) fn destroy(self) {
        self.word_at(std::mem::offset_of!(SignalRecord, kind)).store(0, Ordering::Release);
        STORE.give_back(self.0);
    }
}

fn signal_timestamp_at(offset: usize, signal: &EmulatedSignal) -> u64 {
    signal.word_at(offset).load(Ordering::Acquire) as u64
}

/// Ends a packet or copy: its times, and the completion signal one less. Nothing for the handle 0.
pub(crate) fn complete_signal(handle: SignalHandle, start: u64) {
    if let Some(signal) = EmulatedSignal::find(handle) {
        signal.set_times(TimeSpan { start, end: current_ticks() });
        signal.value().fetch_sub(1, Ordering::SeqCst);
    }
    wake_all();
}

/// A signal that the program created.
pub(crate) fn find_user_signal(handle: SignalHandle) -> Result<EmulatedSignal, HsaStatus> {
    if handle.0 == 0 {
        return Err(HsaStatus::INVALID_ARGUMENT);
    }
    let found = EmulatedSignal::find(handle).filter(|found| found.kind() == SIGNAL_KIND_USER);
    found.ok_or(HsaStatus::INVALID_SIGNAL)
}

/// Ends a signal that the program created.
pub(crate) fn destroy_user_signal(signal: EmulatedSignal) {
    signal.destroy();
    LIVE.fetch_sub(1, Ordering::Relaxed);
}

/// A condition of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignalCondition {
    kind: u32,
    wanted: i64,
}

impl SignalCondition {
    pub(crate) fn new(kind: u32, wanted: i64) -> Self {
        Self { kind, wanted }
    }

    pub(crate) fn holds(self, value: i64) -> bool {
        match self.kind {
            0 => value == self.wanted,
            1 => value != self.wanted,
            2 => value < self.wanted,
            _ => value >= self.wanted,
        }
    }
}

static CHANGED: Condvar = Condvar::new();
static CHANGE: Mutex<()> = Mutex::new(());
static WAITING: AtomicUsize = AtomicUsize::new(0);

/// Wakes all threads that wait for a change.
pub(crate) fn wake_all() {
    if WAITING.load(Ordering::SeqCst) > 0 {
        drop(CHANGE.lock().unwrap_or_else(PoisonError::into_inner));
        CHANGED.notify_all();
    }
}

/// Waits for a change, at most a moment: kernels change signals without waking anyone.
pub(crate) fn wait_a_moment(is_met: impl Fn() -> bool) {
    WAITING.fetch_add(1, Ordering::SeqCst);
    let guard = CHANGE.lock().unwrap_or_else(PoisonError::into_inner);
    // A change between the caller's look and this place has found no one to wake.
    if !is_met() {
        drop(CHANGED.wait_timeout(guard, LOOK));
    }
    WAITING.fetch_sub(1, Ordering::SeqCst);
}

/// Waits until a condition holds or the time is over; the last value.
fn wait_for_condition(handle: SignalHandle, condition: SignalCondition, timeout: u64) -> i64 {
    let Some(signal) = EmulatedSignal::find(handle) else { return 0 };
    // No thread of this process would change it: HIP waits when a program ends.
    if users::is_forked_child() {
        return 0;
    }
    let until = current_ticks().saturating_add(timeout);
    loop {
        let value = signal.load();
        if condition.holds(value) || current_ticks() >= until {
            return value;
        }
        wait_a_moment(|| condition.holds(signal.load()));
    }
}

/// A signal and the condition for which a thread or a handler waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WatchedSignal {
    pub(crate) signal: EmulatedSignal,
    pub(crate) condition: SignalCondition,
}

impl WatchedSignal {
    pub(crate) fn is_satisfied(&self) -> bool {
        self.condition.holds(self.signal.load())
    }
}

/// Waits for signals until `enough` of their conditions hold; the number of the last one that does.
fn wait_many(signals: &[WatchedSignal], enough: usize, timeout: u64) -> Option<usize> {
    let until = current_ticks().saturating_add(timeout);
    loop {
        if let Some(number) = first_satisfied_signal(signals, enough) {
            return Some(number);
        }
        if current_ticks() >= until {
            return None;
        }
        wait_a_moment(|| first_satisfied_signal(signals, enough).is_some());
    }
}

fn first_satisfied_signal(signals: &[WatchedSignal], enough: usize) -> Option<usize> {
    let mut met = signals.iter().enumerate().filter(|(_, watched)| watched.is_satisfied());
    met.nth(enough - 1).map(|(number, _)| number)
}

/// Signals with their conditions, of the arrays of a caller.
///
/// # Safety
/// The arrays have that many elements.
unsafe fn caller_conditions(
    count: u32,
    signals: *const SignalHandle,
    kinds: *const u32,
    values: *const i64,
) -> Result<Vec<WatchedSignal>, HsaStatus> {
    // SAFETY: the caller's promise.
    let (signals, kinds, values) =
        unsafe { (caller_slice(signals, count)?, caller_slice(kinds, count)?, caller_slice(values, count)?) };
    let rows = signals.iter().zip(kinds).zip(values);
    rows.map(|((signal, kind), value)| {
        let signal = EmulatedSignal::find(*signal).ok_or(HsaStatus::INVALID_SIGNAL)?;
        Ok(WatchedSignal { signal, condition: SignalCondition::new(*kind, *value) })
    })
    .collect()
}

/// Changes a value and wakes those who wait for it; the old one.
fn change_value(handle: SignalHandle, change: impl Fn(i64) -> i64) -> i64 {
    let Some(signal) = EmulatedSignal::find(handle) else { return 0 };
    let old = signal.value().fetch_update(Ordering::SeqCst, Ordering::SeqCst, |value| Some(change(value)));
    if signal.kind() == SIGNAL_KIND_USER {
        wake_all()
    } else {
        doorbell::ring_doorbell(signal.handle())
    }
    old.unwrap_or_default()
}

/// Defines functions without a status for every memory order; each is done in the strictest one.
macro_rules! in_every_order {
    ($($operation:ident($value:ident) = $new:expr, [$($name:ident)*];)*) => { $($(
        #[unsafe(export_name = concat!("hotswap_own_", stringify!($name)))]
        extern "C" fn $name(signal: SignalHandle, $value: i64) {
            or_after_panic(stringify!($name), (), || { change_value(signal, $new); });
        }
    )*)* };
}

in_every_order! {
    add(by) = |old| old.wrapping_add(by), [hsa_signal_add_relaxed hsa_signal_add_acquire hsa_signal_add_release
        hsa_signal_add_acq_rel hsa_signal_add_scacquire hsa_signal_add_screlease hsa_signal_add_scacq_screl];
    subtract(by) = |old| old.wrapping_sub(by), [hsa_signal_subtract_relaxed hsa_signal_subtract_acquire
        hsa_signal_subtract_release hsa_signal_subtract_acq_rel hsa_signal_subtract_scacquire
        hsa_signal_subtract_screlease hsa_signal_subtract_scacq_screl];
    and(by) = |old| old & by, [hsa_signal_and_relaxed hsa_signal_and_acquire hsa_signal_and_release hsa_signal_and_acq_rel
        hsa_signal_and_scacquire hsa_signal_and_screlease hsa_signal_and_scacq_screl];
    or(by) = |old| old | by, [hsa_signal_or_relaxed hsa_signal_or_acquire hsa_signal_or_release hsa_signal_or_acq_rel
        hsa_signal_or_scacquire hsa_signal_or_screlease hsa_signal_or_scacq_screl];
    xor(by) = |old| old ^ by, [hsa_signal_xor_relaxed hsa_signal_xor_acquire hsa_signal_xor_release hsa_signal_xor_acq_rel
        hsa_signal_xor_scacquire hsa_signal_xor_screlease hsa_signal_xor_scacq_screl];
    store(by) = |_| by, [hsa_signal_store_relaxed hsa_signal_store_release hsa_signal_store_screlease];
}

/// Defines functions that return a value for every memory order.
macro_rules! values_in_every_order {
    ($($arguments:tt = $value:expr, [$($name:ident)*];)*) => {
        $($(values_in_every_order!(@ $name $arguments $value);)*)*
    };
    (@ $name:ident ($($argument:ident: $kind:ty),*) $value:expr) => {
        #[unsafe(export_name = concat!("hotswap_own_", stringify!($name)))]
        extern "C" fn $name($($argument: $kind),*) -> i64 {
            or_after_panic(stringify!($name), 0, || $value)
        }
    };
}

values_in_every_order! {
    (signal: SignalHandle) = EmulatedSignal::find(signal).map_or(0, EmulatedSignal::load),
        [hsa_signal_load_relaxed hsa_signal_load_acquire hsa_signal_load_scacquire];
    (signal: SignalHandle, new: i64) = change_value(signal, |_| new), [hsa_signal_exchange_relaxed hsa_signal_exchange_acquire
        hsa_signal_exchange_release hsa_signal_exchange_acq_rel hsa_signal_exchange_scacquire
        hsa_signal_exchange_screlease hsa_signal_exchange_scacq_screl];
    (signal: SignalHandle, expected: i64, new: i64) = change_value(signal, |old| if old == expected { new } else { old }),
        [hsa_signal_cas_relaxed hsa_signal_cas_acquire hsa_signal_cas_release hsa_signal_cas_acq_rel
        hsa_signal_cas_scacquire hsa_signal_cas_screlease hsa_signal_cas_scacq_screl];
    (signal: SignalHandle, kind: u32, value: i64, timeout: u64, _hint: u32) =
        wait_for_condition(signal, SignalCondition::new(kind, value), timeout),
        [hsa_signal_wait_relaxed hsa_signal_wait_acquire hsa_signal_wait_scacquire];
}

/// Stores without waking anyone.
fn store_silently(signal: SignalHandle, value: i64) {
    if let Some(signal) = EmulatedSignal::find(signal) {
        signal.value().store(value, Ordering::SeqCst);
    }
}

#[unsafe(export_name = "hotswap_own_hsa_signal_silent_store_relaxed")]
extern "C" fn hsa_signal_silent_store_relaxed(signal: SignalHandle, value: i64) {
    or_after_panic("hsa_signal_silent_store_relaxed", (), || store_silently(signal, value));
}

#[unsafe(export_name = "hotswap_own_hsa_signal_silent_store_screlease")]
extern "C" fn hsa_signal_silent_store_screlease(signal: SignalHandle, value: i64) {
    or_after_panic("hsa_signal_silent_store_screlease", (), || store_silently(signal, value));
}

/// # Safety
/// The arrays have that many elements.
unsafe fn wait_list(
    (count, signals, kinds, values): (u32, *const SignalHandle, *const u32, *const i64),
    all: bool,
    timeout: u64,
) -> Option<(usize, Vec<i64>)> {
    // SAFETY: the caller's promise.
    let rows = unsafe { caller_conditions(count, signals, kinds, values) }.ok().filter(|rows| !rows.is_empty())?;
    let met = wait_many(&rows, if all { rows.len() } else { 1 }, timeout)?;
    Some((met, rows.iter().map(|watched| watched.signal.load()).collect()))
}

#[unsafe(export_name = "hotswap_own_hsa_amd_signal_wait_any")]
unsafe extern "C" fn hsa_amd_signal_wait_any(
    count: u32,
    signals: *const SignalHandle,
    kinds: *const u32,
    values: *const i64,
    timeout: u64,
    _hint: u32,
    satisfying: *mut i64,
) -> u32 {
    or_after_panic("hsa_amd_signal_wait_any", u32::MAX, || {
        // SAFETY: the caller's arrays have `count` elements.
        let found = unsafe { wait_list((count, signals, kinds, values), false, timeout) };
        let Some((number, values)) = found else { return u32::MAX };
        // SAFETY: null, or the caller's place.
        let _ = unsafe { put_result(satisfying, values[number]) };
        number as u32
    })
}

#[unsafe(export_name = "hotswap_own_hsa_amd_signal_wait_all")]
unsafe extern "C" fn hsa_amd_signal_wait_all(
    count: u32,
    signals: *const SignalHandle,
    kinds: *const u32,
    values: *const i64,
    timeout: u64,
    _hint: u32,
    satisfying: *mut i64,
) -> u32 {
    or_after_panic("hsa_amd_signal_wait_all", u32::MAX, || {
        // SAFETY: the caller's arrays have `count` elements.
        let found = unsafe { wait_list((count, signals, kinds, values), true, timeout) };
        let Some((_, values)) = found else { return u32::MAX };
        for (number, value) in values.iter().enumerate().filter(|_| !satisfying.is_null()) {
            // SAFETY: the caller's array has `count` elements.
            unsafe { satisfying.add(number).write_unaligned(*value) };
        }
        0
    })
}

static GROUPS: LazyLock<HandleTable<Vec<SignalHandle>>> = LazyLock::new(|| HandleTable::new(0x51));
/// Signals that were created and not destroyed.
static LIVE: AtomicU64 = AtomicU64::new(0);

/// # Safety
/// `signals`, `to` and `value` are the caller's.
unsafe fn wait_group(
    group: SignalGroupHandle,
    kinds: *const u32,
    values: *const i64,
    to: *mut SignalHandle,
    value: *mut i64,
) -> Result<(), HsaStatus> {
    let signals = GROUPS.get(group.0).ok_or(HsaStatus::INVALID_SIGNAL_GROUP)?;
    // SAFETY: the arrays have an element for each signal of the group.
    let rows = unsafe { caller_conditions(signals.len() as u32, signals.as_ptr(), kinds, values)? };
    let number = wait_many(&rows, 1, u64::MAX).ok_or(HsaStatus::ERROR)?;
    // SAFETY: null, or the caller's places.
    unsafe {
        put_result(to, signals[number])?;
        put_result(value, rows[number].signal.load())
    }
}

fn create_signal(value: i64) -> Result<SignalHandle, HsaStatus> {
    let signal = EmulatedSignal::new(SIGNAL_KIND_USER, value).ok_or(HsaStatus::OUT_OF_RESOURCES)?;
    LIVE.fetch_add(1, Ordering::Relaxed);
    Ok(signal.handle())
}

hsa_api! {
    fn hsa_signal_create(value: i64, _count: u32, _agents: *const AgentHandle, signal: *mut SignalHandle) {
        not_null(signal)?;
        put_result(signal, create_signal(value)?)
    }

    fn hsa_amd_signal_create(
        value: i64, _count: u32, _agents: *const AgentHandle, _attributes: u64, signal: *mut SignalHandle,
    ) {
        not_null(signal)?;
        put_result(signal, create_signal(value)?)
    }

    fn hsa_amd_signal_value_pointer(signal: SignalHandle, pointer: *mut *mut i64) {
        let found = EmulatedSignal::find(signal).ok_or(HsaStatus::INVALID_SIGNAL)?;
        put_result(pointer, found.value().as_ptr())
    }

    fn hsa_amd_profiling_get_dispatch_time(_agent: AgentHandle, signal: SignalHandle, span: *mut TimeSpan) {
        put_result(span, EmulatedSignal::find(signal).ok_or(HsaStatus::INVALID_SIGNAL)?.times())
    }

    fn hsa_amd_profiling_get_async_copy_time(signal: SignalHandle, span: *mut TimeSpan) {
        put_result(span, EmulatedSignal::find(signal).ok_or(HsaStatus::INVALID_SIGNAL)?.times())
    }

    fn hsa_amd_profiling_async_copy_enable(_enabled: bool) {
        // Times are always taken.
        Ok(())
    }

    fn hsa_signal_group_create(
        count: u32, signals: *const SignalHandle, _consumers: u32, _agents: *const c_void,
        group: *mut SignalGroupHandle,
    ) {
        not_null(group)?;
        let signals = caller_slice(signals, count)?;
        if signals.is_empty() || signals.iter().any(|signal| EmulatedSignal::find(*signal).is_none()) {
            return Err(HsaStatus::INVALID_ARGUMENT);
        }
        put_result(group, SignalGroupHandle(GROUPS.add(signals.to_vec())))
    }

    fn hsa_signal_group_destroy(group: SignalGroupHandle) {
        GROUPS.remove(group.0).map(drop).ok_or(HsaStatus::INVALID_SIGNAL_GROUP)
    }

    fn hsa_signal_group_wait_any_scacquire(
        group: SignalGroupHandle, kinds: *const u32, values: *const i64, _hint: u32, signal: *mut SignalHandle,
        value: *mut i64,
    ) {
        wait_group(group, kinds, values, signal, value)
    }

    fn hsa_signal_group_wait_any_relaxed(
        group: SignalGroupHandle, kinds: *const u32, values: *const i64, _hint: u32, signal: *mut SignalHandle,
        value: *mut i64,
    ) {
        wait_group(group, kinds, values, signal, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_is_none_is_not_followed() {
        let signal = EmulatedSignal::new(SIGNAL_KIND_USER, 5).unwrap();
        let handle = signal.handle();
        assert_eq!(hsa_signal_load_relaxed(handle), 5);
        for wrong in [0, 1, handle.0 + 8, u64::MAX, 0x1234_5678_9abc] {
            assert!(EmulatedSignal::find(SignalHandle(wrong)).is_none(), "{wrong:x}");
            hsa_signal_store_relaxed(SignalHandle(wrong), 1);
        }
        signal.destroy();
        assert!(EmulatedSignal::find(handle).is_none());
    }

    #[test]
    fn conditions_are_those_of_hsa() {
        let table =
            [(0, [false, true, false]), (1, [true, false, true]), (2, [true, false, false]), (3, [false, true, true])];
        for (kind, expected) in table {
            assert_eq!([-1, 0, 1].map(|value| SignalCondition::new(kind, 0).holds(value)), expected);
        }
    }

    #[test]
    fn a_wait_ends_with_the_change_or_the_time() {
        let signal = EmulatedSignal::new(SIGNAL_KIND_USER, 1).unwrap();
        let handle = signal.handle();
        assert_eq!(hsa_signal_wait_scacquire(handle, 2, 1, 1000, 0), 1);
        let other = std::thread::spawn(move || hsa_signal_wait_scacquire(handle, 2, 1, u64::MAX, 0));
        hsa_signal_subtract_screlease(handle, 1);
        assert_eq!(other.join().unwrap(), 0);
        assert_eq!((hsa_signal_cas_relaxed(handle, 0, 7), hsa_signal_exchange_relaxed(handle, 9)), (0, 7));
        assert_eq!(hsa_signal_load_scacquire(handle), 9);
    }
}
