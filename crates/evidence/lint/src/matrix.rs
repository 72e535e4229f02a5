//! Distances: after matrix and transcendental instructions, before writes of MODE, and the rest of the hazard table.
//!
//! Every path from a producer is walked until the distance is reached. The registers that a matrix instruction leaves
//! in use are read from its operands here independently, so that an error of the engine is one here only if it is made
//! twice; the numbers are the table's ([`hotswap_hazards`]).

use crate::finding::{HAZARD, LintFinding, LintRule, MATRIX_DISTANCE, MODE_DISTANCE};
use crate::unit::{BankedInst, LintUnit};
use hotswap_hazards::{BankedInstruction, HazardRule, InstClass, Overlap, Requirement, Spacing, rules_for};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::bank_role;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Class, Flag, Inst, Isa, Name, OperandValue};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};

pub(crate) fn check_hazards(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    let rows: Vec<&HazardRule> = rules_for(unit.isa()).filter(|row| is_judged(row)).collect();
    if rows.is_empty() {
        return;
    }
    for (number, is_managed) in unit.managed_functions().into_iter().enumerate() {
        let function = &unit.program.functions[number];
        let blocks = function.blocks().map(|_| OnceCell::new()).collect();
        let code = DecodedBlocks { unit, number, blocks };
        for block in 0..function.block_count() {
            for index in 0..code.block_code(block).len() {
                code.check_producer(block, index, &rows, findings);
            }
        }
        mode_writes(&code, findings);
        if is_managed {
            check_waits(&code, findings);
        }
    }
}

/// Rows that a walk from the producer judges in all code. Loads and replayed instructions are judged with their counters,
/// writes of MODE by a backward walk from the write.
fn is_judged(row: &HazardRule) -> bool {
    match row.requirement {
        Requirement::VectorInsts(_) | Requirement::VectorInstNext => true,
        Requirement::WaitAlu { .. } => !row.managed_only,
        _ => false,
    }
}

/// A position on a path from a producer.
struct PathPosition {
    block: usize,
    /// The index of the next instruction in the block.
    first: usize,
    /// The instructions on the path that count towards the distance.
    since: u8,
}

struct DecodedBlocks<'c, 'a> {
    unit: &'c LintUnit<'a>,
    number: usize,
    blocks: Vec<OnceCell<Vec<BankedInst>>>,
}

impl DecodedBlocks<'_, '_> {
    fn block_code(&self, block: usize) -> &[BankedInst] {
        self.blocks[block].get_or_init(|| self.unit.block_code(self.number, block))
    }

    fn check_producer(&self, block: usize, index: usize, rows: &[&HazardRule], findings: &mut Vec<LintFinding>) {
        let isa = self.unit.isa();
        let (_, inst, banks) = self.block_code(block)[index];
        if let Some(spacing) = Spacing::after_instruction(&inst, isa) {
            let registers = MatrixRegisters::from_inst(&inst, isa, banks);
            self.walk_paths(
                block,
                index,
                spacing.matrix,
                |one| needed_spacing_distance(one, &registers, &spacing, &isa),
                &MATRIX_DISTANCE,
                findings,
            );
        }
        for row in rows.iter().filter(|row| row.producer.contains(&inst, isa)) {
            let matrix = matches!(row.consumer, InstClass::VectorBesideMatrix | InstClass::Matrix);
            let placed = BankedInstruction { inst: &inst, banks };
            match row.requirement {
                Requirement::VectorInsts(count) if !matrix => {
                    self.walk_paths(
                        block,
                        index,
                        count,
                        |step| if is_about_step(row, isa, placed, step) { count } else { 0 },
                        &HAZARD,
                        findings,
                    );
                }
                Requirement::VectorInstNext => self.next_is_vector(block, index, row, findings),
                Requirement::WaitAlu { fields, expires } => {
                    self.has_wait(block, index, (row, fields, expires), findings)
                }
                _ => {}
            }
        }
    }

