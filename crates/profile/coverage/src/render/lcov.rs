//! lcov's tracefile, which most coverage services read. Counts are added up over the targets.
//!
//! Source: `geninfo(1)`, section FILES.

use crate::union::CoverageReport;
use std::fmt::Write;

/// The report as a tracefile.
#[must_use]
pub fn lcov(report: &CoverageReport) -> String {
    let mut out = String::new();
    for (number, file) in report.files.iter().enumerate() {
        let _ = writeln!(out, "TN:\nSF:{}", file.name.replace(['\n', '\r'], "?"));
        let functions: Vec<_> = report.functions.iter().filter(|function| function.file == number).collect();
        for function in &functions {
            let _ = writeln!(out, "FN:{},{}", function.line, function.name);
        }
        let counts: Vec<u64> = functions.iter().map(|function| sum(&function.counts)).collect();
        for (function, count) in functions.iter().zip(&counts) {
            let _ = writeln!(out, "FNDA:{count},{}", function.name);
        }
        let _ = writeln!(out, "FNF:{}\nFNH:{}", counts.len(), counts.iter().filter(|count| **count > 0).count());
        for (line, branches) in &file.branches {
            let outcomes = branches.iter().enumerate().flat_map(|(block, counts)| counts.map(|count| (block, count)));
            for (outcome, (block, count)) in outcomes.enumerate() {
                let _ = writeln!(out, "BRDA:{line},{block},{},{count}", outcome % 2);
            }
        }
        let outcomes: Vec<u64> = file.branches.values().flatten().flatten().copied().collect();
        if !outcomes.is_empty() {
            let _ =
                writeln!(out, "BRF:{}\nBRH:{}", outcomes.len(), outcomes.iter().filter(|count| **count > 0).count());
        }
        let lines: Vec<(u32, u64)> =
            file.lines.keys().map(|line| (*line, file.count(*line).unwrap_or_default())).collect();
        for (line, count) in &lines {
            let _ = writeln!(out, "DA:{line},{count}");
        }
        let hit = lines.iter().filter(|(_, count)| *count > 0).count();
        let _ = writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", lines.len());
    }
    out
}

fn sum(counts: &[Option<u64>]) -> u64 {
    counts.iter().flatten().fold(0, |sum, count| u64::saturating_add(sum, *count))
}
