//! The interface to libc: files, memory, signals, loaded libraries. Safe functions around each call.
//!
//! Declared by hand: the object that is linked into users' programs lacks dependencies and needs few functions. The
//! constants are Linux's, the same on x86-64 and AArch64.
#![allow(unsafe_code)] // calls of libc, each with its proof

use crate::bytes::{ByteSource, until_zero};
use crate::text::Text;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;

unsafe extern "C" {
    pub(crate) fn calloc(count: usize, size: usize) -> *mut c_void;
    pub(crate) fn free(memory: *mut c_void);
    pub(crate) fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
    fn clock_gettime(clock: c_int, into: *mut [i64; 2]) -> c_int;
    fn close(file: c_int) -> c_int;
    fn flock(file: c_int, operation: c_int) -> c_int;
    fn fstat(file: c_int, into: *mut [u64; 32]) -> c_int;
    fn getauxval(what: usize) -> usize;
    fn getenv(name: *const c_char) -> *const c_char;
    fn gethostname(into: *mut u8, size: usize) -> c_int;
    fn getpid() -> c_int;
    fn mkdir(path: *const u8, mode: u32) -> c_int;
    fn open(path: *const u8, flags: c_int, ...) -> c_int;
    fn pread(file: c_int, into: *mut u8, size: usize, offset: i64) -> isize;
    fn process_vm_readv(id: c_int, to: *const IoVec, n: usize, from: *const IoVec, m: usize, flags: usize) -> isize;
    fn pthread_self() -> usize;
    fn pthread_sigmask(how: c_int, set: *const SignalSet, old: *mut SignalSet) -> c_int;
    fn read(file: c_int, into: *mut u8, size: usize) -> isize;
    fn rename(from: *const u8, to: *const u8) -> c_int;
    fn sched_yield() -> c_int;
    fn sigaddset(set: *mut SignalSet, signal: c_int) -> c_int;
    fn sigemptyset(set: *mut SignalSet) -> c_int;
    fn sigismember(set: *const SignalSet, signal: c_int) -> c_int;
    fn sigpending(set: *mut SignalSet) -> c_int;
    fn sigtimedwait(set: *const SignalSet, info: *mut c_void, time: *const [i64; 2]) -> c_int;
    fn syscall(number: isize, ...) -> isize;
    fn unlink(path: *const u8) -> c_int;
    fn usleep(microseconds: u32) -> c_int;
    fn write(file: c_int, from: *const u8, size: usize) -> isize;
    fn writev(file: c_int, parts: *const IoVec, count: c_int) -> isize;
}

/// `struct iovec` of `writev`.
#[repr(C)]
#[derive(Clone, Copy)]
struct IoVec {
    start: *const u8,
    size: usize,
}

/// `sigset_t`, a bit for each signal.
pub(crate) type SignalSet = [u64; 16];

const O_WRONLY: c_int = 1;
const O_RDWR: c_int = 2;
const O_CREAT: c_int = 0o100;
const O_EXCL: c_int = 0o200;
const O_CLOEXEC: c_int = 0o2_000_000;
#[cfg(target_arch = "aarch64")]
const O_NOFOLLOW: c_int = 0o100_000;
#[cfg(not(target_arch = "aarch64"))]
const O_NOFOLLOW: c_int = 0o400_000;
#[cfg(target_arch = "aarch64")]
const SYS_KILL: isize = 129;
#[cfg(not(target_arch = "aarch64"))]
const SYS_KILL: isize = 62;
#[cfg(target_arch = "aarch64")]
const SYS_GETTID: isize = 178;
#[cfg(not(target_arch = "aarch64"))]
const SYS_GETTID: isize = 186;
#[cfg(target_arch = "aarch64")]
const SYS_RENAMEAT2: isize = 276;
#[cfg(not(target_arch = "aarch64"))]
const SYS_RENAMEAT2: isize = 316;
const AT_FDCWD: c_int = -100;
const RENAME_NOREPLACE: c_int = 1;
const RENAME_EXCHANGE: c_int = 2;
/// The clock of file times.
const CLOCK_REALTIME_COARSE: c_int = 5;
/// The program has rights that its user lacks.
const AT_SECURE: usize = 23;
const LOCK_EX: c_int = 2;
const EINTR: c_int = 4;
const SIGPIPE: c_int = 13;
const SIGXFSZ: c_int = 25;
const SIG_BLOCK: c_int = 0;
const SIG_SETMASK: c_int = 2;

/// An error number of libc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub c_int);

