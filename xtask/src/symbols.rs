//! `cargo xtask symbols exam | bench | times`: tables of device functions, imports and budgets with all compilers, targets and levels,
//! generated graphs, faults and what is told of them, tools that keep a table; then the tables of whole libraries, and what they cost,
//! which `bench` does alone, and the times of the command, which `times` measures alone. All write `docs/evidence/device-exam.md`.
//!
//! | module | task |
//! | --- | --- |
//! | `tables` | the exam's tests and tables as data |
//! | `times` | the times of the command `hotswap symbols` |
//!
//! The exam runs tests with all of their cases; each prints a row for a case that it compared. One that compared nothing fails it.
//! Each table is a part of the page between marks, and replaced when all tests of its rows have passed.
//! The libraries are Debian's.
//!
//! Absent on purpose: the comparisons (the tests) and the measuring (`tests/symbols-bench`).

mod tables;
mod times;

use crate::built::Profile;
use crate::library::{GGML, Library, ROCRAND, library};
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::{install, isa_source, paths, run};
use clap::{Args, Parser, Subcommand};
use hotswap_userland::{ENV_EVERYTHING, ENV_LLVM, ENV_MINUTES, ENV_PREFIX, ENV_PROGRAMS};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tables::{ExamTable, ExamTest, TABLES, TESTS};

/// RCCL: 379 MB, one bundle with large code objects.
const RCCL: Library = Library::preferring_experimental("librccl1");

const PAGE: &str = "docs/evidence/device-exam.md";

/// Judges and measures tables of device functions.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Runs all cases of the tests of tables, budgets and exchanges, then measures whole libraries and the command.
    Exam(ExamOptions),
    /// Measures the time of tables and look-ups for whole libraries.
    Bench,
    /// Measures the time of the command `hotswap symbols` for large code objects.
    Times(times::TimesOptions),
}

#[derive(Args)]
struct ExamOptions {
    /// Only these tables, without the measuring; the page keeps the others. May be repeated
    #[arg(long, value_name = "TABLE", value_parser = clap::builder::PossibleValuesParser::new(TABLES.map(|table| table.word)))]
    only: Vec<String>,
    /// Minutes after which a test with very many cases begins no further one; the page tells how many ran
    #[arg(long)]
    minutes: Option<u64>,
    /// Directory with checkouts of hip-tests, rocm-examples and HeCBench for the table of projects; without it that table stays
    #[arg(long, value_name = "DIRECTORY")]
    programs: Option<PathBuf>,
    /// Build the tests without optimisation: sooner there
    #[arg(long)]
    debug: bool,
}

impl ExamOptions {
    /// The tests of the tables that are asked for.
    fn tests(&self) -> impl Iterator<Item = &'static ExamTest> {
        TESTS.iter().filter(|test| match test.tables {
            ["projects"] => self.programs.is_some() && self.asks_for("projects"),
            tables => self.only.is_empty() || tables.iter().any(|table| self.asks_for(table)),
        })
    }

    fn asks_for(&self, word: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| one == word)
    }

    /// The tables that those tests fill.
    fn tables(&self) -> impl Iterator<Item = &'static ExamTable> {
        TABLES
            .iter()
            .filter(|table: &&ExamTable| self.asks_for(table.word))
            .filter(|table| table.word != "projects" || self.programs.is_some())
    }

    fn profile(&self) -> Profile {
        if self.debug { Profile::Dev } else { Profile::Checked }
    }
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    match Options::parse_from(words).action {
        Action::Exam(options) => exam(&options),
        Action::Bench => bench(),
        Action::Times(options) => write_part("times", &times::measure_command(&options)?),
    }
}

fn exam(options: &ExamOptions) -> Outcome {
    if options.tables().next().is_none() {
        return fail("the table of projects needs --programs DIRECTORY");
    }
    let prefix = paths::scratch("prefix");
    let session = Session::open(Part::Tests, &prefix, &paths::scratch("work"))?;
    if options.tests().any(|test| test.is_of_installation) {
        install::install(&prefix, options.profile(), session.clang().as_deref())?;
    }
    let mut outputs = BTreeMap::new();
    for test in options.tests() {
        outputs.insert((test.package, test.test), run_test(&session, test, options)?);
    }
    for table in options.tables() {
        let tests = TESTS.iter().filter(|test| test.tables.contains(&table.word));
        let lines: Vec<&str> =
            tests.filter_map(|test| outputs.get(&(test.package, test.test))).flat_map(|text| text.lines()).collect();
        write_part(table.word, &table.text(&lines)?)?;
    }
    if !options.only.is_empty() {
        return Ok(());
    }
    bench()?;
    write_part("times", &times::measure_command(&times::TimesOptions::default())?)
}

