//! Known defects of LLVM: their behaviour, their conditions, and how a resulting difference is recognised.
//!
//! Invariant: each condition checks the word, not only the mnemonic, so that a defect of ours in the same instruction
//! is still detected.

use crate::verdict::{Difference, Kind};

pub struct Defect {
    /// Short name for the counts.
    pub name: &'static str,
    pub reason: &'static str,
    /// Whether a difference is caused by it.
    pub explains: fn(&Difference) -> bool,
}

/// All known defects of LLVM 23 and of the snapshot of 24.
pub const DEFECTS: &[Defect] = &[
    Defect {
        name: "immediate read as source",
        reason: "a control of DPP, or a literal of fmaak/fmamk/madak/madmk, whose value is also the number of an inline \
                 constant or of the literal (128..=208, 240..=248, 254, 255) is replaced by that constant, or makes the \
                 instruction longer; and the constant in src1 of fmac with DPP stays a number",
        explains: |difference| {
            matches!(difference.kind, Kind::Text | Kind::Length)
                && (control(difference) || literal(difference) || source(difference))
        },
    },
    Defect {
        name: "scalar tuple of an impossible size",
        reason: "there are no scalar registers of 192 and 1024 bits; where a source of such a size names a scalar \
                 register, LLVM prints scc, ttmp[0:15] or a constant's name",
        explains: |difference| difference.kind == Kind::Missing && wide_scalar(difference),
    },
    Defect {
        name: "trap registers of 96 bits",
        reason: "the decoder has no class for three trap registers and reads past its table: what comes out is chance",
        explains: |difference| {
            let chance = difference.theirs.is_empty() || difference.theirs.contains("scc");
            matches!(difference.kind, Kind::Invented | Kind::Text) && chance && tuple_of_three(&difference.ours)
        },
    },
    Defect {
        name: "high half of the scratch base as 64 bits",
        reason: "the assembler takes src_flat_scratch_base_hi as a source of 64 bits on gfx1250, and the disassembler does \
                 not read what it writes; AMD's own translator does (ROCm/rocm-systems#9405)",
        explains: |difference| {
            difference.kind == Kind::Invented
                && difference.theirs.is_empty()
                && difference.ours.contains("src_flat_scratch_base_hi")
                && names_base(difference)
        },
    },
    Defect {
        name: "scalar or constant for a matrix that is resized",
        reason: "sources of MFMA and WMMA whose size follows the format must be vector registers; of a constant LLVM \
                 prints 0, and of trap registers the old size, when the size changes",
        explains: |difference| {
            let all = differing(difference);
            difference.kind == Kind::Text
                && difference.ours.contains("f8f6f4")
                && !all.is_empty()
                && all.iter().all(lost_invalid_operand)
        },
    },
    Defect {
        name: "literal of a dual instruction",
        reason: "where one half has a mandatory literal, the literal in a source of the other half is printed as if it \
                 were an inline constant, which assembles to one",
        explains: |difference| {
            let all = differing(difference);
            let mandatory = difference.ours.contains("fmaak") || difference.ours.contains("fmamk");
            difference.kind == Kind::Text
                && difference.ours.contains(" :: ")
                && mandatory
                && !all.is_empty()
                && all.iter().all(lacks_literal_marker)
        },
    },
    Defect {
        name: "gather of three dwords",
        reason: "image_gather4* with TFE and D16 gives two dwords of data and the status; LLVM 23 has no such variant, names \
                 two and does not count the addresses, LLVM 24 names all",
        explains: |difference| {
            let is_gather = difference.ours.starts_with("image_gather4") && difference.ours.ends_with(" d16");
            difference.kind == Kind::Text
                && is_gather
                && difference.ours.contains(" tfe")
                && without_vector_registers(&difference.theirs) == without_vector_registers(&difference.ours)
                && data_registers(&difference.ours) == Some(3)
        },
    },
    Defect {
        name: "carry inside bars",
        reason: "v_cndmask with DPP is printed with the mask inside the absolute value, `|v4, vcc_lo|`, which no \
                 assembler takes",
        explains: |difference| {
            let moved = difference.theirs.replace(", vcc_lo|", "|, vcc_lo").replace(", vcc|", "|, vcc");
            difference.kind == Kind::Text && moved == difference.ours && moved != difference.theirs
        },
    },
];

