//! The task `test`: every check and every test, on a bare machine as on a developer's.

use crate::built::{Built, Profile};
use crate::outcome::{Outcome, fail};
use crate::preflight::{self, TaskNeeds};
use crate::programs::{self, Ended};
use crate::recipe::Part;
use crate::run::Times;
use crate::session::Session;
use crate::{browser, install, isa_exam, library, paths, readme, run, summary, tidy};
use cargo_metadata::{MetadataCommand, Package};
use clap::Parser;
use hotswap_userland::{ENV_EVERYTHING, ENV_ROOT, SKIPPED};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

/// Runs every check and test; sets up what is missing.
#[derive(Parser)]
struct Options {
    /// Only what needs no ROCm: format, tidy and the unit tests of each crate.
    #[arg(long)]
    quick: bool,
    /// Run only tests of this package, without format, clippy and the other checks; may be repeated.
    #[arg(long, short, value_name = "NAME")]
    package: Vec<String>,
    /// Run all cases of tests that run a part of them by default; takes hours. Writes `docs/evidence/full-run.md`.
    #[arg(long, conflicts_with = "quick")]
    everything: bool,
    /// Build tests and installation without optimisation: sooner there, for work on one test.
    #[arg(long)]
    debug: bool,
    /// Run only tests whose name contains this.
    filter: Option<String>,
}

impl Options {
    /// Whether no test is left out: then the checks that are no tests are included.
    fn is_whole(&self) -> bool {
        self.filter.is_none() && self.package.is_empty()
    }

    /// Whether tests of this package are run.
    fn covers(&self, package: &str) -> bool {
        self.package.is_empty() || self.package.iter().any(|name| name == package)
    }
}

/// With the programs of all tests.
const NEEDS: TaskNeeds = TaskNeeds { target: 8_000_000_000, part: Some(Part::Tests) };

/// Without a userland: unit tests only.
const QUICK_NEEDS: TaskNeeds = TaskNeeds { target: 3_000_000_000, part: None };

/// Tests that passed and failed, in all parts.
#[derive(Default)]
struct Count {
    passed: usize,
    failed: usize,
    /// Tests, or parts of them, that reported that they could not run here.
    skipped: usize,
    /// Their lines that are not in the list of allowed skips.
    unlisted: Vec<String>,
}

/// Skips that a full run may have: a part of the line each, with the reason as a comment.
const ALLOWED_SKIPS: &str = include_str!("../../tests/allowed-skips.txt");

/// Skips for want of something that a small machine does not have. CI's machine has it all, and allows none of them.
const SKIPS_OF_SMALL_MACHINES: &str = include_str!("../../tests/skips-of-small-machines.txt");

/// Set where the machine is known to have everything: `.ci/run` does.
const ENV_COMPLETE_MACHINE: &str = "HOTSWAP_TEST_COMPLETE_MACHINE";

/// Whether a full run on this machine may have that skip.
fn is_expected_skip(line: &str, is_complete_machine: bool) -> bool {
    is_allowed_skip(line, ALLOWED_SKIPS) || (!is_complete_machine && is_allowed_skip(line, SKIPS_OF_SMALL_MACHINES))
}

fn is_allowed_skip(line: &str, allowed: &str) -> bool {
    let entries = allowed.lines().map(str::trim).filter(|entry| !entry.is_empty() && !entry.starts_with('#'));
    entries.into_iter().any(|entry| line.contains(entry))
}

impl Count {
    fn see_skip(&mut self, line: &str) {
        if line.contains(SKIPPED) {
            self.skipped += 1;
            let is_complete_machine = std::env::var_os(ENV_COMPLETE_MACHINE).is_some();
            self.unlisted.extend((!is_expected_skip(line, is_complete_machine)).then(|| line.trim().to_owned()));
        }
    }

    /// Counts what a test program said.
    fn see_program(&mut self, ended: &Ended) {
        let before = self.failed;
        let Ended { name, output, status, seconds, .. } = ended;
        for line in String::from_utf8_lossy(output).lines() {
            self.see_skip(line);
            if let Some((passed, failed)) = result_line(line) {
                self.passed += passed;
                self.failed += failed;
            }
        }
        // One that crashed has no result line.
        if !status.success() && self.failed == before {
            self.add(name, fail(format!("{status} after {seconds:.1} s")));
        }
    }

    fn add(&mut self, name: &str, result: Outcome) {
        match result {
            Ok(()) => self.passed += 1,
            Err(failure) => {
                println!("FAILED {name}: {failure}");
                self.failed += 1;
            }
        }
    }
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let mut times = Times::default();
    let mut count = Count::default();
    let result =
        if options.quick { quick(&options, &mut times, &mut count) } else { full(&options, &mut times, &mut count) };
    count.add("tests", result);
    if options.is_whole() && !options.quick {
        let unlisted = std::mem::take(&mut count.unlisted);
        count.add("skips", no_unlisted_skip(&unlisted));
    }
    times.print();
    println!("\n{} passed, {} failed, {} skipped", count.passed, count.failed, count.skipped);
    if count.failed == 0 { Ok(()) } else { fail("not everything passed") }
}

