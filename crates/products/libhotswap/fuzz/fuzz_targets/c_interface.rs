//! The functions of `hotswap.h`, called as a program in C calls them, with any bytes as a file and as an image.
#![no_main]
#![allow(missing_docs)]

#[path = "calls.rs"]
mod calls;

libfuzzer_sys::fuzz_target!(|input: &[u8]| calls::every_call(input));
