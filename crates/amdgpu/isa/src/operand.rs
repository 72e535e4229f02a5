//! Operands of a decoded instruction: fields become registers, constants and numbers.
//!
//! Invariants: nothing is allocated. A value depends on the instruction's words, its table entry and the target only.
//! Properties that the encoding leaves out (tied registers, sizes of image data, halves that a modifier selects) are
//! added here, so that users of operands need not know the encoding.
//!
//! Absent on purpose: implicit registers (see the effects), and whether fields decode (see the decoder).

pub(crate) mod image;

use crate::inst::Inst;
use crate::isa::Isa;
use crate::kind::{self, Decode, KindRow, OperandType, SourceValue};
use crate::quirks::OperandQuirks;
use crate::reg::{Reg, RegFile, VgprHalf};
use crate::tables::{Feature, Name, Slot};
use crate::target_class::TargetClass;
use crate::value::{Inline, Literal, OperandValue};

/// Whether an operand is read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandAccess {
    Read,
    Write,
    /// Written, and read because a source must be the same register.
    ReadWrite,
}

/// An operand of an instruction.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    pub name: Name,
    pub access: OperandAccess,
    pub value: OperandValue,
    kind: &'static KindRow,
    isa: Isa,
}

impl Operand {
    pub fn kind(&self) -> &'static KindRow {
        self.kind
    }

    /// Whether its register belongs in the operand's class and its constant in an operand that takes constants.
    /// Instructions for which this is false decode, but assemblers reject them.
    pub fn in_class(&self) -> bool {
        match self.value {
            OperandValue::Reg(reg) => TargetClass::new(self.kind.class, self.isa).contains(reg),
            OperandValue::Inline(_) | OperandValue::Literal(_) => self.kind.operand_type != OperandType::Register,
            OperandValue::Imm(_) | OperandValue::None => true,
        }
    }
}

/// The operands of an instruction, in LLVM's order: written ones first.
#[derive(Debug, Clone)]
pub struct OperandIter {
    reader: OperandReader,
    next: usize,
}

impl Iterator for OperandIter {
    type Item = Operand;

    fn next(&mut self) -> Option<Operand> {
        let slot = self.reader.slots.get(self.next)?;
        let value = self.reader.operand_value(self.next);
        let access = match slot.written {
            false => OperandAccess::Read,
            true if is_tied_operand(self.reader.slots, self.next) => OperandAccess::ReadWrite,
            true => OperandAccess::Write,
        };
        self.next += 1;
        Some(Operand { name: slot.name, access, value, kind: slot.operand_kind(), isa: self.reader.isa })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.reader.slots.len().saturating_sub(self.next);
        (left, Some(left))
    }
}

fn is_tied_operand(reader_slots: &[Slot], next: usize) -> bool {
    reader_slots.iter().any(|other| other.tied == Some(next as u8))
}

impl ExactSizeIterator for OperandIter {}

impl Inst {
    pub fn operands(&self, isa: Isa) -> OperandIter {
        OperandIter { reader: OperandReader::new(*self, isa), next: 0 }
    }

    /// The value of the operand `name`.
    pub fn operand(&self, isa: Isa, name: Name) -> Option<OperandValue> {
        let reader = OperandReader::new(*self, isa);
        reader.find_slot(name).map(|number| reader.operand_value(number))
    }
}

/// Reads the operands of one instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperandReader {
    pub(crate) inst: Inst,
    pub(crate) isa: Isa,
    pub(crate) slots: &'static [Slot],
    quirks: OperandQuirks,
    /// The first four words in one number, which hold almost every field.
    low: u128,
}

impl OperandReader {
    #[inline]
    pub(crate) fn new(inst: Inst, isa: Isa) -> OperandReader {
        let entry = inst.entry();
        let [a, b, c, d, _] = *inst.words();
        let low = u128::from(a) | u128::from(b) << 32 | u128::from(c) << 64 | u128::from(d) << 96;
        OperandReader { inst, isa, slots: entry.slots(), quirks: OperandQuirks::of(entry), low }
    }

    /// The first or the second eight bytes.
    #[inline]
    pub(crate) fn encoding_half(&self, second: bool) -> u64 {
        if second { (self.low >> 64) as u64 } else { self.low as u64 }
    }

    /// Number of the slot `name`.
    pub(crate) fn find_slot(&self, name: Name) -> Option<usize> {
        self.slots.iter().position(|slot| slot.name == name)
    }

