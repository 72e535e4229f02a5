//! Vector instructions that compute in each lane on its own.

use super::{
    ExecContext, InstHandler, NO_LANES, StepFault, StepFlow, StepResult, lanes_of, mask_of, scalar_of, wide_of,
    write_lanes,
};
use super::{dpp, sdwa};
use crate::micro::{DestOperand, Extra, MicroOp, MicroOpBody, SourceOperand};
use crate::wave::WaveState;
use hotswap_semantics::{
    CompareOperation, FloatMode, LANES, LaneFunction, LaneType, Lanes, WideLanes, f16_to_f32, for_this_processor,
    high_lanes, join_lanes, low_lanes, round_to_f16,
};

/// A handler whose body is compiled for long vectors too; the function chooses.
macro_rules! long_handler {
    ($(#[$meta:meta])* $name:ident, $all:ident) => {
        $(#[$meta])*
        pub(crate) fn $name() -> InstHandler {
            for_this_processor!($all(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult)
        }
    };
}

long_handler!(
    /// 32-bit sources and result, no modifiers.
    plain,
    plain_lanes
);
long_handler!(
    /// Any sizes, any modifiers.
    general,
    general_lanes
);
long_handler!(
    /// 32-bit sources and result; some sources have another sign, or none.
    signed,
    signed_sources
);
long_handler!(
    /// As [`plain`], with parts of registers (SDWA).
    parts,
    part_lanes
);
long_handler!(
    /// As [`plain`], with a bit of each lane read and written.
    plain_carry,
    plain_carry_lanes
);
long_handler!(
    /// Sources and results of 64 bits, no modifiers but signs.
    plain_wide,
    plain_wide_lanes
);
long_handler!(
    /// A comparison of 16 or 32 bits without modifiers but signs.
    compare_words,
    compare_word_lanes
);
long_handler!(
    /// The same of 64 bits.
    compare_wide,
    compare_wide_lanes
);

#[inline(always)]
fn plain_lanes(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (MicroOpBody::Vector { function, .. }, DestOperand::Vector { register, .. }) = (op.body, op.target) else {
        return Err(StepFault::unknown(op, ""));
    };
    let LaneFunction::Narrow(function) = function else { return Err(StepFault::unknown(op, "")) };
    write_words(step, op, (register, 0), LaneFunction::Narrow(function), None);
    if step.wave.halves == 2 {
        write_words(step, op, (register, 1), LaneFunction::Narrow(function), None);
    }
    Ok(StepFlow::Next)
}

#[inline(always)]
fn signed_sources(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (MicroOpBody::Vector { row, function }, DestOperand::Vector { register, .. }) = (op.body, op.target) else {
        return Err(StepFault::unknown(op, ""));
    };
    let LaneFunction::Narrow(function) = function else { return Err(StepFault::unknown(op, "")) };
    write_words(step, op, (register, 0), LaneFunction::Narrow(function), Some(row.sources));
    if step.wave.halves == 2 {
        write_words(step, op, (register, 1), LaneFunction::Narrow(function), Some(row.sources));
    }
    Ok(StepFlow::Next)
}

/// Computes words of the active lanes of half a wave and writes them to a register: where these are all lanes, and the register
/// is not a source, without a detour. Sources with types may have another sign. Returns a bit of each active lane.
#[inline(always)]
fn write_words(
    step: &mut ExecContext<'_>,
    op: &MicroOp,
    (register, half): (u16, usize),
    function: LaneFunction,
    types: Option<[LaneType; 3]>,
) -> u32 {
    let wave = &mut *step.wave;
    let [out, spaces @ ..] = &mut *step.space;
    let (exec, mode, bits) = (wave.exec_half(half), wave.float_mode, mask_of(wave, &op.mask_source, half));
    if exec == 0 {
        return 0;
    }
    let mut filled = [false; 3];
    for (number, space) in spaces.iter_mut().enumerate() {
        filled[number] = fill_words(wave, op, (number, types), half, space);
    }
    if exec == u32::MAX && op.is_apart {
        let (target, others) = wave.block_and_others(register, half);
        let mut sources = [&NO_LANES; 3];
        for number in 0..3 {
            match op.sources[number] {
                _ if filled[number] => sources[number] = &spaces[number],
                SourceOperand::Vector { register, .. } => sources[number] = others.block(register, half),
                _ => {}
            }
        }
        return call_on_words(function, target, &sources, bits, mode);
    }
    let mut sources = [&NO_LANES; 3];
    for number in 0..3 {
        match op.sources[number] {
            _ if filled[number] => sources[number] = &spaces[number],
            SourceOperand::Vector { register, .. } => sources[number] = wave.block(register, half),
            _ => {}
        }
    }
    let carry = call_on_words(function, out, &sources, bits, mode);
    write_lanes(wave.block_mut(register, half), out, exec);
    carry & exec
}

/// Calls a function on words; the result is a bit of each lane.
#[inline(always)]
fn call_on_words(function: LaneFunction, out: &mut Lanes, sources: &[&Lanes; 3], bits: u32, mode: FloatMode) -> u32 {
    match function {
        LaneFunction::Narrow(function) => {
            function(out, sources, mode);
            0
        }
        LaneFunction::Carry(function) => function(out, sources, bits, mode),
        LaneFunction::Wide(_) | LaneFunction::CarryWide(_) => 0,
    }
}

/// Words with parts of registers as sources and result, and no other modifiers.
#[inline(always)]
fn part_lanes(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (MicroOpBody::Vector { function, .. }, DestOperand::Vector { register, .. }) = (op.body, op.target) else {
        return Err(StepFault::unknown(op, ""));
    };
    let (LaneFunction::Narrow(function), Some(Extra::Sdwa(control))) = (function, op.extra.as_deref()) else {
        return Err(StepFault::unknown(op, ""));
    };
    let ExecContext { wave, space, .. } = step;
    for half in 0..wave.halves {
        let [first, second, third, out] = &mut **space;
        let [a, b, c] = plain_sources(wave, op, half, [first, second, third]);
        let (a, b) = (sdwa::select_words(control, a, 0), sdwa::select_words(control, b, 1));
        function(out, &[&a, &b, c], wave.float_mode);
        let exec = wave.exec_half(half);
        sdwa::merge_part(control, wave.block_mut(register, half), out, exec);
    }
    Ok(StepFlow::Next)
}

/// Reads a source of at most 32 bits that is not a register, or one with another sign; whether it is one of these.
#[inline(always)]
fn fill_words(
    wave: &WaveState,
    op: &MicroOp,
    (number, types): (usize, Option<[LaneType; 3]>),
    half: usize,
    space: &mut Lanes,
) -> bool {
    let source = &op.sources[number];
    let (keep, invert) = types.map_or((u64::MAX, 0), |types| sign_masks(op, number, types[number]));
    let (keep, invert) = (keep as u32, invert as u32);
    match *source {
        SourceOperand::None => return false,
        SourceOperand::Vector { .. } if (keep, invert) == (u32::MAX, 0) => return false,
        SourceOperand::Vector { register, .. } => {
            let block = wave.block(register, half);
            for lane in 0..LANES {
                space[lane] = block[lane] & keep ^ invert;
            }
        }
        _ => *space = [scalar_of(wave, source) as u32 & keep ^ invert; LANES],
    }
    true
}

/// The bits of a source that are kept, and those that are inverted then.
#[inline(always)]
fn sign_masks(op: &MicroOp, number: usize, kind: LaneType) -> (u64, u64) {
    let (modifiers, bit) = (&op.modifiers, 1 << number);
    let keep = if kind.is_float() && modifiers.absolute & bit != 0 { !kind.sign_bit() } else { u64::MAX };
    let invert = if kind.is_float() && modifiers.negative & bit != 0 { kind.sign_bit() } else { 0 };
    (keep, invert)
}

/// A source of at most 32 bits whose sign may be changed.
#[inline(always)]
fn signed_lanes<'a>(
    wave: &'a WaveState,
    op: &MicroOp,
    (number, types): (usize, [LaneType; 3]),
    half: usize,
    space: &'a mut Lanes,
) -> &'a Lanes {
    let is_filled = fill_words(wave, op, (number, Some(types)), half, space);
    match op.sources[number] {
        _ if is_filled => space,
        SourceOperand::Vector { register, .. } => wave.block(register, half),
        _ => &NO_LANES,
    }
}

/// The values of sources without modifiers.
#[inline(always)]
pub(crate) fn plain_sources<'a>(
    wave: &'a WaveState,
    op: &MicroOp,
    half: usize,
    space: [&'a mut Lanes; 3],
) -> [&'a Lanes; 3] {
    let [first, second, third] = space;
    [
        lanes_of(wave, &op.sources[0], half, first),
        lanes_of(wave, &op.sources[1], half, second),
        lanes_of(wave, &op.sources[2], half, third),
    ]
}

#[inline(always)]
fn plain_carry_lanes(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (MicroOpBody::Vector { function, .. }, DestOperand::Vector { register, .. }) = (op.body, op.target) else {
        return Err(StepFault::unknown(op, ""));
    };
    let LaneFunction::Carry(function) = function else { return Err(StepFault::unknown(op, "")) };
    let mut carries = u64::from(write_words(step, op, (register, 0), LaneFunction::Carry(function), None));
    if step.wave.halves == 2 {
        carries |= u64::from(write_words(step, op, (register, 1), LaneFunction::Carry(function), None)) << 32;
    }
    if let DestOperand::Scalar(slot) = op.scalar_target {
        step.wave.set_mask(slot, carries);
    }
    Ok(StepFlow::Next)
}

#[inline(always)]
fn plain_wide_lanes(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let (MicroOpBody::Vector { row, function }, DestOperand::Vector { register, .. }) = (op.body, op.target) else {
        return Err(StepFault::unknown(op, ""));
    };
    if row.result == LaneType::F64 && step.wave.float_mode.bits & 0x0c != 0 {
        return Err(StepFault::unknown(op, "64-bit floats in another rounding mode"));
    }
    let ExecContext { wave, wide_space, .. } = step;
    let mut carries = 0;
    for half in 0..wave.halves {
        let [out, spaces @ ..] = &mut **wide_space;
        let mut sources = [&NOTHING; 3];
        for (number, values) in spaces.iter_mut().enumerate() {
            sources[number] = read_into(wave, op, (number, row.sources[number]), half, values);
        }
        let exec = wave.exec_half(half);
        let bits = mask_of(wave, &op.mask_source, half);
        match function {
            LaneFunction::Wide(function) => function(out, &sources, wave.float_mode),
            LaneFunction::CarryWide(function) => {
                let carry = function(out, &sources, bits, wave.float_mode);
                carries |= u64::from(carry & exec) << (32 * half);
            }
            _ => return Err(StepFault::unknown(op, "")),
        }
        write_wide(wave, register, out, row.result, exec, half);
    }
    if let DestOperand::Scalar(slot) = op.scalar_target {
        wave.set_mask(slot, carries);
    }
    Ok(StepFlow::Next)
}

/// The lanes of a source that an instruction does not have.
static NOTHING: WideLanes = [0; LANES];

/// Reads a source without modifiers but its sign.
#[inline(always)]
fn read_into<'v>(
    wave: &WaveState,
    op: &MicroOp,
    (number, kind): (usize, LaneType),
    half: usize,
    values: &'v mut WideLanes,
) -> &'v WideLanes {
    let source = &op.sources[number];
    match *source {
        SourceOperand::None => return &NOTHING,
        SourceOperand::Vector { register, .. } if kind.bits() == 64 => {
            join_lanes(wave.block(register, half), wave.block(register + 1, half), values);
        }
        SourceOperand::Vector { register, .. } => {
            let block = wave.block(register, half);
            for lane in 0..LANES {
                values[lane] = block[lane].into();
            }
        }
        _ if kind.bits() == 64 => values.fill(scalar_of(wave, source)),
        _ => values.fill(scalar_of(wave, source) & 0xffff_ffff),
    }
    let (keep, invert) = sign_masks(op, number, kind);
    if (keep, invert) != (u64::MAX, 0) {
        values.iter_mut().for_each(|value| *value = *value & keep ^ invert);
    }
    values
}

