//! llvm-cov's export (`llvm-cov export --format=text`), as far as it is needed.
//!
//! Positions are arrays there; they are named here. Source: `CoverageExporterJson.cpp` of LLVM 22 to 24.

use hotswap_report::{Diagnostic, codes};
use serde::Deserialize;

/// The export of code objects of one target; a target may have several.
#[derive(Debug)]
pub struct TargetExport {
    /// `host`, or the target ID of a GPU.
    pub target: String,
    /// Whether there is a profile of this code; without one nothing is known of its counts.
    pub has_data: bool,
    pub(crate) files: Vec<ExportedFile>,
    pub(crate) functions: Vec<ExportedFunction>,
}

/// Parses the export of a target.
///
/// # Errors
/// [`codes::CHILD_FAILED`] if it is not what llvm-cov writes.
pub fn parse(target: &str, json: &[u8]) -> Result<TargetExport, Diagnostic> {
    let document: Document = serde_json::from_slice(json).map_err(|error| export_format_error(error.to_string()))?;
    if document.kind != "llvm.coverage.json.export" {
        return Err(export_format_error(format!("it is of type {}", document.kind)));
    }
    let (mut files, mut functions) = (Vec::new(), Vec::new());
    for part in document.data {
        files.extend(part.files);
        functions.extend(part.functions);
    }
    Ok(TargetExport { target: target.to_owned(), has_data: true, files, functions })
}

fn export_format_error(what: String) -> Diagnostic {
    Diagnostic::error(codes::CHILD_FAILED, format!("llvm-cov export: {what}"))
}

impl TargetExport {
    /// Changes the names of source files: each begins with the new directory where it began with the old one. The last
    /// pair that fits is used.
    pub fn rename_directories(&mut self, maps: &[DirectoryMap]) {
        let files = self.files.iter_mut().map(|file| &mut file.filename);
        let functions = self.functions.iter_mut().flat_map(|function| function.filenames.iter_mut());
        for name in files.chain(functions) {
            let renamed = maps.iter().rev().find_map(|map| {
                let rest = name.strip_prefix(&map.from)?;
                let is_whole = rest.is_empty() || rest.starts_with('/') || map.from.ends_with('/');
                is_whole.then(|| format!("{}{rest}", map.to))
            });
            *name = renamed.unwrap_or_else(|| std::mem::take(name));
        }
    }
}

/// A directory of sources that has another name where the report is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryMap {
    /// Its name in the coverage map.
    pub from: String,
    /// Its name on this machine.
    pub to: String,
}

