//! Packed instructions of two 32-bit floats. `gfx950` executes some of them wrongly where the low lane reads the high half of a
//! source (ROCm/rocMLIR#2459 has wrong results of `v_pk_fma_f32`); LLVM 24 rejects these forms for it and accepts them for
//! `gfx942`, and LLVM 23 accepts them for both.

use super::{InvalidInstructions, ProcessorPair};
use crate::Check;
use hotswap_isa::{Inst, TableEntry};

/// The processor that executes the forms wrongly.
const AFFECTED: &str = "gfx950";

pub(super) fn packed_float_rule(pair: &ProcessorPair) -> Option<InvalidInstructions> {
    let is_new = pair.target.processor.name == AFFECTED && pair.source.processor.name != AFFECTED;
    is_new.then(|| InvalidInstructions {
        check: Check::SameInstructions,
        concerns: is_packed_float,
        is_invalid: is_rejected_form,
        why: format!("{AFFECTED} does not execute this op_sel correctly, and LLVM 24 rejects it"),
    })
}

fn is_packed_float(entry: TableEntry) -> bool {
    ["v_pk_fma_f32", "v_pk_add_f32", "v_pk_mul_f32"].contains(&entry.mnemonic())
}

/// The forms that LLVM 24's assembler rejects, of all combinations of `op_sel` and `op_sel_hi`.
fn is_rejected_form(inst: &Inst) -> bool {
    let [first, second, third] = [11, 12, 13].map(|bit| inst.words()[0] >> bit & 1 != 0);
    match inst.mnemonic() {
        "v_pk_fma_f32" => second || third,
        _ => second && !first,
    }
}

#[cfg(test)]
mod tests {
    use crate::Check;
    use crate::checks::{ProcessorPair, rules_of_check};
    use hotswap_isa::{Isa, Target};

    /// How many rules an instruction on v[0:1], v[2:3] and v[4:5] with that `op_sel` breaks.
    fn broken(target: &str, operation: u32, selected: u32) -> usize {
        let words = [0xd380_4008 | operation << 16 | selected << 11, 0x1c12_0500];
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
        let inst = Isa::new(Target::find("gfx942").unwrap()).decode(&bytes).unwrap();
        assert!(inst.mnemonic().starts_with("v_pk_"), "{}", inst.mnemonic());
        let pair = ProcessorPair { source: "gfx942".parse().unwrap(), target: target.parse().unwrap() };
        let rules = rules_of_check(Check::SameInstructions, &pair);
        rules.iter().filter(|rule| (rule.concerns)(inst.entry()) && (rule.is_invalid)(&inst)).count()
    }

    #[test]
    fn forms_that_llvm_rejects_are_invalid_on_gfx950_alone() {
        const FMA: u32 = 0x30;
        const ADD: u32 = 0x32;
        // Bit 0 is the first source's.
        assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|form| broken("gfx950", FMA, form)), [0, 0, 1, 1, 1, 1, 1, 1]);
        assert_eq!([0, 1, 2, 3].map(|form| broken("gfx950", ADD, form)), [0, 0, 1, 0]);
        assert_eq!([0, 1, 2, 3].map(|form| broken("gfx9-4-generic", FMA, form)), [0; 4]);
    }
}
