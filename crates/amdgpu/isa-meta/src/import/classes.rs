//! Encoding classes and the positions of their opcodes, by generation.
//!
//! The class of a vector instruction is derived from its first bits, because LLVM's flags describe its behaviour
//! (`v_writelane_b32` of gfx9 has the flag VOP2 and a VOP3 encoding).

use super::encoding::Encoding;
use super::{ImportError, wrong};
use crate::model::BitRun;

/// Classes that LLVM's flags name reliably.
const BY_FLAG: &[(&str, &str)] = &[
    ("vinterp", "VINTERP"),
    ("sop1", "SOP1"),
    ("sop2", "SOP2"),
    ("sopc", "SOPC"),
    ("sopk", "SOPK"),
    ("sopp", "SOPP"),
    ("vintrp", "VINTRP"),
    ("mubuf", "MUBUF"),
    ("mtbuf", "MTBUF"),
    ("smrd", "SMEM"),
    ("mimg", "MIMG"),
    ("vimage", "VIMAGE"),
    ("vsample", "VSAMPLE"),
    ("exp", "EXP"),
    ("ds", "DS"),
    ("ldsdir", "LDSDIR"),
    ("vopd3", "VOPD3"),
];

/// The class of an encoding.
pub(super) fn encoding_class(
    record: &str,
    encoding: &Encoding,
    flags: &[String],
    dpp8: bool,
) -> Result<String, ImportError> {
    if let Some((_, class)) = BY_FLAG.iter().find(|(flag, _)| has_flag(flag, flags)) {
        return Ok((*class).to_owned());
    }
    let Some(base) = base_class(encoding) else { return wrong(record, "no encoding class has these first bits") };
    Ok(match (has_flag("sdwa", flags), has_flag("dpp", flags), dpp8) {
        (true, ..) => format!("{base}_SDWA"),
        (_, true, true) => format!("{base}_DPP8"),
        (_, true, false) => format!("{base}_DPP16"),
        _ => base.to_owned(),
    })
}

fn has_flag(flag: &str, flags: &[String]) -> bool {
    flags.iter().any(|name| name == flag)
}

/// The fixed bits from `at`, if all are fixed.
fn fixed_bits(encoding: &Encoding, at: u8, width: u8) -> Option<u32> {
    let mask = (1_u128 << width) - 1;
    (encoding.fixed_mask >> at & mask == mask).then(|| u32::try_from(encoding.fixed_value >> at & mask).unwrap_or(0))
}

fn base_class(encoding: &Encoding) -> Option<&'static str> {
    if encoding.bits == 128 {
        return Some("VOP3PX2");
    }
    if encoding.bits == 32 && fixed_bits(encoding, 0, 32) == Some(0) {
        return Some("ILLEGAL");
    }
    match fixed_bits(encoding, 31, 1)? {
        0 => {
            return Some(match fixed_bits(encoding, 25, 7) {
                Some(0b011_1111) => "VOP1",
                Some(0b011_1110) => "VOPC",
                _ => "VOP2",
            });
        }
        _ if fixed_bits(encoding, 23, 9) == Some(0b1_1010_0111) => return Some("VOP3P"),
        _ => {}
    }
    match (fixed_bits(encoding, 26, 6)?, encoding.bits) {
        (0b11_0011, _) => Some("VOP3P"),
        (0b11_0010, _) => Some("VOPD"),
        (0b11_0100, 96) => Some("VIMAGE"),
        (0b11_0100 | 0b11_0101, _) => Some("VOP3"),
        (0b11_0111 | 0b11_1011, _) => Some("FLAT"),
        _ => None,
    }
}

/// The position of a class's opcode, its lowest bits first.
pub(super) fn opcode_position(class: &str, bits: u8, generation: u8) -> &'static [BitRun] {
    let base = class.split_once('_').map_or(class, |(base, _)| base);
    match (base, generation) {
        ("SOP1", _) => &[BitRun { at: 8, width: 8 }],
        ("SOP2", _) => &[BitRun { at: 23, width: 7 }],
        ("SOPC" | "SOPP", _) => &[BitRun { at: 16, width: 7 }],
        ("SOPK", _) => &[BitRun { at: 23, width: 5 }],
        ("VOP1", _) => &[BitRun { at: 9, width: 8 }],
        ("VOP2", _) => &[BitRun { at: 25, width: 6 }],
        ("VOPC", _) => &[BitRun { at: 17, width: 8 }],
        ("VOP3", _) => &[BitRun { at: 16, width: 10 }],
        ("VOP3P", 9) => &[BitRun { at: 16, width: 7 }],
        ("VOP3P", _) => &[BitRun { at: 16, width: 8 }],
        ("VOP3PX2", 9) if bits == 128 => &[BitRun { at: 80, width: 7 }],
        ("VOP3PX2", _) => &[BitRun { at: 80, width: 8 }, BitRun { at: 16, width: 8 }],
        ("VOPD", _) => &[BitRun { at: 17, width: 5 }, BitRun { at: 22, width: 4 }],
        ("VOPD3", _) => &[BitRun { at: 12, width: 6 }, BitRun { at: 18, width: 6 }],
        ("VINTRP", _) => &[BitRun { at: 16, width: 2 }],
        ("VINTERP", _) => &[BitRun { at: 16, width: 5 }],
        ("LDSDIR", _) => &[BitRun { at: 20, width: 2 }],
        ("SMEM", 12) => &[BitRun { at: 13, width: 6 }],
        ("SMEM", _) => &[BitRun { at: 18, width: 8 }],
        ("DS", 9) => &[BitRun { at: 17, width: 8 }],
        ("DS", _) => &[BitRun { at: 18, width: 8 }],
        ("FLAT", 12) => &[BitRun { at: 14, width: 8 }],
        ("FLAT", _) => &[BitRun { at: 18, width: 7 }],
        ("MUBUF" | "MTBUF" | "VIMAGE" | "VSAMPLE", 12) => &[BitRun { at: 14, width: 8 }],
        ("MUBUF", 9) => &[BitRun { at: 18, width: 7 }],
        ("MUBUF" | "MIMG", 10 | 11) if base == "MUBUF" || generation == 11 => &[BitRun { at: 18, width: 8 }],
        ("MTBUF", 10) => &[BitRun { at: 16, width: 3 }, BitRun { at: 53, width: 1 }],
        ("MTBUF", _) => &[BitRun { at: 15, width: 4 }],
        ("MIMG", _) => &[BitRun { at: 18, width: 7 }, BitRun { at: 0, width: 1 }],
        _ => &[],
    }
}
