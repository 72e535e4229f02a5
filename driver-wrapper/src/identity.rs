//! The identity of a toolchain: one hash of HotSwap, the real clang, the tools of the device link, their shared libraries,
//! and the device libraries. Compiler caches have it in their keys, since they see the wrapper instead of the compiler.
//!
//! Invariants: equal files have equal identities wherever they are and whenever they were written. A program or library
//! counts by its build ID, which linkers compute from the content, and any other file by its content.
//!
//! Absent on purpose: headers, which the preprocessor shows, and clang's configuration files, which lack code.

use crate::find::Clang;
use crate::store;
use hotswap_files::reads;
use hotswap_report::Diagnostic;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, Object};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Tools beside clang that make or change device code.
const TOOLS: [&str; 6] =
    ["clang", "lld", "clang-offload-bundler", "clang-linker-wrapper", "llvm-offload-binary", "llvm-objcopy"];
/// Directories of shared libraries, relative to that of the tools, then the system's.
const LIBRARIES: [&str; 5] =
    ["../lib", "../lib64", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
/// Directories of device libraries, relative to the root directory of a ROCm or of an LLVM.
const DEVICE_LIBRARIES: [&str; 2] = ["amdgcn/bitcode", "lib/amdgcn/bitcode"];

/// The directories that decide what a toolchain is.
#[derive(Debug)]
pub struct ToolchainFiles {
    files: BTreeSet<PathBuf>,
    /// The programs by the names under which they are started: a link may lead to another file later.
    programs: BTreeSet<PathBuf>,
}

impl ToolchainFiles {
    /// The files of the toolchain of a clang whose tools are in `tools`. `words` are arguments and variables' values that may
    /// name a ROCm or its device libraries.
    ///
    /// # Errors
    /// [`hotswap_report::codes::CANNOT_READ`]: without a file of the toolchain the identity would be that of another one.
    pub fn find(clang: &Clang, tools: &Path, words: &[OsString]) -> Result<Self, Diagnostic> {
        let mut found = Self { files: BTreeSet::new(), programs: BTreeSet::new() };
        let programs = TOOLS.iter().map(|name| tools.join(name)).chain([clang.path.clone()]);
        for program in programs {
            found.add_program(&program, tools)?;
            if reads::is_there(&program)? {
                found.programs.insert(program);
            }
        }
        let mut roots = files_in(&tools.join("../lib/clang"))?;
        roots.extend([tools.join(".."), tools.join("../.."), "/opt/rocm".into(), "/usr".into()]);
        roots.extend(words.iter().map(PathBuf::from));
        for root in roots {
            DEVICE_LIBRARIES.iter().try_for_each(|directory| found.add_bitcode(&root.join(directory)))?;
            found.add_bitcode(&root)?;
        }
        Ok(found)
    }

    fn add_program(&mut self, program: &Path, tools: &Path) -> Result<(), Diagnostic> {
        let Some(program) = reads::resolve_path(program)? else { return Ok(()) };
        if !self.files.insert(program.clone()) {
            return Ok(());
        }
        let content = hotswap_files::open_input(&program)?;
        for name in needed_libraries(&content).unwrap_or_default() {
            for library in LIBRARIES.iter().map(|directory| tools.join(directory).join(&name)) {
                if reads::is_there(&library)? {
                    self.add_program(&library, tools)?;
                    break;
                }
            }
        }
        Ok(())
    }

    fn add_bitcode(&mut self, directory: &Path) -> Result<(), Diagnostic> {
        for path in files_in(directory)?.iter().filter(|path| path.extension().is_some_and(|end| end == "bc")) {
            self.files.extend(reads::resolve_path(path)?);
        }
        Ok(())
    }

    /// The programs among the files, a path on each line.
    #[must_use]
    pub fn program_lines(&self) -> String {
        self.programs.iter().fold(String::new(), |mut lines, path| {
            let _ = writeln!(lines, "{}", path.display());
            lines
        })
    }

    /// The identity, kept in the cache directory as long as no file changes.
    ///
    /// # Errors
    /// [`hotswap_report::codes::CANNOT_READ`] for a file of the toolchain.
    pub fn identity(&self) -> Result<String, Diagnostic> {
        let states: String = self.files.iter().map(|path| state(path)).collect::<Result<_, _>>()?;
        let key = store::hash(format!("{}\n{states}", hotswap_plan::IDENTITY).as_bytes());
        let names: Vec<u8> = self.files.iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect();
        let kept = store::directory("identities").ok().map(|directory| directory.join(store::hash(&names)));
        let old = kept.as_ref().and_then(|file| store::read_regular_text(file));
        if let Some((_, identity)) = old.as_ref().and_then(|text| text.split_once('\n')).filter(|(old, _)| *old == key)
        {
            return Ok(identity.to_owned());
        }
        let identity = self.compute()?;
        if let Some(file) = kept {
            // If this cannot be cached, only speed is lost.
            let _ = store::put(&file, format!("{key}\n{identity}").as_bytes());
        }
        Ok(identity)
    }

    fn compute(&self) -> Result<String, Diagnostic> {
        let files: Vec<&PathBuf> = self.files.iter().collect();
        let parts = hotswap_files::on_all_cores(files.len(), |index| content_of(files[index]));
        // Sorted by name and content: the directories differ from machine to machine.
        let parts: BTreeSet<String> = parts.into_iter().collect::<Result<_, _>>()?;
        let text: String = [hotswap_plan::IDENTITY.to_owned()].into_iter().chain(parts).collect::<Vec<_>>().join("\n");
        Ok(store::hash(text.as_bytes()))
    }
}

/// The entries of a directory; none where there is no directory.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    if !reads::find_metadata(directory)?.is_some_and(|meta| meta.is_dir()) {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let entries = entries.map_err(|error| reads::unread_file(directory, &error))?;
    Ok(entries.iter().map(fs::DirEntry::path).collect())
}

