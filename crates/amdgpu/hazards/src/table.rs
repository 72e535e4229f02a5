//! The table.
//!
//! Numbers and decisions were verified with LLVM 24 (`llc -run-pass=post-RA-hazard-rec -mcpu=gfx1250-strict` over MIR);
//! `tests/rewrite-exam` runs it again for everything that families make. "LLVM 24" below is the snapshot of 2026-10-25.
//!
//! | input to LLVM 24 | its result, the same for gfx1250 and gfx1250-strict |
//! |---|---|
//! | `v_exp v1, v2`; `v_mov v2` or `v_mov v3, v1` | one `v_nop`; `s_nop` and scalar instructions between do not count |
//! | `v_exp v1, v2`; `v_mov v1`, `v_exp v2`, or a load into v2 | nothing |
//! | s102 written; `s_mov s0, src_flat_scratch_base_lo` | `s_wait_alu` with VA_SDST and SA_SDST 0 |
//! | `v_readfirstlane s4`; `s_mov s5, s4`; `v_cmp s4`; `v_cndmask … s4` | nothing |
//! | `v_perm_pk16_b4_u4`, then anything except a plain vector instruction of 32 bits | one `v_nop` |
//! | `s_setreg` of MODE after vector instructions | nothing (LLVM 23: two `v_nop`) |
//! | `v_wmma_i32_16x16x64_iu8` with C in v[16:23] and another result; `v_mov v16` | eight `v_nop` (#222932) |
//! | `v_exp v1, v2`; `global_load_async_to_lds` with v1 | one `v_nop`; with other registers nothing |
//! | `v_wmma` and such a load that reads the result | nothing |
//! | `s_getreg` of STATUS, STATE_PRIV, EXCP_FLAG_PRIV, EXCP_FLAG_USER | `s_wait_alu 0` before it |
//! | in SCHED_MODE 2 `v_add v1`; `global_load_async_to_lds` with v1 | `s_wait_alu` with VA_VDST 0 |
//! | in SCHED_MODE 2 a store or copy that reads v1; `v_mov v1` | `s_wait_alu` with VM_VSRC 0 |
//! | in SCHED_MODE 2 `v_readfirstlane s2`; `s_mul_i32 s2, s2, 7`, or `v_cmp s2`; `s_add s3, s2, 5` | nothing |
//!
//! Not in the table: the compare that writes EXEC before a `v_permlane` (no family writes EXEC, and the replacement of
//! a vector instruction contains a non-`v_nop` one); the waits around `ds_atomic_async_barrier_arrive_b64` (they
//! are directly adjacent to it, and nothing is inserted between).

use crate::class::InstClass;
use hotswap_isa::{Feature, Isa};
use std::fmt;

/// A stepping, or a processor of its own, with these hazards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stepping {
    /// gfx1250, the second stepping (B0).
    Gfx1250,
    /// gfx1250-strict, the first stepping (A0).
    Gfx1250Strict,
    Gfx1251,
}

impl Stepping {
    /// The stepping of a target; `None` for processors that are not in the table.
    #[must_use]
    pub fn of_isa(isa: Isa) -> Option<Self> {
        if !isa.has(Feature::Gfx1250Insts) {
            None
        } else if isa.has(Feature::Gfx1250Strict) {
            Some(Self::Gfx1250Strict)
        } else if isa.has(Feature::Gfx1251GemmInsts) {
            Some(Self::Gfx1251)
        } else {
            Some(Self::Gfx1250)
        }
    }
}

/// The overlap of the registers of producer and consumer with which the hazard exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// The consumer reads a register that the producer writes.
    pub read_after_write: bool,
    /// The consumer writes a register that the producer reads.
    pub write_after_read: bool,
    pub write_after_write: bool,
    /// Only vector registers count.
    pub in_vectors: bool,
}

impl Overlap {
    /// The classes alone decide.
    pub const NONE: Self = Self::new(false, false, false);
    const RAW: Self = Self::new(true, false, false);
    const WAR: Self = Self::new(false, true, false);
    const ALL: Self = Self::new(true, true, true);

    const fn new(read_after_write: bool, write_after_read: bool, write_after_write: bool) -> Self {
        Self { read_after_write, write_after_read, write_after_write, in_vectors: false }
    }

    /// The same overlap of vector registers alone.
    const fn within_vectors(self) -> Self {
        Self { in_vectors: true, ..self }
    }
}

