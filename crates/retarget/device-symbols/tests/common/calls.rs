//! The calls that a table has, compared with those that LLVM's assembly of the same code names.

use super::{Made, functions, references};
use hotswap_device_symbols::{Function, SymbolTable};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of a comparison.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Compared {
    pub(crate) functions: usize,
    pub(crate) equal: usize,
    /// References to functions that are no calls: addresses that are stored or passed on.
    pub(crate) taken: usize,
    pub(crate) unresolved: usize,
}

impl Compared {
    pub(crate) fn plus(self, one: Self) -> Self {
        Self {
            functions: self.functions + one.functions,
            equal: self.equal + one.equal,
            taken: self.taken + one.taken,
            unresolved: self.unresolved + one.unresolved,
        }
    }
}

/// Compares functions and calls: each function that LLVM emits is there once, and no other; each call is one of the assembly's, and
/// each reference of the assembly is a call, or an address that is taken. All are for waves of the size that the metadata states.
///
/// # Errors
/// The first difference.
pub(crate) fn compare_calls(table: &SymbolTable, made: &Made) -> Result<Compared, String> {
    let (truth, symbols) = (references(&made.assembly), functions(&made.listing));
    let starts: Vec<u64> = table.functions.iter().map(|one| one.address).collect();
    let emitted: Vec<u64> = symbols.keys().copied().collect();
    if starts != emitted {
        return Err(format!("functions at {starts:x?}, LLVM's at {emitted:x?}"));
    }
    let lanes = stated_lanes(&made.assembly);
    let mut compared = Compared { functions: starts.len(), ..Compared::default() };
    for function in &table.functions {
        if lanes.is_some_and(|lanes| function.wave_size != Some(lanes)) {
            return Err(format!(
                "{} is for waves of {:?} lanes, LLVM's of {lanes:?}",
                function.name, function.wave_size
            ));
        }
        let wanted = truth.get(name_of(function, &symbols)).cloned().unwrap_or_default();
        let callees = function.callees.iter().map(|callee| &table.functions[callee.function as usize]);
        let found: BTreeSet<String> = callees.map(|callee| name_of(callee, &symbols).to_owned()).collect();
        let invented: Vec<&String> = found.difference(&wanted).collect();
        if !invented.is_empty() {
            return Err(format!("{} calls {invented:?}", function.name));
        }
        compared.equal += found.len();
        compared.unresolved += function.indirect_calls.unresolved.len();
        for missed in wanted.difference(&found) {
            let callee = table.functions.iter().find(|one| name_of(one, &symbols) == missed);
            if !callee.is_some_and(|one| one.address_taken) {
                return Err(format!("{} does not call {missed}", function.name));
            }
            compared.taken += 1;
        }
    }
    Ok(compared)
}

/// The wave size of the kernels, as the metadata in the assembly states it; nothing without a kernel.
fn stated_lanes(assembly: &str) -> Option<u8> {
    assembly.lines().find_map(|line| line.trim().strip_prefix(".wavefront_size: ")?.trim().parse().ok())
}

/// LLVM's name of a function: of several at one address the listing has one.
fn name_of<'f>(function: &'f Function, symbols: &'f BTreeMap<u64, (String, u64)>) -> &'f str {
    symbols.get(&function.address).map_or(&function.name, |(name, _)| name)
}
