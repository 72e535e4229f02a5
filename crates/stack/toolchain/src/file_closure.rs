//! The files that a compile through HotSwap reads besides its sources, for build systems that want them declared.
//!
//! The closure of a program: HotSwap's installation, the real clang with the tools that it starts, its resource directory, the
//! device libraries, HIP's headers and library, and the shared libraries of all those programs. Every path is printed once,
//! sorted; links are followed by what they lead to. What could not be read ends the command: a build that got a part of the list
//! would not be built again when the rest changes.
//!
//! Absent on purpose: headers and libraries of the host system, which `-MD` and the sysroot of the build declare.

use crate::probe;
use hotswap_files::{ScratchDirectory, reads};
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

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

/// The files of a compile by one compiler.
pub struct CompilerFiles {
    pub clang: PathBuf,
    /// Everything that a compile reads, sorted, each path once.
    pub files: BTreeSet<PathBuf>,
}

/// The files that compiles by `program` read: clang, clang++, or the path of a clang.
///
/// # Errors
/// [`codes::USAGE`] for another name, [`codes::NO_CLANG`] with the wrapper's reason, and the first file that cannot be read.
pub fn find_compiler_files(program: &str) -> Result<CompilerFiles, Diagnostic> {
    let scratch = ScratchDirectory::temporary("hotswap-toolchain-")?;
    let mut closure = FileClosure { scratch: scratch.path(), files: BTreeSet::new() };
    let prefix = probe::prefix()?;
    for directory in INSTALLED {
        closure.add_tree(&prefix.join(directory))?;
    }
    let clang = find_clang(program, &prefix, scratch.path())?;
    closure.add_compiler(&clang)?;
    for program in ["bin/hotswap", "bin/hotswap-clang", "libexec/hotswap/lld"] {
        closure.add_program(&prefix.join(program))?;
    }
    Ok(CompilerFiles { clang, files: closure.files })
}

/// The real clang for the name: the wrapper's choice for `clang` and `clang++`, else that file.
fn find_clang(name: &str, prefix: &Path, scratch: &Path) -> Result<PathBuf, Diagnostic> {
    let wrapper = match name {
        "clang" => "bin/hotswap-clang",
        "clang++" => "bin/hotswap-clang++",
        path if Path::new(path).is_absolute() && reads::is_regular(Path::new(path))? => return Ok(path.into()),
        other => {
            let what = format!("`{other}` is neither clang nor clang++ nor an absolute path of a program");
            return Err(Diagnostic::error(codes::USAGE, what));
        }
    };
    Ok(probe::chosen_clang(scratch, &prefix.join(wrapper))?.path)
}

/// Files, each with the files that its links lead to.
struct FileClosure<'a> {
    scratch: &'a Path,
    files: BTreeSet<PathBuf>,
}

