//! The frame of a function in scratch, from its instructions.
//!
//! By LLVM's calling convention `s32` is the stack pointer and `s33` the frame pointer. A function that calls others moves
//! the stack pointer by the size of its frame; one that calls none leaves it, and its frame ends with the highest byte
//! that it accesses above it. A kernel sets the stack pointer to the end of its own frame. Where scratch is accessed
//! through a buffer descriptor, the stack pointer counts bytes of a wave, otherwise bytes of a work-item.
//!
//! Invariants: a stack pointer that is changed otherwise (dynamic allocation) makes the frame unknown. A frame without a
//! change of the stack pointer whose address leaves it is a lower bound.

use crate::table::{FactEvidence, Number};
use hotswap_isa::effects::{EffectBits, Space};
use hotswap_isa::reg::RegFile;
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Inst, Isa, Name, OperandValue};

/// The stack pointer and the frame pointer.
const STACK: u16 = 32;
const FRAME: u16 = 33;

/// The unit of the stack pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StackUnit {
    Wave,
    WorkItem,
}

/// Accesses of one instruction to the stack pointer and the frame pointer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StackUse {
    /// Bits of both registers, from [`STACK`].
    read: u64,
    written: u64,
}

impl StackUse {
    /// Adds an effect of the instruction. Branchless: every register of all code comes here.
    #[inline(always)]
    pub(crate) fn add_effect(&mut self, effect: EffectBits) {
        let (word, low, _) = effect.set_bits();
        let pointers = (low >> STACK & 3) * u64::from(word == RegSet::SGPR_WORD);
        let written = u64::from(effect.written());
        self.written |= pointers * written;
        self.read |= pointers * (1 - written);
    }

    #[inline(always)]
    pub(crate) const fn is_some(self) -> bool {
        self.read | self.written != 0
    }

    const fn writes_stack(self) -> bool {
        self.written & 1 != 0
    }

    const fn reads_stack(self) -> bool {
        self.read & 1 != 0
    }
}

/// The facts about the frame so far.
#[derive(Debug, Default)]
pub(crate) struct FrameScan {
    /// Size by which the stack pointer is raised, and whether that happens more than once.
    raised: Option<u64>,
    raised_again: bool,
    /// The value that a kernel sets it to.
    start: Option<u64>,
    /// End of the highest access above the stack pointer.
    end: u64,
    unit: Option<StackUnit>,
    /// The address of something in the frame is computed.
    escapes: bool,
    /// The stack pointer is changed by an unknown amount.
    is_unknown: bool,
}

impl FrameScan {
    /// Adds an instruction that accesses the stack pointer or the frame pointer.
    pub(crate) fn add_instruction(&mut self, inst: &Inst, stack: StackUse, isa: Isa) {
        if self.is_unknown {
            return;
        }
        if stack.writes_stack() {
            return self.add_change(inst, stack, isa);
        }
        if stack.read == 0 {
            return;
        }
        match stack_access(inst, isa) {
            Some((unit, end)) => {
                self.unit = Some(unit);
                self.end = self.end.max(end);
            }
            // The frame pointer is set, saved and restored by moves; everything else computes an address.
            None => self.escapes |= inst.mnemonic() != "s_mov_b32",
        }
    }

    /// An instruction that writes the stack pointer.
    fn add_change(&mut self, inst: &Inst, stack: StackUse, isa: Isa) {
        let constant = inst.operands(isa).find_map(|operand| constant_of(operand.value));
        let keeps = stack.reads_stack();
        let name = inst.mnemonic();
        match constant {
            None if name == "s_mov_b32" => {}
            Some(value) if !keeps && matches!(name, "s_mov_b32" | "s_movk_i32") => {
                self.start = u64::try_from(value).ok()
            }
            Some(value) if keeps && name.starts_with("s_add") && value > 0 => {
                self.raised_again |= self.raised.replace(value as u64).is_some();
            }
            // The addition is undone later.
            Some(_) if keeps && (name.starts_with("s_add") || name.starts_with("s_sub")) => {}
            _ => self.is_unknown = true,
        }
    }

    /// The bytes that a work-item needs for the function itself. `lanes` are those of a wave.
    pub(crate) fn frame_bytes(&self, is_kernel: bool, isa: Isa, lanes: Option<u8>) -> Number {
        let unit = self.unit.unwrap_or_else(|| usual_unit(isa));
        let known =
            |value: u64, at_least: bool| Number { value: Some(value), at_least, evidence: FactEvidence::Disassembly };
        let is_unknown = self.is_unknown || self.raised_again;
        match (is_unknown, is_kernel, self.start, self.raised) {
            (false, true, Some(start), None) => {
                bytes_per_work_item(start, &unit, &lanes).map_or(Number::UNKNOWN, |value| known(value, false))
            }
            (false, false, None, None) => known(self.end, self.escapes),
            (false, false, None, Some(size)) => {
                bytes_per_work_item(size, &unit, &lanes).map_or(Number::UNKNOWN, |value| known(value, false))
            }
            _ => Number::UNKNOWN,
        }
    }
}

fn bytes_per_work_item(value: u64, unit: &StackUnit, lanes: &Option<u8>) -> Option<u64> {
    match (*unit, *lanes) {
        (StackUnit::WorkItem, _) => Some(value),
        (StackUnit::Wave, lanes) => value.checked_div(u64::from(lanes?)),
    }
}

fn constant_of(value: OperandValue) -> Option<i64> {
    match value {
        OperandValue::Inline(inline) => Some(inline.value),
        OperandValue::Literal(literal) => Some(i64::from(literal.value as u32 as i32)),
        OperandValue::Imm(value) => Some(i64::from(value as u16 as i16)),
        OperandValue::Reg(_) | OperandValue::None => None,
    }
}

/// The unit of the stack pointer and the end of the bytes, if the instruction accesses scratch at a constant distance from
/// the stack or frame pointer.
fn stack_access(inst: &Inst, isa: Isa) -> Option<(StackUnit, u64)> {
    let (unit, pointer) = match inst.memory_access()?.space {
        Space::Scratch => (StackUnit::WorkItem, Name::Saddr),
        Space::Buffer => (StackUnit::Wave, Name::Soffset),
        _ => return None,
    };
    let is_pointer = match inst.operand(isa, pointer) {
        Some(OperandValue::Reg(reg)) => reg.file == RegFile::Sgpr && [STACK, FRAME].contains(&reg.index),
        _ => false,
    };
    let has_index = matches!(inst.operand(isa, Name::Vaddr), Some(OperandValue::Reg(_)));
    let offset = match inst.operand(isa, Name::Offset) {
        Some(OperandValue::Imm(offset)) => u64::try_from(offset).ok()?,
        _ => inst.raw(Name::Offset)?,
    };
    (is_pointer && !has_index).then(|| (unit, offset + access_size(inst.mnemonic())))
}

/// Bytes of an access to scratch by its name.
fn access_size(mnemonic: &str) -> u64 {
    let sizes = [("x4", 16), ("b128", 16), ("x3", 12), ("b96", 12), ("x2", 8), ("b64", 8)];
    sizes.into_iter().find(|(end, _)| mnemonic.ends_with(end)).map_or(4, |(_, size)| size)
}

/// The unit where no access shows it: LLVM's default.
fn usual_unit(isa: Isa) -> StackUnit {
    let is_architected = isa.has(hotswap_isa::Feature::ArchitectedFlatScratch);
    if is_architected { StackUnit::WorkItem } else { StackUnit::Wave }
}
