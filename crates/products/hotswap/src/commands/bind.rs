//! `hotswap bind`: whether code objects fit a code object that imports device functions from them, before they are loaded; with
//! `-o`, a copy whose kernels have what they need then.
//!
//! JSON: `{schema: 1, file, imports: [{symbol, function, library, address}], kernels: [{kernel, has, granted, needs, forced_by,
//! complete}], problems}`; `kernels` are those with too little.
//!
//! Absent on purpose: loading (`hotswap_binding_define` of libhotswap, or the program).

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use crate::standard_output::output_file;
use crate::stream_input::input_file;
use crate::work::code_objects::code_objects;
use crate::work::text;
use clap::Args;
use hotswap_device_link::{Binding, BoundObject, KernelBudget, LaunchNumbers, bind};
use hotswap_device_symbols::{SymbolTable, note};
use hotswap_file_edit::new_file;
use hotswap_files::{InputFile, Placement, WriteOptions};
use hotswap_report::{Diagnostic, Severity, codes};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct BindArguments {
    /// Code object that imports functions (--hotswap-device-imports)
    #[arg(value_parser = input_file())]
    user: PathBuf,
    /// Code objects that export them (--hotswap-device-exports)
    #[arg(value_name = "LIBRARY")]
    libraries: Vec<PathBuf>,
    /// Write a copy whose kernels have the registers and the scratch that they need with these libraries
    #[arg(short, long, value_name = "OUT", value_parser = output_file())]
    output: Option<PathBuf>,
    #[command(flatten)]
    form: OutputOptions,
}

/// A code object with its table.
struct Part {
    path: PathBuf,
    bytes: Vec<u8>,
    table: SymbolTable,
}

pub(crate) fn run(arguments: &BindArguments) -> Result<CommandOutcome, Diagnostic> {
    let user = Part::read(&arguments.user)?;
    let libraries = arguments.libraries.iter().map(|path| Part::read(path)).collect::<Result<Vec<_>, _>>()?;
    let bound: Vec<BoundObject<'_>> = libraries.iter().map(Part::bound).collect();
    let binding = bind(&user.bound(), &bound)?;
    let mut problems = binding.problems();
    let mut is_unchanged = false;
    if let Some(output) = &arguments.output {
        is_unchanged = !write(&user, &binding, output)?;
        let raised = binding.report.short.iter().map(KernelBudget::raised_note);
        let raised = raised.map(|one| Diagnostic { severity: Severity::Note, ..one });
        problems.retain(|one| one.code != codes::TOO_FEW_REGISTERS);
        problems.extend(raised);
    }
    let text = match arguments.form.format {
        OutputFormat::Text => lines(&user, &libraries, &binding),
        OutputFormat::Json => binding_report(&user, &libraries, &binding, &problems),
    };
    let outcome = CommandOutcome { text, problems, ..CommandOutcome::default() };
    Ok(if is_unchanged { outcome.note_unchanged(&arguments.user, "its kernels have what they need") } else { outcome })
}

impl Part {
    /// The only code object of a file.
    fn read(path: &Path) -> Result<Self, Diagnostic> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        let unread =
            code_objects(path, |_, _, bytes| found.push(bytes.to_vec())).map_err(|error| error.in_file(path))?;
        if let Some(error) = unread.into_iter().next() {
            return Err(error.in_file(path));
        }
        let count = found.len();
        let (Some(bytes), 1) = (found.pop(), count) else {
            let what = format!("{count} code objects are in the file, and one is bound at a time");
            return Err(Diagnostic::error(codes::NOT_FOUND, what)
                .in_file(path)
                .advise("write the one for your GPU to a file of its own (`hotswap extract --target`)"));
        };
        let (table, _) = note::table_of(&bytes).map_err(|error| error.in_file(path))?;
        Ok(Self { path: path.to_owned(), bytes, table })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn bound(&self) -> BoundObject<'_> {
        BoundObject { name: self.name(), bytes: &self.bytes, table: &self.table }
    }
}

/// Writes the copy; a table of its functions gets the numbers of the new code. Whether it is another file than the original.
fn write(user: &Part, binding: &Binding, output: &Path) -> Result<bool, Diagnostic> {
    let mut made = binding.prepared_file(&user.bytes).map_err(|error| error.in_file(&user.path))?;
    if hotswap_code_object::device_symbols_note(&user.bytes).is_some() && made != user.bytes {
        made = note::with_table_like(&made, &user.bytes).map_err(|error| error.in_file(&user.path))?.0;
    }
    let how = WriteOptions { sources: &[], threads: 1, placement: Placement::NewFile };
    let like = (made.len() as u64, &*user.path);
    hotswap_files::replace_parts(output, like, how, [(0, &made[..])].into_iter(), |new: &InputFile| {
        new_file::check_new_bytes(&user.bytes, new).map_err(|error| error.in_file(&user.path))
    })?;
    Ok(made != user.bytes)
}

fn lines(user: &Part, libraries: &[Part], binding: &Binding) -> String {
    let count = user.table.imports.len();
    let head =
        format!("{}: {}, {} bound\n", text::plain(&user.name()), text::counted(count, "import"), binding.imports.len());
    let rows = binding.imports.iter().map(|one| {
        let library = libraries[one.library].name();
        vec![format!("{:#x}", one.address), text::plain(&library), text::plain(&one.function)]
    });
    let heads = ["ADDRESS", "LIBRARY", "FUNCTION"].map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = [heads].into_iter().chain(rows).collect();
    if rows.len() == 1 { head } else { head + &text::table(&rows) }
}

fn numbers(one: &LaunchNumbers) -> Value {
    json!({ "vgprs": one.vgprs, "agprs": one.agprs, "sgprs": one.sgprs, "scratch": one.scratch })
}

fn binding_report(user: &Part, libraries: &[Part], binding: &Binding, problems: &[Diagnostic]) -> String {
    let imports: Vec<Value> = binding.imports.iter().map(|one| import_json(one, libraries)).collect();
    let kernels: Vec<Value> = binding.report.short.iter().map(budget_json).collect();
    let problems: Vec<Value> = problems.iter().map(Diagnostic::to_json).collect();
    text::json(
        &json!({ "schema": 1, "file": user.name(), "imports": imports, "kernels": kernels, "problems": problems }),
    )
}

fn import_json(one: &hotswap_device_link::BoundImport, libraries: &[Part]) -> Value {
    let library = libraries[one.library].name();
    json!({ "symbol": one.symbol, "function": one.function, "library": library, "address": one.address })
}

fn budget_json(one: &KernelBudget) -> Value {
    let (has, granted, needs) = (numbers(&one.has), numbers(&one.granted), numbers(&one.needs));
    json!({ "kernel": one.kernel, "has": has, "granted": granted, "needs": needs, "forced_by": one.forced_by, "complete": !one.is_open })
}
