//! Deleting a root directory safely.
//!
//! A bind mount of `/dev` that was forgotten in it, plus a plain recursive removal, ruins the
//! machine. So mounts below the directory are undone first, the directory is left alone when one stays,
//! and the removal itself does not cross into another file system.

use crate::outcome::{During, Outcome, fail};
use crate::run;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Deletes the directory with everything in it; nothing happens when it is not there.
pub(crate) fn delete(directory: &Path) -> Outcome {
    if fs::symlink_metadata(directory).is_err() {
        return Ok(());
    }
    let directory = directory.canonicalize().during("resolve", directory)?;
    for mount in mounts_below(&directory)?.iter().rev() {
        // Whether it worked is checked in the kernel's table below, not by the tool.
        let _ = run::output(Command::new("umount").arg("--").arg(mount));
    }
    if let Some(mount) = mounts_below(&directory)?.first() {
        return fail(format!("{} is still mounted; nothing was deleted; unmount it first", mount.display()));
    }
    run::output(Command::new("rm").args(["-rf", "--one-file-system", "--"]).arg(&directory)).map(drop)
}

/// Mount points at or below the directory, outer ones first.
fn mounts_below(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let table = Path::new("/proc/self/mountinfo");
    let text = fs::read(table).during("read", table)?;
    let points = text.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let mut found: Vec<PathBuf> = points
        .map(|point| PathBuf::from(OsString::from_vec(unescape(point))))
        .filter(|p| p.starts_with(directory))
        .collect();
    found.sort();
    Ok(found)
}

/// The kernel writes blanks and backslashes of a path as `\` and three octal digits.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let digits = text.get(at + 1..at + 4).filter(|_| text[at] == b'\\');
        let code = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = code.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        out.push(byte.unwrap_or(text[at]));
        at += if byte.is_some() { 4 } else { 1 };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_userland::{Mount, Namespace};

    #[test]
    fn octal_escapes_are_undone() {
        assert_eq!(unescape(br"/a\040b\134c"), br"/a b\c");
        assert_eq!(unescape(br"/a\04"), br"/a\04");
    }

    #[test]
    fn what_is_mounted_in_a_directory_survives_its_removal() {
        if !rustix::process::geteuid().is_root() {
            return; // Only root can mount; only root has such directories.
        }
        let dir = tempfile::tempdir().unwrap();
        let (kept, doomed) = (dir.path().join("kept"), dir.path().join("doomed directory"));
        fs::create_dir_all(doomed.join("dev")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "kept").unwrap();
        // The test runs itself again inside a private namespace, where the mount is made.
        let namespace = Namespace::default().with(Mount::Bind { source: kept.clone(), target: doomed.join("dev") });
        let mut again = namespace.command(std::env::current_exe().unwrap());
        again.args(["--exact", "remove::tests::deletes_what_the_variable_names"]).env("HOTSWAP_TEST_DELETE", &doomed);
        assert!(again.output().unwrap().status.success());
        assert!(!doomed.exists());
        assert_eq!(fs::read(kept.join("file")).unwrap(), b"kept");
    }

    #[test]
    fn deletes_what_the_variable_names() {
        // The inner half of the test above; on its own it deletes a directory without mounts.
        let dir = tempfile::tempdir().unwrap();
        let directory = std::env::var_os("HOTSWAP_TEST_DELETE").map_or(dir.path().join("x"), PathBuf::from);
        fs::create_dir_all(&directory).unwrap();
        delete(&directory).unwrap();
        assert!(!directory.exists());
    }
}
