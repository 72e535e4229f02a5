//! Machine code as MIR, for LLVM's hazard recognizer: the instructions that it inserts are missing in the code.
//!
//! Assembly cannot be passed to the recognizer: the assembler inserts nothing, and inline assembly is opaque to it. So
//! LLVM's disassembler identifies the instruction (`llvm-mc -disassemble -show-inst`), its name and operands become
//! MIR, and `llc -run-pass=post-RA-hazard-rec` processes that. Names of real encodings are those of pseudo instructions
//! with a suffix. The recognizer knows some of its cases by pseudo instructions only, so these are tried first.
//! Implicit registers of an instruction are also found with `llc`, which rejects instructions that lack one.
//!
//! Absent on purpose: our decoder and our tables; branches, and registers beyond the first bank.

use crate::listing::Listing;
use hotswap_userland::Workbench;
use std::collections::BTreeMap;
use std::fmt::Write;

/// An instruction as LLVM's disassembler shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct McInst {
    opcode: String,
    operands: Vec<String>,
    text: String,
}

/// How an opcode is written in MIR.
#[derive(Debug, Clone)]
struct Spelling {
    names: Vec<String>,
    /// Operands of modifiers that the disassembler leaves out at the end, and those that it adds.
    missing: usize,
    extra: usize,
    implicit: Vec<String>,
}

/// The instructions that the recognizer inserted into one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inserted {
    /// Symbol of the function.
    pub function: String,
    /// Its instructions in the output.
    pub lines: Vec<String>,
}

/// The spellings of opcodes in MIR that were found so far.
#[derive(Debug, Default)]
pub struct Spellings(BTreeMap<String, Spelling>);

/// The functions of a listing into which the recognizer for `processor` inserts something, and their number.
///
/// # Panics
/// If the userland lacks LLVM 24, or an instruction cannot be written as MIR.
pub fn inserted(
    bench: &Workbench,
    spellings: &mut Spellings,
    listing: &Listing,
    processor: &str,
) -> (Vec<Inserted>, usize) {
    let functions = functions(bench, listing, processor);
    spellings.add(bench, functions.iter().flat_map(|(_, code)| code), processor);
    let mut text = String::new();
    for (name, code) in &functions {
        let _ = writeln!(text, "---\nname: {name}\nbody: |\n  bb.0:");
        code.iter().for_each(|inst| text += &format!("    {}\n", inst.mir(&spellings.0[&inst.opcode])));
        text += "...\n";
    }
    bench.write("hazards.mir", text.as_bytes());
    let out = bench.run(&format!("{} -o - hazards.mir", llc(processor)));
    let after = bodies(&out);
    assert_eq!(after.len(), functions.len(), "llc gives other functions");
    let grown = functions.iter().zip(after).filter(|((_, code), (_, lines))| code.len() != lines.len());
    let all = grown.map(|((name, _), (_, lines))| Inserted { function: name.clone(), lines }).collect();
    (all, functions.len())
}

fn llc(processor: &str) -> String {
    format!("llc-24 -mtriple=amdgcn-amd-amdhsa -mcpu={processor} -run-pass=post-RA-hazard-rec")
}

/// The instructions of each function up to the end of its wave.
fn functions(bench: &Workbench, listing: &Listing, processor: &str) -> Vec<(String, Vec<McInst>)> {
    let mut parts: Vec<(String, usize)> = Vec::new();
    let mut hex = String::new();
    let mut open = false;
    for (number, line) in listing.lines.iter().enumerate() {
        if let Some(name) = listing.functions.get(&number) {
            parts.push((name.clone(), 0));
            open = true;
        }
        let Some((_, count)) = parts.last_mut().filter(|_| open) else { continue };
        *count += 1;
        line.words.iter().flat_map(|word| word.to_le_bytes()).for_each(|byte| hex += &format!("{byte:#04x} "));
        hex.push('\n');
        open = line.mnemonic() != "s_endpgm";
    }
    bench.write("hazards.hex", hex.as_bytes());
    let shown = bench
        .run(&format!("llvm-mc-24 -triple=amdgcn-amd-amdhsa -mcpu={processor} -disassemble -show-inst hazards.hex"));
    let mut all = read(&shown).into_iter();
    let functions = parts.into_iter().map(|(name, count)| (name, all.by_ref().take(count).collect())).collect();
    assert_eq!(all.next(), None, "the disassembler shows more instructions than there are");
    functions
}

