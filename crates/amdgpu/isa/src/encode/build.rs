//! Building an instruction from its operands.
//!
//! Invariants: operands that print nothing when they have their usual value may be omitted and get it; all others are
//! required. The result was decoded again: it is the requested table entry, with the requested registers.

use super::constant::{self, HeldLiteral};
use super::field::{decode_words, low_bits, scatter_bits};
use super::usual::usual;
use super::{EncodeError, fill, raw, rules};
use crate::effects;
use crate::kind::{Decode, KindRow, OperandType};
use crate::operand::OperandReader;
use crate::reg::{Reg, RegFile};
use crate::target_class::TargetClass;
use crate::value::OperandValue;
use crate::{Class, Feature, Flag, Inst, Isa, Name, Slot, TableEntry};

/// No instruction has more operands: images with thirteen addresses have 25.
const MOST: usize = 40;

/// The requested value of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandArg {
    Reg(Reg),
    /// The value of a source: an inline constant if one has this value, otherwise a literal.
    Constant(u64),
    /// The inline constant with this number of the source field, 128 to 208 and 240 to 248.
    Inline(u8),
    /// A literal of 32 bits, as encoded.
    Literal(u32),
    /// A literal of 64 bits.
    Literal64(u64),
    /// A plain number: offset, modifier, mask. Negative ones as far as the field holds them.
    Number(i64),
}

impl From<Reg> for OperandArg {
    fn from(reg: Reg) -> Self {
        Self::Reg(reg)
    }
}

/// The encoded form of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlacedOperand {
    Reg(Reg),
    /// A literal; its number in the field says so.
    Literal(HeldLiteral),
    /// Bits of the field.
    Bits(u64),
}

/// Most instructions do not have more than this.
const FEW: usize = 16;

/// The operands of an entry by slot.
type OperandSlots = [Option<PlacedOperand>];

/// Collects operands; [`InstructionBuilder::build`] makes the instruction.
#[derive(Debug, Clone)]
pub struct InstructionBuilder<'a> {
    isa: Isa,
    mnemonic: &'a str,
    class: Class,
    /// The first `count` of them; more than there is room for are an error.
    args: [(Name, OperandArg); MOST],
    count: usize,
}

impl<'a> InstructionBuilder<'a> {
    /// Begins an instruction with this mnemonic (without encoding suffix) in an encoding class.
    #[must_use]
    pub fn new(isa: Isa, mnemonic: &'a str, class: Class) -> Self {
        Self { isa, mnemonic, class, args: [(Name::Simm16, OperandArg::Number(0)); MOST], count: 0 }
    }

    /// Sets an operand; the last value for a name counts.
    #[must_use]
    pub fn set_operand(mut self, name: Name, arg: impl Into<OperandArg>) -> Self {
        self.put_arg(name, arg.into());
        self
    }

    /// Sets operands; the last value for a name counts.
    #[must_use]
    pub fn set_all(mut self, args: &[(Name, OperandArg)]) -> Self {
        args.iter().for_each(|(name, arg)| self.put_arg(*name, *arg));
        self
    }

    fn put_arg(&mut self, name: Name, arg: OperandArg) {
        let place = self.args().iter().position(|(given, _)| *given == name);
        self.count += usize::from(place.is_none());
        if let Some(place) = self.args.get_mut(place.unwrap_or(self.count - 1)) {
            *place = (name, arg);
        }
    }

    fn args(&self) -> &[(Name, OperandArg)] {
        self.args.get(..self.count).unwrap_or(&self.args)
    }

    /// Makes the instruction. Of several forms of the same name and class (with and without an address register, say)
    /// the first is taken that has all the operands set and requires no others.
    ///
    /// # Errors
    /// No form fits; the reason is that of the form that came closest.
    pub fn build(&self) -> Result<Inst, EncodeError> {
        self.build_among(TableEntry::all_entries())
    }

    /// The same for callers that know the candidate entries: every other table entry is skipped.
    ///
    /// # Errors
    /// As [`InstructionBuilder::build`], about the forms among these entries.
    pub fn build_among(&self, entries: impl IntoIterator<Item = TableEntry>) -> Result<Inst, EncodeError> {
        if self.count > MOST {
            return Err(EncodeError::TooMany);
        }
        build_among(self.isa, (self.mnemonic, self.class), self.args(), entries)
    }
}

