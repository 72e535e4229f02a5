//! Debian packages of a staged installation.
//!
//! Each package is a row: the paths that it has, and its description. A row of which no file was staged makes no package.

use super::VERSION;
use super::stage::{self, Machine};
use crate::outcome::{During, Outcome, fail};
use crate::{licences, packages, paths, remove, run};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the packages are made, for which machine, and how much they are compressed.
pub(super) struct Destination<'d> {
    pub(super) output: &'d Path,
    pub(super) machine: &'d Machine,
    pub(super) level: u32,
}

struct DebPackage {
    name: &'static str,
    /// Beginnings of the paths that it has; the first row that has a path takes it.
    paths: &'static [&'static str],
    section: &'static str,
    recommends: &'static str,
    suggests: &'static str,
    synopsis: &'static str,
    description: &'static str,
    /// Packages of ours that it needs, of the same version.
    needs: &'static [&'static str],
    /// The name and the version of its shared library, if it is for other packages.
    library: Option<&'static str>,
    /// The package of the workspace whose crates are in its files, where these are not those of the tools.
    linked_package: Option<&'static str>,
}

#[rustfmt::skip]
const PACKAGES: &[DebPackage] = &[
    // The library for programs, where it is built.
    DebPackage {
        name: "libhotswap0",
        paths: &["lib/libhotswap.so.0"],
        section: "libs", recommends: "", suggests: "",
        synopsis: "AMD GPU code in programs: shared library",
        description: "The C interface of HotSwap: reads fat binaries, and makes code for further GPUs.",
        needs: &[],
        library: Some("libhotswap 0"),
        linked_package: Some("hotswap-c"),
    },
    DebPackage {
        name: "libhotswap-dev",
        paths: &["lib/libhotswap", "lib/pkgconfig/", "include/hotswap.h"],
        section: "libdevel", recommends: "", suggests: "",
        synopsis: "AMD GPU code in programs: headers and static library",
        description: "Development files of the C interface of HotSwap, which reads fat binaries and makes code for further GPUs.",
        needs: &["libhotswap0"],
        library: None,
        linked_package: Some("hotswap-c"),
    },
    DebPackage {
        name: "hotswap",
        paths: &[""],
        section: "devel",
        // clang-offload-bundler is in clang-tools, and stops without llvm-objcopy, which is in llvm. CMake's HIP links compiler-rt.
        recommends: "clang-22 | clang-23, clang-tools-22 | clang-tools-23, lld-22 | lld-23, llvm-22 | llvm-23, \
                     libclang-rt-22-dev | libclang-rt-23-dev, libamdhip64-dev, rocm-device-libs-22",
        suggests: "cmake, hipcc",
        synopsis: "makes one HIP build run on more AMD GPUs",
        description: "HotSwap wraps the HIP compiler, takes the device code of one GPU at link time, and adds code for others to \
                      the fat binary. The command hotswap lists, extracts, checks and changes device code in programs.",
        needs: &[],
        library: None,
        linked_package: None,
    },
];

/// Makes every package that has files.
pub(super) fn make_all(stage: &Path, destination: &Destination<'_>) -> Outcome {
    if which::which("dpkg-deb").is_err() {
        println!("No Debian packages are made: dpkg-deb is not on PATH");
        return Ok(());
    }
    let files = relative_files(stage)?;
    for (number, package) in PACKAGES.iter().enumerate() {
        let own: Vec<&String> =
            files.iter().filter(|file| package.has(file) && !is_in_earlier_package(file, number)).collect();
        if own.is_empty() {
            println!("{}: none of its files was built, so there is no package", package.name);
            continue;
        }
        package.make(stage, destination, &own)?;
    }
    Ok(())
}

fn is_in_earlier_package(file: &str, number: usize) -> bool {
    PACKAGES[..number].iter().any(|earlier| earlier.has(file))
}

/// All files and links below a directory, relative to it, sorted.
fn relative_files(directory: &Path) -> Outcome<Vec<String>> {
    let mut names = Vec::new();
    for path in stage::entries(directory)? {
        names.push(path.strip_prefix(directory)?.display().to_string());
    }
    names.sort();
    Ok(names)
}

impl DebPackage {
    /// Where a system has the licences of the crates in it.
    fn notices(&self) -> String {
        let package = if self.linked_package.is_some() { self.name } else { "hotswap" };
        format!("/usr/share/doc/{package}/THIRD-PARTY-NOTICES")
    }