    /// Walks all paths after an instruction; a block is visited again if it is reached with
    /// fewer instructions on the path.
    fn walk_paths(
        &self,
        block: usize,
        index: usize,
        most: u8,
        need: impl Fn(&BankedInst) -> u8,
        rule: &'static LintRule,
        findings: &mut Vec<LintFinding>,
    ) {
        let function = &self.unit.program.functions[self.number];
        let producer = self.block_code(block)[index].1.mnemonic();
        let mut least: HashMap<usize, u8> = HashMap::new();
        let mut told: BTreeSet<u32> = BTreeSet::new();
        let mut work = vec![PathPosition { block, first: index + 1, since: 0 }];
        while let Some(PathPosition { block, first, mut since }) = work.pop() {
            for step in &self.block_code(block)[first.min(self.block_code(block).len())..] {
                let needed = need(step);
                if since < needed && told.insert(step.0) {
                    let what = format!("{since} vector instructions follow `{producer}`, and {needed} are needed");
                    findings.push(LintFinding::at_offset(rule, self.unit, step.0, what));
                }
                since += u8::from(counts_as_distance(&step.1));
                if since >= most {
                    break;
                }
            }
            if since >= most {
                continue;
            }
            for next in function.successors(block).iter().map(|next| *next as usize) {
                let known = least.entry(next).or_insert(u8::MAX);
                if since < *known {
                    *known = since;
                    work.push(PathPosition { block: next, first: 0, since });
                }
            }
        }
    }

    /// Checks that the next instruction is a plain vector instruction of 32 bits, on every path.
    fn next_is_vector(&self, block: usize, index: usize, row: &HazardRule, findings: &mut Vec<LintFinding>) {
        let code = self.block_code(block);
        let next = code.get(index + 1);
        let isa = self.unit.isa();
        if !next.is_some_and(|step| takes_one_pass(&step.1, isa)) {
            let what = format!("no vector instruction directly follows `{}` ({})", code[index].1.mnemonic(), row.name);
            findings.push(LintFinding::at_offset(&HAZARD, self.unit, code[index].0, what));
        }
    }

    /// Checks for a wait before the consumer, within one block: beyond it the writes have expired
    /// or nothing is reported.
    fn has_wait(
        &self,
        block: usize,
        index: usize,
        (row, fields, expires): (&HazardRule, u16, u8),
        findings: &mut Vec<LintFinding>,
    ) {
        let isa = self.unit.isa();
        let code = self.block_code(block);
        let placed = BankedInstruction { inst: &code[index].1, banks: code[index].2 };
        let mut writes = 0;
        for step in &code[index + 1..] {
            if is_about_step(row, isa, placed, step) {
                let what = format!("`s_wait_alu` is missing after `{}` ({})", code[index].1.mnemonic(), row.name);
                findings.push(LintFinding::at_offset(&HAZARD, self.unit, step.0, what));
                return;
            }
            let waits = step.1.mnemonic() == "s_wait_alu";
            if waits && step.1.raw(Name::Simm16).is_some_and(|value| value & u64::from(fields) == 0) {
                return;
            }
            writes += u8::from(InstClass::ScalarWritesScalar.contains(&step.1, isa));
            if expires > 0 && writes >= expires {
                return;
            }
        }
    }
}

/// Whether a row is about an instruction that follows its producer.
fn is_about_step(row: &HazardRule, isa: Isa, producer: BankedInstruction<'_>, step: &BankedInst) -> bool {
    row.is_about(isa, producer, BankedInstruction { inst: &step.1, banks: step.2 })
}

fn needed_spacing_distance(step: &BankedInst, registers: &MatrixRegisters, spacing: &Spacing, isa: &Isa) -> u8 {
    registers.needed_distance(*spacing, step, *isa)
}

/// At an exit of a function, every matrix instruction is as far away as any consumer must be: the following code is not
/// known. LLVM does not ensure this, so it is only required of rewritten code.
pub(crate) fn check_exits(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    for (number, function) in unit.program.functions.iter().enumerate() {
        let left = (0..function.block_count()).filter(|block| function.leaves(*block));
        let lasts: BTreeSet<u32> = left.map(|block| function.block(block).last).collect();
        let blocks = function.blocks().map(|_| OnceCell::new()).collect();
        let code = DecodedBlocks { unit, number, blocks };
        for block in 0..if lasts.is_empty() { 0 } else { function.block_count() } {
            for index in 0..code.block_code(block).len() {
                let Some(spacing) = Spacing::after_instruction(&code.block_code(block)[index].1, unit.isa()) else {
                    continue;
                };
                code.walk_paths(
                    block,
                    index,
                    spacing.matrix,
                    |step| if lasts.contains(&step.0) { spacing.matrix } else { 0 },
                    &MATRIX_DISTANCE,
                    findings,
                );
            }
        }
    }
}

