//! Files without symbols keep the functions that known code calls.

mod common;

use common::{Setting, make};
use hotswap_device_symbols::{FunctionKind, SymbolTable, analyse_file};
use hotswap_userland::{Workbench, say, tool};
use std::collections::BTreeSet;

const SOURCE: &str = include_str!("functions.hip");

/// Addresses of the functions that known calls lead to.
fn called(table: &SymbolTable) -> BTreeSet<u64> {
    let callees = table.functions.iter().flat_map(|one| &one.callees).map(|callee| callee.function);
    callees.map(|number| table.functions[number as usize].address).collect()
}

#[test]
fn stripped_files_keep_functions_that_are_called() {
    let test = "stripped_files_keep_functions_that_are_called";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    for (target, level) in [("gfx90a", '0'), ("gfx1030", '0'), ("gfx1201", '2'), ("gfx1250", '0')] {
        let linked = make(&bench, &Setting { version: 24, target, level }, SOURCE).linked;
        bench.write("a.co", &linked);
        bench.run(&format!("{} --strip-all a.co -o stripped.co", tool(24, "llvm-strip")));
        let (whole, _) = analyse_file(&linked).unwrap();
        let (stripped, _) = analyse_file(&bench.read("stripped.co")).unwrap();
        let found: BTreeSet<u64> = stripped.functions.iter().map(|one| one.address).collect();
        let wanted = called(&whole);
        assert!(
            wanted.is_subset(&found),
            "{target} -O{level}: lost {:x?}",
            wanted.difference(&found).collect::<Vec<_>>()
        );
        let starts: BTreeSet<u64> = whole.functions.iter().map(|one| one.address).collect();
        let invented = stripped
            .functions
            .iter()
            .filter(|one| one.kind == FunctionKind::Function && !starts.contains(&one.address));
        say(&format!(
            "exam stripped | {target} -O{level} | {} | {} | {} |",
            whole.functions.len(),
            found.len(),
            invented.count()
        ));
    }
}
