//! Trials of a served tree: each library computes a known answer ([`probe`](crate::probe)), as a program of the user would let it.
//!
//! A shell sources the tree's `env.sh` and starts `hotswap run` for the GPU, which starts the probe: the HIP runtime, the
//! preloaded library and the tree's files are those of the user's programs, and only the GPU is emulated. A library that
//! ends its process, or never ends, is a failure of its own row.
//!
//! Invariant: a row is right if the answer is right and at least one kernel of the library's code was executed on the GPU.

use crate::environment::ENVIRONMENT;
use crate::manifest::{FileRow, TreeManifest};
use crate::probe::{self, Probe};
use crate::rules::{self, FileKind};
use hotswap_files::ScratchDirectory;
use hotswap_files::asked_program::{ProbeOutput, run_for};
use hotswap_report::{Diagnostic, codes};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The time that one library may take. The emulator needs seconds for the largest of the computations.
const LIMIT: Duration = Duration::from_secs(600);

/// Kernels that HIP starts itself: copies and fills of memory.
const RUNTIME_KERNELS: &str = "__amd_rocclr_";

/// Without it comgr takes the code of a compressed bundle from the user's cache, by the hash in the bundle's header: a file whose
/// code is cut off or damaged would be right wherever the whole one was used before.
const COMGR_CACHE: (&str, &str) = ("AMD_COMGR_CACHE", "0");

/// Where rocFFT keeps the kernels that it compiled, else in the user's home: a trial compiles its own, and leaves none.
const FOURIER_CACHE: &str = "ROCFFT_RTC_CACHE_PATH";

/// Sources the tree's environment and becomes the command.
const SCRIPT: &str = ". \"$0\" && exec \"$@\"";

/// A library of the tree on one of its GPUs.
pub struct TriedLibrary {
    pub gpu: String,
    pub library: String,
    pub file: PathBuf,
    pub computation: Option<&'static str>,
    pub result: TryResult,
}

pub enum TryResult {
    /// The answer is right: the number of values, and the kernels that were executed.
    Right {
        values: u64,
        kernels: Vec<String>,
    },
    Failed(String),
    NotTried,
}

/// Files of the manifest that are not in the tree, whether a computation needs them or not.
pub fn missing_files(manifest: &TreeManifest, destination: &Path) -> Vec<Diagnostic> {
    manifest.files.iter().filter_map(|row| missing_file(&destination.join(&row.path))).collect()
}

fn missing_file(path: &Path) -> Option<Diagnostic> {
    match hotswap_files::reads::is_there(path) {
        Ok(true) => None,
        Ok(false) => Some(Diagnostic::error(codes::STALE, "the file of the tree does not exist").in_file(path)),
        Err(unread) => Some(unread),
    }
}

/// Tries each library of the tree on each of its GPUs.
///
/// # Errors
/// Files that cannot be read, and programs that the system cannot start.
pub fn try_all(manifest: &TreeManifest, destination: &Path) -> Result<Vec<TriedLibrary>, Diagnostic> {
    let own = hotswap_files::own_program()?;
    let scratch = ScratchDirectory::new(&std::env::temp_dir(), "hotswap-try")?;
    let mut rows = Vec::new();
    for wanted in &manifest.wanted {
        for FileRow { path, library, .. } in library_files(manifest) {
            let file = destination.join(path);
            // One that is not there is among the missing files.
            let probe = if hotswap_files::reads::is_there(&file)? { probe::find(&file)? } else { None };
            let result = match probe {
                None => TryResult::NotTried,
                Some(_) => {
                    let mut command = command(&own, destination, &wanted.target, &file);
                    command.env(FOURIER_CACHE, scratch.path().join("rocfft.db")).env(COMGR_CACHE.0, COMGR_CACHE.1);
                    judge(&run_for(scratch.path(), command, LIMIT)?)
                }
            };
            let computation = probe.map(|probe: &Probe| probe.computation);
            let library = library.clone().unwrap_or_default();
            rows.push(TriedLibrary { gpu: wanted.target.clone(), library, file, computation, result });
        }
    }
    Ok(rows)
}

