//! Classes of instructions, by flags of their rows, operands and fields.

use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Flag, Implicit, Inst, Isa, Name, OperandValue};

/// A class of instructions to which a row of the table applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InstClass {
    Any,
    /// Instructions of the vector unit, including matrix instructions but not memory instructions (LLVM: `isVALU`).
    Vector,
    /// Vector instructions that may run beside a matrix instruction: all except matrix instructions.
    VectorBesideMatrix,
    /// Vector instructions that may run beside a transcendental one: all except transcendental ones.
    VectorBesideTrans,
    /// Copies from memory to LDS, which the vector unit issues (LLVM: `isLDSDMA`).
    LdsDma,
    /// Transcendental instructions (LLVM: `isTRANS`).
    Trans,
    /// WMMA and SWMMAC that run on the matrix unit (LLVM: `isXDLWMMA`).
    Matrix,
    /// Dense, integers: latency 16.
    MatrixDenseInteger,
    /// Dense, formats in the instruction, and A or B has eight bits an element: latency 16.
    MatrixDenseEightBit,
    /// Dense, all others: latency 8.
    MatrixDense,
    /// Sparse, integers: latency 16.
    MatrixSparseInteger,
    /// Sparse, all others: latency 8.
    MatrixSparse,
    /// Vector and scalar instructions that write s102.
    WritesScratchBaseLo,
    /// The same for s103.
    WritesScratchBaseHi,
    /// Reads the low half of the scratch base, as a source or by `s_getreg`.
    ReadsScratchBaseLo,
    /// The same for the high half.
    ReadsScratchBaseHi,
    /// V_PERM_PK16: its lookup must be ended by the next instruction (LLVM: `isVPermPk16`).
    PermPk16,
    /// Vector instructions that write scalar registers other than EXEC.
    VectorWritesScalar,
    /// Scalar instructions that write scalar registers.
    ScalarWritesScalar,
    /// `s_setreg` of MODE.
    SetsMode,
    /// `s_set_vgpr_msb`.
    SetsBanks,
    /// Dual instructions of three operands whose first half computes with 64 bits.
    DualDouble,
    /// Memory instructions that write registers when they complete.
    Load,
    /// Memory instructions whose sources may be read again when they are replayed (XNACK).
    Replayed,
    /// Memory instructions with vector registers, copies to LDS among them.
    VectorMemory,
    /// `s_getreg` of a register that changes while instructions run (LLVM #153848).
    ReadsWaveState,
}

/// The scalar registers that hold the scratch base denoted by the special source.
pub const SCRATCH_BASE_SGPRS: [u16; 2] = [102, 103];

impl InstClass {
    /// Whether an instruction belongs to it.
    #[must_use]
    pub fn contains(self, inst: &Inst, isa: Isa) -> bool {
        match self {
            Self::Any => true,
            Self::Vector => counts_towards_distance(inst),
            Self::VectorBesideMatrix => counts_towards_distance(inst) && !is_matrix(inst),
            Self::VectorBesideTrans => counts_towards_distance(inst) && !inst.is(Flag::Trans),
            Self::LdsDma => inst.is(Flag::Valu) && inst.is(Flag::Flat) && inst.is(Flag::AsyncCnt),
            Self::Trans => inst.is(Flag::Trans),
            Self::Matrix => is_xdl(inst),
            Self::MatrixDenseInteger => is_xdl(inst) && !is_sparse(inst) && inst.is(Flag::IntClamp),
            Self::MatrixDenseEightBit => is_xdl(inst) && !is_sparse(inst) && has_eight_bit(inst),
            Self::MatrixDense => is_xdl(inst) && !is_sparse(inst) && !inst.is(Flag::IntClamp) && !has_eight_bit(inst),
            Self::MatrixSparseInteger => is_sparse(inst) && inst.is(Flag::IntClamp),
            Self::MatrixSparse => is_sparse(inst) && !inst.is(Flag::IntClamp),
            Self::WritesScratchBaseLo => writes_scalar(inst, isa, SCRATCH_BASE_SGPRS[0]),
            Self::WritesScratchBaseHi => writes_scalar(inst, isa, SCRATCH_BASE_SGPRS[1]),
            Self::ReadsScratchBaseLo => reads_base(inst, isa, Special::FlatScratchBaseLo, SCRATCH_LO_ID),
            Self::ReadsScratchBaseHi => reads_base(inst, isa, Special::FlatScratchBaseHi, SCRATCH_HI_ID),
            Self::PermPk16 => inst.is(Flag::PermPk16),
            Self::VectorWritesScalar => counts_towards_distance(inst) && writes_some_scalar(inst, isa),
            Self::ScalarWritesScalar => inst.is(Flag::Salu) && writes_some_scalar(inst, isa),
            Self::SetsMode => sets_mode(inst),
            Self::SetsBanks => hotswap_isa::bank::previous_mode(inst).is_some(),
            Self::DualDouble => inst.is(Flag::Vopd3) && first_half_is_double(inst, isa),
            Self::Load => !inst.wait_counters(isa).is_empty() && inst.writes(isa).next().is_some(),
            Self::Replayed => inst.memory_access().is_some(),
            Self::VectorMemory => is_vector_memory(inst),
            Self::ReadsWaveState => reads_wave_state(inst),
        }
    }
}

