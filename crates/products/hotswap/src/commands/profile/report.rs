//! `hotswap profile report`: coverage of host and device code in one report.
//!
//! llvm-cov reads coverage maps out of programs; those of device code are in code objects inside the fat binary. These
//! are written to a separate directory. Each profile is matched with the code that it is of ([`matching`]). llvm-cov keeps
//! one record for each function name, so code objects that share names are exported alone, with their own profiles, and
//! `hotswap-coverage` joins the exports. Profiles of other code and code without a profile are reported ([`account`]).
//!
//! Absent on purpose: telling targets apart in merged profiles, whose counts are sums; that is said.

mod account;
mod difference;
mod form;
mod matching;

use self::difference::ReportDifference;
use self::form::SourceTexts;
use self::matching::{ExportGroup, PartRef, ProfileAccounts};
use super::merge::merge;
use super::tools::{self, Llvm};
use super::{GatheredProfiles, ProfileFile, ReportArguments, gather};
use crate::outcome::CommandOutcome;
use crate::work::inventory;
use hotswap_bundle::ImageKind;
use hotswap_coverage::identity::ObjectIdentity;
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
    identity: ObjectIdentity,
}

pub(crate) fn run(arguments: &ReportArguments) -> Result<CommandOutcome, Diagnostic> {
    let target = arguments.profiles.target.as_deref();
    let GatheredProfiles { profiles, problems } = gather(&arguments.files, &arguments.profiles, None)?;
    let llvms = tools::find(&arguments.profiles.llvm_bin)?;
    let scratch = ScratchDirectory::temporary("hotswap-profile.")?;
    let mut objects = Vec::new();
    for file in std::iter::once(&arguments.program).chain(&arguments.object) {
        objects.extend(look_into(file, scratch.path(), objects.len())?);
    }
    if !objects.iter().any(|object| is_wanted(target, &object.target)) {
        let what = "no code with a coverage map is in it";
        let advice = "compile and link with -fprofile-instr-generate -fcoverage-mapping, through hotswap-clang";
        return Err(Diagnostic::error(codes::NO_PROFILE, what).in_file(&arguments.program).advise(advice));
    }
    let mut accounts = matching::match_profiles(&profiles, &objects);
    let mut outcome = CommandOutcome { problems, ..CommandOutcome::default() };
    leave_out(target, &mut objects, &mut accounts);
    outcome.problems.extend(account::account_for(arguments, &profiles, &objects, &accounts));
    let llvm = judge(&profiles, &llvms)?;
    let work = ReportTools { arguments, llvms: &llvms, llvm, directory: scratch.path(), profiles: &profiles };
    outcome.problems.extend(sums(&profiles, &objects));
    let coverage = CoverageReport::of(work.export_all(&objects, &accounts, &mut outcome)?);
    let diff = arguments.diff.as_deref().map(|revision| ReportDifference::of(revision, &coverage)).transpose()?;
    let sources = SourceTexts::read(arguments, &coverage)?;
    outcome.text = form::text(arguments, &coverage, &objects, diff.as_ref(), &sources)?;
    outcome.problems.extend(form::missing_sources(arguments, &coverage, &sources));
    outcome.problems.extend(below_threshold(arguments, &coverage, diff.as_ref()));
    Ok(outcome)
}

/// Drops the objects of other targets than the wanted one; their profiles are accounted for.
fn leave_out(target: Option<&str>, objects: &mut Vec<Covered>, accounts: &mut ProfileAccounts) {
    let keep: Vec<bool> = objects.iter().map(|object| is_wanted(target, &object.target)).collect();
    let mut kept = keep.iter();
    objects.retain(|_| kept.next() == Some(&true));
    let mut kept = keep.iter();
    accounts.by_object.retain(|_| kept.next() == Some(&true));
}

