//! For people: a table of files, one of functions, and sources with their counts.

use super::{absence, demangled, fraction, percent, share_or_reason};
use crate::union::{CoverageReport, FileCoverage, Totals};
use std::fmt::Write;

/// Files with their figures, and the lines of each target.
#[must_use]
pub fn table(report: &CoverageReport) -> String {
    let mut head: Vec<String> = ["FILE", "REGIONS", "FUNCTIONS", "LINES", "BRANCHES"].map(str::to_owned).to_vec();
    let has_mcdc = report.union.mcdc.count > 0;
    head.extend(has_mcdc.then(|| "MC/DC".to_owned()));
    let has_targets = report.targets.len() > 1;
    head.extend(report.targets.iter().filter(|_| has_targets).cloned());
    let mut rows = vec![head];
    rows.extend(report.files.iter().map(|file| {
        table_row_cells(&file.name, &file.union, &file.by_target, &file.lacks_data, has_mcdc, has_targets)
    }));
    rows.push(table_row_cells(
        "TOTAL",
        &report.union,
        &report.known_totals(),
        &report.lacks_data,
        has_mcdc,
        has_targets,
    ));
    aligned(&rows)
}

fn table_row_cells(
    name: &str,
    union: &Totals,
    by_target: &[Option<Totals>],
    lacks: &[bool],
    has_mcdc: bool,
    has_targets: bool,
) -> Vec<String> {
    let mut cells = vec![name.to_owned()];
    let ratios = [union.regions, union.functions, union.lines, union.branches];
    let ratios = ratios.into_iter().chain(has_mcdc.then_some(union.mcdc));
    cells.extend(ratios.map(|ratio| format!("{} {}", fraction(ratio), percent(ratio))));
    let own = by_target.iter().zip(lacks);
    let lines = own.map(|(totals, lacks)| share_or_reason(totals.map(|totals| totals.lines), *lacks));
    cells.extend(lines.filter(|_| has_targets));
    cells
}

/// Functions and kernels: how often each target executed them, and the regions of the union.
#[must_use]
pub fn functions(report: &CoverageReport) -> String {
    let mut head = vec!["FUNCTION".to_owned(), "PLACE".to_owned(), "REGIONS".to_owned()];
    head.extend(report.targets.iter().cloned());
    let mut rows = vec![head];
    for function in &report.functions {
        let place = format!("{}:{}", report.files[function.file].name, function.line);
        let mut row = vec![demangled(&function.name), place, fraction(function.regions)];
        let counts = function.counts.iter().zip(&function.lacks_data);
        row.extend(counts.map(|(count, lacks)| count.map_or(absence(*lacks).to_owned(), |count| count.to_string())));
        rows.push(row);
    }
    aligned(&rows)
}

/// Sources with the counts of each target before each line. `source` reads a file; without its text only counts are shown.
#[must_use]
pub fn listing(report: &CoverageReport, source: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let widths: Vec<usize> = report.targets.iter().map(|target| target.len().max(COUNT)).collect();
    for file in &report.files {
        // One file needs no heading, as in llvm-cov.
        if report.files.len() > 1 {
            let _ = writeln!(out, "{}:", file.name);
        }
        if report.targets.len() > 1 {
            let named = report.targets.iter().zip(&widths);
            let names = named.map(|(target, width)| format!("{target:>width$}|")).collect::<String>();
            let _ = writeln!(out, "{:>5}|{names}", "");
        }
        let text = source(&file.name);
        let last = file.lines.last_key_value().map_or(0, |(line, _)| *line);
        let lines: Vec<&str> = text.as_deref().map_or_else(|| vec![""; last as usize], |text| text.lines().collect());
        for (number, line) in (1..).zip(lines) {
            let _ = writeln!(out, "{number:>5}|{}{line}", counts(file, number, &widths));
        }
        out.push('\n');
    }
    out
}

/// Width of a count, as in llvm-cov.
const COUNT: usize = 7;

fn counts(file: &FileCoverage, line: u32, widths: &[usize]) -> String {
    let none = vec![None; widths.len()];
    let counts = file.lines.get(&line).unwrap_or(&none).iter().zip(widths);
    counts.map(|(count, width)| format!("{:>width$}|", count.map_or_else(String::new, short))).collect()
}

/// Three digits and a suffix, as in llvm-cov.
pub(super) fn short(count: u64) -> String {
    const SUFFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    let (mut value, mut suffix) = (count as f64, 0);
    while value >= 1000.0 {
        value /= 1000.0;
        suffix += 1;
    }
    let digits = if suffix == 0 || value >= 100.0 { 0 } else { 2 - usize::from(value >= 10.0) };
    let scale = 10f64.powi(i32::try_from(digits).unwrap_or_default());
    format!("{:.digits$}{}", (value * scale).floor() / scale, SUFFIXES[suffix])
}

/// Columns as wide as their widest cell, two spaces apart.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths = (0..columns).map(|column| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    });
    let widths: Vec<usize> = widths.collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn large_counts_are_shortened_and_not_rounded_up() {
        let counts = [0, 999, 1000, 1999, 12_345, 999_999, 1_000_000, u64::MAX].map(short);
        assert_eq!(counts, ["0", "999", "1.00k", "1.99k", "12.3k", "999k", "1.00M", "18.4E"]);
    }
}
