//! `hotswap lint` on what compilers make, for every kind of target that it has rules for: HIP programs by clang, and LLVM's tests of
//! code generation by its compiler for intermediate language. A finding is a false alarm of ours or a fault of the compiler's.
//!
//! Invariants: a program that a compiler does not compile for a target is counted and replaced by the next one. Every
//! finding is listed; those with a line in `clang.explained` are no failures, and every such line is needed that is about a source
//! of the run.
//!
//! Absent on purpose: gfx1250-strict, whose code the exam of rewriting compiles at every level.

use crate::workers::on_all_processors;
use hotswap_lint::{LintFinding, lint_object};
use hotswap_rewrite_exam::llvm;
use hotswap_userland::Workbench;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A target of each kind of rules.
pub const TARGETS: [&str; 13] = [
    "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200",
    "gfx1201", "gfx1250",
];
const COMPILERS: [u32; 3] = [22, 23, 24];
const LEVELS: [char; 3] = ['2', '3', '0'];

/// Programs, and directories with their headers, from the directory of all checkouts.
struct Project {
    name: &'static str,
    programs: &'static str,
    headers: &'static [&'static str],
}

const PROJECTS: [Project; 3] = [
    Project { name: "hotswap", programs: ".", headers: &["cases"] },
    Project { name: "rocm-examples", programs: ".", headers: &["Common", "External"] },
    Project { name: "HeCBench", programs: "src", headers: &["src/include"] },
];

/// A source with device code.
#[derive(Debug, Clone)]
pub struct LintedSource {
    /// From the directory of the bench.
    pub path: PathBuf,
    /// Options for its headers.
    pub includes: String,
}

/// Everything that is compiled.
#[derive(Debug)]
pub struct LintSources {
    pub programs: Vec<LintedSource>,
    /// LLVM's tests.
    pub tests: Vec<PathBuf>,
}

/// A target with a version of the compilers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LintSetting {
    pub target: &'static str,
    pub version: u32,
}

/// A finding with the source that it is from.
#[derive(Debug)]
pub struct SourceFinding {
    /// Its name and level.
    pub source: String,
    pub finding: LintFinding,
}

/// The answers about one setting.
#[derive(Debug, Default)]
pub struct LintTally {
    pub programs: usize,
    pub tests: usize,
    /// Programs and tests that do not compile for the target.
    pub not_compiled: usize,
    /// Bytes of code objects.
    pub bytes: usize,
    pub findings: Vec<SourceFinding>,
    /// Objects that cannot be read, with the reason.
    pub unread: Vec<String>,
    /// The sources of all objects, with their level.
    pub sources: BTreeSet<String>,
    /// Sources that were taken, compiled or not.
    taken: TakenSources,
}

/// The numbers of sources that were taken for a setting.
#[derive(Debug, Default, Clone, Copy)]
struct TakenSources {
    programs: usize,
    tests: usize,
}

/// How many programs and tests are compiled for a setting.
#[derive(Debug, Clone, Copy)]
pub struct LintCounts {
    pub programs: usize,
    pub tests: usize,
}

/// The answers about all settings.
pub type LintTable = BTreeMap<LintSetting, LintTally>;

/// All targets, or one, with all compilers of the bench.
#[must_use]
pub fn empty_table(bench: &Workbench, only: &str) -> LintTable {
    let mut table = LintTable::new();
    for target in TARGETS.into_iter().filter(|target| only.is_empty() || *target == only) {
        for version in COMPILERS.into_iter().filter(|version| bench.versions.contains(version)) {
            table.insert(LintSetting { target, version }, LintTally::default());
        }
    }
    table
}

