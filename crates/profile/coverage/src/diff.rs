//! Coverage of the lines that a change adds, from a unified diff (`git diff --unified=0`).

use crate::ratio::Ratio;
use crate::union::CoverageReport;
use std::collections::{BTreeMap, BTreeSet};

/// The lines that a change adds, by the name of the file after it, relative to the root of the repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AddedLines {
    pub files: BTreeMap<String, BTreeSet<u32>>,
}

impl AddedLines {
    /// Reads a unified diff; other lines than headers of files and hunks do not matter.
    #[must_use]
    pub fn parse(diff: &str) -> Self {
        let (mut added, mut file) = (Self::default(), None);
        for line in diff.lines() {
            if let Some(name) = line.strip_prefix("+++ ") {
                let name = name.split('\t').next().unwrap_or(name);
                file = name.strip_prefix("b/").map(str::to_owned);
            } else if let (Some(name), Some(lines)) = (&file, hunk(line)) {
                added.files.entry(name.clone()).or_default().extend(lines);
            }
        }
        added
    }
}

/// The added lines of `@@ -a,b +c,d @@`.
fn hunk(line: &str) -> Option<std::ops::Range<u32>> {
    let new = line.strip_prefix("@@ ")?.split(' ').find_map(|word| word.strip_prefix('+'))?;
    let (first, count) = new.split_once(',').unwrap_or((new, "1"));
    let first: u32 = first.parse().ok()?;
    Some(first..first.checked_add(count.parse().ok()?)?)
}

/// Coverage of the added lines.
#[derive(Debug, PartialEq, Eq)]
pub struct DiffCoverage {
    /// Files with added lines of code: position in the report's files, added lines with code, and those not executed.
    pub files: Vec<(usize, Ratio, Vec<u32>)>,
    pub total: Ratio,
}

impl DiffCoverage {
    /// Compares; `root` is the repository's directory, to which the names in a diff are relative.
    #[must_use]
    pub fn of(report: &CoverageReport, added: &AddedLines, root: &str) -> Self {
        let mut coverage = Self { files: Vec::new(), total: Ratio::default() };
        for (number, file) in report.files.iter().enumerate() {
            let within = file.name.strip_prefix(root).map_or(file.name.as_str(), |name| name.trim_start_matches('/'));
            let Some(lines) = added.files.get(within) else { continue };
            let counted: Vec<(u32, u64)> = lines.iter().filter_map(|line| Some((*line, file.count(*line)?))).collect();
            let missed: Vec<u32> = counted.iter().filter(|(_, count)| *count == 0).map(|(line, _)| *line).collect();
            let ratio = Ratio { covered: (counted.len() - missed.len()) as u64, count: counted.len() as u64 };
            coverage.total.covered += ratio.covered;
            coverage.total.count += ratio.count;
            if ratio.count > 0 {
                coverage.files.push((number, ratio, missed));
            }
        }
        coverage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_name_the_lines_of_the_new_file() {
        let diff = "diff --git a/x.hip b/x.hip\n--- a/x.hip\n+++ b/x.hip\n@@ -1,0 +2,2 @@ f\n+a\n+b\n@@ -9 +11 @@\n-c\n+d\n\
                    --- a/gone\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-x\n@@ nonsense\n";
        let added = AddedLines::parse(diff);
        assert_eq!(added.files, BTreeMap::from([("x.hip".to_owned(), BTreeSet::from([2, 3, 11]))]));
        assert_eq!(AddedLines::parse("@@ -1 +4294967295,9 @@"), AddedLines::default());
    }
}
