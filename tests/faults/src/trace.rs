//! The tracer.

use crate::{CALLS, CallRow, Effect, Fault, Traced};
use nix::sys::ptrace::{self, AddressType, Event, Options};
use nix::sys::signal::{self, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

const RT_SIGACTION: u64 = 13;
const SIGBUS: u64 = 7;
/// Paths are read in words.
const WORDS: usize = 512;

pub(crate) fn run(command: &mut Command, program: Option<&str>, fault: Option<&Fault>) -> io::Result<Traced> {
    #[allow(unsafe_code, reason = "what runs between fork and exec can only be set by an unsafe function")]
    // SAFETY: the closure makes one system call, `ptrace`, and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| ptrace::traceme().map_err(io::Error::from));
    }
    let child = command.spawn()?;
    let main = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let mut tracer = Tracer {
        main,
        program,
        fault,
        is_started: false,
        roles: BTreeMap::new(),
        seen: 0,
        calls: BTreeMap::new(),
        inside: BTreeMap::new(),
        known: BTreeSet::new(),
        is_injected: false,
        path: None,
    };
    tracer.follow()
}

/// The end of a call that was entered.
enum PendingEnd {
    Plain,
    Fails(i64),
}

/// The part of a process or thread in the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProcessRole {
    /// It runs another program.
    Other,
    /// It has not set its handler yet.
    Starting,
    Tested,
}

struct Tracer<'f> {
    main: Pid,
    /// The end of the path of the program under test, or the command itself.
    program: Option<&'f str>,
    fault: Option<&'f Fault>,
    /// Whether the command itself has set its handler.
    is_started: bool,
    /// By process or thread, where a program below the command is tested.
    roles: BTreeMap<Pid, ProcessRole>,
    /// Calls that the fault could be.
    seen: usize,
    calls: BTreeMap<&'static str, usize>,
    /// Threads inside of a call.
    inside: BTreeMap<Pid, PendingEnd>,
    known: BTreeSet<Pid>,
    is_injected: bool,
    /// The path argument of the call that the fault met.
    path: Option<String>,
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
                    self.new_program(pid)?;
                }
                WaitStatus::PtraceEvent(pid, ..) => self.resume(pid, None)?,
                WaitStatus::Stopped(pid, signal) => self.stopped(pid, signal)?,
                _ => {}
            }
        }
        Ok(Traced {
            code,
            calls: std::mem::take(&mut self.calls),
            is_injected: self.is_injected,
            path: self.path.take(),
        })
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
        self.resume(pid, (!own).then_some(signal))
    }

    /// The first program is stopped by a signal before options are set, so that this is another one.
    fn new_program(&mut self, pid: Pid) -> io::Result<()> {
        let Some(program) = self.program else { return ignore_gone(ptrace::detach(pid, None)) };
        self.inside.remove(&pid);
        let is_tested = runs_program(pid, program);
        self.roles.insert(pid, if is_tested { ProcessRole::Starting } else { ProcessRole::Other });
        if is_tested {
            // The call that has started it ends now.
            self.inside.insert(pid, PendingEnd::Plain);
        }
        self.resume(pid, None)
    }

    fn role_of(&mut self, pid: Pid) -> ProcessRole {
        let Some(program) = self.program else {
            return if self.is_started { ProcessRole::Tested } else { ProcessRole::Starting };
        };
        // A thread, or a copy of a process.
        let seen = || if runs_program(pid, program) { ProcessRole::Tested } else { ProcessRole::Other };
        *self.roles.entry(pid).or_insert_with(seen)
    }

    fn resume(&mut self, pid: Pid, signal: Option<Signal>) -> io::Result<()> {
        ignore_gone(match self.role_of(pid) {
            ProcessRole::Other => ptrace::cont(pid, signal),
            ProcessRole::Starting | ProcessRole::Tested => ptrace::syscall(pid, signal),
        })
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
        self.resume(pid, None)
    }

    fn enter(&mut self, pid: Pid) -> nix::Result<()> {
        let mut registers = ptrace::getregs(pid)?;
        self.inside.insert(pid, PendingEnd::Plain);
        let arguments = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
        let number = registers.orig_rax;
        if number == RT_SIGACTION && arguments[0] == SIGBUS {
            self.is_started = true;
            self.roles.insert(pid, ProcessRole::Tested);
        }
        let is_tested = self.role_of(pid) == ProcessRole::Tested;
        let Some(row) = CALLS.iter().find(|row| row.number == number).filter(|_| is_tested) else {
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
        let address = row.path.map(|argument| arguments[argument]);
        self.path = address.map(|address| String::from_utf8_lossy(&text_at(pid, address)).into_owned());
        match fault.effect {
            Effect::Error(error) => {
                registers.orig_rax = u64::MAX;
                self.inside.insert(pid, PendingEnd::Fails(-i64::from(error as i32)));
            }
            Effect::Kill => signal::kill(pid, Signal::SIGKILL)?,
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

fn runs_program(pid: Pid, end: &str) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path.as_os_str().as_bytes().ends_with(end.as_bytes()))
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
