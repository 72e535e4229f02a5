//! System calls that fail: runs a command under ptrace and lets one of its calls end with an error, or move fewer bytes than
//! requested.
//!
//! Calls are counted from the moment at which the program sets its handler of SIGBUS, which is the first thing that HotSwap's
//! programs do: errors of the dynamic loader are the loader's.
//!
//! Invariants: exactly one call is changed, the one of the request. Threads and child processes are followed; a child that starts
//! another program is let go, because the other program is not the one under test. [`run_below`] tests a program that other ones
//! start: a compiler's linker.
//!
//! Absent on purpose: other systems than Linux on x86-64 (see [`is_supported`]), and a judgement of the results.
#![cfg_attr(not(all(target_os = "linux", target_arch = "x86_64")), allow(unused))]

mod counts;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod trace;

pub use counts::ExamCounts;
pub use nix::errno::Errno;
use std::collections::BTreeMap;
use std::io;
use std::process::Command;

/// One call, and its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The name of the call.
    pub call: &'static str,
    /// Its number among the calls of that name, from 0; with a path, among those whose path ends like it.
    pub number: usize,
    /// The end of the call's path argument.
    pub path: Option<String>,
    /// The end that it is given.
    pub effect: Effect,
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It does nothing and returns this error.
    Error(Errno),
    /// It moves half of the bytes.
    Half,
    /// The process is killed before it.
    Kill,
}

/// The end of a traced command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// The exit code; none for a command that a signal has ended.
    pub code: Option<i32>,
    /// The number of calls by name, of those in [`CALLS`].
    pub calls: BTreeMap<&'static str, usize>,
    /// Whether the call of the fault occurred.
    pub is_injected: bool,
    /// The path argument of that call, if it has one.
    pub path: Option<String>,
}

/// A call that can be made to fail.
#[derive(Debug, Clone, Copy)]
pub struct CallRow {
    pub name: &'static str,
    /// Its number on x86-64.
    pub number: u64,
    /// The argument that is a path.
    pub path: Option<usize>,
    /// The argument that is a number of bytes.
    pub bytes: Option<usize>,
    /// The errors that the system may return for it.
    pub errors: &'static [Errno],
}

const READS: &[Errno] = &[Errno::EIO, Errno::EINTR];
const WRITES: &[Errno] = &[Errno::EIO, Errno::ENOSPC, Errno::EINTR];
const LOOKS: &[Errno] = &[Errno::EIO, Errno::EACCES];
const OPENS: &[Errno] = &[Errno::EIO, Errno::EACCES, Errno::ENOENT, Errno::EMFILE, Errno::ENOSPC, Errno::EINTR];
const CHANGES: &[Errno] = &[Errno::EIO, Errno::EACCES, Errno::ENOENT, Errno::ENOSPC];
const REMOVALS: &[Errno] = &[Errno::EIO, Errno::EACCES];

const fn row(
    name: &'static str,
    number: u64,
    (path, bytes): (Option<usize>, Option<usize>),
    errors: &'static [Errno],
) -> CallRow {
    CallRow { name, number, path, bytes, errors }
}