#[inline(always)]
fn write_wide(wave: &mut WaveState, register: u16, out: &WideLanes, result: LaneType, exec: u32, half: usize) {
    write_lanes(wave.block_mut(register, half), &low_lanes(out), exec);
    if result.bits() == 64 {
        write_lanes(wave.block_mut(register + 1, half), &high_lanes(out), exec);
    }
}

/// Sources of 32 lanes, with everything that may be done to them.
pub(crate) struct GatheredSources {
    pub(crate) sources: [WideLanes; 3],
    /// Lanes that are written.
    pub(crate) mask: u32,
}

/// Reads the sources with all modifiers.
#[inline(always)]
pub(crate) fn gather_sources(wave: &WaveState, op: &MicroOp, types: [LaneType; 3], half: usize) -> GatheredSources {
    let mut mask = wave.exec_half(half);
    let mut sources = [[0; LANES]; 3];
    for (number, values) in sources.iter_mut().enumerate() {
        let (source, kind) = (&op.sources[number], types[number]);
        if *source == SourceOperand::None {
            continue;
        }
        *values = read_operand_lanes(wave, source, kind, half);
        match op.extra.as_deref() {
            Some(Extra::Dpp(control)) if number == 0 => {
                mask &=
                    dpp::apply_dpp(wave, control, values, half, |other| read_operand_lanes(wave, source, kind, other));
            }
            Some(Extra::Sdwa(control)) if number < 2 => sdwa::select_parts(control, values, number),
            _ => {}
        }
        apply_modifiers(op, values, kind, number);
    }
    GatheredSources { sources, mask }
}

