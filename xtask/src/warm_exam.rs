//! The task `warm-headers`: HIP sources of other projects, compiled by clang and with warm headers.
//!
//! The object, the messages, the exit code and the names of dependencies must be clang's, when headers are made and when they are used
//! (`warm_exam.sh`). It writes `docs/evidence/warm-headers.md`.
//!
//! Invariants: a difference fails the task, and is named on the page. A source that clang does not compile is compared, too: its messages
//! count.
//!
//! Absent on purpose: time, which `cargo xtask bench many` measures.

use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::{bench_files, install, paths, remove, run};
use clap::Parser;
use hotswap_userland::ROCM_DIRECTORY;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Compiles HIP sources by clang and with warm headers, and writes docs/evidence/warm-headers.md.
#[derive(Parser)]
struct Options {
    /// A directory with checkouts of the projects.
    #[arg(long, value_name = "DIRECTORY")]
    checkouts: PathBuf,
    /// Use this installation in place of a new build.
    #[arg(long, value_name = "PREFIX")]
    installed: Option<PathBuf>,
    /// Each source with all sets of options, not with some in turn.
    #[arg(long)]
    everything: bool,
}

const PAGE: &str = "docs/evidence/warm-headers.md";
const SCRIPT: &str = include_str!("warm_exam.sh");
/// Sets of options for each source where not all are used.
const SETS_IN_TURN: usize = 2;

/// A project, by the name of its checkout.
struct ExamProject {
    name: &'static str,
    endings: &'static [&'static str],
    options: &'static [&'static str],
    /// A directory of headers below the checkout.
    headers: &'static str,
}

#[rustfmt::skip]
const PROJECTS: &[ExamProject] = &[
    ExamProject { name: "rocm-examples", endings: &["hip"], options: &["-std=c++17"], headers: "Common" },
    ExamProject { name: "HeCBench", endings: &["cu"], options: &["-std=c++17", "-DUSE_HIP"], headers: "src/include" },
];

/// A compiler with options.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
struct OptionSet {
    clang: u32,
    words: &'static str,
}

#[rustfmt::skip]
const SETS: &[OptionSet] = &[
    OptionSet { clang: 22, words: "-O2 --offload-arch=gfx1030" },
    OptionSet { clang: 22, words: "-O3 -ffast-math -Wall -Wextra --offload-arch=gfx1100,gfx90a" },
    OptionSet { clang: 24, words: "-O2 -fPIC --offload-arch=gfx1201" },
    OptionSet { clang: 22, words: "-O1 -std=c++20 -fno-exceptions -DNDEBUG --offload-arch=gfx942" },
    OptionSet { clang: 22, words: "-O2 -g --offload-arch=gfx1030" },
    OptionSet { clang: 24, words: "-O0 --offload-arch=gfx1030" },
    OptionSet { clang: 22, words: "-O2 -gline-tables-only -munsafe-fp-atomics --offload-arch=gfx90a" },
    OptionSet { clang: 23, words: "-O2 --offload-arch=gfx1030" },
    OptionSet { clang: 22, words: "-O2 --offload-new-driver -fvisibility=hidden --offload-arch=gfx1030" },
];

/// A source with one of the sets.
struct ExamCase {
    project: &'static ExamProject,
    source: PathBuf,
    set: OptionSet,
}

/// The answer of the script.
#[derive(Debug, Default, PartialEq, Eq)]
struct CaseResult {
    compiles: bool,
    difference: Option<String>,
    /// The state of the headers.
    state: String,
}

/// The sums of a row.
#[derive(Default)]
struct SetCounts {
    sources: usize,
    compiled: usize,
    warm: usize,
    /// By reason.
    left_alone: BTreeMap<String, usize>,
    differences: Vec<String>,
}

struct WarmExam {
    session: Session,
    work: PathBuf,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let (prefix, work) =
        (options.installed.clone().unwrap_or_else(|| paths::scratch("prefix")), paths::scratch("warm-exam"));
    remove::delete(&work)?;
    let prefix = fs::canonicalize(&prefix).unwrap_or(prefix);
    let session = Session::open(Part::Tests, &prefix, &work)?;
    if options.installed.is_none() {
        install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    }
    let exam = WarmExam { session, work: work.clone() };
    let cases = exam.cases(&options)?;
    let results = exam.run_all(&cases)?;
    let page = page_text(&cases, &results);
    let file = paths::workspace().join(PAGE);
    fs::write(&file, &page).during("write", &file)?;
    println!("{page}");
    remove::delete(&work)?;
    let wrong = results.iter().filter(|result| result.difference.is_some()).count();
    if wrong == 0 { Ok(()) } else { fail(format!("{wrong} of {} compiles differ from clang's", cases.len())) }
}

impl WarmExam {
    fn cases(&self, options: &Options) -> Outcome<Vec<ExamCase>> {
        let mut cases = Vec::new();
        for project in PROJECTS.iter().filter(|project| options.checkouts.join(project.name).is_dir()) {
            let copied = self.work.join(project.name);
            bench_files::copy(&options.checkouts.join(project.name), &copied)?;
            let mut sources = Vec::new();
            gather_sources(&copied, project.endings, &mut sources)?;
            sources.sort();
            for (number, source) in sources.iter().enumerate() {
                let count = if options.everything { SETS.len() } else { SETS_IN_TURN };
                let source = source.strip_prefix(&self.work).unwrap_or(source).to_owned();
                let first = number * count;
                cases.extend((first..first + count).map(|turn| ExamCase {
                    project,
                    source: source.clone(),
                    set: SETS[turn % SETS.len()],
                }));
            }
        }
        if cases.is_empty() { fail("there is no checkout of a project that is known") } else { Ok(cases) }
    }

