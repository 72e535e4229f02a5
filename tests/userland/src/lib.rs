//! The shared kit of the tests: the ROCm userland (the root directory in which compilers, CMake and built programs run),
//! scratch directories in it, expectations in files, slices of many cases, the report of a skip.
//!
//! A userland is either a directory that `cargo xtask setup` made, or `/`: a machine with its own ROCm. `cargo xtask test` starts
//! the tests inside a private mount namespace ([`Namespace`]) and passes the userland's directory to them
//! ([`Userland::from_env`]).
//!
//! Invariants: mounts are only ever made inside a private namespace, so none is left when a process is killed and two
//! runs do not see each other; a command inside the userland sees only the variables that are set for it.
//!
//! Absent on purpose: building the directory (`xtask`), and dependencies except `tempfile` and `duct` (both sides use this
//! crate).

mod emulated;
mod expression;
mod golden;
mod namespace;
mod slice;
mod workbench;
mod workers;

pub use emulated::{EMULATED_DIRECTORY, EMULATED_LIBRARY, built_archive, link_emulated};
pub use expression::{Inherit, expression};
pub use golden::{ENV_BLESS, blesses, cases_in, golden};
pub use namespace::{Mount, Namespace, has_mount_right, inner_words};
pub use slice::{ENV_EVERYTHING, SLICE, everything, in_turn, one_of_each, slice};
pub use workbench::{Workbench, hip_clang, tool};
pub use workers::{ENV_MINUTES, run_cases};

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The userland's directory, `/` for the machine itself.
pub const ENV_ROOT: &str = "HOTSWAP_TEST_ROOT";
/// HotSwap's installation, as seen from inside the userland.
pub const ENV_PREFIX: &str = "HOTSWAP_TEST_PREFIX";
/// The value of `--rocm-path` for clang 23 and later, as a path inside; empty where none is needed.
pub const ENV_ROCM: &str = "HOTSWAP_TEST_ROCM";

/// LLVM's sources of the version of our instruction set: the directory that contains `llvm/test/MC`.
pub const ENV_LLVM: &str = "HOTSWAP_TEST_LLVM";
/// A directory in which tests may keep data that takes long to make.
pub const ENV_CACHE: &str = "HOTSWAP_TEST_CACHE";
/// A directory with the sources of other projects' HIP programs, by the names of the projects: the person who runs the exam of calls has
/// checked them out.
pub const ENV_PROGRAMS: &str = "HOTSWAP_TEST_PROGRAMS";
/// Libraries of a distribution, as files separated by colons: real input, which `cargo xtask test` downloads once.
pub const ENV_LIBRARIES: &str = "HOTSWAP_TEST_LIBRARIES";
/// Directories of libraries of a distribution with all of their files, separated by colons: rocBLAS, rocRAND, rocSPARSE.
pub const ENV_STACK: &str = "HOTSWAP_TEST_STACK";
/// Variable with the browser in which tests look at pages.
pub const ENV_BROWSER: &str = "HOTSWAP_TEST_BROWSER";
/// Directories with headers of a distribution that tests compile with, separated by colons.
pub const ENV_HEADERS: &str = "HOTSWAP_TEST_HEADERS";
/// LLVM's records of its instructions, if they were prepared: a file that `isa-exam digest` wrote.
pub const ENV_RECORDS: &str = "HOTSWAP_TEST_RECORDS";

/// Prints a line past the capture of the test runner: counts belong in every log. For a test that cannot run there is
/// [`skip`].
pub fn say(line: &str) {
    // A closed standard output is not a reason to fail a test.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// The marker of [`skip`].
pub const SKIPPED: &str = "skipped: ";

/// Whether this process may become other users: root, but not of a user namespace that maps no more than its maker.
pub fn can_be_two_users() -> bool {
    const OTHER: u64 = 65534;
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let maps_other = map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        matches!(numbers[..], [first, _, count] if (first..first.saturating_add(count)).contains(&OTHER))
    });
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|process| std::os::unix::fs::MetadataExt::uid(&process) == 0);
    is_root && maps_other
}

/// Reports that a test, or a part of one, cannot run here. In a full run `cargo xtask test` fails for it, unless
/// `tests/allowed-skips.txt` lists it.
pub fn skip(test: &str, why: &str) {
    say(&format!("{test}: {SKIPPED}{why}"));
}

/// A header of a few lines in place of HIP's own, which cost a second per compile: what clang itself needs for kernels and
/// launches, and the calls that tests make. Needs `-nogpuinc`.
pub const HIP_HEADER: &str = include_str!("hip.h");

/// Search path inside the userland.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The directory of other versions of CMake from `setup`: `/opt/cmake-VERSION/bin/cmake`.
pub const CMAKE_DIRECTORY: &str = "/opt";
/// The ROCm directory from `setup` that clang 23 and later need on Debian.
pub const ROCM_DIRECTORY: &str = "/opt/hotswap-rocm";
/// The path inside the userland of the installation of HotSwap under test.
pub const PREFIX: &str = "/mnt/hotswap";
/// The path inside the userland of HotSwap's sources, read-only.
pub const SOURCE: &str = "/mnt/source";

/// A root directory with a ROCm in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Userland {
    root: PathBuf,
}

impl Userland {
    /// The userland in that directory; `/` is the machine itself.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The userland that `cargo xtask test` prepared; `None` when the tests were started without it.
    pub fn from_env() -> Option<Self> {
        env::var_os(ENV_ROOT).filter(|root| !root.is_empty()).map(Self::new)
    }

    /// Its directory on the machine.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether it is the machine itself.
    pub fn is_machine(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The machine's path of a file inside.
    pub fn outside(&self, inside: impl AsRef<Path>) -> PathBuf {
        let inside = inside.as_ref();
        self.root.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// A command that runs inside, in the directory `cwd` (a path inside).
    ///
    /// Standard streams are inherited. The environment contains `PATH`, `HOME`, `LANG` and `TMPDIR`; the caller adds
    /// further variables with [`Command::env`]. `/proc` and `/dev` must exist: see [`Namespace`].
    pub fn command(&self, cwd: impl AsRef<Path>, program: &str) -> Command {
        let mut command;
        if self.is_machine() {
            command = Command::new(program);
            command.current_dir(cwd).env_clear();
            command.env("PATH", env::var_os("PATH").unwrap_or_else(|| PATH.into()));
        } else {
            command = Command::new(namespace::CHROOT);
            command.arg(&self.root).args(["/usr/bin/env", "-C"]).arg(cwd.as_ref()).arg(program);
            command.env_clear().env("PATH", PATH);
        }
        command.env("HOME", "/tmp").env("LANG", "C.UTF-8").env("TMPDIR", "/tmp");
        command
    }

    /// The mounts that commands inside need: `/proc` and `/dev` of the machine, `/tmp` and `/mnt` empty.
    /// None for the machine itself.
    pub fn namespace(&self) -> Namespace {
        if self.is_machine() {
            return Namespace::default();
        }
        Namespace::default()
            .with(Mount::Bind { source: "/proc".into(), target: self.outside("proc") })
            .with(Mount::Bind { source: "/dev".into(), target: self.outside("dev") })
            .with(Mount::Memory { target: self.outside("tmp") })
            .with(Mount::Memory { target: self.outside("mnt") })
    }
}
