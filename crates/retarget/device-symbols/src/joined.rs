//! The functions of code objects that are loaded together: calls of imported functions become calls of those that another
//! code object has.
//!
//! Invariant: numbers of the first table's functions stay. Imports without a provider remain; what reaches them is
//! not complete.

use crate::analysis;
use crate::table::{Callee, FactEvidence, Function, SymbolTable};
use crate::totals;

/// The table of a code object, followed by the functions of libraries. `provider` tells library and function by the
/// name of an import.
#[must_use]
pub fn join_tables(
    user: &SymbolTable,
    libraries: &[&SymbolTable],
    provider: impl Fn(&str) -> Option<(usize, u32)>,
) -> SymbolTable {
    let mut starts = Vec::with_capacity(libraries.len());
    let (mut functions, mut sources) = (user.functions.clone(), user.sources.clone());
    for library in libraries {
        let start = functions.len() as u32;
        starts.push(start);
        functions.extend(library.functions.iter().map(|one| moved_function(one, start, sources.len() as u32)));
        sources.extend(library.sources.iter().cloned());
    }
    for (number, table) in [user].iter().chain(libraries).enumerate() {
        let start = number.checked_sub(1).map_or(0, |library| starts[library]) as usize;
        for function in &mut functions[start..start + table.functions.len()] {
            connect_imports(function, |name| {
                let import = table.imports.iter().find(|import| import.name == name)?;
                let (library, function) = provider(import.wanted())?;
                Some(starts.get(library)? + function)
            });
        }
    }
    let stated = vec![None; functions.len()];
    let needs = totals::propagate_totals(&mut functions, &stated);
    let mut kernels = analysis::kernel_rows(&functions, &needs);
    kernels.truncate(user.kernels.len());
    SymbolTable { functions, kernels, sources, ..user.clone() }
}

fn moved_function(function: &Function, start: u32, first_source: u32) -> Function {
    let mut function = function.clone();
    function.source = function.source.map(|source| first_source + source);
    function.callees.iter_mut().for_each(|callee| callee.function += start);
    function
}

/// Imports with a provider become callees.
fn connect_imports(function: &mut Function, provider: impl Fn(&str) -> Option<u32>) {
    let imports = std::mem::take(&mut function.imports);
    for name in imports {
        match provider(&name) {
            Some(number) => function.callees.push(Callee { function: number, evidence: FactEvidence::Disassembly }),
            None => function.imports.push(name),
        }
    }
    function.callees.sort_unstable();
    function.callees.dedup();
}
