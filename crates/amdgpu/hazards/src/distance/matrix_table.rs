//! Distances after and before the matrix instructions of gfx9 (MFMA), and between those of GFX11 and GFX12 (WMMA). C is the addend, A and B are the inputs.
//!
//! LLVM looks back over 19 wait states at most: where gfx950 needs 20, 19 are asked for.

use super::table::{FROM_GFX90A, GFX940, GFX950, distance_row};
use super::{DistanceClass as Class, DistanceRule, DistanceTarget, JointRegister as Joint, MatrixKind, WaitStates};

const GFX90A: &[DistanceTarget] = &[DistanceTarget::Gfx90a];
const GFX942: &[DistanceTarget] = &[DistanceTarget::Gfx942];
const GFX908: &[DistanceTarget] = &[DistanceTarget::Gfx908];
const BEFORE_GFX950: &[DistanceTarget] = &[DistanceTarget::Gfx90a, DistanceTarget::Gfx942];

const GFX11: &[DistanceTarget] = &[DistanceTarget::Gfx11];
const GFX12: &[DistanceTarget] = &[DistanceTarget::Gfx12];

const WMMA_INPUT: &str = "LLVM GCNHazardRecognizer::fixWMMAHazards";
const MAI_908: &str = "LLVM GCNHazardRecognizer::checkMAIHazards908, checkMAILdStHazards";
const MAI_90A: &str = "LLVM GCNHazardRecognizer::checkMAIHazards90A";
const VALU: &str = "LLVM GCNHazardRecognizer::checkMAIVALUHazards";

const XDL: Class = Class::MatrixOf(MatrixKind::Xdl);
const SINGLE: Class = Class::MatrixOf(MatrixKind::Single);
const DOUBLE: Class = Class::MatrixOf(MatrixKind::Double);

/// A row whose wait states depend on the passes of the first instruction.
const fn passes_row(
    name: &'static str,
    (producer, consumer): (Class, Class),
    joint: Joint,
    counts: [u8; 4],
    targets: &'static [DistanceTarget],
    source: &'static str,
) -> DistanceRule {
    let wait_states = WaitStates::ByPasses(counts);
    DistanceRule { wait_states, ..distance_row(name, (producer, consumer), joint, 0, targets, source) }
}

