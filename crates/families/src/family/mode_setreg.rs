//! `mode_setreg`: writes of MODE stand two vector instructions behind what they may disturb.
//!
//! LLVM 23 puts two `v_nop` before every `s_setreg` of MODE for this chip and AMD's own translator does so for the target;
//! later LLVM does not. Eight bytes for a rare instruction are cheap, so the target gets them; those that stand there
//! already count.

use crate::code::{Flow, FunctionFamily, Insertion, Refusal, no_operation};
use crate::registry::{Apply, Registry};
use crate::table::slot;
use hotswap_isa::{Inst, Name};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_mode_setreg_patch(registry: &mut Registry) {
    registry.bind(slot::MODE_SETREG, Apply::Function(insertions as FunctionFamily));
}

const NEEDED: usize = 2;

fn insertions(flow: &Flow<'_>) -> Result<Vec<Insertion>, Refusal> {
    let mut all = Vec::new();
    for (block, code) in flow.blocks.iter().enumerate() {
        for (before, _) in code.code.iter().enumerate().filter(|(_, inst)| sets_mode(inst)) {
            let there =
                code.code[..before].iter().rev().take(NEEDED).take_while(|inst| inst.mnemonic() == "v_nop").count();
            if there < NEEDED {
                all.push(Insertion { block, before, code: vec![no_operation(flow.target)?; NEEDED - there] });
            }
        }
    }
    Ok(all)
}

/// `s_setreg` of hardware register 1.
fn sets_mode(inst: &Inst) -> bool {
    matches!(inst.mnemonic(), "s_setreg_b32" | "s_setreg_imm32_b32")
        && inst.raw(Name::Simm16).is_some_and(|register| register & 63 == 1)
}