/// The requirement between the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// That many vector instructions ([`InstClass::Vector`]) that touch neither.
    VectorInsts(u8),
    /// The next instruction must be a plain vector instruction of 32 bits without DPP, or `v_nop`.
    VectorInstNext,
    /// Only `v_nop`s count, that many directly before the consumer.
    VectorNops(u8),
    /// A scalar instruction, such as `s_nop`.
    ScalarInst,
    /// An `s_wait_alu` in which these bits are 0. The hazard expires after `expires` writes of scalar registers, if
    /// that is not 0.
    WaitAlu {
        /// Bits of the immediate.
        fields: u16,
        /// Writes of scalar registers that end the hazard as well.
        expires: u8,
    },
    /// An `s_wait_alu` whose count in these bits is at most the number of producers issued since. Where memory instructions
    /// are the producers, a wait for their own counters does as well: what has completed has read its sources.
    WaitAluCount(u16),
    /// `s_wait_alu 0` directly before.
    WaitIdle,
    /// A wait for 0 of the counters that the producer raises ([`hotswap_isa::Inst::counters`]).
    WaitCounters,
    /// `s_wait_xcnt 0`.
    WaitXcnt,
    /// No sequence helps; the form must not be made.
    Never,
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VectorInsts(1) => formatter.write_str("a vector instruction between"),
            Self::VectorInsts(count) => write!(formatter, "{count} vector instructions between"),
            Self::VectorInstNext => formatter.write_str("a vector instruction of 32 bits directly after"),
            Self::VectorNops(count) => write!(formatter, "{count} v_nop directly before"),
            Self::ScalarInst => formatter.write_str("a scalar instruction between"),
            Self::WaitAlu { .. } => formatter.write_str("s_wait_alu between"),
            Self::WaitAluCount(wait_alu::VM_VSRC) => formatter.write_str("s_wait_alu depctr_vm_vsrc between"),
            Self::WaitAluCount(_) => formatter.write_str("s_wait_alu depctr_va_vdst between"),
            Self::WaitIdle => formatter.write_str("s_wait_alu 0 directly before"),
            Self::WaitCounters => formatter.write_str("a wait for the operation's counter between"),
            Self::WaitXcnt => formatter.write_str("s_wait_xcnt 0 between"),
            Self::Never => formatter.write_str("never"),
        }
    }
}

/// Fields of the immediate of `s_wait_alu`, as masks.
pub mod wait_alu {
    /// Scalar registers that scalar instructions write.
    pub const SA_SDST: u16 = 0x0001;
    /// VCC that vector instructions write.
    pub const VA_VCC: u16 = 0x0002;
    /// Sources of vector memory instructions.
    pub const VM_VSRC: u16 = 0x001c;
    /// Scalar registers that vector instructions write.
    pub const VA_SDST: u16 = 0x0e00;
    /// Vector registers that vector instructions write.
    pub const VA_VDST: u16 = 0xf000;
    /// The immediate that waits for nothing.
    pub const NOTHING: u16 = 0xff9f;
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct HazardRule {
    /// Its name, for messages and tests.
    pub name: &'static str,
    /// The earlier instruction.
    pub producer: InstClass,
    /// The later instruction.
    pub consumer: InstClass,
    /// Registers that must meet.
    pub overlap: Overlap,
    /// The requirement between the two.
    pub requirement: Requirement,
    /// The steppings that have the hazard.
    pub steppings: &'static [Stepping],
    /// It only holds where the program keeps vector instructions apart itself (SCHED_MODE).
    pub managed_only: bool,
    /// The source of the fact.
    pub source: &'static str,
}

/// The rows of a target.
pub fn rules_for(isa: Isa) -> impl Iterator<Item = &'static HazardRule> + Clone {
    let stepping = Stepping::of_isa(isa);
    RULES.iter().filter(move |rule| stepping.is_some_and(|stepping| rule.steppings.contains(&stepping)))
}

const ALL: &[Stepping] = &[Stepping::Gfx1250, Stepping::Gfx1250Strict, Stepping::Gfx1251];
const STRICT: &[Stepping] = &[Stepping::Gfx1250Strict];

const fn hazard_row(
    name: &'static str,
    (producer, consumer): (InstClass, InstClass),
    overlap: Overlap,
    requirement: Requirement,
    steppings: &'static [Stepping],
    source: &'static str,
) -> HazardRule {
    HazardRule { name, producer, consumer, overlap, requirement, steppings, managed_only: false, source }
}

