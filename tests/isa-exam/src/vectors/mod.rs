//! LLVM's own vectors: `llvm/test/MC/Disassembler/AMDGPU` and `llvm/test/MC/AMDGPU`.
//!
//! A vector is a word under a setting. The expectation is the answer of LLVM's disassembler. Where a file states a text
//! or a refusal, that must be the same, so a judge of another version is detected.

pub mod assembler;
pub mod cache;
pub mod disassembler;
pub mod run_line;

use crate::setting::Setting;
use crate::tools::Tools;
use disassembler::Check;
use hotswap_userland::{ENV_CACHE, ENV_LLVM};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// LLVM's `test/MC` in the sources that the environment names.
pub fn tests_of_env() -> Option<PathBuf> {
    let source = std::env::var_os(ENV_LLVM).filter(|source| !source.is_empty())?;
    Some(Path::new(&source).join("llvm/test/MC"))
}

/// The directory for kept data, from the environment.
pub fn cache_of_env() -> Option<PathBuf> {
    std::env::var_os(ENV_CACHE).filter(|directory| !directory.is_empty()).map(PathBuf::from)
}

/// A word of LLVM's tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    /// File and line: `Disassembler/AMDGPU/gfx9_sop1.txt:12`.
    pub source: String,
    /// Setting of the decoder.
    pub setting: Setting,
    /// The bytes of the line; possibly more than one instruction.
    pub bytes: Vec<u8>,
    /// The expectation in the file.
    pub check: Option<Check>,
}

/// All vectors, and counts of those left out.
#[derive(Debug, Default)]
pub struct Vectors {
    pub all: Vec<Vector>,
    /// Why runs of the test files lack vectors: reason to number of runs.
    pub out_of_scope: BTreeMap<String, usize>,
    /// Encodings with fixups.
    pub open: usize,
    assembled: BTreeSet<(String, Setting, usize)>,
}

/// Collects the vectors of all processors that `knows` accepts. `directory` is LLVM's `test/MC`.
///
/// # Errors
/// If the directory or the cache cannot be read or written, or the assembler cannot be started.
pub fn collect(tools: &Tools, directory: &Path, cache: &Path, knows: &dyn Fn(&Setting) -> bool) -> io::Result<Vectors> {
    let mut vectors = Vectors::default();
    let mut cache = cache::Cache::open(cache, tools, directory)?;
    for part in ["Disassembler/AMDGPU", "AMDGPU"] {
        for extension in ["txt", "s"] {
            for file in files(&directory.join(part), extension)? {
                let bytes = fs::read(&file)?;
                let text = String::from_utf8_lossy(&bytes);
                let name = file.strip_prefix(directory).unwrap_or(&file).display().to_string();
                let (disassembled, assembled): (Vec<_>, Vec<_>) =
                    run_line::runs(&text).into_iter().partition(|run| run.disassembles);
                for run in disassembled {
                    if let Some(setting) = vectors.setting(&run, knows) {
                        add_lines(&mut vectors, &name, &run, &setting, &text);
                    }
                }
                for run in assembled {
                    if let Some(setting) = vectors.setting(&run, knows) {
                        let make = || assembler::assemble(tools, cache::VERSION, &run, &bytes);
                        let assembled = cache.get(&name, &run, make)?;
                        vectors.add_assembled(&name, &setting, assembled);
                    }
                }
            }
        }
    }
    cache.save()?;
    Ok(vectors)
}

fn add_lines(vectors: &mut Vectors, name: &str, run: &run_line::Run, setting: &Setting, text: &str) {
    for line in disassembler::lines(text) {
        vectors.all.push(Vector {
            source: format!("{name}:{}", line.number),
            setting: setting.clone(),
            check: line.check(run),
            bytes: line.bytes,
        });
    }
}

impl Vectors {
    /// Equal options have equal results: some files only differ in their checks.
    fn add_assembled(&mut self, name: &str, setting: &Setting, assembled: assembler::Assembled) {
        if !self.assembled.insert((name.to_owned(), setting.clone(), assembled.encodings.len())) {
            return;
        }
        self.open += assembled.open;
        for (at, bytes) in assembled.encodings.into_iter().enumerate() {
            let source = format!("{name}#{}", at + 1);
            self.all.push(Vector { source, setting: setting.clone(), bytes, check: None });
        }
    }

    fn setting(&mut self, run: &run_line::Run, knows: &dyn Fn(&Setting) -> bool) -> Option<Setting> {
        let reason = match run.setting() {
            Some(setting) if setting.wave == Some(64) && run.cpu.starts_with("gfx125") => {
                format!("wave64, which {} does not have", run.cpu)
            }
            Some(setting) if knows(&setting) => return Some(setting),
            Some(_) => format!("no target of ours: {}", run.cpu),
            None => format!("changes the processor: {}", run.attributes.join(",")),
        };
        *self.out_of_scope.entry(reason).or_default() += 1;
        None
    }

    /// The vectors by setting.
    pub fn by_setting(&self) -> BTreeMap<&Setting, Vec<&Vector>> {
        let mut groups: BTreeMap<&Setting, Vec<&Vector>> = BTreeMap::new();
        for vector in &self.all {
            groups.entry(&vector.setting).or_default().push(vector);
        }
        groups
    }
}

fn files(directory: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
