//! System calls that fail: each command, each call that reaches files, each error that the system may return for it, and short
//! reads and writes.
//!
//! A run is right if its result is that of a run without a fault, or if it ends with an exit code other than 0, names the
//! system's reason, and leaves every file as it was or as it is to become. A slice runs by default;
//! `HOTSWAP_TEST_EVERYTHING=1` runs all.

mod exam_commands;
mod made;

use exam_commands::{COMMANDS, CONTENT, ExamCommand, MANIFEST, Run, State, TOOL_COMMANDS};
use exam_commands::{fixture, hotswap, judge, prepare_run, run_by, state};
use hotswap_faults::{CALLS, Effect, Errno, ExamCounts, Fault, Traced};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Runs of each command by default.
const SLICE: usize = 25;
/// The counts of all runs.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/evidence/faults.md");

/// A run, and what the tracer saw of it.
struct TracedRun {
    run: Run,
    traced: Traced,
}

fn run(command: &ExamCommand<'_>, template: &Path, scratch: &Path, fault: Option<&Fault>) -> TracedRun {
    let mut traced = None;
    let run = run_by(prepare_run(command, template, scratch), scratch, &mut |started| {
        let end = hotswap_faults::run(started, fault).unwrap();
        let code = end.code;
        traced = Some(end);
        code
    });
    TracedRun { run, traced: traced.unwrap() }
}

/// The faults of a command, each once.
fn faults(calls: &BTreeMap<&'static str, usize>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for row in CALLS {
        let count = calls.get(row.name).copied().unwrap_or_default();
        for number in 0..count {
            faults.extend(row.effects().map(|effect| Fault { call: row.name, number, path: None, effect }));
        }
    }
    faults
}

#[test]
fn a_system_call_that_fails_is_told_and_loses_nothing() {
    const TEST: &str = "a_system_call_that_fails_is_told_and_loses_nothing";
    if !hotswap_faults::is_supported() {
        return hotswap_userland::skip(TEST, "ptrace is forbidden");
    }
    let mut total = ExamSums::default();
    for command in COMMANDS.iter().chain(TOOL_COMMANDS).filter(|command| is_chosen(command.name)) {
        let sums = exam_on_all_cores(command);
        let ExamSums { faults, tried, refused, wrong, counts } = &sums;
        if hotswap_userland::everything() && hotswap_userland::blesses() {
            counts.write_page(Path::new(PAGE), command.name).unwrap();
        }
        let wrong = wrong.len();
        hotswap_userland::say(&format!(
            "faults: {}: {tried} of {faults} faults, {refused} ended with an error, {wrong} wrong",
            command.name
        ));
        total.add(sums);
    }
    let ExamSums { faults, tried, refused, wrong, .. } = total;
    hotswap_userland::say(&format!(
        "faults: {tried} runs of {faults}, {refused} ended with an error, {} wrong",
        wrong.len()
    ));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The sums of an exam.
#[derive(Default)]
struct ExamSums {
    /// Those that the calls of a good run have.
    faults: usize,
    tried: usize,
    refused: usize,
    wrong: Vec<String>,
    counts: ExamCounts,
}

impl ExamSums {
    fn add(&mut self, other: Self) {
        self.faults += other.faults;
        self.tried += other.tried;
        self.refused += other.refused;
        self.wrong.extend(other.wrong);
        self.counts.merge(&other.counts);
    }
}

/// Each core has a directory of its own, and takes its share of the faults.
fn exam_on_all_cores(command: &ExamCommand<'_>) -> ExamSums {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sums = ExamSums::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|core| scope.spawn(move || exam_share(command, core, cores))).collect();
        workers.into_iter().for_each(|worker| sums.add(worker.join().unwrap()));
    });
    sums
}

fn exam_share(command: &ExamCommand<'_>, core: usize, cores: usize) -> ExamSums {
    let scratch = TempDir::new().unwrap();
    let template = scratch.path().join("template");
    fixture(command, &scratch.path().join("d"));
    fs::rename(scratch.path().join("d"), &template).unwrap();
    let before = state(&template);
    let TracedRun { run: good, traced } = run(command, &template, scratch.path(), None);
    let mut sums = ExamSums::default();
    if good.code != Some(0) {
        sums.wrong.push(format!("{}: without a fault: {:?}: {}", command.name, good.code, good.errors));
        return sums;
    }
    let all = faults(&traced.calls);
    sums.faults = if core == 0 { all.len() } else { 0 };
    let step = if hotswap_userland::everything() { 1 } else { all.len().div_ceil(SLICE).max(1) };
    for fault in all.iter().step_by(step).skip(core).step_by(cores) {
        let TracedRun { run, traced } = run(command, &template, scratch.path(), Some(fault));
        let found = judge(&before, &good, fault, &run);
        // With threads the number of calls differs between runs.
        if !traced.is_injected && found.is_none() {
            continue;
        }
        sums.tried += 1;
        sums.refused += usize::from(run.code != Some(0));
        sums.counts.add_run(fault, run.code, found.is_some());
        if let Some(what) = found {
            let path = traced.path.as_deref().unwrap_or_default();
            sums.wrong.push(format!("{}: {fault:?} {path}: {what}\n    {}", command.name, run.errors.trim()));
        }
    }
    sums
}

