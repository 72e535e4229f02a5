//! Kernels with more user SGPRs than before: targets that start waves wrongly with fewer than 16 SGPRs need them, and the
//! system SGPRs (work-group IDs) then lie in higher registers.
//!
//! Such a kernel is proven if its new code begins with copies of all of them to where the original has them, and no branch
//! of the original leads to its first instruction; or if none of them is live there. The copies read registers that the
//! original's descriptor did not set up, so they take no value from it.

use crate::returned::LiveRegisters;
use crate::unit::LintUnit;
use hotswap_code_object::{CodeObject, DescriptorLocation};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Inst, Isa, Name, OperandValue};
use hotswap_program::DeadLanes;
use hotswap_targets::{Capability, find_processor};

/// The SGPRs that have to be set up.
const ENOUGH: u32 = 16;

/// A kernel whose user SGPRs were raised as the target needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct RaisedKernel {
    /// Its number among the kernels.
    pub(super) number: usize,
    /// Address of its code in the original.
    pub(super) entry: u64,
    /// User SGPRs before and after, and system SGPRs.
    user: u32,
    pub(super) raised: u32,
    system: u32,
}

/// The kernels with raised counts. Changes that are not as the target needs them are in no row.
pub(super) fn raised_kernels(old: &CodeObject<'_>, new: &CodeObject<'_>) -> Vec<RaisedKernel> {
    if needs_sixteen(old) || !needs_sixteen(new) {
        return Vec::new();
    }
    let pairs = old.descriptors().iter().zip(new.descriptors()).enumerate();
    let raised = pairs.filter_map(|(number, (before, after))| {
        let (was, is) = (descriptor_word(old, before, 52), descriptor_word(new, after, 52));
        let (user, system) = (was >> 1 & 31, (was >> 7 & 15).count_ones());
        let in_wave32 = descriptor_word(old, before, 56) >> 10 & 1 != 0;
        let expected = user + system < ENOUGH && (is >> 1 & 31) + system == ENOUGH;
        let kernel = RaisedKernel { number, entry: before.entry, user, raised: is >> 1 & 31, system };
        (in_wave32 && expected).then_some(kernel)
    });
    raised.collect()
}

fn descriptor_word(object: &CodeObject<'_>, place: &DescriptorLocation, at: usize) -> u32 {
    let bytes = object.bytes().get(place.range.start + at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |word| u32::from_le_bytes(*word))
}

fn needs_sixteen(object: &CodeObject<'_>) -> bool {
    let own = object.target_id().processor;
    let mut all = own.covers.iter().filter_map(|name| find_processor(name)).chain([own]);
    all.any(|processor| processor.has(Capability::UserSgprInit16Bug))
}

impl RaisedKernel {
    /// The offset of its entry in a section of the original.
    pub(super) fn offset_in(&self, unit: &LintUnit<'_>) -> Option<u32> {
        let source = &unit.program.source;
        let offset = u32::try_from(self.entry.checked_sub(source.address)?).ok()?;
        source.linked.then_some(offset).filter(|offset| (*offset as usize) < source.bytes.len())
    }

    /// The number of its copies.
    pub(super) fn copy_count(&self) -> usize {
        self.system as usize
    }

    /// Whether instructions are its copies, and run once.
    pub(super) fn check_copies(&self, unit: &LintUnit<'_>, copies: &[Inst], isa: Isa) -> Result<(), String> {
        let expected: Vec<_> = (0..self.system)
            .map(|number| Some(CopiedRegister { to: self.user + number, from: self.raised + number }))
            .collect();
        let found: Vec<_> = copies.iter().map(|inst| CopiedRegister::of_instruction(inst, isa)).collect();
        if found != expected {
            return Err("its system registers are not copied to where its code has them".to_owned());
        }
        let Some(offset) = self.offset_in(unit) else { return Err("its entry is in no code".to_owned()) };
        let function = unit.program.function_at(offset).map(|(_, function)| function);
        let function = function.filter(|function| function.start == offset && function.is_instruction(offset));
        let Some(function) = function else { return Err("its entry is not the start of a function".to_owned()) };
        let returns = (0..function.block_count()).any(|block| {
            function.successors(block).into_iter().any(|next| function.block(next as usize).start == offset)
        });
        match returns {
            true => Err("a branch leads to the copies at its entry".to_owned()),
            false => Ok(()),
        }
    }

    /// Whether the original reads none of its system registers.
    pub(super) fn check_unread(&self, unit: &LintUnit<'_>, offset: u32) -> Result<(), String> {
        let (live, _) = LiveRegisters::new(unit).live_around(offset);
        let read = (self.user..self.user + self.system)
            .find(|index| !live.is_dead(Reg::new(RegFile::Sgpr, *index as u16, 1), DeadLanes::InAllLanes));
        match read {
            Some(index) => Err(format!("it has more user registers than before, and may read s{index}, which moved")),
            None => Ok(()),
        }
    }
}

/// A scalar copy: its destination and its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CopiedRegister {
    to: u32,
    from: u32,
}

impl CopiedRegister {
    fn of_instruction(inst: &Inst, isa: Isa) -> Option<Self> {
        let (to, from) = (sgpr_operand(inst, isa, Name::Sdst)?, sgpr_operand(inst, isa, Name::Src0)?);
        (inst.mnemonic() == "s_mov_b32").then_some(Self { to, from })
    }
}

fn sgpr_operand(inst: &Inst, isa: Isa, name: Name) -> Option<u32> {
    match inst.operand(isa, name) {
        Some(OperandValue::Reg(Reg { file: RegFile::Sgpr, index, count: 1, .. })) => Some(u32::from(index)),
        _ => None,
    }
}
