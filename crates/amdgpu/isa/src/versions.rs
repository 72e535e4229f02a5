//! Forms of instructions that one version of LLVM reads and another one rejects.
//!
//! The rows of the instruction set are those of LLVM 23. LLVM 24 no longer reads some of these forms, most of them words that no
//! compiler makes. They are still decoded, since code may hold them; [`version_judgment`] says what each version makes of one.
//!
//! Invariant: `tests/isa-exam` asks both versions about every row: LLVM 23 reads the form and LLVM 24 does not, and no word of the sweep or
//! of LLVM's own tests is read by 23 and rejected by 24 without a row.
//!
//! Absent on purpose: operands outside of their class ([`crate::Operand::in_class`]), which assemblers of all versions reject.

use crate::reg::Special;
use crate::tables::{Class, Feature, Flag, Name};
use crate::{Inst, Isa, OperandAccess, OperandValue};
use core::fmt;

/// A form, and the versions of LLVM that read it.
#[derive(Debug)]
pub struct VersionJudgment {
    /// The form, for readers.
    pub form: &'static str,
    /// The GPUs that are concerned, for readers.
    pub targets: &'static str,
    /// The last version that reads it.
    pub accepted_by: u32,
    /// The first version that rejects it.
    pub rejected_by: u32,
    /// A target of the row, and an instruction of it.
    pub example: (&'static str, &'static [u32]),
    is_of_target: fn(Isa) -> bool,
    has_form: fn(&Inst, Isa) -> bool,
}

impl fmt::Display for VersionJudgment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rejected by LLVM {}, accepted by LLVM {}: {}", self.rejected_by, self.accepted_by, self.form)
    }
}

impl VersionJudgment {
    /// Whether an instruction of a target has the form.
    #[must_use]
    pub fn contains(&self, inst: &Inst, isa: Isa) -> bool {
        (self.is_of_target)(isa) && (self.has_form)(inst, isa)
    }
}

/// The row of an instruction that one version reads and another one rejects.
#[must_use]
pub fn version_judgment(inst: &Inst, isa: Isa) -> Option<&'static VersionJudgment> {
    if !may_have_row(inst) {
        return None;
    }
    VERSION_JUDGMENTS.iter().find(|row| row.contains(inst, isa))
}

/// Whether an instruction has what one of the rows asks for first: its class, the beginning of its name, or the number of a
/// register that is only a source. Most instructions have none of these, and disassemblers ask about each.
fn may_have_row(inst: &Inst) -> bool {
    /// The beginnings of the names in the rows.
    const BEGINNINGS: [&str; 10] = [
        "v_fma_mix",
        "v_cube",
        "s_barrier_",
        "s_get_b",
        "s_wak",
        "s_movrels",
        "s_cbranch_j",
        "v_cvt_pk_",
        "v_cvt_sr_",
        "v_s_",
    ];
    inst.is(Flag::Sdwa)
        || inst.is(Flag::Dpp)
        || is_dual(inst)
        || inst.entry().slots().iter().any(|slot| names_source(inst, inst.raw_slot(slot) & 0xff))
        || BEGINNINGS.iter().any(|beginning| inst.mnemonic().starts_with(beginning))
}

/// Whether the low byte of a source may be the number of a register that is only a source; vector registers have such numbers,
/// too.
fn names_source(inst: &Inst, number: u64) -> bool {
    /// From the scratch base to the literal of 32 bits.
    const NUMBERS: core::ops::RangeInclusive<u64> = 230..=255;
    /// `null`, which a row about matrix instructions names.
    const NULL: core::ops::RangeInclusive<u64> = 124..=125;
    NUMBERS.contains(&number) || inst.is(Flag::Mai) && NULL.contains(&number)
}

fn is_dual(inst: &Inst) -> bool {
    matches!(inst.class(), Some(Class::Vopd | Class::Vopd3))
}

/// A row of LLVM 23 and 24.
const fn rejected_by_24(
    form: &'static str,
    targets: &'static str,
    example: (&'static str, &'static [u32]),
    is_of_target: fn(Isa) -> bool,
    has_form: fn(&Inst, Isa) -> bool,
) -> VersionJudgment {
    VersionJudgment { form, targets, accepted_by: 23, rejected_by: 24, example, is_of_target, has_form }
}

