//! The replacement of an instruction has the same effect: both are run on many states, and compared.
//!
//! The instruction runs with the semantics of the source, its replacement as the target runs it ([`super::machine`]).
//! Both must leave the same values in every register that the instruction writes, in LDS, and in the list of memory
//! operations. Every other register that the replacement writes must keep its value, or be a register of the
//! certificate's scratch set (or M0) that is dead after the instruction in the original, or that no kernel of the
//! original had.
//!
//! Invariants: equal pairs in equal bank modes are run once; an instruction that the machine cannot run is a finding.

use super::encoded::check_encodings;
use super::machine::{Machine, SteppingSide};
use super::spill::{self, KernelPrivateSegments, PrivateNeeds};
use crate::callers::kernels_to;
use crate::finding::{BANK_MODE, HAZARD, LintFinding, REPLACEMENT, SCRATCH};
use crate::returned::LiveRegisters;
use crate::unit::LintUnit;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Inst, Isa, Name, OperandValue};
use hotswap_program::DeadLanes;
use hotswap_report::SiteCertificate;
use std::collections::HashMap;

/// Number of states on which a replacement is run: few where its instructions only move data. Of those that compute,
/// the first have each number of eight bits in every byte of the sources.
const STATES: u32 = 64;
const COMPUTING_STATES: u32 = BYTES + 1024;
const BYTES: u32 = 256;

/// Words of an instruction, its bank mode, the bytes that replace it, and the slots of registers that it spills.
type SpilledSite = ([u32; 5], VgprBanks, Vec<u8>, Vec<u32>);

pub(super) struct SiteComparer<'u, 'a> {
    old: &'u LintUnit<'a>,
    source: Isa,
    target: Isa,
    managed: bool,
    live: LiveRegisters<'u, 'a>,
    known: HashMap<SpilledSite, Result<RegSet, String>>,
    /// By the name of a kernel how many vector registers it has in the rewritten file.
    granted: HashMap<String, u32>,
    /// For each function that was asked about the kernels that get to it.
    kernels: HashMap<usize, Vec<u32>>,
    /// Private segments of the kernels in both files, and the bytes that sites need of them.
    segments: (&'u KernelPrivateSegments, &'u KernelPrivateSegments),
    needs: PrivateNeeds,
    findings: Vec<LintFinding>,
}

/// Waits and empty instructions: they change nothing.
pub(super) fn is_idle(inst: &Inst) -> bool {
    const NAMES: [&str; 4] = ["v_nop", "s_nop", "s_delay_alu", "s_clause"];
    NAMES.contains(&inst.mnemonic()) || is_wait(inst)
}

fn is_wait(inst: &Inst) -> bool {
    inst.mnemonic().starts_with("s_wait_")
}

impl<'u, 'a> SiteComparer<'u, 'a> {
    pub(super) fn new(
        old: &'u LintUnit<'a>,
        new: &LintUnit<'_>,
        segments: (&'u KernelPrivateSegments, &'u KernelPrivateSegments),
    ) -> Self {
        let (source, target, managed) = (old.isa(), new.isa(), old.sets_sched_mode());
        let (live, known, findings) = (LiveRegisters::new(old), HashMap::new(), Vec::new());
        let (granted, kernels) = (granted_vgprs(new), HashMap::new());
        let needs = PrivateNeeds::default();
        Self { old, source, target, managed, live, known, granted, kernels, segments, needs, findings }
    }

    pub(super) fn take_needs(&mut self) -> PrivateNeeds {
        std::mem::take(&mut self.needs)
    }

    pub(super) fn take_findings(&mut self) -> Vec<LintFinding> {
        std::mem::take(&mut self.findings)
    }

    pub(super) fn check_site(&mut self, site: &SiteCertificate, old: &Inst, code: &[Inst]) {
        let at = site.old;
        let Some(banks) = self.old.banks.mode_before(&self.old.program, at) else {
            // No path reaches this; the code here is never executed, and is checked in the mode of entries.
            self.compare_code(site, old, code, VgprBanks::ENTRY);
            return;
        };
        if banks.mode().is_none() && old.operands(self.source).any(|operand| is_vector(operand.value)) {
            let fixed = code.iter().any(|inst| inst.mnemonic() == "s_set_vgpr_msb");
            if fixed {
                self.findings.push(LintFinding::at_offset(
                    &BANK_MODE,
                    self.old,
                    at,
                    "the bank mode at a changed place is not known",
                ));
                return;
            }
        }
        self.compare_code(site, old, code, banks);
    }

