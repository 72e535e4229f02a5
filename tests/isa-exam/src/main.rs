//! The program `isa-exam`: the exams of `hotswap-isa` at any size; `cargo xtask isa exam` starts it.
//!
//! Invariant: it exits with code 1 when a difference is left that no line of the lists explains.

use clap::{Args, Parser, Subcommand};
use hotswap_isa_exam::code::{self, Bytes};
use hotswap_isa_exam::effects::records::{self, Description};
use hotswap_isa_exam::effects::{self, rules};
use hotswap_isa_exam::exam::{Exam, by_target};
use hotswap_isa_exam::oracle::Oracle;
use hotswap_isa_exam::ours::Ours;
use hotswap_isa_exam::report::Report;
use hotswap_isa_exam::setting::Setting;
use hotswap_isa_exam::sweep::{FAMILIES, Sweep};
use hotswap_isa_exam::tools::Tools;
use hotswap_isa_exam::verdict::Subject;
use hotswap_isa_exam::{left_out, vectors};
use hotswap_userland::{ENV_ROOT, Userland};
use std::collections::BTreeSet;
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// The rows, from this package's directory.
const ROWS: [&str; 3] = [env!("CARGO_MANIFEST_DIR"), "../../crates/amdgpu/isa-tables", "rows"];

/// Compares hotswap-isa with LLVM.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    exam: Which,
    #[command(flatten)]
    common: Common,
}

#[derive(Args)]
struct Common {
    /// The userland's directory; the environment names it when `cargo xtask` starts this program.
    #[arg(long, global = true)]
    userland: Option<PathBuf>,
    /// LLVM's directory `test/MC`; otherwise the environment says where LLVM's sources are.
    #[arg(long, global = true)]
    tests: Option<PathBuf>,
    /// Directory of what is kept between runs; otherwise that of the environment.
    #[arg(long, global = true)]
    cache: Option<PathBuf>,
    /// Directory for the listings of differences.
    #[arg(long, global = true)]
    report: Option<PathBuf>,
    /// Only targets whose name begins with this.
    #[arg(long, global = true, default_value = "")]
    target: String,
    /// Threads.
    #[arg(long, global = true, default_value_t = 2)]
    threads: usize,
}

#[derive(Subcommand)]
enum Which {
    /// Everything at full size.
    All {
        /// Libraries or code objects beside the kernels.
        files: Vec<PathBuf>,
    },
    /// LLVM's own vectors.
    Vectors,
    /// Structured and random words of every encoding.
    Sweep {
        /// Words of each family.
        #[arg(long, default_value_t = FULL)]
        count: usize,
        /// Other words.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Only the family of that name.
        #[arg(long)]
        family: Option<String>,
    },
    /// Reads and writes of every encoding, compared with LLVM's records.
    Effects,
    /// Keep what matters of LLVM's records: the output of `llvm-tblgen --dump-json`.
    Digest {
        /// The records.
        json: PathBuf,
        /// Where to.
        file: PathBuf,
    },
    /// Kernels that clang compiles, and the code objects of libraries.
    Code {
        /// Libraries or code objects beside the kernels.
        files: Vec<PathBuf>,
    },
}

/// Words of each family at full size.
const FULL: usize = 2_000_000;

/// The result of a part of the exams.
struct Part {
    good: bool,
    /// Entries of the list that explained something.
    used: BTreeSet<usize>,
}

impl Default for Part {
    fn default() -> Self {
        Self { good: true, used: BTreeSet::new() }
    }
}

impl Part {
    fn merge(&mut self, other: Self) {
        self.good &= other.good;
        self.used.extend(other.used);
    }

