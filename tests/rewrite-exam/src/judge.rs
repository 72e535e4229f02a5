//! Runs LLVM's tools on the results and checks their output.

use crate::banks::{Banks, banks};
use crate::hazard::{Distances, distances};
use crate::listing::{Listing, vgprs};
use crate::rules;
use hotswap_userland::Workbench;
use std::collections::BTreeMap;

/// The problems of one object, and its distances.
#[derive(Debug, Default)]
pub struct Verdict {
    /// One line each; empty if it is good.
    pub problems: Vec<String>,
    /// The result of [`crate::hazard`].
    pub distances: Distances,
    /// Instructions that were checked.
    pub lines: usize,
    /// The listing, for comparisons.
    pub listing: Listing,
}

/// Runs LLVM 24 on some files of the bench; returns the answers in the order of the names.
///
/// # Panics
/// If the userland lacks LLVM 24.
pub fn ask(bench: &Workbench, names: &[&str]) -> Vec<Answer> {
    bench.run(&(names.iter().map(objdump_script_line).collect::<String>() + "true\n"));
    names.iter().map(|one| collect_llvm_answer(one, bench)).collect()
}

fn objdump_script_line(name: &&str) -> String {
    format!(
        "llvm-objdump-24 -d '{name}' >'{name}.txt' 2>'{name}.err' || echo \"objdump $?\" >>'{name}.err'\n\
         llvm-readelf-24 --wide -hlSsrn --notes --dynamic '{name}' >'{name}.elf' 2>>'{name}.err' || echo \"readelf $?\" >>'{name}.err'\n\
         if grep -q '[.]debug_info' '{name}.elf'; then llvm-dwarfdump-24 --verify --quiet '{name}' >>'{name}.err' 2>&1 || \
         {{ echo \"dwarfdump $?\" >>'{name}.err'; llvm-dwarfdump-24 --verify '{name}' 2>&1 | grep -m3 error >>'{name}.err'; }}; fi\n"
    )
}

fn read_bench_text(name: String, bench: &Workbench) -> String {
    String::from_utf8_lossy(&bench.read(&name)).into_owned()
}

fn collect_llvm_answer(name: &&str, bench: &Workbench) -> Answer {
    Answer {
        code: read_bench_text(format!("{name}.txt"), bench),
        elf: read_bench_text(format!("{name}.elf"), bench),
        complaints: read_bench_text(format!("{name}.err"), bench),
    }
}

/// The output of the tools.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// `llvm-objdump -d`.
    pub code: String,
    /// `llvm-readelf`.
    pub elf: String,
    /// Errors and warnings of all.
    pub complaints: String,
}

/// Judges code for the target; `ours` adds the rules that LLVM itself does not follow, and distances before calls and
/// returns.
pub fn judge(answer: &Answer, ours: bool) -> Verdict {
    let listing = Listing::read(&answer.code);
    let banks = banks(&listing);
    let distances = distances(&listing, &banks);
    let mut problems: Vec<String> = answer.complaints.lines().map(|line| format!("LLVM says: {line}")).collect();
    problems.extend(listing.invalid.iter().map(|line| format!("invalid: {line}")));
    problems.extend(banks.problems.iter().map(|line| format!("bank mode: {line}")));
    problems.extend(distances.unknown.iter().map(|line| format!("not on the target: {line}")));
    problems.extend(distances.violations.iter().map(|line| format!("too near: {line}")));
    problems.extend(rules::problems(&listing, ours, &counts(&answer.elf).into_keys().collect()));
    problems.extend(targets(&listing));
    if ours {
        problems.extend(distances.leaving.iter().map(|line| format!("too near to a call or return: {line}")));
        problems.extend(registers(&listing, &banks, &answer.elf));
    }
    Verdict { problems, lines: listing.lines.len(), distances, listing }
}

/// Branches must target instructions.
fn targets(listing: &Listing) -> Vec<String> {
    let astray = |line: &usize| listing.lines[*line].target.is_some_and(|target| listing.at(target).is_none());
    (0..listing.lines.len())
        .filter(astray)
        .map(|line| format!("{}: leads to no instruction", listing.show(line)))
        .collect()
}

/// No kernel uses a VGPR above the number in its metadata.
fn registers(listing: &Listing, banks: &Banks, elf: &str) -> Vec<String> {
    let counts = counts(elf);
    let mut highest: BTreeMap<&str, (u16, usize)> = BTreeMap::new();
    for (number, line) in listing.lines.iter().enumerate() {
        for (role, operand) in line.operands() {
            let Some(regs) = vgprs(operand) else { continue };
            let [physical] = banks.before[number].physical(role, regs)[..] else { continue };
            let last = physical.first + physical.count;
            let known = highest.entry(listing.function(number)).or_insert((0, number));
            if last > known.0 {
                *known = (last, number);
            }
        }
    }
    let wrong = |(name, (used, line)): (&&str, &(u16, usize))| {
        let count = *counts.get(*name)?;
        (u32::from(*used) > count).then(|| format!("{}: the metadata says {count} VGPRs", listing.show(*line)))
    };
    highest.iter().filter_map(wrong).collect()
}

/// VGPRs of each kernel by its metadata.
fn counts(elf: &str) -> BTreeMap<String, u32> {
    let (mut counts, mut name) = (BTreeMap::new(), None);
    for line in elf.lines() {
        let Some((key, value)) = line.trim().trim_start_matches("- ").split_once(':') else { continue };
        match key.trim() {
            ".symbol" => name = value.trim().trim_matches('\'').strip_suffix(".kd").map(str::to_owned),
            ".vgpr_count" => {
                if let (Some(name), Ok(count)) = (name.take(), value.trim().parse()) {
                    counts.insert(name, count);
                }
            }
            _ => {}
        }
    }
    counts
}
