//! `hotswap run --gpu GPU -- PROGRAM`: a program on the real HIP runtime, with GPUs that the CPU emulates.
//!
//! The program finds HotSwap's HSA library before the system's: by `LD_LIBRARY_PATH`, and by `LD_PRELOAD` where HIP's own
//! library names the directory of another one. Libraries that the user preloads come first: they may replace functions of HSA. It replaces this process, so its exit code and output are its own.

mod direct;
mod unserved;

use crate::outcome::CommandOutcome;
use crate::work::temporary::check_temporary_directory;
use crate::work::unknown_variables::take_unknown_variables;
use clap::Args;
use direct::{DirectArguments, LaunchOptions};
use hotswap_emulator::{MATRIX_CHOICES, variables};
use hotswap_report::{Diagnostic, codes};
use hotswap_stack::hash;
use hotswap_targets::{IsaFamily, TargetId};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library, relative to the directory of this program's directory.
const LIBRARY: &str = "lib/hotswap/emulated/libhsa-runtime64.so.1";

/// More than comgr's files while HIP's own kernels are prepared.
const RUNTIME_FILES: usize = 1 << 20;

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The GPUs that the program sees, as target IDs; several with commas, or by repeating the option
    #[arg(long, required = true, value_name = "GPU", value_delimiter = ',')]
    gpu: Vec<TargetId>,
    /// Print the instructions of each kernel when the program ends
    #[arg(long)]
    counters: bool,
    /// Let results of memory operations arrive as late as the waits of the code allow
    #[arg(long)]
    late: bool,
    /// Fill new memory of GPUs, LDS, scratch and registers with values that are not zero, so that code which reads what nothing has
    /// written computes something else
    #[arg(long)]
    poison: bool,
    /// Instructions that a wave may execute before its kernel is ended
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    budget: Option<u64>,
    /// How products of matrices are added where the order matters, which no document states: one product after the other, as
    /// an exact sum, in a ring of integers, or not at all (the kernel is ended) [default: sequential]
    #[arg(long, value_name = "MODEL", value_parser = MATRIX_CHOICES.iter().map(|(name, ..)| *name).collect::<Vec<_>>())]
    matrix: Option<String>,
    /// Memory of each GPU, MiB [default: that of a product with the GPU]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..))]
    memory: Option<u64>,
    /// Threads that execute one kernel [default: the machine's processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    threads: Option<u64>,
    #[command(flatten)]
    direct: DirectArguments,
    /// The program and its arguments
    #[arg(required_unless_present = "kernel", last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Starts a kernel, or replaces this process by a program.
pub(crate) fn run(arguments: &RunArguments) -> Result<CommandOutcome, Diagnostic> {
    let RunArguments { gpu, counters, late, budget, threads, .. } = arguments;
    match (gpu.as_slice(), &arguments.direct.kernel) {
        (_, None) => Err(start(arguments)),
        ([gpu], Some(_)) => {
            let (matrix, counters, late) = (arguments.matrix.as_deref(), *counters, *late);
            let poison = arguments.poison;
            let options = LaunchOptions { gpu, counters, late, poison, matrix, budget: *budget, threads: *threads };
            direct::run(&arguments.direct, &options)
        }
        (_, Some(_)) => Err(Diagnostic::error(codes::USAGE, "a kernel is started on one GPU")),
    }
}

/// Replaces this process by the program; returns only on failure, with the reason.
fn start(arguments: &RunArguments) -> Diagnostic {
    let library = match library() {
        Ok(library) => library,
        Err(error) => return error,
    };
    if let Some(error) = arguments.gpu.iter().find_map(refusal) {
        return error;
    }
    if let Err(error) = check_temporary_directory(RUNTIME_FILES) {
        return error;
    }
    // A program that replaces this process gets no later chance.
    for note in take_unknown_variables().into_iter().chain(arguments.gpu.iter().filter_map(unknown_to_hip)) {
        eprintln!("hotswap: {note}");
    }
    let Some((program, rest)) = arguments.command.split_first() else {
        return Diagnostic::error(codes::USAGE, "run needs a program");
    };
    let libraries = before("LD_LIBRARY_PATH", library.parent().unwrap_or(Path::new("/")).as_os_str());
    for note in unserved::without_code(program, &libraries, &arguments.gpu) {
        eprintln!("hotswap: {note}");
    }
    let mut process = Command::new(program);
    process.args(rest).envs(settings(arguments)).env("LD_LIBRARY_PATH", libraries);
    process.env("LD_PRELOAD", behind_others("LD_PRELOAD", library.as_os_str()));
    let error = process.exec();
    Diagnostic::error(codes::NOT_STARTED, error.to_string()).in_file(program)
}

/// The HSA library for emulated GPUs, as it is installed beside this program.
fn library() -> Result<PathBuf, Diagnostic> {
    let own = hotswap_files::own_program()?;
    let path = own.ancestors().nth(2).unwrap_or(Path::new("/")).join(LIBRARY);
    if !hotswap_files::reads::is_there(&path)? {
        return Err(missing_library_error("no HSA library for emulated GPUs".to_owned()).in_file(path));
    }
    if path.as_os_str().as_encoded_bytes().iter().any(|byte| b" \t\n:;".contains(byte)) {
        return alias(&path).map_err(|reason| missing_library_error(reason).in_file(path));
    }
    Ok(path)
}

