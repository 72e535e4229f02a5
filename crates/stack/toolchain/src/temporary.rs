//! The directory for temporary files of the tools that HotSwap starts: compilers, and comgr in a program that HIP runs in.
//!
//! Invariant: it is tried by use, with a directory and a file in it, which are removed.
//!
//! Absent on purpose: the directories of HotSwap's own scratch files, which `hotswap_files` chooses.

use hotswap_files::ScratchDirectory;
use hotswap_report::{Diagnostic, codes};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Variables that name it, in the order in which LLVM asks: the first that is set counts.
const VARIABLES: [&str; 4] = ["TMPDIR", "TMP", "TEMP", "TEMPDIR"];

/// Checks that directories and files of that size can be made in LLVM's directory for temporary files. comgr ends a program by a
/// memory fault where they cannot, and a compiler's message may be about something else.
pub fn check_temporary_directory(bytes: usize) -> Result<(), Diagnostic> {
    let LlvmDirectory { named_by: variable, path: directory } =
        llvm_directory(|name| env::var_os(name).map(PathBuf::from));
    check_room(&directory, bytes).map_err(|error| Diagnostic { what: format!("{variable}: {}", error.what), ..error })
}

/// LLVM's directory for temporary files.
#[derive(Debug, PartialEq, Eq)]
struct LlvmDirectory {
    /// The variable that names it, or that none does.
    named_by: &'static str,
    path: PathBuf,
}

/// An empty name is the working directory.
fn llvm_directory(value: impl Fn(&str) -> Option<PathBuf>) -> LlvmDirectory {
    let named = VARIABLES.iter().find_map(|name| Some(LlvmDirectory { named_by: name, path: value(name)? }));
    match named {
        Some(named) if named.path.as_os_str().is_empty() => LlvmDirectory { path: ".".into(), ..named },
        Some(named) => named,
        None => LlvmDirectory { named_by: "no variable names another one", path: "/tmp".into() },
    }
}

fn check_room(directory: &Path, bytes: usize) -> Result<(), Diagnostic> {
    let scratch = ScratchDirectory::new(directory, "hotswap-try-")
        .map_err(|error| temporary_directory_refusal(error.what, directory))?;
    fs::write(scratch.path().join("file"), vec![0x5a; bytes])
        .map_err(|error| temporary_directory_refusal(format!("{error}, for a file of {} KiB", bytes >> 10), directory))
}

fn temporary_directory_refusal(reason: String, directory: &Path) -> Diagnostic {
    Diagnostic::error(codes::NO_TEMPORARY, reason).in_file(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_counts() {
        let set = |pairs: &'static [(&str, &str)]| {
            move |name: &str| pairs.iter().find(|(set, _)| *set == name).map(|(_, value)| PathBuf::from(value))
        };
        assert_eq!(llvm_directory(set(&[])).path, Path::new("/tmp"));
        let second = llvm_directory(set(&[("TEMP", "/a"), ("TMP", "/b")]));
        assert_eq!(second, LlvmDirectory { named_by: "TMP", path: "/b".into() });
        let empty = llvm_directory(set(&[("TMPDIR", ""), ("TMP", "/b")]));
        assert_eq!(empty, LlvmDirectory { named_by: "TMPDIR", path: ".".into() });
    }

    #[test]
    fn a_directory_that_cannot_be_used_is_named_and_a_good_one_stays_empty() {
        let error = check_room(Path::new("/nonexistent"), 1).unwrap_err();
        assert!(error.code == codes::NO_TEMPORARY && error.to_string().contains("/nonexistent"), "{error}");
        assert!(check_room(Path::new("/proc"), 1).is_err());
        let directory = tempfile::tempdir().unwrap();
        check_room(directory.path(), 1 << 20).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
