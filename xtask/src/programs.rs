//! Test programs: as many at a time as there are cores, the output of each in one piece.
//!
//! cargo runs one program after another, and one that waits for a compiler, or has one long test left, keeps a core idle.
//! Here the longest ones start first; those that measure time run by themselves, after all others.
//!
//! Absent on purpose: examples in documentation, which are not programs. `cargo xtask tidy` ensures their absence.

use crate::outcome::Outcome;
use crate::paths;
use cargo_metadata::Artifact;
use hotswap_userland::{Inherit, expression};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Instant;

/// A test program, by the directory of its package and its name.
type Row = (&'static str, &'static str);

/// The longest ones, longest first: what starts late ends late, while other cores have nothing to do.
#[rustfmt::skip]
const LONGEST: &[Row] = &[
    ("crates/retarget/families", "listed"),
    ("tests/cmake", "cases"),
    ("tests/harness", "modes"),
    ("tests/harness", "real_libraries"),
    ("tests/harness", "named_libraries"),
    ("tests/harness", "coalesce"),
    ("tests/rewrite-exam", "exam"),
    ("tests/rewrite-exam", "mutants"),
    ("tests/harness", "golden_programs"),
    ("driver-wrapper", "real_clang"),
    ("tests/rewrite-exam", "lint"),
    ("tests/isa-exam", "exam"),
];

/// Those that compare times: other programs beside them would be measured, too.
const ALONE: &[Row] = &[("tests/profile-bench", "speed")];

/// Those with whole libraries of a distribution, which are downloaded.
const LIBRARIES: &[Row] = &[
    ("crates/products/hotswap", "real_names"),
    ("crates/products/hotswap", "real_serve"),
    ("crates/retarget/rewrite", "library"),
    ("tests/harness", "named_libraries"),
    ("tests/harness", "real_libraries"),
];

/// The requirement of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing: unit tests.
    Unit,
    /// Compilers and tools, in most cases.
    Userland,
    /// Libraries of a distribution.
    Libraries,
}

impl Stage {
    /// All stages, the shortest first.
    pub(crate) const ALL: [Self; 3] = [Self::Unit, Self::Userland, Self::Libraries];

    /// Its name in the summary.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit tests",
            Self::Userland => "tests in the userland",
            Self::Libraries => "libraries of a distribution",
        }
    }
}

/// A program with tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    /// The directory of its package below the workspace.
    package: PathBuf,
    /// Name of the test, or for unit tests of the library or program.
    target: String,
    path: PathBuf,
    /// Whether it is the library or a program itself, with its unit tests.
    is_unit: bool,
}

impl Program {
    /// The program that cargo tells of, if it is one.
    pub(crate) fn of(artifact: &Artifact) -> Option<Self> {
        let path = artifact.executable.as_ref()?;
        let directory = artifact.manifest_path.parent()?;
        let package = directory.strip_prefix(paths::workspace()).unwrap_or(directory);
        let is_unit = !artifact.target.is_test();
        Some(Self { package: package.into(), target: artifact.target.name.clone(), path: path.into(), is_unit })
    }

    fn name(&self) -> String {
        format!("{} {}", self.package.display(), self.target)
    }

    fn stage(&self) -> Stage {
        match self.place_in(LIBRARIES) {
            Some(_) => Stage::Libraries,
            None if self.is_unit => Stage::Unit,
            None => Stage::Userland,
        }
    }

    fn place_in(&self, list: &[Row]) -> Option<usize> {
        list.iter().position(|(package, target)| *self.package == **package && self.target == *target)
    }

    /// The environment that cargo gives a test program.
    fn prepare(&self, mut command: Command, filter: Option<&str>) -> Command {
        let directory = paths::workspace().join(&self.package);
        command.current_dir(&directory).env("CARGO_MANIFEST_DIR", &directory).env("CARGO", paths::cargo());
        command.args(filter);
        command
    }
}

/// A program that has ended.
pub(crate) struct Ended {
    /// Package and target.
    pub(crate) name: String,
    pub(crate) stage: Stage,
    pub(crate) output: Vec<u8>,
    pub(crate) status: ExitStatus,
    /// Seconds by the clock, and of processors with all that it started.
    pub(crate) seconds: f64,
    pub(crate) processor: f64,
}