/// The rows, in the order in which they are asked.
#[rustfmt::skip]
pub static VERSION_JUDGMENTS: &[VersionJudgment] = &[
    rejected_by_24("v_dual_dot2acc_f32_f16 and v_dual_dot2acc_f32_bf16", "GFX12.5",
        ("gfx1250", &[0xcb0a_0000, 0]), is_gfx12_5, has_dot2acc),
    rejected_by_24("src_vccz or src_execz as an operand", "GFX11 and later",
        ("gfx1100", &[0x7e00_02fb]), is_gfx11_or_later, names_vccz_or_execz),
    rejected_by_24("src_pops_exiting_wave_id as an operand", "gfx908, gfx90a, gfx942, gfx950, GFX11 and later",
        ("gfx942", &[0x7e00_02ef]), lacks_pops, names_pops),
    rejected_by_24("src_private_base or src_private_limit as an operand", "GFX12.5",
        ("gfx1250", &[0x3600_00ee]), is_gfx12_5, names_private_aperture),
    rejected_by_24("v_fma_mix* in the encoding of GFX9", "GFX10 and later",
        ("gfx1030", &[0xd3a1_0000, 0]), is_gfx10_or_later, has_gfx9_mix),
    rejected_by_24("SDWA with the reserved value of dst_unused", "GFX9, GFX10",
        ("gfx1010", &[0x7e18_4af9, 0x0040_dc00]), is_any, has_reserved_unused),
    rejected_by_24("DPP of instructions of 64 bits that are not transcendental", "GFX9 before gfx90a",
        ("gfx900", &[0x7e00_2afa, 0]), is_before_gfx90a, has_wide_dpp),
    rejected_by_24("v_cubeid_f32, v_cubema_f32, v_cubesc_f32, v_cubetc_f32", "gfx942, gfx950",
        ("gfx942", &[0xd1c5_0000, 0]), is_gfx940, is_cube),
    rejected_by_24("barriers named by another register than M0, or by a constant that is not from -4 to 31", "GFX12 and later",
        ("gfx1200", &[0xbe80_5100]), is_gfx12_or_later, names_other_barrier),
    rejected_by_24("s_movrels_b32 from, or a join at, a register that is only a source", "all",
        ("gfx1010", &[0xbe88_2eeb]), is_any, moves_source_register),
    rejected_by_24("a literal of 64 bits in VOP3, VOP3P or a dual instruction", "GFX12.5",
        ("gfx1250", &[0xd647_0098, 0x05ae_cefe, 0x42e4_1813, 0x745b_3bf4]), is_gfx12_5, has_wide_literal),
    rejected_by_24("conversions of f16 to FP8 and BF8 with CLAMP, or with halves beside byte_sel", "GFX12.5",
        ("gfx1250", &[0xd773_8008, 0x0000_006a]), is_gfx12_5, converts_in_lost_form),
    rejected_by_24("a register that is only a source as an operand of MFMA, v_accvgpr_read_b32 or v_accvgpr_mov_b32", "gfx908, gfx90a, gfx942, gfx950",
        ("gfx90a", &[0xd3d8_0081, 0x0000_00e6]), has_matrix_unit, feeds_matrix_from_source),
    rejected_by_24("a scalar result in a register that is only a source", "all",
        ("gfx900", &[0x7fd6_05fe]), is_any, writes_source_register),
];

fn is_any(_: Isa) -> bool {
    true
}

fn is_gfx10_or_later(isa: Isa) -> bool {
    isa.has(Feature::Gfx10Insts)
}

fn is_gfx11_or_later(isa: Isa) -> bool {
    isa.has(Feature::Gfx11Insts)
}

fn is_gfx12_or_later(isa: Isa) -> bool {
    isa.has(Feature::Gfx12Insts)
}

fn is_gfx12_5(isa: Isa) -> bool {
    isa.has(Feature::Gfx1250Insts)
}

