//! The semantics of single instructions, by their names in the instruction set: those that replacements are made of,
//! and those that they replace.
//!
//! Absent on purpose: everything with which no replacement computes; it is opaque ([`super::machine`]).

use super::machine::{InstructionContext, Machine, SteppingSide, hash_text, hash_values};
use super::numbers;
use super::spill::{ScratchAccess, absolute_access};
use hotswap_isa::{Inst, Name, OperandValue};

/// Runs an instruction that is known here. Returns whether it is.
pub(super) fn run_known(
    machine: &mut Machine,
    line: &InstructionContext<'_>,
    side: SteppingSide,
) -> Result<bool, String> {
    let name = line.inst.mnemonic();
    let slot = absolute_access(line.inst, line.isa).filter(|access| machine.has_slot(access.offset));
    if let Some(slot) = slot.filter(|_| side == SteppingSide::Target) {
        return run_scratch_access(machine, line, slot).map(|()| true);
    }
    if let Some(access) = LdsAccess::from_mnemonic(name) {
        return run_lds_access(machine, line, access, side).map(|()| true);
    }
    if let Some(matrix) = MatrixSemantics::from_matrix_mnemonic(name) {
        return run_matrix(machine, line, matrix).map(|()| true);
    }
    if name.starts_with("cluster_load_") || name == "tensor_load_to_lds" {
        return run_multicast(machine, line, side).map(|()| true);
    }
    if let Some(result) = run_conversion(machine, line) {
        return result.map(|()| true);
    }
    run_computation(machine, line)
}

/// Modifiers of sources and results: instructions that have some are opaque.
fn is_plain(inst: &Inst) -> bool {
    const NAMES: [Name; 6] =
        [Name::Src0Modifiers, Name::Src1Modifiers, Name::Src2Modifiers, Name::Clamp, Name::Omod, Name::DppCtrl];
    NAMES.iter().all(|name| inst.raw(*name).unwrap_or(0) == 0) && inst.raw(Name::Dpp8).is_none()
}

/// An instruction of the vector or scalar unit without side effects.
fn run_computation(machine: &mut Machine, line: &InstructionContext<'_>) -> Result<bool, String> {
    if let Some(known) = run_comparison(machine, line).or_else(|| has_modifiers(machine, line)) {
        return known;
    }
    if !is_plain(line.inst) {
        return Ok(false);
    }
    if let Some(known) = on_scalars(machine, line) {
        return known;
    }
    let sources = [Name::Src0, Name::Src1, Name::Src2].map(|source| machine.read_operand(line, source));
    let Some(value) = on_vectors(line, sources, machine.lane()) else { return Ok(false) };
    machine.write_operand(line, Name::Vdst, &[value])?;
    Ok(true)
}

/// Comparisons into a scalar register: one bit for the lane.
fn run_comparison(machine: &mut Machine, line: &InstructionContext<'_>) -> Option<Result<bool, String>> {
    let [a, b] = [Name::Src0, Name::Src1].map(|source| machine.read_operand(line, source));
    let holds = match line.inst.mnemonic() {
        "v_cmp_lt_u32" => a < b,
        "v_cmp_gt_u32" => a > b,
        "v_cmp_eq_u32" => a == b,
        _ => return None,
    };
    if !is_plain(line.inst) || line.inst.entry().slot(Name::Sdst).is_none() {
        return Some(Ok(false));
    }
    let bit = u32::from(holds) << machine.lane();
    Some(machine.write_operand(line, Name::Sdst, &[bit]).map(|()| true))
}

/// Those with modifiers that are known here.
fn has_modifiers(machine: &mut Machine, line: &InstructionContext<'_>) -> Option<Result<bool, String>> {
    let [a, b, c] = [Name::Src0, Name::Src1, Name::Src2].map(|source| machine.read_operand(line, source));
    let modifiers = [Name::Src0Modifiers, Name::Src1Modifiers, Name::Src2Modifiers].map(|name| line.raw(name));
    let value = match (line.inst.mnemonic(), modifiers) {
        // The smaller of the first two, then the larger of that and the third.
        ("v_minimummaximum_f32", [0, 0, 1]) => clamp_float(a, flip_sign_bit(c), b),
        ("v_cvt_f32_f16", [first, ..]) if first & 3 == 0 && line.raw(Name::Clamp) | line.raw(Name::Omod) == 0 => {
            numbers::from_half(a as u16)
        }
        ("v_minimummaximum_f32" | "v_cvt_f32_f16", _) => return Some(Ok(false)),
        _ => return None,
    };
    Some(machine.write_operand(line, Name::Vdst, &[value]).map(|()| true))
}

