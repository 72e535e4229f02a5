//! Vector instructions.

use super::operands::OperandReader;
use super::{MnemonicPlan, names};
use crate::execute::{self, InstHandler, dpp, vector};
use crate::micro::{
    DestOperand, DppControl, DppPattern, Extra, MicroOp, MicroOpBody, Modifiers, SdwaControl, SourceOperand,
};
use crate::registers::{EXEC, VCC};
use hotswap_isa::{Class, Feature, Flag, Implicit, Name, TableEntry};
use hotswap_semantics::{CompareRow, InstSemantics, LaneFunction, LaneType, PackedRow, VectorRow};

/// Instructions that compute in each lane on its own.
pub(super) fn translate_row(reader: &OperandReader, op: MicroOp, row: &'static VectorRow) -> Option<MicroOp> {
    let mut op = with_operands(reader, op)?;
    let function = if op.modifiers.clamp && !row.result.is_float() { row.clamped? } else { row.function };
    if row.result.bits() == 16 {
        op.target = upper_if_selected(reader, op.target);
        op.modifiers.zero_upper = zeroes_upper(reader);
    }
    op.body = MicroOpBody::Vector { row, function };
    op.is_apart = op.writes_apart();
    if matches!(function, LaneFunction::Carry(_) | LaneFunction::CarryWide(_)) {
        op.mask_source = mask_source(reader)?;
        op.scalar_target = carry_target(reader)?;
    }
    let plain_integer = op.modifiers.clamp && !row.result.is_float();
    let bare =
        MicroOp { modifiers: Modifiers { clamp: op.modifiers.clamp && !plain_integer, ..op.modifiers }, ..op.clone() };
    let is_scalar = !matches!(op.target, DestOperand::Vector { .. });
    op.handler = match function {
        _ if is_scalar => vector::general(),
        LaneFunction::Narrow(_) if bare.is_plain(row.sources, row.result) => vector::plain(),
        LaneFunction::Narrow(_) if row.has_words() && bare.is_signed_only() => vector::signed(),
        LaneFunction::Narrow(_) if row.has_words() && bare.has_only_parts() => vector::parts(),
        LaneFunction::Carry(_) if bare.is_plain(row.sources, row.result) => vector::plain_carry(),
        LaneFunction::Wide(_) | LaneFunction::CarryWide(_) if bare.is_signed_only() => vector::plain_wide(),
        _ => vector::general(),
    };
    Some(op)
}

/// Whether a 16-bit result sets the upper half to 0: on gfx9, but for instructions that may write either half, and for
/// multiply-adds. Source: `GCNSubtarget::zeroesHigh16BitsOfDest` of LLVM.
fn zeroes_upper(reader: &OperandReader) -> bool {
    const KEEPING: [&str; 6] = ["v_mac_f16", "v_madak_f16", "v_madmk_f16", "v_fmac_f16", "v_fmaak_f16", "v_fmamk_f16"];
    let inst = &reader.inst;
    !reader.isa.has(Feature::Gfx10Insts) && !inst.is(Flag::Vop3Opsel) && !KEEPING.contains(&inst.mnemonic())
}

/// A 16-bit result goes to the upper half if the modifier says so.
pub(super) fn upper_if_selected(reader: &OperandReader, target: DestOperand) -> DestOperand {
    let selected = reader.inst.raw(Name::Src0Modifiers).unwrap_or(0) & 8 != 0;
    match target {
        DestOperand::Vector { register, high } => DestOperand::Vector { register, high: high || selected },
        other => other,
    }
}

/// The bit of each lane that is read: the third source or VCC.
fn mask_source(reader: &OperandReader) -> Option<SourceOperand> {
    if reader.kind(Name::Src2) == "SSrc_i1" {
        reader.source_operand(Name::Src2)
    } else {
        Some(SourceOperand::Scalar(VCC))
    }
}

