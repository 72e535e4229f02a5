//! Unpacks archives of packages into a root directory, without dpkg and without root.
//!
//! Invariants: All files belong to the user who runs the task, and no set-user-ID bit is kept. Unpacking twice gives the same files.
//! The packages' own scripts are not run; `recipe` has the few links and copies that are needed of them.

use crate::archives::Archive;
use crate::outcome::{During, Outcome, fail};
use crate::progress::Progress;
use crate::recipe::{ALTERNATIVES, COPIES, DIRECTORIES, FIRST, LEFT_OUT};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Unpacks the archives in the directory `from`, on all cores.
pub(crate) fn unpack_all(archives: &[Archive], from: &Path, root: &Path) -> Outcome {
    let progress = Progress::start(from.to_owned());
    progress.step(&format!("unpacking {} packages", archives.len()));
    fs::create_dir_all(root).during("create", root)?;
    let (first, rest): (Vec<_>, Vec<_>) = archives.iter().partition(|archive| archive.name == FIRST);
    for archive in first {
        unpack(archive, from, root)?;
    }
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from).min(rest.len());
    thread::scope(|scope| {
        let start = |_| scope.spawn(|| unpack_some(&rest, &next, from, root));
        let running: Vec<_> = (0..workers).map(start).collect();
        running.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| fail("a thread panicked")))
    })
}

/// Unpacks the next archive until none is left.
fn unpack_some(archives: &[&Archive], next: &AtomicUsize, from: &Path, root: &Path) -> Outcome {
    while let Some(archive) = archives.get(next.fetch_add(1, Ordering::Relaxed)) {
        unpack(archive, from, root).inspect_err(|_| next.store(archives.len(), Ordering::Relaxed))?;
    }
    Ok(())
}

/// Unpacks an archive, and writes the list of its files as dpkg keeps it.
fn unpack(archive: &Archive, from: &Path, root: &Path) -> Outcome {
    let path = from.join(&archive.file);
    let mut reader = spawn(Command::new("dpkg-deb").arg("--fsys-tarfile").arg(&path).stdout(Stdio::piped()))?;
    let mut tar = Command::new("sh");
    // Other users inside read the files, too.
    tar.args(["-c", "umask 022; exec tar \"$@\"", "sh", "-x", "-v", "-C"]).arg(root);
    tar.args(["--no-same-owner", "--no-same-permissions", "--keep-directory-symlink"]);
    tar.args(LEFT_OUT.iter().map(|pattern| format!("--exclude={pattern}")));
    let input = reader.stdout.take().map_or_else(Stdio::null, Stdio::from);
    let output = tar.stdin(input).stderr(Stdio::piped()).output()?;
    let status = reader.wait_with_output()?;
    if !output.status.success() || !status.status.success() {
        let reasons = [&output.stderr[..], &status.stderr[..]].map(first_line).join(" ");
        return fail(format!("cannot unpack {}: {}", archive.file, reasons.trim()));
    }
    let lists = root.join("var/lib/dpkg/info");
    fs::create_dir_all(&lists).during("create", &lists)?;
    let list = lists.join(format!("{}.list", archive.name));
    fs::write(&list, installed_paths(&String::from_utf8_lossy(&output.stdout))).during("write", &list)
}

fn first_line(output: &[u8]) -> String {
    String::from_utf8_lossy(output).lines().next().unwrap_or_default().to_owned()
}

fn spawn(command: &mut Command) -> Outcome<Child> {
    Ok(command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?)
}

/// dpkg's form of tar's list.
fn installed_paths(listed: &str) -> String {
    let mut paths = String::new();
    for line in listed.lines().filter_map(|line| line.strip_prefix('.')) {
        paths += match line.strip_suffix('/') {
            Some("") => "/.",
            Some(directory) => directory,
            None => line,
        };
        paths.push('\n');
    }
    paths
}

/// Directories, copies and links that the packages' scripts would make.
pub(crate) fn configure(root: &Path) -> Outcome {
    for directory in DIRECTORIES {
        let directory = root.join(directory);
        fs::create_dir_all(&directory).during("create", &directory)?;
    }
    for (from, to) in COPIES {
        let (from, to) = (root.join(from), root.join(to));
        if from.exists() && !to.exists() {
            fs::copy(&from, &to).during("copy", &from)?;
        }
    }
    for (link, target) in ALTERNATIVES {
        let link = root.join(link);
        let is_needed = link.parent().is_some_and(|directory| directory.join(target).exists());
        if is_needed && fs::symlink_metadata(&link).is_err() {
            symlink(target, &link).during("link", &link)?;
        }
    }
    let hosts = root.join("etc/hosts");
    fs::write(&hosts, "127.0.0.1 localhost\n::1 localhost\n").during("write", &hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_the_form_of_dpkg() {
        assert_eq!(installed_paths("./\n./usr/\n./usr/bin/x\n"), "/.\n/usr\n/usr/bin/x\n");
    }

    #[test]
    fn a_damaged_archive_is_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("x_1_all.deb"), "no archive").unwrap();
        let archive =
            Archive { name: "x".to_owned(), version: "1".to_owned(), file: "x_1_all.deb".to_owned(), bytes: 10 };
        let failure = unpack_all(&[archive], directory.path(), &directory.path().join("root")).unwrap_err().to_string();
        assert!(failure.contains("cannot unpack x_1_all.deb: ") && failure.contains("dpkg-deb: error"), "{failure}");
    }
}
