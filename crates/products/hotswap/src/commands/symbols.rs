//! `hotswap symbols`: the functions of code objects with their registers, callees and kernels, as text, JSON or a graph;
//! with `--write`, into a note of the code object.
//!
//! JSON: `{schema: 1, file, objects: [{place, target, origin, table}], problems}`; `table` is that of `hotswap-device-symbols`, `origin`
//! tells whether it is the file's own.
//!
//! Absent on purpose: where the facts come from (`hotswap-device-symbols`).

mod dot;
mod flow;
mod side_car;

use crate::args::InPlaceOption;
use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use crate::stream_input::input_file;
use crate::work::code_objects::{code_objects, pass_over_unknown};
use crate::work::tables::{TableRequest, TabledObject, is_for, requested_tables, shown, title};
use crate::work::text;
use clap::{Args, ValueEnum};
use hotswap_code_object::is_code_object;
use hotswap_device_symbols::note::TableOrigin;
use hotswap_device_symbols::{FactEvidence, Form, Function, SymbolTable, function_map, note};
use hotswap_file_edit::new_file;
use hotswap_files::{InputFile, WriteOptions};
use hotswap_report::{Diagnostic, codes};
use serde_json::{Value, json};
use std::collections::BTreeSet;
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
    let (mut objects, mut problems) = requested_tables(&arguments.file, request)?;
    if let Some(kernel) = &arguments.kernel {
        objects = with_kernel(objects, kernel).map_err(|error| error.in_file(&arguments.file))?;
    }
    let kernel = arguments.kernel.as_deref();
    let objects: Vec<Shown<'_>> = objects.iter().map(|object| Shown::new(object, kernel)).collect();
    let text = match arguments.format {
        SymbolsFormat::Text => objects.iter().map(|one| one.text(arguments)).collect::<Vec<_>>().join("\n"),
        SymbolsFormat::Dot => dot::graph(&objects),
        SymbolsFormat::Svg => dot::picture(&dot::graph(&objects))?,
        SymbolsFormat::SideCar => {
            let side_car = side_car::side_car(&objects);
            problems.extend(side_car.left_out.into_iter().map(|one| one.in_file(&arguments.file)));
            text::json(&side_car.document)
        }
        SymbolsFormat::Json => {
            let told: Vec<Value> = objects.iter().map(Shown::json).collect();
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
        |stated: &str| arguments.target.as_deref().is_none_or(|target| stated == "-" || is_for(stated, target));
    let unread = code_objects(&arguments.file, |_, stated, data| {
        if wanted(stated) && !found.iter().any(|one| matches!(one, Ok(Some(_)))) {
            found.push(flow::graph(data, function));
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
        SymbolsFormat::Svg => dot::picture(&graph)?,
        _ => graph,
    };
    Ok(CommandOutcome { text, problems, ..CommandOutcome::default() })
}

/// A code object, and the functions that were asked for.
struct Shown<'t> {
    object: &'t TabledObject,
    wanted: BTreeSet<u32>,
}

/// The objects that have a kernel of that name.
fn with_kernel(objects: Vec<TabledObject>, kernel: &str) -> Result<Vec<TabledObject>, Diagnostic> {
    let (found, others): (Vec<_>, Vec<_>) = objects.into_iter().partition(|object| has_kernel(&object.table, kernel));
    if !found.is_empty() {
        return Ok(found);
    }
    let all: BTreeSet<&str> = others.iter().flat_map(|one| kernel_names(&one.table)).collect();
    let first: Vec<&str> = all.iter().take(12).copied().collect();
    let what = format!("kernel `{kernel}`; {} are there: {}", all.len(), first.join(", "));
    Err(Diagnostic::error(codes::NO_PART, what))
}

fn has_kernel(table: &SymbolTable, kernel: &str) -> bool {
    table.number_of_name(kernel).and_then(|number| table.kernel_of_function(number)).is_some()
}

fn kernel_names(table: &SymbolTable) -> impl Iterator<Item = &str> {
    table.kernels.iter().map(|kernel| table.functions[kernel.function as usize].name.as_str())
}

fn wanted(table: &SymbolTable, kernel: Option<&str>) -> BTreeSet<u32> {
    let row = kernel.and_then(|kernel| table.kernel_of_function(table.number_of_name(kernel)?));
    match row {
        Some(row) => row.reachable.iter().copied().collect(),
        None => (0..table.functions.len() as u32).collect(),
    }
}

const HEADS: [&str; 12] =
    ["ADDRESS", "SIZE", "KIND", "VGPRS", "AGPRS", "SGPRS", "SCRATCH", "TOTAL", "CALLS", "FROM", "SOURCE", "NAME"];
/// Left out where the file states no source.
const SOURCE_COLUMN: usize = 10;

/// For people, after the facts of the first line.
const fn origin_text(origin: TableOrigin) -> &'static str {
    match origin {
        TableOrigin::Note => "; by the table in the file, whose hash is that of the code",
        TableOrigin::StaleNote => "; by analysis, because the table in the file is not that of the code",
        TableOrigin::NoNote => "",
    }
}

/// The origin as a word of the JSON output.
const fn origin_word(origin: TableOrigin) -> &'static str {
    match origin {
        TableOrigin::Note => "table",
        TableOrigin::StaleNote => "analysis-for-stale-table",
        TableOrigin::NoNote => "analysis",
    }
}