/// The same for callers that have all operands together: the last value for a name counts.
///
/// # Errors
/// As [`InstructionBuilder::build`], about the forms among these entries.
pub fn build_among(
    isa: Isa,
    (mnemonic, class): (&str, Class),
    args: &[(Name, OperandArg)],
    entries: impl IntoIterator<Item = TableEntry>,
) -> Result<Inst, EncodeError> {
    let mut closest = EncodeError::UnknownInstruction;
    for entry in entries.into_iter().filter(|one| one.class() == Some(class) && one.mnemonic() == mnemonic) {
        let result = match entry.available(isa) {
            true => build_entry(isa, args, entry),
            false => Err(EncodeError::NotOnTarget),
        };
        match result {
            Ok(inst) => return Ok(inst),
            Err(error) if failure_progress(&error) > failure_progress(&closest) => closest = error,
            Err(_) => {}
        }
    }
    Err(closest)
}

fn build_entry(isa: Isa, args: &[(Name, OperandArg)], entry: TableEntry) -> Result<Inst, EncodeError> {
    let unknown = args.iter().find(|(name, _)| entry.slot(*name).is_none());
    if let Some((name, _)) = unknown {
        return Err(EncodeError::NoSuchOperand(*name));
    }
    assemble_entry(entry, isa, |name: Name| args.iter().rev().find(|(given, _)| *given == name).map(|(_, arg)| *arg))
}

/// How far a form got before it failed.
fn failure_progress(error: &EncodeError) -> u8 {
    match error {
        EncodeError::UnknownInstruction => 0,
        EncodeError::NotOnTarget => 1,
        EncodeError::NoSuchOperand(_) => 2,
        EncodeError::Missing(_) => 3,
        EncodeError::WrongSort(_) => 4,
        EncodeError::NotInClass { .. } | EncodeError::WrongSize { .. } => 5,
        _ => 6,
    }
}

/// The instruction assembled again from its decoded operands, as an assembler would encode it. Bits that do not matter
/// get the values that LLVM 23 sets, whatever they were.
///
/// # Errors
/// The operands break a rule that hardware or decoder do not enforce.
pub fn reassemble(inst: &Inst, isa: Isa) -> Result<Inst, EncodeError> {
    let entry = inst.entry();
    assemble_entry(entry, isa, |name: Name| {
        let slot = entry.slot(name)?;
        if slot.pieces().is_empty() && !has_partner(entry, slot) {
            return None;
        }
        match inst.operand(isa, name)? {
            OperandValue::Reg(reg) => Some(OperandArg::Reg(reg)),
            OperandValue::Inline(inline) => Some(OperandArg::Inline(inline.code)),
            OperandValue::Literal(literal) if literal.wide => Some(OperandArg::Literal64(literal.value)),
            OperandValue::Literal(literal) => {
                let upper = constant::is_float64(slot.operand_kind().operand_type) && !literal.explicit;
                Some(OperandArg::Literal((literal.value >> if upper { 32 } else { 0 }) as u32))
            }
            OperandValue::Imm(_) if slot.operand_kind().decode == Decode::ScalarOffset => {
                inst.operand(isa, name).and_then(number_arg)
            }
            OperandValue::Imm(_) => Some(OperandArg::Number(inst.raw_slot(slot) as i64)),
            OperandValue::None => None,
        }
    })
}

fn number_arg(value: OperandValue) -> Option<OperandArg> {
    match value {
        OperandValue::Imm(number) => Some(OperandArg::Number(number)),
        _ => None,
    }
}

/// Puts operands into an entry.
fn assemble_entry(
    entry: TableEntry,
    isa: Isa,
    given: impl Fn(Name) -> Option<OperandArg>,
) -> Result<Inst, EncodeError> {
    match entry.slots().len() {
        0..=FEW => assemble_in(&mut [None; FEW], entry, isa, given),
        _ => assemble_in(&mut [None; MOST], entry, isa, given),
    }
}

/// The same, with room for the operands.
fn assemble_in(
    operands: &mut OperandSlots,
    entry: TableEntry,
    isa: Isa,
    given: impl Fn(Name) -> Option<OperandArg>,
) -> Result<Inst, EncodeError> {
    let slots = entry.slots();
    for (slot, operand) in slots.iter().zip(operands.iter_mut()) {
        *operand = match given(slot.name) {
            Some(arg) => place_operand(entry, slot, arg, isa)?,
            None if slot.pieces().is_empty() => None,
            None => Some(PlacedOperand::Bits(usual(entry, slot).ok_or(EncodeError::Missing(slot.name))?)),
        };
    }
    spread_modifiers(entry, operands)?;
    join_partners(slots, operands);
    rules::ties(entry, operands)?;
    let literal = one_literal(slots, operands)?;
    rules::constant_bus(entry, isa, operands)?;
    let mut words = fill::initial_words(entry, isa);
    write_operands(entry, isa, operands, &mut words)?;
    let len = append_literal(entry, slots, literal, &mut words);
    let inst = decode_words(isa, &words)?;
    verify_encoding(entry, &inst, isa, operands, len)?;
    Ok(inst)
}

