//! `barriers`: barrier and sleep instructions that behave differently on the two steppings.
//!
//! `s_barrier_signal_isfirst` of the cluster barrier (−3) does not reliably elect a wave on the target, and assemblers
//! refuse it for both. On the workgroup barrier (−1), where LLVM's own cluster barrier depends on its result, it is
//! correct and unchanged, and so is the form with M0. The wave state that `s_get_barrier_state` shows, and the way in
//! which `s_monitor_sleep` sleeps for ever, are said to differ, but the difference is documented nowhere, so both are
//! refused.
//!
//! Clauses (`s_clause`) are `clause_scope`'s.

use crate::code::{CandidateFilter, CodeSite, InstructionFamily, SiteAnswer, SiteQueries, SiteRefusal};
use crate::registry::{Apply, FamilyRegistry};
use crate::table::slot;
use hotswap_isa::{Name, TableEntry};

// Sound: no other file defines the symbol, and the linker refuses two definitions.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
fn hotswap_register_barriers_patch(registry: &mut FamilyRegistry) {
    registry.bind(
        slot::BARRIERS,
        Apply::Instruction(InstructionFamily { concerns, suspects: CandidateFilter::All, rewrite }),
    );
}

const NAMES: [&str; 3] = ["s_barrier_signal_isfirst", "s_get_barrier_state", "s_monitor_sleep"];

fn concerns(entry: TableEntry) -> bool {
    NAMES.contains(&entry.mnemonic())
}

/// The inline constant −3.
const CLUSTER: u64 = 195;
/// The bit of `s_monitor_sleep` that means no end.
const FOREVER: u64 = 0x8000;

fn rewrite(site: &CodeSite<'_>, _: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
    let reason = match site.inst.mnemonic() {
        "s_barrier_signal_isfirst" if site.inst.raw(Name::Src0) == Some(CLUSTER) => {
            "the target does not say reliably which wave is the first at the cluster barrier (-3)"
        }
        "s_get_barrier_state" => "the target shows another barrier state, and how it differs is not known",
        "s_monitor_sleep" if site.raw(Name::Simm16) & FOREVER != 0 => {
            "the target sleeps differently when no end is given, and how it differs is not known"
        }
        _ => return Ok(SiteAnswer::Leave("the target does the same")),
    };
    Err(SiteRefusal::new(reason, "change the source of the kernel for the target"))
}