impl FileClosure<'_> {
    /// A file, and each link on the way to it.
    fn add(&mut self, path: &Path) -> Result<(), Diagnostic> {
        let mut next = path.to_owned();
        while let Some(meta) = find_link_metadata(&next)? {
            // A cycle of links ends it, too.
            if !self.files.insert(next.clone()) || !meta.is_symlink() {
                break;
            }
            let text = fs::read_link(&next).map_err(|error| reads::unread_file(&next, &error))?;
            next = next.parent().unwrap_or(Path::new("/")).join(text);
        }
        self.files.extend(resolve_links(path)?);
        self.files.retain(|path| !path.components().any(|part| part.as_os_str() == ".."));
        Ok(())
    }

    /// All files below a directory, if there is one.
    fn add_tree(&mut self, directory: &Path) -> Result<(), Diagnostic> {
        for path in reads::paths_in(directory)? {
            let is_directory = find_link_metadata(&path)?.is_some_and(|meta| meta.is_dir());
            if is_directory { self.add_tree(&path)? } else { self.add(&path)? }
        }
        Ok(())
    }

    /// A program, if there is one, and the shared libraries that the dynamic loader names for it.
    fn add_program(&mut self, path: &Path) -> Result<(), Diagnostic> {
        if !reads::is_regular(path)? {
            return Ok(());
        }
        self.add(path)?;
        probe::loaded_libraries(self.scratch, path)?.iter().try_for_each(|library| self.add(library))
    }

    /// Clang's configuration files beside the compiler, with the files that they include.
    fn add_settings(&mut self, clang: &Path) -> Result<(), Diagnostic> {
        let programs = [Some(clang.to_owned()), resolve_links(clang)?];
        let places: BTreeSet<PathBuf> =
            programs.into_iter().flatten().filter_map(|path| path.parent().map(Path::to_owned)).collect();
        for place in &places {
            let files =
                reads::paths_in(place)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "cfg"));
            for file in files {
                self.add_settings_file(&file)?;
            }
        }
        Ok(())
    }

    /// A configuration file; `@FILE` in it names another one, relative to its directory.
    fn add_settings_file(&mut self, path: &Path) -> Result<(), Diagnostic> {
        let is_new = !self.files.contains(path);
        self.add(path)?;
        // Clang complains about one that is not there.
        if !is_new || !reads::is_regular(path)? {
            return Ok(());
        }
        let bytes = hotswap_files::read_file(path)?;
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii_start().starts_with(b"#"));
        for word in lines.flat_map(hotswap_files::tokenize_gnu) {
            if let Some(name) = word.to_str().and_then(|word| word.strip_prefix('@')) {
                self.add_settings_file(&path.parent().unwrap_or(Path::new("/")).join(name))?;
            }
        }
        Ok(())
    }

    fn add_compiler(&mut self, clang: &Path) -> Result<(), Diagnostic> {
        self.add_program(clang)?;
        self.add_settings(clang)?;
        for name in TOOLS {
            let tool = PathBuf::from(self.ask(clang, &[&format!("-print-prog-name={name}")])?);
            if tool.is_absolute() {
                self.add_program(&tool)?;
            }
        }
        let resources = PathBuf::from(self.ask(clang, &["-print-resource-dir"])?);
        if resources.is_absolute() {
            self.add_tree(&resources)?;
        }
        self.add_hip(clang)?;
        // The plug-in by which GNU ld links bitcode (-flto).
        let real = resolve_links(clang)?;
        if let Some(root) = real.as_deref().unwrap_or(clang).parent().and_then(Path::parent) {
            self.add_program(&root.join("lib/LLVMgold.so"))?;
        }
        Ok(())
    }

    /// HIP's files, where clang finds them.
    fn add_hip(&mut self, clang: &Path) -> Result<(), Diagnostic> {
        const VERBOSE: &[&str] = &["-v", "-E", "-x", "hip", "-nogpuinc", "-nogpulib", "/dev/null"];
        let said = probe::run(self.scratch, clang, VERBOSE)?.stderr;
        let found = said.lines().find_map(|line| line.trim().strip_prefix("Found HIP installation: "));
        if let Some(root) = found.and_then(|line| line.split(", version ").next()).map(Path::new) {
            self.add_tree(&root.join("include/hip"))?;
            self.add_tree(&root.join("amdgcn"))?;
            // The version, by which clang recognises the directory.
            self.add_tree(&root.join("share/hip"))?;
            self.add(&root.join("bin/.hipVersion"))?;
        }
        let hip = PathBuf::from(self.ask(clang, &["-print-file-name=libamdhip64.so"])?);
        if hip.is_absolute() { self.add_program(&hip) } else { Ok(()) }
    }

    fn ask(&self, clang: &Path, arguments: &[&str]) -> Result<String, Diagnostic> {
        Ok(probe::run(self.scratch, clang, arguments)?.stdout.trim().to_owned())
    }
}

/// The metadata of a file or link; `None` where nothing has that path.
fn find_link_metadata(path: &Path) -> Result<Option<fs::Metadata>, Diagnostic> {
    match fs::symlink_metadata(path) {
        Err(error) if reads::is_absent(&error) => Ok(None),
        meta => meta.map(Some).map_err(|error| reads::unread_file(path, &error)),
    }
}

/// The path without links; `None` where they lead nowhere or in a circle.
fn resolve_links(path: &Path) -> Result<Option<PathBuf>, Diagnostic> {
    match fs::canonicalize(path) {
        Err(error) if reads::is_absent(&error) || error.raw_os_error() == Some(libc::ELOOP) => Ok(None),
        real => real.map(Some).map_err(|error| reads::unread_file(path, &error)),
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
        closure.add_settings(&at("bin/clang")).unwrap();
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
        closure.add(&at("first")).unwrap();
        assert_eq!(closure.files, ["d/real", "first", "second"].map(at).into());
        closure.add_tree(&root).unwrap();
        assert!(closure.files.contains(&at("loop")) && closure.files.len() == 4, "{:?}", closure.files);
        closure.add_program(Path::new("/bin/sh")).unwrap();
        assert!(closure.files.iter().any(|path| path.to_string_lossy().contains("libc.so")), "{:?}", closure.files);
    }

    #[test]
    fn what_cannot_be_read_is_not_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
        let mut closure = FileClosure { scratch: &root, files: BTreeSet::new() };
        let below = root.join("loop/below");
        for unread in [
            closure.add(&below).unwrap_err(),
            closure.add_tree(&below).unwrap_err(),
            closure.add_program(&below).unwrap_err(),
            closure.add_settings(&below).unwrap_err(),
        ] {
            assert_eq!(unread.code, codes::CANNOT_READ);
            assert!(unread.to_string().contains("symbolic links"), "{unread}");
        }
        assert!(closure.add_tree(&root.join("absent")).is_ok() && closure.add_program(&root.join("absent")).is_ok());
    }
}