fn place_literal(entry: TableEntry, slot: &Slot, literal: HeldLiteral, isa: Isa) -> Result<PlacedOperand, EncodeError> {
    allow_literal(entry, slot.operand_kind(), slot.name, literal, isa).map(PlacedOperand::Literal)
}

/// Checks one operand and computes the value of its field.
pub(super) fn place_operand(
    entry: TableEntry,
    slot: &Slot,
    arg: OperandArg,
    isa: Isa,
) -> Result<Option<PlacedOperand>, EncodeError> {
    let (kind, name) = (slot.operand_kind(), slot.name);
    if slot.pieces().is_empty() && !has_partner(entry, slot) {
        return implied_operand(entry, slot, arg);
    }
    let placed = match arg {
        OperandArg::Reg(reg) => {
            // A tied operand lacks bits; its partner is checked, and the two must be equal.
            if !slot.pieces().is_empty() {
                check_register(entry, slot, kind, reg, isa)?;
            }
            PlacedOperand::Reg(reg)
        }
        OperandArg::Inline(code @ (128..=208 | 240..=248)) => {
            if !kind.operand_type.is_source() || kind.operand_type == OperandType::Register {
                return Err(EncodeError::WrongSort(name));
            }
            PlacedOperand::Bits(raw::encode_constant(kind.decode, name, u64::from(code))?)
        }
        OperandArg::Inline(code) => return Err(EncodeError::NotInline { name, value: u64::from(code) }),
        OperandArg::Literal(value) => place_literal(entry, slot, HeldLiteral::Short(value), isa)?,
        OperandArg::Literal64(value) => place_literal(entry, slot, HeldLiteral::Long(value), isa)?,
        OperandArg::Constant(value) => match constant::inline_constant(kind.operand_type, value, isa) {
            Some(code) => PlacedOperand::Bits(raw::encode_constant(kind.decode, name, u64::from(code))?),
            None if !constant::takes_literal(kind.operand_type) => return Err(EncodeError::NotInline { name, value }),
            None => {
                let long = takes_long_literal(entry, isa);
                let found = constant::encode_literal(kind.operand_type, value, long);
                place_literal(entry, slot, found.ok_or(EncodeError::LiteralNotAllowed(name))?, isa)?
            }
        },
        OperandArg::Number(value) => {
            if kind.operand_type.is_source() && kind.decode != Decode::Dpp8FetchInvalid {
                return Err(EncodeError::WrongSort(name));
            }
            // The field of the fetch-invalid flag is stored unchanged; the request is for the flag.
            let value = if matches!(value, 0xe9 | 0xea) && kind.decode == Decode::Dpp8FetchInvalid {
                value as u64
            } else {
                raw::encode_number(kind.decode, name, value)?
            };
            PlacedOperand::Bits(fit_number(entry, slot, value)?)
        }
    };
    Ok(Some(placed))
}

/// An operand without bits: modifiers are spread later, everything else must have the value that the encoding implies.
fn implied_operand(entry: TableEntry, slot: &Slot, arg: OperandArg) -> Result<Option<PlacedOperand>, EncodeError> {
    match arg {
        OperandArg::Number(value) if source_modifier_bit(slot.name).is_some() && value >= 0 => {
            Ok(Some(PlacedOperand::Bits(value as u64)))
        }
        OperandArg::Number(0) => Ok(None),
        OperandArg::Number(1) if slot.name == Name::Cpol && entry.is(Flag::AtomicRet) => Ok(None),
        _ => Err(EncodeError::Implied(slot.name)),
    }
}

