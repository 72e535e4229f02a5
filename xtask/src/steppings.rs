//! The task `steppings`: what LLVM 24 does otherwise for the processors of each pair, with the answer to each kind of difference.
//!
//! It is a program of `tests/rewrite-exam`; this task provides the userland with its compilers, and LLVM's test lines.

use crate::outcome::Outcome;
use crate::recipe::Part;
use crate::session::Session;
use crate::{isa_source, paths, run};
use clap::Parser;
use std::path::PathBuf;

/// Compares what LLVM 24 makes for the processors of each pair, and writes docs/evidence/steppings.md.
#[derive(Parser)]
struct Options {
    /// Only pairs of this source; the page is not written then.
    source: Option<String>,
    /// The page.
    #[arg(long, default_value = "docs/evidence/steppings.md")]
    page: PathBuf,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let Options { source, page } = Options::parse_from(words);
    let session = Session::open(Part::Tests, &paths::scratch("prefix"), &paths::scratch("work"))?;
    let mut command = session.beside(paths::cargo());
    command.current_dir(paths::workspace());
    command.args(["run", "--quiet", "--release", "--package", "hotswap-rewrite-exam", "--", "steppings"]);
    command.arg("--assembly").arg(isa_source::assembly_tests()?);
    match source {
        Some(source) => command.arg(source),
        None => command.arg("--page").arg(page),
    };
    run::show(&mut command)
}