#[inline(always)]
fn read_operand_lanes(wave: &WaveState, source: &SourceOperand, kind: LaneType, half: usize) -> WideLanes {
    if kind.bits() == 64 {
        return wide_of(wave, source, half);
    }
    let mut space = [0; LANES];
    let lanes = lanes_of(wave, source, half, &mut space);
    let shift = if matches!(source, SourceOperand::Vector { high: true, .. }) { 16 } else { 0 };
    std::array::from_fn(|lane| u64::from(lanes[lane] >> shift))
}

/// Selects halves; removes and changes signs.
#[inline(always)]
fn apply_modifiers(op: &MicroOp, values: &mut WideLanes, kind: LaneType, number: usize) {
    let modifiers = &op.modifiers;
    let bit = 1 << number;
    if kind.bits() == 16 {
        let shift = if modifiers.select & bit != 0 { 16 } else { 0 };
        // A constant has its value in the lower half; the upper one of a 16-bit operand is 0.
        values.iter_mut().for_each(|value| *value = *value >> shift & 0xffff);
    }
    if !kind.is_float() || (modifiers.negative | modifiers.absolute) & bit == 0 {
        return;
    }
    for value in values {
        if modifiers.absolute & bit != 0 {
            *value &= !kind.sign_bit();
        }
        if modifiers.negative & bit != 0 {
            *value ^= kind.sign_bit();
        }
    }
}

