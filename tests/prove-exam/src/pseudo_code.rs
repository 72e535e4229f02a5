//! The emulator's judge: AMD's pseudo-code of single instructions, as the package tinygrad carries it, evaluated by a program in
//! Python (`pseudo-code/pseudo_code.py`) that knows nothing of the emulator.
//!
//! Invariants: where the two disagree, `pseudo-code/disagreements` has a line with the reason, or the line of the table fails; a line
//! about an instruction on which they agree is a failure, too. The package is downloaded, and nothing of it is kept here.

use crate::evidence::EvidenceRow;
use hotswap_emulator::{EmulatedDevice, SnippetMachine, SnippetShape, SparseMemory};
use hotswap_emulator_exam::random_words;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_userland::{Workbench, skip};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The release whose text is read.
const PACKAGE: &str = "tinygrad==0.14.0";
/// The package's names of architectures, a GPU of each, and the lanes of its waves.
const ARCHITECTURES: [(&str, &str, usize); 3] =
    [("rdna3", "gfx1100", 32), ("rdna4", "gfx1201", 32), ("cdna", "gfx950", 64)];
/// States of an instruction, each with 32 lanes.
const ROUNDS: u64 = 4;
/// The lane whose bit the evaluator sets in a mask.
const LANE: usize = 5;
/// First registers of the target and of the sources.
const TARGET: u16 = 4;
const SOURCES: [u16; 3] = [8, 10, 12];

/// An instruction as the evaluator describes it.
#[derive(Debug, Clone)]
struct JudgedInstruction {
    form: String,
    name: String,
    /// Bits of the target's registers, and of the sources'.
    target: u32,
    sources: [u32; 3],
    /// Bits that are compared.
    compared: u32,
    is_mask: bool,
}

/// The result for one architecture.
#[derive(Debug, Default)]
struct JudgeTally {
    instructions: usize,
    states: u64,
    disagree: BTreeMap<String, String>,
    refused: usize,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pseudo-code")
}

/// The package, unpacked; `None` where it cannot be had.
fn package(bench: &Workbench) -> Option<PathBuf> {
    let to = bench.path("tinygrad");
    let mut download = Command::new("python3");
    download.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
    ]);
    let is_there =
        download.arg(&to).arg(PACKAGE).stdin(Stdio::null()).output().is_ok_and(|output| output.status.success());
    let wheel = std::fs::read_dir(&to).ok()?.flatten().map(|entry| entry.path()).next().filter(|_| is_there)?;
    let unpacked = Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&to).status();
    unpacked.is_ok_and(|status| status.success()).then_some(to)
}

fn evaluator(mode: &str, package: &Path, architecture: &str, input: &str) -> Result<String, String> {
    let mut command = Command::new("python3");
    command.arg(directory().join("pseudo_code.py")).args([mode]).arg(package).arg(architecture);
    let file = package.join("cases");
    std::fs::write(&file, input).map_err(|error| error.to_string())?;
    let input = std::fs::File::open(&file).map_err(|error| error.to_string())?;
    let Output { status, stdout, stderr } = command.stdin(input).output().map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&stderr).into_owned())
}

impl JudgedInstruction {
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [form, name, first, second, third, target, compared, kind] = words.as_slice() else { return None };
        let number = |word: &&str| word.parse().ok();
        Some(Self {
            form: (*form).to_owned(),
            name: (*name).to_owned(),
            target: number(target)?,
            sources: [number(first)?, number(second)?, number(third)?],
            compared: number(compared)?,
            is_mask: *kind == "mask",
        })
    }

    fn is_scalar(&self) -> bool {
        self.form.starts_with("SOP")
    }

    /// A line of assembly.
    fn text(&self, lanes: usize) -> String {
        let register = |file: &str, first: u16, bits: u32| match bits {
            64 => format!("{file}[{first}:{}]", first + 1),
            _ => format!("{file}{first}"),
        };
        let file = if self.is_scalar() { "s" } else { "v" };
        let target = match self.is_mask {
            true => register("s", TARGET, lanes as u32),
            false => register(file, TARGET, self.target),
        };
        let sources = self.sources.iter().zip(SOURCES).filter(|(bits, _)| **bits > 0);
        let sources: String = sources.map(|(bits, first)| format!(", {}", register(file, first, *bits))).collect();
        let suffix = if self.form == "VOP3" { "_e64" } else { "" };
        format!("{}{suffix} {target}{sources}", self.name)
    }
}

