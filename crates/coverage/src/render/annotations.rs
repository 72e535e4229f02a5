//! Workflow commands of GitHub Actions: a warning at each range of added lines that no target executed.

use crate::diff::DiffCoverage;
use crate::union::CoverageReport;
use std::fmt::Write;

/// The annotations; `root` is the directory of the repository, to which the names of files must be relative.
#[must_use]
pub fn annotations(report: &CoverageReport, diff: &DiffCoverage, root: &str) -> String {
    let mut out = String::new();
    for (file, _, missed) in &diff.files {
        let name = &report.files[*file].name;
        let within = name.strip_prefix(root).map_or(name.as_str(), |name| name.trim_start_matches('/'));
        let targets = report.targets.join(", ");
        for line in missed {
            let _ = writeln!(out, "::warning file={},line={line}::not executed ({})", property(within), data(&targets));
        }
    }
    out
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

    #[test]
    fn names_cannot_end_a_command() {
        assert_eq!(property("a,b:c%\n::error::x"), "a%2Cb%3Ac%25%0A%3A%3Aerror%3A%3Ax");
    }
}
