//! The task `hip-tests`: AMD's suite hip-tests, built through the wrapper and run case by case on emulated GPUs.
//!
//! The suite's sources are read from a directory of checkouts. Each of its source files becomes a program with the suite's own main
//! function, for gfx1030 with a plan for gfx1031. Each case is a process of its own with a time limit. A case must end on the
//! retargeted gfx1031 as on gfx1030: a difference fails the task. It writes `docs/evidence/hip-tests.md`.
//!
//! Invariants: the suite judges its cases, nothing of ours. The page has a row for each folder whose results are known: those of folders
//! that a run does not choose are of earlier runs, kept in the target directory.
//!
//! Absent on purpose: sources that are not in a folder's `CMakeLists.txt`, tests of several GPUs, and the suite's own build.

mod page;

use crate::bench_files::copy;
use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::{install, paths, remove, run};
use clap::Parser;
use page::{CaseResult, CaseState, FolderResults, GpuState};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Runs AMD's hip-tests on emulated GPUs, and writes docs/evidence/hip-tests.md.
#[derive(Parser)]
struct Options {
    /// Folders of the suite's catch/unit; all that the task knows without any.
    folders: Vec<String>,
    /// The directory that has the checkout `hip-tests`.
    #[arg(long, value_name = "DIR")]
    checkouts: PathBuf,
    /// Use this installation in place of a new build.
    #[arg(long, value_name = "PREFIX")]
    installed: Option<PathBuf>,
    /// Run on this GPU as well, with code that clang compiles for it. May be repeated.
    #[arg(long, value_name = "GPU")]
    native: Vec<String>,
    /// Seconds after which a case is ended.
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// Use the programs that an earlier run with this option has built for the same GPUs.
    #[arg(long)]
    keep: bool,
    /// Write the page of the results that are known, and run nothing.
    #[arg(long)]
    page: bool,
}

const SUITE: &str = "hip-tests";
/// The suite's list of cases that are not run on Linux.
const DISABLED_LIST: &str = "catch/hipTestMain/config/config_amd_linux";
const PAGE: &str = "docs/evidence/hip-tests.md";
/// The GPU that is compiled for, and the one that its code is made into.
const SOURCE: &str = "gfx1030";
const TARGET: &str = "gfx1031";
const FOLDERS: &[&str] =
    &["event", "stream", "memory", "kernel", "printf", "device", "callback", "occupancy", "syncthreads"];
/// The files of the suite's main function.
const MAIN_FILES: [&str; 3] = ["main", "hip_test_context", "hip_test_features"];
/// The end of names of files that the suite compiles with another kind of printf.
const BUFFERED_PRINTF: &str = "NonHost.cc";
/// In the name of a file that no compiler accepts.
const COMPILE_ERRORS: &str = "negative_kernels";
const THREADS: usize = 2;
/// The exit codes of `timeout` for a program that it ended.
const ENDED_BY_LIMIT: [i32; 2] = [124, 137];

struct SuiteRun {
    session: Session,
    work: PathBuf,
    native: Vec<String>,
    limit: u64,
}

/// A program and the names of its cases.
struct TestProgram {
    name: String,
    cases: Vec<String>,
}

struct NamedCase<'p> {
    program: &'p str,
    name: &'p str,
}

impl TestProgram {
    fn named_cases(&self) -> impl Iterator<Item = NamedCase<'_>> {
        self.cases.iter().map(|name| NamedCase { program: &self.name, name })
    }
}

/// The sources of a folder.
#[derive(Default)]
struct FolderSources {
    tests: Vec<String>,
    /// Without a case, for all programs.
    helpers: Vec<String>,
    standalone: Vec<StandaloneProgram>,
}

/// A program that cases start.
struct StandaloneProgram {
    name: String,
    source: String,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let checkout = options.checkouts.join(SUITE);
    if options.page {
        return write_page(&checkout);
    }
    let (prefix, work) =
        (options.installed.clone().unwrap_or_else(|| paths::scratch("prefix")), paths::scratch("hip-tests"));
    if !options.keep {
        remove::delete(&work)?;
    }
    let session = Session::open(Part::Tests, &fs::canonicalize(&prefix).unwrap_or(prefix.clone()), &work)?;
    if options.installed.is_none() {
        install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    }
    let suite = SuiteRun { session, work, native: options.native, limit: options.limit };
    suite.prepare(&checkout)?;
    let folders = match options.folders.as_slice() {
        [] => FOLDERS.iter().map(|folder| (*folder).to_owned()).collect(),
        chosen => chosen.to_vec(),
    };
    for folder in &folders {
        page::save_folder(&suite.run_folder(folder)?)?;
        // A run that is ended early leaves the rows that are complete.
        write_page(&checkout)?;
    }
    if !options.keep {
        remove::delete(&suite.work)?;
    }
    let faults = page::faults(&page::known_folders()?);
    if faults.is_empty() { Ok(()) } else { fail(faults.join("; ")) }
}

