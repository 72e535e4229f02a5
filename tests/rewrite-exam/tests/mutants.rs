//! Mutants of rewritten code: one instruction, descriptor, symbol or note is wrong, and `hotswap lint` or `hotswap
//! verify --against` must detect it.
//!
//! Mutants are made of the regressions, of every family in every position, and of compiled kernels, by the same rules
//! on every machine. A mutant that is equivalent to its origin is listed in `mutants.equal` with the reason; a detected
//! one must not be listed there.

use hotswap_code_object::image::ObjectImage;
use hotswap_code_object::{CodeObject, certificate_note};
use hotswap_isa::reg::RegFile;
use hotswap_isa::{Flag, Inst, Isa, Name, OperandValue, Target};
use hotswap_lint::{compare_with_original, lint_object};
use hotswap_report::Certificate;
use hotswap_rewrite_exam::assembly::{Kernel, assemble};
use hotswap_rewrite_exam::compile::{self, Form, Setting};
use hotswap_rewrite_exam::corpus::units;
use hotswap_rewrite_exam::exam::run;
use hotswap_rewrite_exam::spills::spills;
use hotswap_rewrite_exam::variants::variants;
use hotswap_userland::{Workbench, say};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Compiled units from which mutants are made.
const UNITS: [&str; 4] = ["cluster", "control", "e5m3", "tensor"];
/// Mutants of one object at most.
const MOST: usize = 16;
/// `s_nop 0`.
const NOP: u32 = 0xbf80_0000;

/// A rewritten object with its original.
struct Rewritten {
    name: String,
    original: Vec<u8>,
    made: Vec<u8>,
}

/// A mutant: its change, by kind and offset.
struct Mutant {
    kind: &'static str,
    place: String,
    bytes: Vec<u8>,
}

fn rewritten(bench: &Workbench) -> Vec<Rewritten> {
    let mut objects: Vec<(String, Vec<u8>)> = Vec::new();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut paths: Vec<_> = fs::read_dir(cases).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "s"));
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let kernel = Kernel { name: "k".to_owned(), code: fs::read_to_string(&path).unwrap() };
        objects.extend(assemble(bench, name, &[kernel]));
    }
    for (name, kernels) in variants() {
        let [_, linked] = assemble(bench, name, &kernels);
        objects.push(linked);
    }
    for kernel in spills() {
        let [_, linked] = assemble(bench, &kernel.name, std::slice::from_ref(&kernel));
        objects.push(linked);
    }
    for unit in units().iter().filter(|unit| UNITS.contains(&&*unit.name)) {
        let setting = Setting { version: 24, level: '2', debug: false };
        let made = compile::compile(bench, unit, setting, &[Form::Linked]);
        objects.extend(made.into_iter().filter(|object| object.form == Form::Linked).map(|one| (one.name, one.bytes)));
    }
    let made = |(name, original): (String, Vec<u8>)| {
        let made = run(&original, false).ok()?.bytes;
        certificate_note(&made)?;
        Some(Rewritten { name, original, made })
    };
    objects.into_iter().filter_map(made).collect()
}

/// The code of a rewritten object: its section's range in the file, and its sites.
struct Code {
    isa: Isa,
    file: Range<usize>,
    sites: Vec<Range<u32>>,
}

fn code(made: &[u8]) -> Code {
    let isa = Isa::new(Target::find("gfx1250-strict").unwrap());
    let certificate = Certificate::from_bytes(certificate_note(made).unwrap()).unwrap();
    let section = &certificate.sections[0];
    let part = &ObjectImage::parse(made).unwrap().sections[section.number as usize];
    let start = part.offset as usize;
    let sites = section.sites.iter().map(|site| site.new.clone()).collect();
    Code { isa, file: start..start + part.bytes.len(), sites }
}

impl Code {
    /// The instructions of the new code at sites, and the two after each.
    fn instructions(&self, made: &[u8]) -> Vec<(u32, Inst)> {
        let bytes = &made[self.file.clone()];
        let mut all = BTreeMap::new();
        for site in &self.sites {
            let (mut at, mut behind) = (site.start, 0);
            while behind < 3 {
                let Some(inst) = bytes.get(at as usize..).and_then(|rest| self.isa.decode(rest).ok()) else { break };
                all.insert(at, inst);
                at += u32::from(inst.len());
                behind += u32::from(at > site.end);
            }
        }
        all.into_iter().collect()
    }

    /// The file with other words at an offset of the section.
    fn with(&self, made: &[u8], at: u32, words: &[u32]) -> Vec<u8> {
        let mut bytes = made.to_vec();
        for (place, word) in (self.file.start + at as usize..).step_by(4).zip(words) {
            bytes[place..place + 4].copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn words<'i>(&self, inst: &'i Inst) -> &'i [u32] {
        &inst.words()[..usize::from(inst.len()) / 4]
    }
}