/// The instructions that `-show-inst` shows.
fn read(shown: &str) -> Vec<McInst> {
    let mut all: Vec<McInst> = Vec::new();
    for line in shown.lines() {
        let Some((text, comment)) = line.split_once(';').or_else(|| line.split_once("//")) else { continue };
        if let Some((_, rest)) = comment.split_once("<MCInst #") {
            let opcode = rest.split_whitespace().nth(1).unwrap_or_default().trim_end_matches('>');
            all.push(McInst { opcode: opcode.to_owned(), operands: Vec::new(), text: text.trim().to_owned() });
        } else if let (Some((_, rest)), Some(inst)) = (comment.split_once("<MCOperand "), all.last_mut()) {
            let wide = inst.text.split(' ').next().is_some_and(|mnemonic| mnemonic.contains("64"));
            inst.operands.push(operand(rest.trim_end_matches('>'), wide));
        }
    }
    all
}

/// `Reg:VGPR2_VGPR3` and `Imm:5` in MIR syntax. The scratch base has the name of its low half in the encoding.
fn operand(text: &str, wide: bool) -> String {
    match text.split_once(':') {
        Some(("Reg", "SRC_FLAT_SCRATCH_BASE_LO")) if wide => "$src_flat_scratch_base".to_owned(),
        Some(("Reg", "0" | "")) => "$noreg".to_owned(),
        Some(("Reg", name)) => format!("${}", name.trim_end_matches("_gfx11plus").to_lowercase()),
        Some((_, value)) => value.to_owned(),
        None => text.to_owned(),
    }
}

impl McInst {
    fn mir(&self, spelling: &Spelling) -> String {
        let results = results(&self.text).min(self.operands.len());
        let (defined, used) = self.operands.split_at(results);
        let mut text = if results > 0 { format!("{} = ", defined.join(", ")) } else { String::new() };
        text += &spelling.names[0];
        let used = &used[..used.len().saturating_sub(spelling.extra)];
        let used = used.iter().map(String::as_str).chain(std::iter::repeat_n("0", spelling.missing));
        let used: Vec<&str> = used.chain(spelling.implicit.iter().map(String::as_str)).collect();
        if used.is_empty() { text } else { format!("{text} {}", used.join(", ")) }
    }
}

/// The number of leading operands that are results, by the text.
fn results(text: &str) -> usize {
    const NONE: [&str; 15] = [
        "ds_store_",
        "global_store_",
        "scratch_store_",
        "tensor_",
        "s_wait",
        "s_nop",
        "s_endpgm",
        "s_set",
        "s_clause",
        "s_delay_alu",
        "s_barrier",
        "s_cmp",
        "v_cmpx",
        "v_nop",
        "s_code_end",
    ];
    // Short compares write VCC without naming it in their encoding.
    let implied = text.starts_with("v_cmp_") && text.contains("_e32 ");
    usize::from(!implied && !NONE.iter().any(|start| text.starts_with(start)))
}

/// The possible names of an opcode in MIR, the likeliest first.
fn names(opcode: &str) -> Vec<String> {
    let plain = ["_gfx1250", "_gfx12", "_gfx11plus", "_vi"].iter().find_map(|suffix| opcode.strip_suffix(suffix));
    let mut names = Vec::new();
    if let Some(plain) = plain {
        // Forms with 16-bit registers have the name of the pseudo instruction twice.
        let doubled = (1..plain.len()).rev().find(|half| plain[*half..].starts_with(&plain[..*half]));
        names.extend(doubled.map(|half| plain[half..].to_owned()));
        names.extend(["", "_twoaddr", "_threeaddr"].map(|end| format!("{plain}{end}")));
    }
    names.push(opcode.to_owned());
    names
}

