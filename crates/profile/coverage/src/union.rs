//! The union of the exports of several targets.
//!
//! Lines, regions, branches and decisions of MC/DC are joined by their positions, functions by their names and files: covered
//! is what a target executed.

use crate::decisions::Decisions;
use crate::export::{ExportSummary, ExportedFile, ExportedFunction, SourceExtent, TargetExport};
use crate::lines::line_counts;
use crate::ratio::Ratio;
use std::collections::{BTreeMap, BTreeSet};

/// The figures of a file, a directory or everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Functions; instances of a template are one.
    pub functions: Ratio,
    pub lines: Ratio,
    pub regions: Ratio,
    /// Outcomes of branches, two for each condition.
    pub branches: Ratio,
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

#[derive(Debug, Default)]
pub struct FileCoverage {
    /// Its name, as the compiler was told.
    pub name: String,
    pub union: Totals,
    /// The figures by target, in the order of the report's targets; `None` where a target lacks code of it, or a
    /// profile.
    pub by_target: Vec<Option<Totals>>,
    /// Whether a target has code of it, but no profile.
    pub lacks_data: Vec<bool>,
    /// Lines with code, and their counts by target; `None` where a target lacks code there.
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
    pub line: u32,
    /// How often each target executed it; `None` where a target lacks such a function, or a profile of it.
    pub counts: Vec<Option<u64>>,
    /// Whether a target has the function, but no profile of it.
    pub lacks_data: Vec<bool>,
    /// Its regions of code: the union, and for each target.
    pub regions: Ratio,
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
    /// Each target's figures over all files, of the code that has a profile.
    pub by_target: Vec<Totals>,
    /// Whether no code of a target has a profile.
    pub lacks_data: Vec<bool>,
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

/// A file while exports are joined.
struct JointFile {
    coverage: FileCoverage,
    /// The figures of all targets together.
    union: FilePart,
    /// The figures of each target.
    by_target: Vec<FilePart>,
}

/// The content of exports about a file.
#[derive(Default)]
struct FilePart {
    positions: Positions,
    lines: BTreeMap<u32, u64>,
    /// llvm-cov's figures, one for each export.
    own: Vec<Totals>,
}

impl FilePart {
    /// The figures: llvm-cov's own where there is one export.
    fn totals(&self) -> Totals {
        match self.own.as_slice() {
            [one] => *one,
            _ => Totals {
                functions: Ratio::of(self.positions.functions.values().copied()),
                lines: Ratio::of(self.lines.values().map(|count| *count > 0)),
                regions: Ratio::of(self.positions.regions.values().copied()),
                branches: Ratio::of(self.positions.branches.values().flatten().map(|count| *count > 0)),
                mcdc: self.positions.decisions.ratio(),
            },
        }
    }

