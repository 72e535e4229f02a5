//! `rewrite-exam run`: the whole corpus through the engine and the judge, with `--stripped` copies of it without
//! symbols. `rewrite-exam files FILE…`: other code objects. `rewrite-exam llvm DIRECTORY`: LLVM's own tests of code
//! generation. `rewrite-exam corpus DIRECTORY`: writes the corpus, for inspection.

use clap::Parser;
use hotswap_rewrite_exam::compile::{FORMS, Form, Setting};
use hotswap_rewrite_exam::corpus::{Unit, units};
use hotswap_rewrite_exam::exam::{self, Tally};
use hotswap_rewrite_exam::llvm;
use hotswap_rewrite_exam::steppings::{self, KindTable};
use hotswap_userland::Workbench;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Parser)]
#[command(about = "Exams of code that is made for gfx1250-strict from code for gfx1250")]
enum Words {
    /// Every unit of the corpus, at every level, with and without debug information, by clang 23 and 24, in every form.
    Run {
        /// Only units whose name holds this.
        #[arg(default_value = "")]
        name: String,
        /// Copies without symbols instead.
        #[arg(long)]
        stripped: bool,
    },
    /// Code objects of the source, each judged alone.
    Files {
        /// The files.
        files: Vec<PathBuf>,
        /// Keep the results in this directory.
        #[arg(long)]
        keep: Option<PathBuf>,
    },
    /// LLVM's tests of code generation, as objects for the source: relocatable, and linked with and without relocations.
    Llvm {
        /// `llvm/test/CodeGen/AMDGPU` of LLVM's sources.
        directory: PathBuf,
        /// Only files whose name holds this.
        #[arg(default_value = "")]
        name: String,
    },
    /// The differences that LLVM 24 makes between the two processors of each pair, by kind.
    Steppings {
        /// Only pairs of this source.
        #[arg(default_value = "")]
        source: String,
        /// `llvm/test/MC/AMDGPU` of LLVM's sources.
        #[arg(long)]
        assembly: Option<PathBuf>,
        /// The page that gets the table.
        #[arg(long)]
        page: Option<PathBuf>,
    },
    /// Write the sources of the corpus.
    Corpus {
        /// An existing directory.
        directory: PathBuf,
    },
}

/// Combinations that clang does not compile: it reports an illegal instruction of its own, a scalar one that reads a
/// vector register.
const NOT_COMPILED: [(&str, u32, char); 1] = [("control", 23, '0')];

fn main() -> ExitCode {
    let good = match Words::parse() {
        Words::Corpus { directory } => corpus(&directory),
        Words::Run { name, stripped } => with_bench(|bench| run(bench, &name, stripped)),
        Words::Llvm { directory, name } => with_bench(|bench| tests_of_llvm(bench, &directory, &name)),
        Words::Steppings { source, assembly, page } => {
            with_bench(|bench| differences(bench, &source, assembly.as_deref(), page.as_deref()))
        }
        Words::Files { files, keep } => with_bench(|bench| these(bench, &files, keep.as_deref())),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn with_bench(work: impl FnOnce(&Workbench) -> bool) -> bool {
    match Workbench::new("rewrite-exam") {
        Some(bench) => work(&bench),
        None => {
            eprintln!("rewrite-exam: error: no ROCm userland (`cargo xtask rewrite exam` gives one)");
            false
        }
    }
}

fn run(bench: &Workbench, name: &str, stripped: bool) -> bool {
    let units: Vec<Unit> = units().into_iter().filter(|unit| unit.name.contains(name)).collect();
    let mut work = Vec::new();
    for unit in &units {
        for version in bench.versions.iter().copied().filter(|version| [23, 24].contains(version)) {
            for level in ['0', '1', '2', '3'] {
                if !NOT_COMPILED.contains(&(&unit.name, version, level)) {
                    work.extend([false, true].map(|debug| (unit, Setting { version, level, debug })));
                }
            }
        }
    }
    let forms = FORMS.map(|(form, _)| form);
    conclude(&parallel(&work, |(unit, setting)| one(bench, unit, *setting, &forms, stripped)))
}

/// Two threads: most of the time is spent in compilers.
fn parallel<T: Sync>(work: &[T], judge: impl Fn(&T) -> Tally + Sync) -> Tally {
    let (next, sum) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    let thread = || {
        while let Some(one) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            let tally = judge(one);
            sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner).merge(tally);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(thread);
        }
    });
    sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Refusals are listed and are no failures: some tests are of code that LLVM's own target cannot run. It is a failure
