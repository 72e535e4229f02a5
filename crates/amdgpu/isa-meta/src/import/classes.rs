//! Encoding classes and the positions of their opcodes, by generation.
//!
//! The class of a vector instruction is derived from its first bits, because LLVM's flags describe its behaviour
//! (`v_writelane_b32` of gfx9 has the flag VOP2 and a VOP3 encoding).

use super::encoding::Encoding;
use super::{ImportError, wrong};

/// Runs of opcode bits: lowest instruction bit and width, lowest opcode bit first.
type Runs = &'static [(u8, u8)];

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
    let has = |flag: &str| flags.iter().any(|name| name == flag);
    if let Some((_, class)) = BY_FLAG.iter().find(|(flag, _)| has(flag)) {
        return Ok((*class).to_owned());
    }
    let Some(base) = base_class(encoding) else { return wrong(record, "no encoding class has these first bits") };
    Ok(match (has("sdwa"), has("dpp"), dpp8) {
        (true, ..) => format!("{base}_SDWA"),
        (_, true, true) => format!("{base}_DPP8"),
        (_, true, false) => format!("{base}_DPP16"),
        _ => base.to_owned(),
    })
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

/// The position of a class's opcode.
pub(super) fn opcode_position(class: &str, bits: u8, generation: u8) -> Runs {
    let base = class.split_once('_').map_or(class, |(base, _)| base);
    match (base, generation) {
        ("SOP1", _) => &[(8, 8)],
        ("SOP2", _) => &[(23, 7)],
        ("SOPC" | "SOPP", _) => &[(16, 7)],
        ("SOPK", _) => &[(23, 5)],
        ("VOP1", _) => &[(9, 8)],
        ("VOP2", _) => &[(25, 6)],
        ("VOPC", _) => &[(17, 8)],
        ("VOP3", _) => &[(16, 10)],
        ("VOP3P", 9) => &[(16, 7)],
        ("VOP3P", _) => &[(16, 8)],
        ("VOP3PX2", 9) if bits == 128 => &[(80, 7)],
        ("VOP3PX2", _) => &[(80, 8), (16, 8)],
        ("VOPD", _) => &[(17, 5), (22, 4)],
        ("VOPD3", _) => &[(12, 6), (18, 6)],
        ("VINTRP", _) => &[(16, 2)],
        ("VINTERP", _) => &[(16, 5)],
        ("LDSDIR", _) => &[(20, 2)],
        ("SMEM", 12) => &[(13, 6)],
        ("SMEM", _) => &[(18, 8)],
        ("DS", 9) => &[(17, 8)],
        ("DS", _) => &[(18, 8)],
        ("FLAT", 12) => &[(14, 8)],
        ("FLAT", _) => &[(18, 7)],
        ("MUBUF" | "MTBUF" | "VIMAGE" | "VSAMPLE", 12) => &[(14, 8)],
        ("MUBUF", 9) => &[(18, 7)],
        ("MUBUF" | "MIMG", 10 | 11) if base == "MUBUF" || generation == 11 => &[(18, 8)],
        ("MTBUF", 10) => &[(16, 3), (53, 1)],
        ("MTBUF", _) => &[(15, 4)],
        ("MIMG", _) => &[(18, 7), (0, 1)],
        _ => &[],
    }
}
