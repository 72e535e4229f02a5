//! The command's allocator and its settings.
//!
//! Invariants: where the allocator rejects a setting, or is a different one, more memory is used and nothing else
//! differs.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod jemalloc {
    use std::ffi::{CStr, c_int};
    use std::ptr;
    use tikv_jemallocator::Jemalloc;

    #[global_allocator]
    static ALLOCATOR: Jemalloc = Jemalloc;

    /// Settings for how long freed pages are kept: for new arenas and for the first one.
    const KEPT: [&CStr; 4] =
        [c"arenas.dirty_decay_ms", c"arenas.muzzy_decay_ms", c"arena.0.dirty_decay_ms", c"arena.0.muzzy_decay_ms"];
    /// All arenas: `MALLCTL_ARENAS_ALL` of jemalloc.h.
    const PURGE: &CStr = c"arena.4096.purge";

    /// Makes the allocator return freed pages at once. By default jemalloc keeps them for ten seconds, which is more
    /// memory than the containers in work need. Call it while the process has a single thread.
    pub(crate) fn keep_little() {
        for name in KEPT {
            let _ = tell(name, Some(0));
        }
    }

    /// Returns freed pages to the system. It takes milliseconds, so call it at the end of long steps.
    pub(crate) fn give_back() {
        let _ = tell(PURGE, None);
    }

    #[allow(unsafe_code, reason = "jemalloc can only be told by a foreign function")]
    fn tell(name: &CStr, value: Option<isize>) -> c_int {
        let (new, size) = match &value {
            Some(value) => (ptr::from_ref(value).cast_mut().cast(), size_of::<isize>()),
            None => (ptr::null_mut(), 0),
        };
        // SAFETY: the name ends in a zero. No value is requested, so both pointers for an answer may be null; `new` is
        // null or points to a value of the size that is stated, which jemalloc only reads before it returns. Its
        // internal state is protected by its own locks.
        unsafe { tikv_jemalloc_sys::mallctl(name.as_ptr(), ptr::null_mut(), ptr::null_mut(), new, size) }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn jemalloc_knows_what_it_is_told() {
            for name in KEPT {
                assert_eq!(tell(name, Some(0)), 0, "{name:?}");
            }
            assert_eq!(tell(PURGE, None), 0);
            assert_ne!(tell(c"arena.0.nothing", None), 0);
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) use jemalloc::{give_back, keep_little};

/// Other allocators keep their defaults.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn keep_little() {}

/// Other allocators keep their defaults.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}
