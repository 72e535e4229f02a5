//! `cargo xtask symbols exam | bench`: tables of device functions, imports and budgets with all compilers, targets and levels;
//! and what the tables of whole libraries cost. Both write their part of `docs/device-exam.md`.
//!
//! The exam runs tests with all of their cases; each prints a row for a case that it compared. The libraries are Debian's.
//!
//! Absent on purpose: the comparisons (the tests) and the measuring (`tests/symbols-bench`).

use crate::library::{GGML, Library, ROCRAND, library};
use crate::outcome::{During, Outcome, fail};
use crate::session::Session;
use crate::{paths, run};
use clap::{Parser, Subcommand};
use hotswap_userland::ENV_PREFIX;
use std::fs;
use std::process::Command;

/// RCCL: 379 MB, one bundle with large code objects.
const RCCL: Library = Library::preferring_experimental("librccl1");

/// The tables of the exam: the word of their rows, a head, the columns.
const TABLES: [(&str, &str, &str); 5] = [
    (
        "calls",
        "Calls, registers and frames, compared with LLVM's assembly and relocations",
        "clang | GPU | level | functions | calls | missed | invented | unknown targets | registers equal | frames equal | frames unknown",
    ),
    (
        "budgets",
        "Numbers of a natively linked kernel after `fix`, and those of LTO",
        "clang | GPU | VGPRs | scratch | VGPRs by LTO | scratch by LTO",
    ),
    (
        "bindings",
        "Needs of a kernel with a library in another code object, equal to those of one link",
        "clang | GPU | VGPRs | scratch",
    ),
    (
        "slots",
        "Words that a loader fills with addresses of another code object, all right",
        "clang | GPU | level | words",
    ),
    (
        "runs",
        "A kernel that calls functions of another code object, on emulated GPUs: results equal to the host's",
        "clang | GPU | level | values",
    ),
];

/// The packages and tests that print the rows.
const TESTS: [(&str, &str); 5] = [
    ("hotswap-device-symbols", "truth"),
    ("hotswap-device-link", "budgets"),
    ("hotswap-device-link", "exchange"),
    ("hotswap-c", "exchange"),
    ("hotswap-emulated-hip", "exchange"),
];

/// Judges and measures tables of device functions.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Runs all cases of the tests of tables, budgets and exchanges.
    Exam,
    /// Measures the time of tables and look-ups for whole libraries.
    Bench,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    match Options::parse_from(words).action {
        Action::Exam => exam(),
        Action::Bench => bench(),
    }
}

fn exam() -> Outcome {
    let session = Session::open(&paths::scratch("prefix"), &paths::scratch("work"))?;
    let mut lines = Vec::new();
    for (package, test) in TESTS {
        let mut command = session.beside(paths::cargo());
        command.current_dir(paths::workspace()).env_remove(ENV_PREFIX).env("HOTSWAP_TEST_EVERYTHING", "1");
        command.args(["test", "--profile", "checked", "--package", package, "--test", test]);
        lines.extend(output(&mut command)?.lines().map(str::to_owned));
    }
    let mut text = String::new();
    for (word, head, columns) in TABLES {
        let start = format!("exam {word} ");
        let mut rows: Vec<&str> = lines.iter().filter_map(|line| Some(line.split_once(&start)?.1)).collect();
        rows.sort_unstable();
        if rows.is_empty() {
            return fail(format!("no test printed a row of {word}"));
        }
        let count = columns.split('|').count();
        text += &format!("### {head}\n\n| {columns} |\n|{}\n{}\n\n", " --- |".repeat(count), rows.join("\n"));
    }
    write("exam", text.trim_end())
}

fn bench() -> Outcome {
    let mut command = Command::new(paths::cargo());
    command.current_dir(paths::workspace());
    command.args(["run", "--quiet", "--profile", "release", "--package", "hotswap-symbols-bench", "--"]);
    for one in [&ROCRAND, &GGML, &RCCL] {
        command.arg(library(one)?);
    }
    let text = output(&mut command)?;
    write("bench", text.trim_end())
}

/// The standard output of a command that must succeed; it is shown as well.
fn output(command: &mut Command) -> Outcome<String> {
    let text = run::output(command)?;
    print!("{text}");
    Ok(text)
}

/// Replaces the part of the page between its marks.
fn write(part: &str, text: &str) -> Outcome {
    let path = paths::workspace().join("docs/device-exam.md");
    let page = fs::read_to_string(&path).during("read", &path)?;
    let [from, to] = ["", "/"].map(|slash| format!("<!-- {slash}{part} -->\n"));
    let (Some(start), Some(end)) = (page.find(&from), page.find(&to)) else {
        return fail(format!("{} has no marks for {part}", path.display()));
    };
    let page = format!("{}{from}\n{text}\n\n{}", &page[..start], &page[end..]);
    fs::write(&path, page).during("write", &path)
}
