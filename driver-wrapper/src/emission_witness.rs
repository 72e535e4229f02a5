//! Whether functions are in the code that a compilation makes, seen in the compilation itself: LLVM prints them before its first pass
//! if the front end emitted them.
//!
//! The answer that two GPUs have one program may rest on a function whose text differs between them and that clang evaluates
//! ([`crate::source_text`]). So the function must be in no code: then texts that differ in it make one module.
//!
//! Invariants: a witness that says nothing proves nothing. For each GPU whose code serves others it also prints a function that
//! clang's own header puts into every program. The printing changes no output. Its arguments are the same in every run, because they are in the ID that
//! clang gives to a source: the directory is named by the number of an open file.
//!
//! Absent on purpose: what happens if a function is there (the command is compiled again, with an answer that is found in another way).

use crate::store;
use hotswap_files::ScratchDirectory;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::FdFlags;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// All functions: the printer of a module leaves out those that are not asked for.
const ALL: &str = "*";
/// In every program: clang's `__clang_hip_runtime_wrapper.h` defines it.
const ALWAYS_EMITTED: &str = "__cxa_pure_virtual";
/// The first pass that runs with optimisation.
const FIRST_PASS: &str = "-print-before=annotation2metadata";
/// The number of the open directory; others are lower.
const DIRECTORY_NUMBER: i32 = 250;

/// The functions that must be in no code of these GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmissionWitness {
    symbols: BTreeSet<String>,
    gpus: BTreeSet<String>,
    /// The files that are written if one of them is there after all, one for each question.
    records: BTreeSet<PathBuf>,
}

/// The directory into which LLVM prints, open while clang runs.
pub struct OpenWitness<'w> {
    witness: &'w EmissionWitness,
    scratch: ScratchDirectory,
    _directory: OwnedFd,
}

/// Arguments for a front end that runs no passes. They make no difference, and clang refuses them where it does not know the witness's.
pub(crate) fn words_of_front_end(directory: &Path) -> Vec<OsString> {
    let mut words = Vec::new();
    for word in llvm_words(ALL, directory) {
        words.extend(["-mllvm".into(), word]);
    }
    words
}

/// Whether a front end's argument behind `-mllvm` is the witness's.
pub(crate) fn is_own_word(word: &str) -> bool {
    word == FIRST_PASS || word.starts_with("-filter-print-funcs=") || word.starts_with("-ir-dump-directory=")
}

fn llvm_words(symbols: &str, directory: &Path) -> [OsString; 3] {
    let mut dump: OsString = "-ir-dump-directory=".into();
    dump.push(directory);
    [FIRST_PASS.into(), format!("-filter-print-funcs={symbols}").into(), dump]
}

impl EmissionWitness {
    /// `None` for a GPU with features in its name, which clang's `-Xarch_` does not take.
    pub(crate) fn new(symbols: BTreeSet<String>, gpus: BTreeSet<String>, record: PathBuf) -> Option<Self> {
        let is_named = gpus.iter().all(|gpu| gpu.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'));
        is_named.then(|| Self { symbols, gpus, records: [record].into() })
    }

    /// The functions of both.
    pub(crate) fn joined(mut self, other: Self) -> Self {
        self.symbols.extend(other.symbols);
        self.gpus.extend(other.gpus);
        self.records.extend(other.records);
        self
    }

    /// Arguments for clang's driver.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let symbols = self.symbols.iter().map(String::as_str).chain([ALWAYS_EMITTED]).collect::<Vec<_>>().join(",");
        let mut words = Vec::new();
        for gpu in &self.gpus {
            // Names of files are the same for all GPUs.
            for word in llvm_words(&symbols, &Path::new(&directory_path()).join(gpu)) {
                let mut joined: OsString = "-mllvm=".into();
                joined.push(word);
                words.extend([format!("-Xarch_{gpu}").into(), joined]);
            }
        }
        words
    }