/// The rows whose earlier or later instruction is one of matrices.
#[rustfmt::skip]
pub const MATRIX_DISTANCES: &[DistanceRule] = &[
    distance_row("exec-mfma-908", (Class::Vector, Class::MatrixOrAccWrite), Joint::Exec, 4, GFX908, MAI_908),
    distance_row("mfma-input-908", (Class::Matrix, Class::Matrix), Joint::Input, 4, GFX908, MAI_908),
    distance_row("mfma-addend-908", (Class::Matrix, Class::Matrix), Joint::AddendPart, 2, GFX908, MAI_908),
    passes_row("mfma-acc-read", (Class::Matrix, Class::AccRead), Joint::Vector, [4, 4, 10, 18], GFX908, MAI_908),
    passes_row("mfma-acc-write", (Class::Matrix, Class::AccWrite), Joint::Overwritten, [1, 1, 7, 15], GFX908, MAI_908),
    passes_row("mfma-addend-acc-write", (Class::Matrix, Class::AccWrite), Joint::AddendOverwritten, [0, 0, 5, 13], GFX908, MAI_908),
    distance_row("acc-write-addend", (Class::AccWrite, Class::Matrix), Joint::Addend, 1, GFX908, MAI_908),
    distance_row("acc-write-input", (Class::AccWrite, Class::Matrix), Joint::Input, 3, GFX908, MAI_908),
    distance_row("acc-write-read", (Class::AccWrite, Class::AccRead), Joint::Vector, 3, GFX908, MAI_908),

    distance_row("exec-mfma", (Class::VectorBesideMatrix, Class::Matrix), Joint::Exec, 4, FROM_GFX90A, MAI_90A),
    distance_row("double-fma", (DOUBLE, Class::DoubleFma), Joint::Nothing, 2, FROM_GFX90A, VALU),
    passes_row("double-write", (DOUBLE, Class::VectorOrMemory), Joint::Overwritten, [6, 6, 11, 11], FROM_GFX90A, VALU),
    passes_row("mfma-addend-write", (XDL, Class::VectorOrMemory), Joint::AddendOverwritten, [1, 3, 7, 15], FROM_GFX90A, VALU),
    passes_row("double-input", (DOUBLE, Class::Matrix), Joint::Input, [6, 6, 11, 11], BEFORE_GFX950, MAI_90A),
    passes_row("double-addend", (DOUBLE, Class::MatrixBesideXdl), Joint::AddendPart, [4, 4, 9, 9], BEFORE_GFX950, MAI_90A),
    passes_row("double-vector-read", (DOUBLE, Class::VectorBesideMatrix), Joint::Vector, [6, 6, 11, 11], BEFORE_GFX950, VALU),
    passes_row("double-input-950", (DOUBLE, Class::Matrix), Joint::Input, [6, 6, 19, 19], GFX950, MAI_90A),
    passes_row("double-addend-950", (DOUBLE, Class::MatrixBesideXdl), Joint::AddendPart, [4, 4, 17, 17], GFX950, MAI_90A),
    passes_row("double-vector-read-950", (DOUBLE, Class::VectorBesideMatrix), Joint::Vector, [6, 6, 19, 19], GFX950, VALU),

    passes_row("mfma-input-90a", (XDL, Class::Matrix), Joint::Input, [5, 5, 11, 19], GFX90A, MAI_90A),
    passes_row("mfma-addend-90a", (XDL, XDL), Joint::AddendPart, [2, 2, 8, 16], GFX90A, MAI_90A),
    passes_row("mfma-double-addend-90a", (XDL, DOUBLE), Joint::AddendPart, [3, 3, 9, 17], GFX90A, MAI_90A),
    passes_row("mfma-write-90a", (XDL, Class::VectorOrMemory), Joint::Overwritten, [5, 5, 11, 19], GFX90A, VALU),

    passes_row("mfma-addend-whole", (Class::Matrix, Class::Matrix), Joint::AddendWhole, [2, 0, 0, 0], GFX940, MAI_90A),
    passes_row("single-input", (SINGLE, Class::Matrix), Joint::Input, [4, 6, 10, 18], GFX940, MAI_90A),
    passes_row("single-addend", (SINGLE, Class::MatrixBesideXdl), Joint::AddendPart, [2, 4, 8, 16], GFX940, MAI_90A),
    passes_row("single-read", (SINGLE, Class::VectorOrMemory), Joint::Vector, [4, 6, 10, 18], GFX940, VALU),
    passes_row("single-write", (SINGLE, Class::VectorOrMemory), Joint::Overwritten, [4, 6, 10, 18], GFX940, VALU),
    passes_row("xdl-input", (XDL, Class::Matrix), Joint::Input, [5, 7, 11, 19], GFX942, MAI_90A),
    passes_row("xdl-addend", (XDL, Class::Matrix), Joint::AddendPart, [3, 5, 9, 17], GFX942, MAI_90A),
    passes_row("xdl-read", (XDL, Class::VectorOrMemory), Joint::Vector, [5, 7, 11, 19], GFX942, VALU),
    passes_row("xdl-write", (XDL, Class::VectorOrMemory), Joint::Overwritten, [5, 7, 11, 19], GFX942, VALU),
    passes_row("xdl-input-950", (XDL, Class::Matrix), Joint::Input, [5, 8, 12, 19], GFX950, MAI_90A),
    passes_row("xdl-addend-950", (XDL, XDL), Joint::AddendPart, [4, 6, 10, 18], GFX950, MAI_90A),
    passes_row("xdl-single-addend-950", (XDL, Class::MatrixBesideXdl), Joint::AddendPart, [3, 6, 10, 18], GFX950, MAI_90A),
    passes_row("xdl-read-950", (XDL, Class::VectorOrMemory), Joint::Vector, [5, 8, 12, 19], GFX950, VALU),
    passes_row("xdl-write-950", (XDL, Class::VectorOrMemory), Joint::Overwritten, [5, 8, 12, 19], GFX950, VALU),

    distance_row("wmma-input-11", (Class::Wmma, Class::Wmma), Joint::WmmaInput, 1, GFX11, WMMA_INPUT),
    distance_row("wmma-input-12", (Class::Wmma, Class::Wmma), Joint::WmmaInput, 1, GFX12, WMMA_INPUT),
];
