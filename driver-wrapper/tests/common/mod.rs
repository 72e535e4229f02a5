//! A scratch directory inside the ROCm userland with an installation of the wrapper in it.
//!
//! The tools of the device link are probes: they record their command lines and become the real tool. So the tests see
//! what reaches the device link, whatever HotSwap does there.

use hotswap_userland::{ENV_ROOT, HIP_HEADER, Userland, skip};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Writes one line about the call, then becomes the real tool without HotSwap's arguments.
const PROBE: &str = r#"#!/bin/sh
tool=${0##*/}
echo "$tool plan=$HOTSWAP_PLAN_TOKEN bare=$HOTSWAP_BARE_OUTPUT words=$*" >>"$PROBE"
n=$#
while [ $n -gt 0 ]; do
    case $1 in --hotswap-*) ;; *) set -- "$@" "$1" ;; esac
    shift
    n=$((n - 1))
done
exec "$HOTSWAP_LLVM_BIN/$tool" "$@"
"#;

const HIP: &str = r#"#include "hip.h"
__global__ void kernel(int *p) { p[__builtin_amdgcn_workitem_id_x()] = 1; }
void launch(int *p) { kernel<<<1, 1>>>(p); }
"#;

/// A scratch directory.
pub(crate) struct Bench {
    userland: Userland,
    dir: TempDir,
}

impl Bench {
    /// `None`, with a line on standard error, where no userland is named.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let Some(userland) = Userland::from_env() else {
            skip(test, &format!("{ENV_ROOT} names no ROCm userland"));
            return None;
        };
        let dir = tempfile::Builder::new().prefix("hotswap-wrapper-").tempdir_in(userland.outside("/tmp")).unwrap();
        let bench = Self { userland, dir };
        bench.install();
        fs::write(bench.at("hip.h"), HIP_HEADER).unwrap();
        fs::write(bench.at("a.hip"), HIP).unwrap();
        fs::write(bench.at("main.cpp"), "#include <vector>\nint main() { return std::vector<int>(3).size() - 3; }\n")
            .unwrap();
        fs::write(bench.at("c.c"), "int main(void) { return 0; }\n").unwrap();
        Some(bench)
    }

    fn install(&self) {
        let shims = self.at("P/libexec/hotswap");
        for directory in ["P/bin", "P/lib/hotswap", "home"] {
            fs::create_dir_all(self.at(directory)).unwrap();
        }
        fs::create_dir_all(&shims).unwrap();
        // A separate process writes programs: a test that starts one at this moment would inherit our open file, and
        // the system runs no program that is open for writing.
        let copied =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_hotswap-clang")).arg(self.at("P/bin/hotswap-clang")).status();
        assert!(copied.unwrap().success());
        symlink("hotswap-clang", self.at("P/bin/hotswap-clang++")).unwrap();
        fs::write(self.at("P/lib/hotswap/libhotswap_registry.a"), hotswap_families::archive::REGISTRY_ARCHIVE).unwrap();
        let write = "printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"";
        let written = Command::new("sh").args(["-c", write, "sh", PROBE]).arg(shims.join("lld")).status();
        assert!(written.unwrap().success());
        symlink("lld", shims.join("ld.lld")).unwrap();
    }

    /// A file of the scratch directory, as a path of the machine.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The scratch directory as seen from inside.
    pub(crate) fn inside(&self) -> String {
        let root = if self.userland.is_machine() { Path::new("") } else { self.userland.root() };
        format!("/{}", self.dir.path().strip_prefix(root).unwrap().display()).replace("//", "/")
    }

    /// The installed compilers, oldest first.
    pub(crate) fn versions(&self) -> Vec<u32> {
        let there =
            |version: &u32| self.userland.outside(format!("/usr/bin/clang++-{version}")).symlink_metadata().is_ok();
        let versions: Vec<u32> = (22..30).filter(there).collect();
        assert!(!versions.is_empty(), "the userland has no /usr/bin/clang++-NN");
        versions
    }

    pub(crate) fn has(&self, program: &str) -> bool {
        self.userland.outside("/usr/bin").join(program).symlink_metadata().is_ok()
    }

    /// Runs a shell script inside, with the wrapper as `$W`, its C driver as `$WC`, the real compiler as `$R`, and
    /// `$HIP` for that compiler's flags: where HIP is, and that its headers are not read.
    pub(crate) fn run(&self, version: u32, script: &str) -> Output {
        let rocm = std::env::var(hotswap_userland::ENV_ROCM).unwrap_or_default();
        let path = if version == 22 || rocm.is_empty() { String::new() } else { format!("--rocm-path={rocm} ") };
        let hip = path + "-nogpuinc";
        let inside = self.inside();
        let mut command = self.userland.command(&inside, "/bin/sh");
        command.args(["-c", script]).env("HOME", format!("{inside}/home")).env("PROBE", format!("{inside}/probe"));
        command.env("W", format!("{inside}/P/bin/hotswap-clang++")).env("WC", format!("{inside}/P/bin/hotswap-clang"));
        command.env("R", format!("/usr/bin/clang++-{version}")).env("RC", format!("/usr/bin/clang-{version}"));
        command.env("HOTSWAP_CLANG", format!("/usr/bin/clang++-{version}")).env("HIP", hip);
        command.output().unwrap()
    }

    /// The lines of the probes since the last call.
    pub(crate) fn probed(&self) -> Vec<String> {
        let text = fs::read_to_string(self.at("probe")).unwrap_or_default();
        let _ = fs::remove_file(self.at("probe"));
        text.lines().map(str::to_owned).collect()
    }
}

/// Standard output and error of a run that must have succeeded.
pub(crate) fn ok(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{:?}\n{out}{err}", output.status);
    (out, err)
}