/// The mask that is written.
fn carry_target(reader: &OperandReader) -> Option<DestOperand> {
    if reader.is_written(Name::Sdst) {
        return reader.target_operand(Name::Sdst);
    }
    let writes_vcc = reader.inst.entry().implicit_writes() >> Implicit::Vcc as u32 & 1 != 0;
    Some(if writes_vcc { DestOperand::Scalar(VCC) } else { DestOperand::None })
}

/// Sources, target, modifiers and lanes.
pub(super) fn with_operands(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    let mut op = op;
    if reader.has(Name::Vdst) {
        op.target = reader.target_operand(Name::Vdst)?;
    }
    let mut place = 0;
    for (number, operand) in reader.numbered_operands() {
        let modifier = match operand.name {
            Name::Src0 => Name::Src0Modifiers,
            Name::Src1 => Name::Src1Modifiers,
            Name::Src2 if operand.kind().name == "SSrc_i1" => continue,
            Name::Src2 => Name::Src2Modifiers,
            Name::Imm => Name::Simm16,
            _ => continue,
        };
        *op.sources.get_mut(place)? = reader.source_at(number)?;
        if operand.name != Name::Imm {
            add_modifiers(reader, &mut op.modifiers, modifier, place, number);
        }
        place += 1;
    }
    op.modifiers.output = reader.inst.raw(Name::Omod).unwrap_or(0) as u8;
    op.modifiers.clamp = reader.inst.raw(Name::Clamp).unwrap_or(0) != 0;
    op.extra = lanes_or_parts(reader)?.map(Box::new);
    Some(op)
}

fn is_packed(reader: &OperandReader) -> bool {
    matches!(reader.inst.class(), Some(Class::Vop3p | Class::Vop3pDpp8 | Class::Vop3pDpp16))
}

/// The modifiers of one source. Those of SDWA integers are part of [`SdwaControl`].
fn add_modifiers(reader: &OperandReader, modifiers: &mut Modifiers, name: Name, place: usize, number: usize) {
    let raw = reader.inst.raw(name).unwrap_or(0) as u8;
    let bit = 1 << place;
    let mut set = |field: fn(&mut Modifiers) -> &mut u8, mask: u8| {
        if raw & mask != 0 {
            *field(modifiers) |= bit;
        }
    };
    if reader.kind(name).starts_with("FP") || is_packed(reader) {
        set(|modifiers| &mut modifiers.negative, 1);
        set(|modifiers| &mut modifiers.absolute, 2);
    }
    // Where a half is named, the register says which.
    if !reader.is_half(number) {
        set(|modifiers| &mut modifiers.select, 4);
    }
    if is_packed(reader) {
        set(|modifiers| &mut modifiers.select_high, 8);
    }
}

/// The part that says which lanes, or which parts of registers. The outer `None` is an unknown form.
fn lanes_or_parts(reader: &OperandReader) -> Option<Option<Extra>> {
    let raw = |name: Name| reader.inst.raw(name).unwrap_or(0);
    use Class as C;
    match reader.inst.class()? {
        C::Vop1Dpp8 | C::Vop2Dpp8 | C::VopcDpp8 | C::Vop3Dpp8 | C::Vop3pDpp8 => {
            let pattern = DppPattern::Eight(raw(Name::Dpp8) as u32);
            let fetch_inactive = fetches_inactive(reader);
            let control = DppControl { pattern, row_mask: 15, bank_mask: 15, bound_control: true, fetch_inactive };
            Some(Some(Extra::Dpp(control)))
        }
        C::Vop1Dpp16 | C::Vop2Dpp16 | C::VopcDpp16 | C::Vop3Dpp16 | C::Vop3pDpp16 => {
            let pattern = DppPattern::Sixteen(raw(Name::DppCtrl) as u16);
            let control = DppControl {
                pattern,
                row_mask: raw(Name::RowMask) as u8,
                bank_mask: raw(Name::BankMask) as u8,
                bound_control: raw(Name::BoundCtrl) != 0,
                fetch_inactive: raw(Name::Fi) != 0,
            };
            dpp::is_known(pattern).then_some(Some(Extra::Dpp(control)))
        }
        C::Vop1Sdwa | C::Vop2Sdwa | C::VopcSdwa => Some(Some(Extra::Sdwa(sdwa_control(reader)))),
        _ => Some(None),
    }
}