/// Whether an instruction is of the vector unit and takes one pass there: without operands of 64 bits except pairs of
/// packed floats, without DPP, and not a whole product of 32 bits.
fn takes_one_pass(inst: &Inst, isa: Isa) -> bool {
    const SHORT: [Class; 5] = [Class::Vop1, Class::Vop2, Class::Vop3, Class::Vop3p, Class::Vopc];
    const PRODUCTS: [&str; 3] = ["v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32"];
    let name = inst.mnemonic();
    let is_packed = name.starts_with("v_pk_") && name.ends_with("_f32");
    let mut is_wide = false;
    inst.visit(isa, |effect| {
        is_wide |= effect.reg().file == RegFile::Vgpr && effect.reg().count > 1 && !effect.is_none();
    });
    let is_short = inst.class().is_some_and(|class| SHORT.contains(&class)) && !inst.is(Flag::Dpp);
    counts_as_distance(inst) && is_short && (is_packed || !is_wide) && !PRODUCTS.contains(&name)
}

/// Whether an instruction counts towards a distance: of the vector unit, and no memory instruction.
fn counts_as_distance(inst: &Inst) -> bool {
    inst.is(Flag::Valu) && inst.memory_access().is_none()
}

fn is_matrix(inst: &Inst) -> bool {
    inst.is(Flag::Wmma) || inst.is(Flag::Swmmac)
}

/// A half-open range of vector registers; empty if both are 0.
struct VgprRange {
    first: u16,
    end: u16,
}

/// The registers that a matrix instruction leaves in use: its result, A, B and, of sparse ones, the index; and C.
struct MatrixRegisters {
    result: Vec<VgprRange>,
    inputs: Vec<VgprRange>,
    addend: Vec<VgprRange>,
}

/// The ranges in the denoted bank, or in each of them.
fn vgpr_ranges(banks: VgprBanks, reg: Reg, role: Option<hotswap_isa::bank::BankRole>) -> Vec<VgprRange> {
    match banks.resolve_register(reg, role) {
        Some(reg) => vec![vgpr_index_range(reg)],
        None => (0..4).map(|bank| vgpr_index_range(Reg { index: reg.index + 256 * bank, ..reg })).collect(),
    }
}

fn vgpr_index_range(reg: Reg) -> VgprRange {
    VgprRange { first: reg.index, end: reg.index + u16::from(reg.count) }
}

fn ranges_overlap(one: &[VgprRange], other: &[VgprRange]) -> bool {
    one.iter().any(|one| other.iter().any(|other| one.first < other.end && other.first < one.end))
}

impl MatrixRegisters {
    fn from_inst(inst: &Inst, isa: Isa, banks: VgprBanks) -> Self {
        let (mut result, mut inputs, mut addend) = (Vec::new(), Vec::new(), Vec::new());
        for (number, slot) in inst.entry().slots().iter().enumerate() {
            let into = match slot.name {
                Name::Vdst => &mut result,
                Name::Src0 | Name::Src1 => &mut inputs,
                Name::Src2 if inst.is(Flag::Swmmac) => &mut inputs,
                Name::Src2 => &mut addend,
                _ => continue,
            };
            if let Some(OperandValue::Reg(reg)) = inst.operand(isa, slot.name)
                && reg.file == RegFile::Vgpr
            {
                into.extend(vgpr_ranges(banks, reg, bank_role(inst.entry(), number as u8)));
            }
        }
        Self { result, inputs, addend }
    }

    fn needed_distance(&self, spacing: Spacing, (_, inst, banks): &BankedInst, isa: Isa) -> u8 {
        if is_matrix(inst) {
            let own = Self::from_inst(inst, isa, *banks);
            return if ranges_overlap(&own.inputs, &self.result) { spacing.matrix } else { 0 };
        }
        if !counts_as_distance(inst) {
            return 0;
        }
        if inst.is(Flag::Indexed) {
            return spacing.vector;
        }
        let mut touches = false;
        inst.visit(isa, |effect| {
            let reg = effect.reg();
            if reg.file != RegFile::Vgpr || effect.is_none() {
                return;
            }
            let own = vgpr_ranges(*banks, reg, effect.role());
            touches |= ranges_overlap(&own, &self.result)
                || effect.written() && (ranges_overlap(&own, &self.inputs) || ranges_overlap(&own, &self.addend));
        });
        if touches { spacing.vector } else { 0 }
    }
}

