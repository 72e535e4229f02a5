//! Generates the tables of this crate from the rows.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let rows = root.join("rows");
    println!("cargo::rerun-if-changed=rows");
    let model = hotswap_isa_meta::rows::read(&rows).unwrap_or_else(|error| fail_build(&error.to_string()));
    let generated = hotswap_isa_meta::generate::generate(&model).unwrap_or_else(|error| fail_build(&error.to_string()));
    for file in &generated.files {
        write_file(&out.join(&file.name), &file.content);
    }
}

fn fail_build(message: &str) -> ! {
    println!("cargo::error={message}");
    process::exit(1)
}

fn write_file(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap_or_else(|error| fail_build(&format!("{}: {error}", path.display())));
}