/// The output of a test with all of its cases.
fn run_test(session: &Session, test: &ExamTest, options: &ExamOptions) -> Outcome<String> {
    let ExamTest { package, test, is_of_installation, .. } = test;
    let mut command = session.beside(paths::cargo());
    command.current_dir(paths::workspace()).env(ENV_EVERYTHING, "1");
    if options.asks_for("llvm") {
        command.env(ENV_LLVM, isa_source::llvm_source()?);
    }
    if !is_of_installation {
        command.env_remove(ENV_PREFIX);
    }
    if let Some(minutes) = options.minutes {
        command.env(ENV_MINUTES, minutes.to_string());
    }
    if let Some(programs) = &options.programs {
        command.env(ENV_PROGRAMS, fs::canonicalize(programs).during("find", programs)?);
    }
    command.args(["test", "--profile", options.profile().name(), "--package", package, "--test", test]);
    output(&mut command)
}

impl ExamTable {
    /// The rows of tests as a table, and what they told of all rows.
    fn text(&self, lines: &[&str]) -> Outcome<String> {
        let Self { word, head, columns } = self;
        let mut rows = after(lines, &format!("exam {word} "));
        rows.sort_unstable();
        if rows.is_empty() {
            return fail(format!("no test printed a row of {word}"));
        }
        let count = columns.split('|').count();
        let notes = after(lines, &format!("exam note {word} ")).join("\n");
        let notes = if notes.is_empty() { notes } else { format!("{notes}\n\n") };
        let rule = " --- |".repeat(count);
        Ok(format!("### {head}\n\n{notes}| {columns} |\n|{rule}\n{}", rows.join("\n")))
    }
}

/// The rest of lines that begin with these words.
fn after<'l>(lines: &[&'l str], words: &str) -> Vec<&'l str> {
    lines.iter().filter_map(|line| Some(line.split_once(words)?.1)).collect()
}

fn bench() -> Outcome {
    let mut command = Command::new(paths::cargo());
    command.current_dir(paths::workspace());
    command.args(["run", "--quiet", "--profile", "release", "--package", "hotswap-symbols-bench", "--"]);
    for one in [&ROCRAND, &GGML, &RCCL] {
        command.arg(library(one)?);
    }
    let text = output(&mut command)?;
    write_part("bench", text.trim_end())
}

/// The standard output of a command that must succeed; it is shown as well, also that of one that fails.
fn output(command: &mut Command) -> Outcome<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    print!("{text}");
    if output.status.success() { Ok(text) } else { fail(format!("`{}` failed: {}", run::line(command), output.status)) }
}

/// Replaces the part of the page between its marks.
fn write_part(part: &str, text: &str) -> Outcome {
    let path = paths::workspace().join(PAGE);
    let page = fs::read_to_string(&path).during("read", &path)?;
    let Some(page) = with_part(&page, part, text) else {
        return fail(format!("{} has no marks for {part}", path.display()));
    };
    fs::write(&path, page).during("write", &path)
}

/// A page with another text between the marks of a part.
fn with_part(page: &str, part: &str, text: &str) -> Option<String> {
    let [from, to] = ["", "/"].map(|slash| format!("<!-- {slash}{part} -->\n"));
    let (start, end) = (page.find(&from)?, page.find(&to)?);
    Some(format!("{}{from}\n{text}\n\n{}", &page[..start], &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_each_part() {
        let page = fs::read_to_string(paths::workspace().join(PAGE)).unwrap();
        for part in TABLES.iter().map(|table| table.word).chain(["bench", "times"]) {
            let made = with_part(&page, part, "another text").unwrap_or_else(|| panic!("{part}"));
            assert!(made.contains(&format!("<!-- {part} -->\n\nanother text\n\n<!-- /{part} -->")), "{part}");
        }
        assert!(with_part(&page, "nothing", "").is_none());
    }

    #[test]
    fn rows_and_notes_of_a_table_are_those_with_its_word() {
        let table = ExamTable { word: "runs", head: "Runs", columns: "GPU | values" };
        let lines = ["x exam runs | b | 2 |", "exam other | c | 3 |", "exam runs | a | 1 |", "exam note runs 2 of 3"];
        assert_eq!(
            table.text(&lines).unwrap(),
            "### Runs\n\n2 of 3\n\n| GPU | values |\n| --- | --- |\n| a | 1 |\n| b | 2 |"
        );
        assert!(table.text(&lines[1..2]).is_err());
    }

    #[test]
    fn projects_are_run_where_their_sources_are() {
        let options = |only: &[&str], programs: Option<&str>| ExamOptions {
            only: only.iter().map(|word| (*word).to_owned()).collect(),
            minutes: None,
            programs: programs.map(PathBuf::from),
            debug: false,
        };
        let tests = |options: ExamOptions| options.tests().map(|test| test.test).collect::<Vec<_>>();
        assert!(!tests(options(&[], None)).contains(&"projects"));
        assert_eq!(tests(options(&[], Some("x"))).len(), TESTS.len());
        assert_eq!(tests(options(&["projects"], Some("x"))), ["projects"]);
        assert_eq!(tests(options(&["refused"], None)), ["note", "budgets", "exchange", "lds"]);
        assert!(options(&["projects"], None).tables().next().is_none());
    }
}
