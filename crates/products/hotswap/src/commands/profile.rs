//! `hotswap profile`: raw profiles of host and devices merged, shown, and made into one coverage report.
//!
//! llvm-profdata and llvm-cov of the LLVM that reads the version at hand read and merge; files that they would reject are
//! refused by name beforehand ([`hotswap_coverage::raw_profile`]). The report joins one export for each target (`hotswap-coverage`).
//!
//! Absent on purpose: reading indexed profiles and coverage maps.

mod merge;
mod report;
mod show;
mod tools;

use crate::args::OutputOptions;
use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use clap::{Args, Subcommand, ValueEnum};
use hotswap_coverage::DirectoryMap;
use hotswap_coverage::raw_profile::{RawProfile, is_indexed_profile, read_raw_profiles};
use hotswap_files::reads;
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::TargetId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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

impl FailureMode {
    /// The argument for llvm-profdata.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Any => "--failure-mode=any",
            Self::All => "--failure-mode=all",
            Self::Warn => "--failure-mode=warn",
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

/// A file and the facts from its headers.
#[derive(Debug, Clone)]
pub(crate) struct ProfileFile {
    pub(crate) path: PathBuf,
    /// Its raw profiles; `None` for a merged one.
    pub(crate) parts: Option<Vec<RawProfile>>,
    /// Whether these are all of the file's.
    pub(crate) is_whole: bool,
}

/// `host`, or the target of the device code of a raw profile: from its identity; else the host's if it has a build ID and
/// no waves; else by the file's name.
pub(crate) fn target_of_part(path: &Path, part: &RawProfile) -> String {
    match &part.device {
        Some(device) => device.target.clone(),
        None if !part.build_ids.is_empty() && part.wave.is_none() => "host".to_owned(),
        None => target_of_name(path),
    }
}

/// Whether a raw profile is of the target: the same target ID, or one of its processor, or code that ran on it.
fn is_of(wanted: &str, path: &Path, part: &RawProfile) -> bool {
    let ran_on = part.device.as_ref().is_some_and(|device| device.gpu == wanted);
    ran_on || is_of_target(wanted, &target_of_part(path, part))
}

/// Whether a target is the wanted one: the same target ID, or one of its processor.
pub(crate) fn is_of_target(wanted: &str, target: &str) -> bool {
    let parsed = wanted.parse::<TargetId>().ok().zip(target.parse::<TargetId>().ok());
    let is_same = parsed.is_some_and(|(wanted, target)| wanted == target);
    is_same || target == wanted || target.split(':').next() == Some(wanted)
}

/// Extensions of profiles in directories.
const EXTENSIONS: [&str; 2] = ["profraw", "profdata"];

/// The profiles found, and those that were left out.
#[derive(Debug)]
pub(crate) struct GatheredProfiles {
    pub(crate) profiles: Vec<ProfileFile>,
    pub(crate) problems: Vec<Diagnostic>,
}

/// A file to read.
struct FoundFile {
    path: PathBuf,
    /// The directory that was named, by its position in the list, if the file itself was not.
    directory: Option<usize>,
}

/// The files, and those in directories, in the order of their names.
fn find_files(files: &[PathBuf]) -> Result<Vec<FoundFile>, Diagnostic> {
    let mut found = Vec::new();
    for (position, file) in files.iter().enumerate() {
        if reads::find_metadata(file)?.is_some_and(|meta| meta.is_dir()) {
            let mut paths = Vec::new();
            add_directory(file, &mut paths)?;
            found.extend(paths.into_iter().map(|path| FoundFile { path, directory: Some(position) }));
        } else {
            found.push(FoundFile { path: file.clone(), directory: None });
        }
    }
    Ok(found)
}

/// A merged profile of a directory that was named.
struct MergedFile {
    profile: ProfileFile,
    directory: usize,
}

/// Reads the files, and those in directories. Of a directory that has raw profiles, in itself or in those below it, the merged
/// ones are left out: they hold the same counts.
fn gather(files: &[PathBuf], which: &Profiles, target: Option<&str>) -> Result<GatheredProfiles, Diagnostic> {
    let (mut profiles, mut problems, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    let (mut merged, mut raw_directories) = (Vec::new(), BTreeSet::new());
    for FoundFile { path, directory } in find_files(files)? {
        match (read(path), directory) {
            (Ok(ProfileContent::Profile(profile)), Some(directory)) if profile.parts.is_none() => {
                merged.push(MergedFile { profile, directory });
            }
            (Ok(ProfileContent::Profile(profile)), _) => {
                raw_directories.extend(directory);
                profiles.extend(profile.only(target));
            }
            (Ok(ProfileContent::Nothing(path)), _) => empty.push(path),
            (Err(damage), _) if damage.code != codes::MALFORMED || which.failure_mode == FailureMode::Any => {
                return Err(damage);
            }
            (Err(damage), _) => problems.push(left_out(damage)),
        }
    }
    let (beside, alone): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|one| raw_directories.contains(&one.directory));
    problems.extend(say_merged(&beside));
    profiles.extend(alone.into_iter().filter_map(|one| one.profile.only(target)));
    if profiles.is_empty() {
        return Err(nothing(files, target, &empty, problems));
    }
    problems.extend(say_empty(&empty));
    Ok(GatheredProfiles { profiles, problems })
}

fn say_merged(merged: &[MergedFile]) -> Option<Diagnostic> {
    let first = &merged.first()?.profile;
    let names: Vec<String> = merged.iter().map(|one| one.profile.path.display().to_string()).collect();
    let what = format!("merged profiles beside raw ones, whose counts they hold, are left out: {}", names.join(", "));
    let advice = "name the file itself, not its directory, to add its counts";
    Some(Diagnostic::warning(codes::NO_PROFILE, what).in_file(&first.path).advise(advice))
}

/// The error when no profile is usable.
fn nothing(files: &[PathBuf], target: Option<&str>, empty: &[PathBuf], problems: Vec<Diagnostic>) -> Diagnostic {
    if let Some(path) = empty.first() {
        let what = "the file is empty: the program ended before it wrote its counters";
        let advice = "a program that is aborted leaves an empty file; run it until its end";
        return Diagnostic::error(codes::MALFORMED, what).in_file(path).advise(advice);
    }
    if let Some(damage) = problems.into_iter().next() {
        let advice = "no profile is sound; run the program again";
        return Diagnostic { severity: Severity::Error, ..damage }.advise(advice);
    }
    let what = match target {
        Some(target) => format!("no profile of {target} is there"),
        None => "no profile is there".to_owned(),
    };
    let at = files.first().map_or(Path::new(""), PathBuf::as_path);
    let advice = "run the program first; profiles lie where LLVM_PROFILE_FILE says, or in the working directory";
    Diagnostic::error(codes::NO_PROFILE, what).in_file(at).advise(advice)
}

fn left_out(damage: Diagnostic) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..damage }.advise("it is left out, as --failure-mode says")
}

