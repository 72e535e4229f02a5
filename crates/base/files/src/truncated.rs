//! Mapped inputs that another process truncates.
//!
//! Reading a page after the new end raises SIGBUS, as in every program that maps its inputs. Reading whole files
//! instead would take their size in memory, and checking the size again leaves a race between check and read; so the
//! signal is turned into an error of ours. Outputs are safe: they are renamed into place when they are complete.
//!
//! Absent on purpose: recovery from it, and files that are modified without becoming shorter.

use hotswap_report::{Diagnostic, codes};
use signal_hook::consts::SIGBUS;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Parts of memory that map files of our own: reading a page without storage there needs space on their disk.
static OUTPUTS: [OutputRange; 16] =
    [const { OutputRange { start: AtomicUsize::new(0), size: AtomicUsize::new(0) } }; 16];

#[derive(Debug)]
struct OutputRange {
    start: AtomicUsize,
    size: AtomicUsize,
}

/// Notes that this memory maps a file that is being written. The oldest note makes room for the newest.
pub(crate) fn note_output(bytes: &[u8]) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let range = &OUTPUTS[NEXT.fetch_add(1, Ordering::Relaxed) % OUTPUTS.len()];
    range.size.store(0, Ordering::Relaxed);
    range.start.store(bytes.as_ptr() as usize, Ordering::Relaxed);
    range.size.store(bytes.len(), Ordering::Relaxed);
}

fn is_output(address: usize) -> bool {
    OUTPUTS.iter().any(|range| {
        let start = range.start.load(Ordering::Relaxed);
        address >= start && address - start < range.size.load(Ordering::Relaxed)
    })
}

/// From now on SIGBUS ends the process with one line, `PROGRAM: error: …`, and the exit code of [`codes::CANNOT_READ`].
#[allow(unsafe_code, reason = "a handler that may not return can only be registered by an unsafe function")]
pub fn end_on_truncated_input(program: &str) {
    let what = "a file became shorter while it was read, or its disk failed (SIGBUS)";
    let error =
        Diagnostic::error(codes::CANNOT_READ, what).advise("run the command again when nothing writes its inputs");
    let input_line = format!("{program}: {error}\n");
    let what = "no space is left for a new file, or its disk failed (SIGBUS)";
    let output_line = format!("{program}: {}\n", Diagnostic::error(codes::CANNOT_WRITE, what));
    let is_ending = AtomicBool::new(false);
    let end = move |info: &libc::siginfo_t| {
        // SAFETY: the system fills this field for SIGBUS.
        let address = unsafe { info.si_addr() } as usize;
        let line = if is_output(address) { &output_line } else { &input_line };
        // Several threads may read the file: the first one to be here says it and ends all.
        while is_ending.swap(true, Ordering::Relaxed) {
            std::thread::yield_now();
        }
        // A failure cannot be reported anywhere else.
        let _ = rustix::io::write(std::io::stderr(), line.as_bytes());
        signal_hook::low_level::exit(codes::CANNOT_READ.exit.into());
    };
    // The standard library has a handler for overflows of the stack, which signal-hook would call first: it restores the
    // default action, and a second thread that reads the file then would end the process without a word. On Linux an
    // overflow of the stack is SIGSEGV.
    // SAFETY: only sets the default action of a signal, before any thread of ours is there.
    unsafe { libc::signal(SIGBUS, libc::SIG_DFL) };
    // SAFETY: a handler may do what is async-signal-safe. This one makes three system calls, `sched_yield`, `write` (of a string that
    // was made before, to a descriptor and not through the locked `Stderr`) and `_exit`; it takes no memory and no
    // lock, and does not return to the read that failed.
    let registered = unsafe { signal_hook_registry::register_sigaction(SIGBUS, end) };
    // Where the system refuses, the signal ends the process as it does without a handler.
    drop(registered);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::process::Command;

    /// Runs itself again: the child is ended, even where eight threads read at once.
    #[test]
    fn a_truncated_input_is_an_error() {
        const CHILD: &str = "HOTSWAP_TEST_TRUNCATED";
        if let Some(path) = std::env::var_os(CHILD) {
            let path = std::path::Path::new(&path);
            end_on_truncated_input("hotswap");
            let input = crate::open_input(path).unwrap();
            File::options().write(true).open(path).unwrap().set_len(0).unwrap();
            let start = std::sync::Barrier::new(8);
            std::thread::scope(|scope| {
                for number in 0..8 {
                    let (input, start) = (&input, &start);
                    scope.spawn(move || {
                        start.wait();
                        unreachable!("there is no byte {}", input[100_000 * number]);
                    });
                }
            });
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        let child = child.args(["--exact", "truncated::tests::a_truncated_input_is_an_error", "--nocapture"]);
        let ended = child.env(CHILD, &path).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(codes::CANNOT_READ.exit.into()), "{said}");
        assert!(said.starts_with("hotswap: error: [HS0501] ") && said.lines().count() == 1, "{said}");
    }
}