/// The code of each line, where LLVM knows it.
fn assembled(bench: &Workbench, gpu: &str, lines: &[String]) -> BTreeMap<usize, Vec<u8>> {
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "L{number}:\n{line}");
    }
    bench.write("judged.s", text.as_bytes());
    let mode = if gpu.starts_with("gfx9") { "" } else { "-mattr=+wavefrontsize32" };
    let version = bench.versions[0];
    let words = format!("-triple=amdgcn-amd-amdhsa -mcpu={gpu} {mode} -show-encoding");
    let output = bench.shell(&format!("llvm-mc-{version} {words} judged.s 2>/dev/null"));
    let (mut found, mut number) = (BTreeMap::new(), 0);
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some(label) = line.strip_prefix('L').and_then(|rest| rest.strip_suffix(':')) {
            number = label.parse().unwrap_or(usize::MAX);
        } else if let Some((_, bytes)) = line.split_once("encoding: [") {
            let byte = |word: &str| u8::from_str_radix(word.trim_start_matches("0x"), 16).ok();
            let bytes: Option<Vec<u8>> = bytes.trim_end_matches(']').split(',').map(byte).collect();
            found.extend(bytes.map(|bytes| (number, bytes)));
        }
    }
    found
}

/// Executes an instruction on random states; a line for each lane.
fn cases(instruction: &JudgedInstruction, code: &[u8], device: &EmulatedDevice, lanes: usize) -> Option<String> {
    let mut memory = SparseMemory::new();
    let start = memory.allocate_copy(&[code, &[0; 64]].concat());
    let shape = SnippetShape { lanes, vectors: 64, lds: 64, scratch: 16 };
    let mut machine = SnippetMachine::new(device, &memory, &shape);
    let mut text = String::new();
    for round in 0..ROUNDS {
        let words = random_words(round * 1000 + code.iter().map(|byte| u64::from(*byte)).sum::<u64>(), 32 * 8);
        let word = |register: usize, lane: usize| words[32 * register + if instruction.is_scalar() { 0 } else { lane }];
        for register in 0..8_u16 {
            let at = [TARGET, SOURCES[0], SOURCES[1], SOURCES[2]][usize::from(register / 2)] + register % 2;
            *machine.vector_mut(at, 0) = std::array::from_fn(|lane| word(register.into(), lane));
            machine.set_scalar(Reg::new(RegFile::Sgpr, at, 1), words[32 * usize::from(register)]);
        }
        machine.set_mode(0x3f0, 0);
        machine.set_scalar(Reg::special(Special::ExecLo, 1), u32::MAX);
        machine.set_scalar(Reg::special(Special::ExecHi, 1), u32::MAX);
        machine.set_scalar(Reg::special(Special::Scc, 1), 0);
        let end = start + code.len() as u64;
        machine.run_until(start, 4, &|pc| pc == end).ok()?;
        for lane in 0..if instruction.is_scalar() { 1 } else { 32 } {
            let pair = |first: usize, bits: u32| match bits {
                64 => u64::from(word(first, lane)) | u64::from(word(first + 1, lane)) << 32,
                _ => word(first, lane).into(),
            };
            let scalar = |at: u16| u64::from(machine.scalar(Reg::new(RegFile::Sgpr, at, 1)).unwrap_or_default());
            let vector = |at: u16| u64::from(machine.vector(at, 0)[lane]);
            let of = |read: &dyn Fn(u16) -> u64| read(TARGET) | read(TARGET + 1) << 32;
            let (old, result) = match (instruction.is_mask, instruction.is_scalar()) {
                (true, _) => (0, (scalar(TARGET) >> lane & 1) << LANE),
                (false, true) => (pair(0, 64), of(&scalar)),
                (false, false) => (pair(0, 64), of(&vector)),
            };
            let result = result & u64::MAX >> (64 - instruction.compared);
            let [a, b, c] = [0, 1, 2].map(|number| pair(2 + 2 * number, instruction.sources[number]));
            let _ =
                writeln!(text, "{} {a:x} {b:x} {c:x} {old:x} {result:x} {:x}", instruction.name, instruction.compared);
        }
    }
    Some(text)
}

