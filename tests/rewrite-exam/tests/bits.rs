//! Every bit of rewritten files that `hotswap verify --against` claims to compare is compared: each bit of headers, notes
//! and tables is flipped, and a sample of those of the rest. The flip must be noticed, or the byte must lie in a part
//! that the table of releases names.
//!
//! By default the bits of headers, notes and tables of the smallest output are taken, and a fixed part of the rest; in a whole run
//! those of the twenty smallest outputs, and every 29th bit of their other parts. `HOTSWAP_BITS=7..20` takes only these of the
//! twenty, for a run that was stopped. Flips that change nothing of what the code does are listed in `bits.equal` with the reason.

use hotswap_code_object::image::ObjectImage;
use hotswap_lint::{RELEASES, compare_with_original, released_bytes};
use hotswap_rewrite_exam::assembly::assemble;
use hotswap_rewrite_exam::compile::{self, Form, Setting};
use hotswap_rewrite_exam::corpus::units;
use hotswap_rewrite_exam::exam::run;
use hotswap_rewrite_exam::spills::spills;
use hotswap_rewrite_exam::variants::variants;
use hotswap_userland::{Workbench, everything, run_cases, say};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// A rewritten file with its original.
struct Output {
    /// From the smallest one on.
    number: usize,
    name: String,
    original: Vec<u8>,
    made: Vec<u8>,
}

/// Outputs in the form that they are loaded in and as objects, the smallest first.
fn outputs(bench: &Workbench) -> Vec<Output> {
    let mut objects: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, kernels) in variants() {
        objects.extend(assemble(bench, name, &kernels));
    }
    for kernel in spills() {
        objects.extend(assemble(bench, &kernel.name, std::slice::from_ref(&kernel)));
    }
    for unit in units().iter().filter(|unit| ["cluster", "e5m3"].contains(&&*unit.name)) {
        let setting = Setting { version: 24, level: '2', debug: false };
        let made = compile::compile(bench, unit, setting, &[Form::Linked]);
        objects.extend(made.into_iter().map(|one| (one.name, one.bytes)));
    }
    let output = |(name, original): (String, Vec<u8>)| {
        let made = run(&original, false).ok()?.bytes;
        Some(Output { number: 0, name, original, made })
    };
    let mut outputs: Vec<Output> = objects.into_iter().filter_map(output).collect();
    outputs.sort_by_key(|output| (output.made.len(), output.name.clone()));
    outputs.iter_mut().enumerate().for_each(|(number, output)| output.number = number);
    outputs
}

/// The parts of which every bit is taken: headers, notes, and tables of symbols, names and dynamic entries.
fn described_parts(made: &[u8]) -> Vec<Range<usize>> {
    use object::elf;
    let image = ObjectImage::parse(made).unwrap();
    let number = |at: usize| u64::from_le_bytes(made[at..at + 8].try_into().unwrap()) as usize;
    let (segments, sections) = (number(32), number(40));
    let count = |at: usize| usize::from(u16::from_le_bytes(made[at..at + 2].try_into().unwrap()));
    let mut parts = vec![0..64, segments..segments + 56 * count(56), sections..sections + 64 * count(60)];
    let is_table = |kind: u32| [elf::SHT_NOTE, elf::SHT_DYNAMIC, elf::SHT_SYMTAB, elf::SHT_DYNSYM].contains(&kind);
    let tables = image.sections.iter().filter(|part| is_table(part.kind));
    parts.extend(tables.map(|part| part.offset as usize..part.offset as usize + part.bytes.len()));
    parts
}

/// Whether the flip of a bit is noticed.
fn is_noticed(output: &Output, byte: usize, bit: u32) -> bool {
    let mut flipped = output.made.clone();
    flipped[byte] ^= 1 << bit;
    compare_with_original(&output.original, &flipped).map_or(true, |proof| !proof.findings.is_empty())
}

/// How many outputs there are, of how many every described bit is flipped, and every how many-th bit elsewhere: of their
/// other parts, and of the described parts of the other outputs.
struct FlipSizes {
    outputs: usize,
    whole: usize,
    described: usize,
    rest: usize,
}

impl FlipSizes {
    fn of_this_run() -> Self {
        if everything() {
            Self { outputs: 20, whole: 20, described: 1, rest: 29 }
        } else {
            Self { outputs: 24, whole: 1, described: 2999, rest: 9973 }
        }
    }
}

/// The outputs that are taken: all, or those that `HOTSWAP_BITS` names by number.
fn wanted_outputs(all: usize) -> Range<usize> {
    let Ok(wanted) = std::env::var("HOTSWAP_BITS") else { return 0..all };
    let (from, to) = wanted.split_once("..").expect("HOTSWAP_BITS is not FROM..TO");
    from.parse().expect("HOTSWAP_BITS has no number")..to.parse().expect("HOTSWAP_BITS has no number")
}

