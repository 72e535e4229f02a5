//! The coverage of a program on the host and on GPUs, measured by llvm-cov from its profiles.
//!
//! llvm-cov reads coverage maps out of programs; those of device code are in code objects inside the fat binary. These
//! are written to a separate directory. Each profile is matched with the code that it is of (`matching`). llvm-cov keeps
//! one record for each function name, so code objects that share names are exported alone, with their own profiles, and the
//! exports are joined. Profiles of other code and code without a profile are reported (`account`).
//!
//! Absent on purpose: telling targets apart in merged profiles, whose counts are sums; that is said.

use crate::covered::{Covered, look_into};
use crate::llvm_tools::{self, Llvm};
use crate::matching::{ExportGroup, PartRef, ProfileAccounts};
use crate::merge::merge_profiles;
use crate::profile_files::{ProfileFile, is_of_target};
use crate::request::CoverageRequest;
use crate::{CoverageReport, TargetExport, account, matching};
use hotswap_files::{ScratchDirectory, on_all_cores};
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The coverage, the code that it is of, and what does not fit.
pub struct MeasuredCoverage {
    pub report: CoverageReport,
    pub objects: Vec<Covered>,
    pub problems: Vec<Diagnostic>,
}

/// Measures the coverage of a program by these profiles.
///
/// # Errors
/// Files that cannot be read; [`codes::NO_PROFILE`] where no code has a coverage map; the errors of LLVM's tools.
pub fn measure_coverage(
    request: &CoverageRequest<'_>,
    profiles: &[ProfileFile],
    llvms: &[Llvm],
) -> Result<MeasuredCoverage, Diagnostic> {
    let scratch = ScratchDirectory::temporary("hotswap-profile.")?;
    let mut objects = Vec::new();
    for file in std::iter::once(request.program).chain(request.objects.iter().map(PathBuf::as_path)) {
        objects.extend(look_into(file, scratch.path(), objects.len())?);
    }
    if !objects.iter().any(|object| is_wanted(request.target, &object.target)) {
        let what = "no code with a coverage map is in it";
        let advice = "compile and link with -fprofile-instr-generate -fcoverage-mapping, through hotswap-clang";
        return Err(Diagnostic::error(codes::NO_PROFILE, what).in_file(request.program).advise(advice));
    }
    let mut accounts = matching::match_profiles(profiles, &objects);
    leave_out(request.target, &mut objects, &mut accounts);
    let mut problems = account::account_for(request, profiles, &objects, &accounts);
    let llvm = newest_reader(profiles, llvms)?;
    let tools = ExportTools { request, llvms, llvm, directory: scratch.path(), profiles };
    problems.extend(sums(profiles, &objects));
    let report = CoverageReport::of(tools.export_all(&objects, &accounts, &mut problems)?);
    Ok(MeasuredCoverage { report, objects, problems })
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
    wanted.is_none_or(|wanted| is_of_target(wanted, target))
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

/// The tools and the directory for the exports.
struct ExportTools<'a> {
    request: &'a CoverageRequest<'a>,
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

impl ExportTools<'_> {
    /// Exports the coverage of all objects, in groups that share no names.
    fn export_all(
        &self,
        objects: &[Covered],
        accounts: &ProfileAccounts,
        problems: &mut Vec<Diagnostic>,
    ) -> Result<Vec<TargetExport>, Diagnostic> {
        let is_merged = self.profiles.iter().any(|profile| profile.parts.is_none());
        let has_data: Vec<bool> = accounts.by_object.iter().map(|own| is_merged || !own.is_empty()).collect();
        let groups = matching::group_objects(objects, &has_data);
        // llvm-cov uses one core.
        let made = on_all_cores(groups.len(), |number| self.export(number, &groups[number], objects, accounts));
        let mut exports = Vec::new();
        for result in made {
            let GroupExport { export, problems: own } = result?;
            exports.push(export);
            problems.extend(own);
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
        let filters = self.request.ignored_names.iter();
        words.extend(filters.map(|filter| format!("--ignore-filename-regex={filter}").into()));
        let mut problems = Vec::new();
        if group.has_data {
            let merged = self.directory.join(format!("{number}.profdata"));
            problems = merge_profiles(&own, self.llvms, &merged, self.request.failure_mode)?;
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
        let ran = llvm_tools::run_tool(self.llvm, "llvm-cov", &words)?;
        if account::has_mismatches(&ran) {
            // Names are on request only, and spoil the export.
            words.extend(["--summary-only".into(), "-dump".into()]);
            let named = llvm_tools::run_tool(self.llvm, "llvm-cov", &words)?;
            let own: Vec<&Covered> = group.objects.iter().map(|number| &objects[*number]).collect();
            problems.extend(account::mismatched(self.request, group.target, &own, &named));
        }
        problems.extend(account::other_warnings(group.target, &ran));
        let mut export = crate::parse(group.target, &ran.stdout)?;
        export.has_data = group.has_data;
        export.rename_directories(self.request.path_map);
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

/// The newest LLVM that reads one of the profiles: it reads the coverage maps of older ones, too.
fn newest_reader<'a>(profiles: &[ProfileFile], llvms: &'a [Llvm]) -> Result<&'a Llvm, Diagnostic> {
    let mut readers = Vec::new();
    for profile in profiles {
        for part in profile.parts.iter().flatten() {
            readers.push(llvm_tools::reader_of(llvms, part, &profile.path)?);
        }
    }
    let merged = profiles.iter().any(|profile| profile.parts.is_none());
    let all = if merged || readers.is_empty() { llvms.iter().collect() } else { readers };
    let newest = all.into_iter().max_by_key(|llvm| llvm.major);
    newest.ok_or_else(|| Diagnostic::error(codes::NO_TOOL, "no llvm-cov is at hand"))
}
