//! Tools are searched in directories that PATH names, never in the working directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

#[test]
fn a_tool_in_the_working_directory_is_not_started() {
    for path in ["/nowhere:", ":/nowhere", "/nowhere:.", "/nowhere::/none", "bin:/nowhere"] {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("bin")).unwrap();
        for tool in ["llvm-profdata", "bin/llvm-profdata"] {
            let tool = dir.path().join(tool);
            fs::write(&tool, "#!/bin/sh\n: > \"$STARTED\"\necho LLVM version 23.0.0\n").unwrap();
            fs::set_permissions(tool, Permissions::from_mode(0o755)).unwrap();
        }
        let started = dir.path().join("started");
        // LLVM's raw magic number with version 10: enough to want a tool.
        let mut profile = vec![0x81, b'r', b'f', b'o', b'r', b'p', b'l', 0xff];
        profile.extend_from_slice(&10_u64.to_le_bytes());
        profile.resize(128, 0);
        fs::write(dir.path().join("x.profraw"), profile).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        command.args(["profile", "merge", "x.profraw", "-o", "x.profdata"]).current_dir(dir.path());
        let output = command.env("PATH", path).env("STARTED", &started).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!started.exists(), "{path}: {said}");
    }
}
