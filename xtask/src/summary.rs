//! The summary of a run of the tests: the longest programs, the stages, the slices, and the table of a run of everything.

use crate::outcome::{During, Outcome};
use crate::paths;
use crate::programs::{Ended, Stage};
use hotswap_userland::SLICE;
use std::fmt::Write;
use std::fs;

/// The page with the table of the last run of all cases.
const PAGE: &str = "docs/evidence/full-run.md";

/// Prints the longest programs, the time of each stage, and the tests that ran a part of their cases.
pub(crate) fn print(times: &mut [Ended]) {
    const SHOWN: usize = 25;
    times.sort_by(|one, other| other.processor.total_cmp(&one.processor));
    println!("\nTest programs that took longest, and their time of processors:");
    for Ended { name, seconds, processor, .. } in times.iter().take(SHOWN) {
        println!("  {seconds:>8.1} s {processor:>8.1} s  {name}");
    }
    for stage in Stage::ALL {
        let of = || times.iter().filter(|ended| ended.stage == stage);
        println!("  {:>10} {:>8.1} s  {} programs: {}", "", sum(of()), of().count(), stage.name());
    }
    println!("  {:>10} {:>8.1} s  all {} programs", "", sum(times.iter()), times.len());
    let slices: Vec<String> = times.iter().flat_map(slices).filter(|line| !line.contains(": slice: all ")).collect();
    if !slices.is_empty() {
        println!("\nParts of tests (`cargo xtask test --everything` runs all cases):");
        slices.iter().for_each(|line| println!("  {}", line.split("; `cargo").next().unwrap_or(line)));
    }
}

fn sum<'e>(times: impl Iterator<Item = &'e Ended>) -> f64 {
    times.map(|ended| ended.processor).sum()
}

/// The lines of a program about parts of its cases.
fn slices(ended: &Ended) -> Vec<String> {
    let text = String::from_utf8_lossy(&ended.output);
    text.lines().filter(|line| line.contains(SLICE)).map(|line| line.trim().to_owned()).collect()
}

/// The number of cases of which a line tells that all of them ran.
fn cases(line: &str) -> usize {
    let count = line.split(SLICE).nth(1).and_then(|rest| rest.strip_prefix("all ")?.split(' ').next()?.parse().ok());
    count.unwrap_or_default()
}

/// Writes the table of a run of everything.
pub(crate) fn write_page(times: &[Ended], passed: usize) -> Outcome {
    let path = paths::workspace().join(PAGE);
    fs::write(&path, page(times, passed)).during("write", &path)?;
    println!("{PAGE} has the table of this run.");
    Ok(())
}

fn page(times: &[Ended], passed: usize) -> String {
    let mut text = format!(
        "# A run of all cases\n\nWritten by `cargo xtask test --everything`: {passed} tests passed, in {} programs, with {:.0} s of \
         processors.\n\n| program | seconds | of processors | cases of sliced tests |\n| --- | ---: | ---: | ---: |\n",
        times.len(),
        sum(times.iter())
    );
    for ended in times.iter().filter(|ended| ended.processor >= 10.0 || !slices(ended).is_empty()) {
        let count: usize = slices(ended).iter().map(|line| cases(line)).sum();
        let count = if count == 0 { String::new() } else { count.to_string() };
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {} | {:.0} | {:.0} | {count} |", ended.name, ended.seconds, ended.processor);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    #[test]
    fn the_table_has_the_numbers_of_cases() {
        let ended = |name: &str, output: &str, processor| Ended {
            name: name.to_owned(),
            stage: Stage::Userland,
            output: output.into(),
            status: ExitStatus::from_raw(0),
            seconds: 1.0,
            processor,
        };
        let all = "modes: slice: all 300 cases\nx\nother: slice: all 12 cases\n";
        let text = page(&[ended("a modes", all, 1.0), ended("b", "", 2.0), ended("c", "", 30.0)], 7);
        assert!(text.contains("7 tests passed, in 3 programs"), "{text}");
        assert!(text.contains("| a modes | 1 | 1 | 312 |\n| c | 1 | 30 |  |\n"), "{text}");
        assert_eq!(cases("x: slice: 3 of 9 cases; `cargo xtask test --everything` runs all"), 0);
    }
}
