//! System calls that fail: each command, each call that reaches files, each error that the system may return for it, and short
//! reads and writes.
//!
//! A run is right if its result is that of a run without a fault, or if it ends with an exit code other than 0, names the
//! system's reason, and leaves every file as it was or as it is to become. A slice runs by default;
//! `HOTSWAP_TEST_EVERYTHING=1` runs all.

#[path = "../../../amdgpu/code-object/tests/common/mod.rs"]
mod common;
#[path = "../../../containers/bundle/tests/common/files.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod files;
mod made;

use common::Sample;
use hotswap_bundle::Compression;
use hotswap_faults::{CALLS, Effect, Errno, ExamCounts, Fault, Traced};
use hotswap_targets::EFlags;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const MANIFEST: &str = "served/hotswap-manifest.json";
/// The complete new content of `x` while it is written in place.
const CONTENT: &str = ".x.hotswap-content";
/// Runs of each command by default.
const SLICE: usize = 40;
/// The counts of all runs.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/faults.md");
/// Commands of one fixture, each after the preparation by others.
const COMMANDS: &[FaultyCommand] = &[
    FaultyCommand { name: "list", prepare: &[], words: "list x" },
    FaultyCommand { name: "list of a package", prepare: &[], words: "list p.tar.gz" },
    FaultyCommand { name: "inspect", prepare: &[], words: "inspect x" },
    FaultyCommand { name: "verify", prepare: &[], words: "verify x y" },
    FaultyCommand { name: "uses", prepare: &[], words: "uses x --gpu gfx1030" },
    FaultyCommand { name: "extract", prepare: &[], words: "extract x --output-dir parts" },
    FaultyCommand { name: "disasm", prepare: &[], words: "disasm y" },
    FaultyCommand { name: "symbols", prepare: &[], words: "symbols y --write -o y" },
    FaultyCommand { name: "lint", prepare: &[], words: "lint y" },
    FaultyCommand { name: "size", prepare: &[], words: "size y" },
    FaultyCommand { name: "bundle", prepare: &[], words: "bundle z --entry gfx1030=y" },
    FaultyCommand { name: "compress in place", prepare: &[], words: "compress x -o x --jobs 1" },
    FaultyCommand { name: "compress into the inode", prepare: &[], words: "compress x -o x --jobs 1 --in-place" },
    FaultyCommand { name: "decompress", prepare: &["compress x -o x"], words: "decompress x -o out --jobs 1" },
    FaultyCommand { name: "prune in place", prepare: &[], words: "prune x --keep gfx1030 -o x --jobs 1" },
    FaultyCommand {
        name: "prune of a package",
        prepare: &[],
        words: "prune p.tar.gz --keep gfx1030 -o p.tar.gz --jobs 1",
    },
    FaultyCommand { name: "prune of a directory", prepare: &[], words: "prune rocm --keep gfx1030 -o out --jobs 1" },
    FaultyCommand { name: "merge", prepare: &["split x -o s-{gpu}"], words: "merge s-gfx1030 s-gfx1100 -o out" },
    FaultyCommand { name: "split", prepare: &[], words: "split x -o s-{gpu}" },
    FaultyCommand { name: "remove", prepare: &[], words: "remove x gfx1100 -o out --jobs 1" },
    FaultyCommand { name: "retarget", prepare: &[], words: "retarget x --to gfx1031 -o out --jobs 1" },
    FaultyCommand { name: "retarget in place", prepare: &[], words: "retarget x --to gfx1031 -o x --jobs 1" },
    FaultyCommand {
        name: "retarget of a package",
        prepare: &[],
        words: "retarget p.tar.gz --to gfx1031 -o q.tar.gz --jobs 1",
    },
    FaultyCommand { name: "serve", prepare: &[], words: "serve gfx1031 --root rocm --dest served --jobs 1" },
    FaultyCommand {
        name: "serve again",
        prepare: &[
            "serve gfx1031 --root rocm --dest served",
            "decompress rocm/lib/librocrand.so.1.1 -o rocm/lib/librocrand.so.1.1",
        ],
        words: "serve gfx1031 --root rocm --dest served --jobs 1",
    },
    FaultyCommand {
        name: "serve --check",
        prepare: &["serve gfx1031 --root rocm --dest served"],
        words: "serve --check --dest served",
    },
    FaultyCommand {
        name: "serve --undo",
        prepare: &["serve gfx1031 --root rocm --dest served"],
        words: "serve --undo --dest served",
    },
    FaultyCommand { name: "plan", prepare: &[], words: "plan gfx1030=>gfx1031 --out-dir plans" },
];

struct FaultyCommand {
    name: &'static str,
    /// Commands before it.
    prepare: &'static [&'static str],
    words: &'static str,
}

/// Content and permissions of each file, text of each link.
type State = BTreeMap<PathBuf, (Vec<u8>, u32)>;

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

