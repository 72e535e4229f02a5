//! Runs over all 2^32 floats, made in parts: `docs/evidence/exhaustive-runs.txt`, which is committed and shown in the table of evidence.
//!
//! A line is a part of a run: line of the table, part, date, commit. Invariants: only parts that hold are recorded, and
//! only of committed sources. A run is whole when every part of it is there; the table names the commits of all parts, because
//! a part that showed a fault of its judge is repeated by a later one.

use crate::evidence::EvidenceRow;
use crate::sizes::{FloatRange, RunPart};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// The file, from the directory of the workspace.
const FILE: &str = "docs/evidence/exhaustive-runs.txt";
/// The names of the lines in the file, in the order of [`crate::exhaustive::rows`].
const NAMES: [&str; 2] = ["conversions", "roundings"];
/// The directories whose files decide such a run.
const SOURCES: [&str; 2] = ["crates", "tests"];

/// A part of a run that held.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RecordedPart {
    name: String,
    part: RunPart,
    date: String,
    commit: String,
}

fn parse(line: &str) -> Option<RecordedPart> {
    let mut words = line.split_whitespace();
    Some(RecordedPart {
        name: next_run_word(&mut words)?,
        part: next_run_word(&mut words)?.parse().ok()?,
        date: next_run_word(&mut words)?,
        commit: next_run_word(&mut words)?,
    })
}

fn next_run_word(words: &mut std::str::SplitWhitespace<'_>) -> Option<String> {
    words.next().map(str::to_owned)
}

/// The last whole run of a line of the table: the date of its last part, and the commits of all.
fn last_whole(parts: &[RecordedPart], name: &str) -> Option<(String, String)> {
    let own = || parts.iter().filter(|one| one.name == name).rev();
    let last = own().next()?;
    let part = |number| own().find(|one| one.part == RunPart { number, count: last.part.count });
    let all: Vec<&RecordedPart> = (1..=last.part.count).map(part).collect::<Option<_>>()?;
    let commits: BTreeSet<&str> = all.iter().map(|one| one.commit.as_str()).collect();
    Some((last.date.clone(), commits.into_iter().collect::<Vec<_>>().join(" and ")))
}

/// Adds to each line the last run over all floats, where there was one.
pub fn mention(rows: &mut [EvidenceRow; 2], floats: &FloatRange) {
    if *floats == FloatRange::all(1) {
        return;
    }
    let text = std::fs::read_to_string(FILE).unwrap_or_default();
    let parts: Vec<RecordedPart> = text.lines().filter_map(parse).collect();
    for (row, name) in rows.iter_mut().zip(NAMES) {
        if let Some((date, commit)) = last_whole(&parts, name) {
            row.cases.push_str(&format!("; all 2^32 floats until {date}, at {commit}"));
        }
    }
}

/// Adds a part that holds to the file.
///
/// # Errors
/// Text, where a line does not hold, sources are not committed, or the file cannot be written.
pub fn record(rows: &[EvidenceRow], part: RunPart, directory: &Path) -> Result<(), String> {
    if !rows.iter().all(|row| row.holds) {
        return Err("nothing is recorded: a line does not hold".to_owned());
    }
    let changed = run_program_output("git", &[&["status", "--porcelain", "--"], &SOURCES[..]].concat(), directory)?;
    if !changed.is_empty() {
        return Err(format!("nothing is recorded: commit these first:\n{changed}"));
    }
    let (commit, date) = (
        run_program_output("git", &["rev-parse", "--short", "HEAD"], directory)?,
        run_program_output("date", &["-u", "+%F"], directory)?,
    );
    let lines: String = NAMES.iter().map(|name| format!("{name} {part} {date} {commit}\n")).collect();
    let file = directory.join(FILE);
    let mut options = std::fs::OpenOptions::new();
    let opened = options.append(true).create(true).open(&file);
    // One write: parts may run at the same time.
    let written = opened.and_then(|mut opened| opened.write_all(lines.as_bytes()));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

fn run_program_output(program: &str, words: &[&str], directory: &Path) -> Result<String, String> {
    let done = Command::new(program).args(words).current_dir(directory).output();
    let done = done.map_err(|error| format!("{program}: {error}"))?;
    if !done.status.success() {
        return Err(format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&done.stderr)));
    }
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str, name: &str) -> Option<String> {
        let parts: Vec<RecordedPart> = text.lines().filter_map(parse).collect();
        last_whole(&parts, name).map(|(date, commit)| format!("{date} {commit}"))
    }

    #[test]
    fn a_run_is_whole_with_all_of_its_parts() {
        let text = "roundings 1/2 d1 aa\nroundings 2/2 d2 aa\nconversions 2/2 d3 bb\n";
        assert_eq!(whole(text, "roundings").as_deref(), Some("d2 aa"));
        assert_eq!(whole(text, "conversions"), None);
        // The last line of a part counts, and a run in other parts is another one.
        assert_eq!(whole(&format!("{text}roundings 1/2 d4 bb\n"), "roundings").as_deref(), Some("d4 aa and bb"));
        assert_eq!(whole(&format!("{text}roundings 1/3 d5 cc\n"), "roundings"), None);
    }

    #[test]
    fn what_does_not_hold_is_not_recorded() {
        let wrong = EvidenceRow { holds: false, ..EvidenceRow::default() };
        let refused = record(&[wrong], RunPart::WHOLE, Path::new("/nonexistent"));
        assert!(refused.unwrap_err().contains("does not hold"));
    }
}
