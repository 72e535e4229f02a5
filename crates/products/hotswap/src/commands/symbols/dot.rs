//! The call graph in the language of Graphviz, and pictures of graphs.
//!
//! Kernels are boxes. An edge to the node `unknown` is a call whose target is not known.

use super::Shown;
use hotswap_device_symbols::{FunctionKind, SymbolTable};
use hotswap_report::{Diagnostic, codes};
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

/// The picture of a graph, by Graphviz.
///
/// # Errors
/// `NOT_STARTED` where `dot` does not exist, `CHILD_FAILED` where it fails.
pub(super) fn picture(graph: &str) -> Result<String, Diagnostic> {
    let mut child = Command::new("dot")
        .arg("-Tsvg")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(graphviz_start_error)?;
    let mut input = child.stdin.take();
    let output = thread::scope(|scope| {
        // A picture may begin before the graph ends.
        thread::Builder::new()
            .spawn_scoped(scope, move || input.as_mut().map(|input| input.write_all(graph.as_bytes())))
            .and_then(|_| hotswap_files::child_output(child))
    });
    let output = output.map_err(graphviz_start_error)?;
    if !output.status.success() {
        return Err(Diagnostic::error(codes::CHILD_FAILED, format!("`dot -Tsvg`: {}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn graphviz_start_error(error: std::io::Error) -> Diagnostic {
    Diagnostic::error(codes::NOT_STARTED, format!("`dot`: {error}"))
        .advise("install Graphviz, or write the graph by --format dot")
}

/// One graph with a cluster for each code object.
pub(super) fn graph(objects: &[Shown<'_>]) -> String {
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
pub(super) fn quoted(text: &str) -> String {
    let plain = crate::work::text::plain(text);
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}
