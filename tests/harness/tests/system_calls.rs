//! System calls of the wrapper and of the interposer that fail: each call that reaches files, each error that the system may return
//! for it, short reads and writes, in compiles and links with a plan.
//!
//! A run is right if its output is that of a run without a fault, or if it ends with an exit code other than 0, names the system's
//! reason, and leaves no output. A slice runs by default; `HOTSWAP_TEST_EVERYTHING=1` runs all, `HOTSWAP_FAULTS=NAME` one command.

use hotswap_faults::{CALLS, Effect, Errno, ExamCounts, Fault, Traced};
use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, Scratch, say, skip};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Runs of each command by default.
const SLICE: usize = 12;
const WRAPPER: &str = "bin/hotswap-clang";
/// The counts of all runs.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/evidence/faults.md");
const INTERPOSER: &str = "libexec/hotswap/lld";

/// A build step, and the program under test in it.
struct BuildStep {
    name: &'static str,
    program: &'static str,
    /// Steps before it.
    prepare: &'static [&'static str],
    words: &'static str,
}

const COMPILE: &str = "-c a.hip -o a.o PLAN --no-offload-new-driver";
const LINK: &str = "a.o -o program PLAN --no-offload-new-driver --hip-link";
const RELOCATABLE: &str = "-fgpu-rdc -c a.hip -o a.o PLAN";

const STEPS: &[BuildStep] = &[
    BuildStep { name: "wrapper, compile", program: WRAPPER, prepare: &[], words: COMPILE },
    BuildStep { name: "wrapper, link", program: WRAPPER, prepare: &[COMPILE], words: LINK },
    BuildStep { name: "wrapper, relocatable compile", program: WRAPPER, prepare: &[], words: RELOCATABLE },
    BuildStep {
        name: "wrapper, relocatable link",
        program: WRAPPER,
        prepare: &[RELOCATABLE],
        words: "-fgpu-rdc a.o -o program PLAN --hip-link",
    },
    BuildStep { name: "interposer, compile", program: INTERPOSER, prepare: &[], words: COMPILE },
    BuildStep {
        name: "interposer, compile by the new driver",
        program: INTERPOSER,
        prepare: &[],
        words: "-c a.hip -o a.o PLAN --offload-new-driver",
    },
    BuildStep {
        name: "interposer, relocatable link",
        program: INTERPOSER,
        prepare: &[RELOCATABLE],
        words: "-fgpu-rdc a.o -o program PLAN --hip-link",
    },
];

/// Content of each file by its name.
type State = BTreeMap<PathBuf, Vec<u8>>;

/// A run: its end, what it said, and the files afterwards.
struct Run {
    traced: Traced,
    errors: String,
    state: State,
}

/// The directory of a step. All runs are at one path, because clang hashes paths.
struct Workplace<'w> {
    bench: &'w Bench,
    clang: &'w Clang,
    scratch: Scratch,
    /// The files before a run.
    before: State,
}

impl<'w> Workplace<'w> {
    fn prepared(bench: &'w Bench, clang: &'w Clang, step: &BuildStep) -> Self {
        let scratch = bench.scratch();
        write_sources(&scratch, false);
        for directory in ["tmp", "home"] {
            fs::create_dir(scratch.outside(directory)).unwrap();
        }
        let mut place = Self { bench, clang, scratch, before: State::new() };
        for words in step.prepare {
            let ran = place.call(words).run();
            assert!(ran.ok(), "{words}: {}", ran.brief());
        }
        let _ = fs::remove_dir_all(place.scratch.outside("home"));
        fs::create_dir(place.scratch.outside("home")).unwrap();
        place.before = state_of(&place.scratch.outside(""));
        place
    }

