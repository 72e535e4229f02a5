//! Distances of processors before GFX12.5: pairs of instructions that must be that many wait states apart.
//!
//! [`DISTANCES`] is the one table. A row names the classes of the earlier and the later instruction, the register that
//! joins them, the wait states between the two, and the processors. The numbers are those of LLVM's hazard recognizer, and
//! `tests/rewrite-exam/tests/distances.rs` asks LLVM again: it inserts as many wait states as the row says.
//!
//! Invariants: an instruction is one wait state, and `s_nop N` is N + 1 ([`wait_states`]); for GFX11 and GFX12, whose rows are
//! about matrix instructions alone, a vector instruction is one, and others are none. Where LLVM names single
//! instructions, a class knows them by their mnemonics.
//!
//! Absent on purpose: control flow, and hazards that are mended by something other than wait states.

mod class;
mod joint;
mod matrix;
mod matrix_table;
mod table;

pub use class::DistanceClass;
pub use joint::JointRegister;
pub use matrix::{MatrixKind, MatrixShape};
pub use matrix_table::MATRIX_DISTANCES;
pub use table::{DISTANCES, UNCHECKED, UncheckedHazard};

use hotswap_isa::{Feature, Flag, Inst, Isa, Name};
use std::fmt;

/// Processors with the same distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DistanceTarget {
    /// GFX9 without matrix instructions.
    Gfx900,
    Gfx908,
    Gfx90a,
    Gfx942,
    Gfx950,
    /// GFX10.1, which has more hazards than GFX10.3.
    Gfx101,
    Gfx103,
    Gfx11,
    /// GFX12, but not GFX12.5.
    Gfx12,
}

impl DistanceTarget {
    /// The group of a processor; `None` for those that are not in the table.
    #[must_use]
    pub fn of_isa(isa: Isa) -> Option<Self> {
        if isa.has(Feature::Gfx12Insts) {
            (!isa.has(Feature::Gfx1250Insts)).then_some(Self::Gfx12)
        } else if isa.has(Feature::Gfx11Insts) {
            Some(Self::Gfx11)
        } else if isa.has(Feature::Gfx10Insts) {
            Some(if isa.has(Feature::Gfx103Insts) { Self::Gfx103 } else { Self::Gfx101 })
        } else if !isa.has(Feature::Gfx9Insts) {
            None
        } else if isa.has(Feature::Gfx950Insts) {
            Some(Self::Gfx950)
        } else if isa.has(Feature::Gfx940Insts) {
            Some(Self::Gfx942)
        } else if isa.has(Feature::Gfx90aInsts) {
            Some(Self::Gfx90a)
        } else if isa.has(Feature::MaiInsts) {
            Some(Self::Gfx908)
        } else {
            Some(Self::Gfx900)
        }
    }
}

impl DistanceTarget {
    /// A processor of the group.
    #[must_use]
    pub const fn processor(self) -> &'static str {
        match self {
            Self::Gfx900 => "gfx900",
            Self::Gfx908 => "gfx908",
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
            Self::Gfx950 => "gfx950",
            Self::Gfx101 => "gfx1010",
            Self::Gfx103 => "gfx1030",
            Self::Gfx11 => "gfx1100",
            Self::Gfx12 => "gfx1200",
        }
    }
}

/// The wait states of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStates {
    Always(u8),
    /// After a matrix instruction of two, four, eight and sixteen passes.
    ByPasses([u8; 4]),
}

impl WaitStates {
    /// Those after an instruction.
    #[must_use]
    pub fn after_instruction(self, inst: &Inst, isa: Isa) -> u8 {
        match self {
            Self::Always(count) => count,
            Self::ByPasses(counts) => MatrixShape::of_instruction(inst, isa)
                .map_or(0, |shape| counts[shape.passes.clamp(2, 16).ilog2() as usize - 1]),
        }
    }
}

impl fmt::Display for WaitStates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(count) => write!(formatter, "{count}"),
            Self::ByPasses([two, four, eight, sixteen]) => {
                write!(formatter, "{two}, {four}, {eight}, {sixteen} by passes")
            }
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct DistanceRule {
    /// Its name, for messages and tests.
    pub name: &'static str,
    /// The class of the earlier instruction.
    pub producer: DistanceClass,
    /// The class of the later instruction.
    pub consumer: DistanceClass,
    /// The register that must be the same in both.
    pub joint: JointRegister,
    /// Wait states between the two.
    pub wait_states: WaitStates,
    /// Instructions between the two after which no distance is needed.
    pub ended_by: Option<DistanceClass>,
    /// The processors that have the hazard.
    pub targets: &'static [DistanceTarget],
    /// The source of the fact.
    pub source: &'static str,
}

impl DistanceRule {
    /// Whether a later instruction must keep the distance from an instruction of the row's first class.
    #[must_use]
    pub fn concerns_pair(&self, isa: Isa, producer: &Inst, consumer: &Inst) -> bool {
        self.consumer.contains(consumer, isa) && self.joint.joins_pair(isa, producer, consumer)
    }
}

/// The rows of a target.
pub fn distances_for(isa: Isa) -> impl Iterator<Item = &'static DistanceRule> + Clone {
    let target = DistanceTarget::of_isa(isa);
    DISTANCES
        .iter()
        .chain(MATRIX_DISTANCES)
        .filter(move |rule| target.is_some_and(|target| rule.targets.contains(&target)))
}

/// The wait states that an instruction is, as LLVM counts them (`SIInstrInfo::getNumWaitStates`). From GFX11 on only vector
/// instructions count.
#[must_use]
pub fn wait_states(inst: &Inst, isa: Isa) -> u8 {
    /// Bits of the count of `s_nop` that hardware reads.
    const COUNT: u64 = 15;
    if isa.has(Feature::Gfx11Insts) {
        return u8::from(inst.is(Flag::Valu));
    }
    match inst.raw(Name::Simm16) {
        Some(count) if inst.mnemonic() == "s_nop" => (count & COUNT) as u8 + 1,
        _ => 1,
    }
}
