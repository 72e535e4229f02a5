//! `prove`: evidence by execution, at full size.

use clap::Parser;
use hotswap_check::CheckOptions;
use hotswap_prove_exam::clang_lint::{LintCounts, LintSources};
use hotswap_prove_exam::clang_lint_page::{EXPLAINED, ExplainedFinding, lint_page, lint_problems};
use hotswap_prove_exam::evidence::{EvidenceRow, page};
use hotswap_prove_exam::judged_corpus::{JudgeTable, JudgedSource};
use hotswap_prove_exam::judges_page::PageCounts;
use hotswap_prove_exam::mutations::{self, MUTATIONS};
use hotswap_prove_exam::rewrites::{self, RewriteTally};
use hotswap_prove_exam::sizes::{FloatRange, RunPart, RunSizes, SizeOptions};
use hotswap_prove_exam::subjects::{self, RewrittenPair, SubjectKind};
use hotswap_prove_exam::workers::on_all_processors;
use hotswap_prove_exam::{
    clang_lint, csmith, exhaustive, judged_corpus, judges, judges_page, libraries, programs, proof, pseudo_code,
    random_kernels, twins, whole_runs,
};
use hotswap_rewrite_exam::compile::Setting;
use hotswap_rewrite_exam::corpus::{Unit, units};
use hotswap_userland::Workbench;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

#[derive(Parser)]
#[command(about = "Evidence by execution")]
enum Words {
    /// Everything; writes the table of evidence.
    All {
        /// The page.
        #[arg(long, default_value = "docs/evidence/execution.md")]
        page: PathBuf,
        /// Only rewritten objects whose name holds this.
        #[arg(long, default_value = "")]
        name: String,
        #[command(flatten)]
        sizes: SizeOptions,
    },
    /// Rewritten objects against their originals.
    Rewrites {
        /// Only objects whose name holds this.
        #[arg(default_value = "")]
        name: String,
        /// Write both forms to this directory.
        #[arg(long)]
        keep: Option<PathBuf>,
        #[command(flatten)]
        sizes: SizeOptions,
    },
    /// Replacements with planted faults.
    Mutations,
    /// Proofs by an SMT solver (`HOTSWAP_SMT`, or z3 or bitwuzla on the path).
    Proofs,
    /// Conversions of floats, every input.
    Exhaustive {
        #[command(flatten)]
        sizes: SizeOptions,
        /// Only this part of the floats, such as 3/8.
        #[arg(long, default_value_t = RunPart::WHOLE)]
        part: RunPart,
        /// All floats of the part; where they hold, a line in `docs/evidence/exhaustive-runs.txt`, which is committed.
        #[arg(long, conflicts_with = "step")]
        record: bool,
    },
    /// Single instructions against AMD's pseudo-code.
    PseudoCode,
    /// `rewrite`, `lint`, `verify --against` and `check` about the same objects: contradictions are failures.
    Judges {
        /// Only sources whose name holds this.
        #[arg(default_value = "")]
        name: String,
        /// Also LLVM's tests of code generation in this directory that name gfx1250.
        #[arg(long)]
        llvm: Option<PathBuf>,
        /// Also these code objects.
        #[arg(long)]
        file: Vec<PathBuf>,
        /// Also the HIP programs of the tests of emulated GPUs, for the source of every pair.
        #[arg(long)]
        programs: bool,
        /// Only the sources after the first N, for a run that was stopped there; its page must be of these N, and is added to.
        #[arg(long, value_name = "N", default_value_t = 0)]
        skip: usize,
        /// The page that gets the table; nothing is written without it.
        #[arg(long)]
        page: Option<PathBuf>,
    },
    /// `lint` about HIP programs and LLVM's tests as clang 22, 23 and 24 compile them, for every kind of target.
    Lint {
        /// Only this target; the page is of all.
        #[arg(default_value = "", conflicts_with = "page")]
        target: String,
        /// LLVM's tests of code generation.
        #[arg(long)]
        llvm: PathBuf,
        /// Directory with checkouts of rocm-examples and HeCBench.
        #[arg(long)]
        checkouts: Option<PathBuf>,
        /// Programs for each target and compiler.
        #[arg(long, default_value_t = 34)]
        programs: usize,
        /// LLVM's tests for each target and compiler.
        #[arg(long, default_value_t = 34)]
        tests: usize,
        /// Begin no further round after so many minutes.
        #[arg(long)]
        minutes: Option<u64>,
        /// The page that gets the table; nothing is written without it.
        #[arg(long)]
        page: Option<PathBuf>,
    },
    /// Random kernels, rewritten and judged; hours for thousands.
    Random {
        /// How many.
        #[arg(long, default_value_t = 5000)]
        kernels: u64,
        /// The seed of the first one.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// States of each changed instruction.
        #[arg(long, default_value_t = 50)]
        states: u64,
        /// Launches of each kernel.
        #[arg(long, default_value_t = 2)]
        launches: u64,
        /// The page that gets the table; nothing is written without it.
        #[arg(long)]
        page: Option<PathBuf>,
        /// Keep the objects about which the judges disagree in this directory.
        #[arg(long)]
        keep: Option<PathBuf>,
    },
    /// Algorithms of real libraries on emulated GPUs.
    Libraries,
    /// HIP programs as users write them, on emulated GPUs.
    Programs,
    /// Generated programs against the host.
    Twins {
        #[command(flatten)]
        sizes: SizeOptions,
    },
    /// Programs of csmith against the host.
    Csmith {
        #[command(flatten)]
        sizes: SizeOptions,
    },
}

