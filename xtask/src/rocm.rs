//! Finds a ROCm that is installed on the machine: a clang that can build a HIP program.
//!
//! A ROCm is usable when its clang, version 22 or later, compiles and links `probe.hip`; its location and its name do
//! not matter.

use crate::{paths, run};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first version of clang that is supported.
const FIRST: u32 = 22;
/// The last version for which Debian's directory is searched.
const LAST: u32 = 30;

/// A usable ROCm.
pub(crate) struct Native {
    pub(crate) clang: PathBuf,
    pub(crate) version: u32,
}

/// The result of the search; the notes have the reason against each rejected candidate.
pub(crate) struct Search {
    pub(crate) found: Option<Native>,
    pub(crate) notes: Vec<String>,
}

/// Searches `HOTSWAP_CLANG`, `ROCM_PATH`, `/opt/rocm`, Debian's directories and `PATH`, in this order.
pub(crate) fn search() -> Search {
    let mut notes = Vec::new();
    for clang in candidates() {
        match judge(&clang) {
            Ok(version) => return Search { found: Some(Native { clang, version }), notes },
            Err(reason) => notes.push(format!("{}: {reason}", clang.display())),
        }
    }
    if notes.is_empty() {
        notes.push("no clang in HOTSWAP_CLANG, ROCM_PATH, /opt/rocm, /usr/lib/llvm-NN or PATH".to_owned());
    }
    Search { found: None, notes }
}

fn candidates() -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = env::var_os("HOTSWAP_CLANG").map(PathBuf::from).into_iter().collect();
    for root in env::var_os("ROCM_PATH").map(PathBuf::from).into_iter().chain(["/opt/rocm".into()]) {
        list.extend(["lib/llvm/bin/clang++", "llvm/bin/clang++"].map(|clang| root.join(clang)));
    }
    list.extend((FIRST..=LAST).map(|version| format!("/usr/lib/llvm-{version}/bin/clang++").into()));
    list.extend(["amdclang++", "clang++"].iter().filter_map(|name| which::which(name).ok()));
    list.retain(|clang| clang.exists());
    list
}

/// The version, or why this clang cannot be used.
fn judge(clang: &Path) -> Result<u32, String> {
    let text = run::output(Command::new(clang).arg("--version")).map_err(|failure| failure.to_string())?;
    let version = major(&text).ok_or("its --version names no clang version")?;
    if version < FIRST {
        return Err(format!("clang {version} is older than {FIRST}"));
    }
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = Command::new(clang);
    command.args(probe_words()).arg(paths::workspace().join(PROBE)).arg("-o").arg(directory.path().join("probe"));
    run::output(&mut command).map(|_| version).map_err(|_| format!("clang {version} cannot build a HIP program here"))
}

/// The probe's source in the workspace.
pub(crate) const PROBE: &str = "xtask/src/probe.hip";

/// Arguments that build the probe, without source and output.
pub(crate) fn probe_words() -> [&'static str; 4] {
    ["--offload-arch=gfx1030", "-lamdhip64", "-x", "hip"]
}

/// `22` of `… clang version 22.1.8 …`.
fn major(text: &str) -> Option<u32> {
    let rest = text.split("clang version ").nth(1)?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_every_vendor() {
        assert_eq!(major("Debian clang version 22.1.8 (3)\nTarget: x86_64"), Some(22));
        assert_eq!(major("AMD clang version 23.0.0git (https://x)"), Some(23));
        assert_eq!(major("gcc (Debian) 12.2.0"), None);
    }
}