    fn add(&mut self, exported: &ExportedFile, lines: &BTreeMap<u32, u64>) {
        self.own.push(exported.summary.into());
        for (line, count) in lines {
            let sum = self.lines.entry(*line).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
}

impl CoverageReport {
    /// Joins exports, of which a target may have several.
    #[must_use]
    pub fn of(mut exports: Vec<TargetExport>) -> Self {
        exports.sort_by(|one, other| order(&one.target).cmp(&order(&other.target)));
        let mut targets: Vec<String> = exports.iter().map(|export| export.target.clone()).collect();
        targets.dedup();
        let names: BTreeSet<&str> =
            exports.iter().flat_map(|export| &export.files).map(|file| file.filename.as_str()).collect();
        let numbers: BTreeMap<&str, usize> = names.iter().enumerate().map(|(number, name)| (*name, number)).collect();
        let mut joint: Vec<JointFile> = names.iter().map(|name| JointFile::new(name, targets.len())).collect();
        for export in &exports {
            let target = place_of_target(&targets, export);
            join_export(export, target, &numbers, &mut joint);
        }
        let functions = functions(&exports, &targets, &numbers);
        let files: Vec<FileCoverage> = joint.into_iter().map(JointFile::finish).collect();
        let (mut union, mut by_target) = (Totals::default(), vec![Totals::default(); targets.len()]);
        for file in &files {
            union.add(&file.union);
            let own = by_target.iter_mut().zip(&file.by_target);
            own.for_each(|(total, part)| part.iter().for_each(|part| total.add(part)));
        }
        let lacks_data = targets.iter().map(|target| !has_target_data(target, &exports)).collect();
        Self { targets, files, functions, union, by_target, lacks_data }
    }

    /// Each target's figures; `None` without any profile of it.
    #[must_use]
    pub fn known_totals(&self) -> Vec<Option<Totals>> {
        self.by_target.iter().zip(&self.lacks_data).map(|(own, lacks)| (!lacks).then_some(*own)).collect()
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

fn has_target_data(target: &String, exports: &[TargetExport]) -> bool {
    exports.iter().any(|export| export.target == *target && export.has_data)
}

/// The key by which targets are sorted: the host comes first.
fn order(target: &str) -> (bool, &str) {
    (target != "host", target)
}

fn place_of_target(targets: &[String], export: &TargetExport) -> usize {
    targets.iter().position(|target| *target == export.target).unwrap_or_default()
}

fn join_export(export: &TargetExport, target: usize, numbers: &BTreeMap<&str, usize>, files: &mut [JointFile]) {
    for exported in &export.files {
        let file = &mut files[numbers[exported.filename.as_str()]];
        let lines = line_counts(&exported.segments);
        file.union.add(exported, &lines);
        let targets = file.by_target.len();
        for line in lines.keys() {
            file.coverage.lines.entry(*line).or_insert_with(|| vec![None; targets]);
        }
        if export.has_data {
            file.by_target[target].add(exported, &lines);
        } else {
            file.coverage.lacks_data[target] = true;
        }
    }
    for function in &export.functions {
        join(function, numbers, files, None);
        if export.has_data {
            join(function, numbers, files, Some(target));
        }
    }
}

/// Adds a function's regions and branches to those of its files: of one target, or of all.
fn join(function: &ExportedFunction, numbers: &BTreeMap<&str, usize>, files: &mut [JointFile], target: Option<usize>) {
    for region in function.regions.iter().filter(|region| region.is_code()) {
        let Some(file) = joint_file_number(region.file, numbers, function) else { continue };
        *files[file].positions(target).regions.entry(region.extent).or_default() |= region.count > 0;
    }
    for branch in &function.branches {
        let Some(file) = joint_file_number(branch.file, numbers, function) else { continue };
        let counts = files[file].positions(target).branches.entry(branch.extent).or_default();
        *counts = [0, 1].map(|outcome| counts[outcome].saturating_add(branch.counts[outcome]));
    }
    for decision in &function.decisions {
        let Some(file) = joint_file_number(decision.file, numbers, function) else { continue };
        files[file].positions(target).decisions.add(decision);
    }
    if let (Some(start), Some(file)) = (function.regions.first(), joint_file_number(0, numbers, function)) {
        let functions = &mut files[file].positions(target).functions;
        *functions.entry((start.extent.first_line, start.extent.first_column)).or_default() |= function.count > 0;
    }
}

fn joint_file_number(file: usize, numbers: &BTreeMap<&str, usize>, function: &ExportedFunction) -> Option<usize> {
    numbers.get(function.filenames.get(file)?.as_str()).copied()
}

impl JointFile {
    fn new(name: &str, targets: usize) -> Self {
        let coverage =
            FileCoverage { name: name.to_owned(), lacks_data: vec![false; targets], ..FileCoverage::default() };
        let by_target = (0..targets).map(|_| FilePart::default()).collect();
        Self { coverage, union: FilePart::default(), by_target }
    }

    fn positions(&mut self, target: Option<usize>) -> &mut Positions {
        match target {
            Some(target) => &mut self.by_target[target].positions,
            None => &mut self.union.positions,
        }
    }

    /// The figures. Where one export has code of the file, the union is that one's own.
    fn finish(self) -> FileCoverage {
        let mut file = self.coverage;
        file.union = self.union.totals();
        for (target, part) in self.by_target.into_iter().enumerate() {
            file.by_target.push((!part.own.is_empty()).then(|| part.totals()));
            for (line, count) in part.lines {
                if let Some(counts) = file.lines.get_mut(&line) {
                    counts[target] = Some(count);
                }
            }
        }
        for (extent, counts) in self.union.positions.branches {
            file.branches.entry(extent.first_line).or_default().push(counts);
        }
        file
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
            lacks_data: vec![false; targets],
            regions: Ratio::default(),
            regions_by_target: vec![None; targets],
        };
        Self { coverage, regions: BTreeMap::new() }
    }

    fn add(&mut self, target: usize, function: &ExportedFunction, has_data: bool) {
        let own = function.regions.iter().filter(|region| region.is_code());
        own.clone().for_each(|region| *self.regions.entry(region.extent).or_default() |= region.count > 0);
        if !has_data {
            self.coverage.lacks_data[target] = true;
            return;
        }
        let sum = self.coverage.counts[target].unwrap_or_default().saturating_add(function.count);
        self.coverage.counts[target] = Some(sum);
        self.coverage.regions_by_target[target] = Some(Ratio::of(own.map(|region| region.count > 0)));
    }

    fn finish(self) -> FunctionCoverage {
        FunctionCoverage { regions: Ratio::of(self.regions.into_values()), ..self.coverage }
    }
}

/// The functions of all targets, joined by file, line and name.
fn functions(exports: &[TargetExport], targets: &[String], numbers: &BTreeMap<&str, usize>) -> Vec<FunctionCoverage> {
    let mut joined: BTreeMap<FunctionKey<'_>, JointFunction> = BTreeMap::new();
    for export in exports {
        let target = place_of_target(targets, export);
        for function in &export.functions {
            let Some(file) = function.filenames.first().and_then(|name| numbers.get(name.as_str())) else { continue };
            let line = function.regions.first().map_or(0, |region| region.extent.first_line);
            let key = FunctionKey { file: *file, line, name: plain_name(&function.name) };
            let joint = joined
                .entry(key)
                .or_insert_with_key(|key| JointFunction::new(key.name, key.file, key.line, targets.len()));
            joint.add(target, function, export.has_data);
        }
    }
    joined.into_values().map(JointFunction::finish).collect()
}

/// Functions with the same key are one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FunctionKey<'a> {
    file: usize,
    line: u32,
    name: &'a str,
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

    /// Two code objects of one target: one is not in any profile, and one has another function of the same name.
    #[test]
    fn code_without_a_profile_has_no_counts() {
        let silent = TargetExport { has_data: false, ..export("gfx90a", &[(1, 3, 0)]) };
        let report = CoverageReport::of(vec![silent, export("gfx90a", &[(5, 6, 7)])]);
        assert_eq!(
            (report.targets.as_slice(), report.lacks_data.as_slice()),
            (&["gfx90a".to_owned()][..], &[false][..])
        );
        let file = &report.files[0];
        assert_eq!((file.lines[&2].as_slice(), file.count(2)), (&[None][..], Some(0)));
        assert_eq!((file.lines[&5].as_slice(), file.lacks_data.as_slice()), (&[Some(7)][..], &[true][..]));
        assert_eq!(file.union.lines, Ratio { covered: 2, count: 5 });
        let counts: Vec<_> = report.functions.iter().map(|f| (f.line, f.counts[0], f.lacks_data[0])).collect();
        assert_eq!(counts, [(1, None, true), (5, Some(7), false)]);
        let silent = TargetExport { has_data: false, ..export("gfx90a", &[(1, 3, 0)]) };
        assert_eq!(CoverageReport::of(vec![silent]).lacks_data, [true]);
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
