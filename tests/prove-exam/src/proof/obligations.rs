//! For each site the question whether instruction and replacement can differ.

use super::symbolic::{LANE, OVERFLOW, SymbolicLane, variable_of};
use super::term::{SmtPrinter, Term, TermValues};
use crate::subjects::RewrittenPair;
use hotswap_code_object::certificate_note;
use hotswap_code_object::image::ObjectImage;
use hotswap_emulator::{EmulatedDevice, SnippetMachine, SnippetShape, SparseMemory};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Inst, Isa, Target};
use hotswap_report::{Certificate, SiteCertificate};
use std::collections::{BTreeMap, BTreeSet};

/// States on which terms are compared with the emulator.
const STATES: u64 = 40;

/// A site as terms.
pub struct ProofObligation {
    /// Object and offset.
    pub name: String,
    /// The question in SMT-LIB: it lacks an answer where both always do the same.
    pub question: String,
    sides: [SymbolicSide; 2],
}

struct SymbolicSide {
    processor: &'static str,
    code: Vec<u8>,
    length: usize,
    lane: SymbolicLane,
    banks: u8,
}

/// The obligations of an object's sites, one for equal ones, and the reasons why others lack one.
pub fn obligations(pair: &RewrittenPair) -> (Vec<ProofObligation>, BTreeMap<String, usize>) {
    let (mut all, mut refused, mut seen) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
    let Some((certificate, old, new)) = obligation_certificate_images(pair) else { return (all, refused) };
    for section in &certificate.sections {
        let [before, after] = [&old, &new].map(|image| image.sections[section.number as usize].bytes);
        for site in &section.sites {
            let code = [
                before[site.old as usize..(site.old + site.old_size) as usize].to_vec(),
                after[site.new.start as usize..site.new.end as usize].to_vec(),
            ];
            if !seen.insert(code.clone()) {
                continue;
            }
            match obligation(code, site) {
                Ok((question, sides)) => {
                    all.push(ProofObligation { name: format!("{}: {:#x}", pair.name, site.old), question, sides });
                }
                Err(reason) => *refused.entry(reason).or_default() += 1,
            }
        }
    }
    (all, refused)
}

fn obligation_certificate_images(pair: &RewrittenPair) -> Option<(Certificate, ObjectImage<'_>, ObjectImage<'_>)> {
    let certificate = Certificate::from_bytes(certificate_note(&pair.made)?).ok()?;
    Some((certificate, ObjectImage::parse(&pair.original).ok()?, ObjectImage::parse(&pair.made).ok()?))
}

type Question = (String, [SymbolicSide; 2]);

fn obligation(code: [Vec<u8>; 2], site: &SiteCertificate) -> Result<Question, String> {
    let [old, new] = code;
    let banks = mode_before(&new)?;
    let sides = [side("gfx1250", old, banks)?, side("gfx1250-strict", new, banks)?];
    let [before, after] = [&sides[0].lane, &sides[1].lane];
    let mut claim = Term::constant(1, 1);
    for (file, index) in before.written().chain(after.written()).collect::<BTreeSet<_>>() {
        if !is_scratch(site, file, index) {
            claim = claim.and(&before.register(file, index).equal(&after.register(file, index)));
        }
    }
    let any = Term::variable("any", 32);
    claim = claim.and(&before.memory.byte(&any).equal(&after.memory.byte(&any)));
    Ok((SmtPrinter::default().question(&claim), sides))
}

/// The bank mode before a replacement: the first change of it states the mode that was in force. Without one the result
/// does not depend on it, since both sides name the same registers.
fn mode_before(code: &[u8]) -> Result<u8, String> {
    let isa = Isa::new(Target::find("gfx1250-strict").ok_or("no such target")?);
    let first = decoded(code, isa)?.into_iter().find(|inst| inst.mnemonic() == "s_set_vgpr_msb");
    Ok(first.map_or(0, |inst| (inst.words()[0] >> 8 & 0xff) as u8))
}

fn side(processor: &'static str, code: Vec<u8>, banks: u8) -> Result<SymbolicSide, String> {
    let isa = Isa::new(Target::find(processor).ok_or("no such target")?);
    let mut lane = SymbolicLane::new(isa, VgprBanks::of_mode(banks));
    decoded(&code, isa)?.iter().try_for_each(|inst| lane.step(inst))?;
    let length = code.len();
    let mut code = code;
    // `s_endpgm`.
    code.extend([0, 0, 0xb0, 0xbf].repeat(8));
    Ok(SymbolicSide { processor, code, length, lane, banks })
}

