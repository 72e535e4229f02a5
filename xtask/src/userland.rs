//! Builds the userland: a Debian root directory in the cache directory, in two parts, by unpacking Debian's packages.
//!
//! Invariants: The directory gets its name only when its first part is complete; a part counts only when it has its stamp, which
//! is written last. Downloads stay until then, so that a broken run continues. Packages are verified by apt against the machine's
//! Debian keyring. The mirror is the machine's own. Neither root nor a change of the machine is needed.
//!
//! Absent on purpose: running the packages' scripts, and upgrades: a part that needs a newer version of an unpacked package makes
//! the whole directory anew.

use crate::archives::{Resolved, Solver};
use crate::outcome::{During, Outcome, fail};
use crate::recipe::{self, Part};
use crate::{extras, packages, paths, remove, run, unpack};
use hotswap_userland::Userland;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Names the mirror where apt knows none of Debian's.
const MIRROR: &str = "HOTSWAP_DEBIAN_MIRROR";
/// Debian's public keys, of the package `debian-archive-keyring`.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Bytes of a megabyte.
const MEGABYTE: u64 = 1_000_000;
/// A failure with less free space than this, in megabytes, is taken as one of a full disk.
const FULL: u64 = 200;
/// dpkg's list of installed packages, in a root directory.
const DATABASE: &str = "var/lib/dpkg/status";

/// The directory of this recipe.
pub(crate) fn directory() -> Outcome<PathBuf> {
    Ok(paths::cache()?.join(format!("userland-{}", recipe::VERSION)))
}

/// Inside the directory: the recipe of the part, then a line for each omitted item.
fn stamp_path(root: &Path, part: Part) -> PathBuf {
    root.join(format!(".hotswap-{}", part.name()))
}

fn read_stamp(root: &Path, part: Part) -> String {
    // A part without a stamp is not complete; why it cannot be read makes no difference.
    fs::read_to_string(stamp_path(root, part)).unwrap_or_default()
}

/// Whether the part was made by the current recipe.
fn is_complete(root: &Path, part: Part) -> bool {
    read_stamp(root, part).starts_with(&recipe::text(part))
}

/// The userland, if this part of it and those that it needs were made by the current recipe.
pub(crate) fn finished(part: Part) -> Outcome<Option<Userland>> {
    let directory = directory()?;
    let is_finished = part.with_needed().iter().all(|part| is_complete(&directory, *part));
    Ok(is_finished.then(|| Userland::new(directory)))
}

