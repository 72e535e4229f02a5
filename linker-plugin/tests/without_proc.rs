//! The interposer in a root directory without `/proc`: each of its tools says that it is missing, starts no tool and leaves no file.
//!
//! Only root can hide `/proc`; otherwise the test reports that it is skipped.

use hotswap_plan::{Plan, words};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

const TEST: &str = "the_interposer_without_proc_says_that_it_is_missing";
/// The tools, each with arguments of a build; the device links with a plan and without one.
const CALLS: [&str; 6] = [
    "lld -flavor gnu -shared in.o -o out",
    "lld -flavor gnu -shared in.o TOKEN -o out",
    "ld.lld -shared in.o TOKEN -o out",
    "clang-offload-bundler -type=o -targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx1030 -input=/dev/null -input=in.o -output=out",
    "clang-offload-packager -o out --image=file=in.o,triple=amdgcn-amd-amdhsa,arch=gfx1030,kind=hip",
    "clang-linker-wrapper --linker-path=real/ld in.o -o out",
];
/// Where its linker is named by a variable, the host link needs nothing of `/proc`.
const HOST_LINK: &str = "hotswap-host-link in.o -o out";

/// The tool in a namespace, after the commands of the shell.
fn run_after(directory: &Path, before: &str, line: &str) -> Output {
    let mut plan = Plan::default();
    plan.add_pairs("gfx1030=>gfx1031").unwrap();
    let line = line.replace("TOKEN", &format!("--hotswap-plan={}", plan.hash()));
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &format!("{before}; PATH=/nonexistent; exec shim/{line}")]).current_dir(directory);
    command.env(words::ENV_PLAN, plan.hash()).env(words::ENV_PLAN_TEXT, plan.canonical_text());
    command.env(words::ENV_LLVM_BIN, directory.join("real")).env(words::ENV_ACTIVE, "1");
    command.env(words::ENV_HOST_LINKER, directory.join("real/hotswap-host-link")).output().unwrap()
}

#[test]
fn the_interposer_without_proc_says_that_it_is_missing() {
    const HIDE: &str = "mount -t tmpfs none /proc && ! test -e /proc/self || exit 99";
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for name in ["shim", "real"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    fs::write(root.join("in.o"), "").unwrap();
    // The tools are beside the program, links resolved.
    fs::copy(env!("CARGO_BIN_EXE_hotswap-lld"), root.join("shim/lld")).unwrap();
    for tool in CALLS.into_iter().chain([HOST_LINK]).map(|line| line.split(' ').next().unwrap()) {
        let _ = symlink("lld", root.join("shim").join(tool));
        fs::write(root.join("real").join(tool), "#!/bin/sh\n: >started\nexit 3\n").unwrap();
        fs::set_permissions(root.join("real").join(tool), Permissions::from_mode(0o755)).unwrap();
    }
    if run_after(root, HIDE, "lld").status.code() == Some(99) || !run_after(root, "exit 0", "lld").status.success() {
        return hotswap_userland::skip(TEST, "/proc cannot be hidden here");
    }
    for line in CALLS {
        let done = run_after(root, HIDE, line);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(10) && said.contains("[HS0110]"), "{line}: {:?} {said}", done.status);
        assert!(!root.join("started").exists() && !root.join("out").exists(), "{line}");
        // The calls are ones that reach the tools where the system shows all processes.
        let done = run_after(root, ":", line);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(root.join("started").exists() && !said.contains("HS0110"), "{line}: {:?} {said}", done.status);
        fs::remove_file(root.join("started")).unwrap();
    }
    let done = run_after(root, HIDE, HOST_LINK);
    assert!(done.status.code() == Some(3) && done.stderr.is_empty() && root.join("started").exists(), "{done:?}");
}
