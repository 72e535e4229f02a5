//! The counts of an exam by system call and error, and the page that keeps them.
//!
//! Invariant: a line of the page is of one command and one call, and an exam of a command replaces all of its lines.
//!
//! Absent on purpose: the judgement of the runs, which is the exams' own.

use crate::{Effect, Fault};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// The text before the table.
const HEAD: &str = "# System calls that fail

For reviewers: how HotSwap's programs end when a system call fails, by command and call.

Each command runs once for each of its system calls and each error that the system may return for it, and for short reads and
writes. A run is right if its result is that of a run without a fault, or if it ends with an exit code other than 0, gives the
system's reason, and every file has its old or its complete new content. The tests write this page, with HOTSWAP_BLESS=1 and
HOTSWAP_TEST_EVERYTHING=1 (HOTSWAP_FAULTS=COMMAND for one command):
`crates/products/hotswap/tests/faults.rs` for the commands, `tests/harness/tests/system_calls.rs` for wrapper and interposer.
The numbers are runs, in brackets those that ended with an error; the others gave the right result nevertheless. A command without a
row was not run with all of its faults.

";
const COLUMNS: &str = "| command | call | runs (ended with an error) | wrong |\n| --- | --- | --- | ---: |\n";

/// The runs with one end of one call.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct EffectCounts {
    runs: usize,
    refused: usize,
    wrong: usize,
}

/// The runs of a command.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ExamCounts(BTreeMap<&'static str, BTreeMap<String, EffectCounts>>);

impl ExamCounts {
    /// Counts a run that ended with this code.
    pub fn add_run(&mut self, fault: &Fault, code: Option<i32>, is_wrong: bool) {
        let end = match fault.effect {
            Effect::Error(error) => format!("{error:?}"),
            Effect::Half => "half".to_owned(),
            Effect::Kill => "kill".to_owned(),
        };
        let counts = self.0.entry(fault.call).or_default().entry(end).or_default();
        counts.runs += 1;
        counts.refused += usize::from(code != Some(0));
        counts.wrong += usize::from(is_wrong);
    }

    /// Adds the runs of another share of the same command.
    pub fn merge(&mut self, other: &Self) {
        for (call, ends) in &other.0 {
            for (end, counts) in ends {
                let sum = self.0.entry(call).or_default().entry(end.clone()).or_default();
                sum.runs += counts.runs;
                sum.refused += counts.refused;
                sum.wrong += counts.wrong;
            }
        }
    }

    fn table_lines(&self, command: &str) -> Vec<String> {
        let line = |(call, ends): (&&str, &BTreeMap<String, EffectCounts>)| {
            let shown = ends.iter().map(|(end, counts)| format!("{end} {} ({})", counts.runs, counts.refused));
            let shown = shown.collect::<Vec<_>>().join(", ");
            let wrong: usize = ends.values().map(|counts| counts.wrong).sum();
            format!("| {command} | {call} | {shown} | {wrong} |")
        };
        self.0.iter().map(line).collect()
    }

    /// Replaces the lines of the command in the page.
    ///
    /// # Errors
    /// Those of reading and writing the page.
    pub fn write_page(&self, page: &Path, command: &str) -> io::Result<()> {
        let old = match fs::read_to_string(page) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            old => old?,
        };
        let mut lines: Vec<&str> = old.lines().filter(|line| cells(line).is_some()).collect();
        let place = lines.iter().position(|line| is_row_of(line, command)).unwrap_or(lines.len());
        lines.retain(|line| !is_row_of(line, command));
        let new = self.table_lines(command);
        lines.splice(place..place, new.iter().map(String::as_str));
        fs::write(page, page_text(&lines))
    }
}

fn page_text(lines: &[&str]) -> String {
    let mut sums = EffectCounts::default();
    for row in lines.iter().filter_map(|line| cells(line)) {
        for end in row.ends.split(", ") {
            let mut words = end.split([' ', '(', ')']).filter_map(|word| word.parse::<usize>().ok());
            sums.runs += words.next().unwrap_or_default();
            sums.refused += words.next().unwrap_or_default();
        }
        sums.wrong += row.wrong;
    }
    let EffectCounts { runs, refused, wrong } = sums;
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("{HEAD}{runs} runs, {refused} ended with an error, {wrong} wrong.\n\n{COLUMNS}{lines}")
}

/// A line of the table.
struct PageRow<'l> {
    command: &'l str,
    ends: &'l str,
    wrong: usize,
}

fn is_row_of(line: &str, command: &str) -> bool {
    cells(line).is_some_and(|row| row.command == command)
}

fn cells(line: &str) -> Option<PageRow<'_>> {
    let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
    let (command, _call, ends) = (cells.next()?, cells.next()?, cells.next()?);
    Some(PageRow { command, ends, wrong: cells.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Errno;

    fn counts(call: &'static str, codes: &[i32]) -> ExamCounts {
        let fault = Fault { call, number: 0, path: None, effect: Effect::Error(Errno::EIO) };
        let mut counts = ExamCounts::default();
        codes.iter().for_each(|code| counts.add_run(&fault, Some(*code), *code == 70));
        counts
    }

    #[test]
    fn an_exam_replaces_the_lines_of_its_command() {
        let path = std::env::temp_dir().join(format!("hotswap-fault-counts-{}", std::process::id()));
        for (command, counts) in [
            ("list", counts("read", &[0, 14, 14])),
            ("serve", counts("openat", &[14])),
            ("list", counts("read", &[0, 70])),
        ] {
            counts.write_page(&path, command).unwrap();
        }
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("3 runs, 2 ended with an error, 1 wrong."), "{text}");
        assert!(text.ends_with("| list | read | EIO 2 (1) | 1 |\n| serve | openat | EIO 1 (1) | 0 |\n"), "{text}");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn shares_of_an_exam_are_added() {
        let mut sum = counts("read", &[0]);
        sum.merge(&counts("read", &[14]));
        assert_eq!(sum, counts("read", &[14, 0]));
    }
}
