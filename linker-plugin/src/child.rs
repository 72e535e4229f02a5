//! Runs the real tool: in place of this process (`exec`), or as a child whose output is then processed.
//!
//! Invariants: a termination signal to this process reaches every child, and no child is started after it.

use crate::context::CallContext;
use crate::message::say;
use hotswap_report::{Diagnostic, codes};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};

/// Signals that a build sends to stop its tools.
const FORWARDED: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// The signals that this process does not ignore. A handler in place of "ignore" (`nohup`, a build in the background)
/// would give the program the default action, which is to terminate.
fn heeded() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let digits = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    let ignored = u64::from_str_radix(digits.trim(), 16).unwrap_or(0);
    FORWARDED.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0).collect()
}

fn show(context: &CallContext, program: &Path, args: &[OsString]) {
    if context.verbose {
        let words = [program.as_os_str()].into_iter().chain(args.iter().map(OsString::as_os_str));
        let words: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        say(shell_words::join(words));
    }
}

fn not_started(program: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error(codes::NO_TOOL, format!("it cannot be started: {error}")).in_file(program)
}

/// Replaces this process by the program; returns only if that fails.
pub(crate) fn exec(context: &CallContext, program: &Path, args: &[OsString]) -> Diagnostic {
    exec_with(context, program, args, &[])
}

/// A variable for the environment of a program.
pub(crate) struct AddedVariable {
    pub(crate) name: &'static str,
    pub(crate) value: OsString,
}

/// [`exec`] with variables added to the environment.
pub(crate) fn exec_with(
    context: &CallContext,
    program: &Path,
    args: &[OsString],
    variables: &[AddedVariable],
) -> Diagnostic {
    show(context, program, args);
    let variables = variables.iter().map(|variable| (variable.name, &variable.value));
    not_started(program, &Command::new(program).args(args).envs(variables).exec())
}

/// Runs the program to its end; termination signals to this process are forwarded to it.
///
/// Returns the exit code of a program that failed (its messages are printed already).
///
/// # Errors
/// [`codes::NO_TOOL`] if it cannot be started, [`codes::CHILD_FAILED`] if a signal ended it.
pub(crate) fn run(context: &CallContext, program: &Path, args: &[OsString]) -> Result<u8, Diagnostic> {
    let running = Running::start(context, program, args, Stdio::inherit())?;
    exit_code(program, running.wait().map_err(|error| not_started(program, &error))?.0)
}

/// Runs a tool whose failure is not one of the build, so that its messages are not printed. The error is the first
/// line of its standard error.
pub(crate) fn attempt(context: &CallContext, program: &Path, args: &[OsString]) -> Result<(), String> {
    let running = Running::start(context, program, args, Stdio::piped()).map_err(|error| error.what)?;
    let (status, said) = running.wait().map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    let line = said.lines().find(|line| line.contains("error")).or_else(|| said.lines().next());
    Err(line.map_or_else(|| status.to_string(), str::to_owned))
}

/// Running children, and whether a termination signal has arrived.
struct Children {
    running: Vec<Pid>,
    stopped: bool,
}

static CHILDREN: Mutex<Children> = Mutex::new(Children { running: Vec::new(), stopped: false });

fn children() -> MutexGuard<'static, Children> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From the first call on, forwards signals to all running children.
fn forward(program: &Path) -> Result<(), Diagnostic> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    STARTED.get_or_init(start_signal_forwarding).clone().map_err(|one| child_start_error(one, program))
}

fn start_signal_forwarding() -> Result<(), String> {
    // The thread comes first: without one the signals keep their default action, which ends this process, and its
    // end that of the children (`end_with_us`).
    let (begin, signals) = mpsc::channel();
    if std::thread::Builder::new().spawn(move || signals.recv().map(hand_on)).is_err() {
        return Ok(());
    }
    let signals = Signals::new(heeded()).map_err(|error| error.to_string())?;
    begin.send(signals).map_err(|error| error.to_string())
}

fn child_start_error(what: String, program: &Path) -> Diagnostic {
    Diagnostic::error(codes::NO_TOOL, what).in_file(program)
}

fn hand_on(mut signals: Signals) {
    for signal in signals.forever() {
        let mut children = children();
        children.stopped = true;
        if children.running.is_empty() {
            // Our own work can be interrupted at any moment: files are replaced as a whole.
            std::process::exit(1);
        }
        for pid in &children.running {
            // A child that has just ended is not an error.
            let _ = Signal::from_named_raw(signal).map(|signal| kill_process(*pid, signal));
        }
    }
}

/// SIGKILL cannot be caught. The system ends the child when the thread that started it ends, which is one that
/// waits for the child.
#[allow(unsafe_code, reason = "what runs between fork and exec can only be given by an unsafe function")]
fn end_with_us(command: &mut Command) {
    let us = rustix::process::getpid();
    // SAFETY: two system calls, no memory taken and no lock: allowed between fork and exec of a process with threads.
    unsafe { command.pre_exec(move || follow_parent(us)) };
}

/// Makes the system end this process with its parent.
fn follow_parent(parent: Pid) -> std::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    // The parent may have been killed before that.
    if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(std::io::ErrorKind::Interrupted.into()) }
}

struct Running {
    child: Child,
    pid: Pid,
}

impl Running {
    fn start(context: &CallContext, program: &Path, args: &[OsString], errors: Stdio) -> Result<Self, Diagnostic> {
        show(context, program, args);
        // Before the start, so that no signal is missed.
        forward(program)?;
        let mut children = children();
        if children.stopped {
            return Err(Diagnostic::error(codes::CHILD_FAILED, "a signal asked to stop").in_file(program));
        }
        let mut command = Command::new(program);
        command.args(args).stderr(errors);
        end_with_us(&mut command);
        let child = command.spawn();
        let child = child.map_err(|error| not_started(program, &error))?;
        let pid = Pid::from_child(&child);
        children.running.push(pid);
        Ok(Self { child, pid })
    }

    /// Waits for its end; returns its status and its standard error if that was captured.
    fn wait(mut self) -> std::io::Result<(ExitStatus, Vec<u8>)> {
        let mut said = Vec::new();
        if let Some(mut errors) = self.child.stderr.take() {
            errors.read_to_end(&mut said)?;
        }
        let status = self.child.wait();
        children().running.retain(|pid| *pid != self.pid);
        Ok((status?, said))
    }
}

/// Clang would take 126, 127 and signals for a crash of this program.
fn exit_code(program: &Path, status: ExitStatus) -> Result<u8, Diagnostic> {
    if let Some(signal) = status.signal() {
        let what = format!("it was ended by signal {signal}");
        return Err(Diagnostic::error(codes::CHILD_FAILED, what).in_file(program));
    }
    Ok(match status.code().unwrap_or(1) {
        code @ 0..=125 => code as u8,
        _ => 1,
    })
}
