//! The table of distances in wait states.

use super::{DistanceClass, DistanceRule, DistanceTarget, JointRegister, WaitStates};

const GFX9: &[DistanceTarget] = &[
    DistanceTarget::Gfx900,
    DistanceTarget::Gfx908,
    DistanceTarget::Gfx90a,
    DistanceTarget::Gfx942,
    DistanceTarget::Gfx950,
];
const BEFORE_GFX940: &[DistanceTarget] = &[DistanceTarget::Gfx900, DistanceTarget::Gfx908, DistanceTarget::Gfx90a];
pub(super) const GFX940: &[DistanceTarget] = &[DistanceTarget::Gfx942, DistanceTarget::Gfx950];
pub(super) const FROM_GFX90A: &[DistanceTarget] =
    &[DistanceTarget::Gfx90a, DistanceTarget::Gfx942, DistanceTarget::Gfx950];
const GFX908: &[DistanceTarget] = &[DistanceTarget::Gfx908];
const FROM_GFX908: &[DistanceTarget] =
    &[DistanceTarget::Gfx908, DistanceTarget::Gfx90a, DistanceTarget::Gfx942, DistanceTarget::Gfx950];
const GFX90A: &[DistanceTarget] = &[DistanceTarget::Gfx90a];
pub(super) const GFX950: &[DistanceTarget] = &[DistanceTarget::Gfx950];

const GFX101: &[DistanceTarget] = &[DistanceTarget::Gfx101];
const GFX10: &[DistanceTarget] = &[DistanceTarget::Gfx101, DistanceTarget::Gfx103];
const FROM_GFX11: &[DistanceTarget] = &[DistanceTarget::Gfx11, DistanceTarget::Gfx12];

const VMEM: &str = "LLVM GCNHazardRecognizer::checkVMEMHazards, VmemSgprWaitStates";
const DPP: &str = "LLVM GCNHazardRecognizer::checkDPPHazards, DppVgprWaitStates, DppExecWaitStates";
const DIV_FMAS: &str = "LLVM GCNHazardRecognizer::checkDivFMasHazards, DivFMasWaitStates";
const LANE: &str = "LLVM GCNHazardRecognizer::checkRWLaneHazards, RWLaneWaitStates";
const SETREG: &str = "LLVM GCNHazardRecognizer::checkSetRegHazards, checkGetRegHazards";
const STORE: &str = "LLVM GCNHazardRecognizer::checkVALUHazardsHelper, createsVALUHazard";
const VALU: &str = "LLVM GCNHazardRecognizer::checkVALUHazards";
const DOT: &str = "LLVM GCNHazardRecognizer::checkMAIVALUHazards, DotWriteSameDotReadSrcAB, DotWriteDifferentVALURead";
const PERMLANE: &str = "LLVM GCNHazardRecognizer::checkPermlaneHazards";
const DENORM: &str = "LLVM GCNHazardRecognizer::checkFPAtomicToDenormModeHazard";
const NSA: &str = "LLVM GCNHazardRecognizer::checkNSAtoVMEMHazard";

pub(super) const fn distance_row(
    name: &'static str,
    (producer, consumer): (DistanceClass, DistanceClass),
    joint: JointRegister,
    wait_states: u8,
    targets: &'static [DistanceTarget],
    source: &'static str,
) -> DistanceRule {
    let wait_states = WaitStates::Always(wait_states);
    DistanceRule { name, producer, consumer, joint, wait_states, ended_by: None, targets, source }
}

/// A row whose distance other instructions make needless.
const fn ended_row(rule: DistanceRule, ended_by: DistanceClass) -> DistanceRule {
    DistanceRule { ended_by: Some(ended_by), ..rule }
}

use DistanceClass as Class;
use JointRegister as Joint;

/// The rows without matrix instructions.
#[rustfmt::skip]
pub const DISTANCES: &[DistanceRule] = &[
    distance_row("sgpr-vmem", (Class::Vector, Class::VectorMemory), Joint::Scalar, 5, GFX9, VMEM),
    distance_row("vgpr-dpp", (Class::Vector, Class::Dpp), Joint::Vector, 2, GFX9, DPP),
    distance_row("exec-dpp", (Class::Vector, Class::Dpp), Joint::Exec, 5, GFX9, DPP),
    distance_row("vcc-div-fmas", (Class::Vector, Class::DivFmas), Joint::Vcc, 4, GFX9, DIV_FMAS),
    distance_row("sgpr-lane-select", (Class::Vector, Class::SelectsLane), Joint::LaneSelect, 4, GFX9, LANE),
    distance_row("setreg-getreg", (Class::SetsRegister, Class::GetsRegister), Joint::Hardware, 2, GFX9, SETREG),
    distance_row("setreg-setreg", (Class::SetsRegister, Class::SetsRegister), Joint::Hardware, 2, GFX9, SETREG),
    distance_row("store-data", (Class::WideStore, Class::Vector), Joint::StoredData, 1, BEFORE_GFX940, STORE),
    distance_row("store-data-2", (Class::WideStore, Class::Vector), Joint::StoredData, 2, GFX940, STORE),
    distance_row("trans-vector", (Class::Trans, Class::VectorBesideTrans), Joint::Vector, 1, GFX940, VALU),
    distance_row("shifted-result", (Class::ShiftedResult, Class::Vector), Joint::VectorInUse, 1, GFX940, VALU),
    distance_row("vgpr-readlane", (Class::Vector, Class::ReadsLane), Joint::Vector, 1, GFX940, VALU),
    distance_row("dot-read", (Class::DotProduct, Class::VectorOrMemory), Joint::OtherRead, 3, FROM_GFX90A, DOT),
    distance_row("dot-input", (Class::DotProduct, Class::DotProduct), Joint::SameInput, 3, FROM_GFX90A, DOT),
    distance_row("dot-write", (Class::DotProduct, Class::VectorOrMemory), Joint::OtherWritten, 3, FROM_GFX90A, DOT),
    distance_row("permlane-source", (Class::Vector, Class::Permlane), Joint::Vector, 2, GFX950, PERMLANE),
    distance_row("permlane-exec", (Class::Vector, Class::Permlane), Joint::Exec, 4, GFX950, PERMLANE),

    ended_row(
        distance_row("fp-atomic-denorm", (Class::FloatAtomic, Class::SetsDenormals), Joint::Nothing, 3, GFX10, DENORM),
        Class::VectorOrWait,
    ),
    distance_row("nsa-buffer", (Class::LongImage, Class::OffsetBuffer), Joint::Nothing, 1, GFX101, NSA),
];

