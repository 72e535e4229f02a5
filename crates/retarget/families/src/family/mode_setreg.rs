//! `mode_setreg`: keeps writes of MODE two vector instructions after those that they may disturb.
//!
//! LLVM 23 puts two `v_nop` before every `s_setreg` of MODE for this chip, and AMD's own translator does so for the
//! target; later LLVM does not. Eight bytes for a rare instruction are cheap, so the target gets them. Existing ones
//! count. Where a wave has executed no vector instruction yet, there is nothing to disturb: compilers set MODE at the
//! start of every kernel.

use crate::code::{FunctionFamily, FunctionFlow, Insertion, SiteRefusal, no_operation};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::{Flag, Inst, Name, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_mode_setreg_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::MODE_SETREG,
        Apply::Function(FunctionFamily { entries: sets_registers, concerns: sets_mode, confirms: None, insertions }),
    );
}

const NEEDED: usize = 2;

fn insertions(flow: &FunctionFlow<'_>) -> Result<Vec<Insertion>, SiteRefusal> {
    let mut all = Vec::new();
    let mut known = None;
    for block in flow.concerned.iter().copied() {
        let code = flow.block_code(block);
        for (before, _) in code.iter().enumerate().filter(|(_, inst)| sets_mode(inst)) {
            if known.get_or_insert_with(|| blocks_before_valu(flow))[block] && before < first_vector_position(code) {
                continue;
            }
            let there = code[..before].iter().rev().take(NEEDED).take_while(|inst| inst.mnemonic() == "v_nop").count();
            if there < NEEDED {
                all.push(Insertion { block, before, code: vec![no_operation(flow.target)?; NEEDED - there] });
            }
        }
    }
    Ok(all)
}

fn first_vector_position(code: &[Inst]) -> usize {
    code.iter().position(|inst| inst.is(Flag::Valu)).unwrap_or(code.len())
}

/// The blocks that waves reach without executing a vector instruction, on every path.
fn blocks_before_valu(flow: &FunctionFlow<'_>) -> Vec<bool> {
    let quiet =
        |block: usize| !flow.blocks[block].leaves && !flow.block_code(block).iter().any(|inst| inst.is(Flag::Valu));
    let mut fresh = vec![false; flow.blocks.len()];
    let mut entered = vec![0; flow.blocks.len()];
    let mut clean = vec![0; flow.blocks.len()];
    for next in flow.blocks.iter().flat_map(|block| block.successors) {
        entered[*next as usize] += 1;
    }
    let mut work: Vec<usize> = (0..flow.blocks.len()).filter(|block| flow.blocks[*block].begins).collect();
    work.retain(|block| entered[*block] == 0);
    while let Some(block) = work.pop() {
        fresh[block] = true;
        if !quiet(block) {
            continue;
        }
        for next in flow.blocks[block].successors.iter().map(|next| *next as usize) {
            clean[next] += 1;
            if clean[next] == entered[next] && !fresh[next] {
                work.push(next);
            }
        }
    }
    fresh
}

fn sets_registers(entry: TableEntry) -> bool {
    entry.is(Flag::Salu) && matches!(entry.mnemonic(), "s_setreg_b32" | "s_setreg_imm32_b32")
}

/// `s_setreg` of hardware register 1.
fn sets_mode(inst: &Inst) -> bool {
    sets_registers(inst.entry()) && inst.raw(Name::Simm16).is_some_and(|register| register & 63 == 1)
}
