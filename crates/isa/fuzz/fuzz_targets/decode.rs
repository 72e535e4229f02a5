//! Arbitrary bytes on every target: nothing panics, and what the decoder says fits together.
#![no_main]

#[path = "../src/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::decode(input));
