//! Signals that the caller ignores stay ignored in the tool that the interposer runs.

use hotswap_plan::{Plan, words};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// The `SigIgn` of a tool below the interposer, after `setup` in the shell that starts it.
fn ignored_below(directory: &Path, setup: &str) -> u64 {
    let mut plan = Plan::default();
    plan.add_pairs("gfx1030=>gfx1031").unwrap();
    let script = format!("{setup} exec {}/shim/lld -flavor gnu --hotswap-plan={}", directory.display(), plan.hash());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(directory);
    shell.env(words::ENV_PLAN, plan.hash()).env(words::ENV_PLAN_TEXT, plan.canonical_text());
    shell.env(words::ENV_LLVM_BIN, directory.join("real"));
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    u64::from_str_radix(text.trim_start_matches("SigIgn:").trim(), 16).unwrap()
}

#[test]
fn ignored_signals_stay_ignored() {
    const HUP_AND_INT: u64 = 0b11;
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("shim")).unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    symlink(env!("CARGO_BIN_EXE_hotswap-lld"), dir.path().join("shim/lld")).unwrap();
    let tool = dir.path().join("real/lld");
    fs::write(&tool, "#!/bin/sh\ngrep SigIgn: /proc/self/status\nexit 3\n").unwrap();
    fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
    let before = ignored_below(dir.path(), "");
    assert_eq!(ignored_below(dir.path(), "trap '' HUP INT;"), before | HUP_AND_INT);
}

/// SIGKILL cannot be forwarded.
#[test]
fn the_tool_ends_with_a_killed_interposer() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("shim")).unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    symlink(env!("CARGO_BIN_EXE_hotswap-lld"), dir.path().join("shim/lld")).unwrap();
    let tool = dir.path().join("real/lld");
    fs::write(&tool, "#!/bin/sh\necho $$ > new; mv new pid\nexec sleep 60\n").unwrap();
    fs::set_permissions(&tool, Permissions::from_mode(0o755)).unwrap();
    let mut plan = Plan::default();
    plan.add_pairs("gfx1030=>gfx1031").unwrap();
    let mut command = Command::new(dir.path().join("shim/lld"));
    command.args(["-flavor", "gnu", &format!("--hotswap-plan={}", plan.hash())]).current_dir(dir.path());
    command.env(words::ENV_PLAN, plan.hash()).env(words::ENV_PLAN_TEXT, plan.canonical_text());
    let mut interposer = command.env(words::ENV_LLVM_BIN, dir.path().join("real")).spawn().unwrap();
    let wait = |what: &dyn Fn() -> bool| {
        let mut waited = (0..500).map(|_| sleep(Duration::from_millis(20)));
        what() || waited.any(|()| what())
    };
    assert!(wait(&|| dir.path().join("pid").exists()), "the tool does not run");
    let id = fs::read_to_string(dir.path().join("pid")).unwrap();
    let own = interposer.id().to_string();
    interposer.kill().unwrap();
    interposer.wait().unwrap();
    assert_ne!(id.trim(), own, "the interposer became the tool");
    // Its new parent may leave it a zombie.
    let is_gone = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
        stat.is_empty() || stat.contains(") Z ")
    };
    assert!(wait(&is_gone), "the tool outlives the interposer");
}