    /// The raw number of an operand; 0 where the encoding does not hold it. Both halves of a dual instruction share one
    /// literal, which is a field of one of them.
    pub(crate) fn raw_operand(&self, number: usize) -> u64 {
        let Some(slot) = self.slots.get(number) else { return 0 };
        match slot.pieces() {
            [piece] if piece.at + piece.width <= 128 && piece.width < 64 => {
                let raw = (self.low >> piece.at) as u64 & ((1 << piece.width) - 1);
                self.with_fixed(slot, raw << piece.from)
            }
            [] if slot.name == Name::ImmX => self.inst.literal().unwrap_or(0),
            [] => self.with_fixed(slot, 0),
            pieces => self.with_fixed(slot, self.inst.gather(pieces)),
        }
    }

    /// The raw number of the operand in slot `number`, whose field has `width` bits from `at`; any field
    /// if `width` is 0.
    #[inline]
    pub(crate) fn raw_at(&self, number: usize, at: u8, width: u8) -> u64 {
        match width {
            0 => self.raw_operand(number),
            1..=63 => (self.low >> (at & 127)) as u64 & ((1 << width) - 1),
            _ => 0,
        }
    }

    /// The value of the operand in slot `number`, whose field is given as for [`OperandReader::raw_at`].
    #[inline]
    pub(crate) fn value_at(&self, number: usize, kind: &KindRow, at: u8, width: u8) -> OperandValue {
        if width == 0 || self.quirks.has(OperandQuirks::REGISTERS) {
            return self.operand_value(number);
        }
        self.decode_value(kind, self.raw_at(number, at, width))
    }

    /// The bit of the cache policy that says "returns the old value" is fixed in the encoding, so the field lacks it.
    #[inline]
    fn with_fixed(&self, slot: &Slot, raw: u64) -> u64 {
        if self.quirks.has(OperandQuirks::RETURNS) && slot.name == Name::Cpol { raw | 1 } else { raw }
    }

    /// The raw number of the operand `name`; 0 if it does not exist.
    pub(crate) fn raw_named(&self, name: Name) -> u64 {
        self.find_slot(name).map_or(0, |number| self.raw_operand(number))
    }

    /// The slot that holds the value of slot `number`: of a tied pair only one is encoded.
    fn holding_slot(&self, number: usize) -> usize {
        match self.slots.get(number).map(|slot| slot.tied) {
            Some(Some(tied)) if !has_no_pieces(usize::from(tied), self.slots) || has_no_pieces(number, self.slots) => {
                usize::from(tied)
            }
            Some(None) if has_no_pieces(number, self.slots) => {
                self.slots.iter().position(|other| other.tied == Some(number as u8)).unwrap_or(number)
            }
            _ => number,
        }
    }

    /// The value of the operand in slot `number`.
    #[inline]
    pub(crate) fn operand_value(&self, number: usize) -> OperandValue {
        let holder = if self.quirks.has(OperandQuirks::TIED) { self.holding_slot(number) } else { number };
        let Some(slot) = self.slots.get(holder) else { return OperandValue::None };
        let kind = slot.operand_kind();
        let raw = self.raw_operand(holder);
        let value = self.decode_value(kind, raw);
        match value {
            OperandValue::Reg(reg) if self.quirks.has(OperandQuirks::REGISTERS) => {
                OperandValue::Reg(self.adjust_register(reg, slot.name))
            }
            _ => value,
        }
    }

    #[inline]
    fn decode_value(&self, kind: &KindRow, raw: u64) -> OperandValue {
        let isa = self.isa;
        let source = match kind.decode {
            Decode::Imm | Decode::BranchTarget | Decode::Dpp8FetchInvalid | Decode::Version => {
                return OperandValue::Imm(raw as i64);
            }
            Decode::Vgpr { dwords } => return decoded_vector_register(dwords, raw),
            Decode::VgprLow128 => return decoded_vector_register(1, raw),
            Decode::Agpr { dwords } => return OperandValue::Reg(Reg::new(RegFile::Agpr, raw as u16 & 255, dwords)),
            Decode::Half => return half_register_value(raw & 255, raw & 512 != 0),
            Decode::HalfLow128 => return half_register_value(raw & 127, raw & 128 != 0),
            Decode::HalfSource if raw & 256 != 0 => return half_register_value(raw & 255, raw & 512 != 0),
            Decode::HalfSourceLow128 if raw & 256 != 0 => return half_register_value(raw & 127, raw & 128 != 0),
            Decode::HalfSource | Decode::HalfSourceLow128 => kind::scalar_source(raw as u8, 1, isa),
            Decode::Barrier => kind::source(raw as u16, 1, isa),
            Decode::Source { dwords, plus } => kind::source(raw as u16 | plus, dwords, isa),
            Decode::LaneMask => kind::source(raw as u16, kind::lane_mask_dwords(isa), isa),
            Decode::SdwaSource => kind::sdwa_source(raw as u16, isa),
            Decode::SdwaLaneMask => kind::sdwa_lane_mask(raw as u16, isa),
            Decode::Literal32 => return OperandValue::Literal(Literal { value: raw, wide: false, explicit: false }),
            Decode::Literal64 => {
                return OperandValue::Literal(Literal { value: raw, wide: true, explicit: raw >> 32 == 0 });
            }
            Decode::ScalarOffset => return OperandValue::Imm(scalar_offset(raw, isa)),
            Decode::DualResultY => return OperandValue::Reg(Reg::new(RegFile::Vgpr, self.dual_result(raw), 1)),
        };
        match source {
            SourceValue::Reg(reg) => OperandValue::Reg(reg),
            SourceValue::Constant(code) => OperandValue::Inline(Inline::new(code, kind.operand_type, isa)),
            SourceValue::Literal32 => self.literal_value(kind),
            SourceValue::Literal64 => OperandValue::Literal(Literal::wide(self.inst.literal().unwrap_or(0))),
            SourceValue::Unknown => OperandValue::None,
        }
    }

