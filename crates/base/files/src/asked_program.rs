//! Programs that are started for an answer: with a limit of time, without input, their output in files.
//!
//! Invariants: a program gets no input, none of HotSwap's variables and no `COMPILER_PATH`, and is ended after a minute. Files
//! are written into a scratch directory only. A program that the system could not start at the moment, or whose output could not
//! be read, is an error, and not a program that has failed.

use crate::child_output::empty_input;
use crate::reads;
use crate::write::read_file;
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// The time that a program may take: the headers of HIP take a second on a fast machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// The output of a program.
#[derive(Debug, Default)]
pub struct ProbeOutput {
    /// Whether there is such a program for this machine and user; else the reason is in `stderr`.
    pub is_started: bool,
    /// Whether it ended with 0.
    pub success: bool,
    /// The signal that ended it.
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl ProbeOutput {
    /// The first line of an error, or the first line at all.
    pub fn reason(&self) -> String {
        let error = self.output_lines().find(|line| line.contains("error:")).or_else(|| self.output_lines().next());
        match (error, self.signal) {
            (Some(line), _) => line.to_owned(),
            (None, Some(signal)) => format!("it was ended by signal {signal} and printed nothing"),
            (None, None) => "it ended with an error and printed nothing".to_owned(),
        }
    }

    fn output_lines(&self) -> impl Iterator<Item = &str> {
        self.stderr.lines().chain(self.stdout.lines()).map(str::trim).filter(|line| !line.is_empty())
    }
}

/// Whether the error is that the file does not exist or is not a program of this machine. A tool that the system cannot start at the
/// moment is not absent.
pub fn is_unusable(error: &io::Error) -> bool {
    const NOT_EXECUTABLE: i32 = 8;
    reads::is_absent(error)
        || error.kind() == ErrorKind::PermissionDenied
        || error.raw_os_error() == Some(NOT_EXECUTABLE)
}

/// Runs a program in the directory.
///
/// # Errors
/// The system's, if it cannot be asked. A program that cannot be used is an answer.
pub fn run(directory: &Path, program: &Path, arguments: &[&str]) -> Result<ProbeOutput, Diagnostic> {
    let mut command = Command::new(program);
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"HOTSWAP_") || name == "COMPILER_PATH" {
            command.env_remove(name);
        }
    }
    finish(directory, command, LIMIT)
}

/// Runs a command as it is, for no longer than that.
///
/// # Errors
/// The same as those of [`run`].
pub fn run_for(directory: &Path, command: Command, limit: Duration) -> Result<ProbeOutput, Diagnostic> {
    finish(directory, command, limit)
}

/// The outputs go to files, so that neither a full pipe nor a child of the program can hold it up.
fn finish(directory: &Path, mut command: Command, limit: Duration) -> Result<ProbeOutput, Diagnostic> {
    let [out, err] = ["stdout.txt", "stderr.txt"].map(|name| directory.join(name));
    let input = empty_input().map_err(|error| unasked_program_error(&command, &error))?;
    command.current_dir(directory).stdin(input).stdout(new_output(&out)?).stderr(new_output(&err)?);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if is_unusable(&error) => {
            return Ok(ProbeOutput { stderr: error.to_string(), ..ProbeOutput::default() });
        }
        Err(error) => return Err(unasked_program_error(&command, &error)),
    };
    let Some(status) = wait(&mut child, limit).map_err(|error| unasked_program_error(&command, &error))? else {
        let stderr = format!("error: it was ended after {} seconds", limit.as_secs());
        return Ok(ProbeOutput { is_started: true, stderr, ..ProbeOutput::default() });
    };
    Ok(ProbeOutput {
        is_started: true,
        success: status.success(),
        signal: status.signal(),
        stdout: read_lossy_text(&out)?,
        stderr: read_lossy_text(&err)?,
    })
}

fn new_output(path: &Path) -> Result<File, Diagnostic> {
    File::create(path).map_err(|error| Diagnostic::cannot_write(path, error))
}

fn unasked_program_error(command: &Command, error: &io::Error) -> Diagnostic {
    Diagnostic::error(codes::NOT_STARTED, error.to_string()).in_file(Path::new(command.get_program()))
}

fn read_lossy_text(path: &Path) -> Result<String, Diagnostic> {
    Ok(String::from_utf8_lossy(&read_file(path)?).into_owned())
}

/// How the program ended; `None` if it had to be ended.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    while start.elapsed() < limit {
        match child.try_wait() {
            Ok(None) => thread::sleep(Duration::from_millis(5)),
            ended => return ended,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    Ok(None)
}

/// A program on `PATH`.
///
/// # Errors
/// [`codes::CANNOT_READ`] for a file that could not be seen. Directories that the user may not enter have no programs for the user.
pub fn on_path(name: &OsStr) -> Result<Option<PathBuf>, Diagnostic> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    for directory in std::env::split_paths(&path) {
        let file = directory.join(name);
        match fs::metadata(&file) {
            Ok(meta) if meta.is_file() => return Ok(Some(file)),
            Ok(_) => {}
            Err(error) if reads::is_absent(&error) || is_closed(&directory) => {}
            Err(error) => return Err(reads::unread_file(&file, &error)),
        }
    }
    Ok(None)
}

fn is_closed(directory: &Path) -> bool {
    fs::metadata(directory.join(".")).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}
