//! `-o -`: an output file that goes to standard output, and the report to standard error.
//!
//! A command writes and checks its output as a file, and only a complete one is printed. So the output is a file in a directory of
//! its own for the time of the command.
//!
//! Invariant: nothing is printed after an error.

use clap::builder::{PathBufValueParser, TypedValueParser};
use hotswap_files::{ScratchDirectory, reads};
use hotswap_report::Diagnostic;
use std::io::{self, StdoutLock, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The directory, while a command has such an output.
static DIRECTORY: Mutex<Option<ScratchDirectory>> = Mutex::new(None);

/// Its name in the directory.
const FILE: &str = "standard-output";

/// Set before the standard library opens `/dev/null` in the place of a closed standard output, which takes every write.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_closed() {
    // SAFETY: `fcntl` with F_GETFD reads the flags of a descriptor and changes nothing.
    #[allow(unsafe_code, reason = "the system call has no other form before main")]
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    IS_CLOSED.store(flags == -1, Ordering::Relaxed);
}

// SAFETY: the section holds pointers to functions without arguments, which the C library calls before `main`. This one touches
// nothing of Rust's runtime but an atomic.
#[allow(unsafe_code, reason = "an entry of a section can only be placed by an unsafe attribute")]
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE_CLOSED: extern "C" fn() = note_closed;

/// Whether standard output can take bytes at all.
pub(crate) fn check_open(bytes: &[u8]) -> io::Result<()> {
    if IS_CLOSED.load(Ordering::Relaxed) && !bytes.is_empty() {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    Ok(())
}

/// Standard output, for a command that prints before it ends.
pub(crate) struct CheckedOutput(StdoutLock<'static>);

impl CheckedOutput {
    pub(crate) fn new() -> Self {
        Self(io::stdout().lock())
    }
}

impl Write for CheckedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_open(bytes)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The parser of output files.
pub(crate) fn output_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| if path.as_os_str() == "-" { placeholder() } else { Ok(path) })
}

fn placeholder() -> Result<PathBuf, String> {
    let mut directory = DIRECTORY.lock().map_err(|error| error.to_string())?;
    if directory.is_none() {
        *directory = Some(ScratchDirectory::temporary("hotswap-output-").map_err(|error| error.to_string())?);
    }
    let path = directory.as_ref().map(|directory| directory.path().join(FILE));
    path.ok_or_else(|| "no directory for temporary files".to_owned())
}

/// A report or message, in which standard output has its name and not that of the file that stands for it.
pub(crate) fn named(text: String, placeholder: Option<&Path>) -> String {
    match placeholder {
        Some(path) => text.replace(&*path.to_string_lossy(), "standard output"),
        None => text,
    }
}

/// The file that stands for standard output, while there is one.
pub(crate) fn current() -> Option<PathBuf> {
    let directory = DIRECTORY.lock().ok()?;
    directory.as_ref().map(|directory| directory.path().join(FILE))
}

/// The bytes for standard output in the place of the report; removes the directory. `None` for other outputs, and
/// where nothing was written.
pub(crate) fn take() -> Option<Result<Vec<u8>, Diagnostic>> {
    let directory = DIRECTORY.lock().ok()?.take()?;
    let path = directory.path().join(FILE);
    match std::fs::read(&path) {
        Err(error) if reads::is_absent(&error) => None,
        read => Some(read.map_err(|error| reads::unread_file(&path, &error))),
    }
}
