//! Parses code objects into their parts, and writes them again with other sizes.
#![no_main]

#[path = "../src/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::image(input));