fn flip_sign_bit(bits: u32) -> u32 {
    bits ^ 0x8000_0000
}

/// Instructions of the scalar unit.
fn on_scalars(machine: &mut Machine, line: &InstructionContext<'_>) -> Option<Result<bool, String>> {
    let [a, b] = [Name::Src0, Name::Src1].map(|source| machine.read_operand(line, source));
    let values = match line.inst.mnemonic() {
        "s_mov_b32" => vec![a],
        "s_mov_b64" => {
            let mut both = machine.operand_dwords(line, Name::Src0);
            both.resize(2, 0);
            both
        }
        "s_mul_i32" => vec![a.wrapping_mul(b)],
        "s_pack_hh_b32_b16" => vec![a >> 16 | b & 0xffff_0000],
        "s_getreg_b32" => {
            let part = line.raw(Name::Simm16) as u32;
            let (register, offset, size) = (part & 63, part >> 6 & 31, (part >> 11 & 31) + 1);
            if register != 1 {
                return Some(Ok(false));
            }
            vec![machine.mode() >> offset & ((1_u64 << size) - 1) as u32]
        }
        _ => return None,
    };
    Some(machine.write_operand(line, Name::Sdst, &values).map(|()| true))
}

/// Instructions of the vector unit without modifiers.
fn on_vectors(line: &InstructionContext<'_>, [a, b, c]: [u32; 3], lane: u32) -> Option<u32> {
    let float = f32::from_bits;
    Some(match line.inst.mnemonic() {
        "v_mov_b32" => a,
        "v_and_b32" => a & b,
        "v_or_b32" => a | b,
        "v_xor_b32" => a ^ b,
        "v_bfe_u32" => a >> (b & 31) & ((1_u64 << (c & 31)) - 1) as u32,
        "v_bfi_b32" => a & b | !a & c,
        "v_add3_u32" => a.wrapping_add(b).wrapping_add(c),
        "v_add_nc_u32" => a.wrapping_add(b),
        "v_sub_nc_u32" => a.wrapping_sub(b),
        "v_subrev_nc_u32" => b.wrapping_sub(a),
        "v_lshrrev_b32" => b >> (a & 31),
        "v_lshlrev_b32" => b << (a & 31),
        "v_lshl_or_b32" => a << (b & 31) | c,
        "v_lshl_add_u32" => (a << (b & 31)).wrapping_add(c),
        "v_mul_f32" => (float(a) * float(b)).to_bits(),
        "v_rndne_f32" => float(a).round_ties_even().to_bits(),
        "v_cvt_u32_f32" => float(a) as u32,
        "v_cvt_f32_ubyte0" => ((a & 0xff) as f32).to_bits(),
        "v_cndmask_b32" if line.inst.entry().slot(Name::Src2).is_some() => {
            if c >> lane & 1 != 0 {
                b
            } else {
                a
            }
        }
        "v_mbcnt_lo_u32_b32" => (a & ((1_u64 << lane) - 1) as u32).count_ones().wrapping_add(b),
        "v_cvt_pk_f16_f32" => u32::from(numbers::to_half(a)) | u32::from(numbers::to_half(b)) << 16,
        _ => return None,
    })
}

/// `maximum(minimum(value, high), low)` of IEEE 754-2019: a NaN among the three is the result.
fn clamp_float(value: u32, low: u32, high: u32) -> u32 {
    let (number, low, high) = (f32::from_bits(value), f32::from_bits(low), f32::from_bits(high));
    if let Some(limit) = [high, low].into_iter().find(|limit| limit.is_nan() && !number.is_nan()) {
        return limit.to_bits();
    }
    match () {
        () if number.is_nan() => value,
        () if number > high => high.to_bits(),
        () if number < low => low.to_bits(),
        () => value,
    }
}

