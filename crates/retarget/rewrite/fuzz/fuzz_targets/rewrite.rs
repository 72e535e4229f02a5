//! Inserts instructions into code objects, and parses the result again.
#![no_main]

#[path = "../src/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::rewritten(input));
