//! The task `setup`: finds a usable ROCm on the machine, or builds the userland; reports the result.

use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::{paths, remove, rights, rocm, run, userland};
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
    /// Only the part that `demo` and `shell` need: no other LLVM, CMake, linkers and libraries for tests.
    #[arg(long, conflicts_with = "remove")]
    base: bool,
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
    let part = if options.base { Part::Base } else { Part::Tests };
    if options.userland {
        build_even_if_native(part)?;
    }
    report(part)
}

fn build_even_if_native(part: Part) -> Outcome {
    if let Some(obstacle) = rights::obstacle()?.or_else(userland::obstacle) {
        return rights::refuse(&rocm::search().notes, &obstacle);
    }
    let _lock = lock(FlockOperation::LockExclusive)?;
    if userland::finished(part)?.is_none() {
        check_space(part)?;
        timed_build(part)?;
    }
    Ok(())
}

/// How a task gets a ROCm on this machine.
enum Way {
    /// A userland that exists, or the machine itself.
    Ready(Userland),
    /// A part of the userland is to be built.
    Build,
}

/// Fails if the part of the userland neither exists nor can be made here, before anything is built: rights, tools, free space.
/// Returns the megabytes that will be written for it.
pub(crate) fn check(part: Part) -> Outcome<u64> {
    match find_way(part)? {
        Way::Ready(_) => Ok(0),
        Way::Build => userland::missing_megabytes(part),
    }
}

/// Fails if the mirror cannot be read from which the userland is built. Called after [`check`] said that it will be.
pub(crate) fn check_mirror() -> Outcome {
    let _lock = lock(FlockOperation::LockExclusive)?;
    userland::read_lists()
}

fn find_way(part: Part) -> Outcome<Way> {
    if let Some(chosen) = Userland::from_env() {
        return Ok(Way::Ready(chosen));
    }
    let finished = userland::finished(part)?;
    let obstacle = rights::obstacle()?;
    if let (Some(userland), None) = (finished, &obstacle) {
        return Ok(Way::Ready(userland));
    }
    let mut search = rocm::search();
    let missing: Vec<_> = ["cmake", "ninja"].into_iter().filter(|tool| which::which(tool).is_err()).collect();
    if let Some(native) = search.found.filter(|_| missing.is_empty()) {
        println!("Using clang {} of this machine: {}", native.version, native.clang.display());
        return Ok(Way::Ready(Userland::new("/")));
    }
    search.notes.extend(missing.iter().map(|tool| format!("{tool} is not on PATH")));
    if let Some(obstacle) = obstacle.or_else(userland::obstacle) {
        return rights::refuse(&search.notes, &obstacle);
    }
    check_space(part)?;
    Ok(Way::Build)
}

/// The userland with this part, built now where needed, and the lock that keeps it.
pub(crate) fn ensure(part: Part) -> Outcome<(Userland, File)> {
    let shared = lock(FlockOperation::LockShared)?;
    if let Way::Ready(userland) = find_way(part)? {
        return Ok((userland, shared));
    }
    drop(shared);
    let exclusive = lock(FlockOperation::LockExclusive)?;
    // Another run may have built it while this one waited.
    let userland = userland::finished(part)?.map_or_else(|| timed_build(part), Ok)?;
    rustix::fs::flock(&exclusive, FlockOperation::LockShared)?;
    Ok((userland, exclusive))
}

/// Fails if the cache directory has no room for what is to be built.
fn check_space(part: Part) -> Outcome {
    let cache = paths::cache()?;
    fs::create_dir_all(&cache).during("create", &cache)?;
    let free = userland::free_megabytes(&cache)?;
    let needed = userland::missing_megabytes(part)?;
    if free >= needed {
        return Ok(());
    }
    fail(format!(
        "{} has {free} MB free, and the userland needs {needed} MB: free some, or set XDG_CACHE_HOME to a directory with more",
        cache.display()
    ))
}

fn timed_build(part: Part) -> Outcome<Userland> {
    let start = Instant::now();
    let needed = userland::missing_megabytes(part)?;
    println!("Building a ROCm userland in {} (up to {needed} MB, once)", userland::directory()?.display());
    let userland = userland::build(part)?;
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
fn report(part: Part) -> Outcome {
    let session = Session::open(part, &paths::scratch("prefix"), &paths::scratch("work"))?;
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