/// The conversions to and from UE5M3: those of E4M3 with CLAMP.
fn run_conversion(machine: &mut Machine, line: &InstructionContext<'_>) -> Option<Result<(), String>> {
    if line.raw(Name::Clamp) == 0 {
        return None;
    }
    let [a, b] = [Name::Src0, Name::Src1].map(|source| machine.read_operand(line, source));
    let overflows = machine.mode() >> 23 & 1 != 0;
    let Some(OperandValue::Reg(result)) = line.inst.operand(line.isa, Name::Vdst) else { return None };
    let modified = [Name::Src0Modifiers, Name::Src1Modifiers].iter().any(|name| line.raw(*name) & 3 != 0);
    let value = match line.inst.mnemonic() {
        _ if modified => return Some(Err("what modifiers of the source mean for UE5M3 is not known".to_owned())),
        "v_cvt_pk_fp8_f32" => {
            let packed = numbers::to_ue5m3(a, overflows) | numbers::to_ue5m3(b, overflows) << 8;
            // The operand names a half of the register.
            return Some(match result.half {
                Some(_) => machine.write_operand(line, Name::Vdst, &[packed]),
                None => {
                    let upper = line.raw(Name::Src0Modifiers) & 8 != 0;
                    let value = if upper {
                        old_destination_dword(machine, line) & 0xffff | packed << 16
                    } else {
                        old_destination_dword(machine, line) & 0xffff_0000 | packed
                    };
                    machine.write_operand(line, Name::Vdst, &[value])
                }
            });
        }
        "v_cvt_sr_fp8_f32" => {
            let byte = 8 * line.raw(Name::ByteSel) as u32;
            old_destination_dword(machine, line) & !(0xff << byte)
                | numbers::to_ue5m3_stochastic(a, b, overflows) << byte
        }
        "v_cvt_f32_fp8" => numbers::from_ue5m3(a >> (8 * line.raw(Name::ByteSel) as u32) & 0xff),
        _ => return None,
    };
    Some(machine.write_operand(line, Name::Vdst, &[value]))
}

fn old_destination_dword(machine: &Machine, line: &InstructionContext<'_>) -> u32 {
    machine.operand_dwords(line, Name::Vdst).first().copied().unwrap_or(0)
}

