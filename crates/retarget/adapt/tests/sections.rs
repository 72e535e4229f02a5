//! Functions in sections of their own (`-ffunction-sections`): the free registers of one depend on callers in the
//! others.

mod common;

use common::{SOURCE, assemble, disassembled, run};
use hotswap_userland::{Workbench, say};

/// Registers that the caller keeps over its call.
const KEPT: [&str; 5] = ["v32", "v33", "v34", "v35", "s16"];

#[test]
fn a_function_keeps_what_callers_in_other_sections_may_need() {
    let Some(bench) = Workbench::new("functions in sections of their own") else { return };
    let files = [("callee".to_owned(), include_str!("sections/callee.s").to_owned())];
    let (object, linked) = assemble(&bench, &files).remove(0);
    for (kind, data) in [("o", object), ("co", linked)] {
        let made = run(&data, false).unwrap_or_else(|refusals| panic!("{kind}: {refusals:?}"));
        let lines = disassembled(&bench, &[(format!("callee.{kind}"), made.bytes)]).remove(0);
        let callee = lines.iter().skip_while(|line| !line.contains("callee>:")).skip(1);
        let callee: Vec<&String> = callee.take_while(|line| !line.starts_with("s_set_pc")).collect();
        assert!(callee.len() > 8, "{kind}: the conversion is another one now: {lines:?}");
        let words = |line: &str| line.split([' ', ',']).map(str::to_owned).collect::<Vec<_>>();
        let taken: Vec<_> =
            callee.iter().filter(|line| words(line).iter().any(|word| KEPT.contains(&&**word))).collect();
        assert!(taken.is_empty(), "{kind}: {taken:?}");
        say(&format!("adapt: {kind}: a function of another section keeps {KEPT:?}"));
    }
}

#[test]
fn a_literal_that_names_a_function_of_another_section_may_move() {
    let Some(bench) = Workbench::new("literals of other sections") else { return };
    let object = bench.assemble(24, &format!("-mcpu={SOURCE}"), "literal", include_str!("sections/literal.s"));
    let made = run(&object, false).unwrap_or_else(|refusals| panic!("{refusals:?}"));
    bench.write("literal.made", &made.bytes);
    let relocations = bench.run("llvm-objdump-24 -r literal.made");
    assert!(relocations.contains("0000000000000018 R_AMDGPU_ABS64           .text.f"), "{relocations}");
}
