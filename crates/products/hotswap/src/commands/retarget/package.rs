//! `hotswap retarget --to` of a package: of each of its files with device code.
//!
//! Files that a library chooses by the GPU's name cannot be retargeted one by one: that is `hotswap serve`. Code objects in
//! files of their own become fat binaries (`--keep-source`), or are refused, because the package serves its own GPUs, too.
//!
//! Invariants: under the policy `error` nothing is written where a target cannot be made in one of the files. The new package gives
//! every GPU that is not dropped what it got from the old one, data files of libraries included.

use super::{FileReport, RetargetArguments, RetargetPaths};
use crate::args::OutputFormat;
use crate::outcome::CommandOutcome;
use crate::work::package_tree::{FileSet, PackageTree};
use crate::work::{packages, text};
use hotswap_code_object::is_code_object;
use hotswap_file_edit::new_file;
use hotswap_file_reports::retarget_report::{ResultRow, add_row, rows_text};
use hotswap_files::{Placement, ScratchDirectory};
use hotswap_packages::{MemberChange, PackageChanges, PackageFormat, PackageMember};
use hotswap_pipeline::RetargetRequest;
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::{Processor, find_processor};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The results for the files.
#[derive(Default)]
struct PackageReport {
    rows: Vec<ResultRow>,
    json: Vec<Value>,
    problems: Vec<Diagnostic>,
    changed: usize,
    unchanged: usize,
    /// The GPUs that data files are for, each with one of the files.
    data: BTreeMap<String, String>,
}

impl PackageReport {
    /// Without device code there is nothing to do, as in a file of another kind.
    fn check_code(&self) -> Result<(), Diagnostic> {
        if self.changed + self.unchanged > 0 || !self.data.is_empty() || !self.problems.is_empty() {
            return Ok(());
        }
        Err(Diagnostic::error(codes::NOT_FOUND, "none of the files of the package holds code for an AMD GPU"))
    }

    fn is_refused(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }
}

impl RetargetArguments {
    pub(super) fn package(&self, format: PackageFormat) -> Result<CommandOutcome, Diagnostic> {
        if self.to.is_empty() || !self.source.is_empty() {
            let what = "a package is retargeted by --to, from the code that it has";
            return Err(Diagnostic::error(codes::USAGE, what).in_file(&self.file));
        }
        if self.in_place.placement() == Placement::SameInode {
            return Err(packages::not_in_place().in_file(&self.file));
        }
        let request = self.request()?;
        let scratch = ScratchDirectory::temporary("hotswap-retarget-")?;
        let mut report = PackageReport::default();
        if self.dry_run {
            hotswap_packages::visit_package(&self.file, format, &mut |member| {
                self.member(member, &request, scratch.path(), &mut report).map(drop)
            })?;
            report.check_code().map_err(|error| error.in_file(&self.file))?;
            self.ask_names(&request, &mut report);
            return self.package_outcome(report, None);
        }
        // The archive is decompressed once, and the files are made once, before it is known whether the package is written.
        let form = FileSet::Package(format);
        let package = PackageTree::to_change(&self.file, form)?;
        let mut made: BTreeMap<String, MemberChange> = BTreeMap::new();
        package.visit_members(&mut |member| {
            let new = self.member(member, &request, scratch.path(), &mut report)?;
            if let MemberChange::Replaced(_) = new {
                made.insert(member.name.to_owned(), new);
            }
            Ok(())
        })?;
        report.check_code().map_err(|error| error.in_file(&self.file))?;
        self.ask_names(&request, &mut report);
        let is_changed = report.changed > 0;
        if report.is_refused() || !is_changed && hotswap_files::is_same_place(&self.file, self.output())? {
            let outcome = self.package_outcome(report, None)?;
            return Ok(if is_changed { outcome } else { outcome.note_unchanged(&self.file, super::NOTHING_ADDED) });
        }
        let other_names = new_file::warn_of_other_names(&self.file, self.output(), Placement::NewFile)?;
        let changes = PackageChanges {
            change: &mut |member| Ok(made.get(member.name).cloned().unwrap_or(MemberChange::Unchanged)),
            link: None,
            added: &[],
        };
        let size = package.rewrite(self.output(), changes, &|new| {
            package.check_losses(new, form, &request.drop).map_err(|error| error.in_file(&self.file))
        })?;
        let mut outcome = self.package_outcome(report, Some(size))?;
        outcome.problems.extend(other_names);
        Ok(if is_changed { outcome } else { outcome.note_unchanged(&self.file, super::NOTHING_ADDED) })
    }