    fn compare_code(&mut self, site: &SiteCertificate, old: &Inst, code: &[Inst], banks: VgprBanks) {
        let at = site.old;
        let bytes = code.iter().flat_map(|inst| inst.bytes()[..usize::from(inst.len())].to_vec()).collect();
        let slots: Vec<u32> = site.spilled.iter().map(|one| one.slot).collect();
        let key = (*old.words(), banks, bytes, slots);
        let outcome = match self.known.get(&key) {
            Some(known) => known.clone(),
            None => {
                let made = check_encodings((old, self.source), (code, self.target))
                    .and_then(|()| run_both(self, old, code, (banks, &key.3)));
                self.known.insert(key, made.clone());
                made
            }
        };
        match outcome {
            Err(what) => self.findings.push(LintFinding::at_offset(&REPLACEMENT, self.old, at, what)),
            Ok(overwritten) => {
                self.check_waits(site, old, code, banks);
                self.check_spills(site, code, banks);
                self.is_granted(site);
                self.check_dead(site, old, code, &overwritten);
            }
        }
    }

    /// Registers that are spilled come back in every lane, and nothing else lies in their slots.
    fn check_spills(&mut self, site: &SiteCertificate, code: &[Inst], banks: VgprBanks) {
        let replacement = spill::check_replacement(site, code, banks, self.target);
        let slots = replacement.and_then(|()| self.needs.check_slots(self.old, site, self.segments));
        if let Err(what) = slots {
            self.findings.push(LintFinding::at_offset(&SCRATCH, self.old, site.old, what));
        }
    }

    /// The overwritten registers are in the certificate and not needed after the instruction.
    fn check_dead(&mut self, site: &SiteCertificate, old: &Inst, code: &[Inst], overwritten: &RegSet) {
        if overwritten.is_empty() {
            return;
        }
        let at = site.old;
        let named = old.read_set(self.source, VgprBanks::UNKNOWN);
        // Matrix instructions write lanes that are off as well.
        let matrix = code.iter().any(|inst| inst.is(Flag::Wmma) || inst.is(Flag::Swmmac));
        let lanes = if matrix { DeadLanes::InAllLanes } else { DeadLanes::InActiveLanes };
        let (_, behind) = self.live.live_around(at);
        let had = self.highest_vgpr_count(at);
        for reg in overwritten.iter() {
            let is_new = reg.file == RegFile::Vgpr && reg.index >= had;
            if !is_certified_scratch(reg, &named, site) {
                let what = format!("{} is overwritten and is no scratch register of the certificate", name(reg));
                self.findings.push(LintFinding::at_offset(&SCRATCH, self.old, at, what));
            } else if !is_new && !behind.is_dead(reg, lanes) {
                let what = format!("{} is overwritten, and what it holds is read later", name(reg));
                self.findings.push(LintFinding::at_offset(&SCRATCH, self.old, at, what));
            } else {
                continue;
            }
            return;
        }
    }

    /// The kernels that get to an offset.
    fn reaching_kernels(&mut self, at: u32) -> &[u32] {
        let old = self.old;
        let Some((number, _)) = old.program.function_at(at) else { return &[] };
        self.kernels.entry(number).or_insert_with(|| kernels_to(old, number))
    }

    /// The number of vector registers that a kernel which gets to an offset had at most.
    fn highest_vgpr_count(&mut self, at: u32) -> u16 {
        let old = self.old;
        let counts = self.reaching_kernels(at).iter().map(|kernel| old.program.kernel_needs(*kernel as usize)?.vgprs);
        let most = counts.collect::<Option<Vec<u32>>>().and_then(|counts| counts.into_iter().max());
        most.map_or(u16::MAX, |count| u16::try_from(count).unwrap_or(u16::MAX))
    }

