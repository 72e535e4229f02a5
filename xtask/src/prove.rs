//! The task `prove`: evidence by execution at full size; it writes `docs/evidence.md`.
//!
//! It is a program of `tests/prove-exam`; this task provides the userland with its compilers.

use crate::outcome::Outcome;
use crate::session::Session;
use crate::{paths, run};
use clap::Parser;
use hotswap_userland::ENV_PREFIX;
use std::process::Command;

/// Executes what HotSwap makes, and what it was made from, and writes the table of evidence.
#[derive(Parser)]
struct Options {
    /// `all` (no arguments), or one part: `rewrites [NAME]`, `mutations`, `proofs`, `exhaustive`, `judges`, `twins`, `libraries`; `--help` lists their options.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let Options { words } = Options::parse_from(words);
    let session = Session::open(&paths::scratch("prefix"), &paths::scratch("work"))?;
    // Programs that the exam starts: the command, and the libraries for HSA and for shown names.
    let mut build = Command::new(paths::cargo());
    build.current_dir(paths::workspace()).args(["build", "--quiet", "--release"]);
    build.args(["--package=hotswap", "--package=hotswap-names", "--package=hotswap-hsa-emulated"]);
    run::show(&mut build)?;
    let mut command = session.beside(paths::cargo());
    command.current_dir(paths::workspace()).env_remove(ENV_PREFIX);
    command.args(["run", "--quiet", "--release", "--package", "hotswap-prove-exam", "--"]);
    if words.is_empty() {
        command.arg("all");
    }
    run::show(command.args(words))
}