fn write_page(checkout: &Path) -> Outcome {
    let version = run::output(Command::new("git").arg("-C").arg(checkout).args(["log", "-1", "--format=%h of %cs"]))?;
    let list = checkout.join(DISABLED_LIST);
    let disabled = page::disabled_cases(&fs::read_to_string(&list).during("read", &list)?);
    let file = paths::workspace().join(PAGE);
    fs::write(&file, page::page_text(version.trim(), &page::known_folders()?, &disabled)).during("write", &file)
}

impl SuiteRun {
    /// Copies the suite's tests, and compiles its main function.
    fn prepare(&self, checkout: &Path) -> Outcome {
        if !self.work.join("catch").exists() {
            copy(&checkout.join("catch"), &self.work.join("catch"))?;
        }
        for name in MAIN_FILES {
            let object = format!("{name}.o");
            if !self.work.join(&object).exists() {
                let source = format!("catch/hipTestMain/{name}.cc");
                run::output(self.compiler().args(["-x", "hip", "-c", &source, "-o", &object]))?;
            }
        }
        Ok(())
    }

    /// The wrapper with the plan and the suite's options.
    fn compiler(&self) -> Command {
        let catch = self.session.work.join("catch");
        let mut command = self.session.inside(&self.session.work, "hotswap-clang++");
        command.env("HOTSWAP_RETARGET", format!("{SOURCE}=>{TARGET}"));
        command.args(["-std=c++17", "-O1", "-w", &format!("--offload-arch={SOURCE}")]);
        command.args(self.native.iter().map(|gpu| format!("--offload-arch={gpu}")));
        command.arg(format!("-DKERNELS_PATH=\"{}/kernels/\"", catch.display()));
        for directory in ["include", "kernels", "external/Catch2", "external/picojson"] {
            command.arg(format!("-I{}", catch.join(directory).display()));
        }
        command
    }

    fn run_folder(&self, folder: &str) -> Outcome<FolderResults> {
        let mut results = FolderResults::new(folder);
        let programs = self.build_folder(folder, &mut results)?;
        let cases: Vec<NamedCase> = programs.iter().flat_map(TestProgram::named_cases).collect();
        println!("{folder}: {} programs, {} cases", programs.len(), cases.len());
        let finished = Mutex::new(Vec::new());
        for_each_in_threads(&cases, |case| {
            let result = self.run_on_gpus(folder, case);
            println!("  {}", result.line());
            finished.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        });
        results.cases = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.cases.sort_by(|one, other| (&one.program, &one.case).cmp(&(&other.program, &other.case)));
        Ok(results)
    }

    /// Runs the case on all GPUs, and once more where source and target differ: cases that measure time depend on the machine's load.
    fn run_on_gpus(&self, folder: &str, case: &NamedCase) -> CaseResult {
        let gpus = [SOURCE, TARGET].into_iter().chain(self.native.iter().map(String::as_str));
        let mut by_gpu: Vec<GpuState> = gpus.map(|gpu| self.run_case(folder, case, gpu)).collect();
        if !by_gpu[0].state.ends_like(&by_gpu[1].state) {
            by_gpu[0] = self.run_case(folder, case, SOURCE);
            by_gpu[1] = self.run_case(folder, case, TARGET);
        }
        CaseResult { program: case.program.to_owned(), case: case.name.to_owned(), by_gpu }
    }

