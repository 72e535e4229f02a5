//! `hotswap-clang` and, if called by that name, `hotswap-clang++`.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

use hotswap_driver_wrapper::RemainingWork;
use hotswap_report::{Diagnostic, codes};
use std::io::Write;
use std::panic::{self, UnwindSafe};
use std::process::ExitCode;

fn main() -> ExitCode {
    hotswap_files::end_on_truncated_input("hotswap-clang");
    match catching(|| hotswap_driver_wrapper::run(std::env::args_os(), &say)) {
        Ok(answer) => print(&answer.text),
        Err(error) => fail(&error),
    }
}

/// The result of a run; a panic becomes one line like every other error, and no exit code that clang could have.
fn catching(run: impl FnOnce() -> Result<RemainingWork, Diagnostic> + UnwindSafe) -> Result<RemainingWork, Diagnostic> {
    panic::set_hook(Box::new(|_| {}));
    panic::catch_unwind(run).unwrap_or_else(|_| Err(Diagnostic::error(codes::INTERNAL, "a panic")))
}

/// A line on standard error. A failed write (a full disk) must not fail a build, as with `eprintln!`.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "hotswap-clang: {line}");
}

/// A reader that closes the pipe is not an error of ours.
fn print(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn fail(error: &Diagnostic) -> ExitCode {
    say(&error.to_string());
    ExitCode::from(error.code.exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_with_70() {
        let failed = catching(|| panic!("on purpose")).unwrap_err();
        let _ = panic::take_hook();
        assert_eq!(failed.code.exit, 70);
    }
}