/// The host libraries of the tree; for a library without one, its first file.
fn library_files(manifest: &TreeManifest) -> Vec<&FileRow> {
    let of_libraries: Vec<&FileRow> = manifest.files.iter().filter(|row| !TreeManifest::is_own(row)).collect();
    let (mut files, others): (Vec<_>, Vec<_>) = of_libraries.into_iter().partition(|row| is_host(row));
    for row in others {
        if !files.iter().any(|listed| listed.library == row.library) {
            files.push(row);
        }
    }
    files
}

/// Whether programs load it: a library whose code is in itself, or that opens other files.
fn is_host(row: &FileRow) -> bool {
    let found = rules::find_rule(&row.path, &row.path);
    found.is_some_and(|found| matches!(found.rule().kind, FileKind::Host | FileKind::FatBinary))
}

fn command(own: &Path, destination: &Path, gpu: &str, file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", SCRIPT]).arg(destination.join(ENVIRONMENT));
    command.arg(own).args(["run", "--gpu", gpu, "--counters", "--"]);
    command.arg(own).args(["serve", "--probe"]).arg(file);
    command
}

/// The result that a process printed, with the kernels that the emulator counted.
fn judge(output: &ProbeOutput) -> TryResult {
    let line = output.stdout.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let result: Value = serde_json::from_str(line).unwrap_or_default();
    if let Some(reason) = result["reason"].as_str() {
        return TryResult::Failed(reason.to_owned());
    }
    let Some(values) = result["compared"].as_u64().filter(|_| output.success) else {
        return TryResult::Failed(output.reason());
    };
    let kernels = executed_kernels(&output.stderr);
    if kernels.is_empty() {
        return TryResult::Failed("no kernel of the library was executed".to_owned());
    }
    TryResult::Right { values, kernels }
}

/// The kernels in the emulator's table of counters, without the runtime's own.
fn executed_kernels(report: &str) -> Vec<String> {
    let kernels = report.lines().filter_map(kernel_of_row);
    kernels.filter(|name| !name.starts_with(RUNTIME_KERNELS)).collect()
}

/// The kernel of a row `DISPATCHES WAVES INSTRUCTIONS GPU KERNEL`. Rows of instructions and other lines lack it.
fn kernel_of_row(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [dispatches, waves, instructions, gpu, name @ ..] = words.as_slice() else { return None };
    let is_row = [dispatches, waves, instructions].iter().all(|count| count.parse::<u64>().is_ok());
    (is_row && gpu.starts_with("gfx") && !name.is_empty()).then(|| name.join(" "))
}

/// The problem of a library whose answer was not right.
pub fn failure(row: &TriedLibrary) -> Option<Diagnostic> {
    let TryResult::Failed(reason) = &row.result else { return None };
    let what = format!("{} on {}: {reason}", row.library, row.gpu);
    Some(Diagnostic::error(codes::NOT_TRIED, what).in_file(&row.file))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTERS: &str = "hotswap-emulated: counters\n  dispatches        waves  instructions  GPU        kernel\n\
                                       1            2             3  gfx1031    __amd_rocclr_copyBuffer\n\
                                       4            8           900  gfx1031    Cijk_MT32x32 (int)\n\
                                                                   7    v_add_f32\n";

    fn judged(success: bool, stdout: &str, stderr: &str) -> String {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        let output = ProbeOutput { success, stdout, stderr, ..ProbeOutput::default() };
        match judge(&output) {
            TryResult::Right { values, kernels } => format!("{values} {kernels:?}"),
            TryResult::Failed(reason) => reason,
            TryResult::NotTried => unreachable!("it was"),
        }
    }

    #[test]
    fn a_right_answer_needs_a_kernel_of_the_library() {
        assert_eq!(judged(true, "noise\n{\"compared\":5}\n", COUNTERS), "5 [\"Cijk_MT32x32 (int)\"]");
        let only_copies: String = COUNTERS.lines().take(3).map(|line| format!("{line}\n")).collect();
        assert_eq!(judged(true, "{\"compared\":5}\n", &only_copies), "no kernel of the library was executed");
    }

    #[test]
    fn whatever_else_a_process_does_is_a_failure() {
        assert_eq!(judged(true, "{\"reason\":\"wrong\"}\n", COUNTERS), "wrong");
        assert_eq!(
            judged(false, "{\"compared\":5}\n", "rocBLAS error: Cannot read x\n"),
            "rocBLAS error: Cannot read x"
        );
        assert_eq!(judged(true, "", ""), "it ended with an error and printed nothing");
    }
}