/// A number as the field holds it.
fn fit_number(entry: TableEntry, slot: &Slot, value: u64) -> Result<u64, EncodeError> {
    let held = slot.pieces().iter().fold(0, |held, piece| held | low_bits(piece.width) << piece.from.min(63));
    // The bit that says "returns the old value" is fixed in the encoding.
    let fixed = if slot.name == Name::Cpol && entry.is(Flag::AtomicRet) { 1 } else { 0 };
    let value = if value & held != value && (value | fixed) == value { value & !fixed } else { value };
    let negative = (value as i64) < 0 && (value | held >> 1) == u64::MAX;
    match value & !held {
        0 => Ok(value),
        _ if negative => Ok(value & held),
        _ => Err(EncodeError::OutOfRange { name: slot.name, value, bits: held }),
    }
}

fn check_register(entry: TableEntry, slot: &Slot, kind: &KindRow, reg: Reg, isa: Isa) -> Result<(), EncodeError> {
    let name = slot.name;
    if matches!(kind.decode, Decode::Imm | Decode::Literal32 | Decode::Literal64) {
        return Err(EncodeError::WrongSort(name));
    }
    if let Some(multiple) = required_alignment(reg).filter(|multiple| !reg.index.is_multiple_of(u16::from(*multiple))) {
        return Err(EncodeError::Unaligned { name, reg, multiple });
    }
    let is_vector = matches!(reg.file, RegFile::Vgpr | RegFile::Agpr);
    // A tuple may reach into the next bank where there is one.
    let last = if isa.has(Feature::N1024AddressableVgprs) { 256 + 31 } else { 256 };
    if is_vector && reg.half.is_none() && u16::from(reg.count) + reg.index > last {
        return Err(EncodeError::NotInClass { name, reg });
    }
    let wanted = raw::register_dwords(kind.decode, isa).filter(|wanted| *wanted != reg.count);
    if let Some(wanted) = wanted.filter(|_| !effects::sized_by_fields(entry) && reg.file != RegFile::Special) {
        return Err(EncodeError::WrongSize { name, wanted, found: reg.count });
    }
    let class = TargetClass::new(kind.class, isa);
    if !class.contains(reg) {
        let even = Reg { index: reg.index & !1, ..reg };
        let unaligned = is_vector && reg.index & 1 != 0 && class.contains(even);
        return Err(match unaligned {
            true => EncodeError::Unaligned { name, reg, multiple: 2 },
            false => EncodeError::NotInClass { name, reg },
        });
    }
    Ok(())
}

/// The required alignment of a scalar tuple's first register.
fn required_alignment(reg: Reg) -> Option<u8> {
    match (reg.file, reg.count) {
        (RegFile::Sgpr | RegFile::Ttmp, 2) => Some(2),
        (RegFile::Sgpr | RegFile::Ttmp, 3..) => Some(4),
        _ => None,
    }
}

/// Whether the encoding has room for a literal after it.
fn allow_literal(
    entry: TableEntry,
    kind: &KindRow,
    name: Name,
    literal: HeldLiteral,
    isa: Isa,
) -> Result<HeldLiteral, EncodeError> {
    let refused = Err(EncodeError::LiteralNotAllowed(name));
    let literal = match (kind.decode, literal) {
        (Decode::Literal32, HeldLiteral::Long(value)) => match u32::try_from(value) {
            Ok(value) => HeldLiteral::Short(value),
            Err(_) => return refused,
        },
        (Decode::Literal64, HeldLiteral::Short(value)) => HeldLiteral::Long(u64::from(value)),
        (_, literal) => literal,
    };
    if matches!(kind.decode, Decode::Literal32 | Decode::Literal64) {
        return Ok(literal);
    }
    let longest = if isa.has(Feature::Vop3Literal) { 8 } else { 4 };
    let fits = match literal {
        _ if has_literal_field(entry) => true,
        HeldLiteral::Short(_) => entry.bytes() <= longest,
        HeldLiteral::Long(_) => takes_long_literal(entry, isa),
    };
    let takes = constant::takes_literal(kind.operand_type) || accepts_mix_literal(entry, kind.operand_type);
    if takes && fits { Ok(literal) } else { refused }
}

/// `v_fma_mix` and similar: the rows list inline constants, LLVM's assembler accepts literals as well (from gfx10 on).
fn accepts_mix_literal(entry: TableEntry, operand: OperandType) -> bool {
    entry.class() == Some(Class::Vop3p)
        && matches!(operand, OperandType::RegInlineCFp16 | OperandType::RegInlineCBf16)
        && entry.slot(Name::Src0Modifiers).is_some()
}

fn takes_long_literal(entry: TableEntry, isa: Isa) -> bool {
    isa.has(Feature::N64BitLiterals) && entry.bytes() == 4
}

