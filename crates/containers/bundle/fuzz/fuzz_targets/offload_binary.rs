//! OffloadBinaries of all versions.
#![no_main]

#[path = "../src/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::offload_binary(input));
