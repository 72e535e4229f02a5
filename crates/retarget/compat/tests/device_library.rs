//! ROCm's device library against the assumptions of relabelling: its number for each processor, that it only compares
//! this number, and which of its functions give different results for the members of a validated pair.
//!
//! Optimised code contains the results, and no trace of the comparison. So the results must be the same for both
//! members, except where a row of [`DIFFERENT`] gives the reason.

use hotswap_compat::{PairStatus, Strategy, all_pairs};
use hotswap_targets::{PROCESSORS, find_processor};
use hotswap_userland::{Workbench, say};
use std::collections::{BTreeMap, BTreeSet};

/// Functions with different results, and for which processors: all test whether there are dot instructions, and get a
/// wrong result for `gfx90c` and `gfx1013`, whose clang then drops the code (`amd_mixed_dot`). For `gfx909` two tests
/// differ whose combined results are the same.
const DIFFERENT: (&[&str], &[&str]) = (
    &["__ockl_fdot2", "__ockl_sdot2", "__ockl_sdot4", "__ockl_sdot8", "__ockl_udot2", "__ockl_udot4", "__ockl_udot8"],
    &["gfx909", "gfx90c", "gfx1013"],
);

/// The library as text, and a line for each number.
const SCRIPT: &str = r#"
set -e
V=$(ls /usr/bin | sed -n 's/^llvm-dis-\(2[2-9]\)$/\1/p' | head -1)
LIBRARY=$(dirname "$(find -L "$ROCM/amdgcn" /usr/lib/llvm-*/lib/clang/*/amdgcn /opt/rocm/amdgcn -name ocml.bc 2> /dev/null | head -1)")
for name in ockl ocml opencl hip asanrtl; do
  [ -e "$LIBRARY/$name.bc" ] && llvm-dis-$V "$LIBRARY/$name.bc" -o - >> library.ll
done
for file in "$LIBRARY"/oclc_isa_version_*.bc; do
  echo "$(basename "$file" .bc) $(llvm-dis-$V "$file" -o - | sed -n 's/^@__oclc_ISA_version = .* constant i32 \([0-9]*\),.*/\1/p')"
done
"#;

/// A test of the number in a function: a comparison with its constants. For a `switch`: the offset added to the number,
/// and each case with the index of the first case that branches to the same label.
type Question = (String, Vec<i64>);

/// Tests by function; the error names an unknown use.
fn questions(library: &str) -> Result<BTreeMap<String, BTreeSet<Question>>, String> {
    let mut found: BTreeMap<String, BTreeSet<Question>> = BTreeMap::new();
    for text in library.split("\ndefine ").skip(1).map(|text| text.split("\n}").next().unwrap_or_default()) {
        let name = text.split_once('@').and_then(|(_, rest)| rest.split('(').next()).unwrap_or_default();
        let lines = statements(text);
        // Values that are the number, with the offset added to it.
        let mut numbers: BTreeMap<&str, i64> = BTreeMap::new();
        for line in &lines {
            let Some((value, what)) = line.split_once(" = ") else {
                if line.contains("@__oclc_ISA_version") {
                    return Err(format!("{name}: {line}"));
                }
                found.entry(name.to_owned()).or_default().extend(switch(line, &numbers));
                continue;
            };
            if what.starts_with("load i32, ptr addrspace(4) @__oclc_ISA_version,") {
                numbers.insert(value, 0);
                continue;
            }
            let words: Vec<&str> = what.split([' ', ',']).filter(|word| !word.is_empty()).collect();
            let Some(added) = words.iter().find_map(|word| numbers.get(word)).copied() else {
                if what.contains("@__oclc_ISA_version") {
                    return Err(format!("{name}: {line}"));
                }
                continue;
            };
            let constant = words.last().and_then(|word| word.parse::<i64>().ok());
            match (words[0], constant) {
                ("freeze", _) => drop(numbers.insert(value, added)),
                ("add", Some(constant)) => drop(numbers.insert(value, added + constant)),
                ("icmp", Some(constant)) => {
                    let kind = words.iter().find(|word| COMPARISONS.iter().any(|(known, _)| known == *word));
                    let kind = kind.ok_or_else(|| format!("{name}: {line}"))?;
                    let asked = ((*kind).to_owned(), vec![constant, added]);
                    found.entry(name.to_owned()).or_default().insert(asked);
                }
                _ => return Err(format!("{name}: {line}")),
            }
        }
    }
    found.retain(|_, asked| !asked.is_empty());
    Ok(found)
}

