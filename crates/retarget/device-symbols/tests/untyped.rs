//! Assembly whose functions have no type: the table is that of the same code with types.

use hotswap_device_symbols::note::{TableOrigin, found_table, with_table};
use hotswap_device_symbols::{SymbolTable, analyse_file};
use hotswap_userland::{Workbench, say, tool};

/// Functions that are visible, called or both, in `TYPE(NAME)` lines that a test writes; a label, data, and a name inside of data.
const SOURCE: &str = "
.globl caller
TYPE(caller)
.p2align 8
caller:
  s_mov_b64 s[34:35], s[30:31]
  s_getpc_b64 s[4:5]
  s_add_u32 s4, s4, hidden@rel32@lo+4
  s_addc_u32 s5, s5, hidden@rel32@hi+12
  s_swappc_b64 s[30:31], s[4:5]
again:
  s_cbranch_scc1 again
  s_setpc_b64 s[34:35]
.p2align 8, 0
.globl visible
TYPE(visible)
visible:
  v_mov_b32 v7, v0
  s_setpc_b64 s[30:31]
.p2align 8, 0
TYPE(hidden)
hidden:
  v_mov_b32 v11, v0
  s_setpc_b64 s[30:31]
.globl numbers
.type numbers,@object
numbers:
  .long 0x7e000280
.globl inside
inside:
  .long 0x7e000281
.size numbers, 8
";

fn assembled(bench: &Workbench, name: &str, text: &str) -> [SymbolTable; 2] {
    let object = bench.assemble(24, "-mcpu=gfx90a", name, text);
    bench.run(&format!("{} -shared {name}.o -o {name}.co", tool(24, "ld.lld")));
    [object, bench.read(&format!("{name}.co"))].map(|bytes| analyse_file(&bytes).unwrap().0)
}

/// The source with lines `.type NAME,@function`, or without.
fn source(has_types: bool) -> String {
    let line = |line: &str| match line.strip_prefix("TYPE(").and_then(|rest| rest.strip_suffix(')')) {
        Some(name) if has_types => format!(".type {name},@function\n"),
        Some(_) => String::new(),
        None => format!("{line}\n"),
    };
    SOURCE.lines().map(line).collect()
}

#[test]
fn functions_without_a_type_are_those_of_the_same_code_with_types() {
    let Some(bench) = Workbench::with_llvm(24, "untyped functions") else { return };
    let (typed, untyped) = (assembled(&bench, "typed", &source(true)), assembled(&bench, "untyped", &source(false)));
    for (typed, untyped) in typed.iter().zip(&untyped) {
        let names: Vec<&str> = typed.functions.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["caller", "visible", "hidden"]);
        assert_eq!((&untyped.functions, untyped.unclaimed), (&typed.functions, typed.unclaimed));
        let callees: Vec<u32> = untyped.functions[0].callees.iter().map(|callee| callee.function).collect();
        assert_eq!((callees, untyped.functions[0].total.vgprs.value), (vec![2], Some(12)));
    }
    say("untyped functions: 3 in two forms are those with types");
}

#[test]
fn a_table_with_the_old_name_of_an_untyped_function_is_not_used() {
    let Some(bench) = Workbench::with_llvm(24, "renamed untyped function") else { return };
    assembled(&bench, "untyped", &source(false));
    let (noted, _) = with_table(&bench.read("untyped.co")).unwrap();
    assert_eq!(found_table(&noted).unwrap().origin, TableOrigin::Note);
    bench.write("noted.co", &noted);
    bench.run(&format!("{} --redefine-sym hidden=renamed noted.co renamed.co", tool(24, "llvm-objcopy")));
    let found = found_table(&bench.read("renamed.co")).unwrap();
    assert_eq!(found.origin, TableOrigin::StaleNote);
    assert!(found.table.number_of_name("renamed").is_some() && found.table.number_of_name("hidden").is_none());
}
