//! The instructions of a function through which addresses pass, and the registers that they pass through.
//!
//! Invariants: a register is followed if a jump or a call reads it, a program counter is read into it, or a step copies
//! from it into one that is followed; there are at most 64, the rest counts as unknown.

use crate::cfg::context::CfgContext;
use crate::ops::AddressOp;
use crate::source::FixupKind;
use hotswap_isa::Name;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Inst, Isa, OperandValue as Operand};

/// A register, or a lane of a vector register, by number.
pub(super) type TrackedKey = u32;

const LANES: TrackedKey = 1 << 16;

/// The key of a lane.
fn lane_key(vgpr: u16, lane: u64) -> TrackedKey {
    LANES | u32::from(vgpr) << 6 | (lane as u32 & 63)
}

/// The vector register of a key.
pub(super) fn vgpr_of(key: TrackedKey) -> Option<u16> {
    key.checked_sub(LANES).map(|lane| (lane >> 6) as u16)
}

/// The register of a key, which holds a lane or is one.
pub(super) fn register_of(key: TrackedKey) -> Reg {
    match (vgpr_of(key), key) {
        (Some(vgpr), _) => Reg::new(RegFile::Vgpr, vgpr, 1),
        (None, 106) => Reg::special(Special::VccLo, 1),
        (None, 107) => Reg::special(Special::VccHi, 1),
        (None, key) => Reg::new(RegFile::Sgpr, key as u16, 1),
    }
}

/// The key of a scalar register.
pub(super) fn scalar_key(reg: Reg) -> Option<TrackedKey> {
    match reg.file {
        RegFile::Sgpr => Some(u32::from(reg.index)),
        RegFile::Special if reg.is(Special::VccLo) => Some(106),
        RegFile::Special if reg.is(Special::VccHi) => Some(107),
        _ => None,
    }
}

/// A source of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepSource {
    /// A register, or a pair that begins there.
    Key(TrackedKey),
    Number(u64),
    /// The value to which a linker resolves the literal.
    Fixup(u32),
    Unknown,
}

/// An instruction through which addresses may pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct AddressStep {
    pub(super) offset: u32,
    pub(super) next: u32,
    pub(super) op: AddressOp,
    pub(super) to: Option<TrackedKey>,
    /// Dwords that it writes.
    pub(super) dwords: u8,
    pub(super) a: StepSource,
    pub(super) b: StepSource,
}

/// Registers that are followed, each with its number.
#[derive(Debug, Default)]
pub(super) struct TrackedKeys(Vec<TrackedKey>);

impl TrackedKeys {
    /// The number of a register; there are few.
    pub(super) fn number_of_key(&self, key: TrackedKey) -> Option<usize> {
        self.0.iter().position(|known| *known == key)
    }

    pub(super) fn get(&self, number: usize) -> Option<TrackedKey> {
        self.0.get(number).copied()
    }

    pub(super) fn has(&self, key: TrackedKey) -> bool {
        self.0.contains(&key)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, TrackedKey)> {
        self.0.iter().copied().enumerate()
    }
}

/// All of them, and the registers that matter.
pub(super) struct AddressSteps {
    pub(super) steps: Vec<AddressStep>,
    pub(super) keys: TrackedKeys,
    /// Get-PCs that only serve prefetching, and the instructions that use their results: none of it is
    /// an address of code.
    pub(super) serving: Vec<u32>,
    /// There were too many to follow the registers into which a program counter is read.
    pub(super) overflows: bool,
}

const MOST: usize = 64;
/// Steps are in the order of code, so values that pass through many registers in that order are found at once.
const ROUNDS: usize = 8;

impl AddressSteps {
    /// From the instructions at these offsets, which ascend; those that only serve prefetching are not steps of
    /// addresses. Where a function may select another bank of vector registers than the first (`beyond`), a number in
    /// an encoding denotes more than one register: lanes are not followed there.
    pub(super) fn read_steps(context: &CfgContext<'_, '_>, points: &[u32], beyond: bool, serving: Vec<u32>) -> Self {
        let (steps, keys) = (Vec::with_capacity(points.len()), TrackedKeys::default());
        let mut found = Self { steps, keys, serving, overflows: false };
        for offset in points {
            let Some(inst) = context.decode_at(*offset) else { continue };
            let mut step = address_step(context, *offset, &inst);
            if beyond {
                step.forget_lanes();
            }
            found.steps.push(step);
        }
        found.follow_sources();
        found
    }

