//! The interposer on a system with fewer resources: no thread, a full standard error, a working directory whose path is
//! too long; and after a process that was killed.

use hotswap_plan::{Plan, words};
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use std::fs::{self, File, Permissions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A linker that writes the content of `$CODE` as its output.
const LINKER: &str = "#!/bin/sh
case $1 in -flavor) shift 2;; esac
case $1 in @*) set -- $(tr -d '\"' <\"${1#@}\");; esac
while [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done
exec cp \"$CODE\" \"$out\"
";

/// A device link of an object for gfx1250, whose code must change for the plan's target: two links at once.
struct DeviceLink {
    dir: TempDir,
}

impl DeviceLink {
    fn new() -> Self {
        let bench = Self { dir: TempDir::new().unwrap() };
        for name in ["shim", "real", "tmp", "run"] {
            fs::create_dir(bench.at(name)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_hotswap-lld"), bench.at("shim/lld")).unwrap();
        fs::write(bench.at("real/lld"), LINKER).unwrap();
        fs::set_permissions(bench.at("real/lld"), Permissions::from_mode(0o755)).unwrap();
        let flags = EFlags::of(&"gfx1250".parse().unwrap()).encode();
        let sample = Sample { target: "amdgcn-amd-amdhsa--gfx1250".into(), flags, ..Sample::default() };
        fs::write(bench.at("code"), sample.build()).unwrap();
        bench
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn link(&self, working: &Path) -> Command {
        fs::copy(self.at("code"), working.join("in.o")).unwrap();
        let mut plan = Plan::default();
        plan.add_pairs("gfx1250=>gfx1250-strict").unwrap();
        let token = format!("--hotswap-plan={}", plan.hash());
        let mut command = Command::new(self.at("shim/lld"));
        command.args(["-flavor", "gnu", "-shared", "in.o", &token, "-o", "out"]).current_dir(working);
        command.env(words::ENV_PLAN, plan.hash()).env(words::ENV_PLAN_TEXT, plan.canonical_text());
        command.env(words::ENV_LLVM_BIN, self.at("real")).env(words::ENV_TRACE, self.at("trace"));
        command.env("CODE", self.at("code")).env("TMPDIR", self.at("tmp"));
        command
    }

    /// The output of a link that must succeed.
    fn linked(&self, command: &mut Command, working: &Path) -> Vec<u8> {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        fs::read(working.join("out")).unwrap()
    }

    /// The output without any shortage: the code object, followed by the one with relocations.
    fn expected(&self) -> Vec<u8> {
        let run = self.at("run");
        let linked = self.linked(&mut self.link(&run), &run);
        assert!(linked.len() > 2 * fs::read(self.at("code")).unwrap().len(), "{}", self.trace());
        linked
    }

    fn trace(&self) -> String {
        fs::read_to_string(self.at("trace")).unwrap()
    }

    fn temporary(&self) -> Vec<String> {
        let entries = fs::read_dir(self.at("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Whether it becomes true within ten seconds.
fn wait(is_so: &dyn Fn() -> bool) -> bool {
    let mut tries = (0..500).map(|_| std::thread::sleep(std::time::Duration::from_millis(20)));
    is_so() || tries.any(|()| is_so())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The C library does not fall back where `clone3` gives this error, so no thread can be made.
fn without_clone3() -> BpfProgram {
    const CLONE3: i64 = 435;
    const EPERM: u32 = 1;
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let rules = [(CLONE3, Vec::new())].into_iter().collect();
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(EPERM), machine).unwrap().try_into().unwrap()
}

#[allow(unsafe_code, reason = "what runs between fork and exec can only be given by an unsafe function")]
fn filter(command: &mut Command) {
    let filter = without_clone3();
    // SAFETY: two system calls; the filter was made before, and no memory is allocated where they succeed.
    unsafe { command.pre_exec(move || seccompiler::apply_filter(&filter).map_err(std::io::Error::other)) };
}

#[test]
fn without_threads_the_same_is_linked() {
    let bench = DeviceLink::new();
    let expected = bench.expected();
    let run = bench.at("run");
    let mut command = bench.link(&run);
    filter(&mut command);
    assert!(bench.linked(&mut command, &run) == expected, "{}", bench.trace());
}

/// Without the thread that forwards signals they end the interposer, and its end that of the tool.
#[test]
fn without_threads_a_signal_still_ends_the_link() {
    let bench = DeviceLink::new();
    let run = bench.at("run");
    fs::write(bench.at("real/lld"), "#!/bin/sh\necho $$ >new; mv new pid; exec sleep 60\n").unwrap();
    let mut command = bench.link(&run);
    filter(&mut command);
    let mut interposer = command.spawn().unwrap();
    assert!(wait(&|| run.join("pid").exists()), "the tool does not run");
    let tool = fs::read_to_string(run.join("pid")).unwrap();
    let pid = rustix::process::Pid::from_child(&interposer);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(!interposer.wait().unwrap().success());
    let is_gone = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", tool.trim())).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    assert!(wait(&is_gone), "the tool outlives the interposer");
}

#[test]
fn what_a_killed_interposer_left_is_gone_after_the_next() {
    let bench = DeviceLink::new();
    let run = bench.at("run");
    let linker = fs::read_to_string(bench.at("real/lld")).unwrap();
    fs::write(bench.at("real/lld"), "#!/bin/sh\n: >started\nexec sleep 60\n").unwrap();
    let mut killed = bench.link(&run).spawn().unwrap();
    assert!(wait(&|| run.join("started").exists()), "the tool does not run");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(bench.temporary().len(), 1, "the directory of the second link");
    for other in ["hotswap-1234", "hotswap-0.1"] {
        fs::create_dir(bench.at("tmp").join(other)).unwrap();
    }
    fs::write(bench.at("real/lld"), linker).unwrap();
    bench.expected();
    let mut left = bench.temporary();
    left.sort();
    assert_eq!(left, ["hotswap-0.1", "hotswap-1234"], "other directories stay");
}

#[test]
fn a_full_standard_error_fails_no_link() {
    let bench = DeviceLink::new();
    let expected = bench.expected();
    let run = bench.at("run");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut command = bench.link(&run);
    command.env(words::ENV_VERBOSE, "1").stderr(full());
    assert_eq!(command.status().unwrap().code(), Some(0));
    assert!(fs::read(run.join("out")).unwrap() == expected);
    // The exit code of an error that cannot be printed is also its own.
    let mut command = bench.link(&run);
    command.env(words::ENV_PLAN_TEXT, "no plan").stderr(full());
    assert_eq!(command.status().unwrap().code(), Some(11));
}

#[test]
fn a_working_directory_with_too_long_a_path_serves() {
    let bench = DeviceLink::new();
    let expected = bench.expected();
    let mut deep = File::open(bench.dir.path()).unwrap();
    let inside = |directory: &File| PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()));
    for _ in 0..30 {
        let next = inside(&deep).join("d".repeat(200));
        fs::create_dir(&next).unwrap();
        deep = File::open(next).unwrap();
    }
    let working = inside(&deep);
    assert!(bench.linked(&mut bench.link(&working), &working) == expected, "{}", bench.trace());
}
