//! Compares blocks, edges and live registers with those that LLVM prints of the same code.
//!
//! Kernels are compiled with LLVM's machine code printed after its last pass that moves blocks; labels are put into the
//! assembly at the starts of its blocks, so that the object has their offsets. Every edge of LLVM must be ours and vice
//! versa. A register that LLVM calls live must be live for us, except for the reasons that [`excused`] names.

mod common;

use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_program::{BankMap, CallDestination, CodeSource, Liveness, Program, Summaries};
use hotswap_userland::{Workbench, everything, say, slice};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

/// Processors, and whether code without optimisation is compared as well.
const TARGETS: [(&str, bool); 6] = [
    ("gfx906", false),
    ("gfx90a", true),
    ("gfx1030", false),
    ("gfx1100", false),
    ("gfx1201", false),
    ("gfx1250", true),
];
const LABEL: &str = "__block__";

/// A block as LLVM prints it.
#[derive(Debug, Default, Clone)]
struct Theirs {
    successors: Vec<u32>,
    live: Vec<Reg>,
    /// It has an `s_trap 2`, which no wave passes; LLVM keeps an edge from a divergent trap. Where a wave may pass it, LLVM
    /// emits a message to the host after it.
    halts: bool,
}

/// By function and number.
type Blocks = BTreeMap<(String, u32), Theirs>;

fn parse(dump: &str) -> Blocks {
    let (mut blocks, mut function, mut number) = (Blocks::new(), String::new(), 0);
    for line in dump.lines() {
        if let Some(rest) = line.strip_prefix("# Machine code for function ") {
            function = rest.split(':').next().unwrap_or_default().to_owned();
        } else if let Some(rest) = line.strip_prefix("bb.") {
            number = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().parse().unwrap();
            blocks.insert((function.clone(), number), Theirs::default());
        } else if let Some(rest) = line.trim_start().strip_prefix("successors: ") {
            let block = blocks.get_mut(&(function.clone(), number)).unwrap();
            let numbers = rest.split(';').next().unwrap_or_default().split(", ");
            let one = |text: &str| text.trim().strip_prefix("%bb.")?.split('(').next()?.parse::<u32>().ok();
            block.successors.extend(numbers.filter_map(one));
        } else if let Some(rest) = line.trim_start().strip_prefix("liveins: ") {
            let block = blocks.get_mut(&(function.clone(), number)).unwrap();
            block.live.extend(rest.split(", ").flat_map(|name| registers(name.trim())));
        } else if let Some(block) = blocks.get_mut(&(function.clone(), number)) {
            let inst = line.trim();
            block.halts = inst.starts_with("S_TRAP 2") || block.halts && !inst.contains("S_SENDMSG_RTN");
        }
    }
    blocks
}

/// The registers that a name of LLVM denotes, `$sgpr4_sgpr5`, or some of them: a mask has two bits for each.
fn registers(name: &str) -> Vec<Reg> {
    let (name, mask) = name.trim_start_matches('$').split_once(":0x").unwrap_or((name.trim_start_matches('$'), ""));
    let mask = u64::from_str_radix(mask, 16).unwrap_or(u64::MAX);
    let special = |special, count| vec![Reg::special(special, count)];
    match name {
        "vcc" => return special(Special::VccLo, 2),
        "vcc_lo" => return special(Special::VccLo, 1),
        "vcc_hi" => return special(Special::VccHi, 1),
        "exec" => return special(Special::ExecLo, 2),
        "exec_lo" => return special(Special::ExecLo, 1),
        "scc" => return special(Special::Scc, 1),
        "m0" => return special(Special::M0, 1),
        "mode" => return special(Special::Mode, 1),
        "flat_scr" => return special(Special::FlatScratchLo, 2),
        _ => {}
    }
    let one = |part: &str| {
        let part = part.trim_end_matches("_lo16").trim_end_matches("_hi16");
        let files = [("vgpr", RegFile::Vgpr), ("agpr", RegFile::Agpr), ("sgpr", RegFile::Sgpr)];
        files.iter().find_map(|(text, file)| Some(Reg::new(*file, part.strip_prefix(text)?.parse().ok()?, 1)))
    };
    let name = name.replace("_lo16", "").replace("_hi16", "");
    let parts = name.split('_').enumerate().filter(|(at, _)| *at > 31 || mask >> (2 * at) & 3 != 0);
    parts.filter_map(|(_, part)| one(part)).collect()
}

/// The assembly with a label at the start of each block.
fn labelled(assembly: &str) -> String {
    let (mut out, mut function) = (String::new(), String::new());
    for line in assembly.lines() {
        if let Some((_, name)) = line.split_once("; -- Begin function ") {
            function = name.trim().to_owned();
        }
        out.push_str(line);
        out.push('\n');
        let number = match (line.strip_prefix("; %bb."), line.strip_prefix(".LBB")) {
            (Some(rest), _) => rest.split(':').next(),
            (_, Some(rest)) => rest.split(':').next().and_then(|rest| rest.split_once('_')).map(|rest| rest.1),
            _ => None,
        };
        if let Some(number) = number {
            out.push_str(&format!("{LABEL}{number}{LABEL}{function}:\n"));
        }
    }
    out
}

