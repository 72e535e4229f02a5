//! LLVM's own tests of code generation: compiled for the source, run through the engine and judged.
//!
//! Invariants: a file that LLVM does not compile for the source is left out and counts as no object. Each object is
//! tested in three forms: relocatable, linked with its relocations, and linked without.

use crate::exam::{Tally, object_of};
use hotswap_userland::Workbench;
use std::io;
use std::path::{Path, PathBuf};

/// Files of LLVM's intermediate language in a directory and those below, in the order of their names.
///
/// # Errors
/// A directory that cannot be read.
pub fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut directories) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir()? {
            let path = entry?.path();
            match path.is_dir() {
                true => directories.push(path),
                false if path.extension().is_some_and(|extension| extension == "ll") => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

/// An object of a test, with its name.
#[derive(Debug, Clone)]
pub struct NamedObject {
    /// Of the test and the form.
    pub name: String,
    /// The file.
    pub bytes: Vec<u8>,
}

/// A test compiled for the source, in all forms; none if LLVM does not compile it.
///
/// # Panics
/// If a file that was made cannot be read.
#[must_use]
pub fn compile_test(bench: &Workbench, file: &Path) -> Vec<NamedObject> {
    let name = name(file);
    let Ok(text) = std::fs::read(file) else { return Vec::new() };
    bench.write(&format!("{name}.ll"), &text);
    let compile = format!(
        "timeout 60 llc-24 -mtriple=amdgcn-amd-amdhsa -mcpu=gfx1250 -filetype=obj '{name}.ll' -o '{name}.o' && \
         ld.lld-24 -shared --emit-relocs '{name}.o' -o '{name}.relocs.co' && ld.lld-24 -shared '{name}.o' -o '{name}.co'"
    );
    let mut objects = Vec::new();
    if bench.shell(&compile).status.success() {
        for name in ["o", "relocs.co", "co"].map(|form| format!("{name}.{form}")) {
            objects.push(NamedObject { bytes: bench.read(&name), name });
        }
    }
    let _ = bench.shell(&format!("rm -f '{name}'.*"));
    objects
}

/// One test in all forms.
///
/// # Panics
/// If a tool of the userland other than the compiler fails.
#[must_use]
pub fn test(bench: &Workbench, file: &Path) -> Tally {
    let mut tally = Tally::default();
    for NamedObject { name, bytes } in compile_test(bench, file) {
        tally.objects += 1;
        object_of(bench, &name, &bytes, None, &mut tally);
        let _ = bench.shell(&format!("rm -f '{name}'*"));
    }
    tally
}

/// Its name and that of its directory: names of files alone are not unique. No name is a prefix of another one.
fn name(file: &Path) -> String {
    let directory = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    format!("{directory}-{}_", file.file_stem().unwrap_or_default().to_string_lossy())
}