fn decoded(code: &[u8], isa: Isa) -> Result<Vec<Inst>, String> {
    let (mut at, mut all) = (0, Vec::new());
    while at < code.len() {
        let inst = isa.decode(&code[at..]).map_err(|_| "bytes that are no instruction".to_owned())?;
        at += usize::from(inst.len());
        all.push(inst);
    }
    Ok(all)
}

/// Registers that the certificate names; that they are dead is judged elsewhere.
fn is_scratch(site: &SiteCertificate, file: RegFile, index: u16) -> bool {
    let vector = file == RegFile::Vgpr;
    site.scratch.iter().any(|run| {
        run.is_vector == vector && file != RegFile::Special && (run.first..run.first + run.count).contains(&index)
    })
}

/// The first register or byte in which terms and emulator differ after either side.
pub fn disagreement(obligation: &ProofObligation) -> Option<String> {
    obligation.sides.iter().find_map(|side| (0..STATES).find_map(|number| differing(side, number)))
}

fn mixed(seed: u64, value: u64) -> u64 {
    let x = (seed ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53) ^ x >> 29
}

/// Numbers of a state: small ones, which are addresses of LDS, floats of small formats, any.
fn number(seed: u64, value: u64) -> u32 {
    let bits = mixed(seed, value);
    // In every second state all of them are addresses.
    match bits >> 61 {
        4 | 5 if seed % 2 == 1 => 0x3500_0000 + (bits as u32 & 0x13ff_ffff),
        6 | 7 if seed % 2 == 1 => bits as u32,
        _ => bits as u32 & 0xfff,
    }
}

const LDS: usize = 16 << 10;
/// Registers that have values: code of assembly names no others.
const VECTORS: u16 = 100;

fn differing(side: &SymbolicSide, state: u64) -> Option<String> {
    let device = EmulatedDevice::new(side.processor).ok()?;
    let mut memory = SparseMemory::new();
    let start = memory.allocate_copy(&side.code);
    let shape = SnippetShape { lanes: 32, vectors: 512, lds: LDS, scratch: 16 };
    let mut machine = SnippetMachine::new(&device, &memory, &shape);
    let lane = (mixed(state, 1) % 32) as usize;
    let overflow = mixed(state, 2) & 1;
    let mut values = TermValues::default();
    values.variables.extend([(LANE.to_owned(), lane as u64), (OVERFLOW.to_owned(), overflow)]);
    for index in 0..VECTORS {
        let value = number(state, 100 + u64::from(index));
        machine.vector_mut(index, 0)[lane] = value;
        values.variables.insert(variable_of(RegFile::Vgpr, index), value.into());
    }
    let m0 = Reg::special(Special::M0, 1);
    for (reg, index) in (0..104).map(|index| (Reg::new(RegFile::Sgpr, index, 1), index)).chain([(m0, m0.index)]) {
        let value = number(state, 1000 + u64::from(index));
        machine.set_scalar(reg, value);
        values.variables.insert(variable_of(reg.file, index), value.into());
    }
    values.memory = (0..LDS as u64).map(|at| mixed(state, at << 8) as u8).collect();
    machine.lds_mut().copy_from_slice(&values.memory);
    machine.set_scalar(Reg::special(Special::ExecLo, 1), 1 << lane);
    machine.set_mode(0xf0 | (overflow as u32) << 23, side.banks);
    let end = start + side.length as u64;
    // A fault is one of a form that the stepping lacks, or of an address.
    machine.run_until(start, 1000, &|pc| pc >= end).ok()?;
    for (file, index) in side.lane.written() {
        let found = match file {
            RegFile::Vgpr => Some(machine.vector(index, 0)[lane]),
            _ => None,
        };
        let expected = side.lane.register(file, index).evaluate(&values) as u32;
        if found.is_some_and(|found| found != expected) && !is_beyond(&values) {
            return Some(format!("{file:?} {index} is {found:x?}, as a term {expected:#x} (state {state})"));
        }
    }
    for at in (0..LDS).filter(|at| machine.lds()[*at] != values.memory[*at]) {
        let term = side.lane.memory.byte(&Term::constant(at as u64, 32)).evaluate(&values);
        if term != u64::from(machine.lds()[at]) {
            return Some(format!("byte {at:#x} of LDS is {:#x}, as a term {term:#x}", machine.lds()[at]));
        }
    }
    None
}

/// Whether some register holds no address of LDS: what is beyond its end lacks a value as a term.
fn is_beyond(values: &TermValues) -> bool {
    (0..VECTORS).any(|reg| values.variables[&variable_of(RegFile::Vgpr, reg)] >= LDS as u64 / 2)
}
