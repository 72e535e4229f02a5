//! Variables that are named like HotSwap's and have no effect: the interposer names them where no wrapper has.

use hotswap_plan::words;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Standard error of a tool without a plan.
fn said(directory: &Path, tool: &str, active: bool) -> String {
    let mut command = Command::new(directory.join("shim").join(tool));
    command.env_clear().env("HOTSWAP_RETRAGET", "x").env(words::ENV_LLVM_BIN, directory.join("real"));
    command.envs(active.then_some((words::ENV_ACTIVE, "1")));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{tool}: the real tool runs");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_misspelt_variable_is_named_once_for_each_command() {
    let dir = tempfile::tempdir().unwrap();
    let tools = ["lld", "ld.lld", "clang-offload-bundler", "clang-linker-wrapper"];
    for directory in ["shim", "real"] {
        fs::create_dir(dir.path().join(directory)).unwrap();
    }
    for tool in tools {
        symlink(env!("CARGO_BIN_EXE_hotswap-lld"), dir.path().join("shim").join(tool)).unwrap();
        let real = dir.path().join("real").join(tool);
        fs::write(&real, "#!/bin/sh\nexit 3\n").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o755)).unwrap();
    }
    let warning = "hotswap-lld: warning: [HS0109] an environment variable is not known to HotSwap and has no effect: \
                   HOTSWAP_RETRAGET; did you mean `HOTSWAP_RETARGET`?\n";
    // The device links run once for each GPU, the others once for each command.
    let found = tools.map(|tool| said(dir.path(), tool, false));
    assert_eq!(found, ["", "", warning, warning]);
    assert_eq!(tools.map(|tool| said(dir.path(), tool, true)), [""; 4], "the wrapper has said it");
}
