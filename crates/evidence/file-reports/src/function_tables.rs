//! The tables of device functions of the code objects of a file, for the commands that show them.

use crate::code_objects::{in_place, pass_over_unknown, visit_code_objects};
use hotswap_bundle::FoundContents;
use hotswap_device_symbols::SymbolTable;
use hotswap_device_symbols::note::{FoundTable, TableOrigin, found_table};
use hotswap_load_model::acceptance::sha256_of;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use std::path::Path;

/// A code object of a file, and the table of its functions.
pub struct TabledObject {
    /// Container and entry; empty for a file that is one code object.
    pub place: String,
    pub target: String,
    pub table: SymbolTable,
    /// Whether that is the file's own.
    pub origin: TableOrigin,
    /// The hash of the whole code object, where it was asked for.
    pub sha256: Option<String>,
}

/// The code objects to read, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableRequest<'t> {
    /// Only those for this target.
    pub target: Option<&'t str>,
    /// Whether their bytes are hashed too.
    pub hashed: bool,
}

/// The tables that were found, and the problems of unreadable code objects.
pub struct FoundTables {
    pub objects: Vec<TabledObject>,
    pub problems: Vec<Diagnostic>,
}

/// The tables of the requested code objects of a file. `progress` gets the number of bytes after each container.
///
/// # Errors
/// A file that lacks a code object, or lacks one for the target.
pub fn find_tables(
    file: &Path,
    contents: &FoundContents<'_>,
    request: TableRequest<'_>,
    progress: &dyn Fn(u64),
) -> Result<FoundTables, Diagnostic> {
    let mut sorted = SortedObjects { file, request, found: Vec::new(), problems: Vec::new(), others: Vec::new() };
    let unread = visit_code_objects(contents, progress, |place, stated, data| sorted.sort_object(place, stated, data))
        .map_err(|error| error.in_file(file))?;
    let SortedObjects { found, mut problems, mut others, .. } = sorted;
    problems.extend(unread.into_iter().map(|one| one.in_file(file)));
    pass_over_unknown(&mut problems, !found.is_empty());
    if found.is_empty() && problems.is_empty() {
        others.sort();
        others.dedup();
        let target = request.target.unwrap_or_default();
        let what = format!("no code object is for {target}; there are: {}", others.join(", "));
        return Err(Diagnostic::error(codes::NOT_FOUND, what).in_file(file).advise("name one of these by --target"));
    }
    Ok(FoundTables { objects: found, problems })
}

/// The code objects of a file, by whether they were asked for.
struct SortedObjects<'r> {
    file: &'r Path,
    request: TableRequest<'r>,
    found: Vec<TabledObject>,
    problems: Vec<Diagnostic>,
    /// The targets of those that were not asked for.
    others: Vec<String>,
}

impl SortedObjects<'_> {
    fn sort_object(&mut self, place: &str, stated: &str, data: &[u8]) {
        let TableRequest { target, hashed } = self.request;
        match found_table(data) {
            Ok(FoundTable { table, problems, origin }) => {
                let stated = if stated == "-" { table.target.clone() } else { stated.to_owned() };
                if target.is_some_and(|target| !is_for_target(&stated, target)) {
                    return self.others.push(stated);
                }
                self.problems.extend(problems.into_iter().map(|one| in_place(one.in_file(self.file), place)));
                let sha256 = hashed.then(|| sha256_of(data));
                self.found.push(TabledObject { place: place.to_owned(), target: stated, table, origin, sha256 });
            }
            // A damaged object counts where it is asked for.
            Err(error) if target.is_none_or(|target| stated == "-" || is_for_target(stated, target)) => {
                self.problems.push(in_place(error.in_file(self.file), place));
            }
            Err(_) => self.others.push(stated.to_owned()),
        }
    }
}

/// Whether a target is the wanted one, ignoring the order of features.
pub fn is_for_target(stated: &str, wanted: &str) -> bool {
    match (stated.parse::<TargetId>(), wanted.parse::<TargetId>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => stated == wanted,
    }
}

/// Bytes of the functions that a kernel reaches.
pub struct KernelBytes {
    pub all: u64,
    /// Of those that no other kernel reaches.
    pub alone: u64,
}

/// The bytes of each kernel in the order of the table.
pub fn kernel_bytes(table: &SymbolTable) -> Vec<KernelBytes> {
    let mut users = vec![0_u32; table.functions.len()];
    table.kernels.iter().flat_map(|one| &one.reachable).for_each(|function| users[*function as usize] += 1);
    table
        .kernels
        .iter()
        .map(|one| KernelBytes {
            all: reachable_function_bytes(false, &one.reachable, &users, table),
            alone: reachable_function_bytes(true, &one.reachable, &users, table),
        })
        .collect()
}

fn reachable_function_bytes(alone: bool, reachable: &[u32], users: &[u32], table: &SymbolTable) -> u64 {
    let counted = reachable.iter().filter(|one| !alone || users[**one as usize] == 1);
    counted.map(|one| table.functions[*one as usize].size).sum()
}

/// A number of the table for a column: `-` where it is not known, `+` behind it where it may be more.
pub fn shown(number: hotswap_device_symbols::Number) -> String {
    match (number.value, number.at_least) {
        (None, _) => "-".to_owned(),
        (Some(value), false) => value.to_string(),
        (Some(value), true) => format!("{value}+"),
    }
}

/// A name for the first line of a text about a code object.
pub fn title(file: &Path, object: &TabledObject) -> String {
    let place = if object.place.is_empty() { String::new() } else { format!(": {}", object.place) };
    hotswap_report::text::plain(&format!("{}{place}: {}", file.display(), object.target))
}
