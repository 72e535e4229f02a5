//! Replaces this process by the real clang, or runs it as a child where something is left to do afterwards.
//!
//! Invariants: without a plan the process is replaced, not forked, so exit code, signals, standard input and the
//! descriptors of a jobserver are clang's own; `argv[0]` is the real compiler's path, by which it
//! finds its configuration files and names itself in messages.
//!
//! Absent on purpose: the further behaviour of clang.

use crate::words::{ClangArgument, response, shell};
use hotswap_plan::words::ENV_ACTIVE;
use hotswap_report::{Diagnostic, codes};
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{env, iter};

/// How many instances of this program may be active above this one: a wrapper of the user's between two of ours is
/// conceivable, a chain is a loop.
const DEPTH: u32 = 3;

/// Variables that are set, or removed.
pub type Env = Vec<(&'static str, Option<OsString>)>;

/// The command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchCommand {
    /// The path of the real compiler.
    pub program: PathBuf,
    pub words: Vec<ClangArgument>,
    /// Variables that are set, or removed.
    pub env: Env,
    /// Prints the command line first.
    pub verbose: bool,
}

/// Runs the real compiler in this process.
///
/// # Errors
/// Returns only if that fails: [`codes::RECURSION`], or [`codes::NO_CLANG`] with the reason.
pub fn become_clang(launch: &LaunchCommand) -> Diagnostic {
    match with_clang(launch, |command| Err::<(), _>(command.exec())) {
        Ok(()) => Diagnostic::error(codes::INTERNAL, "exec returned without an error"),
        Err(error) => error,
    }
}

/// Runs the real compiler as a child, with this process's streams; its exit code, or 128 and the number of
/// the signal that ended it.
///
/// # Errors
/// As for [`become_clang`], where it cannot be started.
pub fn run_clang(launch: &LaunchCommand) -> Result<i32, Diagnostic> {
    with_clang(launch, Command::status).map(exit_code)
}

/// The messages of a command, to be shown or not.
#[derive(Debug, Default)]
pub struct Transcript(Vec<u8>);