fn main() -> ExitCode {
    let Some(bench) = Workbench::new("prove") else {
        eprintln!("prove: error: no ROCm userland (`cargo xtask prove` gives one)");
        return ExitCode::FAILURE;
    };
    let rows = match Words::parse() {
        Words::All { page, name, sizes } => return all(&bench, &page, &name, sizes.sizes()),
        Words::Rewrites { name, keep, sizes } => rewritten(&bench, &name, sizes.sizes(), keep.as_deref()),
        Words::Mutations => vec![planted(&bench)],
        Words::Proofs => vec![proof::row(&bench)],
        Words::Exhaustive { sizes, part, record } => match floats(&bench, sizes.sizes().step, part, record) {
            Ok(rows) => rows,
            Err(reason) => {
                eprintln!("prove: error: {reason}");
                return ExitCode::FAILURE;
            }
        },
        Words::PseudoCode => pseudo_code::row(&bench).into_iter().collect(),
        Words::Random { kernels, from, states, launches, page, keep } => {
            let options = CheckOptions { states, launches, ..CheckOptions::default() };
            return random(&bench, from..from + kernels, &options, [page.as_deref(), keep.as_deref()]);
        }
        Words::Judges { name, llvm, file, programs, skip, page } => {
            let mut more = file.into_iter().map(JudgedSource::File).collect::<Vec<_>>();
            more.extend(programs.then(judged_corpus::program_sources).into_iter().flatten());
            return match judged_sources(&bench, &name, llvm.as_deref(), more) {
                Ok(sources) => match earlier_counts(page.as_deref(), skip) {
                    Ok(earlier) => {
                        let known = JudgedPage { file: page.as_deref(), earlier, all: sources.len() };
                        ask_judges(&bench, &name, &sources[skip.min(sources.len())..], known)
                    }
                    Err(reason) => failure(&reason),
                },
                Err(reason) => failure(&reason),
            };
        }
        Words::Lint { target, llvm, checkouts, programs, tests, minutes, page } => {
            let sources = clang_lint::lint_sources(&bench, checkouts.as_deref(), &llvm);
            let limits = LintLimits { counts: LintCounts { programs, tests }, minutes };
            return lint_compilers(&bench, &target, sources, &limits, page.as_deref());
        }
        Words::Libraries => libraries::row().into_iter().collect(),
        Words::Programs => programs::row().into_iter().collect(),
        Words::Twins { sizes } => vec![twins::run(&bench, sizes.sizes().sources)],
        Words::Csmith { sizes } => csmith::row(&bench, sizes.sizes().csmith).into_iter().collect(),
    };
    println!("{}", page(&rows, &words()));
    exit(&rows)
}