fn dword(difference: &Difference, at: usize) -> u32 {
    let bytes = difference.word.bytes().get(4 * at..).and_then(|rest| rest.first_chunk::<4>());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn lost_invalid_operand((theirs, ours): &(String, String)) -> bool {
    let both = theirs.contains("/*Invalid") && ours.contains("/*Invalid");
    let constant = theirs.starts_with("0/") && !ours.contains('[');
    both && (constant || theirs.starts_with("ttmp[0:15]") && ours.starts_with("ttmp[0:"))
}

fn lacks_literal_marker((theirs, ours): &(String, String)) -> bool {
    let number = ours.strip_prefix("lit(0x").and_then(|rest| u32::from_str_radix(rest.trim_end_matches(')'), 16).ok());
    number.is_some_and(|number| number.to_string() == *theirs || !theirs.starts_with("lit("))
}

/// Whether LLVM takes the number for that of a constant.
fn is_constant(value: u32) -> bool {
    matches!(value, 128..=208 | 240..=248 | 254 | 255)
}

/// The tokens of both texts that differ.
fn differing(difference: &Difference) -> Vec<(String, String)> {
    let (theirs, ours) = (normalized_text_words(&difference.theirs), normalized_text_words(&difference.ours));
    if theirs.len() != ours.len() {
        return Vec::new();
    }
    theirs.into_iter().zip(ours).filter(|(theirs, ours)| theirs != ours).collect()
}

fn normalized_text_words(text: &str) -> Vec<String> {
    let text = text.replace("/* Invalid dpp_ctrl value */", "dpp_ctrl:invalid");
    let length = text.strip_suffix(" bytes]").and_then(|text| text.rsplit_once(" ["));
    let text = length.map_or(text.as_str(), |(text, _)| text);
    text.split(' ').map(|word| word.trim_end_matches(',').to_owned()).collect()
}

/// The control of DPP is such a number, and nothing but the control, or only the length, differs.
fn control(difference: &Difference) -> bool {
    let mnemonic = difference.ours.split(' ').next().unwrap_or_default();
    let dword = dword(difference, if mnemonic.contains("_e64_") || mnemonic.contains("_mix") { 2 } else { 1 });
    let held = if difference.ours.contains("dpp8:") { dword >> 8 } else { dword >> 8 & 0x1ff };
    let same =
        differing(difference).iter().all(|(theirs, ours)| is_dpp_control_word(theirs) && is_dpp_control_word(ours));
    mnemonic.ends_with("_dpp") && is_constant(held) && same
}

fn is_dpp_control_word(word: &str) -> bool {
    ["quad_perm:", "row_", "dpp"].iter().any(|head| word.starts_with(head))
}

/// The literal is such a number, ours prints it, and nothing else differs.
fn literal(difference: &Difference) -> bool {
    let kinds = ["fmaak", "fmamk", "madak", "madmk"];
    let all = differing(difference);
    kinds.iter().any(|kind| difference.ours.contains(kind)) && !all.is_empty() && all.iter().all(prints_inline_constant)
}

fn prints_inline_constant((_, ours): &(String, String)) -> bool {
    let value = ours.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
    value.is_some_and(is_constant)
}

/// LLVM prints the number of the constant in src1.
fn source(difference: &Difference) -> bool {
    let number = dword(difference, 1) >> 9 & 0x1ff;
    let all = differing(difference);
    difference.ours.starts_with("v_fmac_")
        && is_constant(number)
        && all.len() <= 1
        && all.iter().all(|one| prints_source_number(one, number))
}

fn prints_source_number((theirs, _): &(String, String), number: u32) -> bool {
    theirs.contains(&format!("{number:#x}"))
}

/// A source of 192 or 1024 bits (src0 of conversions, src2 of MFMA) that names no vector register and no constant.
fn wide_scalar(difference: &Difference) -> bool {
    let second = dword(difference, 1);
    let selector = if difference.theirs.starts_with("v_cvt_scalef32_") && difference.theirs.contains("pk32_") {
        second & 0x1ff
    } else if difference.theirs.starts_with("v_mfma_") && difference.theirs.contains("_32x32x") {
        second >> 18 & 0x1ff
    } else {
        return false;
    };
    matches!(selector, 0..=127 | 230..=239 | 249..=254)
}

/// A gather's mnemonic, and all from its descriptors on.
fn without_vector_registers(text: &str) -> Vec<&str> {
    let is_vector = |word: &&str| word.trim_start_matches('[').starts_with('v');
    text.split(' ').filter(|word| !is_vector(word)).collect()
}

/// How many registers of data a gather names: `image_gather4 v[2:4], …`.
fn data_registers(text: &str) -> Option<u32> {
    let range = text.split("v[").nth(1)?.split(']').next()?;
    let (first, last) = range.split_once(':')?;
    Some(parse_register_number(last)? + 1 - parse_register_number(first)?)
}

/// A field of a source, of eight bits in scalar instructions and nine in vector instructions, holds the number of that half.
fn names_base(difference: &Difference) -> bool {
    let (first, second) = (dword(difference, 0), dword(difference, 1));
    let scalar = [first, first >> 8].map(|field| field & 0xff);
    let vector = [first, second, second >> 9, second >> 18].map(|field| field & 0x1ff);
    scalar.into_iter().chain(vector).any(|number| number == 231)
}

/// `ttmp[4:6]`: three trap registers.
fn tuple_of_three(text: &str) -> bool {
    text.split("ttmp[").skip(1).any(|rest| {
        let range = rest.split(']').next().and_then(|range| range.split_once(':'));
        range.is_some_and(|(from, to)| parse_register_number(from).map(|from| from + 2) == parse_register_number(to))
    })
}

fn parse_register_number(text: &str) -> Option<u32> {
    text.parse::<u32>().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Word;
    use crate::setting::Setting;

    fn explained(kind: Kind, dwords: &[u32], theirs: &str, ours: &str) -> Option<&'static str> {
        let bytes: Vec<u8> = dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect();
        let (setting, word, source) = (Setting::new("gfx1100"), Word::new(&bytes), String::new());
        let difference = Difference { setting, word, kind, theirs: theirs.into(), ours: ours.into(), source };
        DEFECTS.iter().find(|defect| (defect.explains)(&difference)).map(|defect| defect.name)
    }

    #[test]
    fn defects_are_recognised() {
        let name = explained(
            Kind::Text,
            &[0xcc22_251b, 0x08e8_1cfa, 0x4a90_c02e],
            "v_fma_mixhi_f16_e64_dpp v27, s14 quad_perm:[0,0,0,1] row_mask:0x4",
            "v_fma_mixhi_f16_e64_dpp v27, s14 quad_perm:[0,0,0,3] row_mask:0x4",
        );
        assert_eq!(name, Some("immediate read as source"));
        let name = explained(
            Kind::Text,
            &[0xc842_0000, 0, 0x80],
            "v_dual_fmaak_f32 v0, s0, v0, 0x80 :: v_dual_fmaak_f32 v1, s0, v0, 0x0",
            "v_dual_fmaak_f32 v0, s0, v0, 0x80 :: v_dual_fmaak_f32 v1, s0, v0, 0x80",
        );
        assert_eq!(name, Some("immediate read as source"));
        let name = explained(Kind::Invented, &[0xf400_be01, 0], "", "s_load_b96 ttmp[12:14], s[2:3], s35");
        assert_eq!(name, Some("trap registers of 96 bits"));
        let name = explained(
            Kind::Text,
            &[0xf361_4e00, 0x832a_0847],
            "image_gather4_c_o v[8:9], v[71:73], s[40:47], s[100:103] dmask:0xe slc tfe da d16",
            "image_gather4_c_o v[8:10], v[71:73], s[40:47], s[100:103] dmask:0xe slc tfe da d16",
        );
        assert_eq!(name, Some("gather of three dwords"));
        let name = explained(Kind::Invented, &[0xbe82_01e7], "", "s_mov_b64 s[2:3], src_flat_scratch_base_hi");
        assert_eq!(name, Some("high half of the scratch base as 64 bits"));
    }

    #[test]
    fn other_differences_in_the_same_instructions_are_not() {
        let dwords = [0xcc22_251b, 0x08e8_1cfa, 0x4a90_c02e];
        let theirs = "v_fma_mixhi_f16_e64_dpp v27, s14 quad_perm:[0,0,0,1] row_mask:0x4";
        let ours = "v_fma_mixhi_f16_e64_dpp v28, s14 quad_perm:[0,0,0,3] row_mask:0x4";
        assert_eq!(explained(Kind::Text, &dwords, theirs, ours), None);
        assert_eq!(
            explained(
                Kind::Text,
                &[0x0000_00fa, 0x4a90_012e],
                "v_a_dpp quad_perm:[0,0,0,1]",
                "v_a_dpp quad_perm:[0,0,0,3]"
            ),
            None
        );
        assert_eq!(explained(Kind::Invented, &[0, 0], "", "s_load_b96 s[12:14], s[2:3], s35"), None);
        let gathers = ["v[8:9], v1, s[0:7], s[8:11] tfe d16", "v[8:10], v1, s[0:7], s[12:15] tfe d16"];
        let [theirs, ours] = gathers.map(|rest| format!("image_gather4 {rest}"));
        assert_eq!(explained(Kind::Text, &[0, 0], &theirs, &ours), None);
        let ours = "s_mov_b64 s[2:3], src_flat_scratch_base_hi";
        assert_eq!(explained(Kind::Invented, &[0xbe82_01e6], "", ours), None);
    }
}
