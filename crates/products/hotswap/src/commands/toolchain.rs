//! `hotswap toolchain --files`: the files that a compile through HotSwap reads besides its sources, for build systems that
//! want them declared.
//!
//! The closure of a program: HotSwap's installation, the real clang with the tools that it starts, its resource directory, the
//! device libraries, HIP's headers and library, and the shared libraries of all those programs. Every path is printed once,
//! sorted; links are followed by what they lead to.
//!
//! Absent on purpose: headers and libraries of the host system, which `-MD` and the sysroot of the build declare.

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use crate::work::{probe, text};
use clap::Args;
use hotswap_files::ScratchDirectory;
use hotswap_report::{Diagnostic, codes};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct ToolchainArguments {
    /// Print the files that this program needs: clang, clang++, or the path of a clang
    #[arg(long, value_name = "PROGRAM", required = true)]
    files: String,
    #[command(flatten)]
    output: OutputOptions,
}

/// Tools of LLVM that a compile, a device link and a host link start; those that a version does not have are left out.
const TOOLS: &[&str] = &[
    "ld.lld",
    "lld",
    "clang-offload-bundler",
    "clang-linker-wrapper",
    "llvm-offload-binary",
    "clang-offload-packager",
    "llvm-objcopy",
    "llvm-link",
    "llvm-ar",
    "opt",
    "llc",
];

/// Directories of the installation that a build reads.
const INSTALLED: &[&str] = &["bin", "libexec/hotswap", "lib/hotswap", "share/hotswap", "include/hotswap"];

pub(crate) fn run(arguments: &ToolchainArguments) -> Result<CommandOutcome, Diagnostic> {
    let scratch = ScratchDirectory::temporary("hotswap-toolchain-")?;
    let mut closure = FileClosure { scratch: scratch.path(), files: BTreeSet::new() };
    let prefix = probe::prefix()?;
    INSTALLED.iter().for_each(|directory| closure.add_tree(&prefix.join(directory)));
    let clang = clang(&arguments.files, &prefix, scratch.path())?;
    closure.add_compiler(&clang);
    for program in ["bin/hotswap", "bin/hotswap-clang", "libexec/hotswap/lld"] {
        closure.add_program(&prefix.join(program));
    }
    let files: Vec<String> = closure.files.iter().map(|path| path.display().to_string()).collect();
    Ok(match arguments.output.format {
        OutputFormat::Json => text::json(&json!({ "schema": 1, "clang": clang.display().to_string(), "files": files })),
        OutputFormat::Text => files.iter().map(|file| text::plain(file) + "\n").collect(),
    }
    .into())
}

/// The real clang for the name: the wrapper's choice for `clang` and `clang++`, else that file.
fn clang(name: &str, prefix: &Path, scratch: &Path) -> Result<PathBuf, Diagnostic> {
    let wrapper = match name {
        "clang" => "bin/hotswap-clang",
        "clang++" => "bin/hotswap-clang++",
        path if Path::new(path).is_absolute() && Path::new(path).is_file() => return Ok(path.into()),
        other => {
            let what = format!("`{other}` is neither clang nor clang++ nor an absolute path of a program");
            return Err(Diagnostic::error(codes::USAGE, what));
        }
    };
    let chosen = probe::chosen_clang(scratch, &prefix.join(wrapper));
    chosen.map(|clang| clang.path).map_err(|reason| Diagnostic::error(codes::NO_CLANG, reason))
}

/// Files, each with the files that its links lead to.
struct FileClosure<'a> {
    scratch: &'a Path,
    files: BTreeSet<PathBuf>,
}

