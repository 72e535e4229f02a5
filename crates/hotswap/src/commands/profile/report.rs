//! `hotswap profile report`: coverage of host and device code in one report.
//!
//! llvm-cov reads coverage maps out of programs; those of device code are in code objects inside the fat binary. These
//! are written to a separate directory. llvm-cov keeps one record for each function name, so each target is exported
//! alone, with its own profiles, and `hotswap-coverage` joins the exports.
//!
//! Absent on purpose: telling targets apart in merged profiles, whose counts are sums; that is said.

mod difference;
mod form;

use self::difference::ReportDifference;
use super::merge::merge;
use super::tools::{self, Llvm};
use super::{Gathered, Profile, ReportArguments, gather};
use crate::outcome::Outcome;
use crate::work::inventory;
use hotswap_bundle::ImageKind;
use hotswap_coverage::{CoverageReport, TargetExport};
use hotswap_files::{ScratchDirectory, on_all_cores};
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The name of the section with the coverage map.
const SECTION: &[u8] = b"__llvm_covmap\0";

/// A file for llvm-cov, and the target of its code.
struct Covered {
    path: PathBuf,
    target: String,
    from: PathBuf,
}

pub(crate) fn run(arguments: &ReportArguments) -> Result<Outcome, Diagnostic> {
    let target = arguments.profiles.target.as_deref();
    let Gathered { profiles, problems } = gather(&arguments.files, &arguments.profiles)?;
    let llvms = tools::find(&arguments.profiles.llvm_bin)?;
    let scratch = ScratchDirectory::temporary("hotswap-profile.")?;
    let mut covered = Vec::new();
    for file in std::iter::once(&arguments.program).chain(&arguments.object) {
        covered.extend(look_into(file, target, scratch.path(), covered.len())?);
    }
    if covered.is_empty() {
        let what = "no code with a coverage map is in it";
        let advice = "compile and link with -fprofile-instr-generate -fcoverage-mapping, through hotswap-clang";
        return Err(Diagnostic::error(codes::NO_PROFILE, what).in_file(&arguments.program).advise(advice));
    }
    let llvm = judge(&profiles, &llvms)?;
    let work = ReportTools { arguments, llvms: &llvms, llvm, directory: scratch.path() };
    let mut outcome = Outcome { problems, ..Outcome::default() };
    outcome.problems.extend(sums(&profiles, &covered));
    let mut exports = Vec::new();
    let targets: Vec<(&str, Vec<&Path>)> = by_target(&covered).into_iter().collect();
    // llvm-cov uses one core.
    let made = on_all_cores(targets.len(), |number| {
        let (target, objects) = &targets[number];
        work.export(number, target, objects, &profiles)
    });
    for result in made {
        let (export, said) = result?;
        exports.push(export);
        outcome.problems.extend(said);
    }
    let coverage = CoverageReport::of(exports);
    let diff = arguments.diff.as_deref().map(|revision| ReportDifference::of(revision, &coverage)).transpose()?;
    outcome.text = form::text(arguments, &coverage, &covered, diff.as_ref())?;
    outcome.problems.extend(below_threshold(arguments, &coverage, diff.as_ref()));
    Ok(outcome)
}

/// The objects of each target.
fn by_target(covered: &[Covered]) -> BTreeMap<&str, Vec<&Path>> {
    let mut targets: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for object in covered {
        targets.entry(&object.target).or_default().push(&object.path);
    }
    targets
}

/// A merged profile does not tell its targets apart.
fn sums(profiles: &[Profile], covered: &[Covered]) -> Option<Diagnostic> {
    let merged = profiles.iter().find(|profile| profile.parts.is_none())?;
    (by_target(covered).len() > 1).then(|| {
        let what =
            "the merged profile holds sums over host and GPUs: functions of one text have the same counts on each";
        let advice = "name the raw profiles instead, to see each target's own counts";
        Diagnostic::warning(codes::NO_PROFILE, what).in_file(&merged.path).advise(advice)
    })
}

/// The tools and the directory for a report.
struct ReportTools<'a> {
    arguments: &'a ReportArguments,
    llvms: &'a [Llvm],
    llvm: &'a Llvm,
    directory: &'a Path,
}

