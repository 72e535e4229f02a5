//! The tracer.

use crate::{CALLS, CallRow, Effect, Fault, Traced};
use nix::sys::ptrace::{self, AddressType, Event, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

const RT_SIGACTION: u64 = 13;
const SIGBUS: u64 = 7;
/// Paths are read in words.
const WORDS: usize = 512;

pub(crate) fn run(command: &mut Command, fault: Option<&Fault>) -> io::Result<Traced> {
    #[allow(unsafe_code, reason = "what runs between fork and exec can only be set by an unsafe function")]
    // SAFETY: the closure makes one system call, `ptrace`, and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| ptrace::traceme().map_err(io::Error::from));
    }
    let child = command.spawn()?;
    let main = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let mut tracer = Tracer {
        main,
        fault,
        is_started: false,
        seen: 0,
        calls: BTreeMap::new(),
        inside: BTreeMap::new(),
        known: BTreeSet::new(),
        is_injected: false,
    };
    tracer.follow()
}

/// The end of a call that was entered.
enum PendingEnd {
    Plain,
    Fails(i64),
}

struct Tracer<'f> {
    main: Pid,
    fault: Option<&'f Fault>,
    /// Whether the program has set its handler.
    is_started: bool,
    /// Calls that the fault could be.
    seen: usize,
    calls: BTreeMap<&'static str, usize>,
    /// Threads inside of a call.
    inside: BTreeMap<Pid, PendingEnd>,
    known: BTreeSet<Pid>,
    is_injected: bool,
}

impl Tracer<'_> {
    fn follow(&mut self) -> io::Result<Traced> {
        // Children of this thread only: other threads trace commands of their own.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        let mut code = None;
        loop {
            let status = match waitpid(None::<Pid>, Some(flags)) {
                Err(nix::Error::ECHILD) => break,
                Err(nix::Error::EINTR) => continue,
                status => status?,
            };
            match status {
                WaitStatus::Exited(pid, exit) if pid == self.main => code = Some(exit),
                WaitStatus::PtraceSyscall(pid) => self.system_call(pid)?,
                WaitStatus::PtraceEvent(pid, _, event) if event == Event::PTRACE_EVENT_EXEC as i32 => {
                    // The first program is stopped by a signal before options are set.
                    ignore_gone(ptrace::detach(pid, None))?;
                }
                WaitStatus::PtraceEvent(pid, ..) => ignore_gone(ptrace::syscall(pid, None))?,
                WaitStatus::Stopped(pid, signal) => self.stopped(pid, signal)?,
                _ => {}
            }
        }
        Ok(Traced { code, calls: std::mem::take(&mut self.calls), is_injected: self.is_injected })
    }

    fn stopped(&mut self, pid: Pid, signal: Signal) -> io::Result<()> {
        let is_first = self.known.insert(pid);
        if is_first && pid == self.main {
            let options = Options::PTRACE_O_TRACESYSGOOD
                | Options::PTRACE_O_TRACECLONE
                | Options::PTRACE_O_TRACEFORK
                | Options::PTRACE_O_TRACEVFORK
                | Options::PTRACE_O_TRACEEXEC
                | Options::PTRACE_O_EXITKILL;
            ptrace::setoptions(pid, options)?;
        }
        // The stop by which a program or thread starts is the tracer's own.
        let own = (is_first && matches!(signal, Signal::SIGTRAP | Signal::SIGSTOP)) || signal == Signal::SIGTRAP;
        ignore_gone(ptrace::syscall(pid, (!own).then_some(signal)))
    }

    fn system_call(&mut self, pid: Pid) -> io::Result<()> {
        let done = match self.inside.remove(&pid) {
            None => self.enter(pid),
            Some(PendingEnd::Plain) => Ok(()),
            Some(PendingEnd::Fails(error)) => ptrace::getregs(pid).and_then(|mut registers| {
                registers.rax = error.cast_unsigned();
                ptrace::setregs(pid, registers)
            }),
        };
        ignore_gone(done)?;
        ignore_gone(ptrace::syscall(pid, None))
    }

    fn enter(&mut self, pid: Pid) -> nix::Result<()> {
        let mut registers = ptrace::getregs(pid)?;
        self.inside.insert(pid, PendingEnd::Plain);
        let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
        let number = registers.orig_rax;
        if number == RT_SIGACTION && arguments[0] == SIGBUS {
            self.is_started = true;
        }
        let Some(row) = CALLS.iter().find(|row| row.number == number).filter(|_| self.is_started) else {
            return Ok(());
        };
        *self.calls.entry(row.name).or_default() += 1;
        let Some(fault) = self.fault.filter(|fault| fault.call == row.name) else { return Ok(()) };
        if self.is_injected || !self.is_its_path(pid, row, &arguments) {
            return Ok(());
        }
        self.seen += 1;
        if self.seen <= fault.number {
            return Ok(());
        }
        self.is_injected = true;
        match fault.effect {
            Effect::Error(error) => {
                registers.orig_rax = u64::MAX;
                self.inside.insert(pid, PendingEnd::Fails(-i64::from(error as i32)));
            }
            Effect::Half => match row.bytes {
                Some(2) => registers.rdx = registers.rdx.div_ceil(2),
                Some(4) => registers.r8 = registers.r8.div_ceil(2),
                _ => {}
            },
        }
        ptrace::setregs(pid, registers)
    }

    fn is_its_path(&self, pid: Pid, row: &CallRow, arguments: &[u64; 6]) -> bool {
        let Some(wanted) = self.fault.and_then(|fault| fault.path.as_ref()) else { return true };
        let address = row.path.map(|argument| arguments[argument]);
        address.is_some_and(|address| text_at(pid, address).ends_with(wanted.as_bytes()))
    }
}

/// The text in the memory of a thread, up to its zero.
fn text_at(pid: Pid, address: u64) -> Vec<u8> {
    let mut text = Vec::new();
    for word in 0..WORDS {
        let Ok(word) = ptrace::read(pid, (address as usize + 8 * word) as AddressType) else { break };
        let bytes = word.to_ne_bytes();
        let end = bytes.iter().position(|byte| *byte == 0);
        text.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
        if end.is_some() {
            break;
        }
    }
    text
}

/// A thread may have been ended by another one.
fn ignore_gone(result: nix::Result<()>) -> io::Result<()> {
    match result {
        Err(nix::Error::ESRCH) => Ok(()),
        result => Ok(result?),
    }
}