/// An access to LDS of whole dwords.
#[derive(Debug, Clone, Copy)]
struct LdsAccess {
    kind: AccessKind,
    /// Dwords of an element.
    dwords: u32,
    /// Bytes per unit of the offsets with two addresses; 0 for those with one.
    unit: u32,
    by_lane: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccessKind {
    Load,
    Store,
    Exchange,
}

impl LdsAccess {
    fn from_mnemonic(name: &str) -> Option<Self> {
        use AccessKind::{Exchange, Load, Store};
        let (kind, dwords, unit, by_lane) = match name {
            "ds_load_b32" => (Load, 1, 0, false),
            "ds_load_b64" => (Load, 2, 0, false),
            "ds_load_b128" => (Load, 4, 0, false),
            "ds_store_b32" => (Store, 1, 0, false),
            "ds_store_b64" => (Store, 2, 0, false),
            "ds_store_b128" => (Store, 4, 0, false),
            "ds_storexchg_rtn_b32" => (Exchange, 1, 0, false),
            "ds_storexchg_rtn_b64" => (Exchange, 2, 0, false),
            "ds_load_2addr_b32" => (Load, 1, 4, false),
            "ds_load_2addr_b64" => (Load, 2, 8, false),
            "ds_load_2addr_stride64_b32" => (Load, 1, 256, false),
            "ds_load_2addr_stride64_b64" => (Load, 2, 512, false),
            "ds_store_2addr_b32" => (Store, 1, 4, false),
            "ds_store_2addr_b64" => (Store, 2, 8, false),
            "ds_store_2addr_stride64_b32" => (Store, 1, 256, false),
            "ds_store_2addr_stride64_b64" => (Store, 2, 512, false),
            "ds_storexchg_2addr_rtn_b32" => (Exchange, 1, 4, false),
            "ds_storexchg_2addr_rtn_b64" => (Exchange, 2, 8, false),
            "ds_storexchg_2addr_stride64_rtn_b32" => (Exchange, 1, 256, false),
            "ds_storexchg_2addr_stride64_rtn_b64" => (Exchange, 2, 512, false),
            "ds_load_addtid_b32" => (Load, 1, 0, true),
            "ds_store_addtid_b32" => (Store, 1, 0, true),
            _ => return None,
        };
        Some(Self { kind, dwords, unit, by_lane })
    }
}

fn run_lds_access(
    machine: &mut Machine,
    line: &InstructionContext<'_>,
    access: LdsAccess,
    side: SteppingSide,
) -> Result<(), String> {
    let own =
        machine.m0().wrapping_add(4 * machine.lane()) & if side == SteppingSide::Source { 0xf_ffff } else { 0xffff };
    let address = if access.by_lane { own } else { machine.read_operand(line, Name::Addr) };
    let mut data = machine.operand_dwords(line, Name::Data0);
    let places: Vec<u32> = match access.unit {
        0 => vec![line.raw(Name::Offset) as u32],
        unit => {
            data.extend(machine.operand_dwords(line, Name::Data1));
            [Name::Offset0, Name::Offset1].iter().map(|name| line.raw(*name) as u32 * unit).collect()
        }
    };
    let mut data = data.into_iter();
    let mut loaded = Vec::new();
    for place in places {
        if access.kind != AccessKind::Store {
            loaded.extend((0..access.dwords).map(|dword| machine.load_lds(lds_dword_address(dword, address, place))));
        }
        if access.kind != AccessKind::Load {
            for dword in 0..access.dwords {
                let value = data.next().ok_or_else(|| "an access without data".to_owned())?;
                machine.store_lds(lds_dword_address(dword, address, place), value);
            }
        }
    }
    match loaded.is_empty() {
        true => Ok(()),
        false => machine.write_operand(line, Name::Vdst, &loaded),
    }
}

fn lds_dword_address(dword: u32, address: u32, place: u32) -> u32 {
    address.wrapping_add(place).wrapping_add(4 * dword)
}

/// A store to the slot of a register that is spilled, or a load from it.
fn run_scratch_access(
    machine: &mut Machine,
    line: &InstructionContext<'_>,
    ScratchAccess { offset, is_load }: ScratchAccess,
) -> Result<(), String> {
    if is_load {
        let value = machine.load_slot(offset);
        let value = value.ok_or_else(|| format!("a load from the slot at {offset:#x} comes before a store to it"))?;
        return machine.write_operand(line, Name::Vdst, &[value]);
    }
    let value = machine.read_operand(line, Name::Vdata);
    machine.store_slot(offset, value);
    Ok(())
}

/// A load for a cluster or of a tensor: the mask of workgroups that receive it must be 0 on the target, and is ignored
/// if the source was compiled for a single one.
fn run_multicast(machine: &mut Machine, line: &InstructionContext<'_>, side: SteppingSide) -> Result<(), String> {
    let tensor = line.inst.mnemonic() == "tensor_load_to_lds";
    let mut key = hash_text(line.inst.mnemonic());
    for operand in line.inst.operands(line.isa).filter(|operand| operand.access == hotswap_isa::OperandAccess::Read) {
        let mut dwords = machine.operand_dwords(line, operand.name);
        if tensor && operand.name == Name::Vaddr1 {
            dwords.iter_mut().take(1).filter(|_| side == SteppingSide::Source).for_each(|dword| *dword &= 0xffff_0000);
        }
        key = hash_values(key, &[hash_text(operand.name.as_str()) as u32]);
        key = hash_values(key, &dwords);
    }
    let mask = if side == SteppingSide::Source || tensor { 0 } else { machine.m0() & 0xffff };
    machine.record_event(line, hash_values(key, &[mask]))
}

/// A matrix instruction of depth 128, by the product that it computes.
#[derive(Debug, Clone, Copy)]
struct MatrixSemantics {
    /// Formats of A and B where the name contains them.
    formats: Option<[u32; 2]>,
    /// 32 rows: two of 16.
    rows: bool,
    scales: Scales,
    /// C and the result are of 16 bits.
    half: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scales {
    None,
    Of32,
    Of16,
}

impl MatrixSemantics {
    fn from_matrix_mnemonic(name: &str) -> Option<Self> {
        const FP8: u32 = 0;
        const BF8: u32 = 1;
        const FP4: u32 = 4;
        let encoded = Self { formats: None, rows: false, scales: Scales::None, half: false };
        let two_blocks = Self { formats: Some([FP4, FP4]), rows: true, ..encoded };
        Some(match name {
            "v_wmma_f32_16x16x128_fp8_fp8" => Self { formats: Some([FP8, FP8]), ..encoded },
            "v_wmma_f32_16x16x128_fp8_bf8" => Self { formats: Some([FP8, BF8]), ..encoded },
            "v_wmma_f32_16x16x128_bf8_fp8" => Self { formats: Some([BF8, FP8]), ..encoded },
            "v_wmma_f32_16x16x128_bf8_bf8" => Self { formats: Some([BF8, BF8]), ..encoded },
            "v_wmma_f16_16x16x128_fp8_fp8" => Self { formats: Some([FP8, FP8]), half: true, ..encoded },
            "v_wmma_f16_16x16x128_fp8_bf8" => Self { formats: Some([FP8, BF8]), half: true, ..encoded },
            "v_wmma_f16_16x16x128_bf8_fp8" => Self { formats: Some([BF8, FP8]), half: true, ..encoded },
            "v_wmma_f16_16x16x128_bf8_bf8" => Self { formats: Some([BF8, BF8]), half: true, ..encoded },
            "v_wmma_f32_16x16x128_f8f6f4" => encoded,
            "v_wmma_scale_f32_16x16x128_f8f6f4" => Self { scales: Scales::Of32, ..encoded },
            "v_wmma_scale16_f32_16x16x128_f8f6f4" => Self { scales: Scales::Of16, ..encoded },
            "v_wmma_f32_32x16x128_f4" => two_blocks,
            "v_wmma_scale_f32_32x16x128_f4" => Self { scales: Scales::Of32, ..two_blocks },
            "v_wmma_scale16_f32_32x16x128_f4" => Self { scales: Scales::Of16, ..two_blocks },
            _ => return None,
        })
    }

