//! The objects that the judges are asked about: every form of the corpus that the tests of rewriting have.

use crate::judges::{JudgeTally, judge_object};
use crate::workers::on_all_processors;
use hotswap_check::CheckOptions;
use hotswap_rewrite_exam::assembly::{Kernel, assemble};
use hotswap_rewrite_exam::compile::{self, FORMS, Setting};
use hotswap_rewrite_exam::corpus::{Unit, units};
use hotswap_rewrite_exam::llvm::{self, NamedObject};
use hotswap_rewrite_exam::spills::spills;
use hotswap_rewrite_exam::variants::variants;
use hotswap_userland::Workbench;
use std::path::{Path, PathBuf};

/// Where objects are from.
#[derive(Debug)]
pub enum JudgedSource {
    /// Kernels of assembly: as an object file, and linked with its relocations.
    Assembly {
        /// Name of the object.
        name: String,
        kernels: Vec<Kernel>,
    },
    /// A unit of the corpus in one setting, in all forms.
    Compiled {
        unit: Unit,
        /// Version and level.
        setting: Setting,
    },
    /// A test of LLVM's code generation, in all forms.
    Llvm(PathBuf),
    /// A code object.
    File(PathBuf),
}

/// The committed corpus: assembly in every place, regressions, and compiled units of two compilers at every level.
///
/// # Panics
/// If a case cannot be read.
#[must_use]
pub fn committed_sources(bench: &Workbench) -> Vec<JudgedSource> {
    let mut all: Vec<JudgedSource> = Vec::new();
    for (name, kernels) in variants() {
        all.push(JudgedSource::Assembly { name: name.to_owned(), kernels });
    }
    for kernel in spills() {
        all.push(JudgedSource::Assembly { name: format!("spills-{}", kernel.name), kernels: vec![kernel] });
    }
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rewrite-exam/cases");
    for path in hotswap_userland::cases_in(&cases, "s") {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let code = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        all.push(JudgedSource::Assembly { name, kernels: vec![Kernel { name: "k".to_owned(), code }] });
    }
    for unit in units() {
        for version in [23, 24].into_iter().filter(|version| bench.versions.contains(version)) {
            for level in ['0', '1', '2', '3'] {
                let setting = Setting { version, level, debug: false };
                all.push(JudgedSource::Compiled { unit: unit.clone(), setting });
            }
        }
    }
    all
}

/// LLVM's tests of code generation that name the source.
///
/// # Errors
/// A directory that cannot be read.
pub fn llvm_sources(directory: &Path) -> std::io::Result<Vec<JudgedSource>> {
    let mut all = Vec::new();
    for file in llvm::files(directory)? {
        if String::from_utf8_lossy(&std::fs::read(&file)?).contains("gfx1250") {
            all.push(JudgedSource::Llvm(file));
        }
    }
    Ok(all)
}

impl JudgedSource {
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Assembly { name, .. } => name.clone(),
            Self::Compiled { unit, setting } => format!("{}-{}", unit.name, setting.name()),
            Self::Llvm(file) | Self::File(file) => file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }

    fn objects(&self, bench: &Workbench) -> Vec<NamedObject> {
        match self {
            Self::Assembly { name, kernels } => {
                assemble(bench, name, kernels).map(|(name, bytes)| NamedObject { name, bytes }).into()
            }
            Self::Compiled { unit, setting } => {
                let forms = FORMS.map(|(form, _)| form);
                let objects = compile::compile(bench, unit, *setting, &forms);
                objects.into_iter().map(|object| NamedObject { name: object.name, bytes: object.bytes }).collect()
            }
            Self::Llvm(file) => llvm::compile_test(bench, file),
            Self::File(file) => {
                let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                vec![NamedObject { name: self.name(), bytes }]
            }
        }
    }
}

/// Asks the judges about all objects of the sources; a line for each source is printed.
#[must_use]
pub fn judge_sources(bench: &Workbench, sources: &[JudgedSource], options: &CheckOptions) -> JudgeTally {
    let tallies = on_all_processors(sources, |source| {
        let mut tally = JudgeTally::default();
        for NamedObject { name, bytes } in source.objects(bench) {
            tally.merge(judge_object(&name, &bytes, options));
        }
        if tally.objects > 0 {
            println!("{}: {}", source.name(), tally.text());
        }
        tally.disagreements.iter().for_each(|what| println!("  {what}"));
        tally
    });
    let mut sum = JudgeTally::default();
    tallies.into_iter().for_each(|tally| sum.merge(tally));
    sum
}
