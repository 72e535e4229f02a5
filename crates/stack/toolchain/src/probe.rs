//! Programs of the tool chain that are asked, and the compiler that `hotswap-clang` would start.

pub use hotswap_files::asked_program::{ProbeOutput, is_unusable, on_path, run, run_for};

use hotswap_files::asked_program::LIMIT;
use hotswap_files::reads;
use hotswap_report::{Diagnostic, codes};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a program of HotSwap itself, which sees the user's settings.
fn run_own(directory: &Path, program: &Path, arguments: &[&str]) -> Result<ProbeOutput, Diagnostic> {
    let mut command = Command::new(program);
    command.args(arguments);
    run_for(directory, command, LIMIT)
}

/// The compiler that a build through HotSwap uses.
#[derive(Debug)]
pub struct ChosenClang {
    pub path: PathBuf,
    /// How it was found.
    pub origin: String,
}

/// The compiler that the wrapper in this installation would start, by the wrapper's own report.
///
/// # Errors
/// [`codes::NO_CLANG`] with the wrapper's reason, and as [`run`].
pub fn chosen_clang(directory: &Path, wrapper: &Path) -> Result<ChosenClang, Diagnostic> {
    let explained = run_own(directory, wrapper, &["--hotswap-explain=json", "-x", "hip", "-c", "probe.hip"])?;
    let json: serde_json::Value = serde_json::from_str(&explained.stdout).unwrap_or_default();
    let path = json["clang"]["path"].as_str().filter(|_| explained.success);
    let path = path.map(PathBuf::from);
    let path = path.ok_or_else(|| Diagnostic::error(codes::NO_CLANG, explained.reason()))?;
    Ok(ChosenClang { path, origin: json["clang"]["from"].as_str().unwrap_or_default().to_owned() })
}

/// The directory of this installation.
pub fn prefix() -> Result<PathBuf, Diagnostic> {
    let program = hotswap_files::own_program()?.canonicalize();
    let program = program.map_err(|error| Diagnostic::error(codes::NO_INSTALL, error.to_string()))?;
    let prefix = program.parent().and_then(Path::parent).map(Path::to_owned);
    prefix
        .ok_or_else(|| Diagnostic::error(codes::NO_INSTALL, "the program is not in a bin directory").in_file(&program))
}

/// The shared libraries that the dynamic loader would load for a program or a library, as `ldd` asks it; none for a
/// script or a static program.
///
/// # Errors
/// [`codes::NO_TOOL`] where there is no `ldd`, and as [`run`].
pub fn loaded_libraries(directory: &Path, program: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let mut command = Command::new("ldd");
    command.arg(program);
    let listed = run_for(directory, command, LIMIT)?;
    if !listed.is_started {
        return Err(Diagnostic::error(codes::NO_TOOL, listed.stderr).in_file(Path::new("ldd")));
    }
    let mut libraries = Vec::new();
    for line in listed.stdout.lines() {
        let Some(word) = line.split_whitespace().find(|word| word.starts_with('/')) else { continue };
        let path = PathBuf::from(word.trim_end_matches(':'));
        if reads::is_regular(&path)? {
            libraries.push(path);
        }
    }
    Ok(libraries)
}
