//! Code objects without a file, whose bounds table locates the profile.
#![no_main]

#[path = "../src/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::table(input));
