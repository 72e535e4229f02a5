//! Products of matrices: their layout in registers. The arithmetic is `hotswap_semantics::MatrixModel`.
//!
//! Invariants: all sources are read before a result is written. Which element of a row of A meets which of a column of B
//! does not depend on the layout of either, because both have the same.
//!
//! Sources: the matrix instructions of AMD's CDNA and RDNA documents, and the layouts that LLVM's builtins for RDNA state.

use super::lds::{register_of, target_of};
use super::{ExecContext, StepFault, StepFlow, StepResult, scalar_of};
use crate::fault::FaultKind;
use crate::micro::{Extra, MatrixLayout, MatrixPlan, MatrixScale, MicroOp, SourceOperand, SparseIndex};
use crate::wave::WaveState;
use hotswap_semantics::{Float8, MatrixFormat, MicroFloat, bf16_to_f32, f16_to_f32};

/// A place in vector registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ElementPlace {
    /// Distance from the first register.
    register: u32,
    lane: u32,
    bit: u32,
}

/// The shape of A or B: rows (or columns), elements of each that are in registers, and their size.
#[derive(Debug, Clone, Copy)]
struct SourceShape {
    dimension: u32,
    depth: u32,
    bits: u32,
}

/// A matrix that was read: blocks, rows (or columns), elements along the sum.
struct SourceMatrix {
    floats: Vec<f64>,
    integers: Vec<i64>,
    /// Of a sparse matrix the place of each element in a row without gaps.
    positions: Vec<usize>,
    depth: usize,
}

impl MatrixPlan {
    /// The place of element `k` of row (or column) `index` of A (or B).
    fn input_place(&self, lanes: u32, shape: SourceShape, index: u32, k: u32, block: u32) -> ElementPlace {
        let SourceShape { dimension, depth, bits } = shape;
        let groups = match self.layout {
            MatrixLayout::Blocks => 64 / (dimension * self.blocks),
            MatrixLayout::Replicated => 1,
            MatrixLayout::Halves => lanes / dimension,
        };
        let each = depth / groups;
        let lane = index + dimension * (block + self.blocks * (k / each));
        let bit = k % each * bits;
        ElementPlace { register: bit / 32, lane, bit: bit % 32 }
    }

    /// The place of an element of C and D.
    fn output_place(&self, lanes: u32, i: u32, j: u32, block: u32, upper: bool) -> ElementPlace {
        let (rows, columns) = (self.row.rows, self.row.columns);
        let wide = if self.row.result == MatrixFormat::F64 { 2 } else { 1 };
        let (number, lane) = match self.layout {
            MatrixLayout::Blocks => {
                let (groups, size) = (64 / columns, rows * columns);
                // Blocks that are smaller than a register share one.
                let together = if wide == 2 { 64_u32.div_ceil(size) } else { 256_u32.div_ceil(size) };
                let run = if wide == 2 { 1 } else { 4 };
                let number = block * (size / 64) + i / (run * groups) * run + i % run;
                (number, block % together * columns + i / run % groups * together * columns + j)
            }
            MatrixLayout::Replicated => {
                let together = lanes / columns;
                (i / together, i % together * columns + j)
            }
            MatrixLayout::Halves if lanes == 64 => (i & 3, j + 16 * (i >> 3 & 1) + 32 * (i >> 2 & 1)),
            MatrixLayout::Halves => (i % 8, j + 16 * (i / 8)),
        };
        match (self.row.result.bits(), self.layout) {
            (16, MatrixLayout::Halves) => ElementPlace { register: number / 2, lane, bit: number % 2 * 16 },
            (16, _) => ElementPlace { register: number, lane, bit: if upper { 16 } else { 0 } },
            _ => ElementPlace { register: number * wide, lane, bit: 0 },
        }
    }

    /// The lane that is read instead of `lane` of A: one group of lanes for all of them.
    fn lane_of_a(&self, lane: u32) -> u32 {
        let (size, group) = self.broadcast;
        let lanes = 64 >> size.min(6);
        if size == 0 { lane } else { (lane % lanes + lanes * u32::from(group)) & 63 }
    }

    /// The same of B.
    fn lane_of_b(&self, lane: u32) -> u32 {
        match self.permutation {
            0 => lane,
            1 => lane % 32,
            2 => lane % 32 + 32,
            3 => (lane + 16) % 64,
            quarter => lane % 16 + 16 * (u32::from(quarter) - 4),
        }
    }

    fn element_value(&self, format: MatrixFormat, raw: u64) -> f64 {
        let value: f64 = match format {
            MatrixFormat::F64 => f64::from_bits(raw),
            MatrixFormat::F16 => f16_to_f32(raw as u16).into(),
            MatrixFormat::Bf16 => bf16_to_f32(raw as u16).into(),
            MatrixFormat::Fp8 => decode_float8_value(false, self, raw),
            MatrixFormat::Bf8 => decode_float8_value(true, self, raw),
            MatrixFormat::Fp6 => MicroFloat::FP6.decode_value(raw as u8).into(),
            MatrixFormat::Bf6 => MicroFloat::BF6.decode_value(raw as u8).into(),
            MatrixFormat::Fp4 => MicroFloat::FP4.decode_value(raw as u8).into(),
            MatrixFormat::Xf32 => f32::from_bits(raw as u32 & !0x1fff).into(),
            _ => f32::from_bits(raw as u32).into(),
        };
        let least = if format == MatrixFormat::F16 { -14 } else { -126 };
        if self.flushes && value.abs() < 2_f64.powi(least) { 0.0_f64.copysign(value) } else { value }
    }
}