/// The items that a finished userland lacks.
pub(crate) fn left_out(userland: &Userland) -> Vec<String> {
    let stamps = Part::Tests.with_needed().iter().map(|part| read_stamp(userland.root(), *part));
    let lines = stamps.flat_map(|stamp| stamp.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter_map(|line| line.strip_prefix("without ").map(str::to_owned)).collect()
}

/// Megabytes that are still needed for the part, without those that an unfinished run left.
pub(crate) fn missing_megabytes(part: Part) -> Outcome<u64> {
    let directory = directory()?;
    let missing = part.with_needed().iter().filter(|part| !is_complete(&directory, **part));
    let needed: u64 = missing.map(|part| part.megabytes()).sum();
    let unfinished = ["partial", "downloads"].map(|extension| directory.with_extension(extension));
    let mut left = 0;
    for directory in unfinished.iter().filter(|directory| directory.exists()) {
        left += packages::files(directory)?.iter().map(|(_, bytes)| bytes).sum::<u64>() / MEGABYTE;
    }
    Ok(needed.saturating_sub(left))
}

/// Megabytes that are free in the file system of the directory.
pub(crate) fn free_megabytes(directory: &Path) -> Outcome<u64> {
    let volume = rustix::fs::statvfs(directory).during("examine", directory)?;
    Ok(volume.f_bavail.saturating_mul(volume.f_frsize) / MEGABYTE)
}

/// Reads the mirror's lists of packages, which [`build`] needs: a mirror that cannot be reached is known before anything is built.
/// The caller holds the lock of the cache directory.
pub(crate) fn read_lists() -> Outcome {
    Builder::new(&directory()?).map(drop)
}

/// Builds the part and those that it needs. The caller holds the lock of the cache directory.
pub(crate) fn build(part: Part) -> Outcome<Userland> {
    let directory = directory()?;
    let builder = Builder::new(&directory)?;
    if !is_complete(&directory, Part::Base) || !builder.extend(&directory, part)? {
        builder.build_anew(&directory, part)?;
    }
    remove::delete(&builder.downloads)?;
    Ok(Userland::new(directory))
}

struct Builder {
    solver: Solver,
    downloads: PathBuf,
}

impl Builder {
    fn new(directory: &Path) -> Outcome<Self> {
        let downloads = directory.with_extension("downloads");
        fs::create_dir_all(&downloads).during("create", &downloads)?;
        Ok(Self { solver: Solver::new(&downloads)?, downloads })
    }

    /// Builds everything beside the directory, then takes its place.
    fn build_anew(&self, directory: &Path, part: Part) -> Outcome {
        let partial = directory.with_extension("partial");
        remove::delete(&partial)?;
        for part in part.with_needed() {
            if let Err(failure) = self.add_part(&partial, *part) {
                // A full disk is given back; the downloads stay.
                remove::delete(&partial)?;
                return Err(failure);
            }
        }
        remove::delete(directory)?;
        fs::rename(&partial, directory).during("rename", &partial)
    }

    /// Adds the missing parts to a directory with the first one. `false`: the packages in it are too old.
    fn extend(&self, directory: &Path, part: Part) -> Outcome<bool> {
        for part in part.with_needed().iter().filter(|part| !is_complete(directory, **part)) {
            if !self.add_part(directory, *part)? {
                println!("Debian's packages are newer than those of the userland, which is made anew");
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// As [`Self::unpack_part`]; a failure on a full disk has the way out.
    fn add_part(&self, root: &Path, part: Part) -> Outcome<bool> {
        let added = self.unpack_part(root, part);
        let Err(failure) = &added else { return added };
        let free = free_megabytes(&self.downloads)?;
        if free >= FULL {
            return added;
        }
        let cache = self.downloads.parent().unwrap_or(&self.downloads).display();
        fail(format!(
            "{failure}\n{cache} has {free} MB free: free some space, or set XDG_CACHE_HOME to a directory with more, \
             and run the task again; downloads are kept"
        ))
    }

    /// Unpacks a part. `false`, with nothing changed: it needs other versions of packages that the directory has.
    fn unpack_part(&self, root: &Path, part: Part) -> Outcome<bool> {
        println!("Part `{}` of the userland:", part.name());
        let start = Instant::now();
        let installed = fs::read_to_string(root.join(DATABASE)).unwrap_or_default();
        let resolved = self.solver.resolve(part.packages(), &installed)?;
        if resolved.archives.iter().any(|archive| has_installed_package(&archive.name, &installed)) {
            return Ok(false);
        }
        let archives = self.solver.download(&resolved.archives, &installed)?;
        println!("  downloaded after {:.0} s", start.elapsed().as_secs_f64());
        unpack::unpack_all(&resolved.archives, &archives, root)?;
        println!("  unpacked after {:.0} s", start.elapsed().as_secs_f64());
        unpack::configure(root)?;
        self.complete(root, part, &installed, resolved)?;
        println!("  complete after {:.0} s", start.elapsed().as_secs_f64());
        Ok(true)
    }

    /// Adds everything that is not a package, then dpkg's database and the stamp.
    fn complete(&self, root: &Path, part: Part, installed: &str, resolved: Resolved) -> Outcome {
        let mut without = resolved.omitted;
        without.extend(extras::add(&Userland::new(root), part, &self.downloads)?);
        if part == Part::Tests {
            let sources = fs::read(self.downloads.join("apt/sources.list")).during("read", &self.downloads)?;
            let path = root.join("etc/apt/sources.list");
            fs::write(&path, sources).during("write", &path)?;
        }
        replace(&root.join(DATABASE), &(installed.to_owned() + &resolved.database))?;
        let stamp = without.iter().fold(recipe::text(part), |text, name| text + "without " + name + "\n");
        replace(&stamp_path(root, part), &stamp)
    }
}

fn has_installed_package(name: &str, installed: &str) -> bool {
    installed.lines().any(|line| line.strip_prefix("Package: ") == Some(name))
}

/// Writes a file completely or not at all.
fn replace(path: &Path, text: &str) -> Outcome {
    let temporary = path.with_extension("new");
    fs::write(&temporary, text).during("write", &temporary)?;
    fs::rename(&temporary, path).during("rename", &temporary)
}

/// Why no userland can be built on this machine, apart from rights; `None` where it can.
pub(crate) fn obstacle() -> Option<String> {
    let programs = ["apt-get", "apt-cache", "dpkg-deb", "tar", "unshare", "setpriv"];
    if let Some(program) = programs.into_iter().find(|program| which::which(program).is_err()) {
        return Some(format!(
            "{program} is not on PATH: a root directory with a ROCm is built from Debian's packages only on Debian and its derivatives"
        ));
    }
    (!Path::new(KEYS).exists()).then(|| format!("{KEYS} does not exist: install the package debian-archive-keyring"))
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
    if let Ok(mirror) = std::env::var(MIRROR) {
        return Ok(mirror);
    }
    if let Some(mirror) = find_mirror(&[])? {
        return Ok(mirror);
    }
    // A new machine lacks lists of packages. They are read in a directory of ours: the machine's would need root.
    let lists = tempfile::tempdir()?;
    fs::create_dir(lists.path().join("partial"))?;
    let settings = [format!("Dir::State::lists={}", lists.path().display()), "APT::Sandbox::User=root".to_owned()];
    let options: Vec<&str> = settings.iter().flat_map(|setting| ["-o", setting.as_str()]).collect();
    let updated = run::output(Command::new("apt-get").args(["update", "-q"]).args(&options));
    match (find_mirror(&options)?, updated) {
        (Some(mirror), _) => Ok(mirror),
        (None, Err(failure)) => fail(format!("the machine's package mirror cannot be read: {failure}")),
        (None, Ok(_)) => {
            fail(format!("apt on this machine knows no Debian mirror; set {MIRROR} to the address of one"))
        }
    }
}

fn find_mirror(options: &[&str]) -> Outcome<Option<String>> {
    let words = ["indextargets", "--format", "$(SITE)", "Origin: Debian", "Label: Debian"];
    let text = run::output(Command::new("apt-get").args(options).args(words))?;
    Ok(text.lines().filter(|line| !line.is_empty()).min().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_counts_only_with_the_stamp_of_the_current_recipe() {
        let root = tempfile::tempdir().unwrap();
        assert!(!is_complete(root.path(), Part::Base));
        let stamp = recipe::text(Part::Base);
        replace(&stamp_path(root.path(), Part::Base), &(stamp.clone() + "without clang-24\n")).unwrap();
        assert!(is_complete(root.path(), Part::Base) && !is_complete(root.path(), Part::Tests));
        assert_eq!(left_out(&Userland::new(root.path())), ["clang-24"]);
        replace(&stamp_path(root.path(), Part::Base), &stamp[..stamp.len() - 2]).unwrap();
        assert!(!is_complete(root.path(), Part::Base));
    }
}