    fn call(&self, words: &str) -> Call<'w> {
        let mut line = vec![self.bench.installed("bin/hotswap-clang++")];
        line.extend(self.clang.light());
        line.extend(["--offload-arch=gfx1030", "-O1", "-w"].map(str::to_owned));
        for word in words.split(' ') {
            match word {
                "PLAN" => {
                    line.extend(["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031"].map(str::to_owned));
                }
                word => line.push(word.to_owned()),
            }
        }
        if !words.starts_with("-c") && !words.contains(" -c ") {
            line.extend(self.clang.link.iter().cloned());
        }
        let call = Call::new(self.bench, self.scratch.inside.clone(), &line).under(&["timeout", "-s", "KILL", "100"]);
        let call = call.env("HOTSWAP_CLANG", self.clang.program.clone()).env("HOME", self.scratch.inside("home"));
        call.env("TMPDIR", self.scratch.inside("tmp")).env("RUST_BACKTRACE", "0")
    }

    /// Removes what an earlier run has left.
    fn clean(&self) {
        let root = self.scratch.outside("");
        for path in state_of(&root).keys().filter(|path| !self.before.contains_key(*path)) {
            fs::remove_file(root.join(path)).unwrap();
        }
        for directory in ["tmp", "home"] {
            fs::remove_dir_all(root.join(directory)).unwrap();
            fs::create_dir(root.join(directory)).unwrap();
        }
        for (path, content) in &self.before {
            if fs::read(root.join(path)).ok().as_ref() != Some(content) {
                fs::write(root.join(path), content).unwrap();
            }
        }
    }

    fn run(&self, step: &BuildStep, fault: Option<&Fault>) -> Run {
        self.clean();
        let said = tempfile::tempdir().unwrap();
        let [out, err] = ["out", "err"].map(|name| said.path().join(name));
        let mut command = self.call(step.words).command();
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let traced = hotswap_faults::run_below(&mut command, step.program, fault).unwrap();
        let errors = String::from_utf8_lossy(&fs::read(&err).unwrap()).into_owned();
        Run { traced, errors, state: state_of(&self.scratch.outside("")) }
    }
}

fn state_of(root: &Path) -> State {
    let (mut state, mut open) = (State::new(), vec![root.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                open.push(path);
            } else if let Ok(content) = fs::read(&path) {
                state.insert(path.strip_prefix(root).unwrap().to_owned(), content);
            }
        }
    }
    state
}

/// The faults of a step, each once.
fn faults_of(calls: &BTreeMap<&'static str, usize>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for row in CALLS {
        for number in 0..calls.get(row.name).copied().unwrap_or_default() {
            faults.extend(row.effects().map(|effect| Fault { call: row.name, number, path: None, effect }));
        }
    }
    faults
}

/// The fault of a run, if it has one.
fn judge_run(before: &State, good: &Run, fault: &Fault, run: &Run) -> Option<String> {
    let is_output = |path: &Path| !path.starts_with("tmp") && !path.starts_with("home");
    for (path, old) in before {
        if run.state.get(path) != Some(old) {
            return Some(format!("{} was lost or changed", path.display()));
        }
    }
    let removes = fault.call.contains("unlink") || fault.call.contains("rmdir");
    for (path, now) in run.state.iter().filter(|(path, _)| !before.contains_key(*path)) {
        let is_result = good.state.get(path) == Some(now);
        // The cache may have files of a run that failed, and none is torn; clang's own temporary files are clang's.
        if is_output(path) && !is_result && !removes {
            return Some(format!("{} is new and not the result", path.display()));
        }
        if path.starts_with("home") && !is_result && !removes {
            return Some(format!("{} in the cache is not that of a good run", path.display()));
        }
    }
    let Some(code) = run.traced.code else { return Some("a signal has ended it".to_owned()) };
    if code == 0 {
        let mut outputs = good.state.iter().filter(|(path, _)| is_output(path));
        let is_same = outputs.all(|(path, content)| run.state.get(path) == Some(content));
        return (!is_same).then(|| "exit code 0, and another result".to_owned());
    }
    if ["crash", "panicked", "PLEASE submit", "[HS0002]"].iter().any(|word| run.errors.contains(word)) {
        return Some(format!("exit code {code}, as a defect"));
    }
    let Effect::Error(error) = fault.effect else { return None };
    let reason = std::io::Error::from_raw_os_error(error as i32).to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    (!run.errors.contains(reason)).then(|| format!("exit code {code} without the true reason `{reason}`"))
}