/// Copies this repository's programs and the checkouts into the bench, and lists all sources.
///
/// # Errors
/// A directory that cannot be copied or read.
pub fn lint_sources(bench: &Workbench, checkouts: Option<&Path>, llvm: &Path) -> std::io::Result<LintSources> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = bench.directory().join("hotswap");
    std::fs::create_dir(&own)?;
    for directory in ["examples", "tests/emulated-hip/cases"] {
        copy_directory(&root.join(directory), &own)?;
    }
    for project in PROJECTS.iter().skip(1) {
        if let Some(directory) = checkouts.map(|all| all.join(project.name)).filter(|directory| directory.exists()) {
            copy_directory(&directory, bench.directory())?;
        }
    }
    let mut programs = Vec::new();
    for project in &PROJECTS {
        programs.extend(programs_of_project(bench, project)?);
    }
    Ok(LintSources { programs: spread(programs), tests: spread(llvm::files(llvm)?) })
}

fn copy_directory(from: &Path, to: &Path) -> std::io::Result<()> {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(format!("{}: cp failed", from.display()))) }
}

fn programs_of_project(bench: &Workbench, project: &Project) -> std::io::Result<Vec<LintedSource>> {
    let (mut found, mut open) = (Vec::new(), vec![bench.directory().join(project.name).join(project.programs)]);
    open.retain(|directory| directory.exists());
    while let Some(directory) = open.pop() {
        for entry in directory.read_dir()? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                open.extend(Some(path).filter(|path| !is_for_cuda(path)));
            } else if is_program(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    let headers = project.headers.iter().map(|headers| format!("-I '{}/{headers}' ", project.name));
    let headers: String = headers.collect();
    let source = |path: PathBuf| {
        let path = path.strip_prefix(bench.directory()).unwrap_or(&path).to_owned();
        let own = path.parent().unwrap_or(&path).display().to_string();
        LintedSource { path, includes: format!("-I '{own}' {headers}") }
    };
    Ok(found.into_iter().map(source).collect())
}

fn is_program(path: &Path) -> bool {
    let ends = ["hip", "cu", "cc", "cpp"];
    let is_named = path.extension().is_some_and(|extension| ends.iter().any(|end| extension == *end));
    is_named && std::fs::read(path).is_ok_and(|text| String::from_utf8_lossy(&text).contains("__global__"))
}

/// Whether a directory has programs for CUDA: HeCBench has each of its programs for both, in files of the same names.
fn is_for_cuda(directory: &Path) -> bool {
    directory.to_string_lossy().ends_with("-cuda")
}

/// An order in which each beginning has some of all directories.
fn spread<T: Clone>(all: Vec<T>) -> Vec<T> {
    const STEP: usize = 7919;
    (0..all.len()).map(|turn| all[turn * STEP % all.len()].clone()).collect()
}

/// Compiles so many further programs and tests for each setting, and asks `lint` about each; a line for each setting is printed.
pub fn lint_compiled(bench: &Workbench, sources: &LintSources, table: &mut LintTable, counts: LintCounts) {
    let settings: Vec<(LintSetting, TakenSources)> =
        table.iter().map(|(setting, tally)| (*setting, tally.taken)).collect();
    let fresh = on_all_processors(&settings, |(setting, taken)| {
        let mut tally = LintTally { taken: *taken, ..LintTally::default() };
        lint_programs(bench, sources, *setting, counts.programs, &mut tally);
        lint_tests(bench, sources, *setting, counts.tests, &mut tally);
        println!("{} clang {}: {}", setting.target, setting.version, tally.text());
        tally.findings.iter().for_each(|one| println!("  {}: {}", one.source, one.finding.to_diagnostic()));
        tally.unread.iter().for_each(|line| println!("  {line}"));
        tally
    });
    for (tally, fresh) in table.values_mut().zip(fresh) {
        tally.merge(fresh);
    }
}

/// The source of a turn. Each setting begins elsewhere, so that all together compile as many of them as possible; `None` after all.
fn source_of_turn<T>(all: &[T], setting: LintSetting, turn: usize) -> Option<&T> {
    let target = TARGETS.iter().position(|target| *target == setting.target)?;
    let version = COMPILERS.iter().position(|version| *version == setting.version)?;
    let place = target * COMPILERS.len() + version;
    let begin = place * all.len() / (TARGETS.len() * COMPILERS.len());
    (turn < all.len()).then(|| &all[(begin + turn) % all.len()])
}

fn lint_programs(bench: &Workbench, sources: &LintSources, setting: LintSetting, wanted: usize, tally: &mut LintTally) {
    let LintSetting { target, version } = setting;
    let rocm = if version > 22 { "${ROCM:+--rocm-path=$ROCM}" } else { "" };
    let made = format!("program-{target}-{version}.co");
    while tally.programs < wanted
        && let Some(source) = source_of_turn(&sources.programs, setting, tally.taken.programs)
    {
        let level = LEVELS[tally.taken.programs % LEVELS.len()];
        tally.taken.programs += 1;
        let compile = format!(
            "timeout 300 clang++-{version} {rocm} -w -x hip -std=c++17 -O{level} --offload-device-only --no-gpu-bundle-output \
             --offload-arch={target} {} '{}' -o {made}",
            source.includes,
            source.path.display()
        );
        if !bench.shell(&compile).status.success() || !bench.path(&made).exists() {
            tally.not_compiled += 1;
            continue;
        }
        tally.programs += 1;
        tally.add(&format!("{} -O{level}", source.path.display()), &bench.read(&made));
        bench.remove(&made);
    }
}

fn lint_tests(bench: &Workbench, sources: &LintSources, setting: LintSetting, wanted: usize, tally: &mut LintTally) {
    let LintSetting { target, version } = setting;
    let stem = format!("test-{target}-{version}");
    while tally.tests < wanted
        && let Some(file) = source_of_turn(&sources.tests, setting, tally.taken.tests)
    {
        tally.taken.tests += 1;
        let Ok(text) = std::fs::read(file) else { continue };
        if !is_about_target(&String::from_utf8_lossy(&text), target) {
            continue;
        }
        bench.write(&format!("{stem}.ll"), &text);
        let compile = format!(
            "timeout 60 llc-{version} -mtriple=amdgcn-amd-amdhsa -mcpu={target} -filetype=obj {stem}.ll -o {stem}.o"
        );
        if !bench.shell(&compile).status.success() {
            tally.not_compiled += 1;
            continue;
        }
        tally.tests += 1;
        tally.add(&file.file_name().unwrap_or_default().to_string_lossy(), &bench.read(&format!("{stem}.o")));
    }
}

/// Whether a test is code for the target that may run. It is not if a function names another processor, or if execution runs into
/// `unreachable`, for which LLVM emits no instruction; a kernel without a name cannot be started, and LLVM emits images for
/// processors that lack them.
fn is_about_target(text: &str, target: &str) -> bool {
    const LACK_IMAGES: [&str; 2] = ["gfx942", "gfx950"];
    let is_nameless = |line: &str| {
        let name = line.split_once("amdgpu_kernel void @").map(|(_, name)| name);
        name.is_some_and(|name| name.starts_with(|first: char| first.is_ascii_digit()))
    };
    let has_images = text.contains("llvm.amdgcn.image") && LACK_IMAGES.contains(&target);
    let is_wrong = |line: &str| line.trim() == "unreachable" || is_nameless(line);
    !text.contains("\"target-cpu\"") && !has_images && !text.lines().any(is_wrong)
}

impl LintTally {
    fn add(&mut self, source: &str, object: &[u8]) {
        self.bytes += object.len();
        self.sources.insert(source.to_owned());
        match lint_object(object) {
            Ok(findings) => {
                let own = findings.into_iter().map(|finding| SourceFinding { source: source.to_owned(), finding });
                self.findings.extend(own);
            }
            Err(error) => self.unread.push(format!("{source}: {error}")),
        }
    }

    fn merge(&mut self, other: Self) {
        self.programs += other.programs;
        self.tests += other.tests;
        self.not_compiled += other.not_compiled;
        self.bytes += other.bytes;
        self.findings.extend(other.findings);
        self.unread.extend(other.unread);
        self.sources.extend(other.sources);
        self.taken = other.taken;
    }

    /// One line of text.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "{} programs, {} tests of LLVM, {} not compiled; {} KB, {} findings, {} not read",
            self.programs,
            self.tests,
            self.not_compiled,
            self.bytes / 1024,
            self.findings.len(),
            self.unread.len()
        )
    }
}