fn has_literal_field(entry: TableEntry) -> bool {
    entry.slots().iter().any(|slot| matches!(slot.operand_kind().decode, Decode::Literal32 | Decode::Literal64))
}

/// The literal that all operands share.
fn one_literal(slots: &[Slot], operands: &OperandSlots) -> Result<Option<HeldLiteral>, EncodeError> {
    let mut found = None;
    for (slot, operand) in slots.iter().zip(operands) {
        let Some(PlacedOperand::Literal(literal)) = operand else { continue };
        if found.is_some_and(|found| found != *literal) {
            return Err(EncodeError::TwoLiterals(slot.name));
        }
        found = Some(*literal);
    }
    Ok(found)
}

/// Modifiers of all sources in one operand: the corresponding bit of each source's own modifiers.
fn source_modifier_bit(name: Name) -> Option<u64> {
    match name {
        Name::NegLo => Some(1),
        Name::NegHi => Some(2),
        Name::OpSel => Some(4),
        Name::OpSelHi => Some(8),
        _ => None,
    }
}

/// Puts `op_sel`, `op_sel_hi`, `neg_lo` and `neg_hi` that lack bits of their own into the sources' modifiers.
fn spread_modifiers(entry: TableEntry, operands: &mut OperandSlots) -> Result<(), EncodeError> {
    const MODIFIERS: [Name; 3] = [Name::Src0Modifiers, Name::Src1Modifiers, Name::Src2Modifiers];
    let slots = entry.slots();
    for (number, slot) in slots.iter().enumerate() {
        let (Some(bit), true) = (source_modifier_bit(slot.name), slot.pieces().is_empty()) else { continue };
        let Some(Some(PlacedOperand::Bits(value))) = operands.get(number).copied() else { continue };
        for (source, name) in MODIFIERS.into_iter().enumerate() {
            let place = slots.iter().position(|slot| slot.name == name).and_then(|place| operands.get_mut(place));
            match place {
                Some(Some(PlacedOperand::Bits(bits))) if value >> source & 1 != 0 => *bits |= bit,
                Some(Some(PlacedOperand::Bits(bits))) => *bits &= !bit,
                _ if value >> source & 1 != 0 => return Err(EncodeError::Implied(slot.name)),
                _ => {}
            }
        }
        let result = slots.iter().position(|slot| slot.name == Name::Src0Modifiers);
        if let (8.., Name::OpSel, Some(Some(PlacedOperand::Bits(bits)))) =
            (value, slot.name, result.and_then(|place| operands.get_mut(place)))
        {
            *bits |= 8;
        }
        if let Some(operand) = operands.get_mut(number) {
            *operand = None;
        }
    }
    Ok(())
}

/// Whether another slot holds the register of this one.
fn has_partner(entry: TableEntry, slot: &Slot) -> bool {
    let number = entry.slots().iter().position(|other| other.name == slot.name);
    slot.tied.is_some() || entry.slots().iter().any(|other| other.tied.map(usize::from) == number && number.is_some())
}

/// Copies the operand of each half of a tied pair to the other half.
fn join_partners(slots: &[Slot], operands: &mut OperandSlots) {
    for (number, slot) in slots.iter().enumerate() {
        let Some(partner) = slot.tied.map(usize::from) else { continue };
        let own = operands.get(number).copied().flatten();
        let other = operands.get(partner).copied().flatten();
        if let (None, Some(place)) = (own, operands.get_mut(number)) {
            *place = other;
        }
        if let (None, Some(place)) = (other, operands.get_mut(partner)) {
            *place = own;
        }
    }
}

/// Puts the operands into the words: numbers first, because a half register also sets a bit of the modifiers.
fn write_operands(
    entry: TableEntry,
    isa: Isa,
    operands: &OperandSlots,
    words: &mut [u32; 5],
) -> Result<(), EncodeError> {
    for (slot, operand) in entry.slots().iter().zip(operands) {
        let value = match operand {
            Some(PlacedOperand::Bits(bits)) => *bits,
            Some(PlacedOperand::Literal(literal)) => literal_bits(slot.operand_kind(), slot.name, *literal)?,
            Some(PlacedOperand::Reg(_)) | None => continue,
        };
        put_value(slot, words, value)?;
    }
    for (number, slot) in entry.slots().iter().enumerate() {
        let Some(Some(PlacedOperand::Reg(reg))) = operands.get(number).copied() else { continue };
        if !slot.pieces().is_empty() {
            put_register(entry, number as u8, reg, isa, words)?;
        }
    }
    Ok(())
}

