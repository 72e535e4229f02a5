//! One command inside the userland: captured, limited in time, terminated with all its children.

use crate::bench::Bench;
use hotswap_userland::{Inherit, expression};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A command to be run.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    bench: &'a Bench,
    directory: PathBuf,
    words: Vec<String>,
    outer: Vec<String>,
    variables: Vec<(String, String)>,
    limit: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ran {
    /// Exit code; `None` when a signal or the time limit ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether the time limit ended it.
    pub late: bool,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ran {
    /// Whether it ended with exit code 0.
    pub fn ok(&self) -> bool {
        self.code == Some(0)
    }

    /// Exit code and last lines of standard error, for messages of tests.
    pub fn brief(&self) -> String {
        let lines: Vec<_> = self.stderr.lines().filter(|line| !line.is_empty()).collect();
        let tail = lines[lines.len().saturating_sub(4)..].join(" | ");
        let end = if self.late { "time limit".to_owned() } else { format!("{:?}", self.code.or(self.signal)) };
        format!("[{end}] {}", tail.chars().take(700).collect::<String>())
    }

    /// Lines of standard error that HotSwap's tools wrote.
    pub fn ours(&self) -> Vec<&str> {
        self.stderr.lines().filter(|line| line.starts_with("hotswap")).collect()
    }
}

impl<'a> Call<'a> {
    /// The command `words` in the directory `directory` (a path inside).
    pub fn new(bench: &'a Bench, directory: impl Into<PathBuf>, words: &[impl AsRef<str>]) -> Self {
        let words = words.iter().map(|word| word.as_ref().to_owned()).collect();
        Self {
            bench,
            directory: directory.into(),
            words,
            outer: Vec::new(),
            variables: Vec::new(),
            limit: Duration::from_secs(300),
        }
    }

    /// Sets a variable; only few are set by default.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    pub fn envs(mut self, variables: &[(String, String)]) -> Self {
        self.variables.extend_from_slice(variables);
        self
    }

    /// Terminates the command after that time. Without this call it is five minutes: machines are shared.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The same command under another one that takes it as its last arguments.
    pub fn under(mut self, outer: &[&str]) -> Self {
        self.words.splice(0..0, outer.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Runs it under a command of the machine, which takes it as its last arguments.
    pub fn outside_of(mut self, outer: &[&str]) -> Self {
        self.outer = outer.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// The command as a process of this machine.
    ///
    /// # Panics
    /// If it has no words.
    pub fn command(&self) -> Command {
        let (program, words) = self.words.split_first().expect("a command has a first word");
        let mut command = self.bench.userland.command(&self.directory, program);
        command.args(words).envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some((outer, before)) = self.outer.split_first() {
            command = wrapped(&command, outer, before);
        }
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it cannot be started at all: the userland is not usable then.
    pub fn run(&self) -> Ran {
        self.ended().unwrap_or_else(|error| panic!("{:?}: {error}", self.words))
    }

    fn ended(&self) -> std::io::Result<Ran> {
        let expression = expression(&self.command(), Inherit::Nothing).stdin_null().stdout_capture().stderr_capture();
        let running = expression.before_spawn(own_group).start()?;
        let late = running.wait_timeout(self.limit)?.is_none();
        if late {
            running.pids().into_iter().for_each(kill_group);
        }
        let Output { status, stdout, stderr } = running.into_output()?;
        Ok(Ran {
            code: status.code(),
            signal: status.signal(),
            late,
            stdout: lossy_output_text(stdout),
            stderr: lossy_output_text(stderr),
        })
    }

    /// Starts it and returns at once; the caller terminates it.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(&self) -> Child {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.spawn().unwrap_or_else(|error| panic!("{:?}: {error}", self.words))
    }
}

fn lossy_output_text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The same command, with its variables and directory, as the last arguments of another one.
fn wrapped(inner: &Command, outer: &str, before: &[String]) -> Command {
    let mut command = Command::new(outer);
    command.args(before).arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = inner.get_current_dir() {
        command.current_dir(directory);
    }
    command
}

/// A command is killed with all its children.
fn own_group(command: &mut Command) -> std::io::Result<()> {
    command.process_group(0);
    Ok(())
}

/// Kills a command that was started here, with all its children, by SIGKILL.
pub fn kill_group(process: u32) {
    if let Some(group) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // It may have ended just now.
        let _ = kill_process_group(group, Signal::KILL);
    }
}