    fn member(
        &self,
        member: &PackageMember<'_>,
        request: &RetargetRequest,
        scratch: &Path,
        report: &mut PackageReport,
    ) -> Result<MemberChange, Diagnostic> {
        if let Some(gpu) = packages::gpu_of(member.name) {
            report.data.entry(gpu).or_insert_with(|| member.name.to_owned());
            return Ok(MemberChange::Unchanged);
        }
        if !packages::has_code(member)? {
            return Ok(MemberChange::Unchanged);
        }
        let name = packages::label(&self.file, member.name);
        let is_alone = is_code_object(&hotswap_files::open_input(member.content)?);
        if is_alone && !self.keep_source {
            report.problems.extend(request.policy.severity().map(|severity| alone(severity).in_file(name)));
            return Ok(MemberChange::Unchanged);
        }
        let output = scratch.join(format!("made{}", report.changed));
        let paths = RetargetPaths { file: member.content, output: &output, name: &name, keeps_source: is_alone };
        let one = match self.serve(request, &paths) {
            // Device code of other kinds, as in a directory.
            Err(error) if error.code == codes::NOT_FOUND => return Ok(MemberChange::Unchanged),
            one => one?,
        };
        report.problems.extend(one.problems);
        match one.report {
            FileReport::Json(value) => report.json.push(value),
            FileReport::Text(_, rows) => rows.into_iter().for_each(|row| add_row(&mut report.rows, row)),
        }
        if !one.is_changed {
            report.unchanged += 1;
            return Ok(MemberChange::Unchanged);
        }
        report.changed += 1;
        Ok(MemberChange::Replaced(output))
    }

    /// Files for the targets that the host library would look for, and does not find.
    fn ask_names(&self, request: &RetargetRequest, report: &mut PackageReport) {
        let Some(severity) = request.policy.severity() else { return };
        for target in request.targets.iter().filter(|target| !report.data.contains_key(target.name)) {
            let Some(file) = report
                .data
                .keys()
                .find(|one| serves_requested_target(one, target))
                .and_then(|gpu| report.data.get(gpu))
            else {
                continue;
            };
            let what =
                format!("the library looks for files for {target} by that name, and this one is for another GPU");
            let problem = Diagnostic { severity, ..Diagnostic::error(codes::CHOSEN_BY_NAME, what) };
            let advice = format!("`hotswap serve {target} PACKAGE --dest DIR` makes files and host part agree");
            report.problems.push(problem.in_file(packages::label(&self.file, file)).advise(advice));
        }
    }

    fn package_outcome(&self, report: PackageReport, size: Option<u64>) -> Result<CommandOutcome, Diagnostic> {
        let before = packages::size(&self.file)?;
        let PackageReport { rows, json, problems, changed, unchanged, .. } = report;
        if !json.is_empty() || rows.is_empty() && self.format.format == OutputFormat::Json {
            let value = json!({ "schema": 1, "package": self.file.display().to_string(), "written": size.is_some(),
                "sizes": [before, size.unwrap_or(before)], "changed": changed, "unchanged": unchanged, "files": json });
            return Ok(CommandOutcome { text: text::json(&value), problems, ..CommandOutcome::default() });
        }
        let file = text::plain(&self.file.display().to_string());
        let end = size.map_or("nothing was written".to_owned(), |size| format!("{before} to {size} bytes"));
        let counts = format!("{file}: {changed} files changed, {unchanged} with nothing to add; {end}\n");
        Ok(CommandOutcome { text: rows_text(&rows) + &counts, problems, ..CommandOutcome::default() })
    }
}

fn serves_requested_target(gpu: &&String, target: &Processor) -> bool {
    find_processor(gpu).and_then(|source| hotswap_compat::find_pair(source, target)).is_some()
}

/// A code object in a file of its own, in a package.
fn alone(severity: Severity) -> Diagnostic {
    let what = "a code object in a file of its own has room for one target, and the package's own GPUs need it";
    let problem = Diagnostic { severity, ..Diagnostic::error(codes::NO_PLACE, what) };
    problem.advise("--keep-source makes a fat binary of it, for programs that load it by HIP")
}
