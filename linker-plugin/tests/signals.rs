//! Signals that the caller ignores stay ignored in the tool that the interposer runs.

use hotswap_plan::{Plan, words};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// What a tool below the interposer sees in `SigIgn`, after `setup` in the shell that starts it.
fn ignored_below(folder: &Path, setup: &str) -> u64 {
    let mut plan = Plan::default();
    plan.add_pairs("gfx1030=>gfx1031").unwrap();
    let script = format!("{setup} exec {}/shim/lld -flavor gnu --hotswap-plan={}", folder.display(), plan.hash());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(folder);
    shell.env(words::ENV_PLAN, plan.hash()).env(words::ENV_PLAN_TEXT, plan.canonical());
    shell.env(words::ENV_LLVM_BIN, folder.join("real"));
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
