//! Arguments for the link of `libhotswap_names.so`: its name for other libraries, and an unwinder of its own.
//!
//! rustc links the unwinder of the system as a shared library. This library is loaded into every program of a user's
//! session, so it has only libc below it: libgcc's static unwinder is linked first, and the shared one, which is then
//! not needed, is left out by `--as-needed`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libhotswap-names.so");
        // Registrars of the families are for the linker of our tools alone.
        println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
        // A machine without the archive builds a library that needs libgcc_s.so.1, as HIP does.
        if let Some(archive) = find_unwinder() {
            let directory = archive.parent().unwrap_or(Path::new("/"));
            println!("cargo::rustc-link-search=native={}", directory.display());
            println!("cargo::rustc-link-lib=static:+whole-archive,-bundle=gcc_eh");
        }
    }
}

/// The static unwinder of the C compiler that rustc links with.
fn find_unwinder() -> Option<PathBuf> {
    let linker = env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output().ok()?;
    // Without the file, compilers print the name alone.
    Some(PathBuf::from(String::from_utf8(output.stdout).ok()?.trim())).filter(|path| path.is_absolute())
}
