//! `hotswap addr2func`: the function that holds an address.
//!
//! JSON: `{schema: 1, file, addresses: [{address, found: [{place, target, function, offset, section, kind, frames: [{function,
//! file, line}]}]}], problems}`.

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use crate::stream_input::input_file;
use crate::work::code_objects::code_objects;
use crate::work::tables::{FoundTables, TabledObject, tables};
use crate::work::text;
use clap::Args;
use hotswap_code_object::{SourceFrame, source_frames};
use hotswap_device_symbols::Function;
use hotswap_disassembly::names::NameStyle;
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
    /// Below each function, those that are inlined at the address, with source lines, as debug information has them
    #[arg(short, long)]
    inlines: bool,
    /// C++ names in the form of the source
    #[arg(short = 'C', long)]
    demangle: bool,
    #[command(flatten)]
    output: OutputOptions,
}

/// The frames of each address, in the code objects that have debug information of it.
struct FoundFrames {
    place: String,
    address: u64,
    frames: Vec<SourceFrame>,
}

pub(crate) fn run(arguments: &Addr2FuncArguments) -> Result<CommandOutcome, Diagnostic> {
    let FoundTables { objects, mut problems } = tables(&arguments.file, arguments.target.as_deref())?;
    let inlined = if arguments.inlines { read_frames(arguments)? } else { Vec::new() };
    let style = NameStyle { demangle: arguments.demangle };
    let (mut lines, mut told) = (String::new(), Vec::new());
    for address in &arguments.addresses {
        let found: Vec<(&TabledObject, &Function)> = objects
            .iter()
            .flat_map(|object| object.table.functions_at(*address).map(move |function| (object, function)))
            .collect();
        if found.is_empty() {
            let what = format!("no function holds the address {address:#x}");
            let advice = "`hotswap symbols` lists the functions; subtract the load address of a running program";
            problems.push(Diagnostic::error(codes::NO_PART, what).in_file(&arguments.file).advise(advice));
        }
        for (object, function) in &found {
            lines += &line(*address, object, function, (objects.len() > 1, &style));
            lines.extend(frames_at(&inlined, object, *address).iter().map(|frame| frame_line(frame, &style)));
        }
        let rows: Vec<Value> = found
            .iter()
            .map(|(object, function)| row(*address, object, function, (frames_at(&inlined, object, *address), &style)))
            .collect();
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
    Ok(CommandOutcome { text, problems, ..CommandOutcome::default() })
}

/// The frames of the addresses in every code object.
fn read_frames(arguments: &Addr2FuncArguments) -> Result<Vec<FoundFrames>, Diagnostic> {
    let mut found = Vec::new();
    code_objects(&arguments.file, |place, _, data| {
        found.extend(arguments.addresses.iter().map(|address| FoundFrames {
            place: place.to_owned(),
            address: *address,
            frames: source_frames(data, *address),
        }));
    })
    .map_err(|error| error.in_file(&arguments.file))?;
    Ok(found)
}

fn frames_at<'f>(found: &'f [FoundFrames], object: &TabledObject, address: u64) -> &'f [SourceFrame] {
    let found = found.iter().find(|one| one.place == object.place && one.address == address);
    found.map_or(&[][..], |one| &one.frames)
}

fn frame_line(frame: &SourceFrame, style: &NameStyle) -> String {
    format!("  {}  {}:{}\n", text::plain(&style.shown(&frame.function)), text::plain(&frame.file), frame.line)
}

fn line(address: u64, object: &TabledObject, function: &Function, (several, style): (bool, &NameStyle)) -> String {
    let name = text::plain(&style.shown(&function.name));
    let place = if several { format!("  {}", text::plain(&object.target)) } else { String::new() };
    format!("{address:#x}  {name}+{:#x}  {}{place}\n", address - function.address, function.kind.text())
}

fn row(
    address: u64,
    object: &TabledObject,
    function: &Function,
    (frames, style): (&[SourceFrame], &NameStyle),
) -> Value {
    let frames: Vec<Value> = frames.iter().map(|frame| frame_json(frame, style)).collect();
    json!({
        "place": object.place,
        "target": object.target,
        "function": style.shown(&function.name),
        "offset": address - function.address,
        "section": function.section,
        "kind": function.kind,
        "frames": frames,
    })
}

fn frame_json(frame: &SourceFrame, style: &NameStyle) -> Value {
    json!({ "function": style.shown(&frame.function), "file": frame.file, "line": frame.line })
}