/// The lines of every `step`th float of a part; with `record` of all, and the run is recorded.
fn floats(bench: &Workbench, step: u64, part: RunPart, record: bool) -> Result<Vec<EvidenceRow>, String> {
    let floats = FloatRange::all(if record { 1 } else { step });
    let mut rows = exhaustive::rows(bench, &floats.part(part.number - 1, part.count));
    if record {
        whole_runs::record(&rows, part, Path::new("."))?;
    }
    whole_runs::mention(&mut rows, &floats);
    Ok(rows.into())
}

/// The words of this run.
fn words() -> String {
    std::env::args().skip(1).collect::<Vec<_>>().join(" ")
}

fn exit(rows: &[EvidenceRow]) -> ExitCode {
    if !rows.is_empty() && rows.iter().all(|row| row.holds) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A part of a whole run: its name, and its lines. A part without a line lacked something, and said what.
type Part<'a> = (&'static str, Box<dyn Fn() -> Vec<EvidenceRow> + 'a>);

fn all(bench: &Workbench, file: &Path, name: &str, sizes: RunSizes) -> ExitCode {
    let parts: [Part<'_>; 9] = [
        ("rewrites", Box::new(|| rewritten(bench, name, sizes, None))),
        ("mutations", Box::new(|| vec![planted(bench)])),
        ("proofs", Box::new(|| vec![proof::row(bench)])),
        ("exhaustive", Box::new(|| floats(bench, sizes.step, RunPart::WHOLE, false).unwrap_or_default())),
        ("twins", Box::new(|| vec![twins::run(bench, sizes.sources)])),
        ("csmith", Box::new(|| csmith::row(bench, sizes.csmith).into_iter().collect())),
        ("pseudo-code", Box::new(|| pseudo_code::row(bench).into_iter().collect())),
        ("programs", Box::new(|| programs::row().into_iter().collect())),
        ("libraries", Box::new(|| libraries::row().into_iter().collect())),
    ];
    let (mut rows, mut is_complete) = (Vec::new(), true);
    for (part, run) in parts {
        let start = Instant::now();
        let own = run();
        println!("prove: {part}: {:.0} s", start.elapsed().as_secs_f64());
        is_complete &= !own.is_empty();
        rows.extend(own);
    }
    if let Err(error) = std::fs::write(file, page(&rows, &words())) {
        eprintln!("prove: error: {}: {error}", file.display());
        return ExitCode::FAILURE;
    }
    println!("{}", page(&rows, &words()));
    if is_complete { exit(&rows) } else { ExitCode::FAILURE }
}

/// An object of assembly, or a unit of the corpus.
enum Subject {
    Assembly(RewrittenPair),
    Compiled(Unit),
}

/// The lines of rewritten objects; both forms of each are kept in a directory where one is given.
fn rewritten(bench: &Workbench, name: &str, sizes: RunSizes, keep: Option<&Path>) -> Vec<EvidenceRow> {
    let kinds = [SubjectKind::Variants, SubjectKind::Spills];
    let assembly = kinds.into_iter().flat_map(|kind| subjects::assembly(bench, kind));
    let mut all: Vec<Subject> = assembly.filter(|pair| pair.name.contains(name)).map(Subject::Assembly).collect();
    all.extend(units().into_iter().filter(|unit| unit.name.contains(name)).map(Subject::Compiled));
    let setting = Setting { version: 24, level: '2', debug: true };
    let tallies = on_all_processors(&all, |subject| match subject {
        Subject::Assembly(pair) => vec![judge_rewritten_pair(pair, sizes.states, &keep)],
        Subject::Compiled(unit) => {
            let pairs = subjects::compiled(bench, setting, unit);
            pairs.iter().map(|pair| judge_rewritten_pair(pair, sizes.corpus_states, &keep)).collect()
        }
    });
    let mut tally = RewriteTally::default();
    tallies.into_iter().flatten().for_each(|own| tally.merge(own));
    println!("{}", tally.text());
    rewrites::rows(&tally, [sizes.states, sizes.corpus_states])
}

fn judge_rewritten_pair(pair: &RewrittenPair, states: u64, keep: &Option<&Path>) -> RewriteTally {
    if let Some(directory) = *keep {
        write_both(directory, pair);
    }
    judged(pair, &CheckOptions { states, ..CheckOptions::default() })
}

/// Compares an object and says so.
fn judged(pair: &RewrittenPair, options: &CheckOptions) -> RewriteTally {
    let mut own = RewriteTally::default();
    let start = Instant::now();
    own.add(pair, options);
    println!("{} ({:.1} s): {}", pair.name, start.elapsed().as_secs_f64(), own.text());
    own.differences.iter().for_each(|difference| println!("{difference}"));
    own
}

/// After so many sources the page has their results: a run that is stopped leaves those that it has.
const JUDGED_TOGETHER: usize = 32;

/// The page of a run of the judges.
struct JudgedPage<'p> {
    file: Option<&'p Path>,
    /// The counts that the page has of the sources that are skipped.
    earlier: PageCounts,
    /// The number of all sources.
    all: usize,
}