    /// Every kernel that gets there has the vector registers of the scratch set.
    fn is_granted(&mut self, site: &SiteCertificate) {
        let vectors = site.scratch.iter().filter(|run| run.is_vector);
        let Some(end) = vectors.map(|run| u32::from(run.first) + u32::from(run.count)).max() else { return };
        let old = self.old;
        for kernel in self.reaching_kernels(site.old).to_vec() {
            let kernel = old.program.name(&old.program.functions[kernel as usize]);
            if let Some(count) = self.granted.get(&kernel).filter(|count| **count < end) {
                let what = format!("v{} is used, and `{kernel}` has {count} vector registers", end - 1);
                self.findings.push(LintFinding::at_offset(&SCRATCH, old, site.old, what));
            }
        }
    }

    /// The waits that the replacement itself needs.
    fn check_waits(&mut self, site: &SiteCertificate, old: &Inst, code: &[Inst], banks: VgprBanks) {
        let scratch: RegSet = site
            .scratch
            .iter()
            .flat_map(|run| {
                let file = if run.is_vector { RegFile::Vgpr } else { RegFile::Sgpr };
                (run.first..run.first.saturating_add(run.count)).map(move |index| Reg::new(file, index, 1))
            })
            .collect();
        if let Err(what) = check_replacement_waits(old, code, banks, self.target, &scratch, self.managed) {
            self.findings.push(LintFinding::at_offset(&HAZARD, self.old, site.old, what));
        }
    }
}

fn is_certified_scratch(reg: Reg, named: &RegSet, site: &SiteCertificate) -> bool {
    let vector = reg.file == RegFile::Vgpr;
    // Registers that the instruction itself reads, such as a descriptor, may be changed for it.
    let own = !vector && named.touches(reg);
    (reg.file == RegFile::Special && !reg.is(Special::ExecLo) && !reg.is(Special::Mode))
        || own
        || site
            .scratch
            .iter()
            .any(|one| one.is_vector == vector && (one.first..one.first.saturating_add(one.count)).contains(&reg.index))
}

fn is_vector(value: hotswap_isa::OperandValue) -> bool {
    matches!(value, hotswap_isa::OperandValue::Reg(reg) if reg.file == RegFile::Vgpr)
}

/// How many vector registers each kernel of a file has.
fn granted_vgprs(unit: &LintUnit<'_>) -> HashMap<String, u32> {
    let kernels = unit.program.functions.iter().enumerate().filter(|(_, function)| function.is_kernel());
    kernels
        .filter_map(|(number, function)| Some((unit.program.name(function), unit.program.kernel_needs(number)?.vgprs?)))
        .collect()
}

fn name(reg: Reg) -> String {
    let mut text = String::new();
    match reg.write(&mut text) {
        Ok(()) => text,
        Err(_) => format!("{reg:?}"),
    }
}

/// Runs both; returns the registers that the replacement changes and the instruction does not write.
fn run_both(
    sites: &SiteComparer<'_, '_>,
    old: &Inst,
    code: &[Inst],
    (banks, slots): (VgprBanks, &[u32]),
) -> Result<RegSet, String> {
    let own = old.written_set(sites.source, banks);
    let mut overwritten = RegSet::EMPTY;
    let computes = old.memory_access().is_none() && old.is(Flag::Valu) && !old.is(Flag::Wmma) && !old.is(Flag::Swmmac);
    for seed in 0..if computes { COMPUTING_STATES } else { STATES } {
        let mut before = Machine::new(seed, banks);
        match seed {
            0..BYTES if computes => every_byte(&mut before, old, sites.source, banks, seed),
            _ => set_carry_sources(&mut before, old, sites.source, banks, seed),
        }
        let start = before.clone();
        let mut after = before.clone();
        after.spills_to(slots);
        before.run_instruction(old, sites.source, SteppingSide::Source)?;
        let mut written = RegSet::EMPTY;
        for inst in code {
            written.union_with(&inst.written_set(sites.target, after.banks()));
            after.run_instruction(inst, sites.target, SteppingSide::Target)?;
        }
        if before.banks().mode() != after.banks().mode() {
            return Err("the bank mode after the replacement differs".to_owned());
        }
        before.same_memory(&after)?;
        for reg in own.iter() {
            if reg.is(Special::Mode) {
                continue;
            }
            if before.register_value(reg) != after.register_value(reg) {
                return Err(format!(
                    "the replacement leaves {:#x} in {} where the instruction leaves {:#x} (state {seed})",
                    after.register_value(reg),
                    name(reg),
                    before.register_value(reg)
                ));
            }
        }
        written.subtract(&own);
        written.remove(Reg::special(Special::Mode, 1));
        overwritten.extend(written.iter().filter(|reg| start.register_value(*reg) != after.register_value(*reg)));
    }
    Ok(overwritten)
}