/// One line that changes when the file does.
fn state(path: &Path) -> Result<String, Diagnostic> {
    let meta = fs::metadata(path).map_err(|error| reads::unread_file(path, &error))?;
    let mut line = path.display().to_string();
    let _ = writeln!(
        line,
        " {} {} {} {}.{} {}.{}",
        meta.dev(),
        meta.ino(),
        meta.size(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec()
    );
    Ok(line)
}

/// The file's name, and its size with its build ID or else the hash of its content.
fn content_of(path: &Path) -> Result<String, Diagnostic> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let content = hotswap_files::open_input(path)?;
    Ok(match build_id(&content) {
        Some(build_id) => format!("{name} {} {}", content.len(), hotswap_report::hex_digits(&build_id)),
        None => format!("{name} {}", hotswap_report::hex_digits(&Sha256::digest(&content[..]))),
    })
}

/// A build ID that is long enough for a hash.
fn build_id(content: &[u8]) -> Option<Vec<u8>> {
    const SHORTEST: usize = 8;
    let file = object::File::parse(content).ok()?;
    file.build_id().ok().flatten().filter(|id| id.len() >= SHORTEST).map(<[u8]>::to_vec)
}

/// Names of the shared libraries that a program starts with.
fn needed_libraries(content: &[u8]) -> Option<Vec<String>> {
    let header = FileHeader64::<Endianness>::parse(content).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, content).ok()?;
    let (entries, link) = sections.dynamic(endian, content).ok()??;
    let strings = sections.strings(endian, content, link).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag32(endian) == Some(DT_NEEDED));
    let names = needed.filter_map(|entry| strings.get(entry.val32(endian)?).ok());
    Some(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain(directory: &Path) -> ToolchainFiles {
        let clang = Clang { path: directory.join("bin/clang++"), origin: String::new(), mode: None };
        ToolchainFiles::find(&clang, &directory.join("bin"), &[directory.join("rocm").into()]).unwrap()
    }

    fn make(directory: &Path) {
        for (name, text) in
            [("bin/clang++", "a script"), ("bin/lld", "a linker"), ("rocm/amdgcn/bitcode/ockl.bc", "BC")]
        {
            fs::create_dir_all(directory.join(name).parent().unwrap()).unwrap();
            fs::write(directory.join(name), text).unwrap();
        }
    }

    #[test]
    fn equal_files_elsewhere_are_the_same_toolchain_and_each_change_makes_another() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, other] = dirs.each_ref().map(|dir| {
            make(dir.path());
            toolchain(dir.path()).compute().unwrap()
        });
        assert_eq!(one, other);
        for file in ["bin/clang++", "bin/lld", "rocm/amdgcn/bitcode/ockl.bc"] {
            let path = dirs[1].path().join(file);
            let old = fs::read(&path).unwrap();
            let mut new = old.clone();
            new[0] ^= 1;
            fs::write(&path, new).unwrap();
            assert_ne!(toolchain(dirs[1].path()).compute().unwrap(), one, "{file}");
            fs::write(&path, old).unwrap();
        }
        fs::write(dirs[1].path().join("rocm/amdgcn/bitcode/ocml.bc"), "BC").unwrap();
        assert_ne!(toolchain(dirs[1].path()).compute().unwrap(), one);
    }

    #[test]
    fn programs_are_listed_by_the_names_under_which_they_are_started() {
        let dir = tempfile::tempdir().unwrap();
        make(dir.path());
        std::os::unix::fs::symlink("clang++", dir.path().join("bin/clang")).unwrap();
        let lines =
            ["clang", "clang++", "lld"].map(|name| format!("{}\n", dir.path().join("bin").join(name).display()));
        assert_eq!(toolchain(dir.path()).program_lines(), lines.concat());
    }

    #[test]
    fn libraries_are_those_that_the_program_names() {
        let libraries = needed_libraries(&fs::read(std::env::current_exe().unwrap()).unwrap()).unwrap();
        assert!(libraries.iter().any(|name| name.starts_with("libc.so")), "{libraries:?}");
        assert!(build_id(b"text").is_none());
    }
}
