//! The report in the form that the arguments ask for.

use crate::commands::profile::{ReportArguments, ReportFormat};
use crate::work::text as plain_text;
use hotswap_coverage::{CoverageReport, Covered, ReportDifference, render};
use hotswap_file_reports::calendar::CalendarTime;
use hotswap_files::reads;
use hotswap_report::{Diagnostic, codes};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// The text for the standard output. Pages are written.
pub(super) fn text(
    arguments: &ReportArguments,
    coverage: &CoverageReport,
    covered: &[Covered],
    diff: Option<&ReportDifference>,
    sources: &SourceTexts,
) -> Result<String, Diagnostic> {
    if let Some(directory) = &arguments.html {
        write_pages(arguments, coverage, sources, directory)?;
        return Ok(format!("{}\n", plain_text::plain(&directory.join("index.html").display().to_string())));
    }
    Ok(match arguments.format {
        ReportFormat::Text => for_people(arguments, coverage, covered, diff, sources),
        ReportFormat::Json => plain_text::json(&as_json(coverage, covered, diff)),
        ReportFormat::Lcov => render::lcov(coverage),
        ReportFormat::Cobertura => render::cobertura(coverage, seconds()),
        ReportFormat::Markdown => render::markdown(coverage, diff.map(|diff| &diff.coverage)),
        ReportFormat::Annotations => {
            let diff = diff.ok_or_else(|| {
                Diagnostic::error(
                    codes::USAGE,
                    "annotations are for the lines of a change: name a revision with --diff",
                )
            })?;
            render::annotations(coverage, &diff.coverage, &diff.root)
        }
    })
}

fn for_people(
    arguments: &ReportArguments,
    coverage: &CoverageReport,
    covered: &[Covered],
    diff: Option<&ReportDifference>,
    sources: &SourceTexts,
) -> String {
    let objects: Vec<_> = covered.iter().map(covered_object_label).collect();
    let mut out = format!("coverage of {}\n", plain_text::plain(&objects.join(", ")));
    out.push_str(&match (arguments.lines, arguments.functions) {
        (true, _) => render::listing(coverage, |name| sources.find(name)),
        (_, true) => render::functions(coverage),
        _ => render::table(coverage),
    });
    if let Some(diff) = diff {
        let total = diff.coverage.total;
        let _ = writeln!(out, "added lines: {} of {} covered", total.covered, total.count);
    }
    out
}

fn covered_object_label(covered: &Covered) -> String {
    format!("{} of {}", covered.target, covered.from.display())
}

/// The texts of the sources that the report shows, by their names in it.
#[derive(Default)]
pub(super) struct SourceTexts(BTreeMap<String, String>);

impl SourceTexts {
    /// Reads them, where the report shows any; those that are not there are left out. A relative name is one in `--source-dir`; bytes
    /// that are not text are replaced.
    ///
    /// # Errors
    /// [`codes::CANNOT_READ`] for a source that cannot be read.
    pub(super) fn read(arguments: &ReportArguments, coverage: &CoverageReport) -> Result<Self, Diagnostic> {
        let mut texts = Self::default();
        if !has_sources(arguments) {
            return Ok(texts);
        }
        let directory = arguments.source_dir.as_deref().unwrap_or(Path::new(""));
        for name in coverage.files.iter().map(|file| &file.name) {
            let path = directory.join(name);
            if reads::is_there(&path)? {
                let bytes = hotswap_files::read_file(&path)?;
                texts.0.insert(name.clone(), String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        Ok(texts)
    }

    fn find(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }
}

fn has_sources(arguments: &ReportArguments) -> bool {
    arguments.lines || arguments.html.is_some()
}

/// The warning about sources that are not where the report is made.
pub(super) fn missing_sources(
    arguments: &ReportArguments,
    coverage: &CoverageReport,
    sources: &SourceTexts,
) -> Option<Diagnostic> {
    if !has_sources(arguments) {
        return None;
    }
    let missing: Vec<&str> =
        coverage.files.iter().map(|file| file.name.as_str()).filter(|name| !sources.0.contains_key(*name)).collect();
    let first = missing.first()?;
    let what = format!(
        "{} of {} sources are not there, and are shown without their text",
        missing.len(),
        coverage.files.len()
    );
    let advice = "name their directory here: --path-map FROM=TO, or --source-dir for names without one";
    Some(Diagnostic::warning(codes::CANNOT_READ, what).in_file(Path::new(first)).advise(advice))
}

fn as_json(coverage: &CoverageReport, covered: &[Covered], diff: Option<&ReportDifference>) -> serde_json::Value {
    let mut value = render::json(coverage);
    value["schema"] = 2.into();
    value["objects"] = covered
        .iter()
        .map(|covered: &Covered| json!({ "file": covered.from.display().to_string(), "target": covered.target }))
        .collect();
    if let Some(diff) = diff {
        let files = diff.coverage.files.iter().map(|(file, ratio, missed)| {
            let name = &coverage.files[*file].name;
            json!({ "name": name, "covered": ratio.covered, "count": ratio.count, "missed": missed })
        });
        value["added_lines"] = files.collect();
    }
    value
}

fn write_pages(
    arguments: &ReportArguments,
    coverage: &CoverageReport,
    sources: &SourceTexts,
    directory: &Path,
) -> Result<(), Diagnostic> {
    hotswap_files::create_directories(directory)
        .map_err(|error: std::io::Error| Diagnostic::cannot_write(directory, error))?;
    let title = arguments.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for page in render::pages(coverage, &title, &date(seconds()), |name| sources.find(name)) {
        hotswap_files::replace_file(&directory.join(&page.name), page.text.as_bytes())?;
    }
    Ok(())
}

/// The time of the report since 1970: that of a reproducible build, or now.
fn seconds() -> u64 {
    let stated = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    stated.unwrap_or_else(current_unix_seconds)
}

fn current_unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The date and time in UTC.
fn date(seconds: u64) -> String {
    let CalendarTime { year, month, day, hour, minute, .. } = CalendarTime::from_unix_seconds(seconds);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let dates = [0, 951_782_400, 951_868_800, 1_795_564_800].map(date);
        assert_eq!(
            dates,
            ["1970-01-01 00:00 UTC", "2000-02-29 00:00 UTC", "2000-03-01 00:00 UTC", "2026-11-25 00:00 UTC"]
        );
    }
}