#[derive(Debug, Default)]
struct Sums {
    objects: usize,
    functions: usize,
    blocks: usize,
    edges: usize,
    live: usize,
    excused: usize,
    /// Registers live for us and not for LLVM, and all that are live for LLVM, in kernels.
    extra: usize,
    of: usize,
    vectors_extra: usize,
    active_extra: usize,
    vectors_of: usize,
}

/// Registers in LLVM's lists that are never read: registers that a kernel reserves for its stack, unused arguments, and
/// lists that later passes did not shorten. Along no path, calls included, an instruction may read it before it is
/// overwritten, which is checked independently of liveness.
fn excused(program: &Program<'_>, offset: u32, reg: Reg, entered: &mut BTreeSet<u32>) -> bool {
    let Some((_, function)) = program.function_at(offset) else { return false };
    let Some(start) = function.block_at(offset) else { return false };
    let mut seen = BTreeSet::new();
    let mut work = vec![(start, offset)];
    let (isa, banks) = (program.source.isa, hotswap_isa::bank::VgprBanks::ENTRY);
    while let Some((block, from)) = work.pop() {
        let line = function.block(block);
        let mut at = from.max(line.start);
        let mut ends = false;
        while at < line.end && !ends {
            let inst = program.decode(at).unwrap();
            let called = match function.call_at(at).map(|call| call.callee) {
                None => true,
                // A function that is being checked need not be checked again: recursion reads nothing first.
                Some(CallDestination::Function { entry, .. }) => {
                    !entered.insert(entry) || excused(program, entry, reg, entered)
                }
                Some(_) => false,
            };
            if !called || inst.read_set(isa, banks).touches(reg) {
                return false;
            }
            // In the lanes that count for LLVM, which are those of EXEC.
            ends = inst.overwritten_in_active_lanes(isa, banks).contains(reg);
            at += u32::from(inst.len());
        }
        if !ends {
            let more = function.successors(block).into_iter().map(|to| to as usize);
            work.extend(more.filter(|to| seen.insert(*to)).map(|to| (to, 0)));
        }
    }
    true
}

struct Exam<'p, 'a> {
    program: &'p Program<'a>,
    summaries: Summaries,
    banks: BankMap,
    /// Offsets of LLVM's blocks.
    places: HashMap<(String, u32), u32>,
    wrong: Vec<String>,
}

impl Exam<'_, '_> {
    fn edges(&mut self, blocks: &Blocks, sums: &mut Sums) {
        let all: BTreeSet<u32> = self.places.values().copied().collect();
        for ((name, number), theirs) in blocks {
            let Some(start) = self.places.get(&(name.clone(), *number)).copied() else { continue };
            let Some((_, function)) = self.program.function_at(start) else { continue };
            let end = all.range(start + 1..).next().copied().unwrap_or(u32::MAX).min(function.end);
            let same = self.places.iter().filter(|((other, _), place)| other == name && **place == start);
            // Of several labels at one offset all but the last are empty blocks.
            if same.map(|((_, number), _)| *number).max() != Some(*number) {
                continue;
            }
            let place = |to: &u32| self.places.get(&(name.clone(), *to)).copied();
            let successors = theirs.successors.iter().filter(|_| !theirs.halts);
            let expected: BTreeSet<u32> = successors.filter_map(place).collect();
            // A block of LLVM may end with two branches, and where it has no other predecessor, ours continues.
            let inside = |offset: u32| (start..end).contains(&offset);
            let first = function.blocks().take_while(|block| block.end <= start).count();
            let count = function.blocks().skip(first).take_while(|block| block.start < end).count();
            if count == 0 || !function.is_instruction(start) {
                // Unreached code, for LLVM neither.
                continue;
            }
            let mut ours = BTreeSet::new();
            for number in first..first + count {
                let to = function.successors(number).into_iter().map(|to| function.block(to as usize).start);
                match function.block(number).last < end {
                    true => ours.extend(to.filter(|to| !inside(*to) || *to == start)),
                    false => drop(ours.insert(end)),
                }
            }
            sums.blocks += 1;
            sums.edges += expected.len();
            if ours != expected {
                self.wrong.push(format!("{name} bb.{number} at {start:#x}: edges {ours:x?}, LLVM {expected:x?}"));
            }
        }
    }

