//! The identity of this HotSwap build: a hash over the sources that determine its output.
//!
//! It is part of every plan hash, so compiler caches and build systems see a changed HotSwap as a
//! changed command line. The version number alone would not do that during development.

use sha2::{Digest, Sha256};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Libraries of patch families that the build links into the tools, `NAME=LIBRARY`, separated as in `PATH`.
const FAMILIES: &str = "HOTSWAP_FAMILIES";
const ROOTS: &[&str] = &["crates", "driver-wrapper", "linker-plugin", "Cargo.lock"];

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut files = Vec::new();
    for root in ROOTS {
        println!("cargo:rerun-if-changed={}", workspace.join(root).display());
        collect_files(&workspace.join(root), &mut files);
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in &files {
        hash.update(file.strip_prefix(&workspace).unwrap_or(file).as_os_str().as_encoded_bytes());
        hash.update(fs::read(file).expect("a source can be read"));
    }
    hash_family_libraries(&mut hash);
    let digest: String = hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo:rustc-env=HOTSWAP_IDENTITY={digest}");
}

/// Third-party families determine the tools' output as much as our own do.
fn hash_family_libraries(hash: &mut Sha256) {
    println!("cargo:rerun-if-env-changed={FAMILIES}");
    let families = env::var_os(FAMILIES).unwrap_or_default();
    for item in env::split_paths(&families).filter(|item| !item.as_os_str().is_empty()) {
        let text = item.to_string_lossy();
        let (name, library) = text.split_once('=').unwrap_or((&text, ""));
        println!("cargo:rerun-if-changed={library}");
        hash.update(name);
        hash.update(fs::read(library).expect("HOTSWAP_FAMILIES names a library that can be read"));
    }
}

/// Sources and tables, without tests, which do not change the tools' output.
fn collect_files(path: &Path, files: &mut Vec<PathBuf>) {
    let name = path.file_name().unwrap_or_default();
    if path.is_dir() && name != "target" && name != "tests" {
        for entry in fs::read_dir(path).expect("a directory of sources can be read") {
            collect_files(&entry.expect("an entry of it can be read").path(), files);
        }
    } else if path.extension().is_some_and(|e| ["rs", "def", "h", "lock", "toml", "c"].iter().any(|x| e == *x)) {
        files.push(path.to_owned());
    }
}
