//! `hotswap-clang` and, by the name it is called by, `hotswap-clang++`.

use hotswap_report::Diagnostic;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let warn = |line: &str| eprintln!("hotswap-clang: {line}");
    match hotswap_driver_wrapper::run(std::env::args_os(), &warn) {
        Ok(answer) => print(&answer.text),
        Err(error) => fail(&error),
    }
}

/// A reader that stops reading is no error of ours.
fn print(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn fail(error: &Diagnostic) -> ExitCode {
    eprintln!("hotswap-clang: {error}");
    ExitCode::from(error.code.exit)
}
