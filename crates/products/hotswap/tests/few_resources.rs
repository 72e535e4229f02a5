//! Commands with few file descriptors, without a second thread, or with a closed or full standard output: each command of the exam of
//! faults.
//!
//! With few descriptors a run is right if its result is that of a run with all, or if it ends with an exit code other than 0, names
//! "Too many open files", and leaves every file as it was or as it is to become. Without threads the result is the same.

mod exam_commands;
mod made;

use exam_commands::{COMMANDS, ExamCommand, Run, below_shell, fixture, judge, prepare_run, run_by, state};
use hotswap_faults::{Effect, Errno, Fault};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// Limits of descriptors; three are standard input and outputs.
const LIMITS: &[u32] = &[3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 24, 32];
/// With these the loader of programs opens libraries, and all of HotSwap's own errors are HotSwap's to report.
const LOADS: u32 = 4;
const USER: &str = "61234";
/// Commands that start other programs, which takes a process.
const START_PROGRAMS: &[&str] = &["profile merge", "profile show"];

/// A command's files, and its run without a limit.
struct CommandBench {
    scratch: TempDir,
    template: PathBuf,
}

impl CommandBench {
    fn new(command: &ExamCommand<'_>) -> Self {
        let scratch = tempfile::tempdir_in("/tmp").unwrap();
        fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let template = scratch.path().join("template");
        fixture(command, &scratch.path().join("d"));
        fs::rename(scratch.path().join("d"), &template).unwrap();
        Self { scratch, template }
    }

    fn run(&self, command: &ExamCommand<'_>, start: &mut dyn FnMut(Command) -> Command) -> Run {
        let prepared = prepare_run(command, &self.template, self.scratch.path());
        run_by(start(prepared), self.scratch.path(), &mut |command| command.status().unwrap().code())
    }
}

fn keep_command(command: Command) -> Command {
    command
}

/// The sums of a command's runs.
#[derive(Default)]
struct LimitSums {
    tried: usize,
    refused: usize,
    wrong: Vec<String>,
}

fn try_limits(command: &ExamCommand<'_>, sums: &mut LimitSums) {
    let bench = CommandBench::new(command);
    let before = state(&bench.template);
    let good = bench.run(command, &mut keep_command);
    if good.code != Some(0) {
        return sums.wrong.push(format!("{} without a limit: {:?}: {}", command.name, good.code, good.errors));
    }
    let fault = Fault { call: "openat", number: 0, path: None, effect: Effect::Error(Errno::EMFILE) };
    for limit in LIMITS {
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let run = bench.run(command, &mut |command| below_shell(&command, &script));
        sums.tried += 1;
        sums.refused += usize::from(run.code != Some(0));
        let is_loader = run.code == Some(127) && run.errors.contains("error while loading shared libraries");
        // A tool that HotSwap started tells its own reason.
        let is_tool = run.errors.contains("bin: /bin/sh: ") && run.code == Some(10) && run.state == before;
        let found = match is_loader {
            _ if is_tool => None,
            true if *limit >= LOADS => Some("the loader has failed".to_owned()),
            true => (run.state != before).then(|| "a program that was not loaded changed files".to_owned()),
            false => judge(&before, &good, &fault, &run),
        };
        if let Some(what) = found {
            sums.wrong.push(format!("{} with {limit} descriptors: {what}\n    {}", command.name, run.errors.trim()));
        }
    }
}

#[test]
fn with_few_descriptors_a_command_is_right_or_names_the_reason() {
    let mut sums = LimitSums::default();
    for command in COMMANDS {
        try_limits(command, &mut sums);
    }
    let LimitSums { tried, refused, wrong } = sums;
    let commands = COMMANDS.len();
    hotswap_userland::say(&format!(
        "few descriptors: {tried} runs of {commands} commands, {refused} ended with an error, {} wrong",
        wrong.len()
    ));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused > 0 && refused < tried);
}

/// The program that the command becomes prints, and its exit code is that program's.
const BECOMES_ANOTHER: &str = "exec";

