//! llvm-cov's exports, from which the coverage report is made.
#![no_main]

#[path = "../src/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::coverage_export(input));
