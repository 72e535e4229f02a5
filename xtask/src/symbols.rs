//! `cargo xtask symbols exam | bench`: tables of device functions, imports and budgets with all compilers, targets and levels,
//! faults and what is told of them, tools that keep a table; then the tables of whole libraries, and what they cost, which `bench`
//! does alone. Both write `docs/device-exam.md`.
//!
//! The exam runs tests with all of their cases; each prints a row for a case that it compared. One that compared nothing fails it.
//! The libraries are Debian's.
//!
//! Absent on purpose: the comparisons (the tests) and the measuring (`tests/symbols-bench`).

use crate::built::Profile;
use crate::library::{GGML, Library, ROCRAND, library};
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::{install, paths, run};
use clap::{Parser, Subcommand};
use hotswap_userland::{ENV_EVERYTHING, ENV_PREFIX};
use std::fs;
use std::process::Command;

/// RCCL: 379 MB, one bundle with large code objects.
const RCCL: Library = Library::preferring_experimental("librccl1");

/// The tables of the exam: the word of their rows, a head, the columns.
const TABLES: [(&str, &str, &str); 10] = [
    (
        "calls",
        "Calls, registers and frames, compared with LLVM's assembly and relocations",
        "clang | GPU | level | functions | calls | missed | invented | unknown targets | registers equal | frames equal | frames unknown",
    ),
    (
        "programs",
        "Calls of HIP programs with `assert`, `printf`, shuffles and virtual calls, compared with LLVM's assembly",
        "program | clang | GPU | options | functions | calls | with address taken | unknown targets",
    ),
    (
        "stripped",
        "Functions of stripped files that known code calls",
        "GPU and level | functions | found without symbols | starts that are no function's",
    ),
    (
        "graphs",
        "Generated call graphs, compiled apart: runs with their budgets, and with planted shortages, which `check` finds and the emulated GPU faults",
        "clang | GPU | options | graphs, all right | short as linked | registers planted | scratch planted | fewer registers than LTO",
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
    ("refused", "Faults, and what is told of them", "fault | code | told"),
    ("kept", "The table of a code object after tools have handled it", "by | functions"),
];

/// A test that prints rows.
struct ExamTest {
    package: &'static str,
    test: &'static str,
    /// It runs the installed tools.
    is_of_installation: bool,
}

const fn exam_test(package: &'static str, test: &'static str) -> ExamTest {
    ExamTest { package, test, is_of_installation: false }
}

const TESTS: [ExamTest; 12] = [
    exam_test("hotswap-device-symbols", "truth"),
    exam_test("hotswap-device-symbols", "programs"),
    exam_test("hotswap-device-symbols", "stripped"),
    exam_test("hotswap-emulated-hip", "graphs"),
    exam_test("hotswap-device-symbols", "note"),
    exam_test("hotswap-device-symbols", "sources"),
    exam_test("hotswap-device-link", "budgets"),
    exam_test("hotswap-device-link", "exchange"),
    exam_test("hotswap-device-link", "lds"),
    exam_test("hotswap-c", "exchange"),
    exam_test("hotswap-emulated-hip", "exchange"),
    ExamTest { is_of_installation: true, ..exam_test("hotswap-device-link", "built") },
];

/// Judges and measures tables of device functions.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Runs all cases of the tests of tables, budgets and exchanges, then measures whole libraries.
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
    let prefix = paths::scratch("prefix");
    let session = Session::open(Part::Tests, &prefix, &paths::scratch("work"))?;
    install::install(&prefix, Profile::Checked, session.clang().as_deref())?;
    let mut lines = Vec::new();
    for ExamTest { package, test, is_of_installation } in TESTS {
        let mut command = session.beside(paths::cargo());
        command.current_dir(paths::workspace()).env(ENV_EVERYTHING, "1");
        if !is_of_installation {
            command.env_remove(ENV_PREFIX);
        }
        command.args(["test", "--profile", Profile::Checked.name(), "--package", package, "--test", test]);
        lines.extend(output(&mut command)?.lines().map(str::to_owned));
    }
    write("exam", &tables(&lines)?)?;
    bench()
}

/// The rows of all tests as tables.
fn tables(lines: &[String]) -> Outcome<String> {
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
    Ok(text.trim_end().to_owned())
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
