//! The parts of code objects: taken apart, put together again at other sizes.
#![no_main]

#[path = "../src/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::image(input));
