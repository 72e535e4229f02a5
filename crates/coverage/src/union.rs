//! The union of the exports of several targets.
//!
//! Lines, regions, branches and decisions of MC/DC are joined by their positions, functions by their names and files: covered
//! is what a target executed.

use crate::decisions::Decisions;
use crate::export::{ExportSummary, ExportedFunction, SourceExtent, TargetExport};
use crate::lines::line_counts;
use crate::ratio::Ratio;
use std::collections::{BTreeMap, BTreeSet};

/// The figures of a file, a directory or everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Functions; instances of a template are one.
    pub functions: Ratio,
    /// Lines with code.
    pub lines: Ratio,
    /// Regions of code.
    pub regions: Ratio,
    /// Outcomes of branches, two for each condition.
    pub branches: Ratio,
    /// Conditions of MC/DC.
    pub mcdc: Ratio,
}

impl Totals {
    /// The figures by their names, in the order of reports.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, Ratio); 5] {
        [
            ("regions", self.regions),
            ("functions", self.functions),
            ("lines", self.lines),
            ("branches", self.branches),
            ("mcdc", self.mcdc),
        ]
    }

    /// Adds those of another part.
    pub fn add(&mut self, other: &Self) {
        self.functions.add(other.functions);
        self.lines.add(other.lines);
        self.regions.add(other.regions);
        self.branches.add(other.branches);
        self.mcdc.add(other.mcdc);
    }
}

impl From<ExportSummary> for Totals {
    fn from(summary: ExportSummary) -> Self {
        Self {
            functions: summary.functions.into(),
            lines: summary.lines.into(),
            regions: summary.regions.into(),
            branches: summary.branches.into(),
            mcdc: summary.mcdc.into(),
        }
    }
}

/// A source file.
#[derive(Debug, Default)]
pub struct FileCoverage {
    /// Its name, as the compiler was told.
    pub name: String,
    /// The union.
    pub union: Totals,
    /// llvm-cov's figures by target, in the order of the report's targets; `None` where a target has no code of it.
    pub by_target: Vec<Option<Totals>>,
    /// Lines with code, and their counts by target; `None` where a target has no code there.
    pub lines: BTreeMap<u32, Vec<Option<u64>>>,
    /// Branches by their first line: the counts of each outcome, added up over the targets.
    pub branches: BTreeMap<u32, Vec<[u64; 2]>>,
}

impl FileCoverage {
    /// How often a target executed a line, all together; `None` where no code is.
    #[must_use]
    pub fn count(&self, line: u32) -> Option<u64> {
        let counts = self.lines.get(&line)?;
        Some(counts.iter().flatten().fold(0, |sum, count| u64::saturating_add(sum, *count)))
    }
}

/// A function or kernel.
#[derive(Debug)]
pub struct FunctionCoverage {
    /// Its name in the object, without the file name that LLVM puts before those of static functions.
    pub name: String,
    /// The file, as a position in the report's files.
    pub file: usize,
    /// Its first line.
    pub line: u32,
    /// How often each target executed it; `None` where a target has no such function.
    pub counts: Vec<Option<u64>>,
    /// Its regions of code: the union, and for each target.
    pub regions: Ratio,
    /// See `regions`.
    pub regions_by_target: Vec<Option<Ratio>>,
}

/// Coverage of several targets.
#[derive(Debug)]
pub struct CoverageReport {
    /// `host`, if it is among them, then the GPUs by name.
    pub targets: Vec<String>,
    /// Source files by name.
    pub files: Vec<FileCoverage>,
    /// Functions by file, line and name.
    pub functions: Vec<FunctionCoverage>,
    /// The union over all files.
    pub union: Totals,
    /// Each target's figures over all files.
    pub by_target: Vec<Totals>,
}

/// Positions of a file that are joined over the targets.
#[derive(Default)]
struct Positions {
    regions: BTreeMap<SourceExtent, bool>,
    branches: BTreeMap<SourceExtent, [u64; 2]>,
    /// Functions by where they begin: instances of a template begin at the same place.
    functions: BTreeMap<(u32, u32), bool>,
    decisions: Decisions,
}

