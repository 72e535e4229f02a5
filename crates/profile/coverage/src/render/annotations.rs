//! Workflow commands of GitHub Actions: a warning at each range of added lines that no target executed.
//!
//! GitHub shows ten warnings of a step: the longest ranges are annotated, and the last one counts the others.

use crate::diff::DiffCoverage;
use crate::union::{CoverageReport, FileCoverage};
use std::fmt::Write;

/// GitHub shows no more warnings of a step.
const MOST: usize = 10;

/// Consecutive lines of a file that the same targets have and none executed.
struct MissedRange {
    file: usize,
    first: u32,
    last: u32,
    targets: String,
}

/// The annotations; `root` is the directory of the repository, to which the names of files must be relative.
#[must_use]
pub fn annotations(report: &CoverageReport, diff: &DiffCoverage, root: &str) -> String {
    let mut ranges = missed_ranges(report, diff);
    let others = if ranges.len() > MOST {
        ranges.sort_by_key(|range| std::cmp::Reverse(missed_line_count(range)));
        let others = ranges.split_off(MOST);
        ranges.sort_by_key(|range| (range.file, range.first));
        Some((others.len(), others.iter().map(missed_line_count).sum::<u32>()))
    } else {
        None
    };
    let mut out = String::new();
    for (number, range) in ranges.iter().enumerate() {
        let name = &report.files[range.file].name;
        let within = name.strip_prefix(root).map_or(name.as_str(), |name| name.trim_start_matches('/'));
        let place = format!("file={},line={},endLine={}", property(within), range.first, range.last);
        let more = others.filter(|_| number + 1 == MOST);
        let more = more.map_or_else(String::new, |(count, lines)| format!("; {count} more ranges with {lines} lines"));
        let _ = writeln!(out, "::warning {place}::not executed ({}){more}", data(&range.targets));
    }
    out
}

fn missed_line_count(range: &MissedRange) -> u32 {
    range.last - range.first + 1
}

fn missed_ranges(report: &CoverageReport, diff: &DiffCoverage) -> Vec<MissedRange> {
    let mut ranges: Vec<MissedRange> = Vec::new();
    for (file, _, missed) in &diff.files {
        for line in missed {
            let targets = targets_of(report, &report.files[*file], *line);
            match ranges.last_mut() {
                Some(last) if last.file == *file && last.last + 1 == *line && last.targets == targets => {
                    last.last = *line;
                }
                _ => ranges.push(MissedRange { file: *file, first: *line, last: *line, targets }),
            }
        }
    }
    ranges
}

/// The targets that have the line; "no data" where it has only code without a profile.
fn targets_of(report: &CoverageReport, file: &FileCoverage, line: u32) -> String {
    let counts = file.lines.get(&line).map_or(&[][..], Vec::as_slice);
    let named = report.targets.iter().zip(counts).filter(|(_, count)| count.is_some());
    let names: Vec<&str> = named.map(|(target, _)| target.as_str()).collect();
    if names.is_empty() { "no data".to_owned() } else { names.join(", ") }
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::AddedLines;
    use crate::parse;
    use std::collections::{BTreeMap, BTreeSet};

    /// A file of 100 lines of the host, of which each fourth line and the last 19 were not executed. (A line has the count
    /// with which the one before it ended, if that is larger.)
    fn report() -> CoverageReport {
        let count = |line: u32| u32::from(line % 4 < 2 && line <= 80);
        let segments: Vec<String> =
            (1..=100).map(|line| format!("[{line},1,{},true,true,false]", count(line))).collect();
        let json = format!(
            r#"{{"data":[{{"files":[{{"filename":"/s/a.hip","segments":[{}],"summary":{{}}}}]}}],
            "type":"llvm.coverage.json.export"}}"#,
            segments.join(",")
        );
        let other = json.replace("a.hip", "b.hip");
        let parse = |target, json: &str| parse(target, json.as_bytes()).unwrap();
        CoverageReport::of(vec![parse("host", &json), parse("gfx90a", &other)])
    }

    #[test]
    fn ranges_are_grouped_and_no_more_than_github_shows() {
        let report = report();
        let added = |lines: BTreeSet<u32>| AddedLines { files: BTreeMap::from([("a.hip".to_owned(), lines)]) };
        let few = DiffCoverage::of(&report, &added((82..=100).chain([3]).collect()), "/s");
        assert_eq!(
            annotations(&report, &few, "/s"),
            "::warning file=a.hip,line=3,endLine=3::not executed (host)\n\
             ::warning file=a.hip,line=82,endLine=100::not executed (host)\n"
        );
        let many = annotations(&report, &DiffCoverage::of(&report, &added((1..=100).collect()), "/s"), "/s");
        assert_eq!(many.lines().count(), 10, "{many}");
        assert!(many.contains("line=82,endLine=100::") && many.ends_with("; 11 more ranges with 11 lines\n"), "{many}");
    }

    #[test]
    fn names_cannot_end_a_command() {
        assert_eq!(property("a,b:c%\n::error::x"), "a%2Cb%3Ac%25%0A%3A%3Aerror%3A%3Ax");
    }
}