/// if nothing was compiled, since nothing was tested then.
fn tests_of_llvm(bench: &Workbench, directory: &Path, name: &str) -> bool {
    let files = match llvm::files(directory) {
        Ok(files) => files.into_iter().filter(|file| file.to_string_lossy().contains(name)).collect::<Vec<_>>(),
        Err(error) => {
            eprintln!("rewrite-exam: error: {}: {error}", directory.display());
            return false;
        }
    };
    let sum = parallel(&files, |file| {
        let tally = llvm::test(bench, file);
        if tally.objects > 0 {
            println!("{}: {}", file.file_name().unwrap_or_default().to_string_lossy(), tally.line());
        }
        tally
    });
    for line in sum.refused.iter().chain(&sum.problems) {
        println!("{line}");
    }
    println!("rewrite-exam: of {} files of LLVM: {}", files.len(), sum.line());
    sum.problems.is_empty() && sum.objects > 0
}

/// The answers to kinds of differences.
const KINDS: &str = include_str!("../steppings.kinds");

/// Every difference has an answer, and every answer is needed.
fn differences(bench: &Workbench, source: &str, assembly: Option<&Path>, page: Option<&Path>) -> bool {
    let table = match KindTable::read(KINDS) {
        Ok(table) => table,
        Err(error) => {
            eprintln!("rewrite-exam: error: steppings.kinds: {error}");
            return false;
        }
    };
    let mut found = Vec::new();
    for pair in steppings::PAIRS.into_iter().filter(|pair| pair.source.contains(source)) {
        let differences = steppings::compare_pair(bench, &pair, assembly);
        println!("{} {}: {:?}, {} kinds", pair.source, pair.target, differences.cases, differences.kinds.len());
        found.push((pair, differences));
    }
    let problems = table.problems(&found);
    problems.iter().for_each(|problem| println!("{problem}"));
    if let Some(page) = page
        && let Err(error) = std::fs::write(page, steppings::page(&found, &table))
    {
        eprintln!("rewrite-exam: error: {}: {error}", page.display());
        return false;
    }
    println!("steppings: {} pairs, {} problems", found.len(), problems.len());
    problems.is_empty() && !found.is_empty()
}

fn one(bench: &Workbench, unit: &Unit, setting: Setting, forms: &[Form], stripped: bool) -> Tally {
    let exam = if stripped { exam::stripped } else { exam::unit };
    let tally = exam(bench, unit, setting, forms);
    println!("{} {}{}: {}", unit.name, setting.name(), if stripped { " stripped" } else { "" }, tally.line());
    tally
}

fn these(bench: &Workbench, files: &[PathBuf], keep: Option<&Path>) -> bool {
    let mut sum = Tally::default();
    for (number, file) in files.iter().enumerate() {
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("rewrite-exam: error: {}: {error}", file.display());
                return false;
            }
        };
        let name = file.file_name().map_or_else(|| number.to_string(), |name| name.to_string_lossy().into_owned());
        let mut tally = Tally { objects: 1, ..Tally::default() };
        exam::object_of(bench, &name, &bytes, None, &mut tally);
        println!("{name}: {}", tally.line());
        let made = bench.path(&format!("{name}.made"));
        if let Some(directory) = keep.filter(|_| made.exists())
            && let Err(error) = std::fs::copy(&made, directory.join(&name))
        {
            eprintln!("rewrite-exam: error: {}: {error}", directory.display());
            return false;
        }
        sum.merge(tally);
    }
    conclude(&sum)
}

/// The sum, and whether it is good.
fn conclude(sum: &Tally) -> bool {
    let nearer = sum.nearer();
    for line in sum.refused.iter().chain(&sum.problems).chain(&nearer) {
        println!("{line}");
    }
    println!("rewrite-exam: {}", sum.line());
    sum.refused.is_empty() && sum.problems.is_empty() && nearer.is_empty()
}

fn corpus(directory: &Path) -> bool {
    for unit in units() {
        let file = directory.join(format!("{}.c", unit.name));
        if let Err(error) = std::fs::write(&file, unit.source()) {
            eprintln!("rewrite-exam: error: {}: {error}", file.display());
            return false;
        }
        println!("{}: {} kernels", file.display(), unit.kernels);
    }
    true
}
