//! `hotswap size`: which kernels and functions take the bytes of the code.
//!
//! A function that several kernels reach counts for each of them in `BYTES`, and for none in `ALONE`. JSON: `{schema: 1,
//! file, objects: [{place, target, code, rows: [{name, bytes, …}]}], problems}`.

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use crate::stream_input::input_file;
use crate::work::tables::{FoundTables, KernelBytes, TabledObject, kernel_bytes, tables, title};
use crate::work::text;
use clap::{Args, ValueEnum};
use hotswap_report::Diagnostic;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct SizeArguments {
    /// Code object, device object, or anything that `hotswap list` reads
    #[arg(value_parser = input_file())]
    file: PathBuf,
    /// The things that get a row
    #[arg(long, value_enum, default_value_t)]
    by: By,
    /// Only code for this target ID
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    #[command(flatten)]
    output: OutputOptions,
}

/// The things that get a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum By {
    /// A kernel with all that it reaches
    #[default]
    Kernel,
    /// A function
    Function,
}

/// A row: largest first.
struct SizeRow<'t> {
    name: &'t str,
    bytes: u64,
    /// Bytes that only this kernel reaches.
    alone: Option<u64>,
    /// Functions that it reaches, and whether these are all; or kernels that reach it.
    count: usize,
    complete: bool,
}

pub(crate) fn run(arguments: &SizeArguments) -> Result<CommandOutcome, Diagnostic> {
    let FoundTables { objects, problems } = tables(&arguments.file, arguments.target.as_deref())?;
    let text = match arguments.output.format {
        OutputFormat::Text => {
            let texts: Vec<String> = objects.iter().map(|object| shown(arguments, object)).collect();
            texts.join("\n")
        }
        OutputFormat::Json => {
            let told: Vec<Value> = objects.iter().map(|object| as_json(arguments.by, object)).collect();
            let problems: Vec<Value> = problems.iter().map(Diagnostic::to_json).collect();
            let file = arguments.file.display().to_string();
            text::json(&json!({ "schema": 1, "file": file, "objects": told, "problems": problems }))
        }
    };
    Ok(CommandOutcome { text, problems, ..CommandOutcome::default() })
}

/// Bytes of all functions.
fn code(object: &TabledObject) -> u64 {
    object.table.functions.iter().map(|one| one.size).sum()
}

fn rows(by: By, object: &TabledObject) -> Vec<SizeRow<'_>> {
    let table = &object.table;
    let mut rows: Vec<SizeRow<'_>> = match by {
        By::Kernel => kernel_bytes(table)
            .into_iter()
            .zip(&table.kernels)
            .map(|(KernelBytes { all: bytes, alone }, kernel)| {
                let (count, complete) = (kernel.reachable.len(), kernel.complete);
                let name = &table.functions[kernel.function as usize].name;
                SizeRow { name, bytes, alone: Some(alone), count, complete }
            })
            .collect(),
        By::Function => (0_u32..)
            .zip(&table.functions)
            .map(|(number, one)| {
                let reaching = table.kernels.iter().filter(|kernel| kernel.reachable.binary_search(&number).is_ok());
                let complete = table.kernels.iter().all(|kernel| kernel.complete);
                SizeRow { name: &one.name, bytes: one.size, alone: None, count: reaching.count(), complete }
            })
            .collect(),
    };
    rows.sort_by_key(|row| Reverse(row.bytes));
    rows
}

fn shown(arguments: &SizeArguments, object: &TabledObject) -> String {
    let all = code(object);
    let heads: &[&str] = match arguments.by {
        By::Kernel => &["BYTES", "SHARE", "ALONE", "FUNCTIONS", "KERNEL"],
        By::Function => &["BYTES", "SHARE", "KERNELS", "FUNCTION"],
    };
    let mut lines = vec![heads.iter().map(|head| (*head).to_owned()).collect::<Vec<_>>()];
    for row in rows(arguments.by, object) {
        let share = format!("{:.1} %", row.bytes as f64 * 100.0 / all.max(1) as f64);
        let count = if row.complete { row.count.to_string() } else { format!("{}+", row.count) };
        let alone = row.alone.map(|bytes| bytes.to_string());
        let cells = [Some(row.bytes.to_string()), Some(share), alone, Some(count), Some(text::plain(row.name))];
        lines.push(cells.into_iter().flatten().collect());
    }
    format!(
        "{}: {all} bytes in {}\n",
        title(&arguments.file, object),
        text::counted(object.table.functions.len(), "function")
    ) + &text::table(&lines)
}

fn as_json(by: By, object: &TabledObject) -> Value {
    let rows: Vec<Value> = rows(by, object).into_iter().map(|one| size_row_json(one, &by)).collect();
    json!({ "place": object.place, "target": object.target, "code": code(object), "rows": rows })
}

fn size_row_json(row: SizeRow<'_>, by: &By) -> Value {
    match *by {
        By::Kernel => {
            json!({ "name": row.name, "bytes": row.bytes, "alone": row.alone, "functions": row.count, "complete": row.complete })
        }
        By::Function => json!({ "name": row.name, "bytes": row.bytes, "kernels": row.count, "complete": row.complete }),
    }
}
