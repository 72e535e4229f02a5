//! The task `rewrite`: the exams of code that is made for another stepping, at full size.
//!
//! They are a program of `tests/rewrite-exam`; this task provides the userland with its compilers.

use crate::outcome::Outcome;
use crate::recipe::Part;
use crate::session::Session;
use crate::{isa_source, paths, run};
use clap::{Parser, Subcommand};

/// Judges code that HotSwap makes for another stepping.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// The whole corpus through the engine and LLVM 24, with its symbols and without (no arguments), code objects
    /// (`files FILE…`), or LLVM's own tests of code generation (`llvm`; their sources are downloaded once).
    Exam {
        /// `run [--stripped] [NAME]`, `files FILE…`, `llvm [NAME]` or `corpus DIRECTORY`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let Action::Exam { words } = Options::parse_from(words).action;
    let session = Session::open(Part::Tests, &paths::scratch("prefix"), &paths::scratch("work"))?;
    match words.split_first() {
        None => {
            run::show(rewrite_exam_command(&session).arg("run"))?;
            run::show(rewrite_exam_command(&session).args(["run", "--stripped"]))
        }
        Some((first, rest)) if first == "llvm" => {
            run::show(rewrite_exam_command(&session).arg(first).arg(isa_source::code_generation_tests()?).args(rest))
        }
        Some(_) => run::show(rewrite_exam_command(&session).args(words)),
    }
}

fn rewrite_exam_command(session: &Session) -> std::process::Command {
    let mut command = session.beside(paths::cargo());
    command.current_dir(paths::workspace());
    command.args(["run", "--quiet", "--release", "--package", "hotswap-rewrite-exam", "--"]);
    command
}
