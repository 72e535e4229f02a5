//! Matrix products, tensor copies and conversions with scales or noise as functions of which only the arguments are known.
//!
//! The result of a product is a number that depends on the formats, on the inputs with their scales, and on the element's own
//! addend. So two pieces of code agree exactly where they compute the same products of the same inputs, whatever the
//! arithmetic of the hardware is. The products of depth 128 are one function under all of their names, and 32 rows are
//! two times 16.
//!
//! Invariants: only for devices asking for it ([`crate::EmulatedDevice::uninterpreted`]): results are not numbers a
//! program could use. Numbers are finite floats, so that what converts them afterwards is executed as usual.

use super::operand_words::{self, is_zero, operand_lanes, vector_operand};
use super::{ExecContext, InstHandler, StepFault, StepFlow, StepResult};
use crate::fault::FaultKind;
use crate::micro::MicroOp;
use crate::registers::M0;
use hotswap_isa::{Flag, Inst, Name, OperandAccess, OperandValue};
use hotswap_semantics::{LANES, Lanes, Rounding, f16_to_f32, round_to_f16};

/// Where the records of tensor copies are written.
const RECORDS: u64 = 0x7e00_0000_0000;
/// Formats of 8 and 4 bits.
const FP8: u64 = 0;
const BF8: u64 = 1;
const FP4: u64 = 4;

/// The handler of an instruction, if it is one of these.
pub(crate) fn find_handler(inst: &Inst) -> Option<InstHandler> {
    let is_matrix = inst.is(Flag::Wmma) || inst.is(Flag::Swmmac);
    match inst.mnemonic() {
        "tensor_load_to_lds" => Some(copy_tensor),
        "tensor_store_from_lds" => Some(copy_out),
        // The clamp bit means unsigned E5M3, which is known.
        name if is_conversion(name) && inst.raw(Name::Clamp).unwrap_or(0) == 0 => Some(execute_conversion),
        name if is_matrix && MatrixProduct::of_mnemonic(name).is_some() => Some(execute_product),
        _ if is_matrix => Some(execute_other),
        _ => None,
    }
}

/// Conversions whose arithmetic documents describe in different ways: with scales, and with rounding by noise.
fn is_conversion(name: &str) -> bool {
    ["v_cvt_scale_", "v_cvt_scalef32_", "v_cvt_sr_"].iter().any(|start| name.starts_with(start))
}

/// A product of depth 128.
#[derive(Debug, Clone, Copy)]
struct MatrixProduct {
    formats: Option<[u64; 2]>,
    /// 1, or 2 for 32 rows.
    tiles: usize,
    scale: Option<&'static str>,
    /// Addend and result have 16 bits.
    is_half: bool,
}

impl MatrixProduct {
    fn of_mnemonic(name: &str) -> Option<Self> {
        let plain = Self { formats: None, tiles: 1, scale: None, is_half: false };
        if let Some(formats) = name.strip_prefix("v_wmma_f32_16x16x128_").and_then(matrix_float8_formats) {
            return Some(Self { formats: Some(formats), ..plain });
        }
        if let Some(formats) = name.strip_prefix("v_wmma_f16_16x16x128_").and_then(matrix_float8_formats) {
            return Some(Self { formats: Some(formats), is_half: true, ..plain });
        }
        let (scale, rest) = match name.strip_prefix("v_wmma_")? {
            rest if rest.starts_with("scale_") => (Some("scale"), rest.strip_prefix("scale_")?),
            rest if rest.starts_with("scale16_") => (Some("scale16"), rest.strip_prefix("scale16_")?),
            rest => (None, rest),
        };
        match rest {
            "f32_16x16x128_f8f6f4" => Some(Self { scale, ..plain }),
            "f32_32x16x128_f4" => Some(Self { scale, tiles: 2, formats: Some([FP4, FP4]), ..plain }),
            _ => None,
        }
    }
}

fn matrix_float8_formats(name: &str) -> Option<[u64; 2]> {
    match name {
        "fp8_fp8" => Some([FP8, FP8]),
        "fp8_bf8" => Some([FP8, BF8]),
        "bf8_fp8" => Some([BF8, FP8]),
        "bf8_bf8" => Some([BF8, BF8]),
        _ => None,
    }
}

/// A number that depends on all of both.
fn mix_hash(seed: u64, value: u64) -> u64 {
    let x = (seed ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53) ^ x >> 29
}

fn fold_lanes(key: u64, lanes: &[Lanes]) -> u64 {
    lanes.iter().flatten().fold(key, |key, word| mix_hash(key, (*word).into()))
}

/// A finite float, some of them too large for 16 bits.
fn finite_float(key: u64) -> u32 {
    (key as u32 & 0x807f_ffff) | (107 + (key >> 32) as u32 % 40) << 23
}

fn raw_field(op: &MicroOp, name: Name) -> u64 {
    op.inst.raw(name).unwrap_or(0)
}

/// A fault where an operand is beyond the wave's registers.
fn check_registers(step: &ExecContext<'_>, op: &MicroOp) -> Result<(), Box<StepFault>> {
    match operand_words::operand_beyond_limit(step, op) {
        Some(reg) => Err(StepFault::new(FaultKind::Register { name: reg.to_string() })),
        None => Ok(()),
    }
}

