//! Finding llvm-profdata and llvm-cov, and running them.
//!
//! A raw profile is read only by the LLVM whose compiler made it, so the version in its header selects the tools. They
//! are searched in this order: the named directories, the directory of the clang that `hotswap-clang` would run, Debian's
//! directories, `PATH`.

use crate::raw_profile::RawProfile;
use hotswap_files::asked_program::is_unusable;
use hotswap_files::command_output;
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The versions of LLVM that read a version of raw profiles.
struct ProfileReaders {
    raw_version: u32,
    oldest: u32,
    newest: u32,
}

const READERS: &[ProfileReaders] = &[
    ProfileReaders { raw_version: 10, oldest: 20, newest: 22 },
    ProfileReaders { raw_version: 11, oldest: 23, newest: 24 },
];
/// Versions of LLVM that are searched for in Debian's directories.
const DEBIAN: std::ops::RangeInclusive<u32> = 20..=30;

/// The tools of a version of LLVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Llvm {
    pub directory: PathBuf,
    pub major: u32,
}

impl Llvm {
    /// Whether its tools read that version of raw profiles; a version newer than our table is tried.
    fn reads(&self, version: u32) -> bool {
        let newest = READERS.iter().map(|row| row.newest).max().unwrap_or_default();
        let row = READERS.iter().find(|row| row.raw_version == version);
        let is_latest = READERS.last().is_some_and(|row| row.raw_version == version);
        row.is_some_and(|row| (row.oldest..=row.newest).contains(&self.major)) || (is_latest && self.major > newest)
    }
}