    /// The results in the order of the cases.
    fn run_all(&self, cases: &[ExamCase]) -> Outcome<Vec<CaseResult>> {
        let next = AtomicUsize::new(0);
        let results: Mutex<BTreeMap<usize, Outcome<CaseResult>>> = Mutex::default();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = cases.get(number) else { break };
                        let result = self.run_case(case);
                        if let Ok(CaseResult { difference: Some(difference), .. }) = &result {
                            println!("  {}: {difference}", case.name());
                        }
                        if let Ok(mut results) = results.lock() {
                            results.insert(number, result);
                        }
                    }
                });
            }
        });
        results.into_inner().unwrap_or_default().into_values().collect()
    }

    fn run_case(&self, case: &ExamCase) -> Outcome<CaseResult> {
        let place = self.session.work.join(case.source.parent().unwrap_or(&case.source));
        let headers = self.session.work.join(case.project.name).join(case.project.headers);
        let mut command = self.session.inside(&place, "sh");
        command.args(["-c", SCRIPT, "exam", &format!("/usr/lib/llvm-{}/bin/clang++", case.set.clang)]);
        command.arg(case.source.file_name().unwrap_or_default()).args(case.project.options);
        command.arg(format!("-I{}", headers.display())).args(case.set.words.split(' '));
        if case.set.clang > 22 && !self.session.userland.is_machine() {
            command.arg(format!("--rocm-path={ROCM_DIRECTORY}"));
        }
        command.env("XDG_CACHE_HOME", self.session.work.join("cache"));
        parse_result(&run::output(&mut command)?)
    }
}

fn gather_sources(directory: &Path, endings: &[&str], sources: &mut Vec<PathBuf>) -> Outcome {
    for entry in fs::read_dir(directory).during("read", directory)? {
        let entry = entry.during("read", directory)?;
        let (path, kind) = (entry.path(), entry.file_type().during("read", directory)?);
        if kind.is_dir() {
            gather_sources(&path, endings, sources)?;
        } else if kind.is_file() && path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known))
        {
            sources.push(path);
        }
    }
    Ok(())
}

fn parse_result(text: &str) -> Outcome<CaseResult> {
    let mut result = CaseResult::default();
    let mut is_judged = false;
    for line in text.lines() {
        if let Some(code) = line.strip_prefix("code ") {
            result.compiles = code == "0";
        } else if let Some(difference) = line.strip_prefix("differs ") {
            (result.difference, is_judged) = (Some(difference.trim().to_owned()), true);
        } else if line == "equal" {
            is_judged = true;
        } else if let Some(state) = line.strip_prefix("warm headers: ") {
            // Paths and messages of clang's follow.
            result.state = state.split(": ").next().unwrap_or(state).to_owned();
        }
    }
    if is_judged { Ok(result) } else { fail(format!("a compile was not judged: {text}")) }
}

impl ExamCase {
    fn name(&self) -> String {
        format!("{}, clang {} {}", self.source.display(), self.set.clang, self.set.words)
    }
}

fn page_text(cases: &[ExamCase], results: &[CaseResult]) -> String {
    let mut rows: BTreeMap<(&str, OptionSet), SetCounts> = BTreeMap::new();
    for (case, result) in cases.iter().zip(results) {
        let counts = rows.entry((case.project.name, case.set)).or_default();
        counts.sources += 1;
        counts.compiled += usize::from(result.compiles);
        if result.state.starts_with("from ") {
            counts.warm += 1;
        } else {
            *counts.left_alone.entry(result.state.clone()).or_default() += 1;
        }
        let difference = result.difference.as_ref();
        counts.differences.extend(difference.map(|difference| format!("{}: {difference}", case.name())));
    }
    let mut text = "# Warm headers, compared with clang\n\n<!-- Written by `cargo xtask warm-headers`; do not edit. -->\n\n\
         For readers who ask whether `-fhotswap-warm-headers` changes anything: each source is compiled by clang, and twice with warm\n\
         headers; object, messages, exit code and names of dependencies are compared. Sources that clang does not compile here (libraries\n\
         whose headers are missing) are compared as well.\n\n\
         | project | clang | options | sources | clang compiles | with warm headers | left alone | differ |\n\
         | --- | --- | --- | ---: | ---: | ---: | --- | ---: |\n"
        .to_owned();
    for ((project, set), counts) in &rows {
        let left: Vec<String> = counts.left_alone.iter().map(|(reason, count)| format!("{count}: {reason}")).collect();
        text += &format!(
            "| {project} | {} | `{}` | {} | {} | {} | {} | {} |\n",
            set.clang,
            set.words,
            counts.sources,
            counts.compiled,
            counts.warm,
            left.join("; "),
            counts.differences.len()
        );
    }
    for difference in rows.values().flat_map(|counts| &counts.differences) {
        text += &format!("\n- {difference}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_the_script_is_read() {
        let equal = parse_result("code 0\nequal\nwarm headers: from /cache/x\n").unwrap();
        assert!(equal.compiles && equal.difference.is_none() && equal.state.starts_with("from "));
        let other = parse_result("code 1\ndiffers Files clang/object and first/object differ \n").unwrap();
        assert_eq!(other.difference.as_deref(), Some("Files clang/object and first/object differ"));
        assert!(parse_result("code 0\n").is_err());
    }
}
