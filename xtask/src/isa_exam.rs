//! `cargo xtask isa exam`: the exams of the instruction set at full size.
//!
//! The exams are a program of `tests/isa-exam`; this task provides the userland, LLVM's test files, a library of a
//! distribution, a digest of LLVM's records, and directories for kept data.

use crate::isa_source::{self, llvm_source};
use crate::library::{ROCRAND, library};
use crate::outcome::{During, Outcome};
use crate::recipe::Part;
use crate::session::Session;
use crate::{paths, run};
use hotswap_userland::{ENV_CACHE, ENV_LLVM, ENV_RECORDS};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Counts up when the form of the digest of LLVM's records changes.
const FORM: u32 = 1;

/// The exam's own arguments; without any, everything is run.
#[derive(clap::Args)]
pub(crate) struct Words {
    /// `vectors`, `sweep`, `code` or `effects` with its options (`-- --help` lists them); everything without it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) fn main(words: &Words) -> Outcome {
    let session = Session::open(Part::Tests, &paths::scratch("prefix"), &paths::scratch("work"))?;
    let reports = paths::scratch("isa-exam");
    let mut command = session.beside(paths::cargo());
    provide(&mut command)?;
    if words.words.first().is_none_or(|word| ["all", "effects"].contains(&word.as_str())) {
        command.env(ENV_RECORDS, records()?);
    }
    program(&mut command);
    if words.words.is_empty() {
        command.arg("all").arg(library(&ROCRAND)?);
    }
    command.args(&words.words).arg("--report").arg(&reports);
    println!("Differences are listed in {}", reports.display());
    run::show(&mut command)
}

/// Makes a command of cargo run the exams' program.
fn program(command: &mut Command) {
    command.current_dir(paths::workspace());
    command.args(["run", "--quiet", "--release", "--package", "hotswap-isa-exam", "--"]);
}

/// The relevant part of LLVM's records, made now if it does not exist: 40 of the 570 MB. It is not a part of `cargo
/// xtask test`, where dumping the records would take longer than all tests of the instruction set.
fn records() -> Outcome<PathBuf> {
    let version = isa_source::version()?;
    let file = directory()?.join(format!("records-{FORM}-{version}.json"));
    if !file.exists() {
        let parent = directory()?;
        fs::create_dir_all(&parent).during("create", &parent)?;
        let json = isa_source::json()?;
        let partial = file.with_extension("partial");
        let mut command = Command::new(paths::cargo());
        program(&mut command);
        run::show(command.arg("digest").arg(&json).arg(&partial))?;
        fs::remove_file(&json).during("delete", &json)?;
        fs::rename(&partial, &file).during("rename", &partial)?;
    }
    Ok(file)
}

/// Sets the variables of a command for LLVM's test files, downloading them if needed, and for the directory of kept data.
pub(crate) fn provide(command: &mut Command) -> Outcome {
    command.env(ENV_LLVM, llvm_source()?).env(ENV_CACHE, directory()?);
    Ok(())
}

/// The directory that the exams keep between runs.
fn directory() -> Outcome<PathBuf> {
    Ok(paths::cache()?.join("isa-exam"))
}