/// A kill before each system call of a write in place: the file is the old or the new one, or the complete new content is beside it,
/// and the next command says so.
#[test]
fn a_killed_write_in_place_leaves_the_complete_content() {
    const TEST: &str = "a_killed_write_in_place_leaves_the_complete_content";
    if !hotswap_faults::is_supported() {
        return hotswap_userland::skip(TEST, "ptrace is forbidden");
    }
    let command = COMMANDS.iter().find(|command| command.words.ends_with("--in-place")).unwrap();
    let scratch = TempDir::new().unwrap();
    let template = scratch.path().join("template");
    fixture(command, &scratch.path().join("d"));
    fs::rename(scratch.path().join("d"), &template).unwrap();
    let before = state(&template);
    let TracedRun { run: good, traced } = run(command, &template, scratch.path(), None);
    assert_eq!(good.code, Some(0), "{}", good.errors);
    let content = Path::new(CONTENT);
    let (mut tried, mut unfinished) = (0, 0);
    for row in CALLS {
        for number in 0..traced.calls.get(row.name).copied().unwrap_or_default() {
            let fault = Fault { call: row.name, number, path: None, effect: Effect::Kill };
            let killed = run(command, &template, scratch.path(), Some(&fault)).run;
            tried += 1;
            let now = &killed.state[Path::new("x")].0;
            let is_complete = *now == before[Path::new("x")].0 || *now == good.state[Path::new("x")].0;
            let beside = killed.state.get(content).map(|(bytes, _)| bytes == &good.state[Path::new("x")].0);
            assert!(is_complete && beside != Some(false) || beside == Some(true), "{fault:?}");
            assert_eq!(killed.state[Path::new("link")].0, *now, "{fault:?}");
            if beside == Some(true) {
                unfinished += 1;
                let next = hotswap(command.words, &scratch.path().join("d")).output().unwrap();
                assert_eq!(next.status.code(), Some(14), "{fault:?}");
                assert!(String::from_utf8_lossy(&next.stderr).contains("[HS0507]"), "{fault:?}");
                let verified = hotswap("verify x", &scratch.path().join("d")).output().unwrap();
                assert!(String::from_utf8_lossy(&verified.stderr).contains("[HS0507]"), "{fault:?}");
            }
        }
    }
    hotswap_userland::say(&format!("write in place: {tried} kills, {unfinished} during the copy, none lost"));
    assert!(unfinished > 0);
}

/// A kill before each system call of a replacement: no file with the new content gives group or others a right that the old file does
/// not give them.
#[test]
fn a_killed_replacement_gives_no_further_rights() {
    const TEST: &str = "a_killed_replacement_gives_no_further_rights";
    const MODE: u32 = 0o640;
    if !hotswap_faults::is_supported() {
        return hotswap_userland::skip(TEST, "ptrace is forbidden");
    }
    let command = COMMANDS.iter().find(|command| command.name == "compress in place").unwrap();
    let scratch = TempDir::new().unwrap();
    let template = scratch.path().join("template");
    fixture(command, &scratch.path().join("d"));
    fs::rename(scratch.path().join("d"), &template).unwrap();
    fs::set_permissions(template.join("x"), fs::Permissions::from_mode(MODE)).unwrap();
    let before = state(&template);
    let TracedRun { run: good, traced } = run(command, &template, scratch.path(), None);
    assert_eq!(good.state[Path::new("x")].1 & 0o7777, MODE, "{}", good.errors);
    let (mut tried, mut seen) = (0, 0);
    for row in CALLS {
        for number in 0..traced.calls.get(row.name).copied().unwrap_or_default() {
            let fault = Fault { call: row.name, number, path: None, effect: Effect::Kill };
            let killed = run(command, &template, scratch.path(), Some(&fault)).run;
            tried += 1;
            for (path, (_, mode)) in killed.state.iter().filter(|(path, now)| before.get(*path) != Some(now)) {
                seen += 1;
                assert_eq!(mode & 0o7077 & !MODE, 0, "{fault:?}: {} has {mode:o}", path.display());
            }
        }
    }
    hotswap_userland::say(&format!("rights: {tried} kills, {seen} new files, none with a further right"));
    assert!(seen > 0);
}

