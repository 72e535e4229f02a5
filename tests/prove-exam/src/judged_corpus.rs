//! The objects that the judges are asked about: every form of the corpus that the tests of rewriting have.

use crate::judged_pairs::{JudgedPair, STEPPINGS, judged_pairs};
use crate::judges::{JudgeTally, judge_object};
use crate::workers::on_all_processors;
use hotswap_check::CheckOptions;
use hotswap_code_object::CodeObject;
use hotswap_rewrite_exam::assembly::{Kernel, assemble};
use hotswap_rewrite_exam::compile::{self, FORMS, Setting};
use hotswap_rewrite_exam::corpus::{Unit, units};
use hotswap_rewrite_exam::llvm::{self, NamedObject};
use hotswap_rewrite_exam::spills::spills;
use hotswap_rewrite_exam::variants::variants;
use hotswap_userland::Workbench;
use std::collections::{BTreeMap, BTreeSet};
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
    /// The device code of a HIP program of this repository.
    Program {
        /// Its source.
        file: PathBuf,
        gpu: &'static str,
    },
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

/// Programs that are compiled for the sources of pairs whose code does not change; for the others all are.
const SIBLING_PROGRAMS: [&str; 4] = ["atomics", "lanes", "numeric", "shared"];

/// The HIP programs of the tests of emulated GPUs, for the source of each pair.
#[must_use]
pub fn program_sources() -> Vec<JudgedSource> {
    let rewritten: BTreeSet<&str> = judged_pairs().filter(|pair| pair.is_rewritten).map(|pair| pair.source).collect();
    let gpus: BTreeSet<&'static str> = judged_pairs().map(|pair| pair.source).collect();
    let mut all = Vec::new();
    for file in hotswap_userland::cases_in(&programs_directory(), "hip") {
        let is_common = SIBLING_PROGRAMS.iter().any(|name| file.file_stem().is_some_and(|stem| stem == *name));
        let wanted = gpus.iter().filter(|gpu| is_common || rewritten.contains(*gpu));
        all.extend(wanted.map(|gpu| JudgedSource::Program { file: file.clone(), gpu }));
    }
    all
}

fn programs_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../emulated-hip/cases/programs")
}

/// The clang that has HIP's device libraries.
const HIP_COMPILER: u32 = 22;

/// The device code of a program; none if the compiler has no libraries for the GPU, or if the program has none.
fn compile_program(bench: &Workbench, file: &Path, gpu: &str) -> Vec<NamedObject> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}-{gpu}");
    let text = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    bench.write(&format!("{name}.hip"), &text);
    let command = format!(
        "clang++-{HIP_COMPILER} -w -x hip -O2 --offload-device-only --no-gpu-bundle-output --offload-arch={gpu} -I. \
         '{name}.hip' -o '{name}.co'"
    );
    let output = bench.shell(&command);
    if !output.status.success() {
        println!(
            "{name}: not compiled: {}",
            String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default()
        );
        return Vec::new();
    }
    vec![NamedObject { bytes: bench.read(&format!("{name}.co")), name }]
}

impl JudgedSource {
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Assembly { name, .. } => name.clone(),
            Self::Compiled { unit, setting } => format!("{}-{}", unit.name, setting.name()),
            Self::Program { file, gpu } => {
                format!("{}-{gpu}", file.file_stem().unwrap_or_default().to_string_lossy())
            }
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
                let objects = compile::compile_if_possible(bench, unit, *setting, &forms).unwrap_or_else(|error| {
                    let reason = error.lines().find(|line| line.contains("error:")).unwrap_or(&error);
                    println!("{}: not compiled: {reason}", self.name());
                    Vec::new()
                });
                objects.into_iter().map(|object| NamedObject { name: object.name, bytes: object.bytes }).collect()
            }
            Self::Llvm(file) => llvm::compile_test(bench, file),
            Self::Program { file, gpu } => compile_program(bench, file, gpu),
            Self::File(file) => {
                let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                vec![NamedObject { name: self.name(), bytes }]
            }
        }
    }
}

/// The answers about all objects of a pair.
pub type JudgeTable = BTreeMap<JudgedPair, JudgeTally>;

/// The pairs whose source an object is for.
fn pairs_of_object(bytes: &[u8]) -> Vec<JudgedPair> {
    // The rewriter says what is wrong with a file that cannot be read.
    let Ok(object) = CodeObject::parse(bytes) else { return vec![STEPPINGS] };
    let gpu = object.target_id().processor.name;
    judged_pairs().filter(|pair| pair.source == gpu).collect()
}

/// Asks the judges about all objects of the sources, for every pair of each; a line for each source is printed.
#[must_use]
pub fn judge_sources(bench: &Workbench, sources: &[JudgedSource], options: &CheckOptions) -> JudgeTable {
    bench.write("check.h", &std::fs::read(programs_directory().join("../check.h")).unwrap_or_default());
    let tables = on_all_processors(sources, |source| {
        let mut table = JudgeTable::new();
        for NamedObject { name, bytes } in source.objects(bench) {
            for pair in pairs_of_object(&bytes) {
                table.entry(pair).or_default().merge(judge_object(&pair, &name, &bytes, options));
            }
        }
        for (pair, tally) in &table {
            println!("{} {pair}: {}", source.name(), tally.text());
            tally.disagreements.iter().for_each(|what| println!("  {what}"));
        }
        table
    });
    let mut sum = JudgeTable::new();
    tables.into_iter().for_each(|table| merge_tables(&mut sum, table));
    sum
}

/// Adds the answers about other objects.
pub fn merge_tables(into: &mut JudgeTable, other: JudgeTable) {
    for (pair, tally) in other {
        into.entry(pair).or_default().merge(tally);
    }
}

/// The sum over all pairs.
#[must_use]
pub fn sum_table(table: JudgeTable) -> JudgeTally {
    let mut sum = JudgeTally::default();
    table.into_values().for_each(|tally| sum.merge(tally));
    sum
}