#[inline(always)]
fn general_lanes(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Vector { row, function } = op.body else { return Err(StepFault::unknown(op, "")) };
    let wave = &mut *step.wave;
    if row.result == LaneType::F64 && wave.float_mode.bits & 0x0c != 0 {
        return Err(StepFault::unknown(op, "64-bit floats in another rounding mode"));
    }
    let mut carries = 0;
    for half in 0..wave.halves {
        let gathered = gather_sources(wave, op, row.sources, half);
        let mask = gathered.mask;
        let bits = mask_of(wave, &op.mask_source, half);
        let (mut out, carry) = compute_lanes(function, &gathered.sources, bits, wave);
        carries |= u64::from(carry & mask) << (32 * half);
        apply_output_modifiers(wave, op, &mut out, row.result);
        store_result(wave, op, &out, row.result, mask, half);
    }
    if let DestOperand::Scalar(slot) = op.scalar_target {
        wave.set_mask(slot, carries);
    }
    Ok(StepFlow::Next)
}

/// Calls a function of any form.
#[inline(always)]
pub(crate) fn compute_lanes(
    function: LaneFunction,
    sources: &[WideLanes; 3],
    bits: u32,
    wave: &WaveState,
) -> (WideLanes, u32) {
    let mode = wave.float_mode;
    let mut wide = [0; LANES];
    let wide_sources = [&sources[0], &sources[1], &sources[2]];
    match function {
        LaneFunction::Wide(function) => {
            function(&mut wide, &wide_sources, mode);
            return (wide, 0);
        }
        LaneFunction::CarryWide(function) => {
            let carry = function(&mut wide, &wide_sources, bits, mode);
            return (wide, carry);
        }
        LaneFunction::Narrow(_) | LaneFunction::Carry(_) => {}
    }
    let narrow: [Lanes; 3] = sources.each_ref().map(|values| values.map(|value| value as u32));
    let narrow_sources = [&narrow[0], &narrow[1], &narrow[2]];
    let mut out = [0; LANES];
    let carry = match function {
        LaneFunction::Narrow(function) => {
            function(&mut out, &narrow_sources, mode);
            0
        }
        LaneFunction::Carry(function) => function(&mut out, &narrow_sources, bits, mode),
        _ => 0,
    };
    (out.map(u64::from), carry)
}

