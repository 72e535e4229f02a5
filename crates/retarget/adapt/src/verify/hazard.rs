//! Distances after matrix instructions, counted independently: every path from each of them is walked until it is far
//! enough.
//!
//! The numbers are those of the table of `hotswap-hazards`, which is tested against LLVM (`tests/rewrite-exam`).
//! Overlapping registers, the instructions that count and the paths are determined independently here.

use super::offset_map::CodeOffsetMap;
use super::{PlanDifference, UnitPair};
use hotswap_hazards::{InstClass, rules_for};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::bank_role;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Flag, Inst, Isa, Name, OperandValue};
use hotswap_program::{BasicBlock, Function, SectionProgram};
use std::cell::OnceCell;
use std::collections::HashMap;

/// Vector instructions required before a vector one that touches the registers, and before a matrix one
/// that reads the result.
type VectorNeeds = (u8, u8);

fn vector_needs(inst: &Inst, isa: Isa) -> Option<VectorNeeds> {
    if !is_matrix(inst) {
        return None;
    }
    let [vector, matrix] = [InstClass::VectorBesideMatrix, InstClass::Matrix].map(|consumer| {
        // The producer last, because that looks at operands.
        let rows = rules_for(isa).filter(|rule| rule.consumer == consumer && rule.requirement.vector_insts() > 0);
        let rows = rows.filter(|rule| rule.producer.contains(inst, isa));
        rows.map(|rule| rule.requirement.vector_insts()).max().unwrap_or(0)
    });
    (matrix > 0).then_some((vector, matrix))
}

struct Producer {
    needs: VectorNeeds,
    registers: MatrixRegisters,
}

/// Vector registers from the first number up to the second, exclusive; none if both are 0.
type VgprRange = (u16, u16);

fn vgpr_range(reg: Reg) -> VgprRange {
    (reg.index, reg.index + u16::from(reg.count))
}

fn ranges_overlap((first, end): VgprRange, (from, to): VgprRange) -> bool {
    first < to && from < end
}

/// The registers of a matrix instruction: its result; A, B and, for sparse ones, the index; and C.
#[derive(Debug, Clone, Copy, Default)]
struct MatrixRegisters {
    result: VgprRange,
    inputs: [VgprRange; 3],
    addend: VgprRange,
}

/// Checks a function of the new program.
pub(super) fn check_function(
    pair: &UnitPair<'_, '_, '_>,
    followed: &CodeOffsetMap,
    number: usize,
) -> Result<(), PlanDifference> {
    let (unit, isa) = (pair.new, pair.target);
    let function = &unit.program.functions[number];
    let code = MatrixCode { unit, number, blocks: function.blocks().map(|_| OnceCell::new()).collect() };
    for block in 0..function.block_count() {
        let line = function.block(block);
        if !followed.has_matrix(line.start, line.end).unwrap_or_else(|| has_matrix(unit, isa, &line)) {
            continue;
        }
        for (index, step) in code.block_steps(block).iter().enumerate() {
            let Some(needs) = vector_needs(&step.inst, isa) else { continue };
            let producer = Producer { needs, registers: step.matrix_registers(isa) };
            let walk = HazardWalk { function, code: &code, isa, producer };
            walk.from(block, index)?;
        }
    }
    Ok(())
}

fn has_matrix(unit: &SectionProgram<'_>, isa: Isa, line: &BasicBlock) -> bool {
    let mut at = line.start;
    while at < line.end {
        let Some(inst) = unit.program.decode(at) else { break };
        if vector_needs(&inst, isa).is_some() {
            return true;
        }
        at += u32::from(inst.len());
    }
    false
}

/// The code of a function. Blocks that no path from a matrix instruction reaches are not decoded.
struct MatrixCode<'c, 'a> {
    unit: &'c SectionProgram<'a>,
    number: usize,
    blocks: Vec<OnceCell<Vec<HazardStep>>>,
}

impl MatrixCode<'_, '_> {
    fn block_steps(&self, block: usize) -> &[HazardStep] {
        self.blocks[block].get_or_init(|| decode_steps(self.unit, self.number, block))
    }
}

struct HazardStep {
    at: u32,
    inst: Inst,
    banks: VgprBanks,
    /// The registers of a matrix instruction, computed on demand.
    registers: OnceCell<MatrixRegisters>,
}

impl HazardStep {
    fn matrix_registers(&self, isa: Isa) -> MatrixRegisters {
        *self.registers.get_or_init(|| named_registers(self, isa))
    }
}

fn decode_steps(unit: &SectionProgram<'_>, number: usize, block: usize) -> Vec<HazardStep> {
    let line = unit.program.functions[number].block(block);
    let (mut at, mut banks) = (line.start, unit.banks.at_block(number, block));
    let mut steps = Vec::with_capacity((line.end - line.start) as usize / 6 + 1);
    while at < line.end {
        let Some(inst) = unit.program.decode(at) else { break };
        steps.push(HazardStep { at, inst, banks, registers: OnceCell::new() });
        banks = banks.mode_after(&inst, unit.isa());
        at += u32::from(inst.len());
    }
    steps
}