const MATRIX: &str = "LLVM GCNHazardRecognizer::checkWMMACoexecutionHazards (#149865, #183573, #186269), \
    feature wmma-coexecution-hazards; latencies of gfx1250-strict";
const TRANS: &str =
    "LLVM GCNHazardRecognizer::fixVALUTransCoexecutionHazards (#149024), feature trans-coexecution-hazard";
const SCRATCH: &str = "LLVM GCNHazardRecognizer::fixScratchBaseForwardingHazard";

/// Vector and matrix consumers of one class of matrix instructions. The vector one may neither read or write the result
/// nor write A, B, C or the index; the matrix one may not read the result as A, B or index, but as C at once.
const fn matrix_rows(names: [&'static str; 2], producer: InstClass, vector: u8) -> [HazardRule; 2] {
    let (near, far) = (Requirement::VectorInsts(vector), Requirement::VectorInsts(vector + 1));
    [
        hazard_row(names[0], (producer, InstClass::VectorBesideMatrix), Overlap::ALL, near, STRICT, MATRIX),
        hazard_row(names[1], (producer, InstClass::Matrix), Overlap::RAW, far, STRICT, MATRIX),
    ]
}

const DENSE: [HazardRule; 2] = matrix_rows(["wmma-vector", "wmma-wmma"], InstClass::MatrixDense, 4);
const DENSE_INTEGER: [HazardRule; 2] =
    matrix_rows(["wmma-iu8-vector", "wmma-iu8-wmma"], InstClass::MatrixDenseInteger, 8);
const DENSE_EIGHT_BIT: [HazardRule; 2] =
    matrix_rows(["wmma-f8-vector", "wmma-f8-wmma"], InstClass::MatrixDenseEightBit, 8);
const SPARSE: [HazardRule; 2] = matrix_rows(["swmmac-vector", "swmmac-wmma"], InstClass::MatrixSparse, 2);
const SPARSE_INTEGER: [HazardRule; 2] =
    matrix_rows(["swmmac-iu8-vector", "swmmac-iu8-wmma"], InstClass::MatrixSparseInteger, 4);

/// The rows. For matrix instructions only those of gfx1250-strict: HotSwap makes no code for the second stepping, where
/// three classes need less (`fp8` of K = 64 and `f4` with `f4` 1, `f8f6f4` with eight bits 4).
pub const RULES: &[HazardRule] = &[
    DENSE[0],
    DENSE[1],
    DENSE_INTEGER[0],
    DENSE_INTEGER[1],
    DENSE_EIGHT_BIT[0],
    DENSE_EIGHT_BIT[1],
    SPARSE[0],
    SPARSE[1],
    SPARSE_INTEGER[0],
    SPARSE_INTEGER[1],
    // A transcendental instruction takes two cycles beside the vector unit; its result and its sources are available to
    // the next vector instruction only after one more has issued. Scalar instructions and waits do not count.
    hazard_row(
        "trans-use",
        (InstClass::Trans, InstClass::VectorBesideTrans),
        Overlap::RAW,
        Requirement::VectorInsts(1),
        ALL,
        TRANS,
    ),
    hazard_row(
        "trans-war",
        (InstClass::Trans, InstClass::VectorBesideTrans),
        Overlap::WAR,
        Requirement::VectorInsts(1),
        ALL,
        TRANS,
    ),
    // Copies to LDS go through the vector unit (LLVM: `isVALU` and `isFLAT`), and read their addresses there.
    hazard_row(
        "trans-lds-dma",
        (InstClass::Trans, InstClass::LdsDma),
        Overlap::RAW,
        Requirement::VectorInsts(1),
        ALL,
        TRANS,
    ),
    // The source reads s102 and s103 without the register file's forwarding. LLVM counts ten writes of scalar
    // registers. Decision: families never borrow these two registers, so new code cannot be a producer.
    hazard_row(
        "scratch-base-lo",
        (InstClass::WritesScratchBaseLo, InstClass::ReadsScratchBaseLo),
        Overlap::NONE,
        SCRATCH_WAIT,
        ALL,
        SCRATCH,
    ),
    hazard_row(
        "scratch-base-hi",
        (InstClass::WritesScratchBaseHi, InstClass::ReadsScratchBaseHi),
        Overlap::NONE,
        SCRATCH_WAIT,
        ALL,
        SCRATCH,
    ),
    // LLVM 24 has it for both steppings (feature vperm-pk16-hazard): safe are vector instructions of 32 bits that are
    // neither DPP nor of several passes (not f64, 64-bit shifts and moves, v_mul_lo), TRANS, compares, readlanes,
    // packed 32-bit floats among them; all others, the end of the block included, get a v_nop. Decision: new code
    // directly after such an instruction begins with a v_nop, whatever it is. The instruction after one in unchanged
    // code is not checked: compilers before LLVM 24 do not know the hazard, and gfx1250 has it as well, so rewriting
    // does not add it.
    hazard_row(
        "perm-pk16-next",
        (InstClass::PermPk16, InstClass::Any),
        Overlap::NONE,
        Requirement::VectorInstNext,
        ALL,
        "LLVM #214406, feature vperm-pk16-hazard",
    ),
    // A VOPD3 whose first half has 64 bits reads a wrong value for a vector source of the second half that is the last
    // register of the wave. LLVM 24 has it for both steppings (#224741) and does not form such pairs. Decision: no
    // family makes a VOPD3, and none gives one a vector register (flat_scratch_base gives scalar ones only). A kernel
    // that gets more registers has a later last one, which its old code does not name. So rewriting can only remove the
    // hazard.
    hazard_row(
        "vopd3-f64-last-vgpr",
        (InstClass::DualDouble, InstClass::Any),
        Overlap::NONE,
        Requirement::Never,
        ALL,
        "LLVM #224741, feature vopd3-f64-opy-src-hazard (checkVOPDRegConstraints)",
    ),
    // The hardware keeps these apart itself (LLVM #150344 switches the mitigation off for gfx1250) unless SCHED_MODE
    // assigns that to the program. LLVM 24 does not wait in that mode, either: only new code is held to these two rows.
    HazardRule {
        managed_only: true,
        ..hazard_row(
            "vector-sgpr-read",
            (InstClass::VectorWritesScalar, InstClass::Any),
            Overlap::RAW,
            Requirement::WaitAlu { fields: wait_alu::VA_SDST | wait_alu::VA_VCC, expires: 0 },
            ALL,
            "LLVM #150344; SIInsertWaitcnts in expert scheduling mode",
        )
    },
    HazardRule {
        managed_only: true,
        ..hazard_row(
            "scalar-sgpr-read",
            (InstClass::ScalarWritesScalar, InstClass::Vector),
            Overlap::RAW,
            Requirement::WaitAlu { fields: wait_alu::SA_SDST, expires: 0 },
            ALL,
            "LLVM #150344; SIInsertWaitcnts in expert scheduling mode",
        )
    },
    // Vector results that memory instructions read, and sources of memory instructions that a vector instruction
    // overwrites. New code waits for them where the program sets SCHED_MODE. The four waits that were missing in
    // ROCm/aiter#5402 are these two rows: an address computed before a copy to LDS; and the data of an LDS store, the
    // address of a copy to LDS and the address of a buffer store, overwritten too early.
    HazardRule {
        managed_only: true,
        ..hazard_row(
            "vector-memory-read",
            (InstClass::Vector, InstClass::VectorMemory),
            Overlap::RAW.within_vectors(),
            Requirement::WaitAluCount(wait_alu::VA_VDST),
            ALL,
            "LLVM SIInsertWaitcnts in expert scheduling mode (#170319, #203292); ROCm/aiter#5402",
        )
    },
    HazardRule {
        managed_only: true,
        ..hazard_row(
            "memory-vector-write",
            (InstClass::VectorMemory, InstClass::Vector),
            Overlap::WAR.within_vectors(),
            Requirement::WaitAluCount(wait_alu::VM_VSRC),
            ALL,
            "LLVM SIInsertWaitcnts in expert scheduling mode (#170319, #203292); ROCm/aiter#5402",
        )
    },
    // No family reads one of these registers, and none puts code directly before an s_getreg.
    hazard_row(
        "getreg-idle",
        (InstClass::Any, InstClass::ReadsWaveState),
        Overlap::NONE,
        Requirement::WaitIdle,
        ALL,
        "LLVM GCNHazardRecognizer::fixGetRegWaitIdle (#153848)",
    ),
    // LLVM 23 and AMD's translator put two v_nop before a write of MODE for the first stepping, LLVM 24 none.
    hazard_row(
        "mode-write",
        (InstClass::Vector, InstClass::SetsMode),
        Overlap::NONE,
        Requirement::VectorNops(2),
        STRICT,
        "LLVM 23 GCNHazardRecognizer::fixSetRegMode",
    ),
    hazard_row(
        "mode-write-banks",
        (InstClass::SetsMode, InstClass::SetsBanks),
        Overlap::NONE,
        Requirement::ScalarInst,
        ALL,
        "LLVM #184904: s_set_vgpr_msb right after s_setreg of MODE is dropped",
    ),
    // Registers named in a site as well as borrowed registers: a later write to them than that of the new code must be
    // waited for, whichever of the two names them.
    hazard_row(
        "load-outstanding",
        (InstClass::Load, InstClass::Any),
        Overlap::new(true, false, true),
        Requirement::WaitCounters,
        ALL,
        "LLVM SIInsertWaitcnts",
    ),
    hazard_row(
        "replay",
        (InstClass::Replayed, InstClass::Any),
        Overlap::WAR,
        Requirement::WaitXcnt,
        ALL,
        "LLVM SIInsertWaitcnts (X_CNT): an instruction that is issued again reads its sources again",
    ),
];

const SCRATCH_WAIT: Requirement = Requirement::WaitAlu { fields: wait_alu::VA_SDST | wait_alu::SA_SDST, expires: 10 };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BankedInstruction, Spacing};
    use hotswap_isa::bank::VgprBanks;
    use hotswap_isa::{Inst, Target};

    fn isa() -> Isa {
        Isa::new(Target::find("gfx1250-strict").unwrap())
    }

    fn inst(words: &[u32]) -> Inst {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        isa().decode(&bytes).unwrap()
    }

    /// Name, words, and the distances before vector and matrix instructions.
    type HazardCase = (&'static str, &'static [u32], Option<(u8, u8)>);

    /// LLVM's words of one instruction of each class, and the distances that `llc` was observed to insert.
    #[test]
    fn matrix_instructions_have_the_distances_that_llvm_makes() {
        let cases: [HazardCase; 7] = [
            ("v_wmma_i32_16x16x64_iu8", &[0xcc72_0000, 0x1c02_2108], Some((8, 9))),
            ("v_swmmac_i32_16x16x128_iu8", &[0xcc7b_0000, 0x1ca2_2108], Some((4, 5))),
            ("v_wmma_f32_16x16x64_fp8_fp8", &[0xcc6a_0000, 0x1c02_2108], Some((4, 5))),
            ("scaled fp8 with fp8", &[0xcc35_0000, 0x0202_5328, 0xcc33_0000, 0x0402_3108], Some((8, 9))),
            ("scaled f4 with f4", &[0xcc35_0000, 0x0202_5328, 0xcc33_6000, 0x0402_2108], Some((4, 5))),
            ("v_wmma_f32_16x16x4_f32", &[0xcc5d_0000, 0x1c02_2108], None),
            ("v_nop", &[0x7e00_0000], None),
        ];
        for (name, words, expected) in cases {
            let spacing = Spacing::after_instruction(&inst(words), isa());
            assert_eq!(spacing.map(|spacing| (spacing.vector, spacing.matrix)), expected, "{name}");
        }
    }

    /// `v_exp_f32 v1, v2` before an instruction that reads its result, writes its source, writes its result, and is one
    /// itself.
    #[test]
    fn transcendental_instructions_have_the_distances_that_llvm_makes() {
        let exp = inst(&[0x7e02_4b02]);
        let cases = [
            ("v_mov_b32 v3, v1", 0x7e06_0301, 1),
            ("v_mov_b32 v2, 0", 0x7e04_0280, 1),
            ("v_mov_b32 v1, 0", 0x7e02_0280, 0),
            ("v_mov_b32 v9, v8", 0x7e12_0308, 0),
            ("v_exp_f32 v2, v1", 0x7e04_4b01, 0),
        ];
        for (name, word, expected) in cases {
            let later = inst(&[word]);
            let placed = |inst| BankedInstruction { inst, banks: VgprBanks::ENTRY };
            assert_eq!(placed(&exp).trans_distance(isa(), placed(&later)), expected, "{name}");
        }
    }

    #[test]
    fn rows_have_names_of_their_own_and_sources() {
        let names: std::collections::BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), RULES.len());
        assert!(RULES.iter().all(|rule| rule.source.contains("LLVM") && !rule.steppings.is_empty()));
    }
}
