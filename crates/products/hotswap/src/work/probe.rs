//! Programs of the tool chain that are asked, and the compiler that `hotswap-clang` would start.
//!
//! Invariants: a program gets no input, none of HotSwap's variables and no `COMPILER_PATH`, and is ended after a minute. Files
//! are written into a scratch directory only.

use hotswap_report::{Diagnostic, codes};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The time that a program may take: the headers of HIP take a second on a fast machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The output of a program.
#[derive(Debug, Default)]
pub(crate) struct ProbeOutput {
    /// Whether it ended with 0.
    pub(crate) success: bool,
    /// The signal that ended it.
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl ProbeOutput {
    /// The first line of an error, or the first line at all.
    pub(crate) fn reason(&self) -> String {
        let lines = || self.stderr.lines().chain(self.stdout.lines()).map(str::trim).filter(|line| !line.is_empty());
        let error = lines().find(|line| line.contains("error:")).or_else(|| lines().next());
        match (error, self.signal) {
            (Some(line), _) => line.to_owned(),
            (None, Some(signal)) => format!("it was ended by signal {signal} and printed nothing"),
            (None, None) => "it ended with an error and printed nothing".to_owned(),
        }
    }
}

/// Runs a program in the directory.
pub(crate) fn run(directory: &Path, program: &Path, arguments: &[&str]) -> ProbeOutput {
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
pub(crate) fn run_for(directory: &Path, command: Command, limit: Duration) -> ProbeOutput {
    finish(directory, command, limit)
}

/// Runs a program of HotSwap itself, which sees the user's settings.
pub(crate) fn run_own(directory: &Path, program: &Path, arguments: &[&str]) -> ProbeOutput {
    let mut command = Command::new(program);
    command.args(arguments);
    finish(directory, command, LIMIT)
}

/// The outputs go to files, so that neither a full pipe nor a child of the program can hold it up.
fn finish(directory: &Path, mut command: Command, limit: Duration) -> ProbeOutput {
    let [out, err] = ["stdout.txt", "stderr.txt"].map(|name| directory.join(name));
    let started = File::create(&out).and_then(|stdout| {
        let stderr = File::create(&err)?;
        command.current_dir(directory).stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn()
    });
    let mut child = match started {
        Ok(child) => child,
        Err(error) => return ProbeOutput { stderr: error.to_string(), ..ProbeOutput::default() },
    };
    let Some(status) = wait(&mut child, limit) else {
        let stderr = format!("error: it was ended after {} seconds", limit.as_secs());
        return ProbeOutput { stderr, ..ProbeOutput::default() };
    };
    ProbeOutput {
        success: status.success(),
        signal: status.signal(),
        stdout: read_lossy_text(&out),
        stderr: read_lossy_text(&err),
    }
}

fn read_lossy_text(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// How the program ended; `None` if it had to be ended.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => thread::sleep(Duration::from_millis(5)),
            Err(_) => break,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// A program on `PATH`.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

/// The compiler that a build through HotSwap uses.
#[derive(Debug)]
pub(crate) struct ChosenClang {
    pub(crate) path: PathBuf,
    /// How it was found.
    pub(crate) origin: String,
}

/// The compiler that the wrapper in this installation would start, by the wrapper's own report; else the reason.
pub(crate) fn chosen_clang(directory: &Path, wrapper: &Path) -> Result<ChosenClang, String> {
    let explained = run_own(directory, wrapper, &["--hotswap-explain=json", "-x", "hip", "-c", "probe.hip"]);
    let json: serde_json::Value = serde_json::from_str(&explained.stdout).unwrap_or_default();
    let path = json["clang"]["path"].as_str().filter(|_| explained.success);
    let path = path.map(PathBuf::from).ok_or_else(|| explained.reason())?;
    Ok(ChosenClang { path, origin: json["clang"]["from"].as_str().unwrap_or_default().to_owned() })
}

/// The directory of this installation.
pub(crate) fn prefix() -> Result<PathBuf, Diagnostic> {
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    let program = program.map_err(|error| Diagnostic::error(codes::NO_INSTALL, error.to_string()))?;
    let prefix = program.parent().and_then(Path::parent).map(Path::to_owned);
    prefix
        .ok_or_else(|| Diagnostic::error(codes::NO_INSTALL, "the program is not in a bin directory").in_file(&program))
}

/// The shared libraries that the dynamic loader would load for a program or a library, as `ldd` asks it.
pub(crate) fn loaded_libraries(directory: &Path, program: &Path) -> Vec<PathBuf> {
    let mut command = Command::new("ldd");
    command.arg(program);
    let listed = finish(directory, command, LIMIT).stdout;
    let words = listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(|word| PathBuf::from(word.trim_end_matches(':'))).filter(|path| path.is_file()).collect()
}