impl JudgedPage<'_> {
    fn write_table(&self, table: &JudgeTable, judged: usize, options: &CheckOptions) -> Result<(), String> {
        let Some(file) = self.file else { return Ok(()) };
        let mut counts = self.earlier.clone();
        counts.add_run(table, judged);
        let text = judges_page::page(&counts, options, self.all);
        std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
    }
}

fn earlier_counts(page: Option<&Path>, skip: usize) -> Result<PageCounts, String> {
    match page {
        Some(page) if skip > 0 => {
            let text = std::fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
            PageCounts::read_page(&text, skip)
        }
        _ => Ok(PageCounts::default()),
    }
}

/// Asks all judges about the corpus, and about results with planted faults; writes the page where one is named.
fn ask_judges(bench: &Workbench, name: &str, sources: &[JudgedSource], page: JudgedPage<'_>) -> ExitCode {
    let options = CheckOptions { states: 200, launches: 4, ..CheckOptions::default() };
    let mut table = JudgeTable::new();
    let mut judged = 0;
    for part in sources.chunks(JUDGED_TOGETHER) {
        judged_corpus::merge_tables(&mut table, judged_corpus::judge_sources(bench, part, &options));
        judged += part.len();
        println!("prove judges: {judged} of {} sources", sources.len());
        if let Err(reason) = page.write_table(&table, judged, &options) {
            return failure(&reason);
        }
    }
    let tally = judged_corpus::sum_table(table);
    tally.disagreements.iter().for_each(|what| println!("{what}"));
    println!("prove judges: {}", tally.text());
    let holds = tally.disagreements.is_empty() && tally.objects > 0;
    // A part of the corpus has no places for the faults.
    let holds = holds && (!name.is_empty() || are_faults_disagreements(bench, &options));
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Rounds of the lint of compilers, after each of which the page has the results: a run that is stopped leaves those that it has.
const LINT_ROUNDS: usize = 10;

/// How long and how much the lint of compilers runs.
struct LintLimits {
    counts: LintCounts,
    minutes: Option<u64>,
}

/// Asks `lint` about what compilers make; writes the page where one is named.
fn lint_compilers(
    bench: &Workbench,
    target: &str,
    sources: std::io::Result<LintSources>,
    limits: &LintLimits,
    page: Option<&Path>,
) -> ExitCode {
    let (sources, explained) = match (sources, ExplainedFinding::read_all(EXPLAINED)) {
        (Ok(sources), Ok(explained)) => (sources, explained),
        (Err(error), _) => return failure(&error.to_string()),
        (_, Err(reason)) => return failure(&reason),
    };
    println!("prove lint: {} programs, {} tests of LLVM", sources.programs.len(), sources.tests.len());
    let (mut table, begin) = (clang_lint::empty_table(bench, target), Instant::now());
    let LintCounts { programs, tests } = limits.counts;
    let counts = LintCounts { programs: programs.div_ceil(LINT_ROUNDS), tests: tests.div_ceil(LINT_ROUNDS) };
    let mut rounds = 0;
    while rounds < LINT_ROUNDS && limits.minutes.is_none_or(|minutes| begin.elapsed().as_secs() < minutes * 60) {
        clang_lint::lint_compiled(bench, &sources, &mut table, counts);
        rounds += 1;
        if let Some(page) = page
            && let Err(error) = std::fs::write(page, lint_page(&table, &explained))
        {
            return failure(&format!("{}: {error}", page.display()));
        }
    }
    let problems = lint_problems(&table, &explained, rounds == LINT_ROUNDS && target.is_empty());
    problems.iter().for_each(|problem| println!("{problem}"));
    let objects: usize = table.values().map(|tally| tally.programs + tally.tests).sum();
    println!(
        "prove lint: {objects} code objects for {} settings in {rounds} rounds of {LINT_ROUNDS}, {} problems",
        table.len(),
        problems.len()
    );
    if problems.is_empty() && objects > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn failure(reason: &str) -> ExitCode {
    eprintln!("prove: error: {reason}");
    ExitCode::FAILURE
}

/// The sources whose name holds `name`.
fn judged_sources(
    bench: &Workbench,
    name: &str,
    llvm: Option<&Path>,
    more: Vec<JudgedSource>,
) -> Result<Vec<JudgedSource>, String> {
    let mut sources = more;
    sources.extend(judged_corpus::committed_sources(bench));
    if let Some(directory) = llvm {
        let tests = judged_corpus::llvm_sources(directory);
        sources.extend(tests.map_err(|error| format!("{}: {error}", directory.display()))?);
    }
    let is_named = |source: &JudgedSource| matches!(source, JudgedSource::File(_)) || source.name().contains(name);
    sources.retain(is_named);
    Ok(sources)
}

/// Judges random kernels; writes the page where one is named.
fn random(bench: &Workbench, seeds: Range<u64>, options: &CheckOptions, [page, keep]: [Option<&Path>; 2]) -> ExitCode {
    /// After so many kernels the page has their results: a run that is stopped leaves those that it has.
    const PART: u64 = 200;
    let mut tally = random_kernels::RandomTally::default();
    for from in seeds.clone().step_by(PART as usize) {
        let part = from..seeds.end.min(from + PART);
        tally.merge(random_kernels::judge_random(bench, part.clone(), options, keep));
        println!("prove random: {} kernels, {} refused: {}", tally.kernels, tally.refused, tally.judged.text());
        if let Some(page) = page
            && let Err(error) = std::fs::write(page, random_kernels::page(&(seeds.start..part.end), options, &tally))
        {
            eprintln!("prove: error: {}: {error}", page.display());
            return ExitCode::FAILURE;
        }
    }
    tally.judged.disagreements.iter().for_each(|what| println!("{what}"));
    let holds = tally.judged.disagreements.is_empty() && tally.judged.changed > 0;
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plants faults in results of the rewriter: each is a disagreement.
fn are_faults_disagreements(bench: &Workbench, options: &CheckOptions) -> bool {
    let mut pairs = subjects::assembly(bench, SubjectKind::Variants);
    pairs.extend(subjects::assembly(bench, SubjectKind::Spills));
    let faults = judges::planted_disagreements(&pairs, &CheckOptions { states: 2000, ..options.clone() });
    faults.accepted.iter().for_each(|what| println!("check finds it, lint and verify do not: {what}"));
    println!("prove judges: {} planted faults, {} of them are disagreements", faults.faults, faults.seen);
    faults.accepted.is_empty() && faults.seen == faults.faults && faults.faults > 0
}

fn write_both(directory: &Path, pair: &RewrittenPair) {
    for (extension, bytes) in [("before", &pair.original), ("after", &pair.made)] {
        let file = directory.join(format!("{}.{extension}", pair.name));
        if let Err(error) = std::fs::write(&file, bytes) {
            eprintln!("prove: error: {}: {error}", file.display());
        }
    }
}

fn planted(bench: &Workbench) -> EvidenceRow {
    let options = CheckOptions { states: 2000, launches: 4, ..CheckOptions::default() };
    let mut all = subjects::assembly(bench, SubjectKind::Variants);
    all.extend(subjects::assembly(bench, SubjectKind::Spills));
    let missed = mutations::missed(&all, &options);
    missed.iter().for_each(|what| println!("not caught: {what}"));
    EvidenceRow {
        claim: "A family that is wrong would be seen".to_owned(),
        method: "replacements with one planted fault each, executed".to_owned(),
        cases: format!("{} faults of 10 families, up to {} states each", MUTATIONS.len(), options.states),
        result: format!("{} caught", MUTATIONS.len() - missed.len()),
        open: "distances (`v_nop`) are judged by `hotswap lint`".to_owned(),
        holds: missed.is_empty(),
    }
}
