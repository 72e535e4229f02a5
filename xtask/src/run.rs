//! Runs commands: prints the line, runs it, checks the exit code.

use crate::outcome::{Failure, Outcome, fail};
use crate::programs::processor_seconds;
use crate::{disk, paths};
use hotswap_userland::inner_words;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The command in a shell's syntax: without the mounts and the root directory in which it runs, and cargo without the
/// directory of its toolchain.
pub(crate) fn line(command: &Command) -> String {
    let mut words = inner_words(command);
    if let Some(program) = words.first_mut().filter(|program| **program == *paths::cargo()) {
        *program = "cargo".into();
    }
    shell_words::join(words.iter().map(|word| word.to_string_lossy()))
}

/// Prints the command, runs it with its output shown, and fails unless it exits with 0.
pub(crate) fn show(command: &mut Command) -> Outcome {
    println!("$ {}", line(command));
    quiet(command)
}

/// The same without the line.
pub(crate) fn quiet(command: &mut Command) -> Outcome {
    let status = command.stdin(Stdio::null()).status().map_err(|error| cannot_start(command, &error))?;
    if status.success() { Ok(()) } else { fail(format!("`{}` failed: {status}", line(command))) }
}

/// Standard output of a command that must succeed; its standard error is shown when it does not.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| cannot_start(command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    fail(format!("`{}` failed: {}: {}", line(command), output.status, reason.trim()))
}

fn cannot_start(command: &Command, error: &std::io::Error) -> Failure {
    let message = format!("cannot start `{}`: {error}", line(command));
    std::io::Error::other(message).into()
}

/// How long parts of a task took.
pub(crate) struct Times {
    start: Instant,
    parts: Vec<PartTime>,
}

/// The time of a part by the clock, and of processors by the programs that ended in it.
struct PartTime {
    name: String,
    clock: Duration,
    processors: f64,
}

impl Default for Times {
    fn default() -> Self {
        Self { start: Instant::now(), parts: Vec::new() }
    }
}

impl Times {
    /// Runs a part and notes its time, also when it fails.
    pub(crate) fn time<T>(&mut self, name: &str, part: impl FnOnce() -> T) -> T {
        self.time_with_size(name, None, part)
    }

    /// The same for a part that fills a directory, whose size is printed.
    pub(crate) fn time_with_size<T>(&mut self, name: &str, directory: Option<&Path>, part: impl FnOnce() -> T) -> T {
        let (start, before) = (Instant::now(), processor_seconds("self"));
        let result = part();
        let (clock, processors) = (start.elapsed(), processor_seconds("self") - before);
        let size = directory.map(|path| format!(", {} in {}", disk::in_words(disk::size_of(path)), path.display()));
        println!("[{name}: {:.1} s{}]", clock.as_secs_f64(), size.unwrap_or_default());
        self.parts.push(PartTime { name: name.to_owned(), clock, processors });
        result
    }

    /// One line for each part, and the time since the first one began.
    pub(crate) fn print(&self) {
        println!("\n{:<34} {:>8}   {:>10}", "TIMES", "CLOCK", "PROCESSORS");
        for PartTime { name, clock, processors } in &self.parts {
            println!("  {name:<32} {:>8.1} s {processors:>8.1} s", clock.as_secs_f64());
        }
        println!(
            "  {:<32} {:>8.1} s {:>8.1} s",
            "together",
            self.start.elapsed().as_secs_f64(),
            processor_seconds("self")
        );
    }
}
