//! The call graph in the language of Graphviz.
//!
//! Kernels are boxes. An edge to the node `unknown` is a call whose target is not known.

use crate::symbol_report::ShownTable;
use hotswap_device_symbols::{FunctionKind, SymbolTable};
use hotswap_report::text::plain;

/// One graph with a cluster for each code object.
pub fn to_dot(objects: &[ShownTable<'_>]) -> String {
    let mut out = "digraph calls {\n".to_owned();
    for (index, shown) in objects.iter().enumerate() {
        out += &format!("  subgraph cluster_{index} {{\n    label={}\n", quoted(&shown.object.target));
        let mut is_open = false;
        for (number, function) in shown.functions() {
            let shape = if function.kind == FunctionKind::Kernel { "box" } else { "ellipse" };
            out += &format!("    {} [label={}, shape={shape}]\n", function_node(index, number), quoted(&function.name));
            for callee in &function.callees {
                out += &format!("    {} -> {}\n", function_node(index, number), function_node(index, callee.function));
            }
            for name in &function.imports {
                out +=
                    &format!("    {} -> {}\n", function_node(index, number), import(index, &shown.object.table, name));
            }
            if !function.indirect_calls.unresolved.is_empty() {
                is_open = true;
                out += &format!("    {} -> o{index}unknown\n", function_node(index, number));
            }
        }
        for one in &shown.object.table.imports {
            let node = import(index, &shown.object.table, &one.name);
            out += &format!("    {node} [label={}, style=dashed]\n", quoted(&one.name));
        }
        if is_open {
            out += &format!("    o{index}unknown [label=\"unknown\", style=dotted]\n");
        }
        out += "  }\n";
    }
    out + "}\n"
}

fn function_node(index: usize, number: u32) -> String {
    format!("o{index}f{number}")
}

fn import(index: usize, table: &SymbolTable, name: &str) -> String {
    let number = table.imports.iter().position(|one| one.name == name).unwrap_or_default();
    format!("o{index}i{number}")
}

/// A name as a string: names out of damaged files may hold anything.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", plain(text).replace('\\', "\\\\").replace('"', "\\\""))
}
