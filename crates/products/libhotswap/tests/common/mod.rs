//! The shared library as it is installed, and programs in C that use it. They run on the machine, not in the userland: the
//! library needs nothing of it.
#![allow(dead_code, reason = "each test uses a part")]

use hotswap_device_link::import_stub;
use hotswap_userland::{Workbench, skip, tool};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The library in a directory of its own, with the programs of a test.
pub(crate) struct CLibrary {
    directory: TempDir,
}

/// The directory of this crate.
pub(crate) fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The archive that cargo has built for this test: the newest one beside it. (Only `cargo build` gives it a name without a hash.)
fn archive() -> PathBuf {
    let program = std::env::current_exe().expect("a test program has a path");
    let directory = program.parent().expect("it is in deps");
    let files = std::fs::read_dir(directory).expect("the directory is there").flatten();
    let is_it = |name: &str| name.starts_with("libhotswap_c-") && name.ends_with(".a");
    let archives = files.filter(|file| file.file_name().to_str().is_some_and(is_it));
    let newest = archives.max_by_key(|file| file.metadata().and_then(|data| data.modified()).ok());
    newest.expect("cargo builds the library for this test").path()
}

impl CLibrary {
    /// Links the archive that cargo has built beside this test, with the arguments of the installation.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("there is a place for scratch");
        let archive = archive();
        let library = directory.path().join("libhotswap.so.0");
        let mut link = Command::new("cc");
        link.current_dir(here()).arg("@link.args").arg("-o").arg(&library).arg("-Wl,--whole-archive").arg(archive);
        succeed(link.args(["-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm"]));
        std::os::unix::fs::symlink("libhotswap.so.0", directory.path().join("libhotswap.so")).expect("it is new");
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Compiles a program of `tests`; returns its path.
    pub(crate) fn compile(&self, source: &str, options: &[&str]) -> PathBuf {
        self.compile_file(&here().join("tests").join(source), options)
    }

    /// Compiles a program in C anywhere; returns its path.
    pub(crate) fn compile_file(&self, source: &Path, options: &[&str]) -> PathBuf {
        let program = self.path(source.file_stem().and_then(|name| name.to_str()).expect("it is C"));
        let mut command = Command::new("cc");
        command.args(["-std=c11", "-g", "-Wall", "-Wextra", "-Werror"]).args(options).arg("-I");
        command.arg(here().join("include")).arg(source).arg("-o").arg(&program);
        succeed(command.arg("-L").arg(self.directory.path()).args(["-lhotswap", "-lpthread"]));
        program
    }

    /// A command that finds the library.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env("LD_LIBRARY_PATH", self.directory.path());
        command
    }

    /// The output of a program that must succeed.
    pub(crate) fn run(&self, program: &Path, words: &[&str]) -> String {
        succeed(self.command(program).args(words))
    }
}

pub(crate) fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, error) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{error}{out}");
    out.into_owned()
}

/// Whether the machine has a program.
pub(crate) fn has(test: &str, program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        skip(test, &format!("the machine has no {program}"));
    }
    found
}

/// Whether the machine has Python with its module for C libraries, which minimal installations lack.
pub(crate) fn has_python_with_ctypes(test: &str) -> bool {
    let found =
        Command::new("python3").args(["-c", "import ctypes"]).output().is_ok_and(|output| output.status.success());
    if !found {
        skip(test, "python3 is missing, or has no ctypes");
    }
    found
}

/// Compiles the functions of the tests of `hotswap-device-symbols`; returns the path of a code object.
pub(crate) fn code_object(bench: &Workbench, version: u32, target: &str, options: &str) -> PathBuf {
    let source = include_str!("../../../../retarget/device-symbols/tests/functions.hip");
    bench.write("a.hip", source.as_bytes());
    bench.run(&format!(
        "{} -x hip --offload-arch={target} -nogpuinc -nogpulib --offload-device-only --no-gpu-bundle-output {options} \
         -fuse-cuid=none -w a.hip -o a.co",
        tool(version, "clang++")
    ));
    bench.path("a.co")
}

/// A user `user.co` and a library `library.co` of a compiler, with a stub for the function; LLVM's listings of both.
pub(crate) fn user_and_library(bench: &Workbench, (version, target, level): (u32, &str, &str)) -> [String; 2] {
    bench.write("library.hip", include_bytes!("../../../../retarget/device-link/tests/library.hip"));
    bench.write("user.hip", include_bytes!("../../../../retarget/device-link/tests/kernels.hip"));
    let [clang, lld, readelf] = ["clang++", "ld.lld", "llvm-readelf"].map(|name| tool(version, name));
    let common = format!(
        "{clang} -x hip --offload-arch={target} -nogpuinc -nogpulib --offload-device-only -fgpu-rdc --no-gpu-bundle-output {level} -w"
    );
    for name in ["library", "user"] {
        bench.run(&match version {
            // Clang 22 compiles relocatable device code to bitcode alone.
            22 => format!(
                "{common} -emit-llvm -c {name}.hip -o {name}.bc && {} {level} -mcpu={target} -filetype=obj -relocation-model=pic {name}.bc -o {name}.o",
                tool(22, "llc")
            ),
            _ => format!("{common} -fno-offload-lto -c {name}.hip -o {name}.o"),
        });
    }
    bench.write("stub.o", &import_stub("lib_fn", &bench.read("user.o")).expect("the target has a stub"));
    bench.run(&format!("{lld} -shared user.o stub.o -o user.co && {lld} -shared library.o -o library.co"));
    ["user.co", "library.co"].map(|name| bench.run(&format!("{readelf} -sW -rW {name}")))
}
