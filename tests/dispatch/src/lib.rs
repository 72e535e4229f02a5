//! The dispatch recorder: HIP programs run on a machine without a GPU, and every kernel that they start is recorded.
//!
//! The programs, the libraries and the HIP runtime are the real ones of the userland. Below them is a stand-in for HSA's
//! library (`standin/`, compiled at test time), whose devices have the names that the test chooses. It records of each
//! dispatch the device, the code object, the kernel and the grid, and executes nothing.
//!
//! Invariants: a dispatch is recorded or the program is aborted. A run without a dispatch equals no other run.
//!
//! Absent on purpose: results. That the right kernel of the right code object starts with the right grid is what a choice by
//! the name of a GPU decides; what the kernel computes, a machine with a GPU tells.

mod dispatch;

pub use dispatch::{Dispatch, difference};

use hotswap_userland::{ENV_PREFIX, Workbench, skip};
use std::fmt::Write;
use std::path::PathBuf;

/// Sources of the stand-in and of the cases, as directory, file name and text.
const FILES: &[(&str, &str)] = &[
    ("standin.h", include_str!("../standin/standin.h")),
    ("agents.c", include_str!("../standin/agents.c")),
    ("memory.c", include_str!("../standin/memory.c")),
    ("copies.c", include_str!("../standin/copies.c")),
    ("signals.c", include_str!("../standin/signals.c")),
    ("code_objects.c", include_str!("../standin/code_objects.c")),
    ("queues.c", include_str!("../standin/queues.c")),
    ("record.c", include_str!("../standin/record.c")),
    ("hsa.map", include_str!("../standin/hsa.map")),
];

/// Compiles the stand-in. HIP does not start if one of its imports is missing, so those that the stand-in lacks become
/// functions that return HSA's general error.
const BUILD: &str = r#"set -e
cd standin
hip=$(echo /usr/lib/*/libamdhip64.so.7)
nm -D --undefined-only "$hip" | grep -o 'hsa_[a-z_0-9]*' | sort -u |
    sed 's/.*/__attribute__((weak)) int &(void);\nint &(void) { return 0x1000; }/' > absent.c
mkdir ../hsa
gcc -O1 -g -Wall -Wextra -Werror -fPIC -shared -pthread -Wl,-soname,libhsa-runtime64.so.1 \
    -Wl,--version-script=hsa.map *.c -o ../hsa/libhsa-runtime64.so.1
"#;

/// The file that the stand-in writes.
const RECORD: &str = "dispatches";

/// A scratch directory of the userland with the stand-in and the library under test.
#[derive(Debug)]
pub struct Recorder {
    /// The directory, and the installed compilers.
    pub work: Workbench,
}

/// A run of a program.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setup<'s> {
    /// Processors of the devices, separated by commas.
    pub devices: &'s str,
    /// `libhotswap-names.so` is preloaded.
    pub has_names: bool,
    /// Variables, as a shell sets them.
    pub variables: &'s str,
}

/// The result of a run.
#[derive(Debug)]
pub struct Recorded {
    /// The exit code; `None` when a signal ended the program.
    pub code: Option<i32>,
    pub output: String,
    pub error: String,
    /// Kernels of the program, in their order; HIP's own, which copy and fill memory, are left out.
    pub dispatches: Vec<Dispatch>,
}

impl Recorder {
    /// `None` without a userland with HIP, after printing the reason.
    pub fn new(test: &str) -> Option<Self> {
        let work = Workbench::new(test)?;
        if !work.shell("ls /usr/lib/*/libamdhip64.so.7").status.success() {
            skip(test, "the userland has no libamdhip64.so.7");
            return None;
        }
        std::fs::create_dir(work.path("standin")).expect("scratch is writable");
        for (name, text) in FILES {
            work.write(&format!("standin/{name}"), text.as_bytes());
        }
        work.run(BUILD);
        std::fs::copy(names_library(), work.path("libhotswap-names.so"))
            .expect("cargo builds the library for this test");
        Some(Self { work })
    }

    /// The command `hotswap` as a path inside: the installed one, or the one that cargo has built beside the tests. `None`
    /// where there is neither, after printing the reason.
    pub fn hotswap(&self, test: &str) -> Option<String> {
        if let Some(prefix) = std::env::var_os(ENV_PREFIX).filter(|prefix| !prefix.is_empty()) {
            return Some(format!("{}/bin/hotswap", prefix.to_string_lossy()));
        }
        let built = built().join("hotswap");
        if !built.exists() {
            skip(test, "no `hotswap` is installed, nor built in the profile of the tests");
            return None;
        }
        // As in an installation: `serve` is an error without the library of names.
        self.work.run("mkdir -p bin lib/hotswap && cp libhotswap-names.so lib/hotswap/");
        std::fs::copy(built, self.work.path("bin/hotswap")).expect("scratch is writable");
        Some("$PWD/bin/hotswap".to_owned())
    }

    /// Runs a command in the directory and reads its record.
    ///
    /// # Panics
    /// If the record has a malformed line.
    pub fn run(&self, setup: &Setup<'_>, command: &str) -> Recorded {
        let mut script = format!("rm -f {RECORD}; export LD_LIBRARY_PATH=$PWD/hsa STANDIN_RECORD=$PWD/{RECORD}\n");
        let _ = writeln!(script, "export STANDIN_DEVICES={} {}", setup.devices, setup.variables);
        if setup.has_names {
            script += "export LD_PRELOAD=$PWD/libhotswap-names.so\n";
        }
        let output = self.work.shell(&format!("{script}exec timeout 600 {command}"));
        let text = std::fs::read_to_string(self.work.path(RECORD)).unwrap_or_default();
        let all = text.lines().map(|line| Dispatch::parse(line).unwrap_or_else(|| panic!("no dispatch: {line}")));
        Recorded {
            code: output.status.code(),
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            error: String::from_utf8_lossy(&output.stderr).into_owned(),
            dispatches: all.filter(|dispatch| !dispatch.is_of_hip()).collect(),
        }
    }
}

impl Recorded {
    /// The dispatches on a device.
    pub fn on(&self, device: usize) -> Vec<Dispatch> {
        self.dispatches.iter().filter(|dispatch| dispatch.device == device).cloned().collect()
    }

    /// Dispatches of kernels that end with their first instruction.
    pub fn empty(&self) -> Vec<&Dispatch> {
        self.dispatches.iter().filter(|dispatch| dispatch.is_empty).collect()
    }

    /// Lines of standard error of the library under test.
    pub fn messages(&self) -> Vec<&str> {
        self.error.lines().filter(|line| line.starts_with("hotswap-names: ")).collect()
    }
}

/// The library that cargo has built as a dependency of this package.
fn names_library() -> PathBuf {
    built().join("deps/libhotswap_names.so")
}

/// The directory of cargo's products: programs are in it, test programs in `deps` below it.
fn built() -> PathBuf {
    let program = std::env::current_exe().expect("the system knows the program's path");
    let directory = program.parent().expect("a file is in a directory");
    let is_deps = directory.file_name().is_some_and(|name| name == "deps");
    directory.ancestors().nth(usize::from(is_deps)).map(PathBuf::from).expect("it is below cargo's directory")
}
