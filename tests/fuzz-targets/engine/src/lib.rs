//! The macro of libFuzzer's crate, without libFuzzer: the target takes each file that is named by an argument once.
//!
//! With it a fuzz target is checked, and an input that crashed is tried again, by a stable compiler:
//! `cargo bench -p hotswap-fuzz-targets --bench NAME -- FILE`.

/// Defines the program of a fuzz target.
#[macro_export]
macro_rules! fuzz_target {
    (|$input:ident: &[u8]| $body:expr) => {
        /// The targets are programs without Rust's `main`, because libFuzzer brings its own.
        // SAFETY: no other function of the program has the name `main`, and C calls it once with arguments that it may ignore.
        #[allow(unsafe_code)]
        #[unsafe(no_mangle)]
        pub extern "C" fn main() -> i32 {
            for path in std::env::args_os().skip(1).filter(|path| std::path::Path::new(path).is_file()) {
                let bytes = std::fs::read(&path).expect("the input can be read");
                let $input: &[u8] = &bytes;
                $body;
            }
            0
        }
    };
}
