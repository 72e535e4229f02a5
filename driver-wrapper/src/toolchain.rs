//! Facts that only the real clang can report: queried once for each compiler, then cached.
//!
//! Usually no query is needed: the tools of the device link are beside the resolved clang. Where they are not (wrapper
//! scripts as in Nix), or where the version or the default offload driver matters, clang is queried and the answers are
//! kept in the cache directory under the compiler's path, modification time and size.
//!
//! Invariant: clang is queried without `COMPILER_PATH`, which would make it report our own shim.

use crate::store;
use hotswap_files::reads;
use hotswap_report::{Diagnostic, codes};
use std::cell::OnceCell;
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Tools whose presence makes a directory the tool directory.
const LINKER: &str = "lld";

/// Answers about one compiler.
#[derive(Debug)]
pub struct Toolchain<'a> {
    clang: &'a Path,
    named: Option<PathBuf>,
    answers: OnceCell<Result<ClangAnswers, Diagnostic>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ClangAnswers {
    directory: PathBuf,
    major: u32,
    new_driver: bool,
}

impl<'a> Toolchain<'a> {
    /// `named`: the tool directory that was set explicitly.
    pub fn new(clang: &'a Path, named: Option<PathBuf>) -> Self {
        Self { clang, named, answers: OnceCell::new() }
    }

    /// A toolchain with known answers.
    #[cfg(test)]
    pub(crate) fn answered(clang: &'a Path, major: u32, new_driver: bool) -> Self {
        let answers = ClangAnswers { directory: PathBuf::new(), major, new_driver };
        Self { clang, named: None, answers: OnceCell::from(Ok(answers)) }
    }

    pub const fn clang(&self) -> &'a Path {
        self.clang
    }

    /// The directory with the real `lld` and the other tools of the device link.
    ///
    /// # Errors
    /// [`codes::NO_TOOL`] where it does not exist; [`codes::CANNOT_READ`] where it cannot be seen;
    /// [`codes::NO_CLANG`] if the query fails.
    pub fn directory(&self) -> Result<PathBuf, Diagnostic> {
        let resolved = reads::resolve_path(self.clang)?.unwrap_or_else(|| self.clang.to_owned());
        if !is_named_like_clang(&resolved) {
            self.answers()?;
        }
        if let Some(named) = &self.named {
            return if has_linker(named)? { Ok(named.clone()) } else { missing_linker_error(named) };
        }
        let beside = resolved.parent().unwrap_or(Path::new("/"));
        if has_linker(beside)? {
            return Ok(beside.to_owned());
        }
        let directory = &self.answers()?.directory;
        if has_linker(directory)? { Ok(directory.clone()) } else { missing_linker_error(beside) }
    }

    /// The major version of clang.
    ///
    /// # Errors
    /// [`codes::NO_CLANG`] if the query fails.
    pub fn major(&self) -> Result<u32, Diagnostic> {
        crate::find::version_in_path(self.clang)?.map_or_else(|| Ok(self.answers()?.major), Ok)
    }

    /// Whether clang uses the new offload driver for HIP, given the command's own setting.
    ///
    /// # Errors
    /// [`codes::NO_CLANG`] if the query fails.
    pub fn new_driver(&self, said: Option<bool>) -> Result<bool, Diagnostic> {
        match said {
            Some(true) => Ok(true),
            // Clang 24 has the new driver only and warns about the flag.
            Some(false) => Ok(self.major()? >= 24),
            None => Ok(self.answers()?.new_driver),
        }
    }

    fn answers(&self) -> Result<&ClangAnswers, Diagnostic> {
        self.answers.get_or_init(|| kept_or_asked(self.clang)).as_ref().map_err(Clone::clone)
    }
}

fn has_linker(directory: &Path) -> Result<bool, Diagnostic> {
    reads::is_there(&directory.join(LINKER))
}

fn missing_linker_error(directory: &Path) -> Result<PathBuf, Diagnostic> {
    Err(Diagnostic::error(codes::NO_TOOL, format!("no {LINKER} in {}", directory.display())))
}

fn kept_or_asked(clang: &Path) -> Result<ClangAnswers, Diagnostic> {
    let key = key(clang)?;
    let file = store::directory("toolchains").ok().map(|directory| directory.join(store::name_for(&key)));
    let kept = file.as_ref().and_then(|file| parse(&store::read_regular_text(file)?, &key));
    if let Some(answers) = kept {
        return Ok(answers);
    }
    let answers = ask(clang)?;
    if let Some(file) = file {
        // If this cannot be cached, only speed is lost.
        let _ = store::put(&file, print(&answers, &key).as_bytes());
    }
    Ok(answers)
}

/// One line that changes when the compiler does.
///
/// # Errors
/// [`codes::NO_CLANG`] if such a file does not exist.
pub fn key(clang: &Path) -> Result<String, Diagnostic> {
    let meta =
        fs::metadata(clang).map_err(|error| Diagnostic::error(codes::NO_CLANG, error.to_string()).in_file(clang))?;
    Ok(format!("{} {}.{} {}", clang.display(), meta.mtime(), meta.mtime_nsec(), meta.size()).replace('\n', " "))
}