    fn literal_value(&self, kind: &KindRow) -> OperandValue {
        OperandValue::Literal(Literal::narrow(self.inst.literal().unwrap_or(0), kind.operand_type, self.isa))
    }

    /// The second result of a dual instruction.
    fn dual_result(&self, raw: u64) -> u16 {
        let x = self.raw_named(Name::VdstX);
        (raw | (!x & 1)) as u16 & 255
    }

    /// The register adjusted by the instruction's other fields.
    fn adjust_register(&self, reg: Reg, name: Name) -> Reg {
        if reg.half.is_some() {
            return self.with_half(reg, name);
        }
        if self.quirks.has(OperandQuirks::MATRIX_FORMATS) {
            return self.with_format(reg, name);
        }
        match self.quirks.has(OperandQuirks::IMAGE) {
            true => image::adjust_image_register(self, reg, name),
            false => reg,
        }
    }

    /// Halves that `op_sel` bits of the modifiers select.
    fn with_half(&self, mut reg: Reg, name: Name) -> Reg {
        let (modifiers, bit) = match name {
            Name::Src0 => (Name::Src0Modifiers, 4),
            Name::Src1 => (Name::Src1Modifiers, 4),
            Name::Src2 => (Name::Src2Modifiers, 4),
            Name::Vdst => (Name::Src0Modifiers, 8),
            _ => return reg,
        };
        if self.raw_named(modifiers) & bit != 0 {
            reg.half = Some(VgprHalf::High);
        }
        reg
    }

    /// Sources of f8f6f4 products: as many dwords as the format of the matrix needs. The encoding is that
    /// of the widest format.
    fn with_format(&self, mut reg: Reg, name: Name) -> Reg {
        if !matches!(name, Name::Src0 | Name::Src1) {
            return reg;
        }
        let wmma = self.find_slot(Name::MatrixAFmt).is_some();
        let names = if wmma { [Name::MatrixAFmt, Name::MatrixBFmt] } else { [Name::Cbsz, Name::Blgp] };
        let [a, b] = names.map(|name| self.raw_named(name));
        if wmma && (a > 4 || b > 4) {
            return reg;
        }
        let format = if name == Name::Src0 { a } else { b };
        let eighths = match format {
            2 | 3 => 6,
            4 => 4,
            _ => 8,
        };
        reg.count = if wmma { eighths * 2 } else { eighths };
        reg
    }
}

fn half_register_value(index: u64, high: bool) -> OperandValue {
    OperandValue::Reg(Reg::half(index as u16, if high { VgprHalf::High } else { VgprHalf::Low }))
}

fn has_no_pieces(number: usize, slots: &[Slot]) -> bool {
    slots.get(number).is_none_or(|slot| slot.pieces().is_empty())
}

fn decoded_vector_register(dwords: u8, raw: u64) -> OperandValue {
    OperandValue::Reg(Reg::new(RegFile::Vgpr, raw as u16 & 255, dwords))
}

/// Offset of scalar memory: 24 bits from gfx12 on, 21 before, signed.
fn scalar_offset(raw: u64, isa: Isa) -> i64 {
    let bits = if isa.has(Feature::Gfx12Insts) { 24 } else { 21 };
    sign_extended(raw, bits)
}

/// The number whose lowest `bits` bits are a signed one.
pub(crate) fn sign_extended(raw: u64, bits: u32) -> i64 {
    let shift = 64 - bits;
    ((raw << shift) as i64) >> shift
}