/// Runs all programs, each by the command that `start` makes for its path; `see` gets what has ended.
pub(crate) fn run_all(
    programs: &[Program],
    filter: Option<&str>,
    start: impl Fn(&PathBuf) -> Command + Sync,
    mut see: impl FnMut(Ended),
) -> Outcome {
    let (alone, mut together): (Vec<_>, Vec<_>) =
        programs.iter().partition(|program| program.place_in(ALONE).is_some());
    together.sort_by_key(|program| program.place_in(LONGEST).unwrap_or(LONGEST.len()));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    for (programs, at_once) in [(together, cores), (alone, 1)] {
        let next = AtomicUsize::new(0);
        let work = |sender: Sender<Outcome<Ended>>| {
            while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                println!("     Started {}", program.name());
                // The receiver ends after a failure; then nothing more is started.
                if sender.send(run(program, &program.prepare(start(&program.path), filter))).is_err() {
                    return;
                }
            }
        };
        thread::scope(|scope| {
            let (sender, ended) = mpsc::channel();
            for sender in vec![sender; at_once] {
                scope.spawn(|| work(sender));
            }
            ended.into_iter().try_for_each(|one| one.map(&mut see))
        })?;
    }
    Ok(())
}

fn run(program: &Program, command: &Command) -> Outcome<Ended> {
    let start = Instant::now();
    // One pipe for both, so that lines stay in their order.
    let running = expression(command, Inherit::All).stdin_null().stderr_to_stdout().stdout_capture().start()?;
    let processor = running.pids().first().map_or(0.0, |id| processor_time(*id));
    let Output { status, stdout, .. } = running.into_output()?;
    let (name, stage) = (program.name(), program.stage());
    Ok(Ended { name, stage, output: stdout, status, seconds: start.elapsed().as_secs_f64(), processor })
}

/// Waits for the end of the process and returns the seconds of processors that it took with its children, which exist until the
/// exit status is collected.
fn processor_time(id: u32) -> f64 {
    let process = i32::try_from(id).ok().and_then(Pid::from_raw);
    let waited = process.map(|process| waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
    if !matches!(waited, Some(Ok(_))) {
        return 0.0;
    }
    processor_seconds(&id.to_string())
}

/// Seconds of processors that a process, by its directory in /proc, and those of its children that have ended took: `utime` to
/// `cstime` of proc(5). 0 without /proc.
pub(crate) fn processor_seconds(process: &str) -> f64 {
    /// The kernel's clock as proc(5) has it, on every machine that Linux runs on.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / TICKS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program((package, target): (&str, &str)) -> Program {
        Program { package: package.into(), target: target.to_owned(), path: target.into(), is_unit: false }
    }

    #[test]
    fn every_program_is_run_once_and_those_that_measure_are_last_and_alone() {
        let directory = tempfile::tempdir().unwrap();
        let busy = directory.path().join("busy");
        // `xtask` stands for any package: its directory is there.
        let mut programs: Vec<_> = (0..12).map(|number| program(("xtask", &format!("p{number}")))).collect();
        programs.insert(0, program(ALONE[0]));
        programs.push(program(LONGEST[0]));
        let start = |path: &PathBuf| {
            let mut command = Command::new("/bin/sh");
            let alone = path.as_os_str() == ALONE[0].1;
            let script = match alone {
                // Whether another one runs.
                true => "ls $BUSY | wc -l",
                false => "mkdir -p $BUSY; : > $BUSY/$$; echo out; echo error >&2; sleep 0.02; rm $BUSY/$$; exit 3",
            };
            command.args(["-c", script]).env("BUSY", &busy);
            command
        };
        let mut seen = Vec::new();
        run_all(&programs, Some("filter"), start, |ended| seen.push(ended)).unwrap();
        let last = seen.last().unwrap();
        assert_eq!((last.name.as_str(), &*last.output), ("tests/profile-bench speed", &b"0\n"[..]));
        assert!(seen[..13].iter().all(|one| one.output == b"out\nerror\n" && one.status.code() == Some(3)));
        let mut names: Vec<_> = seen.iter().map(|one| &one.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), programs.len());
    }

    #[test]
    fn time_of_processors_is_that_of_a_program_and_its_children() {
        let start = |_: &PathBuf| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'"]);
            command
        };
        let mut seen = Vec::new();
        run_all(&[program(("xtask", "p"))], None, start, |ended| seen.push(ended)).unwrap();
        assert!(seen[0].processor > 0.0 && seen[0].processor <= seen[0].seconds * 1.5, "{}", seen[0].processor);
    }

    #[test]
    fn the_lists_name_programs_that_there_are() {
        for (package, target) in LONGEST.iter().chain(ALONE).chain(LIBRARIES) {
            let file = paths::workspace().join(package).join("tests").join(format!("{target}.rs"));
            assert!(file.exists(), "{}", file.display());
        }
    }

    #[test]
    fn a_program_that_cannot_be_started_ends_the_run() {
        let start = |_: &PathBuf| Command::new("/nowhere/program");
        assert!(run_all(&[program(("xtask", "p"))], None, start, |_| ()).is_err());
    }
}