    /// The dwords of A or C that belong to one of the blocks of 16 rows.
    fn block_dwords(self, dwords: &[u32], block: usize) -> Vec<u32> {
        match self.rows {
            true => dwords.get(8 * block..8 * block + 8).unwrap_or_default().to_vec(),
            false => dwords.to_vec(),
        }
    }
}

fn run_matrix(machine: &mut Machine, line: &InstructionContext<'_>, matrix: MatrixSemantics) -> Result<(), String> {
    let formats =
        matrix.formats.unwrap_or_else(|| [Name::MatrixAFmt, Name::MatrixBFmt].map(|name| line.raw(name) as u32));
    let [a, b] = [Name::Src0, Name::Src1].map(|name| machine.operand_dwords(line, name));
    let c = matrix_addend(machine, line, matrix);
    let mut results = Vec::new();
    for part in 0..if matrix.rows { 2 } else { 1 } {
        let mut key = hash_values(hash_text("matrix"), &formats);
        key = hash_values(key, &matrix.block_dwords(&a, part));
        key = hash_values(key, &b);
        key = hash_values(key, &if c.len() > 2 { matrix.block_dwords(&c, part) } else { c.clone() });
        key = hash_values(key, &[line.raw(Name::Src2Modifiers) as u32 & 3]);
        key = hash_values(key, &matrix_scales(machine, line, matrix, part as u32)?);
        results.extend((0..8).map(|register| machine.matrix_sum(key, register)));
    }
    if !matrix.half {
        return machine.write_operand(line, Name::Vdst, &results);
    }
    let limit = 0x477f_e000;
    let overflows = machine.mode() >> 23 & 1 != 0;
    let halves: Vec<u32> =
        results.iter().map(|bits| u32::from(numbers::to_half(clamp_on_overflow(*bits, overflows, limit)))).collect();
    let packed: Vec<u32> = halves.chunks(2).map(|pair| pair[0] | pair[1] << 16).collect();
    machine.write_operand(line, Name::Vdst, &packed)
}

fn clamp_on_overflow(bits: u32, overflows: bool, limit: u32) -> u32 {
    if overflows { clamp_float(bits, limit | 0x8000_0000, limit) } else { bits }
}

/// C as 32-bit floats; a constant as one number.
fn matrix_addend(machine: &Machine, line: &InstructionContext<'_>, matrix: MatrixSemantics) -> Vec<u32> {
    let dwords = machine.operand_dwords(line, Name::Src2);
    match (line.inst.operand(line.isa, Name::Src2), matrix.half) {
        (Some(OperandValue::Reg(_)), true) => {
            let halves = dwords.iter().flat_map(|dword| [*dword as u16, (dword >> 16) as u16]);
            halves.map(numbers::from_half).collect()
        }
        (Some(OperandValue::Reg(_)), false) => dwords,
        (_, true) => vec![numbers::from_half(dwords.first().copied().unwrap_or(0) as u16)],
        (_, false) => dwords.into_iter().take(1).collect(),
    }
}

/// Scales with their rows and formats. The constant 0 is the factor 1 in each of them.
fn matrix_scales(
    machine: &Machine,
    line: &InstructionContext<'_>,
    matrix: MatrixSemantics,
    part: u32,
) -> Result<Vec<u32>, String> {
    let sides = [
        (Name::ScaleSrc0, Name::MatrixAScale, Name::MatrixAScaleFmt),
        (Name::ScaleSrc1, Name::MatrixBScale, Name::MatrixBScaleFmt),
    ];
    let mut all = Vec::new();
    for (side, (source, row, format)) in sides.into_iter().enumerate() {
        let value = line.inst.operand(line.isa, source);
        let neutral =
            matrix.scales == Scales::None || matches!(value, Some(OperandValue::Inline(inline)) if inline.code == 128);
        if neutral {
            all.push(0);
            continue;
        }
        let own = line.raw(row) as u32;
        let row = match (matrix.rows, side) {
            (true, 0) if own != 0 => return Err("rows of scales that 32 rows use up are chosen".to_owned()),
            (true, 0) => part,
            _ => own,
        };
        all.extend([1 + u32::from(matrix.scales == Scales::Of16), row, line.raw(format) as u32]);
        all.extend(machine.operand_dwords(line, source));
    }
    Ok(all)
}
