//! Writes seeds for the fuzz targets: instructions of LLVM's disassembler tests, each on the processors that its
//! file is for. They are made at run time; LLVM's tests are not part of this repository.

#![allow(missing_docs)]

#[path = "checks.rs"]
mod checks;

use hotswap_isa::{Target, Wave};
use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs, io};

/// The bytes after the code of a seed: the value of a field, and bytes of a next instruction.
const TAIL: [u8; 8] = [0x7f, 0x01, 0xff, 0, 0x80, 0, 0, 0];

fn main() -> io::Result<()> {
    let mut words = env::args_os().skip(1);
    let (Some(tests), Some(corpus)) = (words.next(), words.next()) else {
        return Err(io::Error::other("usage: seeds DIRECTORY_OF_TESTS DIRECTORY_OF_SEEDS"));
    };
    fs::create_dir_all(&corpus)?;
    let mut seeds = BTreeSet::new();
    for entry in fs::read_dir(tests)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            add(&fs::read_to_string(&path)?, &mut seeds);
        }
    }
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(Path::new(&corpus).join(format!("llvm-{number}")), seed)?;
    }
    println!("{} seeds", seeds.len());
    Ok(())
}

/// One file: every eighth instruction of it, so that thousands of files do not slow the engine's start.
fn add(text: &str, seeds: &mut BTreeSet<Vec<u8>>) {
    let mut targets = BTreeSet::new();
    for word in text.lines().filter(|line| line.contains("RUN:")).flat_map(str::split_whitespace) {
        targets.extend(word.strip_prefix("-mcpu=").filter(|name| Target::find(name).is_some()));
    }
    let wave = if text.contains("+wavefrontsize64") { Wave::W64 } else { Wave::W32 };
    for (number, code) in text.lines().filter_map(bytes).enumerate().step_by(8) {
        for target in &targets {
            seeds.insert(checks::join(target, wave, number % 16 == 0, &[&code[..], &TAIL].concat()));
        }
    }
}

/// A line of bytes: `0xff,0x3a` or `[0xff 0x3a]`.
fn bytes(line: &str) -> Option<Vec<u8>> {
    let line = line.trim().trim_start_matches('[').trim_end_matches(']');
    let parts = line.split([',', ' ']).filter(|part| !part.is_empty());
    let bytes = parts.map(|part| u8::from_str_radix(part.strip_prefix("0x")?, 16).ok());
    bytes.collect::<Option<Vec<u8>>>().filter(|bytes| bytes.len() >= 4)
}
