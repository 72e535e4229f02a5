//! Classes of instructions that must keep a distance in wait states.

use super::{MatrixKind, MatrixShape};
use hotswap_isa::{Feature, Flag, Inst, Isa, Name, OperandValue};

/// A class of instructions to which a row of the table applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DistanceClass {
    /// The vector unit, copies from memory to LDS included (LLVM: `isVALU`).
    Vector,
    /// The vector unit, except transcendental instructions.
    VectorBesideTrans,
    /// Transcendental instructions of the vector unit (LLVM: `isTRANS`).
    Trans,
    /// Vector instructions whose result is moved into a part of its register (LLVM: `getDstSelForwardingOperand`).
    ShiftedResult,
    /// Vector instructions that read other lanes by DPP.
    Dpp,
    /// `v_div_fmas`, which reads VCC.
    DivFmas,
    /// `v_readlane` and `v_writelane`: a register may select the lane.
    SelectsLane,
    /// `v_readlane` and `v_readfirstlane`, which read vector registers.
    ReadsLane,
    /// Memory through the vector cache, flat addresses included, LDS not (LLVM: `isVMEM`).
    VectorMemory,
    /// Stores and atomics with more than 64 bits of data; of buffers, those without a register as offset.
    WideStore,
    /// `s_setreg`, which writes a hardware register.
    SetsRegister,
    /// `s_getreg`, which reads a hardware register.
    GetsRegister,
    /// Matrix instructions of gfx9 (LLVM: `isMFMA`).
    Matrix,
    /// Matrix instructions of GFX11 and GFX12 (LLVM: `isWMMA`, `isSWMMAC`).
    Wmma,
    /// Those of one kind of gfx9.
    MatrixOf(MatrixKind),
    /// Those that do not run on the matrix unit.
    MatrixBesideXdl,
    /// The vector unit, except matrix instructions.
    VectorBesideMatrix,
    /// The vector unit, vector memory, LDS and exports.
    VectorOrMemory,
    /// `v_fma_f64` and `v_fmac_f64`, of vector registers.
    DoubleFma,
    /// Matrix instructions, and moves into accumulation registers.
    MatrixOrAccWrite,
    /// Moves of vector registers into accumulation registers.
    AccWrite,
    /// Moves of accumulation registers into vector registers.
    AccRead,
    /// Dot products, of any width (LLVM: `isDOT`).
    DotProduct,
    /// `v_permlane…`, which exchange registers between lanes.
    Permlane,
    /// Atomics of vector memory that compute with floats (LLVM: `isFPAtomic`).
    FloatAtomic,
    /// `s_denorm_mode`, which writes a part of MODE.
    SetsDenormals,
    /// The vector unit, and waits for counters.
    VectorOrWait,
    /// Images with addresses in registers of their own, of 16 bytes or more (LLVM: `MIMGEncGfx10NSA`).
    LongImage,
    /// Buffers with bit 1 or 2 in the offset.
    OffsetBuffer,
}

impl DistanceClass {
    /// Whether an instruction belongs to it.
    #[must_use]
    pub fn contains(self, inst: &Inst, isa: Isa) -> bool {
        match self {
            Self::Vector => inst.is(Flag::Valu),
            Self::VectorBesideTrans => inst.is(Flag::Valu) && !inst.is(Flag::Trans),
            Self::Trans => inst.is(Flag::Trans),
            Self::ShiftedResult => inst.is(Flag::Valu) && shifts_result(inst, isa),
            Self::Dpp => inst.is(Flag::Dpp),
            Self::DivFmas => inst.is(Flag::Valu) && inst.mnemonic().starts_with("v_div_fmas_"),
            Self::SelectsLane => is_lane_access(inst, &["v_readlane_b32", "v_writelane_b32"]),
            Self::ReadsLane => is_lane_access(inst, &["v_readlane_b32", "v_readfirstlane_b32"]),
            Self::VectorMemory => is_vector_memory(inst),
            Self::WideStore => is_wide_store(inst, isa) && !has_offset_register(inst, isa),
            Self::SetsRegister => inst.is(Flag::Sopk) && inst.mnemonic().starts_with("s_setreg_"),
            Self::GetsRegister => inst.is(Flag::Sopk) && inst.mnemonic() == "s_getreg_b32",
            Self::Matrix => is_matrix(inst),
            Self::Wmma => inst.is(Flag::Wmma) || inst.is(Flag::Swmmac),
            Self::MatrixOf(kind) => matrix_kind(inst, isa) == Some(kind),
            Self::MatrixBesideXdl => matrix_kind(inst, isa).is_some_and(|kind| kind != MatrixKind::Xdl),
            Self::VectorBesideMatrix => is_plain_vector(inst),
            Self::VectorOrMemory => is_plain_vector(inst) || is_memory(inst),
            Self::DoubleFma => inst.is(Flag::Valu) && DOUBLE_FMA.contains(&inst.mnemonic()),
            Self::MatrixOrAccWrite => inst.is(Flag::Mai) && inst.mnemonic() != "v_accvgpr_read_b32",
            Self::AccWrite => inst.is(Flag::Mai) && inst.mnemonic() == "v_accvgpr_write_b32",
            Self::AccRead => inst.is(Flag::Mai) && inst.mnemonic() == "v_accvgpr_read_b32",
            Self::DotProduct => inst.is(Flag::Dot),
            Self::Permlane => inst.is(Flag::Valu) && inst.mnemonic().starts_with("v_permlane"),
            Self::FloatAtomic => inst.is(Flag::FpAtomic) && is_vector_memory(inst),
            Self::SetsDenormals => inst.is(Flag::Sopp) && inst.mnemonic() == "s_denorm_mode",
            Self::VectorOrWait => inst.is(Flag::Valu) || is_counter_wait(inst.mnemonic()),
            Self::LongImage => inst.is(Flag::Mimg) && inst.len() >= LONG_IMAGE,
            Self::OffsetBuffer => has_offset_bits(inst),
        }
    }
}

