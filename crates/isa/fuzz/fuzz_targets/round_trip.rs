//! Every instruction that decodes, changed and built again: what comes out is what was asked for.
#![no_main]

#[path = "../src/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::round_trip(input));
