//! Which kernels get to a function: by calls that are known, and, where not all of its callers are known, by calls of what is
//! not known.
//!
//! Taken for granted, as in the certificate: what a code object's functions are called by is code of that code object.

use crate::unit::LintUnit;
use hotswap_program::{CallDestination, EntryPoint};
use std::collections::BTreeSet;

/// Numbers of the kernels, rising.
pub(crate) fn kernels_to(unit: &LintUnit<'_>, function: usize) -> Vec<u32> {
    let program = &unit.program;
    let mut kernels: BTreeSet<u32> = program.kernels_of(function).iter().copied().collect();
    if is_called_by_pointer(unit, function) {
        for (number, one) in program.functions.iter().enumerate() {
            let is_unknown = one.calls.iter().any(|call| !matches!(call.callee, CallDestination::Function { .. }));
            if is_unknown || !one.is_closed() {
                kernels.extend(program.kernels_of(number));
            }
        }
    }
    kernels.into_iter().collect()
}

/// Whether it, or a function that gets to it, has an entry of which not all callers are known.
pub(crate) fn is_called_by_pointer(unit: &LintUnit<'_>, function: usize) -> bool {
    let (mut seen, mut work) = (BTreeSet::from([function]), vec![function]);
    while let Some(number) = work.pop() {
        if unit.program.functions[number].entries.iter().any(is_open_function) {
            return true;
        }
        work.extend(unit.program.callers(number).map(|(caller, _)| caller).filter(|caller| seen.insert(*caller)));
    }
    false
}

fn is_open_function(entry: &EntryPoint) -> bool {
    entry.open && !entry.is_kernel()
}

/// A function on the way from a kernel, and the first of its calls that was not followed.
struct EnteredFunction {
    number: u32,
    next_call: usize,
}

/// Whether the size of the stack of a kernel follows from its code: all callees are known, and no function is entered
/// again before it returns.
pub(crate) fn has_known_stack(unit: &LintUnit<'_>, kernel: usize) -> Result<(), &'static str> {
    let program = &unit.program;
    // Functions of which all callees have been looked at, and those on the way to the current one.
    let (mut done, mut way) = (BTreeSet::new(), vec![EnteredFunction { number: kernel as u32, next_call: 0 }]);
    while let Some(EnteredFunction { number, next_call }) = way.last_mut() {
        let function = &program.functions[*number as usize];
        if !function.is_closed() {
            return Err("reaches code whose control flow is not known");
        }
        let Some(call) = function.calls.get(*next_call) else {
            done.insert(*number);
            way.pop();
            continue;
        };
        *next_call += 1;
        let CallDestination::Function { function, .. } = call.callee else {
            return Err("reaches a call of what is not known");
        };
        if way.iter().any(|entered| entered.number == function) {
            return Err("reaches functions that call themselves");
        }
        if !done.contains(&function) {
            way.push(EnteredFunction { number: function, next_call: 0 });
        }
    }
    Ok(())
}