/// Mutants of the code, one for each instruction and kind.
fn of_code(code: &Code, made: &[u8]) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    let all = code.instructions(made);
    for (number, (at, inst)) in all.iter().enumerate() {
        let words = code.words(inst);
        let place = format!("{at:#x} {}", inst.mnemonic());
        let mut push = |kind: &'static str, at: u32, words: &[u32]| {
            let bytes = code.with(made, at, words);
            if bytes != made {
                mutants.push(Mutant { kind, place: place.clone(), bytes });
            }
        };
        let nops = vec![NOP; words.len()];
        let kind = match () {
            () if inst.mnemonic() == "v_nop" => "v_nop removed",
            () if inst.mnemonic().starts_with("s_wait_") => "wait removed",
            () if inst.mnemonic() == "s_set_vgpr_msb" => "bank mode not set",
            () if matches!(inst.operand(code.isa, Name::Sdst), Some(OperandValue::Reg(reg)) if reg.file == RegFile::Special) => {
                "M0 not set"
            }
            () => "instruction deleted",
        };
        push(kind, *at, &nops);
        if inst.mnemonic().starts_with("s_wait_") {
            let changed = if inst.mnemonic() == "s_wait_alu" { words[0] | 0xf000 } else { words[0] + 1 };
            push("wait weakened", *at, &[changed]);
        }
        if inst.mnemonic() == "s_set_vgpr_msb" {
            push("bank byte", *at, &[words[0] ^ 1]);
            push("bank byte before", *at, &[words[0] ^ 0x100]);
        }
        if inst.is(Flag::Wmma) && words.len() == 4 {
            push("scale prefix removed", *at, &[NOP, NOP, words[2], words[3]]);
            push(
                "K of an instruction that the target lacks",
                *at,
                &[NOP, NOP, 0xcc80_0000 | words[2] & 0xff, words[3]],
            );
        }
        if inst.branch_target(u64::from(*at), code.isa).is_some() {
            push("branch one further", *at, &[words[0] & 0xffff_0000 | (words[0] + 1) & 0xffff]);
        }
        if let Some((next_at, next)) = all.get(number + 1).filter(|(next, _)| *next == at + u32::from(inst.len())) {
            let both: Vec<u32> = code.words(next).iter().chain(words).copied().collect();
            push("instructions swapped", *at, &both);
            if next.len() == inst.len() {
                push("instruction twice", *next_at, words);
            }
        }
        if inst.literal().is_some() && words.len() > 1 {
            let mut changed = words.to_vec();
            *changed.last_mut().unwrap() ^= 1 << (at % 8);
            push("literal changed", *at, &changed);
        }
        for operand in inst.operands(code.isa) {
            let OperandValue::Reg(reg) = operand.value else { continue };
            if !matches!(reg.file, RegFile::Vgpr | RegFile::Sgpr) || reg.index + 1 + u16::from(reg.count) > 104 {
                continue;
            }
            let step = if reg.count > 1 { 2 } else { 1 };
            let moved = hotswap_isa::reg::Reg { index: reg.index + step, ..reg };
            if let Ok(changed) = inst.with_operand(code.isa, operand.name, moved) {
                push("register off by one", *at, code.words(&changed));
            }
        }
        if matches!(words.len(), 1 | 2) && inst.is(Flag::Valu) {
            // The lowest bit of the opcode.
            let bit = match words[0] >> 26 {
                0x35 | 0x33 => 16,
                _ if words[0] >> 25 == 0x3f => 9,
                _ => 25,
            };
            push("another instruction", *at, &[&[words[0] ^ 1 << bit], &words[1..]].concat());
        }
        if inst.is(Flag::Ds) {
            push("offset changed", *at, &[words[0] ^ 4, words[1]]);
        }
    }
    mutants
}