impl Transcript {
    /// Writes the messages to standard error. A failed write must not fail a build.
    pub fn show(&self) {
        let _ = io::stderr().write_all(&self.0);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a file of that directory is named.
    pub fn names_file_in(&self, directory: &Path) -> bool {
        let name = directory.as_os_str().as_bytes();
        self.0.windows(name.len()).any(|window| window == name)
    }
}

/// As [`run_clang`], with standard error recorded. A terminal gets the messages at once, in its colours.
///
/// # Errors
/// As for [`become_clang`], where it cannot be started.
pub fn run_recorded(launch: &LaunchCommand) -> Result<(i32, Transcript), Diagnostic> {
    if io::stderr().is_terminal() {
        return run_clang(launch).map(|code| (code, Transcript(Vec::new())));
    }
    run_silently(launch).map(|run| (run.code, run.messages))
}

/// A run whose messages were not shown.
#[derive(Debug)]
pub struct SilentRun {
    pub code: i32,
    pub messages: Transcript,
}

/// As [`run_recorded`], also where standard error is a terminal.
///
/// # Errors
/// As for [`become_clang`], where it cannot be started.
pub fn run_silently(launch: &LaunchCommand) -> Result<SilentRun, Diagnostic> {
    let output = with_clang(launch, |command| hotswap_files::child_output(command.stderr(Stdio::piped()).spawn()?))?;
    Ok(SilentRun { code: exit_code(output.status), messages: Transcript(output.stderr) })
}

/// The text that a command wrote to one of its streams.
#[derive(Debug)]
pub struct CapturedOutput {
    pub code: i32,
    /// The text of that stream.
    pub text: Vec<u8>,
}

/// As [`run_clang`], with standard output captured.
///
/// # Errors
/// As for [`become_clang`], where it cannot be started.
pub fn run_captured(launch: &LaunchCommand) -> Result<CapturedOutput, Diagnostic> {
    let output = with_clang(launch, |command| hotswap_files::child_output(command.stdout(Stdio::piped()).spawn()?))?;
    Ok(CapturedOutput { code: exit_code(output.status), text: output.stdout })
}

/// As [`run_captured`], with standard error captured and nothing on standard output.
///
/// # Errors
/// As for [`become_clang`], where it cannot be started.
pub fn run_for_messages(launch: &LaunchCommand) -> Result<CapturedOutput, Diagnostic> {
    let output = with_clang(launch, hotswap_files::command_output)?;
    Ok(CapturedOutput { code: exit_code(output.status), text: output.stderr })
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn with_clang<T>(launch: &LaunchCommand, start: impl Fn(&mut Command) -> io::Result<T>) -> Result<T, Diagnostic> {
    let depth = depth();
    if depth >= DEPTH {
        let what = format!("{} starts hotswap-clang again", launch.program.display());
        return Err(Diagnostic::error(codes::RECURSION, what));
    }
    let words = plain(&launch.words).map_err(|one| clang_launch_error(one, launch))?;
    match start(&mut clang_process(launch, &words, depth)) {
        // Our additions exceeded the system's limit; clang accepts any number of arguments from a file.
        Err(error) if error.kind() == io::ErrorKind::ArgumentListTooLong => {
            let words = by_files(&words).map_err(|one| clang_launch_error(one, launch))?;
            start(&mut clang_process(launch, &words, depth)).map_err(|one| clang_launch_error(one, launch))
        }
        result => result.map_err(|one| clang_launch_error(one, launch)),
    }
}

/// The process to start, whose command line is printed if that is requested.
fn clang_process(launch: &LaunchCommand, words: &[OsString], depth: u32) -> Command {
    if launch.verbose {
        let _ = io::stderr().write_all(&line(launch, words));
    }
    let mut command = Command::new(&launch.program);
    command.args(words).env(ENV_ACTIVE, (depth + 1).to_string());
    for (name, value) in &launch.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

fn clang_launch_error(error: io::Error, launch: &LaunchCommand) -> Diagnostic {
    Diagnostic::error(codes::NO_CLANG, error.to_string()).in_file(&launch.program)
}

/// The number of instances of this program above this one.
pub(crate) fn depth() -> u32 {
    env::var(ENV_ACTIVE).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn plain(words: &[ClangArgument]) -> io::Result<Vec<OsString>> {
    words.iter().map(plain_command_word).collect()
}

fn plain_command_word(word: &ClangArgument) -> Result<OsString, io::Error> {
    match word {
        ClangArgument::Plain(word) => Ok(word.clone()),
        ClangArgument::Listed(list) => unnamed_file(list),
    }
}

/// The arguments in files in memory. Empty ones stay outside: no file can have them.
fn by_files(words: &[OsString]) -> io::Result<Vec<OsString>> {
    let mut short = Vec::new();
    for (number, some) in words.split(|word| word.is_empty()).enumerate() {
        if number > 0 {
            short.push(OsString::new());
        }
        if !some.is_empty() {
            short.push(unnamed_file(some)?);
        }
    }
    Ok(short)
}

/// A response file in memory: it lives as long as the process that clang becomes, so
/// nothing is left to remove.
fn unnamed_file(words: &[OsString]) -> io::Result<OsString> {
    let mut file = File::from(memfd_create("hotswap-words", MemfdFlags::empty())?);
    file.write_all(&response(words))?;
    Ok(format!("@/proc/self/fd/{}", file.into_raw_fd()).into())
}

/// The exact command line in a shell's syntax.
fn line(launch: &LaunchCommand, words: &[OsString]) -> Vec<u8> {
    let set = launch.env.iter().filter_map(|(name, value)| {
        let mut text = OsString::from(name);
        text.push("=");
        text.push(value.as_ref()?);
        Some(text)
    });
    let set: Vec<OsString> = set.collect();
    let prefix = (!set.is_empty()).then(|| OsStr::new("env")).into_iter().chain(set.iter().map(OsString::as_os_str));
    let words = iter::once(launch.program.as_os_str()).chain(words.iter().map(OsString::as_os_str));
    let text = shell(prefix.chain(words));
    [b"hotswap-clang: run: ", text.as_bytes(), b"\n"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_arguments_stay_outside_of_files() {
        let words = ["-I", "", "a", "b", ""].map(OsString::from);
        let short = by_files(&words).unwrap();
        let shown: Vec<&str> = short.iter().map(|word| if word.is_empty() { "" } else { "@" }).collect();
        assert_eq!(shown, ["@", "", "@", ""]);
        let back: Vec<OsString> =
            hotswap_files::expand_response_files(&short).unwrap().into_iter().map(|word| word.text).collect();
        assert_eq!(back, words);
    }
}
