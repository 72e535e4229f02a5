//! Compressed bundles; the payload is made from the input, so that the engine need not find zstd by chance.
#![no_main]

#[path = "../src/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::compressed(input));