fn is_gfx940(isa: Isa) -> bool {
    isa.has(Feature::Gfx940Insts)
}

fn is_before_gfx90a(isa: Isa) -> bool {
    !isa.has(Feature::Gfx10Insts) && !isa.has(Feature::Gfx90aInsts)
}

fn lacks_pops(isa: Isa) -> bool {
    isa.has(Feature::MaiInsts) || isa.has(Feature::Gfx11Insts)
}

fn has_matrix_unit(isa: Isa) -> bool {
    isa.has(Feature::MaiInsts)
}

/// Registers that instructions read and none writes.
const SOURCES_ONLY: [Special; 11] = [
    Special::SharedBase,
    Special::SharedLimit,
    Special::PrivateBase,
    Special::PrivateLimit,
    Special::FlatScratchBaseLo,
    Special::FlatScratchBaseHi,
    Special::PopsExitingWaveId,
    Special::Vccz,
    Special::Execz,
    Special::Scc,
    Special::LdsDirect,
];

fn special_of_value(value: OperandValue) -> Option<Special> {
    match value {
        OperandValue::Reg(reg) => reg.as_special(),
        _ => None,
    }
}

fn names_special(inst: &Inst, isa: Isa, wanted: &[Special]) -> bool {
    inst.operands(isa).any(|operand| special_of_value(operand.value).is_some_and(|one| wanted.contains(&one)))
}

fn names_vccz_or_execz(inst: &Inst, isa: Isa) -> bool {
    names_special(inst, isa, &[Special::Vccz, Special::Execz])
}

fn names_pops(inst: &Inst, isa: Isa) -> bool {
    names_special(inst, isa, &[Special::PopsExitingWaveId])
}

fn names_private_aperture(inst: &Inst, isa: Isa) -> bool {
    names_special(inst, isa, &[Special::PrivateBase, Special::PrivateLimit])
}

/// The numbers of the two halves of a dual instruction.
fn dual_opcodes(inst: &Inst) -> Option<[u32; 2]> {
    let first = inst.words()[0];
    match inst.class()? {
        Class::Vopd => Some([first >> 22 & 15, first >> 17 & 31]),
        Class::Vopd3 => Some([first >> 18 & 63, first >> 12 & 63]),
        _ => None,
    }
}

fn has_dot2acc(inst: &Inst, _: Isa) -> bool {
    dual_opcodes(inst).is_some_and(|halves| halves.iter().any(|opcode| matches!(opcode, 12 | 13)))
}

fn has_gfx9_mix(inst: &Inst, _: Isa) -> bool {
    inst.mnemonic().starts_with("v_fma_mix") && inst.words()[0] >> 24 == 0xd3
}

fn has_reserved_unused(inst: &Inst, _: Isa) -> bool {
    inst.raw(Name::DstUnused) == Some(3)
}

fn has_wide_dpp(inst: &Inst, _: Isa) -> bool {
    let name = inst.mnemonic();
    let is_transcendental = ["v_rcp_f64", "v_rsq_f64", "v_sqrt_f64"].contains(&name);
    inst.class() == Some(Class::Vop1Dpp16) && name.contains("f64") && !is_transcendental
}

fn is_cube(inst: &Inst, _: Isa) -> bool {
    inst.mnemonic().starts_with("v_cube")
}

fn names_other_barrier(inst: &Inst, isa: Isa) -> bool {
    let name = inst.mnemonic();
    let takes_barrier = name.starts_with("s_barrier_") || name == "s_get_barrier_state" || name == "s_wakeup_barrier";
    let sources = inst.operands(isa).filter(|operand| operand.access == OperandAccess::Read);
    takes_barrier && inst.class() == Some(Class::Sop1) && sources.clone().any(|operand| !is_barrier(operand.value))
}

/// M0, or a constant from -4 to 31.
fn is_barrier(value: OperandValue) -> bool {
    match value {
        OperandValue::Reg(reg) => reg.is(Special::M0),
        OperandValue::Inline(inline) => matches!(inline.code, 128..=159 | 193..=196),
        _ => false,
    }
}