    /// Opens the directory; `None` where that cannot be done here, and the witness would say nothing.
    pub(crate) fn open(&self) -> Option<OpenWitness<'_>> {
        let scratch = ScratchDirectory::temporary("hotswap-emitted-").ok()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(scratch.path(), flags, Mode::empty()).ok()?;
        let directory = rustix::io::fcntl_dupfd_cloexec(&opened, DIRECTORY_NUMBER).ok()?;
        // Clang inherits it.
        rustix::io::fcntl_setfd(&directory, FdFlags::empty()).ok()?;
        let is_there = directory.as_raw_fd() == DIRECTORY_NUMBER && fs::metadata(directory_path()).is_ok();
        is_there.then_some(OpenWitness { witness: self, scratch, _directory: directory })
    }
}

fn directory_path() -> String {
    format!("/proc/self/fd/{DIRECTORY_NUMBER}")
}

impl OpenWitness<'_> {
    /// Whether the compilation for each GPU was seen, and none of the functions in it.
    pub(crate) fn saw_no_function(&self) -> bool {
        self.witness
            .gpus
            .iter()
            .all(|gpu| self.printed_module(gpu).is_some_and(|module| self.is_without_functions(&module)))
    }

    fn is_without_functions(&self, module: &str) -> bool {
        module.contains(ALWAYS_EMITTED) && !self.witness.symbols.iter().any(|symbol| module.contains(symbol))
    }

    /// Notes that the functions are in this program's code, so that it is not tried again. A note that cannot be
    /// written costs time.
    pub(crate) fn note_emission(&self) {
        for record in &self.witness.records {
            let _ = store::put(record, b"");
        }
    }

    /// All that was printed for that GPU.
    fn printed_module(&self, gpu: &str) -> Option<String> {
        let mut module = String::new();
        for entry in fs::read_dir(self.scratch.path().join(gpu)).ok()? {
            module.push_str(&String::from_utf8_lossy(&fs::read(entry.ok()?.path()).ok()?));
        }
        Some(module)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn witness_of_two(record: PathBuf) -> EmissionWitness {
        let gpus = ["gfx1030".to_owned(), "gfx1031".to_owned()].into();
        EmissionWitness::new(["_Z1fv".to_owned()].into(), gpus, record).unwrap()
    }

    #[test]
    fn a_witness_without_a_word_proves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let record = directory.path().join("record");
        let witness = witness_of_two(record.clone());
        let open = witness.open().unwrap();
        let print = |gpu: &str, text: &str| {
            fs::create_dir_all(open.scratch.path().join(gpu)).unwrap();
            fs::write(open.scratch.path().join(gpu).join("1.ll"), text).unwrap();
        };
        assert!(!open.saw_no_function());
        print("gfx1030", "define weak void @__cxa_pure_virtual() {\n");
        assert!(!open.saw_no_function(), "one of two");
        print("gfx1031", "define weak void @__cxa_pure_virtual() {\n");
        assert!(open.saw_no_function());
        print("gfx1031", "");
        assert!(!open.saw_no_function(), "without the one that is always there");
        print("gfx1031", "define i32 @_Z1fv() {\ndefine weak void @__cxa_pure_virtual() {\n");
        assert!(!open.saw_no_function());
        assert!(!record.exists());
        open.note_emission();
        assert!(record.exists());
    }

    #[test]
    fn the_words_are_the_same_in_every_run() {
        let words = witness_of_two(PathBuf::new()).words();
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words.len(), 12);
        assert_eq!(words[2..4], ["-Xarch_gfx1030", "-mllvm=-filter-print-funcs=_Z1fv,__cxa_pure_virtual"]);
        assert_eq!(words[10..], ["-Xarch_gfx1031", "-mllvm=-ir-dump-directory=/proc/self/fd/250/gfx1031"]);
        assert!(words.iter().filter_map(|word| word.strip_prefix("-mllvm=")).all(is_own_word));
        let gpus: BTreeSet<String> = ["gfx90a:xnack+".to_owned()].into();
        assert_eq!(EmissionWitness::new(BTreeSet::new(), gpus, PathBuf::new()), None);
    }
}