#[test]
fn a_standard_output_that_is_closed_or_full_is_an_error_of_each_command_that_prints() {
    let (mut tried, mut wrong) = (0, Vec::new());
    for command in COMMANDS.iter().filter(|command| command.name != BECOMES_ANOTHER) {
        let bench = CommandBench::new(command);
        let before = state(&bench.template);
        let good = bench.run(command, &mut keep_command);
        for (redirection, error) in [(">&-", Errno::EBADF), (">/dev/full", Errno::ENOSPC)] {
            let script = format!("exec \"$@\" {redirection}");
            let run = bench.run(command, &mut |command| below_shell(&command, &script));
            let fault = Fault { call: "write", number: 0, path: None, effect: Effect::Error(error) };
            tried += 1;
            if let Some(what) = judge(&before, &good, &fault, &run) {
                wrong.push(format!("{} {redirection}: {what}: {}", command.name, run.errors.trim()));
            }
        }
    }
    hotswap_userland::say(&format!("closed and full standard output: {tried} runs, {} wrong", wrong.len()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A filter that refuses new threads and processes, as a limit of a container does.
fn no_threads() -> BpfProgram {
    const CLONE3: i64 = 435;
    const CLONE: i64 = if cfg!(target_arch = "aarch64") { 220 } else { 56 };
    const EAGAIN: u32 = 11;
    let calls = [(CLONE3, Vec::new()), (CLONE, Vec::new())].into_iter().collect();
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, SeccompAction::Errno(EAGAIN), machine).unwrap();
    filter.try_into().unwrap()
}

#[allow(unsafe_code, reason = "what runs between fork and exec can only be given by an unsafe function")]
fn without_new_threads(mut command: Command) -> Command {
    let filter = no_threads();
    // SAFETY: two system calls; the filter was made before, and no memory is taken where they succeed.
    unsafe { command.pre_exec(move || seccompiler::apply_filter(&filter).map_err(std::io::Error::other)) };
    command
}

/// The limit of processes does not apply to root. The user may search all directories, because the programs may lie in one that is
/// open to root only.
fn as_user_without_processes(command: Command) -> Command {
    const SEARCH: &str = "--inh-caps +dac_read_search --ambient-caps +dac_read_search";
    let other = format!("setpriv --reuid {USER} --regid {USER} --clear-groups {SEARCH}");
    let directory = command.get_current_dir().unwrap().parent().unwrap().to_owned();
    let owned = Command::new("chown").args(["-R", &format!("{USER}:{USER}")]).arg(&directory).status();
    assert!(owned.unwrap().success());
    below_shell(&command, &format!("exec {other} bash -c 'ulimit -u 1; exec \"$@\"' bash \"$@\""))
}

/// A way to take threads from a command.
struct ThreadLimit {
    name: &'static str,
    apply: fn(Command) -> Command,
}

const THREAD_LIMITS: &[ThreadLimit] = &[
    ThreadLimit { name: "a filter of system calls", apply: without_new_threads },
    ThreadLimit { name: "a limit of another user's processes", apply: as_user_without_processes },
];

fn other_result(good: &Run, run: &Run, command: &ExamCommand<'_>) -> Option<String> {
    if START_PROGRAMS.contains(&command.name) && run.code.is_some_and(|code| (10..=15).contains(&code)) {
        let is_told = run.errors.contains("Resource temporarily unavailable");
        return (!is_told).then(|| "ended with another reason".to_owned());
    }
    let is_same = run.code == Some(0) && good.code == Some(0) && run.state == good.state && run.printed == good.printed;
    (!is_same).then(|| format!("{:?} and another result", run.code))
}

#[test]
fn without_threads_each_command_gives_the_same_result() {
    const TEST: &str = "without_threads_each_command_gives_the_same_result";
    for limit in THREAD_LIMITS {
        if limit.name.contains("user") && !hotswap_userland::can_be_two_users() {
            hotswap_userland::skip(TEST, "only root can be two users");
            continue;
        }
        let mut wrong = Vec::new();
        for command in COMMANDS {
            let several = command.words.replace("--jobs 1", "--jobs 8");
            let bench = CommandBench::new(command);
            let command = &ExamCommand { words: &several, ..*command };
            let good = bench.run(command, &mut keep_command);
            let run = bench.run(command, &mut |command| (limit.apply)(command));
            if let Some(what) = other_result(&good, &run, command) {
                wrong.push(format!("{} by {}: {what}\n    {}", command.name, limit.name, run.errors.trim()));
            }
        }
        hotswap_userland::say(&format!(
            "without threads by {}: {} commands, {} wrong",
            limit.name,
            COMMANDS.len(),
            wrong.len()
        ));
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
}
