//! `hotswap addr2func`: the function that holds an address.
//!
//! JSON: `{schema: 1, file, addresses: [{address, found: [{place, target, function, offset, section, kind}]}], problems}`.

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::Outcome;
use crate::stream_input::input_file;
use crate::work::tables::{Tabled, tables};
use crate::work::text;
use clap::Args;
use hotswap_device_symbols::Function;
use hotswap_report::{Diagnostic, codes};
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Addr2FuncArguments {
    /// Code object, device object, or anything that `hotswap list` reads
    #[arg(value_parser = input_file())]
    file: PathBuf,
    /// Addresses in the code object: those of its symbols, the load address subtracted
    #[arg(required = true, value_name = "ADDRESS", value_parser = text::number)]
    addresses: Vec<u64>,
    /// Only code for this target ID
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    #[command(flatten)]
    output: OutputOptions,
}

pub(crate) fn run(arguments: &Addr2FuncArguments) -> Result<Outcome, Diagnostic> {
    let (objects, mut problems) = tables(&arguments.file, arguments.target.as_deref())?;
    let (mut lines, mut told) = (String::new(), Vec::new());
    for address in &arguments.addresses {
        let found: Vec<(&Tabled, &Function)> = objects
            .iter()
            .flat_map(|object| object.table.functions_at(*address).map(move |function| (object, function)))
            .collect();
        if found.is_empty() {
            let what = format!("no function holds the address {address:#x}");
            let advice = "`hotswap symbols` lists the functions; subtract the load address of a running program";
            problems.push(Diagnostic::error(codes::NO_PART, what).in_file(&arguments.file).advise(advice));
        }
        lines.extend(found.iter().map(|(object, function)| line(*address, object, function, objects.len() > 1)));
        let rows: Vec<Value> = found.iter().map(|(object, function)| row(*address, object, function)).collect();
        told.push(json!({ "address": address, "found": rows }));
    }
    let text = match arguments.output.format {
        OutputFormat::Text => lines,
        OutputFormat::Json => {
            let problems: Vec<Value> = problems.iter().map(Diagnostic::to_json).collect();
            let file = arguments.file.display().to_string();
            text::json(&json!({ "schema": 1, "file": file, "addresses": told, "problems": problems }))
        }
    };
    Ok(Outcome { text, problems })
}

fn line(address: u64, object: &Tabled, function: &Function, several: bool) -> String {
    let name = text::plain(&function.name);
    let place = if several { format!("  {}", text::plain(&object.target)) } else { String::new() };
    format!("{address:#x}  {name}+{:#x}  {}{place}\n", address - function.address, function.kind.text())
}

fn row(address: u64, object: &Tabled, function: &Function) -> Value {
    json!({
        "place": object.place,
        "target": object.target,
        "function": function.name,
        "offset": address - function.address,
        "section": function.section,
        "kind": function.kind,
    })
}
