//! The task `prove`: evidence by execution at full size; it writes `docs/evidence.md`.
//!
//! It is a program of `tests/prove-exam`; this task provides the userland with its compilers.

use crate::outcome::Outcome;
use crate::session::Session;
use crate::{paths, run};
use clap::Parser;

/// Executes what HotSwap makes, and what it was made from, and writes the table of evidence.
#[derive(Parser)]
struct Options {
    /// `all` (no arguments), or one part: `rewrites [NAME]`, `mutations`, `proofs`, `twins`; `--help` lists their options.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let Options { words } = Options::parse_from(words);
    let session = Session::open(&paths::scratch("prefix"), &paths::scratch("work"))?;
    let mut command = session.beside(paths::cargo());
    command.current_dir(paths::workspace());
    command.args(["run", "--quiet", "--release", "--package", "hotswap-prove-exam", "--"]);
    if words.is_empty() {
        command.arg("all");
    }
    run::show(command.args(words))
}
