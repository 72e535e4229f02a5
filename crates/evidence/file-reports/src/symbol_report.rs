//! The functions of a code object with their registers, callees and kernels, as text and JSON.

use crate::function_tables::{TabledObject, shown, title};
use hotswap_device_symbols::note::TableOrigin;
use hotswap_device_symbols::{FactEvidence, Function, SymbolTable};
use hotswap_report::{Diagnostic, codes, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// A code object, and the functions that were asked for.
pub struct ShownTable<'t> {
    pub(crate) object: &'t TabledObject,
    wanted: BTreeSet<u32>,
}

/// The objects that have a kernel of that name.
///
/// # Errors
/// [`codes::NO_PART`] where no object has it.
pub fn with_kernel(objects: Vec<TabledObject>, kernel: &str) -> Result<Vec<TabledObject>, Diagnostic> {
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

impl<'t> ShownTable<'t> {
    /// All functions, or those that the kernel reaches.
    pub fn new(object: &'t TabledObject, kernel: Option<&str>) -> Self {
        Self { object, wanted: wanted(&object.table, kernel) }
    }

    pub(crate) fn functions(&self) -> impl Iterator<Item = (u32, &Function)> {
        self.wanted.iter().map(|number| (*number, &self.object.table.functions[*number as usize]))
    }

    pub fn to_text(&self, file: &Path, has_callees: bool) -> String {
        let table = &self.object.table;
        let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
        for (_, function) in self.functions() {
            rows.push(row(table, function));
            if has_callees {
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
            title(file, self.object),
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

    pub fn to_json(&self) -> Value {
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
    if function.recursive == Some(true) {
        kind += ", recursive";
    }
    if function.address_taken {
        kind += ", address taken";
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