    fn only_if(self, good: bool) -> Self {
        Self { good: self.good && good, ..self }
    }
}

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("isa-exam: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Outcome<bool> {
    match &options.exam {
        Which::Digest { json, file } => return digest(json, file).map(|()| true),
        Which::Effects => return run_effects(&options.common),
        _ => {}
    }
    if let Some(code) = enter(options.common.userland.as_deref())? {
        return Ok(code);
    }
    let tools = Tools::from_env()?.ok_or("no userland: start this with `cargo xtask isa exam`")?;
    let list = left_out::read(left_out::LIST).map_err(|line| format!("left-out.txt:{line}: not four parts"))?;
    let exam = Exam { tools: &tools, subject: &Ours, list: &list, threads: options.common.threads };
    match options.exam {
        Which::All { ref files } => {
            let mut all = run_vectors(&exam, &options.common)?;
            all.merge(run_sweep(&exam, &options.common, FULL, 1, None)?);
            all.merge(run_code(&exam, &options.common, files)?);
            all = all.only_if(run_effects(&options.common)?);
            let idle: Vec<_> = (0..list.len()).filter(|at| !all.used.contains(at)).collect();
            idle.iter().for_each(|at| println!("left-out.txt: nothing needs {:?} any more", list[*at]));
            Ok(all.good && idle.is_empty())
        }
        Which::Vectors => Ok(run_vectors(&exam, &options.common)?.good),
        Which::Sweep { count, seed, ref family } => {
            Ok(run_sweep(&exam, &options.common, count, seed, family.as_deref())?.good)
        }
        Which::Code { ref files } => Ok(run_code(&exam, &options.common, files)?.good),
        Which::Effects | Which::Digest { .. } => Ok(true),
    }
}

/// Starts this program again with the userland's mounts, when a directory was given by hand.
fn enter(directory: Option<&Path>) -> Outcome<Option<bool>> {
    let Some(directory) = directory else { return Ok(None) };
    if std::env::var_os(ENV_ROOT).is_some() {
        return Ok(None);
    }
    let mut command = Userland::new(directory).namespace().command(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).env(ENV_ROOT, directory);
    Ok(Some(command.status()?.success()))
}

fn run_vectors(exam: &Exam<'_>, common: &Common) -> Outcome<Part> {
    let tests = common.tests.clone().or_else(vectors::tests_of_env).ok_or("--tests is missing")?;
    let cache = common.cache.clone().or_else(vectors::cache_of_env).ok_or("--cache is missing")?;
    let program = Oracle::build(exam.tools, 23)?.ok_or("the userland has no LLVM 23")?;
    let knows = |setting: &_| Ours.knows(setting) && starts_with(setting, &common.target);
    let vectors = vectors::collect(exam.tools, &tests, &cache, &knows)?;
    for (reason, count) in &vectors.out_of_scope {
        println!("{count} runs out of scope: {reason}");
    }
    println!("{} encodings with fixups are left to the linker", vectors.open);
    for (target, count) in by_target(&vectors) {
        println!("{target}: {count} vectors");
    }
    let (report, checks) = exam.vectors(&program, &vectors)?;
    println!("{} checks of the files confirmed, {} not", checks.confirmed, checks.contradicted.len());
    checks.contradicted.iter().take(40).for_each(|line| println!("  {line}"));
    let part = finish(&report, common, "vectors")?;
    Ok(part.only_if(checks.contradicted.is_empty()))
}

fn run_sweep(exam: &Exam<'_>, common: &Common, count: usize, seed: u64, only: Option<&str>) -> Outcome<Part> {
    let model = hotswap_isa_meta::rows::read(&ROWS.iter().collect::<PathBuf>())?;
    let mut all = Part::default();
    for family in FAMILIES.iter().filter(|family| only.is_none_or(|only| family.name == only)) {
        let knows = |setting: &_| Ours.knows(setting) && starts_with(setting, &common.target);
        let sweep = Sweep::new(&model, *family, knows);
        let Some(program) = Oracle::build(exam.tools, family.version)? else {
            println!("{}: the userland has no LLVM {}", family.name, family.version);
            all.good = false;
            continue;
        };
        let start = Instant::now();
        // One word in twenty is not judged where two versions of LLVM must agree.
        let count = if family.twin.is_some() { count + count / 16 } else { count };
        let (report, dropped) = sweep.run(exam, &program, count, seed)?;
        let seconds = start.elapsed().as_secs();
        println!("{}: {} encodings of rows, {seconds} s, seed {seed}", family.name, sweep.encodings());
        if dropped > 0 {
            println!("{}: {dropped} words on which LLVM 23 and 24 do not agree are not judged", family.name);
        }
        all.merge(finish(&report, common, &format!("sweep-{}", family.name))?);
    }
    Ok(all)
}

