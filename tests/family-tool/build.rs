//! Compiles the example family in C, as the author of such a family would, and the header's view of its structures.

use std::path::Path;
use std::{env, fs};

fn main() {
    let out = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out).join("hotswap_registry.h"), hotswap_family_abi::HEADER).expect("a header");
    let example = "../../crates/retarget/family-abi/examples/no_sethalt.c";
    println!("cargo::rerun-if-changed={example}");
    println!("cargo::rerun-if-changed=src/layout.c");
    let mut build = cc::Build::new();
    build.include(&out).warnings_into_errors(true).extra_warnings(true).std("c99");
    build.file(example).file("src/layout.c").compile("family_examples");
}