fn moves_source_register(inst: &Inst, isa: Isa) -> bool {
    ["s_movrels_b32", "s_cbranch_join"].contains(&inst.mnemonic()) && names_special(inst, isa, &SOURCES_ONLY)
}

fn feeds_matrix_from_source(inst: &Inst, isa: Isa) -> bool {
    const STARTS: [&str; 4] = ["v_mfma_", "v_smfmac_", "v_accvgpr_read_", "v_accvgpr_mov_"];
    let name = inst.mnemonic();
    // A scale prefix takes scalar registers of every kind.
    let is_matrix = STARTS.iter().any(|start| name.starts_with(start)) && !name.starts_with("v_mfma_ld_scale_");
    is_matrix && (names_special(inst, isa, &SOURCES_ONLY) || names_special(inst, isa, &[Special::Null]))
}

/// The selector of a literal of 64 bits.
const WIDE_LITERAL: u64 = 254;

fn has_wide_literal(inst: &Inst, _: Isa) -> bool {
    let encodings = [Class::Vop3, Class::Vop3p, Class::Vopd, Class::Vopd3];
    let sources = [Name::Src0, Name::Src1, Name::Src2, Name::Src0X, Name::Src0Y];
    inst.class().is_some_and(|class| encodings.contains(&class))
        && sources.iter().any(|name| inst.raw(*name) == Some(WIDE_LITERAL))
}

fn converts_in_lost_form(inst: &Inst, _: Isa) -> bool {
    match inst.mnemonic() {
        "v_cvt_pk_fp8_f16" | "v_cvt_pk_bf8_f16" => inst.raw(Name::Clamp) == Some(1),
        "v_cvt_sr_fp8_f16" | "v_cvt_sr_bf8_f16" => inst.class() == Some(Class::Vop3) && inst.words()[0] >> 11 & 3 != 0,
        _ => false,
    }
}

fn writes_source_register(inst: &Inst, isa: Isa) -> bool {
    let name = inst.mnemonic();
    let is_scalar = name.starts_with("v_readfirstlane_") || name.starts_with("v_readlane_") || name.starts_with("v_s_");
    let mut written = inst.operands(isa).filter(|operand| operand.access == OperandAccess::Write);
    is_scalar && written.any(|operand| special_of_value(operand.value).is_some_and(|one| SOURCES_ONLY.contains(&one)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;
    use alloc::vec::Vec;

    /// Words of which the first is one of an example, with some bits changed, or any.
    fn tried_words(state: &mut u64) -> [u32; 4] {
        let mut random = || {
            *state ^= *state << 13;
            *state ^= *state >> 7;
            *state ^= *state << 17;
            *state
        };
        let mut words = [random() as u32, random() as u32, random() as u32, random() as u32];
        let choice = random();
        if !choice.is_multiple_of(3) {
            let example = VERSION_JUDGMENTS[choice as usize % VERSION_JUDGMENTS.len()].example.1;
            let changed = (random() & random() & random() & random()) as u32;
            words[0] = example[0] ^ changed;
            example.iter().skip(1).zip(words.iter_mut().skip(1)).for_each(|(known, word)| {
                *word = if choice.is_multiple_of(2) { *known } else { *word };
            });
        }
        words
    }

    #[test]
    fn no_row_is_lost_where_none_is_looked_for() {
        let (mut state, mut found) = (0x9e37_79b9_7f4a_7c15, [0_usize; 64]);
        for target in Target::all_targets() {
            let isa = Isa::new(target);
            for _ in 0..60_000 {
                let bytes: Vec<u8> = tried_words(&mut state).iter().flat_map(|word| word.to_le_bytes()).collect();
                let Ok(inst) = isa.decode(&bytes) else { continue };
                let row = VERSION_JUDGMENTS.iter().position(|row| row.contains(&inst, isa));
                if let Some(row) = row {
                    found[row] += 1;
                    assert!(may_have_row(&inst), "{}: {}", target.name, VERSION_JUDGMENTS[row].form);
                }
            }
        }
        let rare = VERSION_JUDGMENTS.iter().zip(found).filter(|(_, count)| *count < 20).map(|(row, _)| row.form);
        assert_eq!(rare.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