fn execute_product(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    check_registers(step, op)?;
    let Some(shape) = MatrixProduct::of_mnemonic(op.inst.mnemonic()) else { return Err(StepFault::unknown(op, "")) };
    let Some(target) = vector_operand(step, op, Name::Vdst) else { return Err(StepFault::unknown(op, "a target")) };
    let formats = shape.formats.unwrap_or_else(|| [raw_field(op, Name::MatrixAFmt), raw_field(op, Name::MatrixBFmt)]);
    let (a, b) = (operand_lanes(step, op, Name::Src0), operand_lanes(step, op, Name::Src1));
    let addend = addend_lanes(step, op, shape);
    let mut results = Vec::new();
    for tile in 0..shape.tiles {
        let rows = if shape.tiles == 2 { a.get(8 * tile..8 * tile + 8).unwrap_or(&a) } else { &a };
        let mut key = formats
            .iter()
            .fold(mix_hash(1, raw_field(op, Name::Src2Modifiers) & 3), |key, format| mix_hash(key, *format));
        key = fold_lanes(fold_lanes(key, rows), &b);
        key = scale_inputs(step, op, shape, tile).into_iter().fold(key, mix_hash);
        results.extend((0..8).map(|register| element_row(key, register, &addend[8 * tile + register])));
    }
    store_results(step, target.index, &results, shape.is_half);
    Ok(StepFlow::Next)
}

/// The elements of a row of registers.
fn element_row(key: u64, register: usize, addend: &Lanes) -> Lanes {
    std::array::from_fn(|lane| {
        finite_float(mix_hash(mix_hash(key, (register << 8 | lane) as u64), addend[lane].into()))
    })
}

/// The addends as floats of 32 bits, eight registers for each tile.
fn addend_lanes(step: &ExecContext<'_>, op: &MicroOp, shape: MatrixProduct) -> Vec<Lanes> {
    let given = operand_lanes(step, op, Name::Src2);
    let count = 8 * shape.tiles;
    let is_register = given.len() > 1;
    match (shape.is_half, is_register) {
        (true, true) => {
            given.iter().flat_map(|lanes| [widened_half_lanes(lanes, 0), widened_half_lanes(lanes, 16)]).collect()
        }
        (true, false) => vec![given.first().map_or([0; LANES], |lanes| widened_half_lanes(lanes, 0)); count],
        (false, true) => given,
        (false, false) => vec![given.first().copied().unwrap_or([0; LANES]); count],
    }
}

fn widened_half_lanes(lanes: &Lanes, shift: u32) -> [u32; 32] {
    lanes.map(|word| quiet_nan(f16_to_f32((word >> shift) as u16).to_bits()))
}

/// A NaN as conversions leave it.
fn quiet_nan(bits: u32) -> u32 {
    if bits & 0x7fff_ffff > 0x7f80_0000 { bits | 0x40_0000 } else { bits }
}

fn store_results(step: &mut ExecContext<'_>, target: u16, results: &[Lanes], is_half: bool) {
    if !is_half {
        results.iter().enumerate().for_each(|(number, lanes)| *step.wave.block_mut(target + number as u16, 0) = *lanes);
        return;
    }
    let clamps = step.wave.float_mode.clamp_overflow;
    for (number, pair) in results.chunks_exact(2).enumerate() {
        let lanes = std::array::from_fn(|lane| {
            narrowed_half_bits(pair[0][lane], clamps) | narrowed_half_bits(pair[1][lane], clamps) << 16
        });
        *step.wave.block_mut(target + number as u16, 0) = lanes;
    }
}

fn narrowed_half_bits(bits: u32, clamps: bool) -> u32 {
    let value = f64::from(f32::from_bits(bits));
    let value = if clamps { value.clamp(-65504.0, 65504.0) } else { value };
    u32::from(round_to_f16(value, Rounding::NearestEven))
}

/// Everything that scales depend on. Without a prefix, and for the constant 0, the factor is 1.
fn scale_inputs(step: &ExecContext<'_>, op: &MicroOp, shape: MatrixProduct, tile: usize) -> Vec<u64> {
    let sides = [
        (Name::ScaleSrc0, Name::MatrixAScale, Name::MatrixAScaleFmt),
        (Name::ScaleSrc1, Name::MatrixBScale, Name::MatrixBScaleFmt),
    ];
    let mut all = Vec::new();
    for (side, (source, row, format)) in sides.into_iter().enumerate() {
        let Some(scale) = shape.scale.filter(|_| !is_zero(step, op, source)) else {
            all.push(0);
            continue;
        };
        let row = if shape.tiles == 2 && side == 0 { tile } else { raw_field(op, row) as usize & 1 };
        all.extend([scale.len() as u64, raw_field(op, format)]);
        // 16 rows or columns have their scales in 16 lanes.
        all.extend(
            operand_lanes(step, op, source)
                .iter()
                .flat_map(|lanes| lanes[16 * row..16 * row + 16].to_vec())
                .map(u64::from),
        );
    }
    all
}