    /// Compiles the folder's files. Those without a case are linked with each of the others, or are programs that cases start.
    fn build_folder(&self, folder: &str, results: &mut FolderResults) -> Outcome<Vec<TestProgram>> {
        let directory = format!("catch/unit/{folder}");
        let sources = FolderSources::read(&self.work.join(&directory))?;
        let left_out = Mutex::new(Vec::new());
        let all: Vec<&String> = sources.helpers.iter().chain(&sources.tests).collect();
        for_each_in_threads(&all, |source| {
            if let Err(failure) = self.compile(&directory, source) {
                println!("  {source} is not compiled: {failure}");
                left_out.lock().unwrap_or_else(PoisonError::into_inner).push((*source).clone());
            }
        });
        results.not_built = left_out.into_inner().unwrap_or_else(PoisonError::into_inner);
        for StandaloneProgram { name, source } in &sources.standalone {
            if let Err(failure) = self.build_standalone(&directory, name, source) {
                println!("  {source} is not built: {failure}");
                results.not_built.push(source.clone());
            }
        }
        let helpers = built_sources(&sources.helpers, &results.not_built);
        let tests = built_sources(&sources.tests, &results.not_built);
        let (mut programs, mut left_out) = (Vec::new(), Vec::new());
        for source in &tests {
            match self.build_program(&directory, source, &helpers, &tests) {
                Ok(cases) => programs.push(TestProgram { name: stem(source), cases }),
                Err(failure) => {
                    println!("  {source} is not linked: {failure}");
                    left_out.push((*source).clone());
                }
            }
        }
        results.not_built.extend(left_out);
        results.not_built.sort();
        Ok(programs)
    }

    fn compile(&self, directory: &str, source: &str) -> Outcome {
        let object = format!("{directory}/{}.o", stem(source));
        if self.work.join(&object).exists() {
            return Ok(());
        }
        let mut command = self.compiler();
        if source.ends_with(BUFFERED_PRINTF) {
            command.arg("-mprintf-kind=buffered");
        }
        run::output(command.args(["-x", "hip", "-c", &format!("{directory}/{source}"), "-o", &object])).map(drop)
    }

    /// A program without the suite's main function.
    fn build_standalone(&self, directory: &str, name: &str, source: &str) -> Outcome {
        let program = format!("{directory}/{name}");
        if self.work.join(&program).exists() {
            return Ok(());
        }
        let source = format!("{directory}/{source}");
        run::output(self.compiler().args(["-x", "hip", &source, "-lamdhip64", "-o", &program])).map(drop)
    }

    fn link(&self, directory: &str, source: &str, helpers: &[&String]) -> Outcome {
        let program = format!("{directory}/{}", stem(source));
        if self.work.join(&program).exists() {
            return Ok(());
        }
        let mut command = self.compiler();
        command.arg("--hip-link").arg(format!("{program}.o"));
        command.args(helpers.iter().map(|helper| format!("{directory}/{}.o", stem(helper))));
        command.args(MAIN_FILES.map(|name| format!("{name}.o")));
        command.args(["-lamdhip64", "-lhiprtc", "-lpthread", "-ldl", "-o", &program]);
        run::output(&mut command).map(drop)
    }

    /// Links the source and lists its cases. A source that uses variables of others is linked with all of them.
    fn build_program(
        &self,
        directory: &str,
        source: &str,
        helpers: &[&String],
        tests: &[&String],
    ) -> Outcome<Vec<String>> {
        if self.link(directory, source, helpers).is_ok() {
            return self.list_cases(directory, source);
        }
        let others = tests.iter().filter(|other| **other != source);
        let all: Vec<&String> = helpers.iter().chain(others).copied().collect();
        self.link(directory, source, &all)?;
        let path = self.work.join(directory).join(source);
        let text = fs::read_to_string(&path).during("read", &path)?;
        let mut cases = self.list_cases(directory, source)?;
        cases.retain(|case| text.contains(&format!("\"{case}\"")));
        Ok(cases)
    }

    fn list_cases(&self, directory: &str, source: &str) -> Outcome<Vec<String>> {
        let program = self.session.work.join(directory).join(stem(source));
        let mut command = self.emulated(&self.session.work.join(directory), SOURCE);
        command.arg(&program).arg("--list-test-names-only");
        // Catch's exit code is the number of cases.
        let output = command.stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut cases: Vec<String> =
            text.lines().map(str::trim).filter(|line| line.contains('_')).map(str::to_owned).collect();
        cases.dedup();
        if cases.is_empty() { fail(format!("{source} lists no case")) } else { Ok(cases) }
    }