/// Lines, those of a `switch` joined.
fn statements(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim) {
        match lines.last_mut().filter(|last| last.starts_with("switch ") && !last.ends_with(']')) {
            Some(last) => *last += &format!(" {line}"),
            None => lines.push(line.to_owned()),
        }
    }
    lines
}

/// The test of a `switch` over the number.
fn switch(line: &str, numbers: &BTreeMap<&str, i64>) -> Option<Question> {
    let value = line.strip_prefix("switch i32 ")?.split(',').next()?;
    let added = numbers.get(value)?;
    let case = |text: &str| {
        let (number, label) = text.split_once(", label ")?;
        Some((number.parse::<i64>().ok()?, label.split([' ', ',', ']']).next()?.to_owned()))
    };
    let cases: Vec<(i64, String)> = line.split("i32 ").skip(2).filter_map(case).collect();
    let first = |label: &str| cases.iter().position(|(_, other)| other == label).unwrap_or_default() as i64;
    let constants = cases.iter().flat_map(|(number, label)| [*number, first(label)]);
    Some(("switch".to_owned(), std::iter::once(*added).chain(constants).collect()))
}

type Comparison = fn(i64, i64) -> bool;

const COMPARISONS: &[(&str, Comparison)] = &[
    ("eq", |a, b| a == b),
    ("ne", |a, b| a != b),
    ("slt", |a, b| a < b),
    ("sgt", |a, b| a > b),
    ("ult", |a, b| (a as u32) < b as u32),
    ("ugt", |a, b| a as u32 > b as u32),
];

/// The result for a number, as a number.
fn answer((kind, constants): &Question, number: u32) -> i64 {
    let number = i64::from(number);
    match COMPARISONS.iter().find(|(known, _)| known == kind) {
        Some((_, compare)) => i64::from(compare(number + constants[1], constants[0])),
        None => constants[1..].chunks(2).find(|case| case[0] == number + constants[0]).map_or(-1, |case| case[1]),
    }
}

#[test]
fn the_device_library_answers_the_same_for_the_members_of_a_validated_pair() {
    let Some(bench) = Workbench::new("the device library's questions") else { return };
    let numbers = bench.run(SCRIPT);
    let mut count = 0;
    for (name, number) in numbers.lines().filter_map(|line| line.split_once(' ')) {
        let name = name.replace("oclc_isa_version_", "gfx");
        let known = find_processor(&name).unwrap_or_else(|| panic!("the library has {name}"));
        assert_eq!(known.isa_version.map(|known| known.to_string()).as_deref(), Some(number), "{name}");
        count += 1;
    }
    let of_table = PROCESSORS.iter().filter(|processor| processor.isa_version.is_some()).count();
    assert!(count > 40 && count <= of_table, "{count} numbers, {of_table} in the table");
    let asked = questions(&String::from_utf8(bench.read("library.ll")).unwrap()).unwrap_or_else(|what| {
        panic!("the library does more than compare: {what}");
    });
    assert!(asked.len() > 100, "{} functions ask", asked.len());
    let validated =
        all_pairs().filter(|pair| (pair.status, pair.strategy) == (PairStatus::Validated, Strategy::Relabel));
    let (mut functions, mut processors) = (BTreeSet::new(), BTreeSet::new());
    for pair in validated {
        let [one, other] = [pair.source, pair.target].map(|name| find_processor(name).unwrap().isa_version.unwrap());
        for (function, questions) in &asked {
            if questions.iter().any(|question| answer(question, one) != answer(question, other)) {
                functions.insert(function.as_str());
                let odd = [pair.source, pair.target].into_iter().find(|name| DIFFERENT.1.contains(name));
                processors.insert(odd.unwrap_or_else(|| panic!("{function}: {}=>{}", pair.source, pair.target)));
            }
        }
    }
    assert_eq!(functions.into_iter().collect::<Vec<_>>(), DIFFERENT.0);
    assert_eq!(processors.len(), DIFFERENT.1.len());
    say(&format!("device library: {count} numbers, {} functions that ask", asked.len()));
}
