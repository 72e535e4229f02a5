//! Every instruction that decodes, changed and built again: the result is the requested one.
#![no_main]

#[path = "../src/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::round_trip(input));