impl ReportTools<'_> {
    /// Exports the coverage of one target's objects with the profiles of that target.
    fn export(
        &self,
        number: usize,
        target: &str,
        objects: &[&Path],
        profiles: &[Profile],
    ) -> Result<(TargetExport, Vec<Diagnostic>), Diagnostic> {
        let is_own = |profile: &&Profile| profile.parts.is_none() || profile.target == processor(target);
        let own: Vec<Profile> = profiles.iter().filter(is_own).cloned().collect();
        let mut words: Vec<OsString> = vec!["export".into(), "--format=text".into()];
        let mut said = Vec::new();
        if own.is_empty() {
            words.push("--empty-profile".into());
        } else {
            let merged = self.directory.join(format!("{number}.profdata"));
            said = merge(&own, self.llvms, &merged, self.arguments.profiles.failure_mode)?.problems;
            let mut profile = OsString::from("--instr-profile=");
            profile.push(merged);
            words.push(profile);
        }
        for (number, object) in objects.iter().enumerate() {
            words.extend((number > 0).then(|| "-object".into()));
            words.push((*object).into());
        }
        let ran = tools::run(self.llvm, "llvm-cov", &words)?;
        said.extend(tools::warnings(&ran).map(|warning| warning.in_entry(target)));
        Ok((hotswap_coverage::parse(target, &ran.stdout)?, said))
    }
}

/// The error where less is covered than the threshold.
fn below_threshold(
    arguments: &ReportArguments,
    coverage: &CoverageReport,
    diff: Option<&ReportDifference>,
) -> Option<Diagnostic> {
    let threshold = arguments.fail_under?;
    let (lines, which) = match diff {
        Some(diff) => (diff.coverage.total, "added lines"),
        None => (coverage.union.lines, "lines"),
    };
    (lines.percent() < threshold).then(|| {
        let what = format!("{} of {} {which} are covered, less than {threshold} %", lines.covered, lines.count);
        Diagnostic::error(codes::BELOW_THRESHOLD, what).in_file(&arguments.program)
    })
}

/// The newest LLVM that reads one of the profiles: it reads the coverage maps of older ones, too.
fn judge<'a>(profiles: &[super::Profile], llvms: &'a [Llvm]) -> Result<&'a Llvm, Diagnostic> {
    let mut readers = Vec::new();
    for profile in profiles {
        for part in profile.parts.iter().flatten() {
            readers.push(tools::reader(llvms, part, &profile.path)?);
        }
    }
    let merged = profiles.iter().any(|profile| profile.parts.is_none());
    let all = if merged || readers.is_empty() { llvms.iter().collect() } else { readers };
    let newest = all.into_iter().max_by_key(|llvm| llvm.major);
    newest.ok_or_else(|| Diagnostic::error(codes::NO_TOOL, "no llvm-cov is at hand"))
}

/// The file itself if it has a map, and its code objects that have one, written to `directory`.
fn look_into(file: &Path, target: Option<&str>, directory: &Path, before: usize) -> Result<Vec<Covered>, Diagnostic> {
    let bytes = hotswap_files::open(file)?;
    let contents = hotswap_bundle::open(&bytes);
    let mut covered = Vec::new();
    let mut failed = None;
    let problems = inventory::visit(&contents, |container| {
        for row in container.rows {
            let name = row.target.clone().unwrap_or_else(|| "unknown".to_owned());
            let wanted = target.is_none_or(|target| row.is_for(target) || processor(&name) == target);
            if row.image.kind != ImageKind::CodeObject || !wanted || !has_map(&row.image.data) {
                continue;
            }
            let path = directory.join(format!("{}.co", before + covered.len()));
            failed = hotswap_files::replace(&path, &row.image.data).err().or(failed.take());
            covered.push(Covered { path, target: name, from: file.to_owned() });
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    // A program without device code may be covered, too.
    let damage = problems.into_iter().find(|problem| problem.code != codes::NOT_FOUND);
    if let Some(problem) = damage {
        return Err(problem.in_file(file));
    }
    if target.is_none_or(|target| target == "host") && host_map(&bytes, &contents) {
        let host = Covered { path: file.to_owned(), target: "host".to_owned(), from: file.to_owned() };
        covered.insert(0, host);
    }
    Ok(covered)
}

fn processor(target: &str) -> &str {
    target.split(':').next().unwrap_or_default()
}

fn has_map(bytes: &[u8]) -> bool {
    find(bytes, SECTION)
}

/// Whether the section name occurs outside of the fat binaries, whose code objects have it, too.
fn host_map(bytes: &[u8], contents: &hotswap_bundle::Contents<'_>) -> bool {
    let base = bytes.as_ptr() as usize;
    let mut inside: Vec<(usize, usize)> = contents
        .found
        .iter()
        .map(|found| (found.bytes.as_ptr() as usize).wrapping_sub(base))
        .zip(contents.found.iter().map(|found| found.bytes.len()))
        .collect();
    inside.sort_unstable();
    let mut at = 0;
    for (start, size) in inside {
        if bytes.get(at..start).is_some_and(|part| find(part, SECTION)) {
            return true;
        }
        at = start.saturating_add(size);
    }
    bytes.get(at..).is_some_and(|part| find(part, SECTION))
}

/// Finds a section name, which ends with a zero and follows one.
fn find(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}
