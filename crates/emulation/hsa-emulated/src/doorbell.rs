//! Doorbells: the threads of queues wait at them, and a store to a doorbell's signal rings.

use crate::abi::SignalHandle;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// The longest wait: a kernel may write to a queue without ringing.
const LOOK: Duration = Duration::from_millis(20);

/// The bell of one queue.
#[derive(Debug, Default)]
pub(crate) struct QueueDoorbell {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

static DOORBELLS: RwLock<BTreeMap<SignalHandle, Arc<QueueDoorbell>>> = RwLock::new(BTreeMap::new());

impl QueueDoorbell {
    /// The bell of a signal.
    pub(crate) fn register_signal(signal: SignalHandle) -> Arc<Self> {
        let bell = Arc::<Self>::default();
        DOORBELLS.write().unwrap_or_else(PoisonError::into_inner).insert(signal, bell.clone());
        bell
    }

    pub(crate) fn ring(&self) {
        *self.is_rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rung.notify_one();
    }

    /// Waits until it is rung, or a while.
    pub(crate) fn wait(&self) {
        let is_rung = self.is_rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.rung.wait_timeout_while(is_rung, LOOK, |is_rung| !*is_rung);
        *waited.map_or_else(|error| error.into_inner().0, |(is_rung, _)| is_rung) = false;
    }
}

/// Rings the bell of a signal.
pub(crate) fn ring_doorbell(signal: SignalHandle) {
    if let Some(bell) = DOORBELLS.read().unwrap_or_else(PoisonError::into_inner).get(&signal) {
        bell.ring();
    }
}

/// Forgets the bell of a signal.
pub(crate) fn remove_doorbell(signal: SignalHandle) {
    DOORBELLS.write().unwrap_or_else(PoisonError::into_inner).remove(&signal);
}