fn print(answers: &ClangAnswers, key: &str) -> String {
    let mut text = format!("{key}\n");
    let _ = writeln!(text, "{}\n{}\n{}", answers.major, answers.new_driver, answers.directory.display());
    text
}

fn parse(text: &str, key: &str) -> Option<ClangAnswers> {
    let mut lines = text.lines();
    if lines.next() != Some(key) {
        return None;
    }
    let major = lines.next()?.parse().ok()?;
    let new_driver = lines.next()?.parse().ok()?;
    Some(ClangAnswers { major, new_driver, directory: lines.next()?.into() })
}

fn ask(clang: &Path) -> Result<ClangAnswers, Diagnostic> {
    let linker = run(clang, &["-print-prog-name=ld.lld"])?;
    let macros = run(clang, &["-dM", "-E", "-x", "c", "/dev/null"])?;
    let major = clang_major(&String::from_utf8_lossy(&macros.stdout)).ok_or_else(|| {
        let what = "this compiler is not clang: it does not define __clang_major__";
        Diagnostic::error(codes::NO_CLANG, what).in_file(clang)
    })?;
    // The driver that a HIP link would use is visible in the programs that it names.
    let link = run(clang, &["-###", "--hip-link", "/dev/null"])?;
    let new_driver = String::from_utf8_lossy(&link.stderr).contains("clang-linker-wrapper");
    let linker = PathBuf::from(String::from_utf8_lossy(&linker.stdout).trim());
    // The answer is kept, so one that could not be found must not be.
    let resolved = reads::resolve_path(&linker)?.unwrap_or(linker);
    Ok(ClangAnswers { directory: resolved.parent().unwrap_or(Path::new("")).to_owned(), major, new_driver })
}

/// Clang's version among the macros that a compiler defines. Other compilers have version numbers, too, and define other macros.
fn clang_major(macros: &str) -> Option<u32> {
    macros.lines().find_map(|line| line.strip_prefix("#define __clang_major__ "))?.trim().parse().ok()
}

/// Whether the resolved program has one of the names that LLVM and ROCm install. Only a program of another name is asked whether it is
/// clang, so that the usual one is not started for that.
fn is_named_like_clang(resolved: &Path) -> bool {
    let name = resolved.file_name().unwrap_or_default().to_string_lossy();
    ["clang", "amdclang"].iter().any(|start| name.starts_with(start))
}

fn run(clang: &Path, words: &[&str]) -> Result<Output, Diagnostic> {
    let mut command = Command::new(clang);
    command.args(words).env_remove("COMPILER_PATH");
    let output = hotswap_files::command_output(&mut command)
        .map_err(|error| Diagnostic::error(codes::NO_CLANG, error.to_string()).in_file(clang))?;
    // A script that calls us again ends with this error, and would look like a compiler without answers.
    let again = format!("[{}]", codes::RECURSION.id);
    if !output.status.success() && String::from_utf8_lossy(&output.stderr).contains(&again) {
        let what = format!("{} starts hotswap-clang again", clang.display());
        return Err(Diagnostic::error(codes::RECURSION, what));
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn kept_answers_are_only_good_for_the_same_compiler() {
        let answers = ClangAnswers { directory: "/a b/bin".into(), major: 23, new_driver: true };
        assert_eq!(parse(&print(&answers, "k"), "k"), Some(answers.clone()));
        assert_eq!(parse(&print(&answers, "k"), "other"), None);
        assert_eq!(parse("k\n23\n", "k"), None);
    }

    #[test]
    fn a_script_is_asked_without_our_search_path() {
        let dir = tempfile::tempdir().unwrap();
        let clang = dir.path().join("clang++");
        fs::write(dir.path().join("lld"), "").unwrap();
        let script = format!(
            "#!/bin/sh\n[ -z \"$COMPILER_PATH\" ] || exit 1\ncase $1 in\n-print-prog-name=*) echo {0}/lld;;\n\
             -dM) echo '#define __clang_major__ 23';;\n*) echo '\"{0}/clang-linker-wrapper\"' >&2;;\nesac\n",
            dir.path().display()
        );
        fs::write(&clang, script).unwrap();
        fs::set_permissions(&clang, fs::Permissions::from_mode(0o755)).unwrap();
        let directory = fs::canonicalize(dir.path()).unwrap();
        assert_eq!(ask(&clang).unwrap(), ClangAnswers { directory, major: 23, new_driver: true });
    }

    #[test]
    fn a_named_directory_must_have_the_linker() {
        let dir = tempfile::tempdir().unwrap();
        let toolchain = Toolchain::new(Path::new("/nonexistent/clang"), Some(dir.path().to_owned()));
        assert_eq!(toolchain.directory().unwrap_err().code, codes::NO_TOOL);
        fs::write(dir.path().join("lld"), "").unwrap();
        assert_eq!(toolchain.directory().unwrap(), dir.path());
        let absent = Toolchain::new(Path::new("/nonexistent/clang"), None);
        assert_eq!(absent.directory().unwrap_err().code, codes::NO_CLANG);
    }
}
