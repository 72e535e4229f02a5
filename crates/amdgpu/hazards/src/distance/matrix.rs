//! Matrix instructions of gfx9 (MFMA): their kind and their passes, as LLVM's scheduling model has them
//! (`SISchedule.td`, `VOP3PInstructions.td`).

use super::DistanceTarget;
use hotswap_isa::{Flag, Inst, Isa, Name};

/// The unit that a matrix instruction runs on, which determines its distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatrixKind {
    /// The matrix unit (LLVM: `isXDL`): before gfx940 all but those of 64-bit floats.
    Xdl,
    /// From gfx940 on those of 32-bit floats as they are (LLVM: SGEMM).
    Single,
    /// 64-bit floats (LLVM: `isDGEMM`).
    Double,
}

/// A matrix instruction of gfx9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixShape {
    pub kind: MatrixKind,
    /// Passes through the unit: 2, 4, 8 or 16.
    pub passes: u8,
}

impl MatrixShape {
    /// The shape of an instruction, by its name: `v_mfma_f32_32x32x8f16`, `v_smfmac_i32_16x16x64_i8`.
    #[must_use]
    pub fn of_instruction(inst: &Inst, isa: Isa) -> Option<Self> {
        if !inst.is(Flag::Mai) {
            return None;
        }
        let name = inst.mnemonic();
        let is_sparse = name.starts_with("v_smfmac_");
        let rest = name.strip_prefix("v_mfma_").or_else(|| name.strip_prefix("v_smfmac_"))?;
        let rest = rest.strip_prefix("scale_").unwrap_or(rest);
        let (result, form) = rest.split_once('_')?;
        let mut sides = form.split('x');
        let rows = sides.next()?.parse().ok()?;
        let depth: String = sides.nth(1)?.chars().take_while(char::is_ascii_digit).collect();
        let is_reduced = form.ends_with("xf32");
        let size = MatrixSize { rows, depth: depth.parse().ok()?, is_sparse, is_reduced };
        let target = DistanceTarget::of_isa(isa)?;
        let kind = matrix_kind(result, form, target);
        let passes = if form.ends_with("f8f6f4") { format_passes(inst, rows) } else { size.passes(kind, target) };
        Some(Self { kind, passes })
    }
}

fn matrix_kind(result: &str, form: &str, target: DistanceTarget) -> MatrixKind {
    let has_single = matches!(target, DistanceTarget::Gfx942 | DistanceTarget::Gfx950);
    if result == "f64" {
        MatrixKind::Double
    } else if has_single && form.ends_with("f32") && !form.ends_with("xf32") {
        MatrixKind::Single
    } else {
        MatrixKind::Xdl
    }
}

/// Those of two formats take twice as long if one of them has eight bits an element.
fn format_passes(inst: &Inst, rows: u8) -> u8 {
    /// Numbers of the formats with eight bits.
    const EIGHT_BITS: u64 = 1;
    let formats = [inst.raw(Name::Cbsz), inst.raw(Name::Blgp)];
    let is_wide = formats.into_iter().flatten().any(|format| format <= EIGHT_BITS);
    (if rows > 16 { 8 } else { 4 }) * if is_wide { 2 } else { 1 }
}

/// Rows of the result, and the length of the sums.
#[derive(Debug, Clone, Copy)]
struct MatrixSize {
    rows: u8,
    depth: u8,
    is_sparse: bool,
    /// Of floats with fewer bits than their registers (XF32).
    is_reduced: bool,
}

impl MatrixSize {
    fn passes(self, kind: MatrixKind, target: DistanceTarget) -> u8 {
        let is_fast = matches!(target, DistanceTarget::Gfx942 | DistanceTarget::Gfx950);
        if kind == MatrixKind::Double {
            return match (self.rows, target) {
                (4, _) => 4,
                (_, DistanceTarget::Gfx950) => 16,
                _ => 8,
            };
        }
        match self.rows {
            4 => 2,
            16 if is_fast && (self.is_sparse || self.depth >= 8) => 4,
            16 => 8,
            _ if is_fast && (self.is_sparse || self.is_reduced || self.depth >= 8) => 8,
            _ => 16,
        }
    }
}