/// Two `v_nop` precede a write of MODE, unless no vector instruction precedes it on any path.
fn mode_writes(code: &DecodedBlocks<'_, '_>, findings: &mut Vec<LintFinding>) {
    let isa = code.unit.isa();
    let Some(row) = rules_for(isa).find(|row| row.consumer == InstClass::SetsMode && row.overlap == Overlap::NONE)
    else {
        return;
    };
    let Requirement::VectorNops(count) = row.requirement else { return };
    let function = &code.unit.program.functions[code.number];
    let mut stale = None;
    for block in 0..function.block_count() {
        for (index, (at, inst, _)) in code.block_code(block).iter().enumerate() {
            if !row.consumer.contains(inst, isa) {
                continue;
            }
            let before = &code.block_code(block)[..index];
            let nops = before.iter().rev().take_while(|step| step.1.mnemonic() == "v_nop").count();
            if nops >= usize::from(count) {
                continue;
            }
            let disturbed = before.iter().any(|step| counts_as_distance(&step.1));
            if disturbed || stale.get_or_insert_with(|| stale_blocks(code))[block] {
                let what = format!("{nops} v_nop precede a write of MODE, and {count} are needed");
                findings.push(LintFinding::at_offset(&MODE_DISTANCE, code.unit, *at, what));
            }
        }
    }
}

/// Blocks before which a vector instruction may have been executed.
fn stale_blocks(code: &DecodedBlocks<'_, '_>) -> Vec<bool> {
    let function = &code.unit.program.functions[code.number];
    let mut stale = vec![false; function.block_count()];
    let called = function.entries.iter().filter(|entry| !entry.is_kernel());
    let mut work: Vec<usize> = called.filter_map(|entry| function.block_at(entry.offset)).collect();
    work.iter().for_each(|block| stale[*block] = true);
    for block in 0..function.block_count() {
        let disturbs = function.leaves(block) || code.block_code(block).iter().any(|step| counts_as_distance(&step.1));
        if disturbs {
            work.extend(function.successors(block).iter().map(|next| *next as usize));
        }
    }
    let mut seen = vec![false; function.block_count()];
    while let Some(block) = work.pop() {
        stale[block] = true;
        if !std::mem::replace(&mut seen[block], true) {
            work.extend(function.successors(block).iter().map(|next| *next as usize));
        }
    }
    stale
}

/// With SCHED_MODE set by the program, results of slower matrix instructions are waited for before the next vector
/// instruction or memory instruction.
fn check_waits(code: &DecodedBlocks<'_, '_>, findings: &mut Vec<LintFinding>) {
    /// Bits of VA_VDST in the immediate of `s_wait_alu`.
    const VA_VDST: u64 = 0xf000;
    let isa = code.unit.isa();
    if !isa.has(hotswap_isa::Feature::Gfx1250Strict) {
        return;
    }
    for block in 0..code.unit.program.functions[code.number].block_count() {
        let steps = code.block_code(block);
        for (index, (at, inst, _)) in steps.iter().enumerate().filter(|(_, step)| is_small_float_inst(&step.1)) {
            let next =
                steps[index + 1..].iter().find(|step| !step.1.is(Flag::Salu) || step.1.mnemonic() == "s_wait_alu");
            let waited = next.is_some_and(|step| {
                step.1.mnemonic() == "s_wait_alu" && step.1.raw(Name::Simm16).is_some_and(|value| value & VA_VDST == 0)
            });
            if !waited {
                let what =
                    format!("`{}` is not waited for where the program keeps instructions apart", inst.mnemonic());
                findings.push(LintFinding::at_offset(&HAZARD, code.unit, *at, what));
            }
        }
    }
}

fn is_small_float_inst(inst: &Inst) -> bool {
    inst.is(Flag::SmallFloat)
}
