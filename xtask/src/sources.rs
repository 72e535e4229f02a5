//! The files of a source tree: those that git tracks, or all of them where it is not a repository, as in a source
//! tarball.
//!
//! Invariants: paths are relative to the tree and sorted. Outputs of cargo are absent.

use crate::outcome::{During, Outcome, fail};
use crate::run;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::UNIX_EPOCH;

/// Whether the tree is a repository of its own. A tarball may be unpacked inside of another one, which knows nothing of its files.
pub(crate) fn is_repository(tree: &Path) -> bool {
    tree.join(".git").exists()
}

/// The files of the last state that git knows.
pub(crate) fn tracked_files(tree: &Path) -> Outcome<Vec<String>> {
    list(tree, &["ls-files", "-z"])
}

/// Every file that is or may become part of a commit.
pub(crate) fn committable_files(tree: &Path) -> Outcome<Vec<String>> {
    list(tree, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
}

fn list(tree: &Path, git: &[&str]) -> Outcome<Vec<String>> {
    let mut files = Vec::new();
    if is_repository(tree) {
        let text = run::output(Command::new("git").current_dir(tree).args(git))?;
        files.extend(text.split_terminator('\0').map(str::to_owned));
    } else {
        add_files(tree, "", &mut files)?;
    }
    files.sort();
    files.dedup();
    if files.is_empty() { fail(format!("{} has no source files", tree.display())) } else { Ok(files) }
}

/// Adds the files below a directory, whose path in the tree ends with a slash or is empty.
fn add_files(tree: &Path, directory: &str, files: &mut Vec<String>) -> Outcome {
    let path = tree.join(directory);
    for entry in fs::read_dir(&path).during("read", &path)? {
        let entry = entry.during("read", &path)?;
        let name = format!("{directory}{}", entry.file_name().display());
        // A link to a directory is a file of the tree.
        if entry.file_type().during("read", &path)?.is_dir() {
            // Directories of outputs have a tag that backup programs read, too.
            if !entry.path().join("CACHEDIR.TAG").exists() {
                add_files(tree, &format!("{name}/"), files)?;
            }
        } else {
            files.push(name);
        }
    }
    Ok(())
}

/// The time of the sources, in seconds since 1970: that of the last commit, or of a file of a tarball that builders do not
/// change; `git archive` gives it the same time. Patched files and vendored crates are younger.
pub(crate) fn time(tree: &Path) -> Outcome<String> {
    if is_repository(tree) {
        let mut command = Command::new("git");
        return Ok(run::output(command.current_dir(tree).args(["log", "-1", "--format=%ct"]))?.trim().to_owned());
    }
    let path = tree.join("LICENSE");
    let modified = fs::metadata(&path).and_then(|metadata| metadata.modified()).during("read", &path)?;
    Ok(modified.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()).to_string())
}

/// Copies the sources into a directory: those of the last commit, or all of a tarball.
pub(crate) fn copy(tree: &Path, archive: &Path, directory: &Path) -> Outcome {
    if is_repository(tree) {
        let git = ["archive", "--format=tar", "-o"];
        run::output(Command::new("git").args(git).arg(archive).arg("HEAD").current_dir(tree))?;
    } else {
        let list = archive.with_extension("list");
        fs::write(&list, tracked_files(tree)?.join("\0")).during("write", &list)?;
        let mut tar = Command::new("tar");
        tar.arg("-cf").arg(archive).arg("-C").arg(tree).args(["--null", "--verbatim-files-from", "-T"]).arg(&list);
        run::output(&mut tar)?;
        fs::remove_file(&list).during("delete", &list)?;
    }
    run::output(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(directory))?;
    fs::remove_file(archive).during("delete", archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tarball_has_all_its_files_and_a_repository_its_tracked_ones() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().join("tree");
        for (name, text) in
            [("LICENSE", ""), ("a.rs", ""), ("b ü/c.rs", ""), ("target/CACHEDIR.TAG", ""), ("target/d.rs", "")]
        {
            fs::create_dir_all(tree.join(name).parent().unwrap()).unwrap();
            fs::write(tree.join(name), text).unwrap();
        }
        assert_eq!(tracked_files(&tree).unwrap(), ["LICENSE", "a.rs", "b ü/c.rs"]);
        assert_eq!(committable_files(&tree).unwrap(), ["LICENSE", "a.rs", "b ü/c.rs"]);
        // The other files were patched since.
        let commit = UNIX_EPOCH + std::time::Duration::from_secs(1_500_000_000);
        fs::File::options().append(true).open(tree.join("LICENSE")).unwrap().set_modified(commit).unwrap();
        assert_eq!(time(&tree).unwrap(), "1500000000");
        let copied = directory.path().join("copied");
        fs::create_dir(&copied).unwrap();
        copy(&tree, &directory.path().join("sources.tar"), &copied).unwrap();
        assert_eq!(tracked_files(&copied).unwrap(), ["LICENSE", "a.rs", "b ü/c.rs"]);
        // An empty repository around it knows none of the files.
        run::output(Command::new("git").args(["init", "-q"]).current_dir(directory.path())).unwrap();
        assert_eq!(tracked_files(&tree).unwrap().len(), 3);
        run::output(Command::new("git").args(["init", "-q"]).current_dir(&tree)).unwrap();
        assert!(tracked_files(&tree).is_err(), "no file is tracked");
        assert_eq!(committable_files(&tree).unwrap()[..3], ["LICENSE", "a.rs", "b ü/c.rs"]);
        let _ = fs::remove_dir_all(tree.join(".git"));
        fs::remove_dir_all(&tree).unwrap();
    }
}