impl FileClosure<'_> {
    /// A file, and each link on the way to it.
    fn add(&mut self, path: &Path) {
        let mut next = path.to_owned();
        // A cycle of links ends it, too.
        while next.symlink_metadata().is_ok() && self.files.insert(next.clone()) {
            let Ok(text) = fs::read_link(&next) else { break };
            next = next.parent().unwrap_or(Path::new("/")).join(text);
        }
        if let Ok(real) = path.canonicalize() {
            self.files.insert(real);
        }
        self.files.retain(|path| !path.components().any(|part| part.as_os_str() == ".."));
    }

    /// All files below a directory.
    fn add_tree(&mut self, directory: &Path) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) { self.add_tree(&path) } else { self.add(&path) }
        }
    }

    /// A program and the shared libraries that the dynamic loader names for it.
    fn add_program(&mut self, path: &Path) {
        if !path.is_file() {
            return;
        }
        self.add(path);
        let listed = probe::loaded_libraries(self.scratch, path);
        listed.iter().for_each(|library| self.add(library));
    }

    /// Clang's configuration files beside the compiler, with the files that they include.
    fn add_settings(&mut self, clang: &Path) {
        let places: BTreeSet<PathBuf> = [Some(clang.to_owned()), clang.canonicalize().ok()]
            .into_iter()
            .flatten()
            .filter_map(|path| path.parent().map(Path::to_owned))
            .collect();
        for entry in places.iter().filter_map(|place| fs::read_dir(place).ok()).flatten().flatten() {
            if entry.path().extension().is_some_and(|end| end == "cfg") {
                self.add_settings_file(&entry.path());
            }
        }
    }

    /// A configuration file; `@FILE` in it names another one, relative to its directory.
    fn add_settings_file(&mut self, path: &Path) {
        let is_new = !self.files.contains(path);
        self.add(path);
        let Some(bytes) = fs::read(path).ok().filter(|_| is_new) else { return };
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii_start().starts_with(b"#"));
        for word in lines.flat_map(hotswap_files::tokenize_gnu) {
            if let Some(name) = word.to_str().and_then(|word| word.strip_prefix('@')) {
                self.add_settings_file(&path.parent().unwrap_or(Path::new("/")).join(name));
            }
        }
    }

    fn add_compiler(&mut self, clang: &Path) {
        self.add_program(clang);
        self.add_settings(clang);
        for name in TOOLS {
            let answer = self.ask(clang, &[&format!("-print-prog-name={name}")]);
            let tool = PathBuf::from(answer);
            if tool.is_absolute() {
                self.add_program(&tool);
            }
        }
        let resources = PathBuf::from(self.ask(clang, &["-print-resource-dir"]));
        if resources.is_absolute() {
            self.add_tree(&resources);
        }
        let said =
            probe::run(self.scratch, clang, &["-v", "-E", "-x", "hip", "-nogpuinc", "-nogpulib", "/dev/null"]).stderr;
        let found = said.lines().find_map(|line| line.trim().strip_prefix("Found HIP installation: "));
        let root = found.and_then(|line| line.split(", version ").next()).map(PathBuf::from);
        for root in root.iter() {
            self.add_tree(&root.join("include/hip"));
            self.add_tree(&root.join("amdgcn"));
            // The version, by which clang recognises the directory.
            self.add_tree(&root.join("share/hip"));
            self.add(&root.join("bin/.hipVersion"));
        }
        let hip = PathBuf::from(self.ask(clang, &["-print-file-name=libamdhip64.so"]));
        if hip.is_absolute() {
            self.add_program(&hip);
        }
        // The plug-in by which GNU ld links bitcode (-flto).
        let real = clang.canonicalize().unwrap_or_else(|_| clang.to_owned());
        if let Some(root) = real.parent().and_then(Path::parent) {
            self.add_program(&root.join("lib/LLVMgold.so"));
        }
    }

    fn ask(&self, clang: &Path, arguments: &[&str]) -> String {
        probe::run(self.scratch, clang, arguments).stdout.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_clang_are_in_the_list_with_what_they_include() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir_all(at("bin/deep")).unwrap();
        fs::write(at("bin/clang++.cfg"), "# @none.cfg\n-O2 @deep/more.cfg\n").unwrap();
        fs::write(at("bin/deep/more.cfg"), "'@with blank.cfg' @../bin/clang++.cfg\n").unwrap();
        fs::write(at("bin/deep/with blank.cfg"), "").unwrap();
        let mut closure = FileClosure { scratch: &root, files: BTreeSet::new() };
        closure.add_settings(&at("bin/clang"));
        let names = ["bin/clang++.cfg", "bin/deep/more.cfg", "bin/deep/with blank.cfg"];
        assert_eq!(closure.files, names.map(at).into());
    }

    #[test]
    fn links_are_in_the_list_with_what_they_lead_to() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir(at("d")).unwrap();
        fs::write(at("d/real"), "").unwrap();
        std::os::unix::fs::symlink("d/real", at("second")).unwrap();
        std::os::unix::fs::symlink("second", at("first")).unwrap();
        std::os::unix::fs::symlink("loop", at("loop")).unwrap();
        let mut closure = FileClosure { scratch: &root, files: BTreeSet::new() };
        closure.add(&at("first"));
        assert_eq!(closure.files, ["d/real", "first", "second"].map(at).into());
        closure.add_tree(&root);
        assert!(closure.files.contains(&at("loop")) && closure.files.len() == 4, "{:?}", closure.files);
        closure.add_program(Path::new("/bin/sh"));
        assert!(closure.files.iter().any(|path| path.to_string_lossy().contains("libc.so")), "{:?}", closure.files);
    }
}