/// Vector sources all of whose bytes are the number `byte`.
fn every_byte(machine: &mut Machine, old: &Inst, isa: Isa, banks: VgprBanks, byte: u32) {
    for effect in old.reads(isa).filter(|effect| effect.reg.file == RegFile::Vgpr) {
        let Some(reg) = banks.resolve_register(effect.reg, effect.role) else { continue };
        for index in reg.index..reg.index + u16::from(reg.count) {
            machine.set_initial(Reg::new(RegFile::Vgpr, index, 1), byte * 0x0101_0101);
        }
    }
}

/// Sources at which a stochastic conversion is about to carry: the noise is the difference to the next number, or
/// one less than that.
fn set_carry_sources(machine: &mut Machine, old: &Inst, isa: Isa, banks: VgprBanks, seed: u32) {
    if old.mnemonic() != "v_cvt_sr_fp8_f32" || seed.is_multiple_of(2) {
        return;
    }
    use hotswap_isa::bank::BankRole::{Source0, Source1};
    let value = vector_source(old, isa, banks, Name::Src0, Source0);
    let Some((value, noise)) = value.zip(vector_source(old, isa, banks, Name::Src1, Source1)) else { return };
    let spread = seed.wrapping_mul(0x9e37_79b9);
    // Below 2^-14, where the mantissa is shifted, starting with the smallest number with a non-zero result.
    let exponent = 0x6d + spread % 4;
    let mantissa = if seed % 8 == 1 { 0 } else { spread >> 9 };
    let bits = exponent << 23 | mantissa;
    let shift = 133 - exponent;
    let missing = (1 << shift) - ((mantissa | 0x80_0000) & ((1 << shift) - 1));
    let steps = (missing - u32::from(seed % 4 == 3)).min((1 << shift) - 1);
    machine.set_initial(value, bits);
    machine.set_initial(noise, steps << (32 - shift));
}

fn vector_source(
    inst: &Inst,
    isa: Isa,
    banks: VgprBanks,
    name: Name,
    role: hotswap_isa::bank::BankRole,
) -> Option<Reg> {
    match inst.operand(isa, name) {
        Some(hotswap_isa::OperandValue::Reg(reg)) if reg.file == RegFile::Vgpr => {
            banks.resolve_register(reg, Some(role))
        }
        _ => None,
    }
}