/// Whether a target is that of `--target`: the same target ID, or one of its processor.
fn is_wanted(wanted: Option<&str>, target: &str) -> bool {
    wanted.is_none_or(|wanted| super::is_of_target(wanted, target))
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
fn sums(profiles: &[ProfileFile], covered: &[Covered]) -> Option<Diagnostic> {
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
    profiles: &'a [ProfileFile],
}

/// An export, and the messages about it.
struct GroupExport {
    export: TargetExport,
    problems: Vec<Diagnostic>,
}

impl ReportTools<'_> {
    /// Exports the coverage of all objects, in groups that share no names.
    fn export_all(
        &self,
        objects: &[Covered],
        accounts: &ProfileAccounts,
        outcome: &mut CommandOutcome,
    ) -> Result<Vec<TargetExport>, Diagnostic> {
        let is_merged = self.profiles.iter().any(|profile| profile.parts.is_none());
        let has_data: Vec<bool> = accounts.by_object.iter().map(|own| is_merged || !own.is_empty()).collect();
        let groups = matching::group_objects(objects, &has_data);
        // llvm-cov uses one core.
        let made = on_all_cores(groups.len(), |number| self.export(number, &groups[number], objects, accounts));
        let mut exports = Vec::new();
        for result in made {
            let GroupExport { export, problems } = result?;
            exports.push(export);
            outcome.problems.extend(problems);
        }
        Ok(exports)
    }

    /// Exports the coverage of a group with its own profiles.
    fn export(
        &self,
        number: usize,
        group: &ExportGroup<'_>,
        objects: &[Covered],
        accounts: &ProfileAccounts,
    ) -> Result<GroupExport, Diagnostic> {
        let parts: Vec<PartRef> =
            group.objects.iter().flat_map(|object| &accounts.by_object[*object]).copied().collect();
        let own = self.own_profiles(&parts);
        let mut words: Vec<OsString> = vec!["export".into(), "--format=text".into()];
        let filters = self.arguments.ignore_filename_regex.iter();
        words.extend(filters.map(|filter| format!("--ignore-filename-regex={filter}").into()));
        let mut problems = Vec::new();
        if group.has_data {
            let merged = self.directory.join(format!("{number}.profdata"));
            problems = merge(&own, self.llvms, &merged, self.arguments.profiles.failure_mode)?.problems;
            let mut profile = OsString::from("--instr-profile=");
            profile.push(merged);
            words.push(profile);
        } else {
            words.push("--empty-profile".into());
        }
        for (number, object) in group.objects.iter().enumerate() {
            words.extend((number > 0).then(|| "-object".into()));
            words.push((&objects[*object].path).into());
        }
        let ran = tools::run(self.llvm, "llvm-cov", &words)?;
        if account::has_mismatches(&ran) {
            // Names are on request only, and spoil the export.
            words.extend(["--summary-only".into(), "-dump".into()]);
            let named = tools::run(self.llvm, "llvm-cov", &words)?;
            let own: Vec<&Covered> = group.objects.iter().map(|number| &objects[*number]).collect();
            problems.extend(account::mismatched(self.arguments, group.target, &own, &named));
        }
        problems.extend(account::other_warnings(group.target, &ran));
        let mut export = hotswap_coverage::parse(group.target, &ran.stdout)?;
        export.has_data = group.has_data;
        export.rename_directories(&self.arguments.path_map);
        Ok(GroupExport { export, problems })
    }

    /// These parts, by their files, and the merged profiles, which hold sums of everything.
    fn own_profiles(&self, parts: &[PartRef]) -> Vec<ProfileFile> {
        let mut own = Vec::new();
        for (number, profile) in self.profiles.iter().enumerate() {
            let Some(all) = &profile.parts else {
                own.push(profile.clone());
                continue;
            };
            let mine = parts.iter().filter(|part| part.profile == number);
            let mine: Vec<_> = mine.map(|part| all[part.part].clone()).collect();
            if !mine.is_empty() {
                let is_whole = mine.len() == all.len();
                own.push(ProfileFile { path: profile.path.clone(), is_whole, parts: Some(mine) });
            }
        }
        own
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
fn judge<'a>(profiles: &[super::ProfileFile], llvms: &'a [Llvm]) -> Result<&'a Llvm, Diagnostic> {
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
fn look_into(file: &Path, directory: &Path, before: usize) -> Result<Vec<Covered>, Diagnostic> {
    let bytes = hotswap_files::open_input(file)?;
    let contents = hotswap_bundle::find_containers(&bytes);
    let mut covered = Vec::new();
    let mut failed = None;
    let problems = inventory::visit(&contents, |container| {
        for row in container.rows {
            let name = row.target.clone().unwrap_or_else(|| "unknown".to_owned());
            if row.image.kind != ImageKind::CodeObject || !has_map(&row.image.data) {
                continue;
            }
            let path = directory.join(format!("{}.co", before + covered.len()));
            failed = hotswap_files::replace_file(&path, &row.image.data).err().or(failed.take());
            let identity = ObjectIdentity::from_code_object(&row.image.data);
            covered.push(Covered { path, target: name, from: file.to_owned(), identity });
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
    if host_map(&bytes, &contents) {
        let identity = ObjectIdentity::from_host(&bytes);
        let host = Covered { path: file.to_owned(), target: "host".to_owned(), from: file.to_owned(), identity };
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
fn host_map(bytes: &[u8], contents: &hotswap_bundle::FoundContents<'_>) -> bool {
    let base = bytes.as_ptr() as usize;
    let starts = contents.found.iter().map(|found| (found.bytes.as_ptr() as usize).wrapping_sub(base));
    let sizes = contents.found.iter().map(|found| found.bytes.len());
    let mut inside: Vec<_> = starts.zip(sizes).map(|(start, size)| start..start.saturating_add(size)).collect();
    inside.sort_unstable_by_key(|range| (range.start, range.end));
    let mut at = 0;
    for range in inside {
        if bytes.get(at..range.start).is_some_and(|part| find(part, SECTION)) {
            return true;
        }
        at = range.end;
    }
    bytes.get(at..).is_some_and(|part| find(part, SECTION))
}

/// Finds a section name, which ends with a zero and follows one.
fn find(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}
