//! LLVM's sources for AMDGPU: records, C++ facts and tests, from Debian's source package.
//!
//! Invariants: The directory in the cache gets its name only when complete. The package comes from the machine's own
//! mirror and is verified by apt. Only the facts in the rows enter the repository.

use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::{paths, remove, run, setup, userland, xz};
use hotswap_userland::Mount;
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The source package; the rows are those of this version of LLVM.
const PACKAGE: &str = "llvm-toolchain-23";
/// The parts that are unpacked.
const PARTS: &[&str] = &[
    "llvm/lib/Target/AMDGPU",
    "llvm/include",
    "llvm/test/MC/AMDGPU",
    "llvm/test/MC/Disassembler/AMDGPU",
    "llvm/test/CodeGen/AMDGPU",
];
/// The path of the sources inside the userland.
const INSIDE: &str = "/mnt/llvm";
/// The path of the directory for the JSON inside the userland.
const OUTPUT: &str = "/mnt/output";

/// The directory of the sources, whether it exists or not.
pub(crate) fn directory() -> Outcome<PathBuf> {
    Ok(paths::cache()?.join("llvm-source-23"))
}

/// The directory with `llvm/lib/Target/AMDGPU` and the tests of machine code; downloaded now if it does not exist.
pub(crate) fn llvm_source() -> Outcome<PathBuf> {
    with_part(PARTS[0])
}

/// The directory of the tests of code generation. One that an older HotSwap downloaded lacks them, and is downloaded again.
pub(crate) fn code_generation_tests() -> Outcome<PathBuf> {
    const PART: &str = "llvm/test/CodeGen/AMDGPU";
    debug_assert!(PARTS.contains(&PART));
    Ok(with_part(PART)?.join(PART))
}

/// The directory of the assembler's tests.
pub(crate) fn assembly_tests() -> Outcome<PathBuf> {
    const PART: &str = "llvm/test/MC/AMDGPU";
    debug_assert!(PARTS.contains(&PART));
    Ok(with_part(PART)?.join(PART))
}

fn with_part(part: &str) -> Outcome<PathBuf> {
    let directory = directory()?;
    let cache = paths::cache()?;
    fs::create_dir_all(&cache).during("create", &cache)?;
    let lock = cache.join("llvm-source.lock");
    let lock_file = File::options().create(true).append(true).open(&lock).during("open", &lock)?;
    rustix::fs::flock(&lock_file, FlockOperation::LockExclusive)?;
    if !directory.join(part).exists() {
        let partial = directory.with_extension("partial");
        remove::delete(&partial)?;
        fs::create_dir_all(&partial).during("create", &partial)?;
        download(&partial)?;
        remove::delete(&directory)?;
        fs::rename(&partial, &directory).during("rename", &partial)?;
    }
    Ok(directory)
}

/// Fills the directory with the parts of the newest version that the mirror actually has.
fn download(directory: &Path) -> Outcome {
    let apt = Apt::new(directory, "deb-src")?;
    run::output(&mut apt.command("apt-get", &["update", "-q"]))?;
    println!("Downloading the sources of {PACKAGE} (about 200 MB)");
    let version = apt.download_source(PACKAGE, directory)?;
    unpack(directory)?;
    let file = directory.join("VERSION");
    fs::write(&file, format!("{version}\n")).during("write", &file)?;
    apt.remove()
}

/// The versions that `apt-cache showsrc` lists, newest first.
fn versions(text: &str) -> Vec<String> {
    let mut versions: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("Version: ")).collect();
    // Versions of one package differ in numbers, which compare as numbers.
    versions.sort_by_key(|version| std::cmp::Reverse(numbers(version)));
    versions.dedup();
    versions.into_iter().map(str::to_owned).collect()
}

/// Runs of digits as numbers; `~` sorts before the end, as in Debian's order.
fn numbers(version: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    for part in version.split_inclusive('~') {
        let digits = part.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty());
        numbers.extend(digits.map(|run| run.parse().unwrap_or(u64::MAX).saturating_add(1)));
        numbers.extend(part.ends_with('~').then_some(0));
    }
    numbers.push(1);
    numbers
}

/// Unpacks the parts and deletes the archive.
fn unpack(directory: &Path) -> Outcome {
    let mut archives = Vec::new();
    for entry in fs::read_dir(directory).during("read", directory)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with(".orig.tar.xz") {
            archives.push(path);
        }
    }
    let [archive] = archives.as_slice() else {
        return fail(format!("{} archives came with the sources of {PACKAGE}, not one", archives.len()));
    };
    xz::unpack_parts(archive, directory, PARTS)?;
    fs::remove_file(archive).during("delete", archive)
}

/// apt with lists and configuration of its own: the machine's know other packages, and stay unchanged.
pub(crate) struct Apt {
    directory: PathBuf,
}