fn missing_library_error(reason: String) -> Diagnostic {
    Diagnostic::error(codes::NO_INSTALL, reason)
}

/// A path of the library that the lists of the dynamic loader can have, which separate by blanks and colons: a link to its
/// directory in the cache directory.
fn alias(library: &Path) -> Result<PathBuf, String> {
    let (Some(directory), Some(name)) = (library.parent(), library.file_name()) else {
        return Err("no directory".to_owned());
    };
    let what = "its path has a blank or a colon, which LD_PRELOAD cannot have";
    let Some(cache) = hotswap_files::cache_dir() else {
        return Err(format!("{what}, and no HOME is set for a link to it"));
    };
    let cache = hotswap_files::own_directory(&cache.join("run")).map_err(|error| format!("{what}: {error}"))?;
    let link = cache.join(&hash::sha256_of(directory.as_os_str().as_encoded_bytes())[..16]);
    if !fs::read_link(&link).is_ok_and(|to| to == directory) {
        let new = cache.join(format!("new-{}", std::process::id()));
        symlink(directory, &new).and_then(|()| fs::rename(&new, &link)).map_err(|error| format!("{what}: {error}"))?;
    }
    if link.as_os_str().as_encoded_bytes().iter().any(|byte| b" \t\n:;".contains(byte)) {
        return Err(format!("{what}, and so has the cache directory {}", cache.display()));
    }
    Ok(link.join(name))
}

/// Reads the variable for a list and puts an item behind the others.
fn behind_others(variable: &str, item: &OsStr) -> OsString {
    let mut list = env::var_os(variable).unwrap_or_default();
    if !list.is_empty() {
        list.push(":");
    }
    list.push(item);
    list
}

/// Reads the variable for a list and puts an item before the others.
fn before(variable: &str, item: &OsStr) -> OsString {
    let mut list = item.to_owned();
    if let Some(others) = env::var_os(variable).filter(|others| !others.is_empty()) {
        list.push(":");
        list.push(others);
    }
    list
}

/// The variables that the library reads.
fn settings(arguments: &RunArguments) -> Vec<(&'static str, String)> {
    let gpus: Vec<String> = arguments.gpu.iter().map(ToString::to_string).collect();
    vec![
        (variables::GPUS, gpus.join(",")),
        (variables::COUNTERS, flag_setting_text(arguments.counters)),
        (variables::LATE, flag_setting_text(arguments.late)),
        (variables::POISON, flag_setting_text(arguments.poison)),
        (variables::BUDGET, number_setting_text(arguments.budget)),
        (variables::MATRIX, arguments.matrix.clone().unwrap_or_default()),
        (variables::MEMORY, number_setting_text(arguments.memory)),
        (variables::THREADS, number_setting_text(arguments.threads)),
    ]
}

fn flag_setting_text(is_set: bool) -> String {
    if is_set { "1".to_owned() } else { String::new() }
}

fn number_setting_text(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

/// GPUs whose code the emulator does not execute.
fn refusal(target: &TargetId) -> Option<Diagnostic> {
    let is_generic = target.processor.is_generic();
    let is_known = hotswap_emulator::EmulatedDevice::new(target.processor.name).is_ok();
    match () {
        () if is_generic => Some(
            unknown_target_error("is a target for several GPUs", target).advise("name one of the GPUs that it covers"),
        ),
        () if !is_known => Some(unknown_target_error("cannot be emulated", target)),
        () => None,
    }
}

fn unknown_target_error(reason: &str, target: &TargetId) -> Diagnostic {
    Diagnostic::error(codes::UNKNOWN_TARGET, format!("{target} {reason}"))
}

/// GPUs that HIP 7.2 does not know.
fn unknown_to_hip(target: &TargetId) -> Option<Diagnostic> {
    let is_known = (IsaFamily::Vega..=IsaFamily::Rdna4).contains(&target.processor.family)
        && target.processor.family != IsaFamily::Gfx117
        && !["gfx909", "gfx1154"].contains(&target.processor.name);
    let fact = format!("HIP 7.2 does not know {target}: with it, the program finds no GPU");
    (!is_known).then(|| Diagnostic::warning(codes::UNKNOWN_TO_HIP, fact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_that_hip_does_not_know_are_named() {
        let said = |name: &str| unknown_to_hip(&name.parse().unwrap()).is_some();
        let known = ["gfx900", "gfx942", "gfx1031", "gfx1153", "gfx1201"].map(said);
        let unknown = ["gfx1250", "gfx1250-strict", "gfx1154", "gfx909"].map(said);
        assert_eq!((known, unknown), ([false; 5], [true; 4]));
    }

    #[test]
    fn generic_targets_are_no_gpus() {
        assert!(refusal(&"gfx10-3-generic".parse().unwrap()).is_some());
        assert!(refusal(&"gfx1036".parse().unwrap()).is_none());
    }

    #[test]
    fn the_library_comes_before_those_of_the_user() {
        assert_eq!(before("HOTSWAP_TEST_NO_SUCH_VARIABLE", OsStr::new("/a")), "/a");
        assert!(before("PATH", OsStr::new("/a")).to_string_lossy().starts_with("/a:"));
    }
}