/// The flag of DPP8 is the number in the field of the first source.
fn fetches_inactive(reader: &OperandReader) -> bool {
    matches!(reader.immediate_number(Name::Fi), 1 | 0xea)
}

fn sdwa_control(reader: &OperandReader) -> SdwaControl {
    let raw = |name: Name| reader.inst.raw(name).unwrap_or(0) as u8;
    let whole_if_absent = |name: Name| if reader.has(name) { raw(name) } else { 6 };
    let signed = |name: Name| raw(name) & 16 != 0;
    SdwaControl {
        source_select: [whole_if_absent(Name::Src0Sel), whole_if_absent(Name::Src1Sel)],
        sign_extend: [signed(Name::Src0Modifiers), signed(Name::Src1Modifiers)],
        target_select: whole_if_absent(Name::DstSel),
        unused: raw(Name::DstUnused),
    }
}

pub(super) fn translate_compare(reader: &OperandReader, op: MicroOp, row: CompareRow) -> Option<MicroOp> {
    let mut op = with_operands(reader, op)?;
    // The bit means that NaNs raise exceptions.
    op.modifiers.clamp = false;
    op.scalar_target = match () {
        () if row.writes_exec => DestOperand::Scalar(EXEC),
        () if reader.has(Name::Sdst) => reader.target_operand(Name::Sdst)?,
        () => DestOperand::Scalar(VCC),
    };
    let second = vector::second_of(row.operation, row.of);
    let handler = match row.of.bits() {
        64 if op.is_signed_only() => vector::compare_wide(),
        16 | 32 if op.is_signed_only() && second.bits() == row.of.bits() => vector::compare_words(),
        _ => vector::compare_lanes,
    };
    Some(MicroOp { handler, body: MicroOpBody::Compare(row), ..op })
}

/// Operations on two numbers in one register.
pub(super) fn translate_packed(reader: &OperandReader, op: MicroOp, row: &'static PackedRow) -> Option<MicroOp> {
    let mut op = with_operands(reader, op)?;
    if !is_packed(reader) {
        // `v_pk_fmac_f16` lacks modifiers: lower with lower, upper with upper. LLVM does not name the target as the
        // third source, which it is.
        op.modifiers.select_high = 7;
        let DestOperand::Vector { register, high } = op.target else { return None };
        op.sources[2] = SourceOperand::Vector { register, high };
    }
    let function = if op.modifiers.clamp && !row.of.is_float() { row.clamped? } else { row.function };
    Some(MicroOp { handler: execute::packed::compute_pair, body: MicroOpBody::Packed { row, function }, ..op })
}

/// Instructions with a handler of their own.
pub(super) fn translate_special(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    let mut op = with_operands(reader, op)?;
    op.immediate = reader.inst.raw(Name::Bitop3).unwrap_or(0) as i64;
    let is_upper = matches!(reader.inst.mnemonic(), "v_fma_mixhi_f16" | "v_fma_mixhi_bf16" | "v_mad_mixhi_f16");
    if let (true, DestOperand::Vector { register, .. }) = (is_upper, op.target) {
        op.target = DestOperand::Vector { register, high: true };
    }
    if reader.inst.mnemonic() == "v_bitop3_b16" {
        op.target = upper_if_selected(reader, op.target);
    }
    if let (Name::Vdst1, true) = (Name::Vdst1, reader.has(Name::Vdst1)) {
        op.sources[0] = reader.source_operand(Name::Vdst1)?;
    }
    if reader.inst.mnemonic().starts_with("v_permlane") {
        // Bits of `op_sel`: fetch inactive lanes, bound control.
        op.modifiers.select = reader.inst.raw(Name::OpSel).map_or(op.modifiers.select, |raw| raw as u8);
    }
    let known_extra = op.extra.is_none() || handles_lanes(op.handler);
    known_extra.then_some(op)
}

