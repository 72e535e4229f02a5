//! The task `isa`: imports the rows of the instruction set, and checks whether they are correct.
//!
//! LLVM's sources are downloaded once into the cache directory ([`isa_source`](crate::isa_source)); the importer is
//! a program of `hotswap-isa-meta` and is built when it is needed, so that `xtask` stays small.

use crate::outcome::{During, Outcome, fail};
use crate::{isa_bench, isa_exam, isa_fuzz, isa_source, paths, remove, run};
use clap::{Parser, Subcommand};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Works on the rows of the instruction set (crates/amdgpu/isa-tables/rows).
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Download LLVM's AMDGPU sources into the cache directory, if they are not there.
    Fetch {
        /// Delete them and download again.
        #[arg(long)]
        again: bool,
    },
    /// Write the rows anew from LLVM's records and the overlay.
    Import(Json),
    /// Compare the rows with what an import would write.
    Check(Json),
    /// Compare hotswap-isa with LLVM: its own vectors, a sweep, real code, reads and writes.
    Exam(isa_exam::Words),
    /// Fuzz decoder and encoder.
    Fuzz(isa_fuzz::Words),
    /// Measure sizes, decoding, effects and text side by side with memcpy and llvm-objdump.
    Bench(isa_bench::Words),
}

#[derive(clap::Args)]
struct Json {
    /// Take this output of `llvm-tblgen --dump-json` instead of making one.
    #[arg(long)]
    json: Option<PathBuf>,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    match Options::parse_from(words).action {
        Action::Fetch { again } => {
            if again {
                remove::delete(&isa_source::directory()?)?;
            }
            println!("LLVM's sources: {}", isa_source::llvm_source()?.display());
            Ok(())
        }
        Action::Import(json) => import(&json, &rows()),
        Action::Check(json) => check(&json),
        Action::Exam(words) => isa_exam::main(&words),
        Action::Fuzz(words) => isa_fuzz::main(&words),
        Action::Bench(words) => isa_bench::main(&words),
    }
}

/// The directory of the rows.
fn rows() -> PathBuf {
    paths::workspace().join("crates/amdgpu/isa-tables/rows")
}

/// Writes the rows into a directory.
fn import(json: &Json, directory: &Path) -> Outcome {
    let Some(json) = &json.json else {
        let made = isa_source::json()?;
        let result = run_importer(&made, directory);
        fs::remove_file(&made).during("delete", &made)?;
        return result;
    };
    run_importer(json, directory)
}

fn run_importer(json: &Path, directory: &Path) -> Outcome {
    let overlay = rows().join("overlay.isa");
    let mut command = Command::new(paths::cargo());
    command.current_dir(paths::workspace()).args(["run", "--quiet", "--release", "--package", "hotswap-isa-meta"]);
    command.args(["--features", "import", "--bin", "isa-import", "--"]).arg(json).arg(overlay).arg(directory);
    run::show(&mut command)
}

/// Fails with a summary when an import would change the rows.
fn check(json: &Json) -> Outcome {
    let directory = paths::scratch("isa-rows");
    remove::delete(&directory)?;
    fs::create_dir_all(&directory).during("create", &directory)?;
    import(json, &directory)?;
    let complaints = differences(&rows(), &directory)?;
    if complaints.is_empty() {
        println!("The rows are what LLVM's records and the overlay say.");
        return Ok(());
    }
    let advice = format!("the new rows are in {}; `cargo xtask isa import` writes them", directory.display());
    fail(format!("{}\n{advice}", complaints.join("\n")))
}

/// How many lines of a difference are shown.
const SHOWN: usize = 6;

/// The differences between the committed rows and the new ones, file by file.
fn differences(committed: &Path, new: &Path) -> Outcome<Vec<String>> {
    let mut names = names(committed)?;
    names.extend(self::names(new)?);
    let mut complaints = Vec::new();
    for name in names.iter().filter(|name| *name != "overlay.isa") {
        complaints.extend(difference(name, &read_generated_text(committed, name), &read_generated_text(new, name)));
    }
    Ok(complaints)
}

fn read_generated_text(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap_or_default()
}

fn names(directory: &Path) -> Outcome<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(directory).during("read", directory)? {
        names.insert(entry?.file_name().to_string_lossy().into_owned());
    }
    Ok(names)
}

/// A summary of one file's difference; lines that only moved are reported as moved.
fn difference(name: &str, old: &str, new: &str) -> Option<String> {
    if old == new {
        return None;
    }
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (old.lines().collect(), new.lines().collect());
    let gone: Vec<&str> = old.difference(&new).copied().collect();
    let come: Vec<&str> = new.difference(&old).copied().collect();
    if gone.is_empty() && come.is_empty() {
        return Some(format!("{name}: the same lines in another order"));
    }
    let mut text = format!("{name}: {} lines only committed, {} only imported", gone.len(), come.len());
    let shown = gone.iter().take(SHOWN).map(|line| ("-", line)).chain(come.iter().take(SHOWN).map(|line| ("+", line)));
    for (sign, line) in shown {
        text += &format!("\n  {sign} {line}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_files_do_not_differ() {
        assert_eq!(difference("a", "x\ny\n", "x\ny\n"), None);
    }

    #[test]
    fn a_difference_names_the_file_and_both_sides() {
        let text = difference("sop.isa", "s_nop 1\ns_old\n", "s_nop 1\ns_new\n").unwrap();
        assert_eq!(text, "sop.isa: 1 lines only committed, 1 only imported\n  - s_old\n  + s_new");
        assert_eq!(difference("a", "x\ny\n", "y\nx\n").unwrap(), "a: the same lines in another order");
    }

    #[test]
    fn a_long_difference_is_cut() {
        let old: String = (0..100).map(|n| format!("line {n}\n")).collect();
        assert_eq!(difference("a", &old, "").unwrap().lines().count(), 1 + SHOWN);
    }
}
