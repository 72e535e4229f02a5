//! A table for the comment on a pull request.

use super::{fraction, percent, share_or_reason};
use crate::diff::DiffCoverage;
use crate::ratio::Ratio;
use crate::union::CoverageReport;
use std::fmt::Write;

/// The report in GitHub's Markdown; with the added lines of a change first, if there is one.
#[must_use]
pub fn markdown(report: &CoverageReport, diff: Option<&DiffCoverage>) -> String {
    let mut out = String::new();
    if let Some(diff) = diff {
        let _ = writeln!(out, "**Added lines: {}**\n", both(diff.total));
        for (file, ratio, missed) in &diff.files {
            let missed = if missed.is_empty() { String::new() } else { format!("; not executed: {}", ranges(missed)) };
            let _ = writeln!(out, "- `{}`: {}{missed}", report.files[*file].name, both(*ratio));
        }
        out.push('\n');
    }
    let targets = if report.targets.len() > 1 { report.targets.as_slice() } else { &[] };
    let head: String = targets.iter().map(|target| format!(" {target} |")).collect();
    let _ = writeln!(out, "| file | lines | functions | branches |{head}");
    let _ = writeln!(out, "| --- | ---: | ---: | ---: |{}", " ---: |".repeat(targets.len()));
    for file in &report.files {
        let own = file.by_target.iter().zip(&file.lacks_data);
        let own = own.map(|(own, lacks)| share_or_reason(own.map(|own| own.lines), *lacks));
        let union = [file.union.lines, file.union.functions, file.union.branches];
        write_markdown_row(&format!("`{}`", file.name.replace('|', "\\|")), union, own.collect(), targets, &mut out);
    }
    let known = report.known_totals();
    let own = known.iter().zip(&report.lacks_data);
    let own = own.map(|(own, lacks)| share_or_reason(own.map(|own| own.lines), *lacks)).collect();
    write_markdown_row(
        "**all**",
        [report.union.lines, report.union.functions, report.union.branches],
        own,
        targets,
        &mut out,
    );
    out
}

fn write_markdown_row(name: &str, union: [Ratio; 3], own: Vec<String>, targets: &[String], out: &mut String) {
    let own: String = own.iter().take(targets.len()).map(|cell| format!(" {cell} |")).collect();
    let [lines, functions, branches] = union.map(both);
    let _ = writeln!(out, "| {name} | {lines} | {functions} | {branches} |{own}");
}

fn both(ratio: Ratio) -> String {
    format!("{} ({})", percent(ratio), fraction(ratio))
}

/// `1-3, 7`.
fn ranges(lines: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *line => *last = *line,
            _ => ranges.push((*line, *line)),
        }
    }
    ranges.iter().map(line_range_text).collect::<Vec<_>>().join(", ")
}

fn line_range_text((first, last): &(u32, u32)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn neighbours_are_one_range() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3, 7, 9-10");
    }
}