/// `HOTSWAP_FAULTS=NAME` runs one command.
fn is_chosen(name: &str) -> bool {
    std::env::var("HOTSWAP_FAULTS").map_or(true, |chosen| chosen == name)
}

#[test]
fn a_system_call_of_a_build_that_fails_is_told() {
    const TEST: &str = "a_system_call_of_a_build_that_fails_is_told";
    let Some(bench) = Bench::ready(TEST) else { return };
    if !hotswap_faults::is_supported() {
        return skip(TEST, "ptrace is forbidden");
    }
    // The old driver, which 24 no longer has, has more steps of ours.
    let Some(clang) = bench.clangs.iter().rfind(|clang| clang.version < 24) else {
        return skip(TEST, "no clang with the old offload driver");
    };
    let (mut tried, mut refused, mut wrong) = (0, 0, Vec::new());
    for step in STEPS.iter().filter(|step| is_chosen(step.name)) {
        let place = Workplace::prepared(&bench, clang, step);
        let good = place.run(step, None);
        assert_eq!(good.traced.code, Some(0), "{}: {}", step.name, good.errors);
        let all = faults_of(&good.traced.calls);
        assert!(all.len() > 20, "{}: the program under test was not seen: {:?}", step.name, good.traced.calls);
        let stride = if hotswap_tests::everything() { 1 } else { all.len().div_ceil(SLICE).max(1) };
        let mut counts = ExamCounts::default();
        for fault in all.iter().step_by(stride) {
            let run = place.run(step, Some(fault));
            tried += 1;
            refused += usize::from(run.traced.code != Some(0));
            let found = judge_run(&place.before, &good, fault, &run);
            counts.add_run(fault, run.traced.code, found.is_some());
            if let Some(what) = found {
                let path = run.traced.path.unwrap_or_default();
                wrong.push(format!("{}: {fault:?} {path}: {what}\n    {}", step.name, run.errors.trim()));
            }
        }
        say(&format!("faults: {}: {} of {} faults", step.name, all.len().div_ceil(stride), all.len()));
        if hotswap_tests::everything() && hotswap_tests::blesses() {
            counts.write_page(Path::new(PAGE), step.name).unwrap();
        }
    }
    say(&format!("faults of builds: {tried} runs, {refused} ended with an error, {} wrong", wrong.len()));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The judgement finds what it is to find.
#[test]
fn planted_faults_of_a_build_are_found() {
    let file = |content: &str| BTreeMap::from([(PathBuf::from("a.o"), content.as_bytes().to_vec())]);
    let run = |code: Option<i32>, state: State, errors: &str| Run {
        traced: Traced { code, calls: BTreeMap::new(), is_injected: true, path: None },
        errors: errors.to_owned(),
        state,
    };
    let good = run(Some(0), file("new"), "");
    let fault = Fault { call: "read", number: 0, path: None, effect: Effect::Error(Errno::EIO) };
    let told = "hotswap-lld: error: [HS0501] x: Input/output error (os error 5)";
    for (bad, what) in [
        (run(Some(0), State::new(), ""), "another result"),
        (run(Some(0), file("half"), ""), "not the result"),
        (run(Some(1), file("half"), told), "not the result"),
        (run(Some(1), State::new(), "linker command failed"), "without the true reason"),
        (run(Some(1), State::new(), "thread main panicked at Input/output error"), "defect"),
        (run(None, State::new(), told), "a signal"),
    ] {
        let found = judge_run(&State::new(), &good, &fault, &bad);
        assert!(found.as_ref().is_some_and(|found| found.contains(what)), "{what}: {found:?}");
    }
    for fine in [run(Some(14), State::new(), told), run(Some(0), file("new"), "")] {
        assert_eq!(judge_run(&State::new(), &good, &fault, &fine), None);
    }
}
