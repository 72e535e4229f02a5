//! `hotswap profile report`: coverage of host and device code in one report ([`hotswap_coverage::measure_coverage`]).

mod form;

use self::form::SourceTexts;
use super::{ReportArguments, gather};
use crate::outcome::CommandOutcome;
use hotswap_coverage::{
    CoverageReport, CoverageRequest, GatheredProfiles, MeasuredCoverage, ReportDifference, llvm_tools, measure_coverage,
};
use hotswap_report::{Diagnostic, codes};

pub(super) fn run(arguments: &ReportArguments) -> Result<CommandOutcome, Diagnostic> {
    let GatheredProfiles { profiles, problems } = gather(&arguments.files, &arguments.profiles, None)?;
    let llvms = llvm_tools::find_llvms(&arguments.profiles.llvm_bin)?;
    let request = CoverageRequest {
        program: &arguments.program,
        objects: &arguments.object,
        target: arguments.profiles.target.as_deref(),
        ignored_names: &arguments.ignore_filename_regex,
        path_map: &arguments.path_map,
        is_strict: arguments.strict,
        failure_mode: arguments.profiles.failure_mode.into(),
    };
    let MeasuredCoverage { report: coverage, objects, problems: misfits } =
        measure_coverage(&request, &profiles, &llvms)?;
    let mut outcome = CommandOutcome { problems, ..CommandOutcome::default() };
    outcome.problems.extend(misfits);
    let diff =
        arguments.diff.as_deref().map(|revision| ReportDifference::from_revision(revision, &coverage)).transpose()?;
    let sources = SourceTexts::read(arguments, &coverage)?;
    outcome.text = form::text(arguments, &coverage, &objects, diff.as_ref(), &sources)?;
    outcome.problems.extend(form::missing_sources(arguments, &coverage, &sources));
    outcome.problems.extend(below_threshold(arguments, &coverage, diff.as_ref()));
    Ok(outcome)
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
