//! Vector instructions that compute in each lane on its own.

use super::{Flow, Outcome, Step, StepFault, lanes_of, mask_of, scalar_of, wide_of, write_lanes};
use super::{dpp, sdwa};
use crate::micro::{Body, Extra, MicroOp, Place, Source};
use crate::wave::WaveState;
use hotswap_semantics::{
    BITS, LANES, LaneFunction, LaneType, Lanes, WideLanes, f16_to_f32, join_lanes, round_to_f16, split_lanes,
};

/// 32-bit sources and result, no modifiers.
pub(crate) fn plain(step: &mut Step<'_>, op: &MicroOp) -> Outcome {
    let (&Body::Vector { function: LaneFunction::Narrow(function), .. }, Place::Vector { register, .. }) =
        (&op.body, op.target)
    else {
        return general(step, op);
    };
    let Step { wave, space, .. } = step;
    for half in 0..wave.halves {
        let exec = wave.exec(half);
        if exec == 0 {
            continue;
        }
        let [first, second, third, out] = &mut **space;
        function(out, &plain_sources(wave, op, half, [first, second, third]), wave.float_mode);
        write_lanes(wave.block_mut(register, half), out, exec);
    }
    Ok(Flow::Next)
}

/// 32-bit sources and result; some sources have another sign, or none.
pub(crate) fn signed(step: &mut Step<'_>, op: &MicroOp) -> Outcome {
    let (&Body::Vector { row, function: LaneFunction::Narrow(function) }, Place::Vector { register, .. }) =
        (&op.body, op.target)
    else {
        return general(step, op);
    };
    let Step { wave, space, .. } = step;
    for half in 0..wave.halves {
        let exec = wave.exec(half);
        if exec == 0 {
            continue;
        }
        let [first, second, third, out] = &mut **space;
        let sources = [
            signed_lanes(wave, op, (0, row.sources[0]), half, first),
            signed_lanes(wave, op, (1, row.sources[1]), half, second),
            signed_lanes(wave, op, (2, row.sources[2]), half, third),
        ];
        function(out, &sources, wave.float_mode);
        write_lanes(wave.block_mut(register, half), out, exec);
    }
    Ok(Flow::Next)
}

/// The bits of a source that are kept, and those that are inverted then.
#[inline]
fn sign_masks(op: &MicroOp, number: usize, kind: LaneType) -> (u64, u64) {
    let (modifiers, bit) = (&op.modifiers, 1 << number);
    let keep = if kind.is_float() && modifiers.absolute & bit != 0 { !kind.sign() } else { u64::MAX };
    let invert = if kind.is_float() && modifiers.negative & bit != 0 { kind.sign() } else { 0 };
    (keep, invert)
}

/// A source of 32 bits with its sign changed.
#[inline]
fn signed_lanes<'a>(
    wave: &'a WaveState,
    op: &MicroOp,
    (number, kind): (usize, LaneType),
    half: usize,
    space: &'a mut Lanes,
) -> &'a Lanes {
    let source = &op.sources[number];
    let (keep, invert) = sign_masks(op, number, kind);
    if (keep, invert) == (u64::MAX, 0) {
        return lanes_of(wave, source, half, space);
    }
    let (keep, invert) = (keep as u32, invert as u32);
    match *source {
        Source::Vector { register, .. } => {
            let block = wave.block(register, half);
            for lane in 0..LANES {
                space[lane] = block[lane] & keep ^ invert;
            }
        }
        _ => space.fill(scalar_of(wave, source) as u32 & keep ^ invert),
    }
    space
}

/// Sources without modifiers.
#[inline]
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

/// The same with a bit of each lane read and written.
pub(crate) fn plain_carry(step: &mut Step<'_>, op: &MicroOp) -> Outcome {
    let (Body::Vector { function: LaneFunction::Carry(function), .. }, Place::Vector { register, .. }) =
        (op.body, op.target)
    else {
        return general(step, op);
    };
    let Step { wave, space, .. } = step;
    let mut carries = 0;
    for half in 0..wave.halves {
        let [first, second, third, out] = &mut **space;
        let bits = mask_of(wave, &op.mask_source, half);
        let exec = wave.exec(half);
        let sources = plain_sources(wave, op, half, [first, second, third]);
        let carry = function(out, &sources, bits, wave.float_mode);
        carries |= u64::from(carry & exec) << (32 * half);
        write_lanes(wave.block_mut(register, half), out, exec);
    }
    if let Place::Scalar(slot) = op.scalar_target {
        wave.set_mask(slot, carries);
    }
    Ok(Flow::Next)
}

