//! Everything that a task needs of the machine and that can be known before it builds: room on the disk, a directory for temporary
//! files, a C compiler, the crates, a mirror of Debian's where a userland is to be built.
//!
//! Invariants: a check is one sentence with the object, the fact and the way out. Nothing is built or downloaded before the
//! checks that need no network.
//!
//! Absent on purpose: rights and tools for the userland, which `setup` checks.

use crate::c_compiler::CCompiler;
use crate::outcome::{Outcome, fail};
use crate::recipe::Part;
use crate::{disk, paths, registry, run, setup};
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

/// The needs of a task on a machine where nothing is there yet.
pub(crate) struct TaskNeeds {
    /// Bytes in cargo's target directory, rounded up.
    pub(crate) target: u64,
    /// The part of the userland, if any.
    pub(crate) part: Option<Part>,
}

/// More than compilers leave there at a time.
const TEMPORARY: usize = 16 << 20;

/// A program that needs the C library's headers.
const PROGRAM: &str = "#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n";

/// Checks everything, and downloads the crates and the lists of packages.
pub(crate) fn check(needs: &TaskNeeds) -> Outcome {
    check_temporary(&env::temp_dir())?;
    check_c_compiler(&CCompiler::from_env()?)?;
    let userland = needs.part.map_or(Ok(0), setup::check)? * 1_000_000;
    check_disk(&places(needs, userland)?)?;
    thread::scope(|scope| {
        let lists = (userland > 0).then(|| scope.spawn(setup::check_mirror));
        registry::fetch(paths::workspace())?;
        lists.map_or(Ok(()), |lists| lists.join().unwrap_or_else(|_| fail("the check of the mirror panicked")))
    })
}

/// A directory, and the bytes that will be added to it.
struct GrowingPlace {
    directory: PathBuf,
    name: &'static str,
    bytes: u64,
}

fn places(needs: &TaskNeeds, userland: u64) -> Outcome<Vec<GrowingPlace>> {
    let target = paths::target();
    // Looking through a large directory takes longer than all other checks.
    let is_ample = disk::free_space(target)?.bytes >= needs.target + userland;
    let bytes = if is_ample { needs.target } else { needs.target.saturating_sub(disk::size_of(target)) };
    let mut places = vec![GrowingPlace { directory: target.to_owned(), name: "target directory", bytes }];
    if userland > 0 {
        places.push(GrowingPlace { directory: paths::cache()?, name: "ROCm userland", bytes: userland });
    }
    Ok(places)
}

/// Compares the needs of all places on a file system with its room.
fn check_disk(places: &[GrowingPlace]) -> Outcome {
    for place in places {
        let free = disk::free_space(&place.directory)?;
        let mut needed = 0;
        let mut names = Vec::new();
        for other in places {
            if disk::free_space(&other.directory)?.device == free.device {
                needed += other.bytes;
                names.push(format!(
                    "{} for the {} in {}",
                    disk::in_words(other.bytes),
                    other.name,
                    other.directory.display()
                ));
            }
        }
        if needed > free.bytes {
            return fail(format!(
                "the disk has {} free, and this task needs {}: {}; free some, or move them (CARGO_TARGET_DIR, XDG_CACHE_HOME)",
                disk::in_words(free.bytes),
                disk::in_words(needed),
                names.join(", ")
            ));
        }
    }
    Ok(())
}

/// Compilers and package managers write there, and report something else where they cannot.
fn check_temporary(directory: &Path) -> Outcome {
    let written = tempfile::tempdir_in(directory).and_then(|scratch| {
        let mut file = fs::File::create(scratch.path().join("file"))?;
        file.write_all(&vec![0x5a; TEMPORARY])
    });
    written.or_else(|error| {
        fail(format!(
            "the directory for temporary files, {}, cannot take {}: {error}; set TMPDIR to one that can",
            directory.display(),
            disk::in_words(TEMPORARY as u64)
        ))
    })
}

/// It compiles the crates with C code and links every program.
fn check_c_compiler(compiler: &CCompiler) -> Outcome {
    let directory = tempfile::tempdir()?;
    let source = directory.path().join("program.c");
    fs::write(&source, PROGRAM)?;
    let linked = directory.path().join("program");
    let mut command = compiler.command();
    command.arg(&source).arg("-o").arg(&linked);
    match run::output(&mut command).and_then(|_| run::output(&mut Command::new(linked))) {
        Ok(_) => Ok(()),
        Err(failure) => fail(format!(
            "no C compiler: `{}` cannot compile and link a program; install one (Debian: gcc and libc6-dev), or set CC\n{failure}",
            compiler.words().join(" ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(result: Outcome) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_full_disk_is_told_in_numbers() {
        let place = |name, bytes| GrowingPlace { directory: env::temp_dir().join("absent"), name, bytes };
        check_disk(&[place("target directory", 1000)]).unwrap();
        let text = sentence(check_disk(&[place("target directory", 1000), place("ROCm userland", 1 << 60)]));
        assert!(
            text.contains(" free, and this task needs 1152921504.6 GB: 0 MB for the target directory in "),
            "{text}"
        );
    }

    #[test]
    fn a_directory_for_temporary_files_is_tried() {
        check_temporary(&env::temp_dir()).unwrap();
        for absent in ["/nonexistent", "/proc"] {
            let text = sentence(check_temporary(Path::new(absent)));
            assert!(
                text.starts_with(&format!("the directory for temporary files, {absent}, cannot take 17 MB: ")),
                "{text}"
            );
        }
    }

    #[test]
    fn a_c_compiler_is_tried() {
        let check = |text: &str| check_c_compiler(&CCompiler::parse(text).unwrap());
        check("cc").unwrap();
        check("env cc -O1").unwrap();
        // `true` succeeds and writes nothing.
        for bad in ["/nonexistent/cc", "cc --no-such-option", "true -c"] {
            let text = sentence(check(bad));
            assert!(text.starts_with(&format!("no C compiler: `{bad}` cannot")), "{text}");
        }
        assert!(CCompiler::parse(" ").is_err());
    }
}
