//! Forms of instructions that gfx1250-strict (A0) does not execute as gfx1250 (B0) does: executing one is a fault.
//!
//! Invariants: one row for each rule; the rewriter, which this judges, takes no part in it. The rows are those of
//! AMD's public table of the differences, in own words.
//!
//! Absent on purpose: distances between instructions, which `hotswap lint` checks.

use hotswap_isa::reg::Special;
use hotswap_isa::{Flag, Inst, Isa, Name, OperandValue};

/// A form that the stepping lacks.
struct SteppingRule {
    /// The mnemonics; a `*` at the end stands for any rest.
    names: &'static [&'static str],
    form: TrappedForm,
    text: &'static str,
}

/// Which instructions with a mnemonic a rule concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrappedForm {
    Any,
    /// Those with the clamp bit.
    Clamp,
    /// Those whose first source is this inline constant.
    Constant(u64),
    /// Those that read the scratch aperture's base as 64 bits: vector instructions at all, scalar ones by its upper half.
    ScratchBase,
}

#[rustfmt::skip]
const RULES: &[SteppingRule] = &[
    SteppingRule { names: &["ds_load_addtid_b32", "ds_store_addtid_b32"], form: TrappedForm::Any,
        text: "accesses of LDS by the lane's number" },
    SteppingRule { names: &["v_cvt_f32_fp8", "v_cvt_pk_fp8_f32", "v_cvt_sr_fp8_f32"], form: TrappedForm::Clamp,
        text: "conversions of unsigned E5M3 numbers" },
    SteppingRule { names: &["v_wmma_f32_16x16x128_fp8_*", "v_wmma_f32_16x16x128_bf8_*", "v_wmma_f16_16x16x128_fp8_*",
                            "v_wmma_f16_16x16x128_bf8_*"], form: TrappedForm::Any,
        text: "products of 8-bit floats of depth 128 without formats" },
    SteppingRule { names: &["v_wmma_f32_32x16x128_f4", "v_wmma_f32_16x16x128_f8f6f4"], form: TrappedForm::Any,
        text: "products with formats, without a prefix of scales" },
    SteppingRule { names: &["s_barrier_signal_isfirst"], form: TrappedForm::Constant(195),
        text: "the first wave at the barrier of a cluster" },
    SteppingRule { names: &["s_get_barrier_state", "s_monitor_sleep"], form: TrappedForm::Any,
        text: "states of barriers, and sleep until a change" },
    SteppingRule { names: &["*"], form: TrappedForm::ScratchBase,
        text: "the base of scratch as 64 bits in a vector instruction, or by its upper half" },
];

/// Two elements of LDS of which one is not aligned to its size give wrong data. This depends on the address, so the access
/// itself asks. Source: LLVM 24, whose feature `needs-aligned-2addr-lds` makes it emit these accesses for gfx1250-strict where
/// both elements are aligned, and others where they are not (#219004).
pub(crate) const UNALIGNED_PAIR: &str = "accesses of LDS at two addresses that are not aligned to their elements";

fn is_named(pattern: &str, mnemonic: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == mnemonic, |start| mnemonic.starts_with(start))
}

/// The rule that an instruction breaks on a stepping that has them.
pub(crate) fn broken_rule(inst: &Inst, isa: Isa) -> Option<&'static str> {
    let mnemonic = inst.mnemonic();
    let broken = RULES.iter().find(|rule| {
        rule.names.iter().any(|pattern| is_named(pattern, mnemonic))
            && match rule.form {
                TrappedForm::Any => true,
                TrappedForm::Clamp => inst.raw(Name::Clamp).is_some_and(|raw| raw != 0),
                TrappedForm::Constant(code) => inst.raw(Name::Src0) == Some(code),
                TrappedForm::ScratchBase => reads_scratch_base(inst, isa),
            }
    });
    broken.map(|rule| rule.text)
}

fn reads_scratch_base(inst: &Inst, isa: Isa) -> bool {
    inst.operands(isa).any(|operand| match operand.value {
        OperandValue::Reg(reg) if reg.count == 2 => {
            let low = reg.is(Special::FlatScratchBaseLo) && inst.is(Flag::Valu);
            low || reg.is(Special::FlatScratchBaseHi)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_isa::TableEntry;

    #[test]
    fn every_rule_names_instructions() {
        for rule in RULES {
            for pattern in rule.names {
                let found = TableEntry::all_entries().any(|entry| is_named(pattern, entry.mnemonic()));
                assert!(found, "{pattern} names no instruction");
            }
        }
    }
}