    /// `hotswap run` under the time limit; the program follows.
    fn emulated(&self, directory: &Path, gpu: &str) -> Command {
        let mut command = self.session.inside(directory, "timeout");
        command.args(["-k", "5", &self.limit.to_string(), "hotswap", "run", "--gpu", gpu, "--"]);
        // HIP's own kernels are compiled once.
        command.env("XDG_CACHE_HOME", self.session.work.join("cache"));
        command
    }

    fn run_case(&self, folder: &str, case: &NamedCase, gpu: &str) -> GpuState {
        let directory = self.session.work.join("catch/unit").join(folder);
        let mut command = self.emulated(&directory, gpu);
        // In names, Catch reads commas and brackets as a pattern.
        let escaped = case.name.replace(',', "\\,").replace('[', "\\[");
        command.arg(directory.join(case.program)).arg(escaped);
        let state = match command.stdin(Stdio::null()).output() {
            Err(error) => CaseState::failed(format!("cannot be started: {error}")),
            Ok(output) => {
                let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                match output.status.code() {
                    Some(code) if ENDED_BY_LIMIT.contains(&code) => CaseState::ended_by_limit(&text.concat()),
                    code => CaseState::from_output(code, &text.concat()),
                }
            }
        };
        GpuState { gpu: gpu.to_owned(), state }
    }
}

fn built_sources<'s>(sources: &'s [String], not_built: &[String]) -> Vec<&'s String> {
    sources.iter().filter(|source| !not_built.contains(source)).collect()
}

fn stem(source: &str) -> String {
    source.trim_end_matches(".cc").to_owned()
}

impl FolderSources {
    /// The files that the folder's list names and that exist.
    fn read(directory: &Path) -> Outcome<Self> {
        let list = directory.join("CMakeLists.txt");
        let text = fs::read_to_string(&list).during("read", &list)?;
        let mut sources = Self { standalone: standalone_programs(&text), ..Self::default() };
        for source in listed_sources(&text) {
            let path = directory.join(&source);
            let is_standalone = sources.standalone.iter().any(|program| program.source == source);
            if is_standalone || source.contains(COMPILE_ERRORS) || !path.exists() {
                continue;
            }
            let text = fs::read(&path).during("read", &path)?;
            let has_cases = String::from_utf8_lossy(&text).contains("TEST_CASE(");
            if has_cases { sources.tests.push(source) } else { sources.helpers.push(source) }
        }
        sources.standalone.retain(|program| directory.join(&program.source).exists());
        if sources.tests.is_empty() { fail(format!("{} names no test", list.display())) } else { Ok(sources) }
    }
}

/// The programs of a `CMakeLists.txt` that are not made by the suite's own function.
fn standalone_programs(text: &str) -> Vec<StandaloneProgram> {
    let calls = text.split("add_executable(").skip(1).filter_map(|rest| rest.split(')').next());
    let programs = calls.filter_map(|call| {
        let name = call.split_whitespace().next()?;
        let source = call.split_whitespace().find(|word| word.ends_with(".cc"))?;
        Some(StandaloneProgram { name: name.to_owned(), source: source.to_owned() })
    });
    programs.collect()
}

/// The words of a `CMakeLists.txt` that are sources, each once.
fn listed_sources(text: &str) -> Vec<String> {
    let code = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words = code.flat_map(|line| line.split(|letter: char| letter.is_whitespace() || "()\"".contains(letter)));
    let mut sources: Vec<String> =
        words.filter(|word| word.ends_with(".cc") && !word.contains('/')).map(str::to_owned).collect();
    sources.sort();
    sources.dedup();
    sources
}

/// Calls the function for each item, from several threads.
fn for_each_in_threads<T: Sync>(items: &[T], call: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    call(item);
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_a_list_are_words_outside_of_comments() {
        let text = "set(TEST_SRC\n b.cc\n a.cc # old.cc\n)\nset_source_files_properties(a.cc PROPERTIES X)\n ../c.cc";
        assert_eq!(listed_sources(text), ["a.cc", "b.cc"]);
        let programs = standalone_programs("add_executable(started EXCLUDE_FROM_ALL started_exe.cc)");
        assert_eq!((programs[0].name.as_str(), programs[0].source.as_str()), ("started", "started_exe.cc"));
    }

    #[test]
    fn every_item_is_visited_once() {
        let sum = AtomicUsize::new(0);
        for_each_in_threads(&[1, 2, 3, 4], |item| {
            sum.fetch_add(*item, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 10);
    }
}
