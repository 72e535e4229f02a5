//! Cobertura's XML (coverage-04.dtd), which GitLab, Azure and Jenkins read. Counts are added up over the targets.

use super::escaped;
use crate::ratio::Ratio;
use crate::union::{CoverageReport, FileCoverage};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The sums of the lines that are printed. llvm-cov's own, of the text, count a line of a template once for each instance
/// and leave out others, and readers of this form add up again.
#[derive(Default, Clone, Copy)]
struct PrintedSums {
    lines: Ratio,
    branches: Ratio,
}

impl PrintedSums {
    fn of_file(file: &FileCoverage) -> Self {
        let lines = Ratio::of(file.lines.keys().map(|line| file.count(*line).unwrap_or_default() > 0));
        let printed = file.branches.iter().filter(|(line, _)| file.lines.contains_key(line));
        let branches = Ratio::of(printed.flat_map(|(_, outcomes)| outcomes.iter().flatten()).map(|count| *count > 0));
        Self { lines, branches }
    }

    fn add(&mut self, other: Self) {
        self.lines.add(other.lines);
        self.branches.add(other.branches);
    }

    fn rates(self) -> String {
        format!("line-rate=\"{:.4}\" branch-rate=\"{:.4}\"", coverage_rate(self.lines), coverage_rate(self.branches))
    }
}

/// The files of a directory.
#[derive(Default)]
struct CoberturaPackage<'r> {
    sums: PrintedSums,
    files: Vec<&'r FileCoverage>,
}

fn packages(report: &CoverageReport) -> BTreeMap<&str, CoberturaPackage<'_>> {
    let mut packages: BTreeMap<&str, CoberturaPackage<'_>> = BTreeMap::new();
    for file in &report.files {
        let directory = file.name.rsplit_once('/').map_or("", |(directory, _)| directory);
        let package = packages.entry(directory).or_default();
        package.sums.add(PrintedSums::of_file(file));
        package.files.push(file);
    }
    packages
}

/// The report as XML. `seconds` is the time of the report, since 1970.
#[must_use]
pub fn cobertura(report: &CoverageReport, seconds: u64) -> String {
    let packages = packages(report);
    let mut sums = PrintedSums::default();
    packages.values().for_each(|package| sums.add(package.sums));
    let PrintedSums { lines, branches } = sums;
    let mut out = format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE coverage SYSTEM \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">\n\
         <coverage {} lines-covered=\"{}\" lines-valid=\"{}\" branches-covered=\"{}\" branches-valid=\"{}\" \
         complexity=\"0\" version=\"0\" timestamp=\"{seconds}\">\n<sources><source>/</source></sources>\n<packages>\n",
        sums.rates(),
        lines.covered,
        lines.count,
        branches.covered,
        branches.count,
    );
    for (directory, package) in packages {
        let name = escaped(directory);
        let _ = writeln!(out, "<package name=\"{name}\" {} complexity=\"0\">\n<classes>", package.sums.rates());
        package.files.into_iter().for_each(|file| class(&mut out, file));
        out.push_str("</classes>\n</package>\n");
    }
    out.push_str("</packages>\n</coverage>\n");
    out
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
        PrintedSums::of_file(file).rates()
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
