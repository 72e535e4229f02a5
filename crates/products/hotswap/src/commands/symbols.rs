//! `hotswap symbols`: the functions of code objects with their registers, callees and kernels, as text, JSON or a graph;
//! with `--write`, into a note of the code object.
//!
//! JSON: `{schema: 1, file, objects: [{place, target, origin, table}], problems}`; `table` is that of `hotswap-device-symbols`, `origin`
//! tells whether it is the file's own.
//!
//! Absent on purpose: where the facts come from (`hotswap-device-symbols`).

mod picture;

use crate::args::InPlaceOption;
use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use crate::stream_input::input_file;
use crate::work::code_objects::{code_objects, pass_over_unknown};
use crate::work::tables::{FoundTables, TableRequest, is_for_target, requested_tables};
use crate::work::text;
use clap::{Args, ValueEnum};
use hotswap_code_object::is_code_object;
use hotswap_device_symbols::{Form, function_map, note};
use hotswap_file_edit::new_file;
use hotswap_file_reports::symbol_report::{ShownTable, with_kernel};
use hotswap_file_reports::{call_graph, flow_graph, side_car};
use hotswap_files::{InputFile, WriteOptions};
use hotswap_report::{Diagnostic, codes};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct SymbolsArguments {
    /// Code object, device object, or anything that `hotswap list` reads
    #[arg(value_parser = input_file())]
    file: PathBuf,
    /// Only code for this target ID
    #[arg(long, value_name = "TARGET")]
    target: Option<String>,
    /// Only this kernel and the functions that it reaches
    #[arg(long, value_name = "KERNEL", conflicts_with = "write")]
    kernel: Option<String>,
    /// The control flow of this function as a graph, block by block, with its instructions
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["kernel", "write"])]
    flow: Option<String>,
    /// List the callees of each function
    #[arg(long)]
    callees: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    format: SymbolsFormat,
    /// Write the table into the code object, as a note that no loader loads
    #[arg(long, requires = "output", conflicts_with_all = ["target", "callees"])]
    write: bool,
    /// With --write, also write the names of functions as rows that AMD's trace decoder reads (section .sqtt_funcmap)
    #[arg(long, requires = "write")]
    function_map: bool,
    /// Output file of --write; may be the input
    #[arg(short, value_name = "OUT", value_parser = output_file(), requires = "write")]
    output: Option<PathBuf>,
    #[command(flatten)]
    in_place: InPlaceOption,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum SymbolsFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// A graph for Graphviz: of calls, or with --flow of a function's blocks
    Dot,
    /// The same as a picture, drawn by Graphviz
    Svg,
    /// For viewers of samples and traces: JSON by the hash of the code object and by ranges of offsets
    SideCar,
}

pub(crate) fn run(arguments: &SymbolsArguments) -> Result<CommandOutcome, Diagnostic> {
    if let Some(output) = arguments.output.as_deref().filter(|_| arguments.write) {
        return write(arguments, output).map_err(|error| error.in_file(&arguments.file));
    }
    if let Some(function) = &arguments.flow {
        return control_flow(arguments, function).map_err(|error| error.in_file(&arguments.file));
    }
    let is_side_car = matches!(arguments.format, SymbolsFormat::SideCar);
    let request = TableRequest { target: arguments.target.as_deref(), hashed: is_side_car };
    let FoundTables { mut objects, mut problems } = requested_tables(&arguments.file, request)?;
    if let Some(kernel) = &arguments.kernel {
        objects = with_kernel(objects, kernel).map_err(|error| error.in_file(&arguments.file))?;
    }
    let kernel = arguments.kernel.as_deref();
    let objects: Vec<ShownTable<'_>> = objects.iter().map(|object| ShownTable::new(object, kernel)).collect();
    let text = match arguments.format {
        SymbolsFormat::Text => {
            let texts = objects.iter().map(|one| one.to_text(&arguments.file, arguments.callees));
            texts.collect::<Vec<_>>().join("\n")
        }
        SymbolsFormat::Dot => call_graph::to_dot(&objects),
        SymbolsFormat::Svg => picture::draw(&call_graph::to_dot(&objects))?,
        SymbolsFormat::SideCar => {
            let side_car = side_car::to_side_car(&objects);
            problems.extend(side_car.left_out.into_iter().map(|one| one.in_file(&arguments.file)));
            text::json(&side_car.document)
        }
        SymbolsFormat::Json => {
            let told: Vec<Value> = objects.iter().map(ShownTable::to_json).collect();
            let problems: Vec<Value> = problems.iter().map(Diagnostic::to_json).collect();
            let file = arguments.file.display().to_string();
            text::json(&json!({ "schema": 1, "file": file, "objects": told, "problems": problems }))
        }
    };
    Ok(CommandOutcome { text, problems, ..CommandOutcome::default() })
}