/// The flips of an output.
struct FlipTally {
    flips: u64,
    /// Parts with bytes that are released.
    free: BTreeSet<&'static str>,
    missed: Vec<String>,
    /// Flips that change nothing, from the list of them.
    equal: BTreeSet<&'static str>,
}

/// Flips that change nothing of what the code does, without the reasons.
fn equal_flips() -> BTreeSet<&'static str> {
    let lines = include_str!("bits.equal").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(" | ")).map(|(flip, _)| flip).collect()
}

fn flip_bits(output: &Output, sizes: &FlipSizes) -> FlipTally {
    let mut tally = FlipTally { flips: 0, free: BTreeSet::new(), missed: Vec::new(), equal: BTreeSet::new() };
    let known = equal_flips();
    let releases = released_bytes(&output.made).unwrap();
    let described = described_parts(&output.made);
    for bit in 0..output.made.len() * 8 {
        let byte = bit / 8;
        let is_described = described.iter().any(|part| part.contains(&byte));
        let every = match is_described {
            true if output.number < sizes.whole => 1,
            true => sizes.described,
            false => sizes.rest,
        };
        if !(bit + output.number).is_multiple_of(every) {
            continue;
        }
        let holds = |ranges: &[Range<usize>]| ranges.iter().any(|range| range.contains(&byte));
        if let Some(bytes) = releases.iter().find(|bytes| holds(&bytes.ranges)) {
            tally.free.insert(bytes.release.part);
            continue;
        }
        tally.flips += 1;
        if !is_noticed(output, byte, (bit % 8) as u32) {
            let flip = format!("{}: byte {byte:#x} bit {}", output.name, bit % 8);
            match known.get(&*flip) {
                Some(same) => {
                    tally.equal.insert(*same);
                }
                None => tally.missed.push(flip),
            }
        }
    }
    if everything() {
        let FlipTally { flips, missed, .. } = &tally;
        let (number, name, size) = (output.number, &output.name, output.made.len());
        say(&format!("{number} {name}: {size} bytes, {flips} flipped, {} not noticed", missed.len()));
        missed.iter().take(20).for_each(|line| say(line));
    }
    tally
}

#[test]
fn every_flipped_bit_is_noticed_or_released() {
    let Some(bench) = Workbench::with_llvm(24, "bits of rewritten files") else { return };
    let outputs = outputs(&bench);
    assert!(outputs.len() >= 20, "{}", outputs.len());
    let unproven = outputs.iter().flat_map(|output| {
        let findings = compare_with_original(&output.original, &output.made).unwrap().findings;
        findings.into_iter().map(|one| format!("{}: {}", output.name, one.to_diagnostic())).collect::<Vec<_>>()
    });
    let unproven: Vec<String> = unproven.collect();
    assert!(unproven.is_empty(), "{}", unproven.join("\n"));
    let sizes = FlipSizes::of_this_run();
    let taken = &outputs[wanted_outputs(sizes.outputs.min(outputs.len()))];
    // In a thread of rayon's: the parts of a comparison of such a small file would take longer to hand over than to do.
    let tallies = run_cases(taken, || (), |(), output| rayon::scope(|_| flip_bits(output, &sizes)));
    let flips: u64 = tallies.iter().map(|tally| tally.flips).sum();
    let free: BTreeSet<&str> = tallies.iter().flat_map(|tally| tally.free.iter().copied()).collect();
    let mut missed: Vec<String> = tallies.iter().flat_map(|tally| tally.missed.iter().cloned()).collect();
    say(&format!(
        "bits of {} rewritten files: {flips} flipped, {} not noticed; released: {free:?}",
        tallies.len(),
        missed.len()
    ));
    missed.dedup_by_key(|what| what.split(" bit").next().map(str::to_owned));
    let needed: BTreeSet<&str> = tallies.iter().flat_map(|tally| tally.equal.iter().copied()).collect();
    let is_whole = everything() && taken.len() == sizes.outputs;
    assert!(!is_whole || needed == equal_flips(), "bits.equal: only these are needed: {needed:?}");
    let count = missed.len();
    missed.truncate(60);
    assert!(flips > 2000 && count == 0, "{count} missed:\n{}", missed.join("\n"));
}

#[test]
fn the_page_lists_the_releases() {
    let page =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evidence/verification.md")).unwrap();
    let missing: Vec<_> = RELEASES.iter().filter(|release| !page.contains(release.part)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