    fn has(&self, file: &str) -> bool {
        self.paths.iter().any(|path| file.starts_with(path))
    }

    fn make(&self, stage: &Path, destination: &Destination<'_>, files: &[&String]) -> Outcome {
        let Destination { output, machine, level } = *destination;
        let root = paths::scratch("dist-deb").join(self.name);
        remove::delete(&root)?;
        for file in files {
            self.place(&stage.join(file), &root.join("usr").join(debian_path(file, machine)))?;
        }
        adapt_pkg_config(&root, machine)?;
        let doc = root.join("usr/share/doc").join(self.name);
        fs::create_dir_all(&doc).during("create", &doc)?;
        write(&doc.join("copyright"), &copyright(self.notices())?)?;
        if let Some(package) = self.linked_package {
            let crates = licences::Crates::of(paths::workspace(), &[package])?;
            write(&doc.join("THIRD-PARTY-NOTICES"), &crates.notices()?)?;
        }
        let log = doc.join("changelog");
        write(&log, &changelog(&stage::epoch()?)?)?;
        run::output(Command::new("gzip").args(["-9n", "-f"]).arg(&log))?;
        compress_pages(&root)?;
        self.control(&root, machine)?;
        set_modes(&root)?;
        let name = format!("{}_{VERSION}_{}.deb", self.name, machine.debian);
        let mut command = Command::new("dpkg-deb");
        command.env("SOURCE_DATE_EPOCH", stage::epoch()?);
        // xz everywhere: older releases cannot read zstd.
        run::show(
            command
                .args(["--root-owner-group", "-Zxz", &format!("-z{level}"), "--build"])
                .arg(&root)
                .arg(output.join(name)),
        )
    }

    fn place(&self, source: &Path, target: &Path) -> Outcome {
        let directory = target.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(directory).during("create", directory)?;
        if source.is_symlink() {
            return std::os::unix::fs::symlink(fs::read_link(source)?, target).during("write", target);
        }
        fs::copy(source, target).during("write", target)?;
        // Programs and nothing else: the dynamic loader runs no library, and an archive needs no table of machine symbols.
        let is_program = ["/bin/", "/libexec/"].iter().any(|part| target.to_string_lossy().contains(part));
        let mode = if is_program { 0o755 } else { 0o644 };
        fs::set_permissions(target, fs::Permissions::from_mode(mode)).during("write", target)
    }

    fn control(&self, root: &Path, machine: &Machine) -> Outcome {
        let directory = root.join("DEBIAN");
        fs::create_dir_all(&directory).during("create", &directory)?;
        let size: u64 = packages::files(root)?.iter().map(|(_, size)| size.div_ceil(1024)).sum();
        let own = self.needs.iter().map(|name| format!("{name} (= {VERSION})"));
        let depends: Vec<String> = libraries(root)?.into_iter().chain(own).collect();
        let mut text = format!(
            "Package: {}\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: {}\nInstalled-Size: {size}\n",
            self.name,
            machine.debian,
            maintainer()
        );
        for (field, value) in
            [("Depends", depends.join(", ").as_str()), ("Recommends", self.recommends), ("Suggests", self.suggests)]
        {
            if !value.is_empty() {
                let _ = writeln!(text, "{field}: {value}");
            }
        }
        if !self.section.starts_with("devel") {
            text += "Multi-Arch: same\n";
        }
        let _ = writeln!(text, "Section: {}\nPriority: optional\nDescription: {}", self.section, self.synopsis);
        for line in wrapped(self.description, 76) {
            let _ = writeln!(text, " {line}");
        }
        write(&directory.join("control"), &text)?;
        if let Some(library) = self.library {
            write(&directory.join("shlibs"), &format!("{library} {} (>= {VERSION})\n", self.name))?;
            write(&directory.join("triggers"), "activate-noawait ldconfig\n")?;
        }
        let sums = sums(root)?;
        write(&directory.join("md5sums"), &sums)
    }
}

/// Where Debian has what is elsewhere in a prefix of one's own. Libraries for programs are in the machine's directory, so that those
/// for several machines can be installed together.
fn debian_path(file: &str, machine: &Machine) -> String {
    let of_machine = format!("lib/{}/", machine.triplet());
    for beginning in ["lib/libhotswap", "lib/pkgconfig/"] {
        if file.starts_with(beginning) {
            return file.replacen("lib/", &of_machine, 1);
        }
    }
    file.replacen("share/zsh/site-functions/", "share/zsh/vendor-completions/", 1)
}

