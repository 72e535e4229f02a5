//! The bench of emulated GPUs: HIP programs on the real runtime, whose kernels are executed.
//!
//! Compilers, HIP, comgr and the libraries are those of the userland; below them is our library for HSA. The programs judge
//! their results themselves, by the host's own computation, and end with the number of wrong ones.
//!
//! Invariant: a program that ran nothing has failed: each prints a line for what it has checked.

mod counts;

pub use counts::CountBench;

use hotswap_userland::{
    EMULATED_DIRECTORY, EMULATED_LIBRARY, ENV_PREFIX, Userland, Workbench, built_archive, link_emulated, skip,
};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The kinds of archives do not matter here: the dependency makes cargo build ours.
pub use hotswap_hsa_emulated::HsaStatus;

/// A scratch directory of the userland with an installation in it: `bin/hotswap` and the library.
#[derive(Debug)]
pub struct EmulationBench {
    /// The directory, and the installed compilers.
    pub work: Workbench,
}

/// The result of a program.
#[derive(Debug)]
pub struct ProgramRun {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    pub output: String,
    pub error: String,
    /// From start to exit.
    pub time: Duration,
    /// The kernel's line about a segmentation fault, which names the library and the place; where its log can be read.
    pub fault: Option<String>,
}

impl ProgramRun {
    /// Lines of our library.
    pub fn messages(&self) -> Vec<&str> {
        self.error.lines().filter(|line| line.starts_with("hotswap-emulated: ")).collect()
    }

    /// Requires success, and returns standard output.
    ///
    /// # Panics
    /// If the program failed, or a check of it.
    pub fn passed(&self) -> &str {
        assert_eq!(self.code, Some(0), "{}\n{}", self.output, self.error);
        assert!(!self.output.trim().is_empty() && !self.output.contains("WRONG"), "{}", self.output);
        &self.output
    }
}

const SEGMENTATION_FAULT: i32 = 11;

/// The last segmentation fault in the kernel's log.
fn last_fault() -> Option<String> {
    let log = Command::new("dmesg").output().ok()?;
    String::from_utf8_lossy(&log.stdout).lines().rfind(|line| line.contains("segfault at")).map(str::to_owned)
}

/// The library, linked once in a test program.
fn library() -> PathBuf {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(linked).clone()
}

/// The installed library, or that of the archive that cargo built beside the tests.
fn linked() -> PathBuf {
    if let (Some(prefix), Some(userland)) = (prefix(), Userland::from_env()) {
        let installed = userland.outside(Path::new(&prefix).join(EMULATED_DIRECTORY).join(EMULATED_LIBRARY));
        if installed.exists() {
            return installed;
        }
    }
    let archive = built_archive().expect("cargo builds the archive for this test");
    let program = std::env::current_exe().expect("the system knows the program's path");
    let to = program.with_extension("hsa.so");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the package is in the workspace");
    link_emulated(&archive, workspace, &to, Command::new("cc")).expect("the library links");
    to
}

/// The installation under test, as a path inside.
fn prefix() -> Option<String> {
    std::env::var(ENV_PREFIX).ok().filter(|prefix| !prefix.is_empty())
}

/// A product of cargo in the profile of this program, which may be a test program or not.
fn built(name: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().expect("the system knows the program's path");
    program.ancestors().skip(1).take(2).map(|directory| directory.join(name)).find(|path| path.exists())
}

impl EmulationBench {
    /// `None` without a userland with HIP, after printing the reason.
    ///
    /// # Panics
    /// If the scratch directory cannot be written.
    pub fn new(test: &str) -> Option<Self> {
        let work = Workbench::new(test)?;
        if !work.shell("ls /usr/lib/*/libamdhip64.so.7").status.success() {
            skip(test, "the userland has no libamdhip64.so.7");
            return None;
        }
        let directory = work.path(EMULATED_DIRECTORY);
        std::fs::create_dir_all(&directory).expect("scratch is writable");
        std::fs::copy(library(), directory.join(EMULATED_LIBRARY)).expect("scratch is writable");
        Some(Self { work })
    }

    /// The command `hotswap` as a path inside, with the library where an installation has it. `None` where neither is
    /// installed or built, after printing the reason.
    ///
    /// # Panics
    /// If the scratch directory cannot be written.
    pub fn hotswap(&self, test: &str) -> Option<String> {
        if let Some(prefix) = prefix() {
            return Some(format!("{prefix}/bin/hotswap"));
        }
        let built = built("hotswap");
        let Some(built) = built else {
            skip(test, "no `hotswap` is installed, nor built in the profile of the tests");
            return None;
        };
        let to = self.work.path("bin/hotswap");
        std::fs::create_dir_all(self.work.path("bin")).expect("scratch is writable");
        if std::fs::hard_link(&built, &to).is_err() {
            std::fs::copy(&built, &to).expect("scratch is writable");
        }
        Some("$PWD/bin/hotswap".to_owned())
    }

    /// The library of shown names as a path inside. `None` where neither is installed or built, after printing the reason.
    ///
    /// # Panics
    /// If the scratch directory cannot be written.
    pub fn names_library(&self, test: &str) -> Option<String> {
        if let Some(prefix) = prefix() {
            return Some(format!("{prefix}/lib/hotswap/libhotswap-names.so"));
        }
        let Some(built) = built("libhotswap_names.so") else {
            skip(test, "no library of shown names is installed, nor built in the profile of the tests");
            return None;
        };
        std::fs::copy(built, self.work.path("libhotswap-names.so")).expect("scratch is writable");
        Some("$PWD/libhotswap-names.so".to_owned())
    }

    /// Compiles a HIP program for the GPUs; `words` are further arguments.
    ///
    /// # Panics
    /// If the compiler refuses it.
    pub fn compile(&self, name: &str, source: &str, gpus: &[&str], words: &str) {
        self.work.write(&format!("{name}.hip"), source.as_bytes());
        let gpus: String = gpus.iter().map(|gpu| format!(" --offload-arch={gpu}")).collect();
        self.work.run(&format!("clang++-22 -O1 -w -x hip{gpus} {words} {name}.hip -o {name} -lamdhip64"));
    }

    /// Runs a command of the directory with these GPUs; `variables` are set as a shell does.
    pub fn run(&self, gpus: &str, variables: &str, command: &str) -> ProgramRun {
        let library = format!("$PWD/{EMULATED_DIRECTORY}");
        self.script(&format!("export LD_LIBRARY_PATH={library} HOTSWAP_EMULATE={gpus} {variables}\n"), command)
    }

    /// Runs a command without the library's variables, after the lines of `before`.
    pub fn script(&self, before: &str, command: &str) -> ProgramRun {
        let start = Instant::now();
        let output = self.work.shell(&format!("{before}exec timeout -k 5 100 {command}"));
        let signal = output.status.signal();
        ProgramRun {
            code: output.status.code(),
            signal,
            fault: signal.filter(|signal| *signal == SEGMENTATION_FAULT).and_then(|_| last_fault()),
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            error: String::from_utf8_lossy(&output.stderr).into_owned(),
            time: start.elapsed(),
        }
    }
}