fn judge(
    bench: &Workbench,
    package: &Path,
    (architecture, gpu, lanes): (&str, &str, usize),
) -> Result<JudgeTally, String> {
    let listing = evaluator("list", package, architecture, "")?;
    let mut all: Vec<JudgedInstruction> = listing.lines().filter_map(JudgedInstruction::read).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all.dedup_by(|one, other| one.name == other.name);
    let lines: Vec<String> = all.iter().map(|one| one.text(lanes)).collect();
    let code = assembled(bench, gpu, &lines);
    let device = EmulatedDevice::new(gpu).map_err(|error| error.to_string())?;
    let (mut tally, mut input) = (JudgeTally::default(), String::new());
    for (number, code) in &code {
        match all.get(*number).and_then(|one| cases(one, code, &device, lanes)) {
            Some(text) => input += &text,
            None => tally.refused += 1,
        }
    }
    for line in evaluator("judge", package, architecture, &input)?.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let [name, agreed, wrong, example] = words.as_slice() else { return Err(format!("not understood: {line}")) };
        let count = |word: &str| word.parse::<u64>().map_err(|error| error.to_string());
        tally.instructions += 1;
        tally.states += count(agreed)? + count(wrong)?;
        if count(wrong)? > 0 {
            let text = format!("{wrong} of {} states: {example}", count(agreed)? + count(wrong)?);
            tally.disagree.insert((*name).to_owned(), text);
        }
    }
    Ok(tally)
}

/// The committed disagreements: architecture and instruction.
fn known() -> BTreeMap<(String, String), String> {
    let text = std::fs::read_to_string(directory().join("disagreements")).unwrap_or_default();
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ');
        Some(((words.next()?.to_owned(), words.next()?.to_owned()), words.next()?.to_owned()))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

/// The line of the table; `None` where the package cannot be had, after printing that.
pub fn row(bench: &Workbench) -> Option<EvidenceRow> {
    let Some(package) = package(bench) else {
        skip("prove pseudo-code", &format!("python3 and pip give no {PACKAGE}"));
        return None;
    };
    let known = known();
    let (mut wrong, mut instructions, mut states, mut explained) = (Vec::new(), 0, 0, 0);
    for architecture in ARCHITECTURES {
        let name = architecture.0;
        match judge(bench, &package, architecture) {
            Err(error) => wrong.push(format!("{name}: {error}")),
            Ok(tally) => {
                println!(
                    "pseudo-code: {name}: {} instructions, {} refused by the emulator",
                    tally.instructions, tally.refused
                );
                (instructions, states) = (instructions + tally.instructions, states + tally.states);
                let is_known = |one: &String| known.contains_key(&(name.to_owned(), one.clone()));
                explained += tally.disagree.keys().filter(|one| is_known(one)).count();
                let new = tally.disagree.iter().filter(|(one, _)| !is_known(one));
                wrong.extend(new.map(|(one, text)| format!("{name} {one}: {text}")));
                let stale = known.keys().filter(|(own, one)| own == name && !tally.disagree.contains_key(one));
                wrong.extend(
                    stale.map(|(_, one)| format!("{name} {one}: the judges agree, and a disagreement is listed")),
                );
            }
        }
    }
    wrong.iter().for_each(|what| println!("{what}"));
    Some(EvidenceRow {
        claim: "Single instructions do what AMD's pseudo-code says".to_owned(),
        method: "the emulator against an evaluator of the text that tinygrad's package carries".to_owned(),
        cases: format!("{instructions} instructions of gfx1100, gfx1201 and gfx950, {states} states"),
        result: match wrong.len() {
            0 => format!("the same; {explained} disagree for a listed reason"),
            count => format!("{count} disagree"),
        },
        open: "instructions whose text needs more than registers; NaNs are one".to_owned(),
        holds: wrong.is_empty() && instructions > 0,
    })
}