/// The file for pkg-config is one directory deeper than in a prefix, and the libraries are in the machine's directory.
fn adapt_pkg_config(root: &Path, machine: &Machine) -> Outcome {
    let path = root.join("usr/lib").join(machine.triplet()).join("pkgconfig/hotswap.pc");
    if !path.exists() {
        return Ok(());
    }
    let mut text = fs::read_to_string(&path).during("read", &path)?;
    let libraries = format!("libdir=${{prefix}}/lib/{}", machine.triplet());
    for (old, new) in [
        ("PREFIX/lib/pkgconfig", &*format!("PREFIX/lib/{}/pkgconfig", machine.triplet())),
        ("prefix=${pcfiledir}/../..\n", "prefix=${pcfiledir}/../../..\n"),
        ("libdir=${prefix}/lib\n", &*format!("{libraries}\n")),
    ] {
        if !text.contains(old) {
            return fail(format!("{} has no line {old:?}", path.display()));
        }
        text = text.replacen(old, new, 1);
    }
    write(&path, &text)
}

/// The modes that a package has on every system, whatever the umask of the build: programs and directories can be entered and
/// executed by all, other files can be read.
fn set_modes(root: &Path) -> Outcome {
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_symlink() {
            continue;
        }
        let mode = fs::metadata(&path).during("read", &path)?.permissions().mode();
        let is_open = path.is_dir() || mode & 0o111 != 0;
        let permissions = fs::Permissions::from_mode(if is_open { 0o755 } else { 0o644 });
        fs::set_permissions(&path, permissions).during("write", &path)?;
        if path.is_dir() {
            open.extend(fs::read_dir(&path).during("read", &path)?.flatten().map(|entry| entry.path()));
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).during("write", path)
}

/// Lines of at most that width.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(word.to_owned());
        } else {
            let blank = if line.is_empty() { "" } else { " " };
            let _ = write!(line, "{blank}{word}");
        }
    }
    lines
}

/// Man pages are compressed in Debian; links to them get the same ending.
fn compress_pages(root: &Path) -> Outcome {
    let pages = stage::entries(root)?;
    for page in pages.iter().filter(|path| path.to_string_lossy().contains("/man/man1/")) {
        if let Ok(text) = fs::read_link(page) {
            fs::remove_file(page).during("delete", page)?;
            std::os::unix::fs::symlink(gzip_file_path(&text), gzip_file_path(page)).during("write", page)?;
        } else {
            run::output(Command::new("gzip").args(["-9n", "-f"]).arg(page))?;
        }
    }
    Ok(())
}

fn gzip_file_path(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.gz", path.display()))
}