/// Each host process that is aborted leaves an empty file, which LLVM's tools take for no counters at all.
fn say_empty(empty: &[PathBuf]) -> Option<Diagnostic> {
    let first = empty.first()?;
    let what = match empty.len() {
        1 => "the file is empty and left out: its program ended before it wrote its counters".to_owned(),
        count => format!("{count} files are empty and left out: their programs ended before they wrote their counters"),
    };
    Some(Diagnostic::warning(codes::NO_PROFILE, what).in_file(first))
}

struct DirectoryEntry {
    path: PathBuf,
    is_directory: bool,
}

/// Adds the profiles of a directory and of those in it, in the order of their names. Links to directories are not followed.
fn add_directory(directory: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Diagnostic> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(|one| directory_read_error(one, directory))? {
        let entry = entry.map_err(|one| directory_read_error(one, directory))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(|one| directory_read_error(one, &path))?;
        entries.push(DirectoryEntry { path, is_directory: kind.is_dir() });
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    for DirectoryEntry { path, is_directory } in entries {
        let is_profile = path.extension().is_some_and(|end| EXTENSIONS.iter().any(|known| end == *known));
        if is_directory {
            add_directory(&path, paths)?;
        } else if is_profile && reads::is_regular(&path)? {
            paths.push(path);
        }
    }
    Ok(())
}

fn directory_read_error(error: std::io::Error, directory: &Path) -> Diagnostic {
    Diagnostic::cannot_read(directory, error)
}

impl ProfileFile {
    /// The raw profiles of one target; `None` if there are none. A merged file has its target in its name only.
    fn only(self, target: Option<&str>) -> Option<Self> {
        let Some(target) = target else { return Some(self) };
        let Some(parts) = self.parts else {
            return (target_of_name(&self.path) == target).then_some(Self { parts: None, ..self });
        };
        let all = parts.len();
        let own: Vec<_> = parts.into_iter().filter(|part| is_of(target, &self.path, part)).collect();
        let is_whole = self.is_whole && own.len() == all;
        (!own.is_empty()).then_some(Self { path: self.path, parts: Some(own), is_whole })
    }
}

/// Drains of earlier versions, and LLVM's, begin a device's file with the name of the processor.
pub(crate) fn target_of_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let first = name.split('.').next().unwrap_or_default();
    if first.starts_with("gfx") && name.contains('.') { first.to_owned() } else { "host".to_owned() }
}

/// The content of a file.
enum ProfileContent {
    Profile(ProfileFile),
    /// The path of a file without any bytes.
    Nothing(PathBuf),
}

fn read(path: PathBuf) -> Result<ProfileContent, Diagnostic> {
    let bytes = hotswap_files::open_input(&path)?;
    if bytes.is_empty() {
        return Ok(ProfileContent::Nothing(path));
    }
    let parts = if is_indexed_profile(&bytes) { None } else { Some(read_raw_profiles(&bytes)) };
    let parts = parts.transpose().map_err(|why| {
        let advice =
            "llvm-profdata would reject the whole file; leave it out (--failure-mode=all), or run the program again";
        Diagnostic::error(codes::MALFORMED, why.to_string()).in_file(&path).advise(advice)
    })?;
    Ok(ProfileContent::Profile(ProfileFile { path, parts, is_whole: true }))
}