    /// A copy of a followed register to one that is not followed counts as escaped.
    fn follow_keys(&mut self, key: TrackedKey, dwords: u32) {
        for key in key..key + dwords {
            if self.keys.len() < MOST && !self.keys.has(key) {
                self.keys.0.push(key);
            }
        }
    }

    /// Follows the sources of the followed registers.
    fn follow_sources(&mut self) {
        let steps = std::mem::take(&mut self.steps);
        let counters: Vec<TrackedKey> = steps
            .iter()
            .filter(|step| step.op == AddressOp::GetPc && !is_serving_step(step, &self.serving))
            .filter_map(|step| step.to)
            .collect();
        counters.iter().for_each(|key| self.follow_keys(*key, 2));
        self.overflows = counters.iter().any(|key| (*key..key + 2).any(|key| !self.keys.has(key)));
        for step in &steps {
            if let (AddressOp::SetPc | AddressOp::SwapPc, StepSource::Key(key)) = (step.op, step.a) {
                self.follow_keys(key, 2);
            }
        }
        for _ in 0..ROUNDS {
            let before = self.keys.len();
            for step in steps.iter().rev() {
                let Some(to) = step.to else { continue };
                if !(to..to + u32::from(step.dwords)).any(|key| self.keys.has(key))
                    || matches!(step.op, AddressOp::SetPc | AddressOp::SwapPc | AddressOp::GetPc)
                {
                    continue;
                }
                let width =
                    if matches!(step.op, AddressOp::Add64 | AddressOp::Sub64 | AddressOp::Move64 | AddressOp::Load) {
                        2
                    } else {
                        1
                    };
                for source in [step.a, step.b] {
                    if let StepSource::Key(key) = source {
                        self.follow_keys(key, width);
                    }
                }
            }
            if self.keys.len() == before {
                break;
            }
        }
        self.steps = steps;
    }
}

fn is_serving_step(step: &&AddressStep, serving: &[u32]) -> bool {
    serving.binary_search(&step.offset).is_ok()
}

impl AddressStep {
    fn forget_lanes(&mut self) {
        match self.op {
            AddressOp::WriteLane => self.to = None,
            AddressOp::ReadLane => self.a = StepSource::Unknown,
            _ => {}
        }
    }
}

fn address_step(context: &CfgContext<'_, '_>, offset: u32, inst: &Inst) -> AddressStep {
    let isa = context.isa();
    let op = context.ops.address_op(inst);
    let (mut to, mut dwords, mut sources) = (None, 1, [StepSource::Unknown; 2]);
    match op {
        AddressOp::WriteLane => {
            to = written_lane(inst, isa);
            sources[0] = register_key(inst.operand(isa, Name::Src0)).map_or(StepSource::Unknown, StepSource::Key);
        }
        AddressOp::ReadLane => {
            to = register_key(inst.operand(isa, Name::Vdst).or_else(|| inst.operand(isa, Name::Sdst)));
            sources[0] = read_lane(inst, isa);
        }
        AddressOp::Load => LoadOperands { to, dwords, sources } = load_operands(inst, isa),
        _ => {
            if let Some(Operand::Reg(reg)) = inst.operand(isa, Name::Sdst) {
                (to, dwords) = (scalar_key(reg), reg.count);
            }
            for (name, source) in [Name::Src0, Name::Src1].into_iter().zip(&mut sources) {
                *source = from(context, offset, inst, inst.operand(isa, name));
            }
            if inst.mnemonic() == "s_movk_i32" {
                sources[0] =
                    inst.raw(Name::Simm16).map_or(StepSource::Unknown, |raw| StepSource::Number(raw as i16 as u64));
            }
        }
    }
    let next = offset + u32::from(inst.len());
    AddressStep { offset, next, op, to, dwords, a: sources[0], b: sources[1] }
}

fn register_key(value: Option<Operand>) -> Option<TrackedKey> {
    match value {
        Some(Operand::Reg(reg)) => scalar_key(reg),
        _ => None,
    }
}