/// ENOENT: a file or directory is missing.
pub const NOT_THERE: Errno = Errno(2);
/// EEXIST: a new file was there already.
pub const EXISTS: Errno = Errno(17);
pub const TOO_LONG: Errno = Errno(36);
/// ELOOP: a symbolic link, which is not followed.
pub const IS_LINK: Errno = Errno(40);

/// The familiar names, for messages.
const ERRORS: &[ErrorText] = &[
    ErrorText { number: 1, text: b"operation not permitted" },
    ErrorText { number: 2, text: b"no such file or directory" },
    ErrorText { number: 5, text: b"input/output error" },
    ErrorText { number: 13, text: b"permission denied" },
    ErrorText { number: 17, text: b"file exists" },
    ErrorText { number: 20, text: b"not a directory" },
    ErrorText { number: 21, text: b"is a directory" },
    ErrorText { number: 24, text: b"too many open files" },
    ErrorText { number: 27, text: b"file too large" },
    ErrorText { number: 28, text: b"no space left on device" },
    ErrorText { number: 30, text: b"read-only file system" },
    ErrorText { number: 36, text: b"file name too long" },
    ErrorText { number: 40, text: b"it is a symbolic link" },
    ErrorText { number: 122, text: b"disk quota exceeded" },
];

struct ErrorText {
    number: c_int,
    text: &'static [u8],
}

impl Errno {
    /// The text for a message.
    pub fn describe<const N: usize>(self, text: &mut Text<N>) {
        match ERRORS.iter().find(|error| error.number == self.0) {
            Some(error) => text.push(error.text),
            None => text.push(b"error ").number(u64::from(self.0.unsigned_abs())),
        };
    }

    fn last() -> Self {
        // SAFETY: libc returns a place that is valid in this thread.
        Self(unsafe { *__errno_location() })
    }

    fn check(result: c_int) -> Result<c_int, Self> {
        if result < 0 { Err(Self::last()) } else { Ok(result) }
    }
}

/// Preserves `errno` and the pending signals of the program.
pub struct Untouched {
    errno: Errno,
    mask: Option<SignalSet>,
    /// Signals that were pending before, and must remain pending.
    waiting: SignalSet,
}

const WRITE_SIGNALS: [c_int; 2] = [SIGPIPE, SIGXFSZ];

impl Untouched {
    /// From here on, a closed pipe or a limit of file sizes causes an error number and no fatal signal.
    pub fn begin() -> Self {
        let mut made = Self { errno: Errno::last(), mask: None, waiting: [0; 16] };
        let (mut set, mut old) = ([0; 16], [0; 16]);
        // SAFETY: all pointers are to sets of the size that libc has (128 bytes), which live through the calls.
        unsafe {
            sigpending(&mut made.waiting);
            sigemptyset(&mut set);
            for signal in WRITE_SIGNALS {
                sigaddset(&mut set, signal);
            }
            if pthread_sigmask(SIG_BLOCK, &set, &mut old) == 0 {
                made.mask = Some(old);
            }
        }
        made
    }
}

impl Drop for Untouched {
    fn drop(&mut self) {
        if let Some(mask) = &self.mask {
            for signal in WRITE_SIGNALS {
                let mut set = [0; 16];
                // SAFETY: sets as above; a null info is allowed; the time is two words of zero: do not wait.
                unsafe {
                    if sigismember(&self.waiting, signal) == 0 {
                        sigemptyset(&mut set);
                        sigaddset(&mut set, signal);
                        sigtimedwait(&set, ptr::null_mut(), &[0, 0]);
                    }
                }
            }
            // SAFETY: the mask is the one that was read; a null place for the old one is allowed.
            unsafe { pthread_sigmask(SIG_SETMASK, mask, ptr::null_mut()) };
        }
        // SAFETY: libc returns a place that is valid in this thread.
        unsafe { *__errno_location() = self.errno.0 };
    }
}

/// Writes a message to standard error, if that is open.
pub fn say(message: &[u8]) {
    // SAFETY: the pointer and the size are those of a slice. Nothing can be done about a failure.
    unsafe { write(2, message.as_ptr(), message.len()) };
}

/// Whether the program runs with rights that its user lacks (setuid): the user's environment is ignored then.
pub fn is_secure() -> bool {
    // SAFETY: always possible.
    unsafe { getauxval(AT_SECURE) != 0 }
}

