//! The task `test`: every check and every test, on a bare machine as on a developer's.

use crate::outcome::{During, Outcome, fail};
use crate::run::Times;
use crate::session::Session;
use crate::{install, isa_exam, library, paths, readme, run, tidy};
use clap::Parser;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// Runs every check and test; sets up what is missing.
#[derive(Parser)]
struct Options {
    /// Only what needs no ROCm: format, tidy and the unit tests of each crate.
    #[arg(long)]
    quick: bool,
    /// Run only tests of this package, without format, clippy and the other checks; may be repeated.
    #[arg(long, short, value_name = "NAME")]
    package: Vec<String>,
    /// Install a build that is not optimised: sooner there, for work on one test.
    #[arg(long)]
    debug: bool,
    /// Run only tests whose name contains this.
    filter: Option<String>,
}

impl Options {
    /// Whether nothing is left out: then the checks that are no tests are included.
    fn everything(&self) -> bool {
        self.filter.is_none() && self.package.is_empty()
    }

    /// Whether tests of this package are run.
    fn covers(&self, package: &str) -> bool {
        self.package.is_empty() || self.package.iter().any(|name| name == package)
    }
}

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

fn is_allowed_skip(line: &str, allowed: &str) -> bool {
    let entries = allowed.lines().map(str::trim).filter(|entry| !entry.is_empty() && !entry.starts_with('#'));
    entries.into_iter().any(|entry| line.contains(entry))
}

