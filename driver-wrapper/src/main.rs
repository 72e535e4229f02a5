//! `hotswap-clang` and, by the name it is called by, `hotswap-clang++`.

use hotswap_report::{Diagnostic, codes};
use std::io::Write;
use std::panic;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic becomes one line like every other error, and no exit code that clang could have.
    panic::set_hook(Box::new(|_| {}));
    let warn = |line: &str| eprintln!("hotswap-clang: {line}");
    let run = || hotswap_driver_wrapper::run(std::env::args_os(), &warn);
    match panic::catch_unwind(run).unwrap_or_else(|_| Err(Diagnostic::error(codes::INTERNAL, "a panic"))) {
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