impl Apt {
    /// `kind` is `deb` for packages to install, `deb-src` for sources.
    pub(crate) fn new(parent: &Path, kind: &str) -> Outcome<Self> {
        let directory = parent.join("apt");
        for name in ["lists/partial", "cache/archives/partial"] {
            let path = directory.join(name);
            fs::create_dir_all(&path).during("create", &path)?;
        }
        let mirror = userland::mirror()?;
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let sources = directory.join("sources.list");
        fs::write(
            &sources,
            apt_source_line("sid", kind, keys, &mirror) + &apt_source_line("experimental", kind, keys, &mirror),
        )
        .during("write", &sources)?;
        let place = directory.display();
        let settings = [
            format!("Dir::Etc::sourcelist \"{place}/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\n"),
            format!("Dir::State::lists \"{place}/lists\";\nDir::Cache \"{place}/cache\";\n"),
            // A mirror's copy of the archive may be weeks old.
            "Acquire::Check-Valid-Until \"false\";\nAcquire::Retries \"3\";\nAPT::Sandbox::User \"root\";\n".to_owned(),
            // Lists that only package managers with pictures and translations read.
            "Acquire::Languages \"none\";\n".to_owned(),
            ["DEP-11", "DEP-11-icons-small", "DEP-11-icons", "DEP-11-icons-hidpi", "CNF"]
                .map(|list| format!("Acquire::IndexTargets::deb::{list}::DefaultEnabled \"false\";\n"))
                .concat(),
        ];
        let file = directory.join("apt.conf");
        fs::write(&file, settings.concat()).during("write", &file)?;
        Ok(Self { directory })
    }

    pub(crate) fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.arg("-c").arg(self.directory.join("apt.conf")).args(words);
        command
    }

    /// Downloads the archives of a source package, of the newest version that the mirror actually has. Returns the version.
    pub(crate) fn download_source(&self, package: &str, directory: &Path) -> Outcome<String> {
        let listed = run::output(&mut self.command("apt-cache", &["showsrc", "--only-source", package]))?;
        let mut failures = Vec::new();
        for version in versions(&listed) {
            let wanted = format!("{package}={version}");
            let words = ["source", "-q", "--download-only", "--tar-only", "--only-source", &wanted];
            match run::output(self.command("apt-get", &words).current_dir(directory)) {
                Ok(_) => return Ok(version),
                // A mirror's index may name versions that its pool no longer has.
                Err(failure) => failures.push(failure.to_string()),
            }
        }
        fail(format!("the mirror has no sources of {package}\n{}", failures.join("\n")))
    }

    pub(crate) fn remove(&self) -> Outcome {
        remove::delete(&self.directory)
    }
}

fn apt_source_line(suite: &str, kind: &str, keys: &str, mirror: &str) -> String {
    format!("{kind} [signed-by={keys}] {mirror} {suite} main\n")
}

/// The version of the sources, as the package spells it.
pub(crate) fn version() -> Outcome<String> {
    let file = llvm_source()?.join("VERSION");
    let version = fs::read_to_string(&file).during("read", &file)?;
    Ok(version.trim().to_owned())
}

/// LLVM's records as JSON (570 MB); the caller deletes the file.
pub(crate) fn json() -> Outcome<PathBuf> {
    let source = llvm_source()?;
    let output = paths::scratch("isa-json");
    fs::create_dir_all(&output).during("create", &output)?;
    let (userland, _lock) = setup::ensure(Part::Tests)?;
    let machine = userland.is_machine();
    let (llvm, out) =
        if machine { (source.as_path(), output.as_path()) } else { (Path::new(INSIDE), Path::new(OUTPUT)) };
    let target = llvm.join("llvm/lib/Target/AMDGPU");
    let mut command = userland.command(&target, "llvm-tblgen-23");
    command.arg("-I").arg(llvm.join("llvm/include")).arg("-I").arg(&target);
    command.args(["--dump-json", "AMDGPU.td", "-o"]).arg(out.join("amdgpu.json"));
    if !machine {
        let namespace = userland
            .namespace()
            .with(Mount::ReadOnly { source, target: userland.outside(INSIDE) })
            .with(Mount::Bind { source: output.clone(), target: userland.outside(OUTPUT) });
        command = namespace.wrap(&command);
    }
    println!("Dumping LLVM's records (about two minutes)");
    run::output(&mut command)?;
    Ok(output.join("amdgpu.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_tried_from_the_newest() {
        let text =
            "Package: x\nVersion: 1:23.1.1-2\n\nVersion: 1:23.1.10-1\n\nVersion: 1:23.1.1~rc2-1\nVersion: 1:23.1.1-2\n";
        assert_eq!(versions(text), ["1:23.1.10-1", "1:23.1.1-2", "1:23.1.1~rc2-1"]);
    }

    #[test]
    fn a_list_without_versions_is_empty() {
        assert!(versions("E: nothing\n").is_empty());
    }
}
