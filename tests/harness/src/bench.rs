//! The environment of a test: userland, installation, compilers, scratch directories.

use crate::skip;
use hotswap_userland::{ENV_PREFIX, ENV_ROCM, PATH, Userland};
use std::env;
use std::path::{Path, PathBuf};

/// One version of clang in the userland.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clang {
    pub version: u32,
    /// Name of the C++ driver, as in `PATH`.
    pub program: String,
    /// Arguments that a HIP compile or link needs on this userland.
    pub hip: Vec<String>,
    /// Arguments that a HIP link needs in addition.
    pub link: Vec<String>,
}

impl Clang {
    /// Arguments of a HIP compile from the small header of [`crate::mode`], without the HIP headers.
    pub fn light(&self) -> Vec<String> {
        [&["-nogpuinc".to_owned()], self.hip.as_slice()].concat()
    }

    /// Name of another tool of the same version, for example `llvm-ar-22`.
    pub fn tool(&self, name: &str) -> String {
        format!("{name}-{}", self.version)
    }
}

/// Userland, installation and compilers.
#[derive(Debug)]
pub struct Bench {
    pub userland: Userland,
    /// Path of HotSwap's installation inside.
    pub prefix: PathBuf,
    /// The installed compilers, oldest first.
    pub clangs: Vec<Clang>,
}

/// Versions that HotSwap supports. Others are ignored.
const VERSIONS: &[u32] = &[22, 23, 24];

impl Bench {
    /// The bench that the environment describes, or `None` after printing why `test` is skipped.
    pub fn ready(test: &str) -> Option<Self> {
        let Some(userland) = Userland::from_env() else {
            return skip_missing_artifact("no ROCm userland, HOTSWAP_TEST_ROOT is not set", test);
        };
        let Some(prefix) = env::var_os(ENV_PREFIX).filter(|prefix| !prefix.is_empty()).map(PathBuf::from) else {
            return skip_missing_artifact("no installation of HotSwap, HOTSWAP_TEST_PREFIX is not set", test);
        };
        let mut bench = Self { userland, prefix, clangs: Vec::new() };
        bench.clangs = VERSIONS.iter().filter_map(|&version| bench.find_clang(test, version)).collect();
        if bench.clangs.is_empty() { skip_missing_artifact("the userland has no clang", test) } else { Some(bench) }
    }

    fn find_clang(&self, test: &str, version: u32) -> Option<Clang> {
        let program = format!("clang++-{version}");
        let on_path =
            PATH.split(':').any(|directory| self.userland.outside(directory).join(&program).symlink_metadata().is_ok());
        if !on_path {
            skip(test, &format!("clang {version} is not in the userland"));
            return None;
        }
        // The driver of 22 finds HIP's library by the search path; later ones require an absolute directory.
        let rocm = env::var(ENV_ROCM).ok().filter(|directory| !directory.is_empty() && version > 22);
        let hip = rocm.iter().map(|directory| format!("--rocm-path={directory}")).collect();
        let link = if version == 22 { vec!["-lamdhip64".to_owned()] } else { Vec::new() };
        Some(Clang { version, program, hip, link })
    }

    /// The compiler of that version.
    pub fn clang(&self, version: u32) -> Option<&Clang> {
        self.clangs.iter().find(|clang| clang.version == version)
    }

    /// A program of the installation under test, for example `bin/hotswap`, as a path inside.
    pub fn installed(&self, part: &str) -> String {
        self.prefix.join(part).display().to_string()
    }

    /// A new directory for one build.
    ///
    /// # Panics
    /// If the userland's `/tmp` cannot be written.
    pub fn scratch(&self) -> Scratch {
        let directory = tempfile::Builder::new().prefix("hotswap-test-").tempdir_in(self.userland.outside("/tmp"));
        let directory = directory.expect("the userland's /tmp is writable");
        let inside = Path::new("/tmp").join(directory.path().file_name().expect("it has a name"));
        Scratch { inside, directory }
    }
}

fn skip_missing_artifact(what: &str, test: &str) -> Option<Bench> {
    skip(test, &format!("{what} (`cargo xtask test` prepares it)"));
    None
}

/// A directory that is removed at the end.
#[derive(Debug)]
pub struct Scratch {
    /// Its path inside the userland.
    pub inside: PathBuf,
    directory: tempfile::TempDir,
}

impl Scratch {
    /// The path of a file in it on the machine.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The path of a file in it inside the userland.
    pub fn inside(&self, name: &str) -> String {
        self.inside.join(name).display().to_string()
    }

    /// Writes a file; directories in the name are created.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.outside(name);
        let directory = path.parent().expect("a file lies in a directory");
        std::fs::create_dir_all(directory).and_then(|()| std::fs::write(&path, content)).expect("scratch is writable");
    }

    /// Writes a shell script that can be run.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn script(&self, name: &str, body: &str) {
        use std::os::unix::fs::PermissionsExt;
        self.write(name, format!("#!/bin/sh\n{body}\n"));
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.outside(name), mode).expect("scratch is writable");
    }

    /// A file's content.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.outside(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Whether a file of that name exists.
    pub fn has(&self, name: &str) -> bool {
        self.outside(name).symlink_metadata().is_ok()
    }

    /// Names in a directory of it (`.` for itself), sorted.
    ///
    /// # Panics
    /// If the directory cannot be read.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.outside(directory)).expect("the directory can be read");
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name().display().to_string()).collect();
        names.sort();
        names
    }
}