/// The bit of MODE among implicit registers.
const MODE: u32 = 1 << Implicit::Mode as u32;
/// Numbers of hardware registers as encoded in `s_getreg`.
const MODE_ID: u64 = 1;
const SCRATCH_LO_ID: u64 = 20;
const SCRATCH_HI_ID: u64 = 21;
/// STATUS, STATE_PRIV, EXCP_FLAG_PRIV, EXCP_FLAG_USER.
const WAVE_STATE_IDS: [u64; 4] = [2, 4, 17, 18];
/// Flags of memory instructions with vector registers, and of exports.
const VECTOR_MEMORY: [Flag; 9] = [
    Flag::Ds,
    Flag::Flat,
    Flag::FlatGlobal,
    Flag::FlatScratch,
    Flag::Mubuf,
    Flag::Mtbuf,
    Flag::Vimage,
    Flag::Vsample,
    Flag::Exp,
];

/// Whether an instruction is a matrix instruction.
#[must_use]
pub fn is_matrix(inst: &Inst) -> bool {
    inst.is(Flag::Wmma) || inst.is(Flag::Swmmac)
}

/// Whether an instruction counts towards a distance: it is of the vector unit and no memory instruction (LLVM counts
/// `isVALU`).
#[must_use]
pub fn counts_towards_distance(inst: &Inst) -> bool {
    inst.is(Flag::Valu) && !is_vector_memory(inst) && !inst.is(Flag::TensorCnt)
}

fn is_vector_memory(inst: &Inst) -> bool {
    VECTOR_MEMORY.into_iter().any(|flag| inst.is(flag))
}

/// Whether an instruction runs on the matrix unit, so that others must keep a distance from it.
#[must_use]
pub fn is_xdl(inst: &Inst) -> bool {
    is_matrix(inst) && !inst.is(Flag::NoXdl)
}

fn is_sparse(inst: &Inst) -> bool {
    inst.is(Flag::Swmmac)
}

/// Whether the formats are fields and one of them has eight bits an element.
fn has_eight_bit(inst: &Inst) -> bool {
    /// Numbers of the formats from which on elements have fewer than eight bits.
    const SIX_BIT: u64 = 2;
    let formats = [inst.raw(Name::MatrixAFmt), inst.raw(Name::MatrixBFmt)];
    formats.into_iter().flatten().any(|format| format < SIX_BIT)
}

fn writes_scalar(inst: &Inst, isa: Isa, index: u16) -> bool {
    let touches =
        |reg: Reg| reg.file == RegFile::Sgpr && (reg.index..reg.index + u16::from(reg.count)).contains(&index);
    inst.writes(isa).any(|effect| touches(effect.reg))
}

fn writes_some_scalar(inst: &Inst, isa: Isa) -> bool {
    let named = inst.writes(isa).any(|effect| effect.reg.file == RegFile::Sgpr || is_vcc_register(effect.reg));
    named || inst.written_set(isa, VgprBanks::UNKNOWN).touches(Reg::special(Special::VccLo, 1))
}

fn is_vcc_register(reg: Reg) -> bool {
    matches!(reg.as_special(), Some(Special::VccLo | Special::VccHi))
}

fn reads_base(inst: &Inst, isa: Isa, base: Special, id: u64) -> bool {
    let is_low = base == Special::FlatScratchBaseLo;
    let gets = hardware_register(inst) == Some(id) && inst.entry().implicit_writes() & MODE == 0;
    gets || inst.reads(isa).any(|effect| names_base_half(effect.reg, is_low))
}

fn names_base_half(reg: Reg, is_low: bool) -> bool {
    match reg.as_special() {
        Some(Special::FlatScratchBaseLo) => is_low || reg.count > 1,
        // As 64 bits it is the whole base.
        Some(Special::FlatScratchBaseHi) => !is_low || reg.count > 1,
        _ => false,
    }
}

/// The hardware register of `s_getreg` and `s_setreg`: scalar instructions with a 16-bit field that read MODE.
fn hardware_register(inst: &Inst) -> Option<u64> {
    let is_access = inst.is(Flag::Sopk) && inst.entry().implicit_reads() & MODE != 0;
    inst.raw(Name::Simm16).filter(|_| is_access).map(|field| field & 63)
}

fn reads_wave_state(inst: &Inst) -> bool {
    let is_read = inst.entry().implicit_writes() & MODE == 0;
    is_read && hardware_register(inst).is_some_and(|register| WAVE_STATE_IDS.contains(&register))
}

/// `s_setreg` of MODE.
fn sets_mode(inst: &Inst) -> bool {
    hardware_register(inst) == Some(MODE_ID) && inst.entry().implicit_writes() & MODE != 0
}

fn first_half_is_double(inst: &Inst, isa: Isa) -> bool {
    matches!(inst.operand(isa, Name::VdstX), Some(OperandValue::Reg(reg)) if reg.count > 1)
}