/// Sources and results of 64 bits, no modifiers but signs.
pub(crate) fn plain_wide(step: &mut Step<'_>, op: &MicroOp) -> Outcome {
    let (Body::Vector { row, function }, Place::Vector { register, .. }) = (op.body, op.target) else {
        return general(step, op);
    };
    if row.result == LaneType::F64 && step.wave.float_mode.bits & 0x0c != 0 {
        return Err(StepFault::unknown(op, "64-bit floats in another rounding mode"));
    }
    let Step { wave, wide_space, .. } = step;
    let mut carries = 0;
    for half in 0..wave.halves {
        let [first, second, third, out] = &mut **wide_space;
        let read = |number: usize, values| read_into(wave, op, (number, row.sources[number]), half, values);
        let sources = [read(0, first), read(1, second), read(2, third)];
        let exec = wave.exec(half);
        let bits = mask_of(wave, &op.mask_source, half);
        match function {
            LaneFunction::Wide(function) => function(out, &sources, wave.float_mode),
            LaneFunction::CarryWide(function) => {
                let carry = function(out, &sources, bits, wave.float_mode);
                carries |= u64::from(carry & exec) << (32 * half);
            }
            _ => return general(step, op),
        }
        write_wide(wave, register, out, row.result, exec, half);
    }
    if let Place::Scalar(slot) = op.scalar_target {
        wave.set_mask(slot, carries);
    }
    Ok(Flow::Next)
}

/// The lanes of a source that an instruction does not have.
static NOTHING: WideLanes = [0; LANES];

/// Reads a source without modifiers but its sign.
#[inline]
fn read_into<'v>(
    wave: &WaveState,
    op: &MicroOp,
    (number, kind): (usize, LaneType),
    half: usize,
    values: &'v mut WideLanes,
) -> &'v WideLanes {
    let source = &op.sources[number];
    match *source {
        Source::None => return &NOTHING,
        Source::Vector { register, .. } if kind.bits() == 64 => {
            join_lanes(wave.block(register, half), wave.block(register + 1, half), values);
        }
        Source::Vector { register, .. } => {
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

#[inline]
fn write_wide(wave: &mut WaveState, register: u16, out: &WideLanes, result: LaneType, exec: u32, half: usize) {
    let (mut low, mut high) = ([0; LANES], [0; LANES]);
    split_lanes(out, &mut low, &mut high);
    write_lanes(wave.block_mut(register, half), &low, exec);
    if result.bits() == 64 {
        write_lanes(wave.block_mut(register + 1, half), &high, exec);
    }
}

/// Sources of 32 lanes, with everything that may be done to them.
pub(crate) struct Gathered {
    pub(crate) sources: [WideLanes; 3],
    /// Lanes that are written.
    pub(crate) mask: u32,
}

/// Reads the sources with all modifiers.
pub(crate) fn gather(wave: &WaveState, op: &MicroOp, types: [LaneType; 3], half: usize) -> Gathered {
    let mut mask = wave.exec(half);
    let mut sources = [[0; LANES]; 3];
    for (number, values) in sources.iter_mut().enumerate() {
        let (source, kind) = (&op.sources[number], types[number]);
        *values = read(wave, source, kind, half);
        match op.extra.as_deref() {
            Some(Extra::Dpp(control)) if number == 0 => {
                mask &= dpp::apply(wave, control, values, half, |other| read(wave, source, kind, other));
            }
            Some(Extra::Sdwa(control)) if number < 2 => sdwa::select(control, values, number),
            _ => {}
        }
        modify(op, values, kind, number);
    }
    Gathered { sources, mask }
}

fn read(wave: &WaveState, source: &Source, kind: LaneType, half: usize) -> WideLanes {
    if kind.bits() == 64 {
        return wide_of(wave, source, half);
    }
    let mut space = [0; LANES];
    let lanes = lanes_of(wave, source, half, &mut space);
    let shift = if matches!(source, Source::Vector { high: true, .. }) { 16 } else { 0 };
    std::array::from_fn(|lane| u64::from(lanes[lane] >> shift))
}

/// Selects halves; removes and changes signs.
fn modify(op: &MicroOp, values: &mut WideLanes, kind: LaneType, number: usize) {
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
            *value &= !kind.sign();
        }
        if modifiers.negative & bit != 0 {
            *value ^= kind.sign();
        }
    }
}