/// A variable of the environment. `None` where the program has more rights than its user.
pub fn variable<const N: usize>(name: &CStr) -> Option<Text<N>> {
    if is_secure() {
        return None;
    }
    // SAFETY: a text with its zero. The result is copied at once, as later calls may change the environment.
    let value = unsafe { getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: not null, so a text with its zero, which stays in place as long as the environment is not changed.
    Some(Text::new(unsafe { CStr::from_ptr(value) }.to_bytes()))
}

/// The number of this process.
pub fn process_id() -> u64 {
    // SAFETY: always possible.
    u64::from(unsafe { getpid() }.unsigned_abs())
}

/// Sends a signal to this process. (Each further function of libc costs 90 bytes in a program.)
pub fn send_signal(number: c_int) {
    // SAFETY: three words, as the system call takes them.
    unsafe { syscall(SYS_KILL, getpid(), number) };
}

/// A number that is unique to the thread in the process.
pub fn thread_id() -> usize {
    // SAFETY: always possible.
    unsafe { pthread_self() }
}

/// Lets other threads run.
pub fn pause(microseconds: u32) {
    // SAFETY: both may be called at any time.
    unsafe { if microseconds == 0 { sched_yield() } else { usleep(microseconds) } };
}

pub fn host_name() -> Text<256> {
    let mut name = [0u8; 256];
    // SAFETY: libc writes at most the size that is passed, and the last byte stays zero.
    unsafe { gethostname(name.as_mut_ptr(), name.len() - 1) };
    Text::new(until_zero(&name))
}

/// An open file, closed when dropped.
pub struct OpenFile(c_int);

impl Drop for OpenFile {
    fn drop(&mut self) {
        // SAFETY: we opened it and nothing else closes it.
        unsafe { close(self.0) };
    }
}

/// The mode of opening a file.
#[derive(Debug, Clone, Copy)]
pub enum Open {
    /// For reading and locking; created if it does not exist. A symbolic link is an error.
    Shared,
    /// The same, and must exist.
    Existing,
    /// For writing; must not exist yet.
    New,
}

impl OpenFile {
    /// Opens a file; `path` ends with zero.
    pub fn open<const N: usize>(path: &Text<N>, how: Open) -> Result<Self, Errno> {
        if path.is_cut() {
            return Err(TOO_LONG);
        }
        let flags = match how {
            Open::Shared => O_RDWR | O_CREAT | O_NOFOLLOW,
            Open::Existing => O_RDWR | O_NOFOLLOW,
            Open::New => O_WRONLY | O_CREAT | O_EXCL,
        };
        // SAFETY: a text with its zero, and the mode that O_CREAT requires.
        Errno::check(unsafe { open(path.c_string().as_ptr(), flags | O_CLOEXEC, 0o666 as c_int) }).map(Self)
    }

    /// Device, number and size of the file, and when its content was changed last, in nanoseconds.
    pub fn status(&self) -> Result<[u64; 4], Errno> {
        let mut status = [0u64; 32];
        // SAFETY: `struct stat` has 144 (x86-64) or 128 (AArch64) bytes; there is room for 256.
        Errno::check(unsafe { fstat(self.0, &mut status) })?;
        // Both begin with st_dev and st_ino and have st_size at byte 48, st_mtim at byte 88.
        Ok([status[0], status[1], status[6], nanoseconds(status[11], status[12])])
    }

    /// Waits until no other process holds the lock of the file.
    pub fn lock(&self) -> Result<(), Errno> {
        loop {
            // SAFETY: an open file.
            match Errno::check(unsafe { flock(self.0, LOCK_EX) }) {
                Err(Errno(EINTR)) => {}
                result => return result.map(drop),
            }
        }
    }

    /// Reads until `into` is full or the file ends; returns the number of bytes.
    pub fn read(&self, into: &mut [u8]) -> Result<usize, Errno> {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            // SAFETY: pointer and size of a slice.
            match unsafe { read(self.0, rest.as_mut_ptr(), rest.len()) } {
                0 => break,
                count if count > 0 => done += count.unsigned_abs(),
                _ if Errno::last().0 == EINTR => {}
                _ => return Err(Errno::last()),
            }
        }
        Ok(done)
    }

    /// Writes all parts consecutively.
    pub fn write(&self, parts: [&[u8]; 5]) -> Result<(), Errno> {
        let mut parts = parts.map(|part| IoVec { start: part.as_ptr(), size: part.len() });
        while parts.iter().any(|part| part.size > 0) {
            // SAFETY: each part is the rest of a slice that lives through this function.
            let written = unsafe { writev(self.0, parts.as_ptr(), parts.len() as c_int) };
            if written < 0 && Errno::last().0 != EINTR {
                return Err(Errno::last());
            }
            let mut written = usize::try_from(written).unwrap_or(0);
            for part in &mut parts {
                let done = written.min(part.size);
                // `done` is not more than the rest of the slice, so the pointer stays in it or at its end.
                part.start = part.start.wrapping_add(done);
                part.size -= done;
                written -= done;
            }
        }
        Ok(())
    }

    /// Closes the file; some file systems report a full disk only here.
    pub fn close(self) -> Result<(), Errno> {
        let file = self.0;
        core::mem::forget(self);
        // SAFETY: we opened it, and `drop` will not close it again.
        Errno::check(unsafe { close(file) }).map(drop)
    }
}