/// Puts a register into the field of operand number `number`, and its half into the bit elsewhere that selects it.
pub(super) fn put_register(
    entry: TableEntry,
    number: u8,
    reg: Reg,
    isa: Isa,
    words: &mut [u32; 5],
) -> Result<(), EncodeError> {
    let Some(slot) = entry.slots().get(usize::from(number)) else { return Err(EncodeError::Undecodable) };
    let kind = slot.operand_kind();
    let value = raw::encode_register(kind.decode, slot.name, reg, isa)? | marks_vector(kind.decode, slot);
    match effects::half_piece(entry, number) {
        Some(piece) if reg.half.is_some() => {
            put_value(slot, words, value & !512)?;
            // The shifted bit always fits: the piece holds exactly it.
            let _ = scatter_bits(words, &[piece], value & 512);
            Ok(())
        }
        _ if kind.decode == Decode::DualResultY => put_value(slot, words, value & !1),
        _ => put_value(slot, words, value),
    }
}

/// Bit 8 of a field of nine bits, which marks a vector register also where nothing else is possible.
fn marks_vector(decode: Decode, slot: &Slot) -> u64 {
    let has_it = slot.pieces().iter().any(|piece| piece.from <= 8 && piece.from + piece.width > 8);
    if decode == Decode::Half && has_it { 256 } else { 0 }
}

pub(super) fn put_value(slot: &Slot, words: &mut [u32; 5], value: u64) -> Result<(), EncodeError> {
    scatter_bits(words, slot.pieces(), value).map_err(|bits| EncodeError::OutOfRange { name: slot.name, value, bits })
}

pub(super) fn literal_bits(kind: &KindRow, name: Name, literal: HeldLiteral) -> Result<u64, EncodeError> {
    match (kind.decode, literal) {
        (Decode::Literal32 | Decode::Literal64, HeldLiteral::Short(value)) => Ok(u64::from(value)),
        (Decode::Literal32 | Decode::Literal64, HeldLiteral::Long(value)) => Ok(value),
        (decode, HeldLiteral::Short(_)) => raw::encode_constant(decode, name, raw::LITERAL32),
        (decode, HeldLiteral::Long(_)) => raw::encode_constant(decode, name, raw::LITERAL64),
    }
}

/// Puts the literal after the encoding unless it is a field of it; returns the length.
fn append_literal(entry: TableEntry, slots: &[Slot], literal: Option<HeldLiteral>, words: &mut [u32; 5]) -> u8 {
    let end = entry.bytes();
    let field = slots.iter().any(|slot| matches!(slot.operand_kind().decode, Decode::Literal32 | Decode::Literal64));
    let (low, high) = match literal {
        Some(HeldLiteral::Short(value)) if !field => (value, None),
        Some(HeldLiteral::Long(value)) if !field => (value as u32, Some((value >> 32) as u32)),
        _ => return end,
    };
    let place = usize::from(end / 4);
    for (offset, value) in [Some(low), high].into_iter().enumerate() {
        if let (Some(word), Some(value)) = (words.get_mut(place + offset), value) {
            *word = value;
        }
    }
    end + if high.is_some() { 8 } else { 4 }
}

/// Checks that the result is the requested entry and has the requested registers.
fn verify_encoding(
    entry: TableEntry,
    inst: &Inst,
    isa: Isa,
    operands: &OperandSlots,
    len: u8,
) -> Result<(), EncodeError> {
    if inst.entry() != entry {
        return Err(EncodeError::OtherInstruction { wanted: entry, found: inst.entry() });
    }
    if inst.len() != len {
        return Err(EncodeError::OtherLength { before: len, after: inst.len() });
    }
    let reader = OperandReader::new(*inst, isa);
    for (number, (slot, placed)) in entry.slots().iter().zip(operands).enumerate() {
        // Only registers are compared, and most operands are not registers.
        let Some(PlacedOperand::Reg(wanted)) = placed else { continue };
        let OperandValue::Reg(found) = reader.operand_value(number) else { continue };
        if found.count != wanted.count {
            return Err(EncodeError::WrongSize { name: slot.name, wanted: found.count, found: wanted.count });
        }
        if found != *wanted {
            return Err(EncodeError::NoEncoding(slot.name));
        }
    }
    Ok(())
}