#[derive(Deserialize)]
struct Document {
    data: Vec<ExportPart>,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct ExportPart {
    files: Vec<ExportedFile>,
    #[serde(default)]
    functions: Vec<ExportedFunction>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ExportedFile {
    pub(crate) filename: String,
    #[serde(default)]
    pub(crate) segments: Vec<CountSegment>,
    pub(crate) summary: ExportSummary,
}

/// A segment as llvm-cov writes it: line, column, count, whether it has a count, whether a region begins, whether it is a gap.
type SegmentArray = (u32, u32, u64, bool, bool, bool);

/// A position from which on a count holds.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(from = "SegmentArray")]
pub(crate) struct CountSegment {
    pub(crate) line: u32,
    pub(crate) count: u64,
    pub(crate) has_count: bool,
    pub(crate) is_region_entry: bool,
    pub(crate) is_gap: bool,
}

impl From<SegmentArray> for CountSegment {
    fn from(array: SegmentArray) -> Self {
        let (line, _column, count, has_count, is_region_entry, is_gap) = array;
        Self { line, count, has_count, is_region_entry, is_gap }
    }
}

/// llvm-cov's own figures for a file.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct ExportSummary {
    #[serde(default)]
    pub(crate) functions: Figure,
    #[serde(default)]
    pub(crate) lines: Figure,
    #[serde(default)]
    pub(crate) regions: Figure,
    #[serde(default)]
    pub(crate) branches: Figure,
    #[serde(default)]
    pub(crate) mcdc: Figure,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct Figure {
    pub(crate) count: u64,
    pub(crate) covered: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ExportedFunction {
    pub(crate) name: String,
    pub(crate) count: u64,
    pub(crate) filenames: Vec<String>,
    pub(crate) regions: Vec<Region>,
    #[serde(default)]
    pub(crate) branches: Vec<BranchCounts>,
    #[serde(default, rename = "mcdc_records")]
    pub(crate) decisions: Vec<Decision>,
}

/// A stretch of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceExtent {
    pub(crate) first_line: u32,
    pub(crate) first_column: u32,
    pub(crate) last_line: u32,
    pub(crate) last_column: u32,
}

/// A region as llvm-cov writes it: extent, count, number of the file, number of the expanded file, kind.
type RegionArray = (u32, u32, u32, u32, u64, usize, usize, u32);

/// Part of a function with a count of its own.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(from = "RegionArray")]
pub(crate) struct Region {
    pub(crate) extent: SourceExtent,
    pub(crate) count: u64,
    pub(crate) file: usize,
    kind: u32,
}

impl Region {
    /// Whether it is code: no macro expansion, skipped text, gap or branch.
    pub(crate) fn is_code(self) -> bool {
        self.kind == 0
    }
}

impl From<RegionArray> for Region {
    fn from(array: RegionArray) -> Self {
        let (first_line, first_column, last_line, last_column, count, file, _expanded_file, kind) = array;
        Self { extent: SourceExtent { first_line, first_column, last_line, last_column }, count, file, kind }
    }
}

/// A branch as llvm-cov writes it: extent, both counts, number of the file, number of the expanded file, kind.
type BranchArray = (u32, u32, u32, u32, u64, u64, usize, usize, u32);

/// A condition with the counts of both outcomes.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(from = "BranchArray")]
pub(crate) struct BranchCounts {
    pub(crate) extent: SourceExtent,
    pub(crate) counts: [u64; 2],
    pub(crate) file: usize,
}

impl From<BranchArray> for BranchCounts {
    fn from(array: BranchArray) -> Self {
        let (first_line, first_column, last_line, last_column, taken, not_taken, file, _expanded_file, _kind) = array;
        let extent = SourceExtent { first_line, first_column, last_line, last_column };
        Self { extent, counts: [taken, not_taken], file }
    }
}

/// A decision of MC/DC: an expression of several conditions.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "DecisionArray")]
pub(crate) struct Decision {
    pub(crate) extent: SourceExtent,
    pub(crate) file: usize,
    /// Number of its conditions.
    pub(crate) conditions: usize,
    /// The test vectors that were executed.
    pub(crate) vectors: Vec<TestVector>,
}

/// One evaluation of a decision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct TestVector {
    /// The values of the conditions; `None` for those that were not evaluated.
    pub(crate) conditions: Vec<Option<bool>>,
    pub(crate) result: bool,
}

/// A decision as llvm-cov writes it: extent, both counts, number of the file, number of the expanded file, kind, covered
/// conditions, test vectors.
type DecisionArray = (u32, u32, u32, u32, u64, u64, usize, usize, u32, Vec<bool>, Vec<ExportedVector>);

#[derive(Deserialize)]
struct ExportedVector {
    executed: bool,
    #[serde(flatten)]
    vector: TestVector,
}

impl From<DecisionArray> for Decision {
    fn from(array: DecisionArray) -> Self {
        let (first_line, first_column, last_line, last_column, _true_count, _false_count, ..) = array;
        let (.., file, _expanded_file, _kind, covered, vectors) = array;
        let extent = SourceExtent { first_line, first_column, last_line, last_column };
        let executed = vectors.into_iter().filter(|vector| vector.executed).map(|vector| vector.vector).collect();
        Self { extent, file, conditions: covered.len(), vectors: executed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_documents_are_refused() {
        for json in ["", "{", "[]", r#"{"data":[],"type":"other"}"#, r#"{"data":[{"files":[{"filename":1}]}]}"#] {
            assert_eq!(parse("host", json.as_bytes()).unwrap_err().code, codes::CHILD_FAILED, "{json}");
        }
        assert!(parse("host", br#"{"data":[],"type":"llvm.coverage.json.export","version":"9"}"#).is_ok());
    }
}