    fn live(&mut self, blocks: &Blocks, sums: &mut Sums) {
        let mut known: HashMap<usize, Liveness> = HashMap::new();
        for ((name, number), theirs) in blocks {
            let Some(start) = self.places.get(&(name.clone(), *number)).copied() else { continue };
            let Some((at, function)) = self.program.function_at(start) else { continue };
            let liveness =
                known.entry(at).or_insert_with(|| Liveness::of(self.program, at, &self.summaries, &self.banks));
            let Some((before, _)) = liveness.live_around(self.program, &self.summaries, &self.banks, start) else {
                continue;
            };
            let ours = before.live_in_any_lane();
            for reg in &theirs.live {
                sums.live += 1;
                if !ours.contains(*reg) {
                    match excused(self.program, start, *reg, &mut BTreeSet::new()) {
                        true => sums.excused += 1,
                        false => self.wrong.push(format!("{name} bb.{number} at {start:#x}: {reg} is not live")),
                    }
                }
            }
            let theirs: RegSet = theirs.live.iter().copied().collect();
            // The needs of an unknown callee are unknown.
            let known = function.calls.iter().all(|call| matches!(call.callee, CallDestination::Function { .. }));
            if function.is_kernel() && function.is_closed() && known {
                let mut extra = ours;
                extra.subtract(&theirs);
                let count = |set: &RegSet, vectors: bool| {
                    let file = |reg: &Reg| match vectors {
                        true => matches!(reg.file, RegFile::Vgpr | RegFile::Agpr),
                        false => reg.file == RegFile::Sgpr,
                    };
                    set.iter().filter(file).count()
                };
                sums.extra += count(&extra, false);
                sums.of += count(&theirs, false);
                sums.vectors_extra += count(&extra, true);
                let mut active = before.live_in_active_lanes();
                active.subtract(&theirs);
                sums.active_extra += count(&active, true);
                sums.vectors_of += count(&theirs, true);
            }
        }
    }
}

fn examine(object: &[u8], dump: &str, what: &str, sums: &mut Sums) -> Vec<String> {
    let blocks = parse(dump);
    let mut wrong = Vec::new();
    for source in CodeSource::read(object).expect("the assembler makes ELF files") {
        let place = |mark: &hotswap_program::SectionSymbol<'_>| {
            let (number, function) = mark.name.strip_prefix(LABEL)?.split_once(LABEL)?;
            Some(((function.to_owned(), number.parse().ok()?), mark.offset))
        };
        let places = source.marks.iter().filter_map(place).collect();
        common::around_agrees(&source, 2);
        let program = Program::build(source);
        let banks = BankMap::by_convention(&program);
        let summaries = Summaries::of(&program, &banks);
        sums.functions += program.functions.len();
        let mut exam = Exam { program: &program, summaries, banks, places, wrong: Vec::new() };
        exam.edges(&blocks, sums);
        exam.live(&blocks, sums);
        wrong.extend(exam.wrong.iter().map(|line| format!("{what}: {line}")));
    }
    sums.objects += 1;
    wrong
}

fn kernels() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/isa-exam/kernels");
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn blocks_edges_and_live_registers_are_those_of_llvm() {
    let Some(bench) = Workbench::new("blocks_edges_and_live_registers_are_those_of_llvm") else { return };
    let (mut total, mut wrong) = ([Sums::default(), Sums::default()], Vec::new());
    let files = kernels();
    for path in &files {
        bench.write(path.file_name().unwrap().to_str().unwrap(), &fs::read(path).unwrap());
    }
    let files: Vec<_> =
        files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "c")).collect();
    let all = TARGETS.iter().flat_map(|target| files.iter().map(move |path| (target, path))).collect();
    let turn = |number: usize| (number / files.len() + number % files.len()).is_multiple_of(2);
    for (&(target, plain), path) in slice("program beside LLVM", all, |number, _| turn(number)) {
        let name = path.file_name().unwrap().to_str().unwrap();
        for (level, sums) in ["-O0", "-O2"].into_iter().zip(&mut total).filter(|(level, _)| plain || *level == "-O2") {
            let script = format!(
                "set -e; clang-23 --target=amdgcn-amd-amdhsa -mcpu={target} {level} -nogpulib -ffreestanding -w -S \
                     -emit-llvm {name} -o module.ll; llc-23 -mcpu={target} {level} -print-after=branch-relaxation module.ll \
                     -o module.s 2> module.dump"
            );
            bench.run(&script);
            let read = |name: &str| String::from_utf8_lossy(&bench.read(name)).into_owned();
            bench.write("labelled.s", labelled(&read("module.s")).as_bytes());
            bench.run(&format!(
                "llvm-mc-23 -triple=amdgcn-amd-amdhsa -mcpu={target} -filetype=obj labelled.s -o object"
            ));
            let what = format!("{target} {level} {name}");
            wrong.extend(examine(&bench.read("object"), &read("module.dump"), &what, sums));
        }
    }
    for (level, sums) in ["-O0", "-O2"].into_iter().zip(&total) {
        say(&format!("program beside LLVM, {level}: {sums:?}"));
        let (blocks, live) = if everything() { (500, 3_000) } else { (300, 1_500) };
        assert!(sums.blocks > blocks && sums.live > live, "{sums:?}");
    }
    // Registers that are live only for us cost registers; optimised code shows how many.
    let [_, best] = &total;
    assert!(best.extra * 20 < best.of && best.active_extra * 5 < best.vectors_of, "{best:?}");
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
}