/// The waits of a replacement: see the rules of each `if`.
fn check_replacement_waits(
    old: &Inst,
    code: &[Inst],
    mut banks: VgprBanks,
    isa: Isa,
    scratch: &RegSet,
    managed: bool,
) -> Result<(), String> {
    // Registers read by memory instructions that may be replayed, registers that outstanding ones of LDS and of other
    // memory will write, and completed waits.
    let (mut rereads, mut pending, mut loading) = (RegSet::EMPTY, RegSet::EMPTY, RegSet::EMPTY);
    let (mut waited, mut drained, mut alu, mut base_is_written) = (false, false, false, false);
    let mut last: Option<&Inst> = None;
    let (mut accesses, mut borrows) = (0, false);
    for inst in code {
        let zero = inst.raw(Name::Simm16) == Some(0);
        match inst.mnemonic() {
            "s_wait_xcnt" if zero => (waited, rereads) = (true, RegSet::EMPTY),
            "s_wait_dscnt" if zero => (drained, pending) = (true, RegSet::EMPTY),
            "s_wait_loadcnt" if zero => loading = RegSet::EMPTY,
            "s_wait_loadcnt_dscnt" if zero => (drained, pending, loading) = (true, RegSet::EMPTY, RegSet::EMPTY),
            "s_wait_alu" if zero => (alu, base_is_written) = (true, true),
            _ => {}
        }
        let (read, written) = (inst.read_set(isa, banks), inst.written_set(isa, banks));
        banks = banks.mode_after(inst, isa);
        if is_idle(inst) || inst.mnemonic() == "s_set_vgpr_msb" {
            continue;
        }
        if managed && !alu && last.is_some_and(|last| unit_of(last) != unit_of(inst)) {
            return Err(
                "instructions of two units without a wait between them, where the program keeps them apart".to_owned()
            );
        }
        if !waited && (written.intersects(scratch) || overwrites_source(old, inst, &written, isa)) {
            return Err("a register is written before memory instructions that may read it again were waited for (s_wait_xcnt 0)".to_owned());
        }
        if [&pending, &loading].iter().any(|set| read.intersects(set) || written.intersects(set)) {
            return Err("a register is used while a load of the replacement writes it".to_owned());
        }
        if written.intersects(&rereads) {
            return Err(
                "a register is overwritten that a memory instruction may have to read again (s_wait_xcnt 0)".to_owned()
            );
        }
        if reads_scratch_base(&read) && !base_is_written && !reads_base_as_before(old, inst, isa, banks) {
            return Err("the base of scratch is read without a wait for what may write it (s_wait_alu 0)".to_owned());
        }
        base_is_written &= !written.iter().any(|reg| reg.file == RegFile::Sgpr);
        if let Some(memory) = inst.memory_access() {
            let is_lds = inst.is(Flag::Ds);
            if memory.load {
                (if is_lds { &mut pending } else { &mut loading }).union_with(&written);
            }
            match is_lds {
                true => {
                    accesses += 1;
                    borrows |= read.intersects(scratch);
                    drained = false;
                }
                false => rereads.extend(read.iter()),
            }
        }
        alu = false;
        last = Some(inst);
    }
    let two = old.is(Flag::Ds) && accesses > 1 && (borrows || managed);
    if two && !drained {
        return Err("two accesses through a borrowed register are not waited for (s_wait_dscnt 0)".to_owned());
    }
    Ok(())
}

const SCRATCH_BASE: [Special; 2] = [Special::FlatScratchBaseLo, Special::FlatScratchBaseHi];

fn reads_scratch_base(set: &RegSet) -> bool {
    SCRATCH_BASE.iter().any(|one| set.touches(Reg::special(*one, 1)))
}

/// Whether an instruction of a replacement reads the base of scratch where the original does, in the same unit and size: what
/// may write it was waited for, or not, before.
fn reads_base_as_before(old: &Inst, inst: &Inst, isa: Isa, banks: VgprBanks) -> bool {
    let is_wide =
        |value: OperandValue| SCRATCH_BASE.iter().any(|one| value == OperandValue::Reg(Reg::special(*one, 2)));
    let has_same_size = old.is(Flag::Salu) || !inst.is(Flag::Salu) && !old.operands(isa).any(|one| is_wide(one.value));
    reads_scratch_base(&old.read_set(isa, banks)) && has_same_size
}

/// Whether an instruction of the replacement writes, before the original would have, a register that an older memory
/// instruction may have to read again. The original waited for its own results, unless a memory instruction produces
/// them: that one writes them in its order.
fn overwrites_source(old: &Inst, inst: &Inst, written: &RegSet, isa: Isa) -> bool {
    if inst.memory_access().is_some() {
        return false;
    }
    let mut early = *written;
    if old.memory_access().is_none() {
        early.subtract(&old.written_set(isa, VgprBanks::UNKNOWN));
    }
    early.iter().any(is_overwritable_source)
}

fn is_overwritable_source(reg: Reg) -> bool {
    matches!(reg.file, RegFile::Vgpr | RegFile::Sgpr) || reg.is(Special::M0)
}

/// Which unit runs an instruction: scalar, vector, matrix, or memory.
fn unit_of(inst: &Inst) -> u8 {
    match () {
        () if inst.is(Flag::Wmma) || inst.is(Flag::Swmmac) => 2,
        () if inst.memory_access().is_some() => 3,
        () if inst.is(Flag::Salu) => 0,
        () => 1,
    }
}