/// Output modifier and clamp of floats.
pub(crate) fn apply_output_modifiers(wave: &WaveState, op: &MicroOp, out: &mut WideLanes, result: LaneType) {
    let modifiers = &op.modifiers;
    if modifiers.output == 0 && !modifiers.clamp || !result.is_float() {
        return;
    }
    let factor = [1.0, 2.0, 4.0, 0.5][usize::from(modifiers.output & 3)];
    for bits in out {
        *bits = match result {
            LaneType::F32 => ((clamp_output_value(f64::from(f32::from_bits(*bits as u32)) * factor, modifiers, wave)
                as f32)
                .to_bits())
            .into(),
            LaneType::F64 => clamp_output_value(f64::from_bits(*bits) * factor, modifiers, wave).to_bits(),
            LaneType::F16 => {
                let value = clamp_output_value(f64::from(f16_to_f32(*bits as u16)) * factor, modifiers, wave);
                round_to_f16(value, wave.float_mode.rounding_f16_f64()).into()
            }
            _ => *bits,
        };
    }
}

fn clamp_output_value(value: f64, modifiers: &crate::micro::Modifiers, wave: &WaveState) -> f64 {
    match value {
        _ if !modifiers.clamp => value,
        _ if value.is_nan() => {
            if wave.float_mode.clamp_nan {
                0.0
            } else {
                value
            }
        }
        _ => value.clamp(0.0, 1.0) + 0.0,
    }
}

