//! The C library that an installation needs, by the versions of symbols that each of its programs and shared libraries refers to.
//!
//! Invariant: the answer is read from the files, whatever built them.
//!
//! Absent on purpose: static archives, whose symbols get versions in the link of their users. Builds against an older library
//! are in `sysroot`.

use super::stage;
use crate::outcome::{During, Outcome, fail};
use crate::run;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// A version of glibc; compared by its numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GlibcVersion(Vec<u32>);

impl GlibcVersion {
    /// The number that headers compare.
    pub(super) fn minor(&self) -> u32 {
        self.0.get(1).copied().unwrap_or_default()
    }
}

impl FromStr for GlibcVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Option<Vec<u32>> = text.split('.').map(|number| number.parse().ok()).collect();
        let numbers = numbers.filter(|numbers| numbers.len() >= 2);
        numbers.map(Self).ok_or_else(|| format!("`{text}` is not a version of glibc; write for example 2.28"))
    }
}

impl fmt::Display for GlibcVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(u32::to_string).collect::<Vec<_>>().join("."))
    }
}

/// A file of an installation, and the newest version that it refers to.
struct VersionedFile {
    path: PathBuf,
    needed: GlibcVersion,
}

/// Prints the version that the installation needs; one that is newer than `limit` is an error that names the files.
pub(super) fn judge_installation(stage: &Path, limit: Option<&GlibcVersion>) -> Outcome {
    let files = versioned_files(stage)?;
    let Some(needed) = files.iter().map(|file| &file.needed).max() else {
        return fail(format!("{}: no file refers to a version of glibc", stage.display()));
    };
    println!("{} files need glibc {needed} or newer", files.len());
    let Some(limit) = limit.filter(|limit| needed > limit) else { return Ok(()) };
    let newer = files.iter().filter(|file| file.needed > *limit);
    let names: Vec<String> = newer.map(|file| format!("{} ({})", file.path.display(), file.needed)).collect();
    fail(format!("a newer glibc than {limit} is needed by {}", names.join(", ")))
}

/// The programs and shared libraries below a directory, by paths in it.
fn versioned_files(stage: &Path) -> Outcome<Vec<VersionedFile>> {
    let mut found = Vec::new();
    for path in stage::entries(stage)?.iter().filter(|path| !path.is_symlink()) {
        if !is_elf(path)? {
            continue;
        }
        let headers = run::output(Command::new("objdump").env("LC_ALL", "C").arg("-p").arg(path))?;
        if let Some(needed) = newest_version(&headers) {
            found.push(VersionedFile { path: path.strip_prefix(stage)?.to_owned(), needed });
        }
    }
    Ok(found)
}

fn is_elf(path: &Path) -> Outcome<bool> {
    let mut magic = Vec::new();
    File::open(path).and_then(|file| file.take(4).read_to_end(&mut magic)).during("read", path)?;
    Ok(magic == b"\x7fELF")
}

/// The newest version `GLIBC_…` in a list of needed versions.
fn newest_version(headers: &str) -> Option<GlibcVersion> {
    let versions = headers.split("GLIBC_").skip(1).filter_map(|rest| {
        let text = rest.split(|letter: char| !letter.is_ascii_digit() && letter != '.').next()?;
        text.parse().ok()
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_symbols_are_compared_by_their_numbers() {
        let headers =
            "0x0 0x00 03 GLIBC_2.9\n0x0 0x00 02 GLIBC_2.34\n0x0 0x00 02 GLIBC_2.2.5\n0x0 0x00 04 GLIBC_PRIVATE\n";
        assert_eq!(newest_version(headers).unwrap().to_string(), "2.34");
        assert_eq!(newest_version("no versions"), None);
        assert!("2".parse::<GlibcVersion>().is_err() && "2.x".parse::<GlibcVersion>().is_err());
    }

    #[test]
    fn a_file_that_needs_a_newer_glibc_is_named() {
        let stage = tempfile::tempdir().unwrap();
        std::fs::create_dir(stage.path().join("bin")).unwrap();
        std::fs::copy(std::env::current_exe().unwrap(), stage.path().join("bin/program")).unwrap();
        std::fs::write(stage.path().join("text"), "GLIBC_9.9").unwrap();
        judge_installation(stage.path(), None).unwrap();
        judge_installation(stage.path(), Some(&"9.9".parse().unwrap())).unwrap();
        let error = judge_installation(stage.path(), Some(&"2.0".parse().unwrap())).unwrap_err();
        assert!(error.to_string().contains("bin/program (2."), "{error}");
    }

    #[test]
    fn an_installation_without_programs_is_not_accepted() {
        let stage = tempfile::tempdir().unwrap();
        std::fs::write(stage.path().join("text"), "GLIBC_2.2").unwrap();
        assert!(judge_installation(stage.path(), Some(&"2.28".parse().unwrap())).is_err());
    }
}