/// Mutants of the file outside of the code.
fn of_file(made: &[u8]) -> Vec<Mutant> {
    let mut mutants = Vec::new();
    let object = CodeObject::parse(made).unwrap();
    let mut push = |kind: &'static str, place: String, at: usize, flip: u8| {
        let mut bytes = made.to_vec();
        bytes[at] ^= flip;
        mutants.push(Mutant { kind, place, bytes });
    };
    for (kernel, descriptor) in object.note().kernels.iter().zip(object.descriptors()).take(2) {
        for (field, byte, flip) in [
            ("LDS", 0, 4),
            ("scratch", 4, 4),
            ("entry", 16, 4),
            ("fetching ahead and barriers", 45, 0x40),
            ("vector registers", 48, 2),
            ("rounding", 49, 0x40),
            ("user registers", 52, 2),
            ("a kernel's properties", 56, 1),
        ] {
            push("descriptor field changed", format!("{} {field}", kernel.name), descriptor.range.start + byte, flip);
        }
    }
    let image = ObjectImage::parse(made).unwrap();
    for table in image.symbol_tables().unwrap() {
        let rows = table.rows.iter().enumerate().filter(|(_, row)| row.kind == 2).take(2);
        for (number, row) in rows {
            push("symbol moved", row.name.to_owned(), table.at + number * 24 + 8, 4);
            push("symbol of another size", row.name.to_owned(), table.at + number * 24 + 16, 8);
        }
    }
    for relocations in image.relocations().unwrap() {
        let part = &image.sections[relocations.section];
        if part.bytes.len() >= 24 && !image.sections[relocations.target].name.starts_with(".debug") {
            push("relocation moved", part.name.to_owned(), part.offset as usize, 4);
            push("relocation of another addend", part.name.to_owned(), part.offset as usize + 16, 4);
        }
    }
    let note = certificate_note(made).unwrap();
    let start = note.as_ptr() as usize - made.as_ptr() as usize;
    // Names of families and assumptions, in its middle, are for readers only.
    for at in [0, note.len() - 2, note.len() - 1] {
        push("certificate changed", format!("byte {at}"), start + at, 1);
    }
    mutants
}

/// A limited number of them, spread over all.
fn chosen(mut all: Vec<Mutant>, most: usize) -> Vec<Mutant> {
    let step = all.len().div_ceil(most).max(1);
    let mut number = 0;
    all.retain(|_| {
        number += 1;
        (number - 1) % step == 0
    });
    all
}

/// Findings of a file as texts; a file that cannot be read is a finding.
fn findings(bytes: &[u8]) -> BTreeSet<String> {
    match lint_object(bytes) {
        Ok(findings) => findings.iter().map(|finding| finding.to_diagnostic().to_string()).collect(),
        Err(error) => BTreeSet::from([error.to_string()]),
    }
}

/// Which of the two detects a mutant.
enum Judge {
    Lint,
    Against,
}

/// A judged mutant.
struct Judged {
    kind: &'static str,
    name: String,
    by: Option<Judge>,
}

/// Runs both judges on the mutants of an object; `--against` gets those that lint does not detect.
fn judged(object: &Rewritten) -> Vec<Judged> {
    let proof = compare_with_original(&object.original, &object.made).unwrap();
    assert!(proof.findings.is_empty(), "{}: {:?}", object.name, proof.findings);
    let before = findings(&object.made);
    let code = code(&object.made);
    let mut mutants = chosen(of_code(&code, &object.made), MOST);
    mutants.extend(chosen(of_file(&object.made), MOST / 2));
    let judge = |mutant: Mutant| {
        let Mutant { kind, place, bytes } = mutant;
        let by = if findings(&bytes).difference(&before).next().is_some() {
            Some(Judge::Lint)
        } else {
            let proven = compare_with_original(&object.original, &bytes).is_ok_and(|proof| proof.findings.is_empty());
            (!proven).then_some(Judge::Against)
        };
        Judged { kind, name: format!("{}: {kind}: {place}", object.name), by }
    };
    mutants.into_iter().map(judge).collect()
}

#[test]
fn every_mutant_is_noticed() {
    let Some(bench) = Workbench::with_llvm(24, "mutants of rewritten code") else { return };
    let table = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mutants.equal")).unwrap();
    let mut equal: BTreeMap<&str, &str> =
        table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" | ")).collect();
    let (mut total, mut by_lint, mut by_against, mut same) = (0, 0, 0, 0);
    let (mut unnoticed, mut kinds) = (Vec::new(), BTreeMap::<&str, usize>::new());
    let objects = rewritten(&bench);
    // Two halves at once; the order of the outcomes is that of the objects.
    let (first, second) = objects.split_at(objects.len() / 2);
    let outcomes = std::thread::scope(|scope| {
        let other = scope.spawn(|| second.iter().flat_map(judged).collect::<Vec<Judged>>());
        let mut all: Vec<Judged> = first.iter().flat_map(judged).collect();
        all.extend(other.join().unwrap());
        all
    });
    for Judged { kind, name, by } in outcomes {
        total += 1;
        *kinds.entry(kind).or_default() += 1;
        match by {
            Some(Judge::Lint) => by_lint += 1,
            Some(Judge::Against) => by_against += 1,
            None if equal.remove(&*name).is_some() => same += 1,
            None => unnoticed.push(name),
        }
    }
    let kinds: Vec<String> = kinds.into_iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    say(&format!(
        "mutants of rewritten code: {total} mutants, {by_lint} noticed by lint, {by_against} by against, {} unnoticed; \
         {same} do the same; {}",
        unnoticed.len(),
        kinds.join(", ")
    ));
    assert!(total >= 500 && unnoticed.is_empty(), "{}", unnoticed.join("\n"));
    assert!(equal.is_empty(), "noticed, or not made any more: {equal:?}");
}
