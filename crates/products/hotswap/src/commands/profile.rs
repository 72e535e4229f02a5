//! `hotswap profile`: raw profiles of host and devices merged, shown, and made into one coverage report.
//!
//! llvm-profdata and llvm-cov of the LLVM that reads the version at hand read and merge; files that they would reject are
//! refused by name beforehand ([`hotswap_coverage::raw_profile`]). The report joins one export for each target (`hotswap-coverage`).
//!
//! Absent on purpose: reading indexed profiles and coverage maps.

mod merge;
mod report;
mod show;

use crate::args::OutputOptions;
use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use clap::{Args, Subcommand, ValueEnum};
use hotswap_coverage::{DirectoryMap, GatheredProfiles};
use hotswap_report::Diagnostic;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Merge profiles of host and devices, of one LLVM or several, into one for -fprofile-use
    Merge(Merge),
    /// Say what raw profiles hold: whose, of which version, how much
    Show(Show),
    /// Report the coverage of host and device code together
    Report(ReportArguments),
}

/// Which profiles.
#[derive(Debug, Args)]
pub(crate) struct Profiles {
    /// Only profiles of this GPU, for example gfx90a or gfx90a:xnack+, or of the `host`
    #[arg(long, value_name = "GPU")]
    target: Option<String>,
    /// Directory with llvm-profdata and llvm-cov; may be repeated for several LLVMs [default: beside clang, /usr/lib/llvm-*]
    #[arg(long, value_name = "DIRECTORY")]
    llvm_bin: Vec<PathBuf>,
    /// Damaged profiles: `any` is an error, `all` or `warn` leave them out with a warning while one is sound. Empty
    /// ones, as programs leave that end early, are left out always
    #[arg(long, value_enum, value_name = "MODE", default_value_t)]
    failure_mode: FailureMode,
}

/// The modes of llvm-profdata's option of that name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailureMode {
    #[default]
    Any,
    All,
    Warn,
}

impl From<FailureMode> for hotswap_coverage::FailureMode {
    fn from(mode: FailureMode) -> Self {
        match mode {
            FailureMode::Any => Self::Any,
            FailureMode::All => Self::All,
            FailureMode::Warn => Self::Warn,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Merge {
    /// Raw or merged profiles, or directories that hold them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output file
    #[arg(short, value_name = "OUT", value_parser = output_file())]
    output: PathBuf,
    #[command(flatten)]
    profiles: Profiles,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Raw profiles, or directories that hold them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Show each function with its counters, as llvm-profdata prints them
    #[arg(long, conflicts_with = "format")]
    functions: bool,
    #[command(flatten)]
    profiles: Profiles,
    #[command(flatten)]
    output: OutputOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The program or library whose code was covered
    program: PathBuf,
    /// Further libraries of the program
    #[arg(long, value_name = "FILE")]
    object: Vec<PathBuf>,
    /// Profiles, or directories that hold them
    #[arg(long = "profile", required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write pages with the sources to this directory
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "format")]
    html: Option<PathBuf>,
    /// Show the lines of the sources with their counts
    #[arg(long, conflicts_with_all = ["html", "format"])]
    lines: bool,
    /// Show functions and kernels with their counts
    #[arg(long, conflicts_with_all = ["html", "format", "lines"])]
    functions: bool,
    /// Also report the lines that differ from this git revision; with --fail-under, they count instead of all lines
    #[arg(long, value_name = "REVISION")]
    diff: Option<String>,
    /// Leave out sources whose names match this regular expression; may be repeated
    #[arg(long, value_name = "REGEX")]
    ignore_filename_regex: Vec<String>,
    /// Sources of one directory are in another one here; may be repeated, the last one that fits is used
    #[arg(long, value_name = "FROM=TO", value_parser = directory_map)]
    path_map: Vec<DirectoryMap>,
    /// Sources with relative names (-fcoverage-prefix-map) are in this directory
    #[arg(long, value_name = "DIRECTORY")]
    source_dir: Option<PathBuf>,
    /// Fail if a profile is of other code, if code has no profile, or if functions have changed since
    #[arg(long)]
    strict: bool,
    /// Fail if fewer lines are covered, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_under: Option<f64>,
    #[command(flatten)]
    profiles: Profiles,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: ReportFormat,
}

/// Nothing is less than NaN, and everything is at least -1: such a threshold would never fail.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "it is no number from 0 to 100".to_owned())
}

fn directory_map(text: &str) -> Result<DirectoryMap, String> {
    let pair = text.split_once('=').filter(|(from, _)| !from.is_empty());
    let (from, to) = pair.ok_or_else(|| "it is not FROM=TO".to_owned())?;
    Ok(DirectoryMap { from: from.to_owned(), to: to.to_owned() })
}

/// Forms of the coverage report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people
    #[default]
    Text,
    /// For programs: everything
    Json,
    /// lcov's tracefile
    Lcov,
    /// Cobertura's XML
    Cobertura,
    /// A table for the comment on a pull request
    Markdown,
    /// Workflow commands of GitHub Actions, for the lines of --diff that were not executed
    Annotations,
}

impl ProfileCommand {
    pub(crate) fn run(&self) -> Result<CommandOutcome, Diagnostic> {
        match self {
            Self::Merge(arguments) => merge::run(arguments),
            Self::Show(arguments) => show::run(arguments),
            Self::Report(arguments) => report::run(arguments),
        }
    }
}

/// Reads the profiles that were named.
fn gather(files: &[PathBuf], which: &Profiles, target: Option<&str>) -> Result<GatheredProfiles, Diagnostic> {
    hotswap_coverage::gather_profiles(files, which.failure_mode.into(), target)
}