impl<'t> Shown<'t> {
    fn new(object: &'t TabledObject, kernel: Option<&str>) -> Self {
        Self { object, wanted: wanted(&object.table, kernel) }
    }

    fn functions(&self) -> impl Iterator<Item = (u32, &Function)> {
        self.wanted.iter().map(|number| (*number, &self.object.table.functions[*number as usize]))
    }

    fn text(&self, arguments: &SymbolsArguments) -> String {
        let table = &self.object.table;
        let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
        for (_, function) in self.functions() {
            rows.push(row(table, function));
            if arguments.callees {
                rows.extend(callee_rows(table, function));
            }
        }
        if self.functions().all(|(_, function)| function.source.is_none()) {
            rows.iter_mut().for_each(|row| drop(row.remove(SOURCE_COLUMN)));
        }
        let closed = match (table.closed, table.unclaimed) {
            (true, _) => "every call is known".to_owned(),
            (false, 0) => "not every call is known".to_owned(),
            (false, bytes) => format!("not every call is known, {bytes} bytes of code are in no function"),
        };
        let head = format!(
            "{}: {}, {}, {closed}{}\n",
            title(&arguments.file, self.object),
            text::counted(table.functions.len(), "function"),
            text::counted(table.kernels.len(), "kernel"),
            origin_text(self.object.origin)
        );
        head + &text::table(&rows) + &self.kernels() + &self.imports()
    }

    /// The number of functions that each kernel reaches.
    fn kernels(&self) -> String {
        let table = &self.object.table;
        let kernels = table.kernels.iter().filter(|kernel| self.wanted.contains(&kernel.function));
        kernels.map(|kernel| kernel_line(table, kernel)).collect()
    }

    fn imports(&self) -> String {
        let imports = self.object.table.imports.iter();
        let used =
            imports.filter(|one| one.used_by.is_empty() || one.used_by.iter().any(|user| self.wanted.contains(user)));
        used.map(|one| format!("imports {}\n", text::plain(&one.name))).collect()
    }

    fn json(&self) -> Value {
        let mut table = json!(self.object.table);
        // Numbers refer to the whole table, so rows that were not asked for are marked, not removed.
        if self.wanted.len() < self.object.table.functions.len() {
            table["selected"] = json!(self.wanted);
        }
        json!({ "place": self.object.place, "target": self.object.target, "origin": origin_word(self.object.origin), "table": table })
    }
}

fn kernel_line(table: &SymbolTable, kernel: &hotswap_device_symbols::Kernel) -> String {
    let name = text::plain(&table.functions[kernel.function as usize].name);
    let functions = text::counted(kernel.reachable.len(), "function");
    let rest = if kernel.complete { "all known" } else { "and unknown ones" };
    format!("kernel {name} reaches {functions}, {rest}\n")
}

fn row(table: &SymbolTable, function: &Function) -> Vec<String> {
    let own = &function.own;
    let total = function.total.numbers().map(|(_, number)| shown(number));
    let calls = match (function.callees.len() + function.imports.len(), function.indirect_calls.unresolved.len()) {
        (known, 0) => known.to_string(),
        (known, unknown) => format!("{known} and {unknown} unknown"),
    };
    let mut kind = function.kind.text().to_owned();
    for (is_so, word) in [(function.recursive == Some(true), "recursive"), (function.address_taken, "address taken")] {
        kind += &if is_so { format!(", {word}") } else { String::new() };
    }
    vec![
        format!("{:#x}", function.address),
        function.size.to_string(),
        kind,
        shown(own.vgprs),
        shown(own.agprs),
        shown(own.sgprs),
        shown(own.scratch),
        total[..4].join("/"),
        calls,
        evidence(function),
        table.source_of(function).map_or_else(|| "-".to_owned(), text::plain),
        text::plain(&function.name),
    ]
}

/// The sources of a row's numbers: of the function's own registers, and of the total where it differs.
fn evidence(function: &Function) -> String {
    let (own, total) = (function.own.vgprs.evidence, function.total.vgprs.evidence);
    let is_same = own == total || total == FactEvidence::Unknown;
    if is_same { own.text().to_owned() } else { format!("{}, {}", own.text(), total.text()) }
}

fn callee_rows(table: &SymbolTable, function: &Function) -> Vec<Vec<String>> {
    let known = function.callees.iter().map(|callee| &table.functions[callee.function as usize].name);
    let mut rows: Vec<Vec<String>> =
        known.map(|name| row_with_last_cell(format!("  calls {}", text::plain(name)))).collect();
    rows.extend(
        function.imports.iter().map(|name| row_with_last_cell(format!("  calls {} (imported)", text::plain(name)))),
    );
    let unknown = function.indirect_calls.unresolved.iter();
    rows.extend(unknown.map(|address| row_with_last_cell(format!("  calls an unknown function at {address:#x}"))));
    rows
}

fn row_with_last_cell(text: String) -> Vec<String> {
    let mut row = vec![String::new(); HEADS.len() - 1];
    row.push(text);
    row
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
