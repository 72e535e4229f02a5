//! Answers of the dynamic loader, kept until it unloads a file.
//!
//! Some libraries ask for properties in every call of theirs, and a question to the loader takes as long as hundreds of such
//! calls. An answer for an address is valid as long as the file is loaded that has the address; the loader counts the files
//! that it has unloaded.
#![allow(unsafe_code)] // one question to the dynamic loader

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Callers are places in code; a program that makes code has more of them than are worth keeping.
const MAX_ANSWERS: usize = 4096;

/// Answers to questions that were asked before, by question.
pub(crate) struct Cache<K, V> {
    answers: OnceLock<Mutex<CachedAnswers<K, V>>>,
}

struct CachedAnswers<K, V> {
    /// Files that the loader had unloaded when the answers were given.
    unloaded: u64,
    of: HashMap<K, V>,
}

impl<K, V> CachedAnswers<K, V> {
    fn new(unloaded: u64) -> Self {
        Self { unloaded, of: HashMap::new() }
    }
}

impl<K: Eq + Hash, V: Clone> Cache<K, V> {
    pub(crate) const fn new() -> Self {
        Self { answers: OnceLock::new() }
    }

    /// The answer, given by `answer` if it is not known.
    pub(crate) fn get(&self, question: K, answer: impl FnOnce() -> V) -> V {
        let unloaded = unloaded_files();
        if let Some(known) = self.lock(unloaded).of.get(&question) {
            return known.clone();
        }
        // Without the lock: the loader has one of its own, under which it may call code that asks.
        let answer = answer();
        self.lock(unloaded).of.insert(question, answer.clone());
        answer
    }

    /// The answers that are still valid.
    fn lock(&self, unloaded: u64) -> MutexGuard<'_, CachedAnswers<K, V>> {
        let answers = self.answers.get_or_init(|| Mutex::new(CachedAnswers::new(unloaded)));
        // A map is as good after a panic as before.
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.unloaded != unloaded || answers.of.len() >= MAX_ANSWERS {
            *answers = CachedAnswers::new(unloaded);
        }
        answers
    }
}

/// The number of files that the loader has unloaded.
fn unloaded_files() -> u64 {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: libc::size_t, data: *mut c_void) -> c_int {
        // SAFETY: the loader's structure, and the number below. Every glibc that HIP runs on has the counter.
        unsafe { *data.cast::<u64>() = (*info).dlpi_subs };
        1 // The first file is enough.
    }
    let mut count = 0u64;
    // SAFETY: the function is called before this one returns.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut count).cast()) };
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_asked_for_once() {
        static CACHE: Cache<u32, u32> = Cache::new();
        let unloaded = unloaded_files();
        assert_eq!((CACHE.get(1, || 10), CACHE.get(1, || 11), CACHE.get(2, || 20)), (10, 10, 20));
        // After a file was unloaded, all are asked for again.
        assert!(CACHE.lock(unloaded + 1).of.is_empty());
        for question in 0..2 * MAX_ANSWERS as u32 {
            assert_eq!(CACHE.get(question, || question), question);
            assert!(CACHE.lock(unloaded).of.len() <= MAX_ANSWERS);
        }
    }
}
