//! The task `rewrite`: the exams of code that is made for another stepping, at full size.
//!
//! They are a program of `tests/rewrite-exam`; here is what they stand on: the userland with its compilers.

use crate::outcome::Outcome;
use crate::session::Session;
use crate::{paths, run};
use clap::{Parser, Subcommand};

/// Judges code that HotSwap makes for another stepping.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// The whole corpus through the engine and before LLVM 24 (without words), or code objects: `files FILE…`.
    Exam {
        /// `run [NAME]`, `files FILE…` or `corpus FOLDER`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let Action::Exam { words } = Options::parse_from(words).action;
    let session = Session::open(&paths::scratch("prefix"), &paths::scratch("work"))?;
    let mut command = session.beside(&paths::cargo());
    command.current_dir(paths::workspace());
    command.args(["run", "--quiet", "--release", "--package", "hotswap-rewrite-exam", "--"]);
    match words.is_empty() {
        true => command.arg("run"),
        false => command.args(words),
    };
    run::show(&mut command)
}
