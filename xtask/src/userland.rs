//! Builds the userland: a Debian root directory made by mmdebstrap, once, in the cache directory.
//!
//! Invariants: The directory gets its final name only when complete. Downloads stay until then, so that a broken run
//! continues. Packages are verified by apt against the machine's Debian keyring. The mirror is the machine's own.

use crate::outcome::{During, Outcome, fail};
use crate::progress::Progress;
use crate::recipe::{self, Package};
use crate::{extras, paths, remove, run};
use hotswap_userland::Userland;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Names the mirror where apt knows none of Debian's.
const MIRROR: &str = "HOTSWAP_DEBIAN_MIRROR";
/// Inside the directory: its recipe, then a line for each omitted part.
const STAMP: &str = ".hotswap-userland";
/// How often the list of packages is adapted to the mirror's contents.
const ATTEMPTS: usize = 5;

/// The directory of this recipe.
pub(crate) fn directory() -> Outcome<PathBuf> {
    Ok(paths::cache()?.join(format!("userland-{}", recipe::VERSION)))
}

/// The finished userland, if it was made by the current recipe.
pub(crate) fn finished() -> Outcome<Option<Userland>> {
    let directory = directory()?;
    let stamp = fs::read_to_string(directory.join(STAMP)).unwrap_or_default();
    Ok(stamp.starts_with(&recipe::text()).then(|| Userland::new(directory)))
}

/// The parts that a finished userland lacks.
pub(crate) fn left_out(userland: &Userland) -> Vec<String> {
    let stamp = fs::read_to_string(userland.root().join(STAMP)).unwrap_or_default();
    stamp.lines().filter_map(|line| line.strip_prefix("without ")).map(str::to_owned).collect()
}

/// Builds the directory. The caller holds the lock of the cache directory.
pub(crate) fn build() -> Outcome<Userland> {
    let directory = directory()?;
    let partial = directory.with_extension("partial");
    let downloads = directory.with_extension("downloads");
    fs::create_dir_all(&downloads).during("create", &downloads)?;
    let mirror = prepare_machine()?;
    let sources = downloads.join("sources.list");
    let text = format!("deb {mirror} sid main\ndeb {mirror} experimental main\n");
    fs::write(&sources, text).during("write", &sources)?;

    let mut without = bootstrap(&partial, &downloads, &sources)?;
    let userland = Userland::new(&partial);
    without.extend(extras::add(&userland, &downloads)?);
    let stamp = without.iter().fold(recipe::text(), |text, name| text + "without " + name + "\n");
    fs::write(partial.join(STAMP), stamp).during("write", &partial)?;
    remove::delete(&directory)?;
    fs::rename(&partial, &directory).during("rename", &partial)?;
    remove::delete(&downloads)?;
    Ok(Userland::new(directory))
}

/// Installs the machine's requirements for building root directories, and returns its Debian mirror.
fn prepare_machine() -> Outcome<String> {
    if !rustix::process::geteuid().is_root() {
        return fail("building a userland needs root: run this once as root, or install ROCm and CMake yourself");
    }
    let mut missing = Vec::new();
    for (program, package) in [("mmdebstrap", "mmdebstrap"), ("python3", "python3")] {
        missing.extend(which::which(program).is_err().then_some(package));
    }
    if !Path::new("/usr/share/keyrings/debian-archive-keyring.gpg").exists() {
        missing.push("debian-archive-keyring");
    }
    if !extras::has_pip() {
        missing.push("python3-pip");
    }
    let mut mirror = find_mirror();
    if !missing.is_empty() || mirror.is_none() {
        apt(&["update", "-q"])?;
        mirror = mirror.or_else(find_mirror);
    }
    if !missing.is_empty() {
        let words: Vec<&str> = ["install", "-q", "-y", "--no-install-recommends"].into_iter().chain(missing).collect();
        apt(&words)?;
    }
    match mirror {
        Some(mirror) => Ok(mirror),
        None => fail(format!("apt on this machine knows no Debian mirror; set {MIRROR} to the address of one")),
    }
}

/// Installs packages on this machine.
pub(crate) fn install(packages: &[&str]) -> Outcome {
    apt(&["update", "-q"])?;
    apt(&[&["install", "-q", "-y", "--no-install-recommends"], packages].concat())
}

fn apt(words: &[&str]) -> Outcome {
    println!("$ apt-get {}", words.join(" "));
    run::output(Command::new("apt-get").args(words).env("DEBIAN_FRONTEND", "noninteractive")).map(drop)
}

/// The machine's Debian mirror.
pub(crate) fn mirror() -> Outcome<String> {
    find_mirror().map_or_else(|| fail(format!("apt knows no Debian mirror; set {MIRROR} to the address of one")), Ok)
}

fn find_mirror() -> Option<String> {
    if let Ok(mirror) = std::env::var(MIRROR) {
        return Some(mirror);
    }
    let words = ["indextargets", "--format", "$(SITE)", "Origin: Debian", "Label: Debian"];
    let text = run::output(Command::new("apt-get").args(words)).ok()?;
    text.lines().filter(|line| !line.is_empty()).min().map(str::to_owned)
}

