//! Lines of assembly before the assembler: which ones it accepts for one processor alone, and which it encodes otherwise.

use super::{PairDifferences, SteppingPair};
use hotswap_userland::Workbench;
use std::collections::BTreeMap;
use std::path::Path;

/// Gives LLVM's own test lines to the assembler for both.
pub(super) fn compare_assembly(bench: &Workbench, pair: &SteppingPair, directory: &Path, found: &mut PairDifferences) {
    let lines = test_lines(pair, directory);
    let [left, right] = [pair.source, pair.target].map(|processor| rejections(bench, processor, &lines));
    let mut both = Vec::new();
    let mut compared = 0;
    for (number, line) in lines.iter().enumerate() {
        let name = line.split_whitespace().next().unwrap_or_default();
        match (left.get(&number), right.get(&number)) {
            (None, None) => both.push(line.clone()),
            (None, Some(why)) => found.add(format!("assembler: only {}: {name}: {why}", pair.source), line),
            (Some(why), None) => found.add(format!("assembler: only {}: {name}: {why}", pair.target), line),
            // A line for another processor.
            (Some(_), Some(_)) => continue,
        }
        compared += 1;
    }
    found.count_cases("lines of assembly", compared);
    let [left, right] = [pair.source, pair.target].map(|processor| encodings(bench, processor, &both));
    assert_eq!(left.len(), right.len(), "{}: other numbers of encodings", pair.target);
    for (left, right) in left.iter().zip(&right).filter(|(left, right)| left != right) {
        let name = left.split_whitespace().next().unwrap_or_default();
        found.add(format!("assembler: encoding of {name}"), &format!("{left}, {right}"));
    }
}

/// Instructions in the files of a pair, each once.
fn test_lines(pair: &SteppingPair, directory: &Path) -> Vec<String> {
    let mut all = std::collections::BTreeSet::new();
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_own = pair.assembly.iter().any(|start| name.starts_with(start));
        if !is_own || name.contains("err") || !name.ends_with(".s") {
            continue;
        }
        let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for line in String::from_utf8_lossy(&text).lines() {
            let code = line.split("//").next().unwrap_or_default().trim();
            let is_code = code.starts_with(|first: char| first.is_ascii_lowercase()) && !code.ends_with(':');
            if is_code && !code.contains([';', '<']) {
                all.insert(code.to_owned());
            }
        }
    }
    all.into_iter().collect()
}

fn write_lines(bench: &Workbench, lines: &[String]) {
    bench.write("lines.s", (lines.join("\n") + "\n").as_bytes());
}

/// The lines that the assembler rejects, by number, with the reason.
fn rejections(bench: &Workbench, processor: &str, lines: &[String]) -> BTreeMap<usize, String> {
    write_lines(bench, lines);
    let output = bench
        .shell(&format!("llvm-mc-24 -triple=amdgcn-amd-amdhsa -mcpu={processor} -o /dev/null lines.s 2>&1 || true"));
    let mut all = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some((place, why)) = line.split_once(": error: ") else { continue };
        if let Some(number) = place.split(':').nth(1).and_then(|number| number.parse::<usize>().ok()) {
            all.entry(number - 1).or_insert_with(|| why.replace('|', "/"));
        }
    }
    all
}

/// The instruction and the bytes of each line.
fn encodings(bench: &Workbench, processor: &str, lines: &[String]) -> Vec<String> {
    write_lines(bench, lines);
    let text = bench.run(&format!("llvm-mc-24 -triple=amdgcn-amd-amdhsa -mcpu={processor} -show-encoding lines.s"));
    text.lines().filter(|line| line.contains("encoding: [")).map(|line| line.trim().to_owned()).collect()
}