/// The files, prepared at the path at which the command runs: manifests have it.
fn fixture(command: &FaultyCommand, directory: &Path) {
    fs::create_dir(directory).unwrap();
    let at = |name: &str| directory.join(name);
    let library = files::library(&[
        &made::bundle(&["gfx1030", "gfx1100"], None, object),
        &made::bundle(&["gfx1030"], None, object),
    ]);
    fs::write(at("x"), &library).unwrap();
    if command.words.ends_with("--in-place") {
        fs::hard_link(at("x"), at("link")).unwrap();
    }
    fs::write(at("y"), object("gfx1030")).unwrap();
    fs::create_dir_all(at("rocm/lib/rocblas/5/library")).unwrap();
    fs::create_dir_all(at("work/a/lib")).unwrap();
    fs::write(at("work/a/lib/libx.so"), &library).unwrap();
    let packed = made::bundle(&["gfx1030", "gfx1100"], Some(Compression::default()), object);
    for name in ["librocblas.so.5.2", "librocrand.so.1.1"] {
        fs::write(at("rocm/lib").join(name), files::library(&[&packed])).unwrap();
    }
    symlink("librocblas.so.5.2", at("rocm/lib/librocblas.so.5")).unwrap();
    let data = at("rocm/lib/rocblas/5/library");
    fs::write(data.join("Kernels.so-000-gfx1030.hsaco"), object("gfx1030")).unwrap();
    fs::write(data.join("TensileLibrary_lazy_gfx1030.dat"), b"index").unwrap();
    let packed = Command::new("tar").args(["czf", "p.tar.gz", "-C", "work", "a"]).current_dir(directory).status();
    assert!(packed.unwrap().success());
    for words in command.prepare {
        let done = hotswap(words, directory).output().unwrap();
        assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

fn hotswap(words: &str, directory: &Path) -> Command {
    let mut command = Command::new(made::installed());
    command
        .args(words.split(' '))
        .current_dir(directory)
        .env("HOME", directory.join("home"))
        .env_remove("XDG_CACHE_HOME");
    command.env("RUST_BACKTRACE", "0");
    command
}

fn state(directory: &Path) -> State {
    let mut state = State::new();
    collect(directory, directory, &mut state);
    state
}

fn collect(root: &Path, directory: &Path, state: &mut State) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let name = path.strip_prefix(root).unwrap().to_owned();
        if meta.is_dir() {
            collect(root, &path, state);
        } else if meta.is_symlink() {
            state.insert(name, (fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(), 0));
        } else {
            state.insert(name, (fs::read(&path).unwrap(), meta.permissions().mode()));
        }
    }
}

/// A run: its end, what it printed, and the files afterwards.
struct Run {
    traced: Traced,
    printed: String,
    errors: String,
    state: State,
}

fn run(command: &FaultyCommand, template: &Path, scratch: &Path, fault: Option<&Fault>) -> Run {
    // The same path for all runs: reports and hashes have it.
    let directory = scratch.join("d");
    let _ = fs::remove_dir_all(&directory);
    let copied = Command::new("cp").arg("-a").arg(template).arg(&directory).status();
    assert!(copied.unwrap().success());
    let [out, err, temporary] = ["out", "err", "tmp"].map(|name| scratch.join(name));
    let _ = fs::remove_dir_all(&temporary);
    fs::create_dir(&temporary).unwrap();
    let mut started = hotswap(command.words, &directory);
    started.env("TMPDIR", &temporary).stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
    let traced = hotswap_faults::run(&mut started, fault).unwrap();
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    Run { traced, printed: text(&out), errors: text(&err), state: state(&directory) }
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

/// The fault of a run, if it has one.
fn judge(before: &State, good: &Run, fault: &Fault, run: &Run) -> Option<String> {
    // The files about a served tree are about what is served.
    let is_own = |path: &Path| {
        let own = [MANIFEST, "served/env.sh", "served/hotswap-names.conf"];
        run.traced.code != Some(0) && own.iter().any(|own| path == Path::new(own))
    };
    // The complete new content, beside a file that is written in place.
    let beside = run.state.get(Path::new(CONTENT)).map(|(content, _)| content);
    let is_beside = beside.is_some() && beside == good.state.get(Path::new("x")).map(|(content, _)| content);
    let is_torn = |path: &Path| is_beside && ["x", "link"].iter().any(|name| path == Path::new(name));
    for (path, old) in before {
        let now = run.state.get(path);
        if is_torn(path) && now.is_some() && run.traced.code != Some(0) {
            continue;
        }
        if now != Some(old) && now != good.state.get(path) && !(is_own(path) && now.is_some()) {
            return Some(format!("{} was lost or is a third thing", path.display()));
        }
    }
    let is_kept = |path: &Path| {
        is_beside && path == Path::new(CONTENT)
            || fault.call.contains("unlink")
            || path.ends_with("hotswap-journal.jsonl")
            || is_own(path)
    };
    for (path, now) in &run.state {
        if !before.contains_key(path) && good.state.get(path) != Some(now) && !is_kept(path) {
            return Some(format!("{} is new and not the result", path.display()));
        }
    }
    let code = match run.traced.code {
        None => return Some("a signal has ended it".to_owned()),
        Some(code) => code,
    };
    let good_code = good.traced.code.unwrap_or(-1);
    if code == good_code {
        let mut paths = good.state.keys().chain(run.state.keys());
        let has_files = paths.all(|path| run.state.get(path) == good.state.get(path));
        let is_same = has_files && run.printed == good.printed;
        return (!is_same).then(|| "exit code of a good run, and another result".to_owned());
    }
    if code == 0 || !(10..=15).contains(&code) {
        return Some(format!("exit code {code}"));
    }
    let Effect::Error(error) = fault.effect else { return None };
    let reason = std::io::Error::from_raw_os_error(error as i32).to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    let is_output = ["write", "dup"].contains(&fault.call) && run.errors.is_empty();
    let is_true = run.errors.contains(reason) || is_output;
    let is_damage = ["HS0302", "HS0303", "HS0304", "HS0601"].iter().any(|code| run.errors.contains(code));
    (!is_true || is_damage).then(|| format!("exit code {code} without the true reason `{reason}`"))
}

#[test]
fn a_system_call_that_fails_is_told_and_loses_nothing() {
    const TEST: &str = "a_system_call_that_fails_is_told_and_loses_nothing";
    if !hotswap_faults::is_supported() {
        return hotswap_userland::skip(TEST, "ptrace is forbidden");
    }
    let mut total = ExamSums::default();
    for command in COMMANDS.iter().filter(|command| is_chosen(command.name)) {
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
fn exam_on_all_cores(command: &FaultyCommand) -> ExamSums {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sums = ExamSums::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|core| scope.spawn(move || exam_share(command, core, cores))).collect();
        workers.into_iter().for_each(|worker| sums.add(worker.join().unwrap()));
    });
    sums
}

