//! Tables of compiled code, compared with LLVM's own about the same code: relocations, and the numbers of its assembly.

mod common;

use common::{Made, Setting, functions, make, references, relocations, set_symbols, settings};
use hotswap_device_symbols::{Function, FunctionKind, SymbolTable, analyse};
use hotswap_userland::{Workbench, say, slice};
use std::collections::BTreeSet;

const SOURCE: &str = include_str!("functions.hip");

/// Edges and numbers that were compared.
#[derive(Debug, Default)]
struct Counts {
    functions: usize,
    edges: usize,
    /// Of these and the other references, those with a relocation in the linked file.
    relocated: usize,
    /// Referenced functions that are no callees, and are said to have their address taken.
    taken: usize,
    unresolved: usize,
    missed: usize,
    invented: usize,
    registers: usize,
}

fn table(data: &[u8]) -> SymbolTable {
    let (table, problems) = analyse(data).expect("the compiler makes code objects");
    assert!(problems.is_empty(), "{problems:?}");
    table
}

/// A slice has each version with each target, at one of the levels.
fn chosen(test: &str, bench: &Workbench) -> Vec<Setting> {
    slice(test, settings(bench), |number, _| number / 2 % 2 == number % 2)
}

impl Counts {
    fn edges(&mut self, table: &SymbolTable, made: &Made, setting: &Setting) {
        let truth = references(&made.assembly);
        for (function, named) in relocations(&made.listing) {
            let all = truth.get(&function).is_some_and(|all| named.is_subset(all));
            assert!(all, "{setting:?}: relocations of {function}: {named:?}");
            self.relocated += named.len();
        }
        let symbols = functions(&made.listing);
        let name = |one: &Function| symbols.get(&one.address).map_or(one.name.clone(), |(name, _)| name.clone());
        for function in &table.functions {
            self.functions += 1;
            let wanted = truth.get(&name(function)).cloned().unwrap_or_default();
            let found: BTreeSet<String> =
                function.callees.iter().map(|callee| name(&table.functions[callee.function as usize])).collect();
            self.edges += found.intersection(&wanted).count();
            self.unresolved += function.indirect_calls.unresolved.len();
            for missed in wanted.difference(&found) {
                let callee = table.functions.iter().find(|one| name(one) == *missed);
                let is_told = callee.is_some_and(|callee| callee.address_taken);
                let slot = if is_told { &mut self.taken } else { &mut self.missed };
                *slot += 1;
                assert!(is_told, "{setting:?}: {} does not call {missed}", function.name);
            }
            let invented: Vec<&String> = found.difference(&wanted).collect();
            self.invented += invented.len();
            assert!(invented.is_empty(), "{setting:?}: {} calls {invented:?}", function.name);
        }
    }

    fn registers(&mut self, table: &SymbolTable, made: &Made, setting: &Setting) {
        type Field = fn(&Function) -> [hotswap_device_symbols::Number; 2];
        let fields: [(&str, Field); 3] = [
            ("num_vgpr", |one| [one.own.vgprs, one.total.vgprs]),
            ("num_agpr", |one| [one.own.agprs, one.total.agprs]),
            ("numbered_sgpr", |one| [one.own.sgprs, one.total.sgprs]),
        ];
        for (name, field) in fields {
            let stated = set_symbols(&made.assembly, name);
            for function in &table.functions {
                let Some((own, total)) = stated.get(&function.name) else { continue };
                let [found_own, found_total] = field(function);
                assert!(
                    found_own.value <= Some(*own),
                    "{setting:?}: {} of {}: {found_own:?}, LLVM {own}",
                    name,
                    function.name
                );
                let is_device = function.kind == FunctionKind::Function;
                if is_device && name != "numbered_sgpr" {
                    assert_eq!(found_own.value, Some(*own), "{setting:?}: {name} of {}", function.name);
                    if let Some(total) = total.filter(|_| !found_total.at_least) {
                        assert_eq!(found_total.value, Some(total), "{setting:?}: {name} of {}", function.name);
                    }
                    self.registers += 1;
                }
            }
        }
    }
}

#[test]
fn calls_and_registers_are_those_of_llvm() {
    let test = "calls_and_registers_are_those_of_llvm";
    let Some(bench) = Workbench::new(test) else { return };
    let mut counts = Counts::default();
    for setting in chosen(test, &bench) {
        let made = make(&bench, &setting, SOURCE);
        let linked = table(&made.linked);
        counts.edges(&linked, &made, &setting);
        counts.registers(&linked, &made, &setting);
    }
    say(&format!("{test}: {counts:?}"));
    assert!(counts.edges > 50 && counts.registers > 50 && counts.unresolved > 0, "{counts:?}");
    assert_eq!((counts.missed, counts.invented), (0, 0));
}