impl CoverageReport {
    /// Joins exports, one for each target.
    #[must_use]
    pub fn of(mut exports: Vec<TargetExport>) -> Self {
        exports.sort_by(|one, other| order(&one.target).cmp(&order(&other.target)));
        let names: BTreeSet<&str> =
            exports.iter().flat_map(|export| &export.files).map(|file| file.filename.as_str()).collect();
        let numbers: BTreeMap<&str, usize> = names.iter().enumerate().map(|(number, name)| (*name, number)).collect();
        let mut files: Vec<FileCoverage> = names.iter().map(|name| file(name, exports.len())).collect();
        let mut positions: Vec<Positions> = names.iter().map(|_| Positions::default()).collect();
        for (target, export) in exports.iter().enumerate() {
            for exported in &export.files {
                let file = &mut files[numbers[exported.filename.as_str()]];
                file.by_target[target] = Some(exported.summary.into());
                for (line, count) in line_counts(&exported.segments) {
                    file.lines.entry(line).or_insert_with(|| vec![None; exports.len()])[target] = Some(count);
                }
            }
            export.functions.iter().for_each(|function| join(function, &numbers, &mut positions));
        }
        let functions = functions(&exports, &numbers);
        for (file, positions) in files.iter_mut().zip(positions) {
            finish(file, positions);
        }
        let (mut union, mut by_target) = (Totals::default(), vec![Totals::default(); exports.len()]);
        for file in &files {
            union.add(&file.union);
            let own = by_target.iter_mut().zip(&file.by_target);
            own.for_each(|(total, part)| part.iter().for_each(|part| total.add(part)));
        }
        let targets = exports.into_iter().map(|export| export.target).collect();
        Self { targets, files, functions, union, by_target }
    }

    /// The figures of each directory with files of its own, by name.
    #[must_use]
    pub fn directories(&self) -> BTreeMap<&str, Totals> {
        let mut directories: BTreeMap<&str, Totals> = BTreeMap::new();
        for file in &self.files {
            let directory = file.name.rsplit_once('/').map_or("", |(directory, _)| directory);
            directories.entry(directory).or_default().add(&file.union);
        }
        directories
    }
}

/// The host first.
fn order(target: &str) -> (bool, &str) {
    (target != "host", target)
}

fn file(name: &str, targets: usize) -> FileCoverage {
    FileCoverage { name: name.to_owned(), by_target: vec![None; targets], ..FileCoverage::default() }
}

/// Adds a function's regions and branches to those of its files.
fn join(function: &ExportedFunction, numbers: &BTreeMap<&str, usize>, positions: &mut [Positions]) {
    let number = |file: usize| numbers.get(function.filenames.get(file)?.as_str()).copied();
    for region in function.regions.iter().filter(|region| region.is_code()) {
        let Some(file) = number(region.file) else { continue };
        *positions[file].regions.entry(region.extent).or_default() |= region.count > 0;
    }
    for branch in &function.branches {
        let Some(file) = number(branch.file) else { continue };
        let counts = positions[file].branches.entry(branch.extent).or_default();
        *counts = [0, 1].map(|outcome| counts[outcome].saturating_add(branch.counts[outcome]));
    }
    for decision in &function.decisions {
        let Some(file) = number(decision.file) else { continue };
        positions[file].decisions.add(decision);
    }
    if let (Some(start), Some(file)) = (function.regions.first(), number(0)) {
        *positions[file].functions.entry((start.extent.0, start.extent.1)).or_default() |= function.count > 0;
    }
}

/// The union of a file. Where one target has code of it, it is that target's own.
fn finish(file: &mut FileCoverage, positions: Positions) {
    let own: Vec<Totals> = file.by_target.iter().flatten().copied().collect();
    let lines = file.lines.values().map(|counts| counts.iter().flatten().any(|count| *count > 0));
    file.union = match own.as_slice() {
        [one] => *one,
        _ => Totals {
            functions: Ratio::of(positions.functions.into_values()),
            lines: Ratio::of(lines),
            regions: Ratio::of(positions.regions.into_values()),
            branches: Ratio::of(positions.branches.values().flatten().map(|count| *count > 0)),
            mcdc: positions.decisions.ratio(),
        },
    };
    for (extent, counts) in positions.branches {
        file.branches.entry(extent.0).or_default().push(counts);
    }
}

/// A function while targets are joined.
struct JointFunction {
    coverage: FunctionCoverage,
    /// Regions of code, and whether a target executed them.
    regions: BTreeMap<SourceExtent, bool>,
}

impl JointFunction {
    fn new(name: &str, file: usize, line: u32, targets: usize) -> Self {
        let coverage = FunctionCoverage {
            name: name.to_owned(),
            file,
            line,
            counts: vec![None; targets],
            regions: Ratio::default(),
            regions_by_target: vec![None; targets],
        };
        Self { coverage, regions: BTreeMap::new() }
    }

