//! Handles that are numbers: a wrong or old one is found to be none.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Objects by the handles that programs have.
pub(crate) struct HandleTable<T> {
    next: AtomicU64,
    objects: RwLock<HashMap<u64, Arc<T>>>,
}

impl<T> HandleTable<T> {
    /// `kind` is the upper byte of each handle, so that handles of two kinds differ.
    pub(crate) fn new(kind: u8) -> Self {
        Self { next: AtomicU64::new((u64::from(kind) << 56) + 1), objects: RwLock::default() }
    }

    pub(crate) fn add(&self, object: T) -> u64 {
        self.add_shared(Arc::new(object))
    }

    pub(crate) fn add_shared(&self, object: Arc<T>) -> u64 {
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        self.objects.write().unwrap_or_else(PoisonError::into_inner).insert(handle, object);
        handle
    }

    pub(crate) fn get(&self, handle: u64) -> Option<Arc<T>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).get(&handle).cloned()
    }

    pub(crate) fn remove(&self, handle: u64) -> Option<Arc<T>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).remove(&handle)
    }

    /// All objects with their handles, in the order in which they were made.
    pub(crate) fn sorted_objects(&self) -> Vec<(u64, Arc<T>)> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = objects.iter().map(|(handle, object)| (*handle, object.clone())).collect();
        all.sort_unstable_by_key(|(handle, _)| *handle);
        all
    }
}