/// Any sizes, any modifiers.
pub(crate) fn general(step: &mut Step<'_>, op: &MicroOp) -> Outcome {
    let Body::Vector { row, function } = op.body else { return Err(StepFault::unknown(op, "")) };
    let wave = &mut *step.wave;
    if row.result == LaneType::F64 && wave.float_mode.bits & 0x0c != 0 {
        return Err(StepFault::unknown(op, "64-bit floats in another rounding mode"));
    }
    let mut carries = 0;
    for half in 0..wave.halves {
        let gathered = gather(wave, op, row.sources, half);
        let mask = gathered.mask;
        let bits = mask_of(wave, &op.mask_source, half);
        let (mut out, carry) = compute(function, &gathered.sources, bits, wave);
        carries |= u64::from(carry & mask) << (32 * half);
        finish(wave, op, &mut out, row.result);
        store(wave, op, &out, row.result, mask, half);
    }
    if let Place::Scalar(slot) = op.scalar_target {
        wave.set_mask(slot, carries);
    }
    Ok(Flow::Next)
}

/// Calls a function of any form.
pub(crate) fn compute(
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
pub(crate) fn finish(wave: &WaveState, op: &MicroOp, out: &mut WideLanes, result: LaneType) {
    let modifiers = &op.modifiers;
    if modifiers.output == 0 && !modifiers.clamp || !result.is_float() {
        return;
    }
    let factor = [1.0, 2.0, 4.0, 0.5][usize::from(modifiers.output & 3)];
    let clamp = |value: f64| match value {
        _ if !modifiers.clamp => value,
        _ if value.is_nan() => {
            if wave.float_mode.clamp_nan {
                0.0
            } else {
                value
            }
        }
        _ => value.clamp(0.0, 1.0) + 0.0,
    };
    for bits in out {
        *bits = match result {
            LaneType::F32 => ((clamp(f64::from(f32::from_bits(*bits as u32)) * factor) as f32).to_bits()).into(),
            LaneType::F64 => clamp(f64::from_bits(*bits) * factor).to_bits(),
            LaneType::F16 => {
                let value = clamp(f64::from(f16_to_f32(*bits as u16)) * factor);
                round_to_f16(value, wave.float_mode.round16()).into()
            }
            _ => *bits,
        };
    }
}

/// Writes a result of any size.
pub(crate) fn store(wave: &mut WaveState, op: &MicroOp, out: &WideLanes, result: LaneType, mask: u32, half: usize) {
    let (register, high) = match op.target {
        Place::Vector { register, high } => (register, high),
        Place::Scalar(slot) => {
            let lane = wave.exec_mask().trailing_zeros() as usize % LANES;
            wave.scalars[usize::from(slot)] = out[lane] as u32;
            return;
        }
        Place::None => return,
    };
    if let Some(Extra::Sdwa(control)) = op.extra.as_deref() {
        sdwa::merge(control, wave.block_mut(register, half), out, mask);
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
fn store_half(block: &mut Lanes, out: &WideLanes, high: bool, mask: u32) {
    let shift = if high { 16 } else { 0 };
    for lane in 0..LANES {
        if mask & BITS[lane] != 0 {
            block[lane] = block[lane] & !(0xffff << shift) | (out[lane] as u32 & 0xffff) << shift;
        }
    }
}

/// A comparison.
pub(crate) fn compare(step: &mut Step<'_>, op: &MicroOp) -> Outcome {
    let Body::Compare(row) = op.body else { return Err(StepFault::unknown(op, "")) };
    let Step { wave, space, .. } = step;
    let second = if row.operation == hotswap_semantics::CompareOperation::Class { LaneType::B32 } else { row.of };
    let plain = row.of.bits() == 32 && second == row.of && op.is_signed_only();
    let mut result = 0;
    for half in 0..wave.halves {
        let bits = if plain {
            let [first, second, ..] = &mut **space;
            let a = signed_lanes(wave, op, (0, row.of), half, first);
            let b = signed_lanes(wave, op, (1, row.of), half, second);
            row.evaluate_words(a, b, wave.float_mode) & wave.exec(half)
        } else {
            let Gathered { sources, mask } = gather(wave, op, [row.of, second, LaneType::B32], half);
            row.evaluate(&sources[0], &sources[1], wave.float_mode) & mask
        };
        result |= u64::from(bits) << (32 * half);
    }
    if let Place::Scalar(slot) = op.scalar_target {
        wave.set_mask(slot, result);
    }
    Ok(Flow::Next)
}
