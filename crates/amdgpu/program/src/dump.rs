//! A program as text, for tests and for debugging.

use crate::block::BlockExit;
use crate::calls::CallDestination;
use crate::function::Function;
use crate::program::Program;
use std::fmt::{self, Write};

/// Writes functions, entries, blocks, calls and problems, one a line; offsets are in hexadecimal.
///
/// # Errors
/// The errors of writing to `out`.
pub fn dump(program: &Program<'_>, out: &mut impl Write) -> fmt::Result {
    for function in &program.functions {
        header(program, function, out)?;
        for (number, block) in function.blocks().enumerate() {
            write!(out, "  {:#x}..{:#x} {}", block.start, block.end, exit_name(block.exit))?;
            for to in function.successors(number) {
                write!(out, " {:#x}", function.block(to as usize).start)?;
            }
            if block.exit == BlockExit::Table && function.leaves(number) {
                out.write_str(" and away")?;
            }
            writeln!(out)?;
        }
        for call in &function.calls {
            write!(out, "  {} {:#x} ", if call.is_tail() { "tail" } else { "call" }, call.offset)?;
            match call.callee {
                CallDestination::Function { function, entry } => {
                    let callee = &program.functions[function as usize];
                    write!(out, "{}", program.name(callee))?;
                    if entry != callee.start {
                        write!(out, " + {:#x}", entry - callee.start)?;
                    }
                }
                CallDestination::Outside(place) => write!(out, "outside {:#x}:{:#x}", place.base, place.at)?,
                CallDestination::Unknown => write!(out, "unknown")?,
            }
            writeln!(out)?;
        }
        for offset in &function.serving {
            writeln!(out, "  fetching {offset:#x}")?;
        }
        for problem in &function.problems {
            writeln!(out, "  problem {:#x} {}", problem.offset, problem.reason)?;
        }
    }
    Ok(())
}

fn header(program: &Program<'_>, function: &Function, out: &mut impl Write) -> fmt::Result {
    write!(out, "{} {:#x}..{:#x}", program.name(function), function.start, function.end)?;
    for entry in &function.entries {
        write!(out, " {:?}", entry.kind)?;
        if entry.offset != function.start {
            write!(out, "@{:#x}", entry.offset)?;
        }
        if entry.open {
            out.write_str("(open)")?;
        }
    }
    writeln!(out)
}

fn exit_name(exit: BlockExit) -> &'static str {
    match exit {
        BlockExit::Fall => "fall",
        BlockExit::Branch => "branch",
        BlockExit::Conditional => "cond",
        BlockExit::Call => "call",
        BlockExit::Jump => "jump",
        BlockExit::Table => "table",
        BlockExit::Return => "return",
        BlockExit::Tail => "tail",
        BlockExit::End => "end",
        BlockExit::Unknown => "unknown",
    }
}