fn decode_float8_value(is_bf8: bool, plan: &MatrixPlan, raw: u64) -> f64 {
    f64::from(Float8::new(is_bf8, plan.is_fnuz).decode_value(raw as u8))
}

/// The bits of an element.
fn element_bits(wave: &WaveState, first: u16, place: ElementPlace, bits: u32) -> u64 {
    let register = first + place.register as u16;
    if bits == 64 {
        return wave.lane_pair(register, place.lane as usize);
    }
    if place.bit + bits > 32 {
        return wave.lane_pair(register, place.lane as usize) >> place.bit & u64::from(u32::MAX >> (32 - bits));
    }
    u64::from(wave.lane(register, place.lane as usize) >> place.bit & (u32::MAX >> (32 - bits)))
}

/// CDNA's integers have signs, and its products do not ask EXEC.
fn is_cdna(plan: &MatrixPlan) -> bool {
    plan.layout == MatrixLayout::Blocks
}

/// The scale of a row or column. No document says for all targets which elements of a row a scale concerns, so all scales
/// of a row must be one.
fn scale_of_row(
    wave: &WaveState,
    op: &MicroOp,
    scale: MatrixScale,
    index: u32,
    dimension: u32,
) -> Result<f64, Box<StepFault>> {
    let lanes = usize::from(scale.first_lane) + index as usize;
    // Those of CDNA are in further lanes, those of gfx12.5 in further bytes.
    let lanes = (lanes..if scale.bytes == 1 { wave.lane_count() } else { lanes + 1 }).step_by(dimension as usize);
    let bytes = lanes.flat_map(|lane| {
        (scale.first_byte..scale.first_byte + scale.bytes)
            .map(move |at: u8| wave.lane(scale.register + u16::from(at / 4), lane) >> (8 * (at % 4)) & 255)
    });
    let bytes: Vec<u32> = bytes.collect();
    match bytes[0] {
        _ if bytes.iter().any(|byte| *byte != bytes[0]) => Err(StepFault::unknown(op, "scales that differ in a row")),
        255 => Ok(f64::NAN),
        exponent => Ok(2_f64.powi(exponent as i32 - 127)),
    }
}

/// Reads A (number 0) or B.
fn read_source(
    wave: &WaveState,
    op: &MicroOp,
    plan: &MatrixPlan,
    number: usize,
) -> Result<SourceMatrix, Box<StepFault>> {
    let format = plan.row.sources[number];
    let first = register_of(op.sources[number], op)?;
    let (dimension, lanes) = ([plan.row.rows, plan.row.columns][number], wave.lane_count() as u32);
    let signed = op.modifiers.negative >> number & 1 != 0 || is_cdna(plan);
    let negative = !format.is_integer() && op.modifiers.negative >> number & 1 != 0;
    let sparse = plan.index.filter(|_| number == 0);
    let depth = if sparse.is_some() { plan.row.depth / 2 } else { plan.row.depth };
    let shape = SourceShape { dimension, depth, bits: format.bits() };
    let (floats, integers, positions) = (Vec::new(), Vec::new(), Vec::new());
    let mut matrix = SourceMatrix { floats, integers, positions, depth: depth as usize };
    for block in 0..plan.blocks {
        for index in 0..dimension {
            let scale = match plan.scales[number] {
                Some(scale) => scale_of_row(wave, op, scale, index, dimension)?,
                None => 1.0,
            };
            for k in 0..depth {
                let mut place = plan.input_place(lanes, shape, index, k, block);
                place.lane = if number == 0 { plan.lane_of_a(place.lane) } else { plan.lane_of_b(place.lane) };
                let bits = element_bits(wave, first, place, format.bits());
                check_replicas(wave, op, plan, first, place, bits, format.bits())?;
                if let Some(positions) = sparse {
                    matrix.positions.push(sparse_position(wave, positions, place, k, format.bits()));
                }
                if format.is_integer() {
                    matrix.integers.push(extend_integer(bits, format.bits(), signed));
                } else {
                    let value = plan.element_value(format, bits) * scale;
                    matrix.floats.push(if negative { -value } else { value });
                }
            }
        }
    }
    Ok(matrix)
}

/// The place of element `k` of a sparse row: of each four elements two are there.
fn sparse_position(wave: &WaveState, index: SparseIndex, place: ElementPlace, k: u32, bits: u32) -> usize {
    let own = (place.register * 32 + place.bit) / bits;
    let chosen = wave.lane(index.register, place.lane as usize) >> (u32::from(index.shift) + 2 * own) & 3;
    (k / 2 * 4 + chosen) as usize
}