fn exam_share(command: &FaultyCommand, core: usize, cores: usize) -> ExamSums {
    let scratch = TempDir::new().unwrap();
    let template = scratch.path().join("template");
    fixture(command, &scratch.path().join("d"));
    fs::rename(scratch.path().join("d"), &template).unwrap();
    let before = state(&template);
    let good = run(command, &template, scratch.path(), None);
    let mut sums = ExamSums::default();
    if good.traced.code != Some(0) {
        sums.wrong.push(format!("{}: without a fault: {:?}: {}", command.name, good.traced.code, good.errors));
        return sums;
    }
    let all = faults(&good.traced.calls);
    sums.faults = if core == 0 { all.len() } else { 0 };
    let step = if hotswap_userland::everything() { 1 } else { all.len().div_ceil(SLICE).max(1) };
    for fault in all.iter().step_by(step).skip(core).step_by(cores) {
        let run = run(command, &template, scratch.path(), Some(fault));
        sums.tried += 1;
        sums.refused += usize::from(run.traced.code != Some(0));
        let found = judge(&before, &good, fault, &run);
        sums.counts.add_run(fault, run.traced.code, found.is_some());
        if let Some(what) = found {
            let path = run.traced.path.as_deref().unwrap_or_default();
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
    let good = run(command, &template, scratch.path(), None);
    assert_eq!(good.traced.code, Some(0), "{}", good.errors);
    let content = Path::new(CONTENT);
    let (mut tried, mut unfinished) = (0, 0);
    for row in CALLS {
        for number in 0..good.traced.calls.get(row.name).copied().unwrap_or_default() {
            let fault = Fault { call: row.name, number, path: None, effect: Effect::Kill };
            let killed = run(command, &template, scratch.path(), Some(&fault));
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
    let good = run(command, &template, scratch.path(), None);
    assert_eq!(good.state[Path::new("x")].1 & 0o7777, MODE, "{}", good.errors);
    let (mut tried, mut seen) = (0, 0);
    for row in CALLS {
        for number in 0..good.traced.calls.get(row.name).copied().unwrap_or_default() {
            let fault = Fault { call: row.name, number, path: None, effect: Effect::Kill };
            let killed = run(command, &template, scratch.path(), Some(&fault));
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

/// `HOTSWAP_FAULTS=NAME` runs one command.
fn is_chosen(name: &str) -> bool {
    std::env::var("HOTSWAP_FAULTS").map_or(true, |chosen| chosen == name)
}

/// The judgement finds what it is to find.
#[test]
fn planted_faults_of_a_run_are_found() {
    let file = |content: &str| BTreeMap::from([(PathBuf::from("x"), (content.as_bytes().to_vec(), 0o644))]);
    let run = |code: Option<i32>, content: &str, errors: &str| Run {
        traced: Traced { code, calls: BTreeMap::new(), is_injected: true, path: None },
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
