//! The exam of `hotswap serve`: libraries of a distribution on their own GPU, and from a served tree on the GPUs that it
//! serves, under the real HIP runtime. The judge is the dispatch recorder: the same kernels with the same grids, from code
//! objects of the target.
//!
//! The arguments are the directories of the packages (`usr` of each). `HOTSWAP_TEST_ROOT` names the userland. Prints a
//! table, and fails where a case does. `STACK_EXAM_ONLY` chooses cases by a part of their titles: `rocBLAS gfx900`.

mod cases;
mod judge;

use cases::{CASES, PLANTED};
use hotswap_dispatch::Recorder;
use judge::{CaseBench, Verdict};
use std::process::ExitCode;

const HEADINGS: [&str; 7] = ["libraries", "source", "GPUs", "host sees", "dispatches", "kernels", "result"];

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let packages: Vec<std::path::PathBuf> = words.by_ref().map(Into::into).collect();
    let only = std::env::var("STACK_EXAM_ONLY").unwrap_or_default();
    println!("| {} |\n|{}", HEADINGS.join(" | "), " --- |".repeat(HEADINGS.len()));
    let mut failed = 0;
    for case in CASES.iter().filter(|case| case.title().contains(&only)) {
        let Some(recorder) = Recorder::new("stack-exam") else { return ExitCode::FAILURE };
        let bench = CaseBench::new(&recorder, &packages, case);
        for Verdict { cells, is_right } in bench.judge() {
            println!("| {} |", cells.join(" | "));
            failed += usize::from(!is_right);
        }
    }
    println!("\n| planted | said |\n| --- | --- |");
    for planted in PLANTED.iter().filter(|planted| planted.libraries.contains(&only)) {
        let Some(recorder) = Recorder::new("stack-exam") else { return ExitCode::FAILURE };
        let (said, is_right) = judge::plant(&recorder, &packages, planted);
        println!("| {} | {said} |", planted.title);
        failed += usize::from(!is_right);
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