/// The available LLVMs, best first.
///
/// # Errors
/// [`codes::NO_TOOL`] where they do not exist, or a named directory lacks them.
pub fn find_llvms(named: &[PathBuf]) -> Result<Vec<Llvm>, Diagnostic> {
    if !named.is_empty() {
        return named.iter().map(|directory| find_named(directory)).collect();
    }
    let debian = DEBIAN.rev().map(|major| PathBuf::from(format!("/usr/lib/llvm-{major}/bin")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    // An empty or relative directory of PATH depends on the working directory, where any user's files may be.
    let on_path = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    let places = beside_clang()?.into_iter().chain(debian).chain(on_path);
    let mut found: Vec<Llvm> = Vec::new();
    let mut failure = None;
    for directory in places {
        match find_llvm_in(&directory)? {
            FoundTool::Llvm(llvm) if !found.iter().any(|known| known.major == llvm.major) => found.push(llvm),
            FoundTool::Unusable(why) => failure = failure.or(Some(why)),
            FoundTool::Llvm(_) | FoundTool::Absent => {}
        }
    }
    if found.is_empty() {
        let why = failure.map_or(String::new(), |why| format!(": {why}"));
        Err(missing_tool_error(format!("no llvm-profdata is beside clang, in /usr/lib/llvm-* or on PATH{why}")))
    } else {
        Ok(found)
    }
}

/// The `llvm-profdata` of a directory.
enum FoundTool {
    Llvm(Llvm),
    Absent,
    /// It does not start, or does not tell its version, because of this.
    Unusable(String),
}

fn find_named(directory: &Path) -> Result<Llvm, Diagnostic> {
    let why = match find_llvm_in(directory)? {
        FoundTool::Llvm(llvm) => return Ok(llvm),
        FoundTool::Absent => String::new(),
        FoundTool::Unusable(why) => format!(": {why}"),
    };
    Err(missing_tool_error(format!("no llvm-profdata that runs is in {}{why}", directory.display())))
}

fn missing_tool_error(what: String) -> Diagnostic {
    Diagnostic::error(codes::NO_TOOL, what).advise("install LLVM's tools, or name their directory with --llvm-bin")
}

/// The directory of the tools of the clang that our wrapper runs; `None` also where a root directory without `/proc` does not
/// show where this program is.
fn beside_clang() -> Result<Option<PathBuf>, Diagnostic> {
    let own = match std::env::current_exe() {
        Err(_) if !hotswap_files::reads::is_there(Path::new("/proc/self"))? => return Ok(None),
        own => own.map_err(|error| missing_tool_error(format!("own path: {error}")))?,
    };
    let wrapper = own.with_file_name("hotswap-clang");
    let mut command = Command::new(&wrapper);
    command.arg("-print-prog-name=llvm-profdata");
    let output = match command_output(&mut command) {
        Err(error) if !is_unusable(&error) => return Err(failed_tool_error(error, &wrapper)),
        output => output.ok().filter(|output| output.status.success()),
    };
    let path = output.and_then(|output| String::from_utf8(output.stdout).ok()).map(|text| PathBuf::from(text.trim()));
    Ok(path.filter(|path| path.is_absolute()).and_then(|path| path.parent().map(Path::to_owned)))
}

fn find_llvm_in(directory: &Path) -> Result<FoundTool, Diagnostic> {
    let tool = directory.join("llvm-profdata");
    if !hotswap_files::reads::is_regular(&tool)? {
        return Ok(FoundTool::Absent);
    }
    let output = match command_output(Command::new(&tool).arg("--version")) {
        Err(error) if is_unusable(&error) => return Ok(FoundTool::Unusable(error.to_string())),
        output => output.map_err(|error| failed_tool_error(error, &tool))?,
    };
    let Some(major) = llvm_major(&String::from_utf8_lossy(&output.stdout)) else {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        return Ok(FoundTool::Unusable(errors.lines().next().map_or_else(|| output.status.to_string(), str::to_owned)));
    };
    Ok(FoundTool::Llvm(Llvm { directory: directory.to_owned(), major }))
}

fn llvm_major(text: &str) -> Option<u32> {
    let number = text.split("LLVM version ").nth(1)?;
    number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// The first that reads the profile.
///
/// # Errors
/// [`codes::NO_TOOL`], naming the file and the versions that would read it.
pub fn reader_of<'a>(llvms: &'a [Llvm], part: &RawProfile, file: &Path) -> Result<&'a Llvm, Diagnostic> {
    llvms.iter().find(|llvm| llvm.reads(part.version)).ok_or_else(|| {
        let needed = READERS.iter().find(|row| row.raw_version == part.version);
        let needed = needed.map_or(String::new(), |row| format!(", which LLVM {} to {} read", row.oldest, row.newest));
        let there: Vec<_> = llvms.iter().map(|llvm| llvm.major.to_string()).collect();
        let what =
            format!("the raw profile has version {}{needed}; at hand is LLVM {}", part.version, there.join(", "));
        let advice = "name the directory of that LLVM's llvm-profdata with --llvm-bin, which may be repeated";
        Diagnostic::error(codes::NO_TOOL, what).in_file(file).advise(advice)
    })
}

/// Runs a tool of an LLVM; its standard error is shown to the user.
///
/// # Errors
/// [`codes::CHILD_FAILED`] with its first error, [`codes::NO_TOOL`].
pub fn run_tool(llvm: &Llvm, tool: &str, words: &[OsString]) -> Result<Output, Diagnostic> {
    let path = llvm.directory.join(tool);
    let output = command_output(Command::new(&path).args(words)).map_err(|one| failed_tool_error(one, &path))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        let first = said.lines().find(|line| line.contains("error")).or_else(|| said.lines().next());
        return Err(Diagnostic::error(codes::CHILD_FAILED, first.unwrap_or("it failed without a word")).in_file(path));
    }
    Ok(output)
}

fn failed_tool_error(error: std::io::Error, path: &Path) -> Diagnostic {
    missing_tool_error(error.to_string()).in_file(path)
}

/// The warnings of a tool that succeeded.
pub fn warnings(output: &Output) -> impl Iterator<Item = Diagnostic> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<String> = said.lines().filter(|line| line.contains("warning")).map(str::to_owned).collect();
    lines.into_iter().map(|line| Diagnostic::warning(codes::CHILD_FAILED, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_its_readers() {
        let reads = |major, version| Llvm { directory: PathBuf::new(), major }.reads(version);
        let table: Vec<_> = [19, 20, 22, 23, 24, 25].map(|major| (reads(major, 10), reads(major, 11))).into();
        let expected = [(false, false), (true, false), (true, false), (false, true), (false, true), (false, true)];
        assert_eq!(table, expected);
    }
}
