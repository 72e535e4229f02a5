//! `cargo xtask isa exam`: the exams of the instruction set at full size.
//!
//! The exams are a program of `tests/isa-exam`; here is what they stand on: the userland, LLVM's test files, a
//! library of a distribution, and folders for what is kept.

use crate::isa_source::{Apt, llvm_source};
use crate::outcome::{During, Outcome, fail};
use crate::session::Session;
use crate::{paths, remove, run};
use hotswap_userland::{ENV_CACHE, ENV_LLVM};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package whose library is real code for many targets.
const LIBRARY: &str = "librocrand1";

/// The exam's own words; without any, everything is run.
#[derive(clap::Args)]
pub(crate) struct Words {
    /// `vectors`, `sweep` or `code` with its options (`-- --help` lists them); everything without it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) fn main(words: &Words) -> Outcome {
    let session = Session::open(&paths::scratch("prefix"), &paths::scratch("work"))?;
    let reports = paths::scratch("isa-exam");
    let mut command = session.beside(&paths::cargo());
    provide(&mut command)?;
    command.current_dir(paths::workspace());
    command.args(["run", "--quiet", "--release", "--package", "hotswap-isa-exam", "--"]);
    if words.words.is_empty() {
        command.arg("all").arg(library()?);
    }
    command.args(&words.words).arg("--report").arg(&reports);
    println!("Differences are listed in {}", reports.display());
    run::show(&mut command)
}

/// Tells a command where LLVM's test files are, downloading them if needed, and where it may keep things.
pub(crate) fn provide(command: &mut Command) -> Outcome {
    command.env(ENV_LLVM, llvm_source()?).env(ENV_CACHE, folder()?);
    Ok(())
}

/// What the exams keep between runs.
fn folder() -> Outcome<PathBuf> {
    Ok(paths::cache()?.join("isa-exam"))
}

/// The library, downloaded now if it is not there.
pub(crate) fn library() -> Outcome<PathBuf> {
    let folder = folder()?.join(LIBRARY);
    if !folder.exists() {
        let partial = folder.with_extension("partial");
        remove::delete(&partial)?;
        fs::create_dir_all(&partial).during("create", &partial)?;
        download(&partial)?;
        fs::rename(&partial, &folder).during("rename", &partial)?;
    }
    find(&folder)?.map_or_else(|| fail(format!("{LIBRARY} holds no library: {}", folder.display())), Ok)
}

fn download(folder: &Path) -> Outcome {
    println!("Downloading {LIBRARY} (about 40 MB)");
    let apt = Apt::new(folder, "deb")?;
    run::output(&mut apt.command("apt-get", &["update", "-q"]))?;
    run::output(apt.command("apt-get", &["download", "-q", LIBRARY]).current_dir(folder))?;
    apt.remove()?;
    let Some(entry) = fs::read_dir(folder).during("read", folder)?.next() else {
        return fail(format!("apt downloaded no {LIBRARY}"));
    };
    let package = entry?.path();
    run::output(Command::new("dpkg-deb").arg("-x").arg(&package).arg(folder))?;
    fs::remove_file(&package).during("delete", &package)
}

/// The largest file below the folder: a package of a library holds it and a few lines of text.
fn find(folder: &Path) -> Outcome<Option<PathBuf>> {
    let mut largest: Option<(u64, PathBuf)> = None;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).during("read", &folder)? {
            let path = entry?.path();
            let metadata = path.symlink_metadata().during("read", &path)?;
            if metadata.is_dir() {
                open.push(path);
            } else if metadata.is_file() && largest.as_ref().is_none_or(|(size, _)| metadata.len() > *size) {
                largest = Some((metadata.len(), path));
            }
        }
    }
    Ok(largest.map(|(_, path)| path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_file_is_the_library() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("usr/lib")).unwrap();
        fs::write(folder.path().join("usr/notes"), "a").unwrap();
        fs::write(folder.path().join("usr/lib/x.so.1"), "library").unwrap();
        assert_eq!(find(folder.path()).unwrap(), Some(folder.path().join("usr/lib/x.so.1")));
    }
}