pub(super) fn constant_number(value: Option<Operand>) -> Option<u64> {
    match value {
        Some(Operand::Inline(inline)) => Some(inline.value as u64),
        Some(Operand::Literal(literal)) => Some(literal.value),
        Some(Operand::Imm(number)) => Some(number as u64),
        _ => None,
    }
}

pub(super) fn from(context: &CfgContext<'_, '_>, offset: u32, inst: &Inst, value: Option<Operand>) -> StepSource {
    match value {
        Some(Operand::Literal(literal)) => match literal_fixup(context, offset, inst) {
            Some(fixup) => StepSource::Fixup(fixup),
            // Sign extension differs between instructions.
            None if !literal.wide && literal.value >> 31 != 0 && is_wide(context.ops.address_op(inst)) => {
                StepSource::Unknown
            }
            None => StepSource::Number(literal.value),
        },
        Some(Operand::Reg(_)) => register_key(value).map_or(StepSource::Unknown, StepSource::Key),
        value => constant_number(value).map_or(StepSource::Unknown, StepSource::Number),
    }
}

/// Whether it works on numbers of 64 bits.
fn is_wide(op: AddressOp) -> bool {
    matches!(op, AddressOp::Move64 | AddressOp::Add64 | AddressOp::Sub64)
}

/// The fixup that fills the literal in, in a file that is not linked.
fn literal_fixup(context: &CfgContext<'_, '_>, offset: u32, inst: &Inst) -> Option<u32> {
    let source = context.source;
    if source.linked {
        return None;
    }
    let inside = offset + 1..offset + u32::from(inst.len());
    let first = source.fixups.partition_point(|fixup| fixup.offset < inside.start);
    let fixup = source.fixups.get(first).filter(|fixup| inside.contains(&fixup.offset))?;
    (fixup.kind != FixupKind::Rel16).then_some(first as u32)
}

fn written_lane(inst: &Inst, isa: Isa) -> Option<TrackedKey> {
    match (inst.operand(isa, Name::Vdst), constant_number(inst.operand(isa, Name::Src1))) {
        (Some(Operand::Reg(vgpr)), Some(number)) => Some(lane_key(vgpr.index, number)),
        _ => None,
    }
}

fn read_lane(inst: &Inst, isa: Isa) -> StepSource {
    match (inst.operand(isa, Name::Src0), constant_number(inst.operand(isa, Name::Src1))) {
        (Some(Operand::Reg(vgpr)), Some(number)) if vgpr.file == RegFile::Vgpr => {
            StepSource::Key(lane_key(vgpr.index, number))
        }
        _ => StepSource::Unknown,
    }
}

/// The operands of a load.
struct LoadOperands {
    to: Option<TrackedKey>,
    dwords: u8,
    /// The base and the distance.
    sources: [StepSource; 2],
}

/// A load through a pair of registers, with a distance that is a number.
fn load_operands(inst: &Inst, isa: Isa) -> LoadOperands {
    let (mut to, mut dwords, mut base, mut distance, mut unknown) = (None, 1, StepSource::Unknown, 0, false);
    for operand in inst.operands(isa) {
        match (operand.name, operand.value) {
            (Name::Sdst, Operand::Reg(reg)) => (to, dwords) = (scalar_key(reg), reg.count),
            (Name::Sbase, value) => base = register_key(Some(value)).map_or(StepSource::Unknown, StepSource::Key),
            (Name::Offset, Operand::Imm(number)) => distance = number as u64,
            (Name::Soffset, Operand::Reg(reg)) => unknown |= !reg.is(Special::Null),
            (Name::Offset | Name::Soffset, Operand::Reg(_) | Operand::Literal(_) | Operand::Inline(_)) => {
                unknown = true
            }
            _ => {}
        }
    }
    let base = if unknown { StepSource::Unknown } else { base };
    LoadOperands { to, dwords, sources: [base, StepSource::Number(distance)] }
}

pub(super) fn is_address_step(offset: u32, steps: &[AddressStep]) -> bool {
    steps.binary_search_by_key(&offset, |step| step.offset).is_ok()
}

pub(super) fn vector_register_of_key(key: TrackedKey) -> Option<Reg> {
    vgpr_of(key).map(|vgpr| Reg::new(RegFile::Vgpr, vgpr, 1))
}