/// Format and tidy, unit tests.
fn quick(options: &Options, times: &mut Times, count: &mut Count) -> Outcome {
    times.time("checks of the machine, and crates", || preflight::check(&QUICK_NEEDS))?;
    short_checks(options, times, count);
    let built = times.time("build", || build_quick(options))?;
    let mut ended = times.time("unit tests", || run_tests(&built, options, start_test_program, count))?;
    summary::print(&mut ended);
    Ok(())
}

fn start_test_program(path: &PathBuf) -> Command {
    let mut command = Command::new(path);
    command.env_remove(ENV_ROOT);
    command
}

/// The unit tests of the product and of the tests' kit. The other packages of `tests` need ROCm for almost all that they do.
fn build_quick(options: &Options) -> Outcome<Built> {
    let metadata = MetadataCommand::new().current_dir(paths::workspace()).no_deps().exec()?;
    let left_out = metadata.workspace_packages().into_iter().filter(|package: &&Package| {
        package.manifest_path.starts_with(metadata.workspace_root.join("tests")) && *package.name != "hotswap-userland"
    });
    let mut words = vec!["--lib".to_owned(), "--bins".to_owned()];
    if options.package.is_empty() {
        words.extend(left_out.flat_map(|package| ["--exclude".to_owned(), package.name.to_string()]));
    }
    build_tests(options, Profile::Dev, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Everything, against an installation inside the userland. It and the tests come from one build.
fn full(options: &Options, times: &mut Times, count: &mut Count) -> Outcome {
    let profile = if options.debug { Profile::Dev } else { Profile::Checked };
    let prefix = paths::scratch("prefix");
    times.time("checks of the machine, and crates", || preflight::check(&NEEDS))?;
    short_checks(options, times, count);
    // One of them waits for mirrors, the other one computes.
    let (ground, built) = thread::scope(|scope| {
        let ground = scope.spawn(|| Ground::prepare(options));
        if options.is_whole() {
            count.add("clippy", times.time("clippy", || clippy(profile)));
        }
        let built = times.time("build", || build(options, profile));
        (times.time("set-up and downloads, after that", || ground.join()), built)
    });
    let (ground, built) = (ground.unwrap_or_else(|_| fail("the set-up panicked"))?, built?);
    times.time("install", || install::lay_out(&prefix, ground.session.clang().as_deref(), &built))?;
    let mut ended = times.time("tests and README commands", || {
        thread::scope(|scope| {
            let readme = options.is_whole().then(|| scope.spawn(|| readme::check(&ground.session, false)));
            let result = run_tests(&built, options, |path| ground.command(path), count);
            if let Some(readme) = readme {
                count.add("readme", readme.join().unwrap_or_else(|_| fail("the check panicked")));
            }
            result
        })
    })?;
    summary::print(&mut ended);
    let is_table = options.everything && options.is_whole() && count.failed == 0;
    if is_table { summary::write_page(&ended, count.passed) } else { Ok(()) }
}

/// Checks that need no compiler.
fn short_checks(options: &Options, times: &mut Times, count: &mut Count) {
    if options.is_whole() {
        count.add("format", times.time("format", || run::show(&mut cargo(&["fmt", "--all", "--check"]))));
        count.add("tidy", times.time("tidy", tidy::check));
    }
}

/// With the profile of the tests: build scripts, and the C code that they compile, serve both.
/// Tests and tasks may end by a panic; the crates of the product that start programs deny it (`clippy.toml`).
const ALLOWED_IN_TESTS: &str = "-Aclippy::disallowed_methods";

fn clippy(profile: Profile) -> Outcome {
    let words = [
        "clippy",
        "--profile",
        profile.name(),
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
        ALLOWED_IN_TESTS,
    ];
    run::show(&mut cargo(&words))
}

/// Where the tests run: the userland, and what was downloaded for them.
struct Ground {
    session: Session,
    /// Variables that tell the tests where it is.
    variables: Vec<(OsString, OsString)>,
}

impl Ground {
    fn prepare(options: &Options) -> Outcome<Self> {
        let session = Session::open(Part::Tests, &paths::scratch("prefix"), &paths::scratch("work"))?;
        let mut command = Command::new(paths::cargo());
        isa_exam::provide(&mut command)?;
        // A mirror without a package fails the test that needs it, and no other.
        if (options.covers("hotswap-tests") || options.covers("hotswap-rewrite"))
            && let Err(failure) = library::provide(&mut command)
        {
            println!("The tests of real libraries will fail: {failure}");
        }
        if options.covers("hotswap")
            && let Err(failure) = library::provide_headers(&mut command)
        {
            println!("The tests that compile with a distribution's headers are skipped: {failure}");
        }
        if (options.covers("hotswap") || options.covers("hotswap-dispatch"))
            && let Err(failure) = library::provide_stack(&mut command)
        {
            println!("The tests that serve a distribution's libraries are skipped: {failure}");
        }
        if options.covers("hotswap-coverage")
            && let Err(failure) = browser::provide(&mut command)
        {
            println!("The tests of pages in a browser are skipped: {failure}");
        }
        if options.everything {
            command.env(ENV_EVERYTHING, "1");
        }
        let variables = command
            .get_envs()
            .filter_map(|(name, value)| Some((owned_command_word(name), owned_command_word(value?))))
            .collect();
        Ok(Self { session, variables })
    }

    /// A test program with all of it.
    fn command(&self, program: &PathBuf) -> Command {
        let mut command = self.session.beside(program);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn owned_command_word(word: &OsStr) -> OsString {
    word.to_owned()
}

/// The tests, and what is installed: by one run of cargo where that builds both.
fn build(options: &Options, profile: Profile) -> Outcome<Built> {
    let mut built = build_tests(options, profile, &[])?;
    if !options.package.is_empty() {
        let installed = install::build(profile, OsStr::new(""))?;
        let Built { programs, libraries, directories, .. } = installed;
        built = Built { programs, libraries, directories, ..built };
    }
    Ok(built)
}

fn build_tests(options: &Options, profile: Profile, words: &[&str]) -> Outcome<Built> {
    let packages = options.package.iter().flat_map(|name| ["--package", name]);
    let workspace = options.package.is_empty().then_some("--workspace");
    let all = ["test", "--no-run", "--profile", profile.name()].into_iter().chain(workspace).chain(packages);
    Built::new(Command::new(paths::cargo()), &all.chain(words.iter().copied()).collect::<Vec<_>>())
}

/// In a full run all requirements of the tests are met: a skip hides something, unless a list has a reason for it.
fn no_unlisted_skip(lines: &[String]) -> Outcome {
    if lines.is_empty() {
        return Ok(());
    }
    fail(format!("skipped, and not in tests/allowed-skips.txt:\n  {}", lines.join("\n  ")))
}

fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(paths::cargo());
    command.current_dir(paths::workspace()).args(words);
    command
}

/// Runs the test programs and adds up their result lines.
fn run_tests(
    built: &Built,
    options: &Options,
    start: impl Fn(&PathBuf) -> Command + Sync,
    count: &mut Count,
) -> Outcome<Vec<Ended>> {
    let mut times = Vec::new();
    programs::run_all(&built.tests, options.filter.as_deref(), start, |ended| {
        let shown =
            [format!("\n     Ran {} in {:.1} s\n", ended.name, ended.seconds).as_bytes(), &ended.output].concat();
        // Who closes standard output still gets the exit code.
        let _ = std::io::stdout().lock().write_all(&shown);
        count.see_program(&ended);
        times.push(ended);
    })?;
    Ok(times)
}

/// `test result: ok. 3 passed; 1 failed; …`
fn result_line(line: &str) -> Option<(usize, usize)> {
    let rest = line.strip_prefix("test result: ")?;
    Some((count_before_word(" passed", rest)?, count_before_word(" failed", rest)?))
}

fn count_before_word(word: &str, rest: &str) -> Option<usize> {
    let before = rest.split(word).next()?;
    before.split([' ', ';', '.']).rfind(|part| !part.is_empty())?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::Stage;

    #[test]
    fn a_program_that_crashes_is_a_failure() {
        use std::os::unix::process::ExitStatusExt;
        use std::process::ExitStatus;
        let ended = |output: &str, status: i32| Ended {
            name: "tests/x y".to_owned(),
            stage: Stage::Userland,
            output: output.into(),
            status: ExitStatus::from_raw(status),
            seconds: 1.0,
            processor: 1.0,
        };
        let mut count = Count::default();
        count.see_program(&ended("test result: ok. 2 passed; 0 failed; 0 ignored\n", 0));
        count.see_program(&ended("test result: FAILED. 1 passed; 2 failed; 0 ignored\n", 101 << 8));
        assert_eq!((count.passed, count.failed), (3, 2));
        count.see_program(&ended("running 2 tests\n", 11));
        count.see_program(&ended("test result: ok. 2 passed; 0 failed; 0 ignored\n", 1 << 8));
        assert_eq!((count.passed, count.failed), (5, 4));
    }

    #[test]
    fn a_skip_is_a_failure_unless_it_is_listed() {
        let listed = "# why\none thing: skipped\n";
        assert!(is_allowed_skip("  one thing: skipped: no tool", listed));
        assert!(!is_allowed_skip("another: skipped: why", listed) && !is_allowed_skip("skipped: x", ""));
        let small = "a: skipped: python3 has no pip";
        assert!(is_expected_skip(small, false) && !is_expected_skip(small, true));
        let mut count = Count::default();
        count.see_skip("test a ... ok");
        count.see_skip("a: skipped: no compiler");
        assert_eq!((count.skipped, count.unlisted.len()), (1, 1));
        assert!(no_unlisted_skip(&count.unlisted).is_err() && no_unlisted_skip(&[]).is_ok());
    }

    #[test]
    fn cargo_result_lines_are_counted() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s";
        assert_eq!(result_line(line), Some((12, 3)));
        assert_eq!(result_line("test result in words"), None);
        assert_eq!(result_line("running 3 tests"), None);
    }
}