/// The umask is asked of the system where its page cannot be read: a new file has no right that the umask forbids.
#[test]
fn an_umask_that_cannot_be_read_is_heeded() {
    const TEST: &str = "an_umask_that_cannot_be_read_is_heeded";
    if !hotswap_faults::is_supported() {
        return hotswap_userland::skip(TEST, "ptrace is forbidden");
    }
    let command = ExamCommand { name: TEST, prepare: &[], words: "compress x -o out --jobs 1" };
    let scratch = TempDir::new().unwrap();
    let template = scratch.path().join("template");
    fixture(&command, &scratch.path().join("d"));
    fs::rename(scratch.path().join("d"), &template).unwrap();
    for (umask, mode) in [("077", 0o600), ("027", 0o640), ("022", 0o644)] {
        for error in [Errno::EIO, Errno::EACCES, Errno::ENOENT] {
            let prepared = prepare_run(&command, &template, scratch.path());
            let script = format!("umask {umask}; exec \"$@\"");
            let mut started = exam_commands::below_shell(&prepared, &script);
            let status = Some("/proc/self/status".to_owned());
            let fault = Fault { call: "openat", number: 0, path: status, effect: Effect::Error(error) };
            let end = hotswap_faults::run_below(&mut started, "bin/hotswap", Some(&fault)).unwrap();
            assert!(end.is_injected && end.code == Some(0), "{umask} {error}: {end:?}");
            let made = fs::metadata(scratch.path().join("d/out")).unwrap();
            assert_eq!(made.permissions().mode() & 0o777, mode, "{umask} {error}");
        }
    }
}

/// `HOTSWAP_FAULTS=NAME` runs one command.
fn is_chosen(name: &str) -> bool {
    std::env::var("HOTSWAP_FAULTS").map_or(true, |chosen| chosen == name)
}

/// The judgement finds what it is to find.
#[test]
fn planted_faults_of_a_run_are_found() {
    let file = |content: &str| BTreeMap::from([(PathBuf::from("x"), (content.as_bytes().to_vec(), 0o644))]);
    let run = |code: Option<i32>, content: &str, errors: &str| Run {
        code,
        printed: String::new(),
        errors: errors.to_owned(),
        state: file(content),
    };
    let before = file("old");
    let good = run(Some(0), "new", "");
    let fault = Fault { call: "read", number: 0, path: None, effect: Effect::Error(Errno::EIO) };
    let told = "hotswap: error: [HS0501] x: Input/output error (os error 5)";
    for (bad, what) in [
        (run(Some(0), "old", ""), "another result"),
        (run(Some(0), "half", ""), "third thing"),
        (run(Some(14), "old", ""), "without the true reason"),
        (run(Some(12), "old", "hotswap: error: [HS0302] x: damaged: Input/output error"), "without the true reason"),
        (run(Some(70), "old", told), "exit code 70"),
        (run(None, "old", told), "a signal"),
    ] {
        assert!(judge(&before, &good, &fault, &bad).is_some_and(|found| found.contains(what)), "{what}");
    }
    for fine in [run(Some(14), "old", told), run(Some(14), "new", told), run(Some(0), "new", "")] {
        assert_eq!(judge(&before, &good, &fault, &fine), None);
    }
    // A message is not an excuse for another result, nor for another file about a served tree.
    let absent = Fault { effect: Effect::Error(Errno::ENOENT), ..fault.clone() };
    let warned = "hotswap: warning: [HS0105] libhotswap-names.so is not there";
    assert!(judge(&before, &good, &absent, &run(Some(0), "old", warned)).is_some());
    let manifest = |content: &str| BTreeMap::from([(PathBuf::from(MANIFEST), (content.as_bytes().to_vec(), 0o644))]);
    let served = Run { state: manifest("right"), ..run(Some(0), "", "") };
    let wrong = Run { state: manifest("wrong"), ..run(Some(0), "", warned) };
    assert!(judge(&State::new(), &served, &absent, &wrong).is_some());
    assert!(judge(&manifest("old"), &served, &absent, &wrong).is_some());
    // A torn file is excused where its complete content is beside it, and only then.
    let torn = Run { state: file("ne d"), ..run(Some(14), "", told) };
    assert!(judge(&before, &good, &fault, &torn).is_some());
    for (beside, is_fine) in [("new", true), ("ne", false)] {
        let mut state = file("ne d");
        state.insert(PathBuf::from(CONTENT), (beside.as_bytes().to_vec(), 0o600));
        let torn = Run { state, ..run(Some(14), "", told) };
        assert_eq!(judge(&before, &good, &fault, &torn).is_none(), is_fine, "{beside}");
    }
}