fn run_code(exam: &Exam<'_>, common: &Common, files: &[PathBuf]) -> Outcome<Part> {
    let program = Oracle::build(exam.tools, code::VERSION)?.ok_or("the userland has no LLVM 23")?;
    let mut oracle = Oracle::start(exam.tools, &program)?;
    let sources: PathBuf = [env!("CARGO_MANIFEST_DIR"), "kernels"].iter().collect();
    let (mut report, mut sum, mut problems) = (Report::default(), Bytes::default(), Vec::new());
    let settings = code::TARGETS.iter().filter_map(|text| Setting::parse(text));
    for setting in settings.filter(|setting| starts_with(setting, &common.target)) {
        for level in code::LEVELS {
            let object = code::compile(exam.tools, &sources, &setting, level)?;
            let name = format!("kernels {setting} {level}");
            let (bytes, found) = code::compare(exam, &mut oracle, &setting, &object, &name, &mut report)?;
            println!("{}", bytes.line(&name));
            sum.add(&bytes);
            problems.extend(found);
        }
    }
    for file in files {
        let content = hotswap_files::open_input(file)?;
        for (setting, objects) in code::objects(&content)? {
            if !starts_with(&setting, &common.target) || !Ours.knows(&setting) {
                continue;
            }
            let mut part = Bytes::default();
            let name = format!("{} {setting}", file.file_name().unwrap_or_default().to_string_lossy());
            for object in objects {
                let (bytes, found) = code::compare(exam, &mut oracle, &setting, &object, &name, &mut report)?;
                part.add(&bytes);
                problems.extend(found);
            }
            println!("{}", part.line(&name));
            sum.add(&part);
        }
    }
    println!("{}", sum.line("all"));
    println!("{} places where llvm-objdump says something else", problems.len());
    problems.iter().take(40).for_each(|problem| println!("  {problem}"));
    Ok(finish(&report, common, "code")?.only_if(problems.is_empty()))
}

fn digest(json: &Path, file: &Path) -> Outcome {
    let model = hotswap_isa_meta::rows::read(&ROWS.iter().collect::<PathBuf>())?;
    let descriptions = records::read(File::open(json)?, &effects::tables(&model))?;
    std::fs::write(file, &serde_json::to_vec(&descriptions)?)?;
    println!("{} encodings in {}", descriptions.len(), file.display());
    Ok(())
}

fn run_effects(common: &Common) -> Outcome<bool> {
    let model = hotswap_isa_meta::rows::read(&ROWS.iter().collect::<PathBuf>())?;
    let file = effects::file_of_env().ok_or("no digest of LLVM's records: start this with `cargo xtask isa exam`")?;
    let descriptions = serde_json::from_slice::<Vec<Description>>(&std::fs::read(file)?)?;
    let rules = rules::read(rules::LIST).map_err(|line| format!("effects-rules.txt:{line}: not six parts"))?;
    let outcome = effects::compare(&model, &descriptions, &rules);
    outcome.lines(&rules).iter().for_each(|line| println!("{line}"));
    if let Some(directory) = &common.report {
        std::fs::create_dir_all(directory)?;
        std::fs::write(directory.join("effects.txt"), outcome.differences())?;
    }
    Ok(outcome.is_good())
}

fn starts_with(setting: &Setting, target: &str) -> bool {
    setting.cpu.starts_with(target)
}

fn finish(report: &Report, common: &Common, name: &str) -> Outcome<Part> {
    report.lines().iter().for_each(|line| println!("{name}: {line}"));
    if let Some(directory) = &common.report {
        report.write(&directory.join(format!("{name}.txt")))?;
    }
    let over = report.over_limit();
    over.iter().for_each(|target| println!("{target}: more than 0.1 % is left out"));
    let sum = report.sum();
    let good = sum.different == 0 && sum.total > 0 && over.is_empty();
    Ok(Part { good, used: report.used().clone() })
}
