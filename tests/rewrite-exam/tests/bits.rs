//! Every bit of rewritten files that `hotswap verify --against` claims to compare is compared: each bit of headers, notes
//! and tables is flipped, and a sample of those of the rest. The flip must be noticed, or the byte must lie in a part
//! that the table of releases names.
//!
//! By default the bits of headers, notes and tables of the smallest outputs are taken, and a fixed part of the rest.

use hotswap_code_object::image::ObjectImage;
use hotswap_lint::{RELEASES, compare_with_original, released_bytes};
use hotswap_rewrite_exam::assembly::assemble;
use hotswap_rewrite_exam::compile::{self, Form, Setting};
use hotswap_rewrite_exam::corpus::units;
use hotswap_rewrite_exam::exam::run;
use hotswap_rewrite_exam::spills::spills;
use hotswap_rewrite_exam::variants::variants;
use hotswap_userland::{Workbench, everything, say};
use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// A rewritten file with its original.
struct Output {
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
        Some(Output { name, original, made })
    };
    let mut outputs: Vec<Output> = objects.into_iter().filter_map(output).collect();
    outputs.sort_by_key(|output| (output.made.len(), output.name.clone()));
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
    // All bits of the described parts of the first ones, every n-th of the others.
    let (whole, step, rest_step) = if everything() { (20, 3, 29) } else { (1, 2999, 9973) };
    let (mut flips, mut free, mut missed) = (0_u64, BTreeSet::new(), Vec::new());
    for (number, output) in outputs.iter().take(if everything() { outputs.len() } else { 24 }).enumerate() {
        let releases = released_bytes(&output.made).unwrap();
        let described = described_parts(&output.made);
        for bit in 0..output.made.len() * 8 {
            let byte = bit / 8;
            let is_described = described.iter().any(|part| part.contains(&byte));
            let every = if is_described { if number < whole { 1 } else { step } } else { rest_step };
            if (bit + number) % every != 0 {
                continue;
            }
            let holds = |ranges: &[Range<usize>]| ranges.iter().any(|range| range.contains(&byte));
            if let Some(bytes) = releases.iter().find(|bytes| holds(&bytes.ranges)) {
                free.insert(bytes.release.part);
                continue;
            }
            flips += 1;
            if !is_noticed(output, byte, (bit % 8) as u32) {
                missed.push(format!("{}: byte {byte:#x} bit {}", output.name, bit % 8));
            }
        }
    }
    say(&format!("bits of rewritten files: {flips} flipped, {} not noticed; released: {free:?}", missed.len()));
    missed.dedup_by_key(|what| what.split(" bit").next().map(str::to_owned));
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