const VECTOR_MEMORY: [Flag; 6] =
    [Flag::Mubuf, Flag::Mtbuf, Flag::Mimg, Flag::Flat, Flag::FlatGlobal, Flag::FlatScratch];

/// Bytes of an image instruction of gfx10 with two words of address registers. Without separate addresses it has 8.
const LONG_IMAGE: u8 = 16;

const DOUBLE_FMA: [&str; 2] = ["v_fma_f64", "v_fmac_f64"];

fn is_matrix(inst: &Inst) -> bool {
    inst.is(Flag::Mai) && !inst.mnemonic().starts_with("v_accvgpr_")
}

fn matrix_kind(inst: &Inst, isa: Isa) -> Option<MatrixKind> {
    MatrixShape::of_instruction(inst, isa).map(|shape| shape.kind)
}

fn is_plain_vector(inst: &Inst) -> bool {
    inst.is(Flag::Valu) && !is_matrix(inst)
}

fn is_memory(inst: &Inst) -> bool {
    is_vector_memory(inst) || inst.is(Flag::Ds) || inst.is(Flag::Exp)
}

fn is_vector_memory(inst: &Inst) -> bool {
    VECTOR_MEMORY.into_iter().any(|flag| inst.is(flag))
}

fn is_lane_access(inst: &Inst, mnemonics: &[&str]) -> bool {
    inst.is(Flag::Valu) && mnemonics.contains(&inst.mnemonic())
}

/// LLVM looks at the data of buffers and of flat addresses, not at those of images.
fn is_wide_store(inst: &Inst, isa: Isa) -> bool {
    let has_data = inst.is(Flag::Store) && is_vector_memory(inst) && !inst.is(Flag::Mimg);
    has_data && matches!(inst.operand(isa, Name::Vdata), Some(OperandValue::Reg(reg)) if reg.count > 2)
}

/// LLVM: `isWaitcnt`. The waits of `s_waitcnt_depctr` are for other counters.
fn is_counter_wait(mnemonic: &str) -> bool {
    mnemonic == "s_wait_idle" || (mnemonic.starts_with("s_waitcnt") && mnemonic != "s_waitcnt_depctr")
}

fn has_offset_bits(inst: &Inst) -> bool {
    /// Bits 1 and 2.
    const BITS: u64 = 6;
    let is_buffer = inst.is(Flag::Mubuf) || inst.is(Flag::Mtbuf);
    is_buffer && inst.raw(Name::Offset).is_some_and(|offset| offset & BITS != 0)
}

fn has_offset_register(inst: &Inst, isa: Isa) -> bool {
    matches!(inst.operand(isa, Name::Soffset), Some(OperandValue::Reg(_)))
}

/// SDWA that writes a part, `op_sel` of the upper half, 8-bit results in the upper bytes, and conversions to FP4. LLVM takes
/// all packed instructions for such ones, because a bit of theirs has the same place.
fn shifts_result(inst: &Inst, isa: Isa) -> bool {
    /// `dst_sel` of the whole register.
    const WHOLE: u64 = 6;
    /// Bits of modifiers: the first half of a source, and the upper half of the result.
    const LOWER: u64 = 4;
    const UPPER: u64 = 8;
    let name = inst.mnemonic();
    if inst.is(Flag::Sdwa) {
        return inst.raw(Name::DstSel).is_some_and(|part| part != WHOLE);
    }
    if isa.has(Feature::Gfx950Insts) && name.starts_with("v_cvt_scalef32_") && name.contains("pk_fp4_") {
        return true;
    }
    let is_byte = name.starts_with("v_cvt_sr_fp8_") || name.starts_with("v_cvt_sr_bf8_");
    let is_upper_byte = is_byte && inst.raw(Name::Src2Modifiers).is_some_and(|bits| bits & LOWER != 0);
    let is_upper_half = inst.raw(Name::Src0Modifiers).is_some_and(|bits| bits & UPPER != 0);
    inst.is(Flag::Vop3Opsel) && (is_upper_half || is_upper_byte)
}
