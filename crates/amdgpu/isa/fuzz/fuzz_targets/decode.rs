//! Arbitrary bytes on every target: nothing panics, and the decoder's results are consistent.
#![no_main]

#[path = "../src/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::decode(input));