/// A conversion: a function of what a lane reads, and of the scales of all lanes. Parts of the target may be kept, so it
/// is read as well.
fn execute_conversion(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    check_registers(step, op)?;
    let Some(target) = vector_operand(step, op, Name::Vdst) else { return Err(StepFault::unknown(op, "a target")) };
    let key = op.inst.mnemonic().bytes().fold(13, |key, byte| mix_hash(key, byte.into()));
    let key = [Name::ScaleSel, Name::Src0Modifiers, Name::Src1Modifiers, Name::Src2Modifiers, Name::ByteSel]
        .into_iter()
        .fold(key, |key, name| mix_hash(key, raw_field(op, name)));
    // Scales may be in other lanes.
    let all =
        [Name::Src1, Name::Src2].into_iter().fold(key, |key, name| fold_lanes(key, &operand_lanes(step, op, name)));
    let sources: Vec<Lanes> = [Name::Src0, Name::Vdst].iter().flat_map(|name| operand_lanes(step, op, *name)).collect();
    let exec = step.wave.exec_half(0);
    for register in 0..u16::from(target.count) {
        let block = step.wave.block_mut(target.index + register, 0);
        for lane in (0..LANES).filter(|lane| exec >> lane & 1 != 0) {
            let key =
                sources.iter().fold(mix_hash(all, register.into()), |key, lanes| mix_hash(key, lanes[lane].into()));
            block[lane] = finite_float(key);
        }
    }
    Ok(StepFlow::Next)
}

/// Another matrix instruction: a function of its own.
fn execute_other(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    check_registers(step, op)?;
    let Some(target) = vector_operand(step, op, Name::Vdst) else { return Err(StepFault::unknown(op, "a target")) };
    let key = key_of(step, op);
    for register in 0..u16::from(target.count) {
        let lanes = element_row(key, register.into(), &[0; LANES]);
        *step.wave.block_mut(target.index + register, 0) = lanes;
    }
    Ok(StepFlow::Next)
}

/// The name, modifiers, and everything that is read.
fn key_of(step: &ExecContext<'_>, op: &MicroOp) -> u64 {
    let mut key = op.inst.mnemonic().bytes().fold(7, |key, byte| mix_hash(key, byte.into()));
    let operands: Vec<_> = op.inst.operands(step.device.isa()).collect();
    for operand in operands {
        let is_target = operand.access == OperandAccess::Write && matches!(operand.value, OperandValue::Reg(_));
        if !is_target {
            key = fold_lanes(mix_hash(key, operand.name as u64), &operand_lanes(step, op, operand.name));
        }
    }
    key
}

/// A tensor copy: a record of its descriptor. The mask of work-groups that receive it is left out where the stepping has it.
fn copy_tensor(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let mask = operand_lanes(step, op, Name::Vaddr1).first().map_or(0, |lanes| lanes[0] & 0xffff);
    if mask != 0 && step.device.lacks_multicast() {
        return Err(multicast_trap(op));
    }
    let mut key = 11;
    for name in [Name::Vaddr0, Name::Vaddr1, Name::Vaddr2, Name::Vaddr3] {
        let mut dwords = operand_lanes(step, op, name);
        if let Some(first) = dwords.first_mut().filter(|_| name == Name::Vaddr1) {
            *first = first.map(|word| word & 0xffff_0000);
        }
        key = fold_lanes(key, &dwords);
    }
    step.memory
        .write(RECORDS + (key & 0xff_fff8), &key.to_le_bytes())
        .map_err(|fault| StepFault::from_memory_fault(fault, None))?;
    Ok(StepFlow::Next)
}

/// A tensor copy to memory: a record of its descriptor and of all of LDS that it may read.
fn copy_out(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    let names = [Name::Vaddr0, Name::Vaddr1, Name::Vaddr2, Name::Vaddr3];
    let key = names.into_iter().fold(17, |key, name| fold_lanes(key, &operand_lanes(step, op, name)));
    let key = step.lds.iter().fold(key, |key, byte| mix_hash(key, u64::from(*byte)));
    step.memory
        .write(RECORDS + (key & 0xff_fff8), &key.to_le_bytes())
        .map_err(|fault| StepFault::from_memory_fault(fault, None))?;
    Ok(StepFlow::Next)
}

fn multicast_trap(op: &MicroOp) -> Box<StepFault> {
    let rule = "a mask of work-groups that receive a load";
    StepFault::new(FaultKind::SteppingTrap { mnemonic: op.inst.mnemonic(), rule })
}

/// A mask of work-groups in M0 is a fault where the stepping lacks masks.
pub(crate) fn check_multicast(step: &ExecContext<'_>, op: &MicroOp) -> Result<(), Box<StepFault>> {
    let is_masked = step.wave.scalars[usize::from(M0)] & 0xffff != 0;
    if step.device.lacks_multicast() && is_masked { Err(multicast_trap(op)) } else { Ok(()) }
}

/// Loads of a cluster.
pub(crate) fn load_of_cluster(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    check_multicast(step, op)?;
    super::global::access_global(step, op)
}