fn is_matrix(inst: &Inst) -> bool {
    inst.is(Flag::Wmma) || inst.is(Flag::Swmmac)
}

fn named_registers(step: &HazardStep, isa: Isa) -> MatrixRegisters {
    let (entry, sparse) = (step.inst.entry(), step.inst.is(Flag::Swmmac));
    let mut registers = MatrixRegisters::default();
    for (slot, one) in entry.slots().iter().enumerate() {
        let place = match one.name {
            Name::Vdst => &mut registers.result,
            Name::Src0 => &mut registers.inputs[0],
            Name::Src1 => &mut registers.inputs[1],
            Name::Src2 if sparse => &mut registers.inputs[2],
            Name::Src2 => &mut registers.addend,
            _ => continue,
        };
        if let Some(OperandValue::Reg(reg)) = step.inst.operand(isa, one.name)
            && reg.file == RegFile::Vgpr
            && let Some(reg) = step.banks.resolve_register(reg, bank_role(entry, slot as u8))
        {
            *place = vgpr_range(reg);
        }
    }
    registers
}

struct HazardWalk<'w, 'a> {
    function: &'w Function,
    code: &'w MatrixCode<'w, 'a>,
    isa: Isa,
    producer: Producer,
}

impl HazardWalk<'_, '_> {
    /// Walks all paths from after a matrix instruction. A block is walked again if it is reached with less distance.
    fn from(&self, block: usize, index: usize) -> Result<(), PlanDifference> {
        // Most paths end in the block where they start.
        let Some(since) = self.walk_block(block, index + 1, 0)? else { return Ok(()) };
        let mut least: HashMap<usize, u8> = HashMap::new();
        let (mut work, mut passed) = (Vec::new(), Some((block, since)));
        loop {
            if let Some((block, since)) = passed {
                for next in self.function.successors(block) {
                    let known = least.entry(next as usize).or_insert(u8::MAX);
                    if since < *known {
                        *known = since;
                        work.push((next as usize, since));
                    }
                }
            }
            let Some((block, since)) = work.pop() else { return Ok(()) };
            passed = self.walk_block(block, 0, since)?.map(|since| (block, since));
        }
    }

    /// Walks a block. Returns `None` when the distance is sufficient.
    fn walk_block(&self, block: usize, first: usize, mut since: u8) -> Result<Option<u8>, PlanDifference> {
        let leaves = self.function.leaves(block);
        let code = self.code.block_steps(block);
        for (number, step) in code.iter().enumerate().skip(first) {
            let needed = self.needed_distance(step);
            let last = leaves && number + 1 == code.len();
            let needed = if last { needed.max(self.producer.needs.1) } else { needed };
            if since < needed {
                let what = format!(
                    "`{}` is {since} vector instructions after a matrix instruction, and {needed} are needed",
                    step.inst.mnemonic()
                );
                return Err((step.at, what));
            }
            if step.inst.is(Flag::Valu) && step.inst.memory_access().is_none() {
                since += 1;
            }
            if since >= self.producer.needs.1 {
                return Ok(None);
            }
        }
        Ok(Some(since))
    }

    fn needed_distance(&self, step: &HazardStep) -> u8 {
        let (vector, matrix) = self.producer.needs;
        if is_matrix(&step.inst) {
            let MatrixRegisters { result, .. } = self.producer.registers;
            return if step.matrix_registers(self.isa).inputs.iter().any(|input| ranges_overlap(*input, result)) {
                matrix
            } else {
                0
            };
        }
        if !step.inst.is(Flag::Valu) || step.inst.memory_access().is_some() {
            return 0;
        }
        if step.inst.is(Flag::Indexed) || self.touches_producer(step) { vector } else { 0 }
    }

    /// Whether an instruction reads the result, or writes a register that must not change yet.
    fn touches_producer(&self, step: &HazardStep) -> bool {
        let MatrixRegisters { result, inputs: [a, b, index], addend } = self.producer.registers;
        let mut touches = false;
        // Registers touched without being named are not vector registers.
        step.inst.visit(self.isa, |effect| {
            let reg = effect.reg();
            if reg.file != RegFile::Vgpr || effect.is_none() {
                return;
            }
            let watched = if effect.written() { [result, a, b, index, addend] } else { [result; 5] };
            touches |= match step.banks.resolve_register(reg, effect.role()) {
                Some(reg) => meets_watched_range(reg, &watched),
                None => (0..4).any(|bank| meets_watched_range(Reg { index: reg.index + 256 * bank, ..reg }, &watched)),
            };
        });
        touches
    }
}

fn meets_watched_range(reg: Reg, watched: &[(u16, u16); 5]) -> bool {
    watched.iter().any(|one| ranges_overlap(*one, vgpr_range(reg)))
}
