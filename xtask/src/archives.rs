//! The archives of packages that a root directory needs: apt's solver, and its download.
//!
//! Invariants: The machine's own package database is neither read nor changed: apt works on lists, a cache and a database of
//! ours, without root. It verifies archives against Debian's keys. Downloads are kept, so that a broken run continues.

use crate::isa_source::Apt;
use crate::outcome::{During, Outcome, fail};
use crate::progress::Progress;
use crate::recipe::Package;
use crate::run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How often the list of packages is adapted to the mirror's contents.
const ATTEMPTS: usize = 5;
/// Suffix of the fields of an installed package in dpkg's database.
const INSTALLED: &str = "Status: install ok installed";
/// Fields of apt's lists that dpkg's database does not have.
const LIST_FIELDS: &[&str] = &["Filename:", "Size:", "MD5sum:", "SHA256:", "Description-md5:"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Archive {
    pub(crate) name: String,
    pub(crate) version: String,
    /// The name of its file in apt's cache.
    pub(crate) file: String,
    pub(crate) bytes: u64,
}

/// The packages that are to be added to a root directory.
pub(crate) struct Resolved {
    pub(crate) archives: Vec<Archive>,
    /// Optional packages that the mirror lacks.
    pub(crate) omitted: Vec<String>,
    /// Their entries in dpkg's database.
    pub(crate) database: String,
}

/// apt with a database of installed packages of its own.
pub(crate) struct Solver {
    apt: Apt,
    directory: PathBuf,
}

impl Solver {
    /// Updates the lists of packages.
    pub(crate) fn new(downloads: &Path) -> Outcome<Self> {
        let solver = Self { apt: Apt::new(downloads, "deb")?, directory: downloads.join("apt") };
        let updated = run::output(&mut solver.apt_get(&["update", "-q", "-o", "APT::Update::Error-Mode=any"]));
        updated.or_else(|failure| {
            fail(format!("the Debian mirror cannot be read; with a network, run the task again.\n{failure}"))
        })?;
        Ok(solver)
    }

    fn apt_get(&self, words: &[&str]) -> Command {
        // apt ends when this task is killed.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        let inner = self.apt.command("apt-get", words);
        command.arg(inner.get_program()).args(inner.get_args()).env("LC_ALL", "C.UTF-8");
        command
    }

    /// apt's option for the database of installed packages.
    fn write_database(&self, text: &str) -> Outcome<String> {
        let path = self.directory.join("status");
        fs::write(&path, text).during("write", &path)?;
        Ok(format!("Dir::State::status={}", path.display()))
    }

    /// The packages and everything that they depend on, without what the database says is installed.
    pub(crate) fn resolve(&self, wanted: &[Package], installed: &str) -> Outcome<Resolved> {
        let mut packages = wanted.to_vec();
        for _ in 0..ATTEMPTS {
            match self.resolve_once(&packages, installed)? {
                Ok(mut resolved) => {
                    resolved.omitted = wanted
                        .iter()
                        .filter(|one| is_omitted_package(one, &packages))
                        .map(|package| package.name.to_owned())
                        .collect();
                    return Ok(resolved);
                }
                Err(log) => match adapt(&packages, &log) {
                    Some(adapted) => packages = adapted,
                    None => return fail(format!("apt cannot combine the packages of the userland:\n{}", tail(&log))),
                },
            }
        }
        fail("the mirror lacks packages that the userland needs")
    }

    /// Sid's packages first: a package of experimental takes its dependencies from there only where sid's do not suffice. The
    /// inner error is apt's log.
    fn resolve_once(&self, packages: &[Package], installed: &str) -> Outcome<Result<Resolved, String>> {
        let mut database = installed.to_owned();
        let mut archives = Vec::new();
        let mut added = String::new();
        for experimental in [false, true] {
            let names: Vec<String> = packages
                .iter()
                .filter(|package| package.experimental == experimental)
                .map(|package| format!("{}{}", package.name, if experimental { "/experimental" } else { "" }))
                .collect();
            let found = match self.list_archives(&names, &database)? {
                Ok(found) => found,
                Err(log) => return Ok(Err(log)),
            };
            let entries = self.database_entries(&found)?;
            database += &entries;
            added += &entries;
            archives.extend(found);
        }
        Ok(Ok(Resolved { archives, omitted: Vec::new(), database: added }))
    }

    /// The archives that apt would download to install the packages, or its log.
    fn list_archives(&self, names: &[String], database: &str) -> Outcome<Result<Vec<Archive>, String>> {
        if names.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        // With an empty cache apt lists archives that were downloaded before, too.
        let empty = self.directory.join("empty");
        fs::create_dir_all(empty.join("partial")).during("create", &empty)?;
        let mut command = self.apt_get(&["install", "-q", "-y", "--no-install-recommends", "--print-uris", "-o"]);
        command.arg(self.write_database(database)?).arg("-o").arg(format!("Dir::Cache::archives={}", empty.display()));
        let output = command.args(names).stdin(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Ok(Err(text + &String::from_utf8_lossy(&output.stderr)));
        }
        Ok(Ok(text.lines().filter_map(parse_archive).collect()))
    }

    /// The entries of these packages in dpkg's database.
    fn database_entries(&self, archives: &[Archive]) -> Outcome<String> {
        if archives.is_empty() {
            return Ok(String::new());
        }
        let names = archives.iter().map(|archive| format!("{}={}", archive.name, archive.version));
        let text = run::output(self.apt.command("apt-cache", &["show"]).args(names))?;
        let mut entries = String::new();
        for line in text.lines().filter(|line| !LIST_FIELDS.iter().any(|field| line.starts_with(field))) {
            entries += line;
            entries.push('\n');
            if line.starts_with("Package: ") {
                entries = entries + INSTALLED + "\n";
            }
        }
        Ok(entries.trim_end().to_owned() + "\n\n")
    }

    /// Downloads the archives, and returns their directory.
    pub(crate) fn download(&self, archives: &[Archive], installed: &str) -> Outcome<PathBuf> {
        let directory = self.directory.join("cache/archives");
        let bytes: u64 = archives.iter().map(|archive| archive.bytes).sum();
        let progress = Progress::start(directory.clone());
        progress.step(&format!("downloading {} packages, {} MB", archives.len(), bytes.div_ceil(1_000_000)));
        let mut command = self.apt_get(&["install", "-q", "-y", "--no-install-recommends", "--download-only", "-o"]);
        command.arg(self.write_database(installed)?);
        command.args(archives.iter().map(|archive| format!("{}={}", archive.name, archive.version)));
        run::output(&mut command).or_else(|failure| {
            fail(format!(
                "downloading packages failed; what has arrived is kept: run the task again, it continues.\n{failure}"
            ))
        })?;
        Ok(directory)
    }
}

fn is_omitted_package(package: &&Package, packages: &[Package]) -> bool {
    !packages.iter().any(|kept| kept.name == package.name)
}

/// `'URI' FILE BYTES HASH`, as apt prints it.
fn parse_archive(line: &str) -> Option<Archive> {
    let mut words = line.strip_prefix('\'')?.split_once("' ")?.1.split(' ');
    let (file, bytes) = (words.next()?, words.next()?.parse().ok()?);
    let mut parts = file.split('_');
    let (name, version) = (parts.next()?.to_owned(), parts.next()?.replace("%3a", ":"));
    Some(Archive { name, version, file: file.to_owned(), bytes })
}

/// The list without the packages that are absent according to the log; `None` when the failure had another reason.
///
/// A package that left experimental is taken from sid. When apt does not report the conflicting package, all
/// optional ones are dropped.
fn adapt(packages: &[Package], log: &str) -> Option<Vec<Package>> {
    let mut adapted: Vec<Package> = Vec::new();
    for package in packages {
        match is_missing(package, log) {
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

/// Whether apt's log has an error about the package.
fn is_missing(package: &Package, log: &str) -> bool {
    let quoted = format!("'{}'", package.name);
    let ending = format!(" {}", package.name);
    log.lines().any(|line| line.starts_with("E: ") && (line.contains(&quoted) || line.ends_with(&ending)))
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
        assert_eq!(adapt(&[A, B], "E: Unable to locate package cmake\n"), None);
    }

    #[test]
    fn lines_of_apt_are_read() {
        let line = "'mirror/pool/libclang-rt-22-dev_22.1.8-3_amd64.deb' libclang-rt-22-dev_1%3a22.1.8-3_amd64.deb 3957748 MD5Sum:0";
        let expected = Archive {
            name: "libclang-rt-22-dev".to_owned(),
            version: "1:22.1.8-3".to_owned(),
            file: "libclang-rt-22-dev_1%3a22.1.8-3_amd64.deb".to_owned(),
            bytes: 3_957_748,
        };
        assert_eq!(parse_archive(line), Some(expected));
        assert_eq!(parse_archive("Need to get 262 MB of archives."), None);
    }
}
