//! The build for packages, and the installation that they are made of.
//!
//! Invariants: source paths of the workspace, of the registry's crates and of the compiler are remapped to fixed names, in Rust
//! and in C. Nothing is taken from another build.

use super::sysroot::Sysroot;
use crate::built::{Built, Profile};
use crate::c_compiler::CCompiler;
use crate::outcome::{During, Outcome, fail};
use crate::{install, paths, registry, remove, run, sources};
use hotswap_userland::{EMULATED_DIRECTORY, EMULATED_LIBRARY};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A machine, by the names of its users.
pub(super) struct Machine {
    /// In names of tarballs.
    pub(super) linux: &'static str,
    pub(super) debian: &'static str,
    /// The beginning of the names of the GNU tools for it, where it is not this machine.
    pub(super) tools: &'static str,
}

/// Rust's, Linux's and Debian's names.
const MACHINES: &[(&str, Machine)] = &[
    ("x86_64-unknown-linux-gnu", Machine { linux: "x86_64", debian: "amd64", tools: "x86_64-linux-gnu-" }),
    ("aarch64-unknown-linux-gnu", Machine { linux: "aarch64", debian: "arm64", tools: "aarch64-linux-gnu-" }),
];

impl Machine {
    /// The name of Debian's directory for libraries.
    pub(super) fn triplet(&self) -> &'static str {
        self.tools.trim_end_matches('-')
    }

    /// The machine of that target, or this one.
    pub(super) fn of(target: Option<&str>) -> Outcome<&'static Self> {
        let own = format!("{}-unknown-linux-gnu", env::consts::ARCH);
        let name = target.unwrap_or(&own);
        let found = MACHINES.iter().find(|(target, _)| *target == name).map(|(_, machine)| machine);
        found.map_or_else(|| fail(format!("there are no packages for {name}")), Ok)
    }
}

/// The time of all files: `SOURCE_DATE_EPOCH`, else that of the sources.
pub(super) fn epoch() -> Outcome<String> {
    if let Ok(time) = env::var("SOURCE_DATE_EPOCH") {
        return Ok(time);
    }
    sources::time(paths::workspace())
}

/// The machine and the glibc that a build is for.
pub(super) struct BuildTarget<'b> {
    /// Another machine than this one, by Rust's name.
    pub(super) target: Option<&'b str>,
    /// Another glibc than this machine's.
    pub(super) sysroot: Option<&'b Sysroot>,
}

impl BuildTarget<'_> {
    /// A build for this machine with its own glibc.
    pub(super) const NATIVE: BuildTarget<'static> = BuildTarget { target: None, sysroot: None };

    /// The C compiler that links libraries.
    fn compiler(&self) -> Outcome<CCompiler> {
        let compiler = compiler_for(self.target)?;
        let arguments = self.sysroot.into_iter().flat_map(Sysroot::link_arguments);
        Ok(compiler.with_arguments(arguments))
    }
}

/// The C compiler for a machine, with its own libraries.
pub(super) fn compiler_for(target: Option<&str>) -> Outcome<CCompiler> {
    match target {
        Some(_) => Ok(CCompiler::cross(Machine::of(target)?.tools)),
        None => CCompiler::from_env(),
    }
}

/// Builds the sources in `target_directory` and installs them below `stage`, which is emptied.
pub(super) fn lay_out(
    sources: &Path,
    target_directory: &Path,
    profile: Profile,
    build: &BuildTarget,
    stage: &Path,
) -> Outcome {
    let compiler = build.compiler()?;
    let mut command = Command::new(paths::cargo());
    if let Some(target) = build.target {
        let variable = target.to_uppercase().replace('-', "_");
        command.env(format!("CARGO_TARGET_{variable}_LINKER"), &compiler.words()[0]);
    }
    command.arg("build").args(["--locked", "--profile", profile.name(), "--target-dir"]).arg(target_directory);
    command.args(build.target.iter().flat_map(|target| ["--target", target]));
    command.args(install::PACKAGES.iter().flat_map(|name| ["-p", name]));
    set_flags(&mut command, &path_maps(sources, target_directory, build.sysroot)?, build.sysroot)?;
    let built = Built::of(command, sources)?;
    remove::delete(stage)?;
    install::lay_out_from(sources, stage, None, &built, &compiler)?;
    strip(&stage.join(EMULATED_DIRECTORY).join(EMULATED_LIBRARY), &compiler, &["--strip-unneeded"])?;
    // rustc's bitcode is most of it, and no linker of its users reads it.
    let options = ["-D", "--strip-debug", "--remove-section=.llvmbc", "--remove-section=.llvmcmd"];
    strip(&stage.join("lib/libhotswap.a"), &compiler, &options)
}

/// Deletes the parts of a library that its users do not need.
fn strip(library: &Path, compiler: &CCompiler, options: &[&str]) -> Outcome {
    run::output(compiler.tool("objcopy").args(options).arg(library)).map(drop)
}

/// A path of this machine, and what the packages have in its place.
struct PathMap {
    from: PathBuf,
    to: String,
}

/// The paths that a build can leave in its files. Later ones win where one path is below another.
fn path_maps(sources: &Path, target_directory: &Path, sysroot: Option<&Sysroot>) -> Outcome<Vec<PathMap>> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let rust = run::output(Command::new("rustc").arg("--print=sysroot").current_dir(sources))?;
    let mut maps = vec![PathMap { from: rust.trim().into(), to: "/rust".to_owned() }];
    maps.extend(home.map(|from| PathMap { from, to: "/cargo".to_owned() }));
    maps.push(PathMap { from: sources.to_owned(), to: "/hotswap".to_owned() });
    maps.push(PathMap { from: target_directory.to_owned(), to: "/target".to_owned() });
    maps.extend(sysroot.map(|sysroot| PathMap { from: sysroot.directory().to_owned(), to: "/sysroot".to_owned() }));
    // Crates are in a directory with the name of a registry, or vendored.
    for package in registry::metadata(sources)?.packages.iter().filter(|package| package.source.is_some()) {
        let from = package.manifest_path.parent().map(PathBuf::from).unwrap_or_default();
        maps.push(PathMap { from, to: format!("/crates/{}-{}", package.name, package.version) });
    }
    Ok(maps)
}

/// Sets the flags of compilers: those that replace paths, and those for another glibc.
fn set_flags(command: &mut Command, maps: &[PathMap], sysroot: Option<&Sysroot>) -> Outcome {
    let mut rust: Vec<String> =
        maps.iter().map(|map| format!("--remap-path-prefix={}={}", map.from.display(), map.to)).collect();
    let mut c: Vec<String> =
        maps.iter().map(|map| format!("-ffile-prefix-map={}={}", map.from.display(), map.to)).collect();
    if let Some(sysroot) = sysroot {
        rust.extend(sysroot.link_arguments().iter().map(|argument| format!("-Clink-arg={argument}")));
        c.extend(sysroot.compile_arguments());
    }
    // One flag for each path with a separator that no path has.
    command.env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"));
    // Paths may have blanks: the crates that compile C split the flags as a shell does where this is set.
    let c = shell_words::join(&c);
    command.env("CFLAGS", &c).env("CXXFLAGS", &c).env("CC_SHELL_ESCAPED_FLAGS", "1");
    // A compiler cache would mix builds of two directories.
    command.env_remove("RUSTC_WRAPPER").env("SOURCE_DATE_EPOCH", epoch()?);
    Ok(())
}

/// All files and links below a directory, sorted.
pub(super) fn entries(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).during("read", &directory)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}
