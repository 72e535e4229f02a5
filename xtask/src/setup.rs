//! The task `setup`: finds a usable ROCm on the machine, or builds the userland; reports the result.

use crate::outcome::{During, Outcome, fail};
use crate::session::Session;
use crate::{paths, remove, rocm, run, userland};
use clap::Parser;
use hotswap_userland::Userland;
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::path::Path;
use std::time::Instant;

/// Finds a usable ROCm, or builds a Debian root directory with one in the cache directory.
#[derive(Parser)]
struct Options {
    /// Delete every userland in the cache directory.
    #[arg(long)]
    remove: bool,
    /// Build the userland even where the machine has a usable ROCm.
    #[arg(long, conflicts_with = "remove")]
    userland: bool,
}

/// The tools in a report, by the name of the program.
const TOOLS: &[&str] = &[
    "clang++-22",
    "clang++-23",
    "clang++-24",
    "clang++",
    "hipconfig",
    "ld.lld-22",
    "cmake",
    "ninja",
    "make",
    "ld.bfd",
    "ld.gold",
    "mold",
    "ccache",
    "sccache",
    "strace",
    "clangd-22",
    "clang-tidy-22",
];

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    if options.remove {
        return remove_all();
    }
    if options.userland {
        let _lock = lock(FlockOperation::LockExclusive)?;
        if userland::finished()?.is_none() {
            timed_build()?;
        }
    }
    report()
}

/// The userland to use, built now if there is none, and the lock that keeps it.
pub(crate) fn ensure() -> Outcome<(Userland, File)> {
    let shared = lock(FlockOperation::LockShared)?;
    if let Some(chosen) = Userland::from_env() {
        return Ok((chosen, shared));
    }
    if let Some(userland) = userland::finished()? {
        return Ok((userland, shared));
    }
    let mut search = rocm::search();
    let tools = ["cmake", "ninja"].iter().filter(|tool| which::which(tool).is_err());
    let missing: Vec<String> = tools.map(|tool| format!("{tool} is not on PATH")).collect();
    if let Some(native) = search.found.filter(|_| missing.is_empty()) {
        println!("Using clang {} of this machine: {}", native.version, native.clang.display());
        return Ok((Userland::new("/"), shared));
    }
    search.notes.extend(missing);
    if which::which("apt-get").is_err() {
        return fail(advice(&search.notes));
    }
    drop(shared);
    let exclusive = lock(FlockOperation::LockExclusive)?;
    // Another run may have built it while this one waited.
    let userland = userland::finished()?.map_or_else(timed_build, Ok)?;
    rustix::fs::flock(&exclusive, FlockOperation::LockShared)?;
    Ok((userland, exclusive))
}

fn timed_build() -> Outcome<Userland> {
    let start = Instant::now();
    println!("Building a ROCm userland in {} (about 3 GB, once)", userland::directory()?.display());
    let userland = userland::build()?;
    println!("Userland complete after {:.0} s", start.elapsed().as_secs_f64());
    Ok(userland)
}

fn lock(operation: FlockOperation) -> Outcome<File> {
    let cache = paths::cache()?;
    fs::create_dir_all(&cache).during("create", &cache)?;
    let path = cache.join("userland.lock");
    let file = File::options().create(true).append(true).open(&path).during("open", &path)?;
    let now = match operation {
        FlockOperation::LockShared => FlockOperation::NonBlockingLockShared,
        _ => FlockOperation::NonBlockingLockExclusive,
    };
    if rustix::fs::flock(&file, now).is_err() {
        println!("Waiting for another task that uses the userland");
        rustix::fs::flock(&file, operation)?;
    }
    Ok(file)
}

fn advice(notes: &[String]) -> String {
    format!(
        "no usable ROCm was found:\n  {}\nInstall HIP 6 or later with its device libraries, clang and lld 22 or later, \
         CMake 3.27 or later and Ninja, and set ROCM_PATH if they do not lie in /opt/rocm. \
         On Debian-like systems this task builds all of that in its cache directory.",
        notes.join("\n  ")
    )
}

fn remove_all() -> Outcome {
    let _lock = lock(FlockOperation::LockExclusive)?;
    let cache = paths::cache()?;
    for entry in fs::read_dir(&cache).during("read", &cache)?.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("userland-") {
            println!("Deleting {}", entry.path().display());
            remove::delete(&entry.path())?;
        }
    }
    Ok(())
}

/// Prints the userland in use and its contents.
fn report() -> Outcome {
    let session = Session::open(&paths::scratch("prefix"), &paths::scratch("work"))?;
    println!("ROCm root directory: {}", session.userland.root().display());
    let script = r#"for tool; do
        path=$(command -v "$tool") || continue
        printf '  %-14s %s\n' "$tool" "$("$tool" --version 2>/dev/null | sed -n '/[0-9]/{p;q}')"
    done
    for cmake in /opt/cmake-*/bin/cmake; do [ -x "$cmake" ] && printf '  %s\n' "$cmake"; done; true"#;
    let mut command = session.inside(Path::new("/"), "/bin/sh");
    print!("{}", run::output(command.args(["-c", script, "sh"]).args(TOOLS))?);
    for name in userland::left_out(&session.userland) {
        println!("  {name}: could not be had; tests that need it say so");
    }
    println!("\nNext: `cargo xtask demo` builds and inspects an example, `cargo xtask test` runs all tests.");
    Ok(())
}
