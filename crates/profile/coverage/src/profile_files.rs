//! The profiles that were named, and those in directories, with the facts from their headers.
//!
//! Invariants: files in the order of their names; merged profiles beside raw ones are left out, because they hold the same
//! counts.

use crate::raw_profile::{RawProfile, is_indexed_profile, read_raw_profiles};
use hotswap_files::reads;
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::TargetId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modes of llvm-profdata's option of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureMode {
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

/// A file and the facts from its headers.
#[derive(Debug, Clone)]
pub struct ProfileFile {
    pub path: PathBuf,
    /// Its raw profiles; `None` for a merged one.
    pub parts: Option<Vec<RawProfile>>,
    /// Whether these are all of the file's.
    pub is_whole: bool,
}

/// `host`, or the target of the device code of a raw profile: from its identity; else the host's if it has a build ID and
/// no waves; else by the file's name.
pub fn target_of_part(path: &Path, part: &RawProfile) -> String {
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
pub struct GatheredProfiles {
    pub profiles: Vec<ProfileFile>,
    pub problems: Vec<Diagnostic>,
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
///
/// # Errors
/// Files that cannot be read; damaged ones under the mode `any`; [`codes::NO_PROFILE`] where none is usable.
pub fn gather_profiles(
    files: &[PathBuf],
    mode: FailureMode,
    target: Option<&str>,
) -> Result<GatheredProfiles, Diagnostic> {
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
            (Err(damage), _) if damage.code != codes::MALFORMED || mode == FailureMode::Any => {
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