impl Spellings {
    /// Finds a spelling that `llc` accepts for each opcode that lacks one so far.
    fn add<'m>(&mut self, bench: &Workbench, code: impl Iterator<Item = &'m McInst>, processor: &str) {
        let known = |inst: &&McInst| !self.0.contains_key(&inst.opcode);
        let samples: BTreeMap<&str, &McInst> = code.filter(known).map(|inst| (inst.opcode.as_str(), inst)).collect();
        let mut open: Vec<(&McInst, Spelling)> = samples.values().map(|inst| (*inst, Spelling::of(inst))).collect();
        while !open.is_empty() {
            let answers = ask(bench, &open, processor);
            let mut asked = std::mem::take(&mut open);
            for ((inst, mut spelling), answer) in asked.drain(..).zip(answers) {
                if answer.is_empty() {
                    self.0.insert(inst.opcode.clone(), spelling);
                    continue;
                }
                spelling.mend(&answer);
                assert!(!spelling.names.is_empty(), "{inst:?} is no MIR: {answer}");
                open.push((inst, spelling));
            }
        }
    }
}

/// The errors of `llc` for each instruction; empty if it accepts it.
fn ask(bench: &Workbench, instructions: &[(&McInst, Spelling)], processor: &str) -> Vec<String> {
    for (number, (inst, spelling)) in instructions.iter().enumerate() {
        let text = format!("name: f\nbody: |\n  bb.0:\n    {}\n", inst.mir(spelling));
        bench.write(&format!("probe{number}.mir"), text.as_bytes());
    }
    let script = format!(
        "for n in $(seq 0 {}); do {} -o /dev/null probe$n.mir >probe.txt 2>&1; \
         grep -m1 -E 'error:|operands expected|marked as implicit' probe.txt || \
         grep -m1 'Bad machine code' probe.txt || echo; done; rm probe*.mir",
        instructions.len() - 1,
        llc(processor)
    );
    let answers: Vec<String> = bench.run(&script).lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), instructions.len(), "{answers:?}");
    answers
}

impl Spelling {
    fn of(inst: &McInst) -> Self {
        Self { names: names(&inst.opcode), missing: 0, extra: 0, implicit: Vec::new() }
    }

    /// Adds the operand that `llc` requires, or tries the next name.
    fn mend(&mut self, answer: &str) {
        if let Some((_, operand)) = answer.split_once("missing implicit register operand '") {
            self.implicit.push(operand.trim_end_matches('\'').to_owned());
        } else if let Some(missing) = missing(answer) {
            self.missing += missing;
        } else if answer.contains("marked as implicit") {
            self.missing += 1;
        } else if answer.contains("Extra explicit operand") {
            self.extra += 1;
        } else {
            self.names.remove(0);
            (self.missing, self.extra, self.implicit) = (0, 0, Vec::new());
        }
    }
}

/// The number of missing operands, from `9 operands expected, but 8 given.`
fn missing(answer: &str) -> Option<usize> {
    let (expected, given) = answer.split_once(" operands expected, but ")?;
    expected.parse::<usize>().ok()?.checked_sub(given.split(' ').next()?.parse().ok()?).filter(|missing| *missing > 0)
}

/// Names and lines of the functions in the output of `llc`.
fn bodies(out: &str) -> Vec<(String, Vec<String>)> {
    let mut all: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in out.lines() {
        if let Some(name) = line.strip_prefix("name:") {
            all.push((name.trim().to_owned(), Vec::new()));
        }
        inside = match line {
            _ if line.starts_with("body:") => true,
            "..." | "---" => false,
            _ => inside,
        };
        if let Some((_, lines)) = all.last_mut().filter(|_| inside && line.starts_with("    ")) {
            lines.push(line.trim().to_owned());
        }
    }
    all
}