/// The packages of the shared libraries, by Debian's own tool where the machine has it; else the C library's.
fn libraries(root: &Path) -> Outcome<Vec<String>> {
    let programs: Vec<PathBuf> =
        stage::entries(root)?.into_iter().filter(|path| !path.is_symlink() && is_elf(path)).collect();
    if programs.is_empty() {
        return Ok(Vec::new());
    }
    let directory = tempfile::tempdir()?;
    let debian = directory.path().join("debian");
    fs::create_dir(&debian).during("create", &debian)?;
    write(&debian.join("control"), "Source: hotswap\n\nPackage: hotswap\nArchitecture: any\n")?;
    let mut command = Command::new("dpkg-shlibdeps");
    command.current_dir(directory.path()).args(["-O", "--ignore-missing-info"]).args(&programs);
    let text = run::output(&mut command).unwrap_or_else(|_| "shlibs:Depends=libc6, libgcc-s1".to_owned());
    let list = text.trim().strip_prefix("shlibs:Depends=").unwrap_or_default();
    Ok(list.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn is_elf(path: &Path) -> bool {
    fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF") && !path.to_string_lossy().ends_with(".o"))
}

fn sums(root: &Path) -> Outcome<String> {
    let mut command = Command::new("sh");
    let script = "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 -r md5sum";
    run::output(command.args(["-c", script]).current_dir(root))
}

/// Debian's form of the licence: it has the Apache licence itself, and not LLVM's exceptions. The notices of the
/// crates have the rest.
fn copyright(notices: String) -> Outcome<String> {
    let path = paths::workspace().join("LICENSE");
    let licence = fs::read_to_string(&path).during("read", &path)?;
    let Some((_, exceptions)) = licence.split_once("---- LLVM Exceptions to the Apache 2.0 License ----") else {
        return fail("LICENSE has no part with LLVM's exceptions");
    };
    let mut text = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: HotSwap\n\
                    Comment: The licences of the crates in the programs are in {notices}.\n\n\
                    Files: *\nCopyright: 2026 The HotSwap developers\nLicense: Apache-2.0 with LLVM-exception\n \
                    On Debian systems the Apache License, Version 2.0, is in /usr/share/common-licenses/Apache-2.0.\n .\n"
    );
    for line in exceptions.trim().lines() {
        let line = line.trim_end();
        let _ = writeln!(text, " {}", if line.is_empty() { "." } else { line });
    }
    Ok(text)
}

/// The maintainer of packages, by the variables that Debian's tools read.
fn maintainer() -> String {
    format!(
        "{} <{}>",
        environment_or_default("DEBFULLNAME", "HotSwap developers"),
        environment_or_default("DEBEMAIL", "hotswap@example.org")
    )
}

fn environment_or_default(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn changelog(epoch: &str) -> Outcome<String> {
    let date = run::output(Command::new("date").args(["-u", "-R", "-d", &format!("@{epoch}")]).env("LC_ALL", "C"))?;
    if date.trim().is_empty() {
        return fail("date printed nothing");
    }
    Ok(format!(
        "hotswap ({VERSION}) unstable; urgency=medium\n\n  * See /usr/share/doc/hotswap/CHANGELOG.md.\n\n -- {}  {}\n",
        maintainer(),
        date.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_one_package() {
        let of = |file: &str| PACKAGES.iter().find(|package| package.has(file)).map(|package| package.name);
        assert_eq!(of("bin/hotswap"), Some("hotswap"));
        assert_eq!(of("lib/hotswap/libhotswap_registry.a"), Some("hotswap"));
        assert_eq!(of("lib/libhotswap.so.0"), Some("libhotswap0"));
        assert_eq!(of("lib/libhotswap.so"), Some("libhotswap-dev"));
        let machine = Machine::of(Some("aarch64-unknown-linux-gnu")).unwrap();
        for (file, debian) in [
            ("share/zsh/site-functions/_hotswap", "share/zsh/vendor-completions/_hotswap"),
            ("lib/libhotswap.so.0", "lib/aarch64-linux-gnu/libhotswap.so.0"),
            ("lib/pkgconfig/hotswap.pc", "lib/aarch64-linux-gnu/pkgconfig/hotswap.pc"),
            ("lib/hotswap/libhotswap_registry.a", "lib/hotswap/libhotswap_registry.a"),
            ("libexec/hotswap/lld", "libexec/hotswap/lld"),
        ] {
            assert_eq!(debian_path(file, machine), debian);
        }
    }

    /// dpkg-deb refuses a control directory that others cannot read.
    #[test]
    fn a_package_has_the_same_modes_whatever_the_umask() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("root");
        for (name, mode) in [("DEBIAN/control", 0o600), ("usr/bin/program", 0o700), ("usr/share/text", 0o640)] {
            let file = root.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            let text = "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: m <m@example.org>\nDescription: d\n";
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        for name in ["DEBIAN", "usr", "usr/bin", "usr/share"] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o700)).unwrap();
        }
        let has_tool = which::which("dpkg-deb").is_ok();
        let package = directory.path().join("p.deb");
        let build = || run::output(Command::new("dpkg-deb").arg("--build").arg(&root).arg(&package));
        assert!(!has_tool || build().is_err(), "dpkg-deb takes a control directory of mode 700");
        set_modes(&root).unwrap();
        let mode = |name: &str| fs::metadata(root.join(name)).unwrap().permissions().mode() & 0o777;
        let modes = ["DEBIAN", "DEBIAN/control", "usr/bin", "usr/bin/program", "usr/share/text"].map(mode);
        assert_eq!(modes, [0o755, 0o644, 0o755, 0o755, 0o644]);
        assert!(!has_tool || build().is_ok());
    }

    #[test]
    fn descriptions_fit_a_terminal() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        for package in PACKAGES {
            assert!(package.synopsis.len() < 80 && !package.synopsis.starts_with("a "), "{}", package.name);
            assert!(wrapped(package.description, 76).iter().all(|line| line.len() <= 76));
        }
    }
}
