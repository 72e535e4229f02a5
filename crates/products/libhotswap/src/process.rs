//! Copies of memory of this process that may be gone: the bytes from which a runtime loaded a code object belong to the
//! program, which may have freed them.
#![allow(unsafe_code)] // a system call that reads memory, with the proof at the call

/// A larger object is not one that a runtime loaded.
const MOST: u64 = 4 << 30;

/// A copy of `size` bytes at that address; `None` where not all of them can be read.
pub(crate) fn copy_of_memory(address: u64, size: u64) -> Option<Vec<u8>> {
    let (start, size) = (usize::try_from(address).ok()?, usize::try_from(size).ok().filter(|_| size <= MOST)?);
    let mut bytes: Vec<u8> = Vec::new();
    bytes.try_reserve_exact(size).ok()?;
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: size };
    let remote = libc::iovec { iov_base: start as *mut libc::c_void, iov_len: size };
    // SAFETY: `local` is the room of `bytes`, which nothing else refers to. The kernel checks the other addresses, and
    // reports those that are not there.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    if usize::try_from(read).ok()? != size {
        return None;
    }
    // SAFETY: the kernel has written that many bytes into the reserved room.
    unsafe { bytes.set_len(size) };
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::copy_of_memory;

    #[test]
    fn what_is_gone_is_no_crash() {
        let bytes = vec![7_u8; 100_000];
        assert_eq!(copy_of_memory(bytes.as_ptr() as u64, 100_000), Some(bytes));
        assert_eq!(copy_of_memory(16, 100), None);
        assert_eq!(copy_of_memory(0, u64::MAX), None);
        assert_eq!(copy_of_memory(u64::MAX, 10), None);
    }
}