/// The calls that reach files. A look or a removal that answers "no such file" is the truth, and no fault: that answer is for calls
/// after a look.
#[rustfmt::skip]
pub const CALLS: &[CallRow] = &[
    row("read", 0, (None, Some(2)), READS),
    row("write", 1, (None, Some(2)), WRITES),
    row("open", 2, (Some(0), None), OPENS),
    row("stat", 4, (Some(0), None), LOOKS),
    row("fstat", 5, (None, None), &[Errno::EIO]),
    row("lstat", 6, (Some(0), None), LOOKS),
    row("lseek", 8, (None, None), &[Errno::EINVAL]),
    row("ioctl", 16, (None, None), &[Errno::EIO]),
    row("pread64", 17, (None, Some(2)), READS),
    row("pwrite64", 18, (None, Some(2)), WRITES),
    row("access", 21, (Some(0), None), LOOKS),
    row("dup", 32, (None, None), &[Errno::EMFILE]),
    row("fcntl", 72, (None, None), &[Errno::EMFILE]),
    row("flock", 73, (None, None), &[Errno::EINTR, Errno::ENOLCK]),
    row("fsync", 74, (None, None), &[Errno::EIO, Errno::ENOSPC]),
    row("ftruncate", 77, (None, None), &[Errno::EIO, Errno::EINTR, Errno::EFBIG]),
    row("getcwd", 79, (None, None), &[Errno::ENOENT, Errno::EACCES]),
    row("rename", 82, (Some(0), None), CHANGES),
    row("mkdir", 83, (Some(0), None), CHANGES),
    row("rmdir", 84, (Some(0), None), REMOVALS),
    row("link", 86, (Some(0), None), CHANGES),
    row("unlink", 87, (Some(0), None), REMOVALS),
    row("symlink", 88, (Some(0), None), CHANGES),
    row("readlink", 89, (Some(0), None), LOOKS),
    row("chmod", 90, (Some(0), None), CHANGES),
    row("fchmod", 91, (None, None), &[Errno::EIO, Errno::EPERM]),
    row("fchown", 93, (None, None), &[Errno::EPERM]),
    row("fsetxattr", 190, (None, None), &[Errno::ENOSPC, Errno::EPERM]),
    row("getxattr", 191, (Some(0), None), &[Errno::EIO]),
    row("fgetxattr", 193, (None, None), &[Errno::EIO]),
    row("listxattr", 194, (Some(0), None), &[Errno::EIO]),
    row("flistxattr", 196, (None, None), &[Errno::EIO]),
    row("fremovexattr", 199, (None, None), &[Errno::EIO]),
    row("getdents64", 217, (None, None), &[Errno::EIO]),
    row("openat", 257, (Some(1), None), OPENS),
    row("mkdirat", 258, (Some(1), None), CHANGES),
    row("newfstatat", 262, (Some(1), None), LOOKS),
    row("unlinkat", 263, (Some(1), None), REMOVALS),
    row("renameat", 264, (Some(1), None), CHANGES),
    row("linkat", 265, (Some(1), None), CHANGES),
    row("readlinkat", 267, (Some(1), None), LOOKS),
    row("fallocate", 285, (None, None), &[Errno::ENOSPC, Errno::EOPNOTSUPP, Errno::EINTR]),
    row("renameat2", 316, (Some(1), None), CHANGES),
    row("copy_file_range", 326, (None, Some(4)), &[Errno::EIO, Errno::ENOSPC, Errno::EXDEV, Errno::EINTR]),
    row("statx", 332, (Some(1), None), LOOKS),
    row("openat2", 437, (Some(1), None), OPENS),
];

impl CallRow {
    /// The faults of a call.
    pub fn effects(&self) -> impl Iterator<Item = Effect> {
        self.errors.iter().map(|error| Effect::Error(*error)).chain(self.bytes.map(|_| Effect::Half))
    }
}

/// Whether this system can run commands with faults: a container may forbid it.
#[must_use]
pub fn is_supported() -> bool {
    run(&mut Command::new("true"), None).is_ok_and(|traced| traced.code == Some(0))
}

/// As [`run`], for a program below the command: its path ends like `program`. Other programs run at their full speed.
///
/// # Errors
/// As [`run`].
pub fn run_below(command: &mut Command, program: &str, fault: Option<&Fault>) -> io::Result<Traced> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    return trace::run(command, Some(program), fault);
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    return Err(io::ErrorKind::Unsupported.into());
}

/// Runs a command. Its output must not be a pipe that nothing reads meanwhile.
///
/// # Errors
/// Failures of starting and of tracing it.
pub fn run(command: &mut Command, fault: Option<&Fault>) -> io::Result<Traced> {
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    return trace::run(command, None, fault);
    #[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
    return Err(io::ErrorKind::Unsupported.into());
}
