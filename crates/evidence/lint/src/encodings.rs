//! Instructions that the target lacks, or has in another form; branches without a valid target; clauses.
//!
//! Whether a row of the instruction set is of the target is checked by the decoder. [`FORMS`] has forms that the
//! decoder and the assembler accept, and that the first stepping executes differently (`gfx1250-strict`).

use crate::finding::{CLAUSE, CONTROL_FLOW, ENCODING, LintFinding};
use crate::unit::LintUnit;
use hotswap_isa::effects::Space;
use hotswap_isa::reg::{Reg, Special};
use hotswap_isa::{Class, Feature, Flag, Inst, Isa, Name, OperandValue};
use hotswap_program::ProblemReason;

/// A form that a stepping does not have.
struct AbsentForm {
    strict_only: bool,
    is: fn(&Inst, Isa) -> bool,
    why: &'static str,
}

/// Number of -3, the cluster barrier, as a source.
const CLUSTER_BARRIER: u64 = 195;
/// The bit of `s_monitor_sleep` that means no end.
const FOREVER: u64 = 0x8000;

static FORMS: &[AbsentForm] = &[
    AbsentForm {
        strict_only: true,
        is: |inst, _| inst.is(Flag::Wmma) && inst.class() == Some(Class::Vop3p) && inst.raw(Name::MatrixAFmt).is_some(),
        why: "a matrix instruction of f8f6f4 without scales loses its state in a trap",
    },
    AbsentForm {
        strict_only: true,
        is: |inst, _| inst.class() == Some(Class::Vop3px2) && inst.is(Flag::Wmma) && unused_names_scalar(inst),
        why: "the unused source of a scaled matrix instruction names a scalar register",
    },
    AbsentForm {
        strict_only: false,
        is: |inst, _| inst.mnemonic() == "s_barrier_signal_isfirst" && inst.raw(Name::Src0) == Some(CLUSTER_BARRIER),
        why: "which wave is the first at the cluster barrier is not reliable",
    },
    AbsentForm {
        strict_only: true,
        is: |inst, _| inst.mnemonic() == "s_get_barrier_state",
        why: "the state of a barrier is another one, and how it differs is not known",
    },
    AbsentForm {
        strict_only: true,
        is: |inst, _| {
            inst.mnemonic() == "s_monitor_sleep" && inst.raw(Name::Simm16).is_some_and(|time| time & FOREVER != 0)
        },
        why: "sleep without an end is another one, and how it differs is not known",
    },
    AbsentForm {
        strict_only: true,
        is: |inst, _| matches!(inst.mnemonic(), "ds_load_addtid_b32" | "ds_store_addtid_b32"),
        why: "accesses to LDS at M0 + 4 * lane see 16 bits of M0",
    },
    AbsentForm {
        strict_only: true,
        is: |inst, _| is_e5m3(inst),
        why: "conversions with CLAMP (UE5M3) convert to and from E4M3",
    },
    AbsentForm { strict_only: true, is: |inst, _| has_block16(inst), why: "scales of 16 elements do not exist" },
    AbsentForm {
        strict_only: true,
        is: reads_wide_base,
        why: "a vector instruction cannot read the base of scratch as 64 bits",
    },
];

/// Constants and vector registers in the field of a source.
fn unused_names_scalar(inst: &Inst) -> bool {
    !matches!(inst.words()[1] >> 18 & 511, 128..=208 | 240..=248 | 256..)
}

fn is_e5m3(inst: &Inst) -> bool {
    const NAMES: [&str; 3] = ["v_cvt_pk_fp8_f32", "v_cvt_sr_fp8_f32", "v_cvt_f32_fp8"];
    NAMES.contains(&inst.mnemonic()) && inst.raw(Name::Clamp) == Some(1)
}

/// Conversions of eight- and smaller floats whose selector has its top bit.
fn has_block16(inst: &Inst) -> bool {
    let Some(selector) = inst.raw(Name::ScaleSel) else { return false };
    let eight = ["_fp8", "_bf8"].iter().any(|format| inst.mnemonic().ends_with(format));
    selector > if eight { 7 } else { 3 }
}

fn reads_wide_base(inst: &Inst, isa: Isa) -> bool {
    let bases = [Special::FlatScratchBaseLo, Special::FlatScratchBaseHi].map(|half| Reg::special(half, 2));
    inst.is(Flag::Valu) && inst.operands(isa).any(|operand| is_wide_base_value(operand.value, &bases))
}

fn is_wide_base_value(value: OperandValue, bases: &[Reg; 2]) -> bool {
    matches!(value, OperandValue::Reg(reg) if bases.contains(&reg))
}