/// A hazard of LLVM's for which the table has no row.
#[derive(Debug, Clone, Copy)]
pub struct UncheckedHazard {
    /// Its name, and why it lacks a row.
    pub text: &'static str,
    /// Whether it is about a matrix instruction.
    pub is_matrix: bool,
    /// The processors that have it.
    pub targets: &'static [DistanceTarget],
}

const fn unchecked_hazard(text: &'static str, targets: &'static [DistanceTarget]) -> UncheckedHazard {
    UncheckedHazard { text, is_matrix: false, targets }
}

const fn unchecked_matrix_hazard(text: &'static str, targets: &'static [DistanceTarget]) -> UncheckedHazard {
    UncheckedHazard { text, is_matrix: true, targets }
}

/// Hazards that are left out. Kernels that are written by hand and run on these GPUs do with less than some rows of LLVM's, so that a
/// finding would be no fault.
pub const UNCHECKED: &[UncheckedHazard] = &[
    unchecked_hazard("soft clauses under XNACK: LLVM knows a clause by what it emitted last", GFX9),
    unchecked_hazard("s_rfe_b64: trap handlers are no code objects", GFX9),
    unchecked_hazard("EXEC that v_cmpx writes before memory (LLVM: 5): rocBLAS's kernels for gfx942 do without", GFX9),
    unchecked_matrix_hazard(
        "a vector result that memory reads behind a move of an accumulation register: it depends on three instructions",
        GFX908,
    ),
    unchecked_matrix_hazard(
        "a vector result that memory reads behind a matrix instruction of 64-bit floats: it depends on three instructions",
        GFX90A,
    ),
    unchecked_matrix_hazard(
        "a vector register that a vector instruction writes before a matrix instruction (LLVM: 2): hipBLASLt's kernels for \
         gfx908 and gfx90a have 1",
        FROM_GFX908,
    ),
    unchecked_matrix_hazard(
        "a move of an accumulation register before memory (LLVM: 2): hipBLASLt's kernels for gfx908 have 1",
        GFX908,
    ),
    unchecked_matrix_hazard(
        "results that vector instructions and memory read (LLVM: 19 after sixteen passes): rocBLAS's kernels for gfx90a have \
         17",
        GFX90A,
    ),
    unchecked_matrix_hazard(
        "the addend of small matrix instructions of 64-bit floats (LLVM: 4): rocBLAS's kernels for gfx90a have 3",
        FROM_GFX90A,
    ),
    unchecked_matrix_hazard(
        "results of 64-bit floats that memory reads (LLVM: 18 after eight passes): rocBLAS's kernels for gfx942 have 12",
        FROM_GFX90A,
    ),
    unchecked_hazard("M0 before instructions that read it (LLVM: 1): rocBLAS's kernels for gfx90a have 0", GFX9),
    unchecked_hazard(
        "a scalar register that a vector instruction writes and another reads (LLVM: 2): rocBLAS's kernels for gfx942 have 0",
        GFX940,
    ),
    unchecked_hazard(
        "EXEC that v_cmpx writes before v_readlane (LLVM: 4): hipSPARSELt's kernels for gfx950 have 2",
        GFX940,
    ),
    unchecked_hazard(
        "scalar registers and EXEC that memory instructions still read, LDS and memory around a branch, v_permlane after \
         v_cmpx and others: LLVM waits by counters (s_waitcnt_depctr) and by single instructions there",
        GFX10,
    ),
    unchecked_hazard(
        "results of transcendental instructions, EXEC between two results, LDS parameters, lane masks and others: LLVM \
         waits by counters (s_waitcnt_depctr, s_wait_alu) there",
        FROM_GFX11,
    ),
];

#[cfg(test)]
mod tests {
    use super::super::MATRIX_DISTANCES;
    use super::*;

    #[test]
    fn rows_have_names_of_their_own_and_sources() {
        let all: Vec<&DistanceRule> = DISTANCES.iter().chain(MATRIX_DISTANCES).collect();
        let names: std::collections::BTreeSet<&str> = all.iter().map(|rule| rule.name).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().all(|rule| rule.source.contains("LLVM") && !rule.targets.is_empty()));
    }
}