/// Runs mmdebstrap until the list of packages fits the mirror. Returns the omitted packages.
fn bootstrap(partial: &Path, downloads: &Path, sources: &Path) -> Outcome<Vec<String>> {
    let mut packages = recipe::PACKAGES.to_vec();
    for _ in 0..ATTEMPTS {
        remove::delete(partial)?;
        let log = attempt(&packages, partial, downloads, sources)?;
        let Some(log) = log else {
            let present = |name: &str| packages.iter().any(|package| package.name == name);
            return Ok(recipe::PACKAGES
                .iter()
                .map(|p| p.name)
                .filter(|name| !present(name))
                .map(str::to_owned)
                .collect());
        };
        let Some(adapted) = adapt(&packages, &log) else {
            return fail(format!("mmdebstrap failed; run the task again, it continues.\n{}", tail(&log)));
        };
        packages = adapted;
    }
    fail("the mirror lacks packages that the userland needs")
}

/// One run of mmdebstrap; its log when it failed.
fn attempt(packages: &[Package], partial: &Path, downloads: &Path, sources: &Path) -> Outcome<Option<String>> {
    let archives = downloads.join("archives");
    fs::create_dir_all(archives.join("partial")).during("create", &archives)?;
    let mut command = mmdebstrap(packages, partial, &archives, sources);
    println!("$ {}", run::line(&command));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let progress = Progress::start(archives);
    let path = downloads.join("mmdebstrap.log");
    let mut file = File::create(&path).during("create", &path)?;
    let mut log = String::new();
    for line in child.stderr.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
        let line = line?;
        writeln!(file, "{line}")?;
        log += &line;
        log.push('\n');
        if let Some(step) = line.strip_prefix("I: ") {
            progress.step(step);
        }
    }
    Ok((!child.wait()?.success()).then_some(log))
}

fn mmdebstrap(packages: &[Package], partial: &Path, archives: &Path, sources: &Path) -> Command {
    let name =
        |package: &Package| format!("{}{}", package.name, if package.experimental { "/experimental" } else { "" });
    let names: Vec<String> = packages.iter().map(name).collect();
    // apt's archive directory is in the cache, so that a broken download continues.
    let archives = shell_words::quote(&archives.to_string_lossy()).into_owned();
    let hook =
        format!("mkdir -p \"$1/var/cache/apt/archives\" && mount --bind {archives} \"$1/var/cache/apt/archives\"");
    // In namespaces of its own: no mount is left over, and everything ends when this task is killed.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child"]);
    command.args(["--", "mmdebstrap", "--mode=root", "--variant=apt"]);
    // A mirror's copy of the archive may be weeks old.
    command.args(["--aptopt=Acquire::Check-Valid-Until \"false\"", "--aptopt=Acquire::Retries \"3\""]);
    command.args(["--dpkgopt=force-unsafe-io", "--dpkgopt=path-exclude=/usr/share/man/*"]);
    command.arg("--skip=download/empty,essential/unlink,cleanup/apt/cache");
    command.arg(format!("--setup-hook={hook}")).arg(format!("--include={}", names.join(",")));
    command.arg("sid").arg(partial).arg(sources).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// The list without the packages that are absent according to the log; `None` when the failure had another reason.
///
/// A package that left experimental is taken from sid. When apt does not report the conflicting package, all optional
/// ones are dropped.
fn adapt(packages: &[Package], log: &str) -> Option<Vec<Package>> {
    if log.contains("Failed to fetch") || log.contains("Unable to fetch") {
        return None;
    }
    let missing = |package: &Package| {
        let quoted = format!("'{}'", package.name);
        let named = |line: &str| line.contains(&quoted) || line.ends_with(&format!(" {}", package.name));
        log.lines().any(|line| line.starts_with("E: ") && named(line))
    };
    let mut adapted: Vec<Package> = Vec::new();
    for package in packages {
        match missing(package) {
            false => adapted.push(*package),
            true if package.experimental => adapted.push(Package { experimental: false, ..*package }),
            true if package.optional => {}
            true => return None,
        }
    }
    if adapted == packages && log.contains("E: ") {
        adapted.retain(|package| !package.optional);
    }
    (adapted != packages).then_some(adapted)
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Package = Package { name: "clang-24", experimental: true, optional: true };
    const B: Package = Package { name: "cmake", experimental: false, optional: false };

    #[test]
    fn an_absent_snapshot_is_looked_for_in_sid_and_then_left_out() {
        let first = adapt(&[A, B], "E: Release 'experimental' for 'clang-24' was not found\n").unwrap();
        assert_eq!(first, [Package { experimental: false, ..A }, B]);
        assert_eq!(adapt(&first, "E: Unable to locate package clang-24\n").unwrap(), [B]);
    }

    #[test]
    fn unmet_dependencies_cost_the_optional_packages_only() {
        assert_eq!(adapt(&[A, B], "E: Unable to correct problems, you have held broken packages.\n").unwrap(), [B]);
        assert_eq!(adapt(&[B], "E: Unable to correct problems, you have held broken packages.\n"), None);
    }

    #[test]
    fn a_needed_package_and_a_broken_download_are_failures() {
        assert_eq!(adapt(&[A, B], "E: Unable to locate package cmake\n"), None);
        assert_eq!(adapt(&[A, B], "E: Failed to fetch x  Connection failed\nE: Unable to fetch some archives\n"), None);
    }
}