impl Count {
    fn see_skip(&mut self, line: &str) {
        if line.contains(hotswap_userland::SKIPPED) {
            self.skipped += 1;
            self.unlisted.extend((!is_allowed_skip(line, ALLOWED_SKIPS)).then(|| line.trim().to_owned()));
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
    if options.everything() {
        checks(&options, &mut times, &mut count);
    }
    let result =
        if options.quick { quick(&options, &mut times, &mut count) } else { full(&options, &mut times, &mut count) };
    count.add("tests", result);
    if options.everything() && !options.quick {
        let unlisted = std::mem::take(&mut count.unlisted);
        count.add("skips", no_unlisted_skip(&unlisted));
    }
    times.print();
    println!("\n{} passed, {} failed, {} skipped", count.passed, count.failed, count.skipped);
    if count.failed == 0 { Ok(()) } else { fail("not everything passed") }
}

fn checks(options: &Options, times: &mut Times, count: &mut Count) {
    count.add("format", times.time("format", || run::show(&mut cargo(&["fmt", "--all", "--check"]))));
    count.add("tidy", times.time("tidy", tidy::check));
    if !options.quick {
        let words = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
        count.add("clippy", times.time("clippy", || run::show(&mut cargo(&words))));
    }
    if count.failed > 0 {
        println!("{} of the checks failed; the tests are run all the same", count.failed);
    }
}

/// Unit tests only.
fn quick(options: &Options, times: &mut Times, count: &mut Count) -> Outcome {
    let command = cargo_test(Command::new(paths::cargo()), &["--lib", "--bins"], options);
    times.time("unit tests", || count_tests(command, count))
}

/// Everything, against an optimised installation inside the userland.
fn full(options: &Options, times: &mut Times, count: &mut Count) -> Outcome {
    let prefix = paths::scratch("prefix");
    let session = times.time("set-up", || Session::open(&prefix, &paths::scratch("work")))?;
    times.time("install", || install::install(&prefix, !options.debug, session.clang().as_deref()))?;
    if options.everything() {
        count.add("readme", times.time("README commands", || readme::check(&session, false)));
    }
    let mut command = cargo_test(session.beside(&paths::cargo()), &[], options);
    times.time("LLVM's tests", || isa_exam::provide(&mut command))?;
    // A mirror without a package fails the test that needs it, and no other.
    if (options.covers("hotswap-tests") || options.covers("hotswap-rewrite"))
        && let Err(failure) = times.time("libraries", || library::provide(&mut command))
    {
        println!("The tests of real libraries will fail: {failure}");
    }
    if options.covers("hotswap")
        && let Err(failure) = times.time("headers", || library::provide_headers(&mut command))
    {
        println!("The tests that compile with a distribution's headers are skipped: {failure}");
    }
    times.time("tests", || count_tests(command, count))
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

fn cargo_test(mut command: Command, words: &[&str], options: &Options) -> Command {
    let packages = options.package.iter().flat_map(|name| ["--package", name]);
    let workspace = options.package.is_empty().then_some("--workspace");
    let words: Vec<&str> =
        ["test", "--no-fail-fast"].into_iter().chain(workspace).chain(packages).chain(words.iter().copied()).collect();
    command.current_dir(paths::workspace()).args(&words).args(&options.filter);
    println!("$ cargo {}", words.join(" "));
    command
}

/// Runs cargo test with its output shown, adds up its result lines, and tells which test programs took longest.
fn count_tests(mut command: Command, count: &mut Count) -> Outcome {
    // One pipe for both: cargo names the program on standard error, its result is on standard output.
    let (reader, writer) = std::io::pipe()?;
    let mut child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
    drop(command); // it holds the pipe open
    let before = count.failed;
    let mut programs = Programs::default();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        let mut out = std::io::stdout().lock();
        out.write_all(&line).and_then(|()| out.write_all(b"\n")).during("write", "standard output".as_ref())?;
        let text = String::from_utf8_lossy(&line);
        count.see_skip(&text);
        programs.see(&text);
        if let Some((passed, failed)) = result_line(&text) {
            count.passed += passed;
            count.failed += failed;
        }
    }
    programs.print();
    let status = child.wait()?;
    if status.success() || count.failed > before { Ok(()) } else { fail(format!("cargo test failed: {status}")) }
}

/// The time of each test program, from the lines of cargo and of the test harness.
#[derive(Default)]
struct Programs {
    /// The program that runs.
    name: String,
    times: Vec<(f64, String)>,
}

impl Programs {
    /// `Running tests/cases.rs (target/debug/deps/cases-0a1b)`, and the seconds at the end of a result line.
    fn see(&mut self, line: &str) {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("Running ").or_else(|| line.strip_prefix("Doc-tests ")) {
            name.clone_into(&mut self.name);
        } else if let Some((_, time)) =
            line.strip_prefix("test result: ").and_then(|rest| rest.split_once("finished in "))
            && let Ok(seconds) = time.trim_end_matches('s').parse()
        {
            self.times.push((seconds, self.name.clone()));
        }
    }

    fn print(&mut self) {
        const SHOWN: usize = 25;
        self.times.sort_by(|one, other| other.0.total_cmp(&one.0));
        println!("\nTest programs that took longest:");
        for (seconds, name) in self.times.iter().take(SHOWN) {
            println!("  {seconds:>8.1} s  {name}");
        }
    }
}

/// `test result: ok. 3 passed; 1 failed; …`
fn result_line(line: &str) -> Option<(usize, usize)> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| {
        let before = rest.split(word).next()?;
        before.split([' ', ';', '.']).rfind(|part| !part.is_empty())?.parse().ok()
    };
    Some((number(" passed")?, number(" failed")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_belong_to_programs() {
        let mut programs = Programs::default();
        programs.see("     Running tests/cases.rs (target/debug/deps/cases-0a1b)");
        programs.see("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.50s");
        assert_eq!(programs.times, [(2.5, "tests/cases.rs (target/debug/deps/cases-0a1b)".to_owned())]);
    }

    #[test]
    fn a_skip_is_a_failure_unless_it_is_listed() {
        let listed = "# why\none thing: skipped\n";
        assert!(is_allowed_skip("  one thing: skipped: no tool", listed));
        assert!(!is_allowed_skip("another: skipped: why", listed) && !is_allowed_skip("skipped: x", ""));
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