fn nanoseconds(seconds: u64, rest: u64) -> u64 {
    seconds.wrapping_mul(1_000_000_000).wrapping_add(rest)
}

/// The time by the clock of file times, in nanoseconds.
pub fn file_time() -> u64 {
    let mut time = [0; 2];
    // SAFETY: `struct timespec` is two words.
    unsafe { clock_gettime(CLOCK_REALTIME_COARSE, &mut time) };
    nanoseconds(time[0].unsigned_abs(), time[1].unsigned_abs())
}

/// Renames a file over another. An existing one is exchanged and removed: some file systems (ext4) write out a file
/// that is renamed over another, and wait for that.
pub fn rename_file<const N: usize>(from: &Text<N>, to: &Text<N>) -> Result<(), Errno> {
    if rename_as(from, to, RENAME_EXCHANGE).is_ok() {
        remove_file(from);
        return Ok(());
    }
    // SAFETY: texts with their zeros.
    Errno::check(unsafe { rename(from.c_string().as_ptr(), to.c_string().as_ptr()) }).map(drop)
}

/// Renames a file to a name that must not exist; over another where the file system cannot tell.
pub fn rename_new<const N: usize>(from: &Text<N>, to: &Text<N>) -> Result<(), Errno> {
    match rename_as(from, to, RENAME_NOREPLACE) {
        Err(error) if error != EXISTS => rename_file(from, to),
        result => result,
    }
}

fn rename_as<const N: usize>(from: &Text<N>, to: &Text<N>, how: c_int) -> Result<(), Errno> {
    let (from, to) = (from.c_string().as_ptr(), to.c_string().as_ptr());
    // SAFETY: texts with their zeros, and the other words of the system call.
    let result = unsafe { syscall(SYS_RENAMEAT2, AT_FDCWD, from, AT_FDCWD, to, how) };
    if result < 0 { Err(Errno::last()) } else { Ok(()) }
}

/// Removes a file, if it exists.
pub fn remove_file<const N: usize>(path: &Text<N>) {
    // SAFETY: a text with its zero.
    unsafe { unlink(path.c_string().as_ptr()) };
}

/// Makes the directories of a file. Failures are detected when the file is opened.
pub fn make_directories<const N: usize>(file: &Text<N>) {
    for (at, _) in file.bytes().iter().enumerate().filter(|(at, byte)| *at > 0 && **byte == b'/') {
        let directory = Text::<N>::new(file.bytes().get(..at).unwrap_or_default());
        // SAFETY: a text with its zero.
        unsafe { mkdir(directory.c_string().as_ptr(), 0o755) };
    }
}

/// Memory of this process that may be unmapped: it is read by the kernel, which does not fault.
pub struct OwnMemory {
    start: usize,
}

impl OwnMemory {
    /// The memory that begins there.
    pub fn at(start: usize) -> Self {
        Self { start }
    }
}

impl ByteSource for OwnMemory {
    fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let Some(from) = usize::try_from(offset).ok().and_then(|offset| self.start.checked_add(offset)) else {
            return false;
        };
        let to = IoVec { start: into.as_mut_ptr(), size: into.len() };
        let part = IoVec { start: from as *const u8, size: into.len() };
        // SAFETY: the kernel writes to `to` only, which is a slice that nothing else uses; `part` is read by the
        // kernel, which returns EFAULT for unmapped memory. The thread's ID is used, because a process whose first
        // thread has ended does not have memory under its own ID.
        let read = unsafe { process_vm_readv(syscall(SYS_GETTID) as c_int, &to, 1, &part, 1, 0) };
        usize::try_from(read) == Ok(into.len()) || read_through_proc(from, into)
    }
}

/// The fallback where containers forbid `process_vm_readv`.
fn read_through_proc(from: usize, into: &mut [u8]) -> bool {
    // SAFETY: a text with its zero; no file is made.
    let Ok(memory) = Errno::check(unsafe { open(c"/proc/thread-self/mem".as_ptr().cast(), O_CLOEXEC) }).map(OpenFile)
    else {
        return false;
    };
    let Ok(offset) = i64::try_from(from) else { return false };
    // SAFETY: pointer and size of a slice.
    let read = unsafe { pread(memory.0, into.as_mut_ptr(), into.len(), offset) };
    usize::try_from(read) == Ok(into.len())
}
