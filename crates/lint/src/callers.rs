//! Which kernels get to a function: by calls that are known, and, where not all of its callers are known, by calls of what is
//! not known.
//!
//! Taken for granted, as in the certificate: what a code object's functions are called by is code of that code object.

use crate::unit::Unit;
use hotswap_program::{Callee, Entry};
use std::collections::BTreeSet;

/// Numbers of the kernels, rising.
pub(crate) fn kernels_to(unit: &Unit<'_>, function: usize) -> Vec<u32> {
    let program = &unit.program;
    let mut kernels: BTreeSet<u32> = program.kernels_of(function).iter().copied().collect();
    if is_called_by_pointer(unit, function) {
        for (number, one) in program.functions.iter().enumerate() {
            let is_unknown = one.calls.iter().any(|call| !matches!(call.callee, Callee::Function { .. }));
            if is_unknown || !one.is_closed() {
                kernels.extend(program.kernels_of(number));
            }
        }
    }
    kernels.into_iter().collect()
}

/// Whether it, or a function that gets to it, has an entry of which not all callers are known.
fn is_called_by_pointer(unit: &Unit<'_>, function: usize) -> bool {
    let open = |entry: &Entry| entry.open && !entry.is_kernel();
    let (mut seen, mut work) = (BTreeSet::from([function]), vec![function]);
    while let Some(number) = work.pop() {
        if unit.program.functions[number].entries.iter().any(open) {
            return true;
        }
        work.extend(unit.program.callers(number).map(|(caller, _)| caller).filter(|caller| seen.insert(*caller)));
    }
    false
}
