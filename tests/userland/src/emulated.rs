//! The link of `libhsa-runtime64.so.1` for emulated GPUs, from the archive that cargo builds.
//!
//! The installation and the tests link it in the same way. cargo cannot: rustc passes a version script of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library's name, for programs and files.
pub const EMULATED_LIBRARY: &str = "libhsa-runtime64.so.1";
/// Its directory in an installation: apart, where no program looks by itself.
pub const EMULATED_DIRECTORY: &str = "lib/hotswap/emulated";

/// Names of a version script: lines that end with `;` after `global:`.
fn exported(script: &str) -> impl Iterator<Item = &str> {
    let global = script.split_once("global:").map_or("", |(_, rest)| rest);
    let global = global.split_once("local:").map_or(global, |(names, _)| names);
    global.lines().filter_map(|line| line.trim().strip_suffix(';'))
}

/// Links the archive to the library by a C compiler. Every symbol of the version script must be defined.
///
/// # Errors
/// The linker's message.
pub fn link_emulated(archive: &Path, workspace: &Path, to: &Path, mut compiler: Command) -> Result<(), String> {
    let script = workspace.join("crates/emulation/hsa-emulated/exports.map");
    let text = std::fs::read_to_string(&script).map_err(|error| format!("{}: {error}", script.display()))?;
    let command = &mut compiler;
    command.args(["-shared", "-o"]).arg(to);
    command.arg(format!("-Wl,-soname,{EMULATED_LIBRARY},--gc-sections,--no-undefined,--strip-debug,-z,relro,-z,now"));
    command.arg(format!("-Wl,--version-script={}", script.display()));
    command.args(exported(&text).map(|name| format!("-Wl,--require-defined={name}")));
    // libc alone below: programs of any kind load it.
    command.arg(archive).args(["-static-libgcc", "-lpthread", "-ldl", "-lm", "-lc"]);
    let output = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// The archive that cargo built last beside the program of a test.
pub fn built_archive() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let entries = std::fs::read_dir(program.parent()?).ok()?.flatten();
    let is_archive = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with("libhotswap_hsa_emulated") && name.ends_with(".a")
    };
    let archives = entries.map(|entry| entry.path()).filter(is_archive);
    archives.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok())
}
