//! `cargo xtask isa exam`: the exams of the instruction set at full size.
//!
//! The exams are a program of `tests/isa-exam`; here is what they stand on: the userland, LLVM's test files, a
//! library of a distribution, and folders for what is kept.

use crate::isa_source::llvm_source;
use crate::library::{ROCRAND, library};
use crate::outcome::Outcome;
use crate::session::Session;
use crate::{paths, run};
use hotswap_userland::{ENV_CACHE, ENV_LLVM};
use std::path::PathBuf;
use std::process::Command;

/// The exam's own words; without any, everything is run.
#[derive(clap::Args)]
pub(crate) struct Words {
    /// `vectors`, `sweep` or `code` with its options (`-- --help` lists them); everything without it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) fn main(words: &Words) -> Outcome {
    let session = Session::open(&paths::scratch("prefix"), &paths::scratch("work"))?;
    let reports = paths::scratch("isa-exam");
    let mut command = session.beside(&paths::cargo());
    provide(&mut command)?;
    command.current_dir(paths::workspace());
    command.args(["run", "--quiet", "--release", "--package", "hotswap-isa-exam", "--"]);
    if words.words.is_empty() {
        command.arg("all").arg(library(&ROCRAND)?);
    }
    command.args(&words.words).arg("--report").arg(&reports);
    println!("Differences are listed in {}", reports.display());
    run::show(&mut command)
}

/// Tells a command where LLVM's test files are, downloading them if needed, and where it may keep things.
pub(crate) fn provide(command: &mut Command) -> Outcome {
    command.env(ENV_LLVM, llvm_source()?).env(ENV_CACHE, folder()?);
    Ok(())
}

/// What the exams keep between runs.
fn folder() -> Outcome<PathBuf> {
    Ok(paths::cache()?.join("isa-exam"))
}
