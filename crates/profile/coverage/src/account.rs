//! Accounts of a report: profiles of other code, code without a profile, functions whose shape has changed.
//!
//! Each is a warning; with --strict, an error.

use crate::covered::Covered;
use crate::matching::{PartRef, ProfileAccounts};
use crate::profile_files::{ProfileFile, target_of_part};
use crate::request::CoverageRequest;
use hotswap_report::{Diagnostic, DiagnosticCode, Severity, codes};
use std::collections::BTreeSet;
use std::process::Output;

/// Names in one message.
const MOST: usize = 5;

/// The messages about profiles and code objects.
pub(crate) fn account_for(
    request: &CoverageRequest<'_>,
    profiles: &[ProfileFile],
    objects: &[Covered],
    accounts: &ProfileAccounts,
) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    problems.extend(unmatched(request, profiles, accounts));
    problems.extend(guessed(profiles, accounts));
    let is_merged = profiles.iter().any(|profile| profile.parts.is_none());
    if !is_merged {
        problems.extend(without_profile(request, objects, accounts));
    }
    problems
}

fn problem(request: &CoverageRequest<'_>, code: &'static DiagnosticCode, what: String) -> Diagnostic {
    let severity = if request.is_strict { Severity::Error } else { Severity::Warning };
    Diagnostic { severity, ..Diagnostic::warning(code, what) }
}

fn unmatched(
    request: &CoverageRequest<'_>,
    profiles: &[ProfileFile],
    accounts: &ProfileAccounts,
) -> Option<Diagnostic> {
    let first = accounts.unmatched.first()?;
    let names = listed(accounts.unmatched.iter().map(|part| describe_part(profiles, *part)));
    let what = format!("profiles of code that is not in the program are left out: {names}");
    let advice =
        "name the program or library whose profiles they are (--object), or run the program again after a build";
    Some(problem(request, codes::PROFILE_UNMATCHED, what).in_file(&profiles[first.profile].path).advise(advice))
}

fn describe_part(profiles: &[ProfileFile], place: PartRef) -> String {
    let profile = &profiles[place.profile];
    let part = profile.parts.as_ref().and_then(|parts| parts.get(place.part));
    let target = part.map_or_else(String::new, |part| target_of_part(&profile.path, part));
    format!("{} ({target})", profile.path.display())
}

fn guessed(profiles: &[ProfileFile], accounts: &ProfileAccounts) -> Option<Diagnostic> {
    let first = accounts.guessed.first()?;
    let names = listed(accounts.guessed.iter().map(|part| describe_part(profiles, *part)));
    let what =
        format!("profiles that do not say which code they are of were assigned by the names of their files: {names}");
    let advice = "link with HotSwap's drain of this version, and host code with --build-id";
    Some(Diagnostic::warning(codes::PROFILE_UNMATCHED, what).in_file(&profiles[first.profile].path).advise(advice))
}

/// Code without a profile never ran, or its profile is missing: which of them is unknown.
fn without_profile(
    request: &CoverageRequest<'_>,
    objects: &[Covered],
    accounts: &ProfileAccounts,
) -> Option<Diagnostic> {
    let without: Vec<&Covered> =
        objects.iter().zip(&accounts.by_object).filter(|(_, own)| own.is_empty()).map(|(o, _)| o).collect();
    let first = without.first()?;
    let names = listed(without.iter().map(|object| format!("{} of {}", object.target, object.from.display())));
    let what = format!("there is no profile of {names}: no data, which is not 0 %");
    let advice = "run the program on these GPUs, and name the profiles; code that was never loaded has none";
    let made = Diagnostic::warning(codes::NO_PROFILE, what).in_file(&first.from).advise(advice);
    Some(Diagnostic { severity: if request.is_strict { Severity::Error } else { Severity::Note }, ..made })
}

/// Different texts, the first few of them.
fn listed(texts: impl Iterator<Item = String>) -> String {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    for text in texts {
        if seen.insert(text.clone()) {
            all.push(text);
        }
    }
    let more = all.len().saturating_sub(MOST);
    all.truncate(MOST);
    let names = all.join(", ");
    if more > 0 { format!("{names} and {more} more") } else { names }
}

/// The functions whose records have another shape than the program's: llvm-cov names them on request. It counts those that an
/// object maps and does not emit as well, where a merged profile has counts of another object's.
pub(crate) fn mismatched(
    request: &CoverageRequest<'_>,
    target: &str,
    objects: &[&Covered],
    output: &Output,
) -> Option<Diagnostic> {
    let error = String::from_utf8_lossy(&output.stderr);
    let names = error.lines().filter_map(mismatched_function_name);
    let stale = names.filter(|name| !objects.iter().any(|object| object.identity.is_unused(name)));
    let names = listed(stale.map(str::to_owned));
    if names.is_empty() {
        return None;
    }
    let what = format!("functions whose profile is of another version of them have no counts in {target}: {names}");
    let advice = "build and run again with the same sources";
    Some(problem(request, codes::PROFILE_STALE, what).in_file(request.program).advise(advice))
}

fn mismatched_function_name(line: &str) -> Option<&str> {
    let (_, named) = line.strip_prefix("hash-mismatch: ")?.split_once('\'')?;
    Some(named.rsplit_once('\'')?.0)
}

const MISMATCH: &str = "functions have mismatched data";

/// Whether llvm-cov found functions of another shape than their records.
pub(crate) fn has_mismatches(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stderr).contains(MISMATCH)
}

/// The other warnings of llvm-cov. A program may be newer than profiles that were merged before: the identities decide.
pub(crate) fn other_warnings(target: &str, output: &Output) -> Vec<Diagnostic> {
    let error = String::from_utf8_lossy(&output.stderr);
    let lines = error.lines().filter(|line| line.contains("warning") && !is_known_warning(line));
    lines.map(|line| Diagnostic::warning(codes::CHILD_FAILED, line).in_entry(target)).collect()
}

fn is_known_warning(line: &str) -> bool {
    line.contains(MISMATCH) || line.contains("object is newer")
}
