//! Cobertura's XML (coverage-04.dtd), which GitLab, Azure and Jenkins read. Counts are added up over the targets.

use super::escaped;
use crate::ratio::Ratio;
use crate::union::{CoverageReport, FileCoverage, Totals};
use std::fmt::Write;

/// The report as XML. `seconds` is the time of the report, since 1970.
#[must_use]
pub fn cobertura(report: &CoverageReport, seconds: u64) -> String {
    let Totals { lines, branches, .. } = report.union;
    let mut out = format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE coverage SYSTEM \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">\n\
         <coverage {} lines-covered=\"{}\" lines-valid=\"{}\" branches-covered=\"{}\" branches-valid=\"{}\" \
         complexity=\"0\" version=\"0\" timestamp=\"{seconds}\">\n<sources><source>/</source></sources>\n<packages>\n",
        rates(lines, branches),
        lines.covered,
        lines.count,
        branches.covered,
        branches.count,
    );
    for (directory, totals) in report.directories() {
        let name = escaped(directory);
        let _ = writeln!(
            out,
            "<package name=\"{name}\" {} complexity=\"0\">\n<classes>",
            rates(totals.lines, totals.branches)
        );
        let own = report
            .files
            .iter()
            .filter(|file| file.name.rsplit_once('/').map_or("", |(directory, _)| directory) == directory);
        own.for_each(|file| class(&mut out, file));
        out.push_str("</classes>\n</package>\n");
    }
    out.push_str("</packages>\n</coverage>\n");
    out
}

fn rates(lines: Ratio, branches: Ratio) -> String {
    format!("line-rate=\"{:.4}\" branch-rate=\"{:.4}\"", coverage_rate(lines), coverage_rate(branches))
}

/// Never 1 for less than all, as in the text.
fn coverage_rate(ratio: Ratio) -> f64 {
    (ratio.percent() * 100.0).floor() / 10_000.0
}

fn class(out: &mut String, file: &FileCoverage) {
    let name = file.name.rsplit('/').next().unwrap_or_default();
    let relative = file.name.trim_start_matches('/');
    let _ = writeln!(
        out,
        "<class name=\"{}\" filename=\"{}\" {} complexity=\"0\">\n<methods/>\n<lines>",
        escaped(name),
        escaped(relative),
        rates(file.union.lines, file.union.branches)
    );
    for line in file.lines.keys() {
        let hits = file.count(*line).unwrap_or_default();
        let branches = file.branches.get(line).map_or_else(String::new, |outcomes| {
            let all = outcomes.iter().flatten();
            let (count, covered) = (all.clone().count(), all.filter(|count| **count > 0).count());
            let percent = 100 * covered / count.max(1);
            format!(" branch=\"true\" condition-coverage=\"{percent}% ({covered}/{count})\"")
        });
        let _ = writeln!(out, "<line number=\"{line}\" hits=\"{hits}\"{branches}/>");
    }
    out.push_str("</lines>\n</class>\n");
}
