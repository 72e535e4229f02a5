//! The control flow of a function in the language of Graphviz: its basic blocks with their instructions, and the edges between
//! them.
//!
//! A dashed edge to `unknown` leaves the function, or goes to a place that is not known.

use crate::call_graph::quoted;
use hotswap_isa::text::PrintOptions;
use hotswap_program::{BlockExit, CodeSource, Function, Program};
use hotswap_report::Diagnostic;

/// Instructions of a block that are shown; the rest is counted.
const MOST: usize = 24;

/// The graph of the function of that name, if the object has it.
///
/// # Errors
/// Those of reading code.
pub fn to_dot(data: &[u8], name: &str) -> Result<Option<String>, Diagnostic> {
    for source in CodeSource::read(data)? {
        let program = Program::build(source);
        if let Some(function) = program.functions.iter().find(|function| program.name(function) == name) {
            return Ok(Some(of_function(&program, function, name)));
        }
    }
    Ok(None)
}

fn of_function(program: &Program<'_>, function: &Function, name: &str) -> String {
    let mut out = format!("digraph flow {{\n  label={}\n  node [shape=box, fontname=monospace]\n", quoted(name));
    let mut is_open = false;
    for (number, block) in function.blocks().enumerate() {
        out += &format!("  b{number} [label=\"{}\"]\n", label(program, block.start, block.end));
        for to in function.successors(number) {
            out += &format!("  b{number} -> b{to}\n");
        }
        if function.leaves(number) || block.exit == BlockExit::Unknown {
            is_open = true;
            out += &format!("  b{number} -> unknown [style=dashed]\n");
        }
    }
    if is_open {
        out += "  unknown [shape=ellipse, style=dotted]\n";
    }
    out + "}\n"
}

/// The instructions of a block, each in a line that begins at the left.
fn label(program: &Program<'_>, start: u32, end: u32) -> String {
    let address = program.source.address.wrapping_add(u64::from(start));
    let (mut lines, mut at, mut more) = (vec![format!("{address:#x}:")], start, 0);
    while at < end {
        let Some(inst) = program.decode(at) else { break };
        if lines.len() > MOST {
            more += 1;
        } else {
            let mut text = String::new();
            let _ = inst.write_text(program.source.isa, PrintOptions::default(), &mut text);
            lines.push(text);
        }
        at += u32::from(inst.len());
    }
    if more > 0 {
        lines.push(format!("… {more} more"));
    }
    lines.iter().map(|line| line.replace('\\', "\\\\").replace('"', "\\\"") + "\\l").collect()
}