/// Checks every instruction that a path reaches.
pub(crate) fn check_encodings(unit: &LintUnit<'_>, findings: &mut Vec<LintFinding>) {
    let isa = unit.isa();
    let strict = isa.has(Feature::Gfx1250Strict);
    for number in 0..unit.program.functions.len() {
        report_problems(unit, number, findings);
        unit.each_instruction(number, |_, at, inst, _| {
            let wrong = FORMS.iter().find(|form| (strict || !form.strict_only) && (form.is)(inst, isa));
            findings.extend(wrong.map(|form| LintFinding::at_offset(&ENCODING, unit, at, form.why)));
            if inst.class() == Some(Class::Sopp) && inst.mnemonic() == "s_clause" {
                check_clause(unit, number, at, inst, findings);
            }
            if inst.class() == Some(Class::Vop3p) && is_scale_prefix(inst) {
                let what = "a scale prefix is not followed by its matrix instruction";
                findings.push(LintFinding::at_offset(&ENCODING, unit, at, what));
            }
        });
    }
}

/// `v_wmma_ld_scale_paired_*` as a separate instruction: the decoder joins it with a following matrix instruction.
fn is_scale_prefix(inst: &Inst) -> bool {
    inst.mnemonic().starts_with("v_wmma_ld_scale")
}

/// Code that the program model could not follow because it is wrong, not because it is unknown.
fn report_problems(unit: &LintUnit<'_>, number: usize, findings: &mut Vec<LintFinding>) {
    for problem in &unit.program.functions[number].problems {
        let rule = match problem.reason {
            ProblemReason::Undecodable => &ENCODING,
            ProblemReason::LeavesSection | ProblemReason::TargetOutside | ProblemReason::Overlap => &CONTROL_FLOW,
            _ => continue,
        };
        findings.push(LintFinding::at_offset(rule, unit, problem.offset, problem.reason.text()));
    }
}

/// The scope of a memory instruction of GFX12, from its words: bits 21 and 22 of scalar ones, 50 and 51 of
/// those that have three dwords.
fn scope_bits(inst: &Inst) -> Option<u32> {
    match inst.memory_access()?.space {
        Space::Scalar => Some(inst.words()[0] >> 21 & 3),
        _ if inst.len() == 12 => Some(inst.words()[1] >> 18 & 3),
        _ => None,
    }
}

/// Instructions that may be in a clause of any kind: changes of the bank mode, `s_nop`, and on gfx10.1 the wait for stores that LLVM
/// inserts before vector memory after a branch (`LdsBranchVmemWARHazard`), when it has made the clauses.
fn is_neutral_member(inst: &Inst, isa: Isa) -> bool {
    let is_gfx10_1 = isa.has(Feature::Gfx10Insts) && !isa.has(Feature::Gfx10BEncoding);
    matches!(inst.mnemonic(), "s_set_vgpr_msb" | "s_nop") || is_gfx10_1 && inst.mnemonic() == "s_waitcnt_vscnt"
}

/// Members of a clause are of one kind of memory, and for the first stepping of one scope.
fn check_clause(unit: &LintUnit<'_>, number: usize, at: u32, inst: &Inst, findings: &mut Vec<LintFinding>) {
    let count = (inst.raw(Name::Simm16).unwrap_or(0) & 63) + 1;
    let function = &unit.program.functions[number];
    let mut place = at + u32::from(inst.len());
    let mut kind: Option<u8> = None;
    let mut scope: Option<u32> = None;
    for _ in 0..count {
        let Some(member) = unit.program.decode(place).filter(|_| function.is_instruction(place)) else { break };
        let own = match member.memory_access().map(|memory| memory.space) {
            Some(Space::Scalar) => Some(0),
            Some(Space::Lds) => Some(1),
            Some(_) => Some(2),
            None if is_neutral_member(&member, unit.isa()) => None,
            None => Some(3),
        };
        if own == Some(3) || kind.is_some() && own.is_some() && own != kind {
            let what = format!("the clause of {count} holds `{}`", member.mnemonic());
            findings.push(LintFinding::at_offset(&CLAUSE, unit, at, what));
            return;
        }
        kind = kind.or(own);
        let own_scope = scope_bits(&member).filter(|_| unit.isa().has(Feature::Gfx1250Strict));
        if own_scope.is_some() && scope.is_some() && own_scope != scope {
            let what = format!("the clause of {count} holds `{}` of another scope", member.mnemonic());
            findings.push(LintFinding::at_offset(&CLAUSE, unit, at, what));
            return;
        }
        scope = scope.or(own_scope);
        place += u32::from(member.len());
    }
}