/// The graph of a function, of the first code object that has it.
fn control_flow(arguments: &SymbolsArguments, function: &str) -> Result<CommandOutcome, Diagnostic> {
    let mut found: Vec<Result<Option<String>, Diagnostic>> = Vec::new();
    let wanted =
        |stated: &str| arguments.target.as_deref().is_none_or(|target| stated == "-" || is_for_target(stated, target));
    let unread = code_objects(&arguments.file, |_, stated, data| {
        if wanted(stated) && !found.iter().any(|one| matches!(one, Ok(Some(_)))) {
            found.push(flow_graph::to_dot(data, function));
        }
    })?;
    let mut problems = unread;
    let mut graph = None;
    for one in found {
        match one {
            Ok(Some(one)) => graph = Some(one),
            Ok(None) => {}
            Err(error) => problems.push(error),
        }
    }
    pass_over_unknown(&mut problems, graph.is_some());
    let graph = graph.ok_or_else(|| {
        Diagnostic::error(
            codes::NO_PART,
            format!("function `{function}`; `hotswap symbols` lists those that are there"),
        )
    })?;
    let text = match arguments.format {
        SymbolsFormat::Svg => picture::draw(&graph)?,
        _ => graph,
    };
    Ok(CommandOutcome { text, problems, ..CommandOutcome::default() })
}

/// Writes the file with its table.
fn write(arguments: &SymbolsArguments, output: &Path) -> Result<CommandOutcome, Diagnostic> {
    let other_names = new_file::warn_of_other_names(&arguments.file, output, arguments.in_place.placement())?;
    let input = hotswap_files::open_to_change(&arguments.file, output)?;
    if !is_code_object(&input) {
        let what = "a table is written into a code object, and the file is none";
        return Err(Diagnostic::error(codes::NO_PLACE, what).advise(
            "extract the code object (`hotswap extract`), write the table, and put it back (`hotswap replace`)",
        ));
    }
    let (base, left_out) = if arguments.function_map { mapped(&input)? } else { (input.to_vec(), 0) };
    let (made, table) = note::with_table(&base)?;
    let is_changed = made[..] != input[..];
    let how = WriteOptions { sources: &[&input], threads: 1, placement: arguments.in_place.placement() };
    let like = (made.len() as u64, &*arguments.file);
    if is_changed || !hotswap_files::is_same_place(&arguments.file, output)? {
        hotswap_files::replace_parts(output, like, how, [(0, &made[..])].into_iter(), |written: &InputFile| {
            note::check_written(&base, written, &table)?;
            new_file::check_adds_no_fault(&input, written)
        })?;
    }
    let (count, size) = (table.functions.len(), made.len());
    let text = match arguments.format {
        SymbolsFormat::Json => text::json(&json!({ "schema": 1, "functions": count, "size": size })),
        _ => format!(
            "{}: {} in its table\n",
            text::plain(&output.display().to_string()),
            text::counted(count, "function")
        ),
    };
    debug_assert_eq!(table.form, Form::Linked);
    let mut outcome = CommandOutcome::from(text);
    outcome.problems.extend(other_names.filter(|_| is_changed));
    if left_out > 0 {
        let what = format!("{} cannot be named in a row and have none", text::counted(left_out, "function"));
        outcome.problems.push(Diagnostic::warning(codes::NO_PART, what).in_file(&arguments.file));
    }
    if !is_changed {
        return Ok(outcome.note_unchanged(&arguments.file, "it has this table already"));
    }
    Ok(outcome)
}

/// The code object with the rows of its functions, and the number of functions without one.
fn mapped(input: &[u8]) -> Result<(Vec<u8>, usize), Diagnostic> {
    let (table, _) = note::table_of(input)?;
    if table.form == Form::Relocatable {
        let what = "a relocatable file keeps no rows of functions";
        return Err(Diagnostic::error(codes::NO_PLACE, what).advise("write them into the linked code object"));
    }
    function_map::with_function_map(input, &table)
}
