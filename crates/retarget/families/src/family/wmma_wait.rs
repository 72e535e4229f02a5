//! `wmma_wait`: waits for matrix instructions of eight and fewer bits if the program separates instructions itself.
//!
//! With SCHED_MODE 2 the program waits for vector results itself (`s_wait_alu`). Code for the source relies on the rate
//! at which it issues these instructions. The target is slower, so each is followed by a wait for its result, unless
//! one that waits for as much comes before the next vector or memory instruction. In the usual mode the hardware waits.

use crate::code::{FunctionFamily, FunctionFlow, Insertion, Scheduling, SiteRefusal, wait_for_vector_results};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::{Flag, Inst, Name, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_wmma_wait_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::WMMA_WAIT,
        Apply::Function(FunctionFamily { entries: is_slower_entry, concerns: is_slower, confirms: None, insertions }),
    );
}

fn insertions(flow: &FunctionFlow<'_>) -> Result<Vec<Insertion>, SiteRefusal> {
    if flow.scheduling == Scheduling::Hardware {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for block in flow.concerned.iter().copied() {
        let code = flow.block_code(block);
        for (index, _) in code.iter().enumerate().filter(|(_, inst)| is_slower(inst)) {
            if !is_waited_for(&code[index + 1..]) {
                all.push(Insertion { block, before: index + 1, code: vec![wait_for_vector_results(flow.target)?] });
            }
        }
    }
    Ok(all)
}

/// Matrix instructions of fp8, bf8, f8f6f4 and f4.
fn is_slower(inst: &Inst) -> bool {
    is_slower_entry(inst.entry())
}

fn is_slower_entry(entry: TableEntry) -> bool {
    entry.is(Flag::SmallFloat)
}

/// Whether only scalar instructions precede a wait for all vector results.
fn is_waited_for(rest: &[Inst]) -> bool {
    /// Bits of VA_VDST, the number of results that may be outstanding.
    const VA_VDST: u64 = 0xf000;
    let next = rest.iter().find(|inst| !inst.is(Flag::Salu) || inst.mnemonic() == "s_wait_alu");
    next.is_some_and(|inst| {
        inst.mnemonic() == "s_wait_alu" && inst.raw(Name::Simm16).is_some_and(|value| value & VA_VDST == 0)
    })
}