/// Rows that must be in several groups of lanes: it is not known what hardware does where they differ.
fn check_replicas(
    wave: &WaveState,
    op: &MicroOp,
    plan: &MatrixPlan,
    first: u16,
    place: ElementPlace,
    bits: u64,
    width: u32,
) -> Result<(), Box<StepFault>> {
    if plan.layout != MatrixLayout::Replicated {
        return Ok(());
    }
    let others = (16..wave.lane_count() as u32).step_by(16);
    let mut others = others.map(|more| ElementPlace { lane: place.lane + more, ..place });
    match others.all(|other| element_bits(wave, first, other, width) == bits) {
        true => Ok(()),
        false => Err(StepFault::unknown(op, "rows that differ between lanes")),
    }
}

fn extend_integer(raw: u64, bits: u32, signed: bool) -> i64 {
    if signed { (raw << (64 - bits)) as i64 >> (64 - bits) } else { raw as i64 }
}

/// The element of C, with its modifiers.
fn accumulator_element(wave: &WaveState, op: &MicroOp, plan: &MatrixPlan, place: ElementPlace) -> u64 {
    let bits = plan.row.accumulator.bits();
    let value = match op.sources[2] {
        SourceOperand::Vector { register, .. } => element_bits(wave, register, place, bits),
        ref constant => scalar_of(wave, constant) & u64::MAX >> (64 - bits),
    };
    if plan.row.result.is_integer() {
        return value;
    }
    let sign = 1 << (bits - 1);
    let value = if op.modifiers.absolute & 4 != 0 { value & !sign } else { value };
    if op.modifiers.negative & 4 != 0 { value ^ sign } else { value }
}

/// `D = A * B + C`. CDNA's products do not ask EXEC; RDNA's want all lanes.
pub(crate) fn multiply_matrices(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let Some(Extra::Matrix(plan)) = op.extra.as_deref() else { return Err(StepFault::unknown(op, "")) };
    let wave = &mut *step.wave;
    let all = u64::MAX >> (64 - wave.lane_count());
    if !is_cdna(plan) && wave.exec_mask() != all {
        return Err(StepFault::unknown(op, "lanes that are not active"));
    }
    let target = target_of(op)?;
    let (a, b) = (read_source(wave, op, plan, 0)?, read_source(wave, op, plan, 1)?);
    let mut results = Vec::with_capacity((plan.blocks * plan.row.rows * plan.row.columns) as usize);
    let mut undetermined = 0;
    for block in 0..plan.blocks {
        for i in 0..plan.row.rows {
            for j in 0..plan.row.columns {
                // The half of C and D is that of the third source.
                let place = plan.output_place(wave.lane_count() as u32, i, j, block, op.modifiers.select & 4 != 0);
                let c = accumulator_element(wave, op, plan, place);
                let row = (block * plan.row.rows + i) as usize;
                let column = (block * plan.row.columns + j) as usize;
                let (bits, is_free) = compute_element(step.device.matrix_model, op, plan, c, (&a, row), (&b, column));
                undetermined += u64::from(!is_free);
                results.push((place, bits));
            }
        }
    }
    if undetermined > 0 && step.device.refuses_undetermined {
        return Err(StepFault::new(FaultKind::Undetermined { mnemonic: op.inst.mnemonic(), elements: undetermined }));
    }
    wave.undetermined += undetermined;
    for (place, bits) in results {
        write_element(wave, target, place, plan.row.result.bits(), bits);
    }
    Ok(StepFlow::Next)
}

/// One element, and whether it is the same in every order of additions.
fn compute_element(
    model: hotswap_semantics::MatrixModel,
    op: &MicroOp,
    plan: &MatrixPlan,
    c: u64,
    (a, row): (&SourceMatrix, usize),
    (b, column): (&SourceMatrix, usize),
) -> (u64, bool) {
    let (from, with) = (row * a.depth, column * b.depth);
    if plan.row.result.is_integer() {
        let products = (0..a.depth).map(|k| a.integers[from + k] * b.integers[meets_column_position(k, with, a, from)]);
        let sum = i64::from(c as u32 as i32) + products.sum::<i64>();
        let held = if op.modifiers.clamp { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
        return (u64::from(held as u32), true);
    }
    let products = (0..a.depth).map(|k| (a.floats[from + k], b.floats[meets_column_position(k, with, a, from)]));
    let sum = model.sum_products(&plan.row, c, products);
    (sum.bits, sum.is_order_free)
}

fn meets_column_position(k: usize, with: usize, a: &SourceMatrix, from: usize) -> usize {
    with + a.positions.get(from + k).copied().unwrap_or(k)
}

fn write_element(wave: &mut WaveState, target: u16, place: ElementPlace, bits: u32, value: u64) {
    let (register, lane) = (target + place.register as u16, place.lane as usize);
    match bits {
        64 => {
            wave.set_lane(register, lane, value as u32);
            wave.set_lane(register + 1, lane, (value >> 32) as u32);
        }
        16 => {
            let old = wave.lane(register, lane);
            wave.set_lane(register, lane, old & !(0xffff << place.bit) | (value as u32 & 0xffff) << place.bit);
        }
        _ => wave.set_lane(register, lane, value as u32),
    }
}