    fn add(&mut self, target: usize, function: &ExportedFunction) {
        let sum = self.coverage.counts[target].unwrap_or_default().saturating_add(function.count);
        self.coverage.counts[target] = Some(sum);
        let own = || function.regions.iter().filter(|region| region.is_code());
        self.coverage.regions_by_target[target] = Some(Ratio::of(own().map(|region| region.count > 0)));
        own().for_each(|region| *self.regions.entry(region.extent).or_default() |= region.count > 0);
    }

    fn finish(self) -> FunctionCoverage {
        FunctionCoverage { regions: Ratio::of(self.regions.into_values()), ..self.coverage }
    }
}

/// The functions of all targets, joined by file and name.
fn functions(exports: &[TargetExport], numbers: &BTreeMap<&str, usize>) -> Vec<FunctionCoverage> {
    let mut joined: BTreeMap<(usize, &str), JointFunction> = BTreeMap::new();
    for (target, export) in exports.iter().enumerate() {
        for function in &export.functions {
            let Some(file) = function.filenames.first().and_then(|name| numbers.get(name.as_str())) else { continue };
            let name = plain_name(&function.name);
            let line = function.regions.first().map_or(0, |region| region.extent.0);
            let new = || JointFunction::new(name, *file, line, exports.len());
            joined.entry((*file, name)).or_insert_with(new).add(target, function);
        }
    }
    let mut functions: Vec<FunctionCoverage> = joined.into_values().map(JointFunction::finish).collect();
    functions.sort_by(|one, other| (one.file, one.line, &one.name).cmp(&(other.file, other.line, &other.name)));
    functions
}

/// Static functions have `FILE:` or `FILE;` before their names.
fn plain_name(name: &str) -> &str {
    name.rsplit_once([':', ';']).map_or(name, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    /// A file `a.hip` with one function, whose regions are given as lines and counts.
    pub(crate) fn export(target: &str, regions: &[(u32, u32, u64)]) -> TargetExport {
        let first = regions[0];
        let own: Vec<String> =
            regions.iter().map(|(start, end, count)| format!("[{start},1,{end},9,{count},0,0,0]")).collect();
        let mut segments = Vec::new();
        for (start, end, count) in regions {
            segments.push(format!("[{start},1,{count},true,true,false]"));
            segments.push(format!("[{end},9,0,false,false,false]"));
        }
        let covered = regions.iter().filter(|(.., count)| *count > 0).count();
        let json = format!(
            r#"{{"data":[{{"files":[{{"filename":"/s/a.hip","segments":[{}],"summary":{{"lines":{{"count":9,"covered":1}},
            "functions":{{"count":1,"covered":1}},"regions":{{"count":{},"covered":{covered}}},
            "branches":{{"count":0,"covered":0}}}}}}],"functions":[{{"name":"f","count":{},"filenames":["/s/a.hip"],
            "regions":[{}],"branches":[]}}]}}],"type":"llvm.coverage.json.export","version":"3.1.0"}}"#,
            segments.join(","),
            regions.len(),
            first.2,
            own.join(",")
        );
        parse(target, json.as_bytes()).unwrap()
    }

    /// The fault that was planted by llvm-cov: one record for each name.
    #[test]
    fn text_that_differs_between_host_and_device_is_covered_on_each() {
        let device = || export("gfx90a", &[(1, 3, 100), (7, 9, 100)]);
        let host = || export("host", &[(1, 3, 0), (4, 6, 0)]);
        let report = CoverageReport::of(vec![device(), host()]);
        assert_eq!(report.targets, ["host", "gfx90a"]);
        let file = &report.files[0];
        assert_eq!(file.lines[&2], [Some(0), Some(100)]);
        assert_eq!((file.lines[&5].as_slice(), file.count(5)), (&[Some(0), None][..], Some(0)));
        assert_eq!((file.lines[&8].as_slice(), file.count(8)), (&[None, Some(100)][..], Some(100)));
        assert_eq!(
            (file.union.lines, file.union.regions),
            (Ratio { covered: 6, count: 9 }, Ratio { covered: 2, count: 3 })
        );
        assert_eq!(report.functions[0].counts, [Some(0), Some(100)]);
        // The order of the exports does not matter.
        let other = CoverageReport::of(vec![host(), device()]);
        assert_eq!(format!("{other:?}"), format!("{report:?}"));
    }

    #[test]
    fn one_target_has_the_figures_of_llvm_cov() {
        let report = CoverageReport::of(vec![export("gfx1030", &[(1, 2, 5)])]);
        assert_eq!(report.union.lines, Ratio { covered: 1, count: 9 });
        assert_eq!(report.by_target, [report.union]);
    }

    #[test]
    fn static_functions_lose_their_file_name() {
        assert_eq!(["f", "a.hip:f", "a.hip;f"].map(plain_name), ["f"; 3]);
    }
}