/// Whether a handler reads its sources with other lanes and parts.
fn handles_lanes(handler: InstHandler) -> bool {
    let with: [InstHandler; 4] = [
        execute::mixed::bytes_product,
        execute::mixed::nibbles_product,
        execute::mixed::combine_words,
        execute::mixed::combine_halves,
    ];
    with.iter().any(|known| std::ptr::fn_addr_eq(*known, handler))
}

/// The names of both halves of a dual instruction.
pub(super) fn half_names(entry: TableEntry) -> Option<[&'static str; 2]> {
    let first = entry.mnemonic().strip_prefix("v_dual_")?;
    let second = entry.template().split("v_dual_").nth(1)?.split([' ', '$']).next()?;
    Some([first, second])
}

/// The row of a half.
pub(super) fn half_row(name: &str) -> Option<&'static VectorRow> {
    match names::find_plan(&format!("v_{name}")) {
        Some(MnemonicPlan::Meaning(InstSemantics::Vector(row))) => Some(row),
        _ if name == "bitop2_b32" => Some(&hotswap_semantics::TWO_SOURCE_TABLE),
        _ => None,
    }
}

pub(super) fn translate_dual(reader: &OperandReader, op: MicroOp) -> Option<MicroOp> {
    let [first, second] = half_names(reader.inst.entry())?;
    let x = [Name::VdstX, Name::Src0X, Name::Vsrc1X, Name::Vsrc2X];
    let y = [Name::VdstY, Name::Src0Y, Name::Vsrc1Y, Name::Vsrc2Y];
    let modifiers = [
        [Name::Src0XModifiers, Name::Vsrc1XModifiers, Name::Vsrc2XModifiers],
        [Name::Src0YModifiers, Name::Vsrc1YModifiers, Name::Vsrc2YModifiers],
    ];
    let halves =
        [translate_half(reader, &op, first, x, modifiers[0])?, translate_half(reader, &op, second, y, modifiers[1])?];
    Some(MicroOp { handler: execute::dual::execute_both, extra: Some(Box::new(Extra::Dual(Box::new(halves)))), ..op })
}

/// One half of a dual instruction.
fn translate_half(
    reader: &OperandReader,
    op: &MicroOp,
    name: &str,
    names: [Name; 4],
    modifiers: [Name; 3],
) -> Option<MicroOp> {
    let row = half_row(name)?;
    let mut op = op.clone();
    let [target, src0, src1, src2] = names;
    op.target = reader.target_operand(target)?;
    op.sources[0] = reader.source_operand(src0)?;
    if reader.has(src1) {
        op.sources[1] = reader.source_operand(src1)?;
    }
    if reader.kind(src2) == "SSrc_i1" {
        op.mask_source = reader.source_operand(src2)?;
    } else {
        op.mask_source = SourceOperand::Scalar(VCC);
        if reader.has(src2) {
            op.sources[2] = reader.source_operand(src2)?;
        }
    }
    match name {
        "fmac_f32" | "dot2acc_f32_f16" | "dot2acc_f32_bf16" | "dot2c_f32_f16" => {
            let DestOperand::Vector { register, high } = op.target else { return None };
            op.sources[2] = SourceOperand::Vector { register, high };
        }
        "bitop2_b32" => op.sources[2] = SourceOperand::Constant(reader.inst.raw(Name::Bitop3)?),
        "fmaak_f32" => op.sources[2] = SourceOperand::Constant(reader.inst.literal()?),
        "fmamk_f32" => {
            op.sources[2] = op.sources[1];
            op.sources[1] = SourceOperand::Constant(reader.inst.literal()?);
        }
        _ => {}
    }
    for (place, modifier) in modifiers.into_iter().enumerate() {
        let raw = reader.inst.raw(modifier).unwrap_or(0);
        op.modifiers.negative |= u8::from(raw & 1 != 0) << place;
    }
    debug_assert!(row.result != LaneType::B64 || !op.modifiers.clamp);
    op.body = MicroOpBody::Vector { row, function: row.function };
    Some(op)
}