/// Writes a result of any size.
#[inline(always)]
pub(crate) fn store_result(
    wave: &mut WaveState,
    op: &MicroOp,
    out: &WideLanes,
    result: LaneType,
    mask: u32,
    half: usize,
) {
    let (register, high) = match op.target {
        DestOperand::Vector { register, high } => (register, high),
        DestOperand::Scalar(slot) => {
            let lane = wave.exec_mask().trailing_zeros() as usize % LANES;
            wave.scalars[usize::from(slot)] = out[lane] as u32;
            return;
        }
        DestOperand::None => return,
    };
    if let Some(Extra::Sdwa(control)) = op.extra.as_deref() {
        sdwa::merge_part(control, wave.block_mut(register, half), &low_lanes(out), mask);
        return;
    }
    match result.bits() {
        16 if op.modifiers.zero_upper && !high => {
            write_lanes(wave.block_mut(register, half), &out.map(|value| value as u32 & 0xffff), mask);
        }
        16 => store_half(wave.block_mut(register, half), out, high, mask),
        32 => write_lanes(wave.block_mut(register, half), &out.map(|value| value as u32), mask),
        _ => {
            write_lanes(wave.block_mut(register, half), &out.map(|value| value as u32), mask);
            write_lanes(wave.block_mut(register + 1, half), &out.map(|value| (value >> 32) as u32), mask);
        }
    }
}

/// Writes one half of a register; the other is kept.
#[inline(always)]
fn store_half(block: &mut Lanes, out: &WideLanes, high: bool, mask: u32) {
    let shift = if high { 16 } else { 0 };
    let merged: Lanes =
        std::array::from_fn(|lane| block[lane] & !(0xffff << shift) | (out[lane] as u32 & 0xffff) << shift);
    write_lanes(block, &merged, mask);
}

#[inline(always)]
fn compare_word_lanes(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Compare(row) = op.body else { return Err(StepFault::unknown(op, "")) };
    let ExecContext { wave, space, .. } = step;
    let types = [row.of, second_of(row.operation, row.of), LaneType::B32];
    let mut result = 0;
    for half in 0..wave.halves {
        let [first, second, ..] = &mut **space;
        let a = signed_lanes(wave, op, (0, types), half, first);
        let b = signed_lanes(wave, op, (1, types), half, second);
        let bits = row.evaluate_words(a, b, wave.float_mode) & wave.exec_half(half);
        result |= u64::from(bits) << (32 * half);
    }
    write_mask(wave, op, result);
    Ok(StepFlow::Next)
}

#[inline(always)]
fn compare_wide_lanes(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Compare(row) = op.body else { return Err(StepFault::unknown(op, "")) };
    let ExecContext { wave, wide_space, .. } = step;
    let second_type = second_of(row.operation, row.of);
    let mut result = 0;
    for half in 0..wave.halves {
        let [first, second, ..] = &mut **wide_space;
        let a = read_into(wave, op, (0, row.of), half, first);
        let b = read_into(wave, op, (1, second_type), half, second);
        let bits = row.evaluate_wide(a, b, wave.float_mode) & wave.exec_half(half);
        result |= u64::from(bits) << (32 * half);
    }
    write_mask(wave, op, result);
    Ok(StepFlow::Next)
}

/// The type of the second source of a comparison.
pub(crate) fn second_of(operation: CompareOperation, of: LaneType) -> LaneType {
    if operation == CompareOperation::Class { LaneType::B32 } else { of }
}

/// Writes the bits of a comparison; those of lanes that are not active are 0.
fn write_mask(wave: &mut WaveState, op: &MicroOp, mask: u64) {
    if let DestOperand::Scalar(slot) = op.scalar_target {
        wave.set_mask(slot, mask);
    }
}

/// A comparison with any modifiers.
pub(crate) fn compare_lanes(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let MicroOpBody::Compare(row) = op.body else { return Err(StepFault::unknown(op, "")) };
    let wave = &mut *step.wave;
    let types = [row.of, second_of(row.operation, row.of), LaneType::B32];
    let mut result = 0;
    for half in 0..wave.halves {
        let GatheredSources { sources, mask } = gather_sources(wave, op, types, half);
        let bits = row.evaluate_lanes(&sources[0], &sources[1], wave.float_mode) & mask;
        result |= u64::from(bits) << (32 * half);
    }
    write_mask(wave, op, result);
    Ok(StepFlow::Next)
}
