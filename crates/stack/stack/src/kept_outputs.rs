//! The plan of a run, in which libraries keep the outputs of earlier runs if not all of their files could be read, or if a
//! file that HotSwap did not write is in the place of an output.
//!
//! Invariants: what could not be read is never taken for absent. A library is as an earlier run left it or as this run makes it,
//! never a mixture: all inputs are read once before anything is written. A run with other settings, or other sources, than
//! those of the outputs to keep changes nothing.

use crate::existing::hash_of_output;
use crate::hash;
use crate::journal::{JournalHistory, JournalRow};
use crate::manifest::FileRow;
use crate::plan::{Action, DataDirectory, LibraryPlan, OutputContent, TreePlan};
use crate::rules::{self, FileKind};
use hotswap_load_model::tree::{is_missing, normal_path};
use hotswap_report::{Diagnostic, codes};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

impl Action {
    /// The files that it reads.
    fn inputs(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.input.as_path()).chain(self.others.iter().map(|other| other.input.as_path()))
    }
}

impl LibraryPlan {
    /// Drops the actions: they were planned without the files that could not be read.
    fn mark_unread(&mut self, unread: Vec<Diagnostic>) {
        *self = Self { name: std::mem::take(&mut self.name), unread, ..Self::default() };
    }

    /// Drops the actions: they cannot all be carried out. Without outputs of an earlier run that is a refusal.
    fn mark_foreign(&mut self, found: Vec<Diagnostic>, past: &JournalHistory) {
        let mut rows = past.files.values().flatten();
        let is_served = rows.any(|known| known.row.library.as_ref() == Some(&self.name));
        let (foreign, refused) = if is_served { (found, Vec::new()) } else { (Vec::new(), found) };
        *self = Self { name: std::mem::take(&mut self.name), foreign, refused, ..Self::default() };
    }

    /// Whether its outputs are those of an earlier run.
    pub(crate) fn is_held(&self) -> bool {
        !self.unread.is_empty() || !self.foreign.is_empty()
    }
}

/// The plan of a run.
#[derive(Debug)]
pub(crate) struct RunPlan {
    /// The plan. A library that could not be read has the actions by which its outputs were made.
    pub(crate) plan: TreePlan,
    /// The hashes of all inputs of the libraries that are made.
    pub(crate) hashes: BTreeMap<PathBuf, String>,
    /// The rows of the outputs that stay.
    pub(crate) kept: Vec<FileRow>,
}

impl RunPlan {
    /// # Errors
    /// [`codes::CANNOT_READ`] where outputs must be kept that were made with other settings; nothing may be written then.
    pub(crate) fn new(plan: &TreePlan, past: &JournalHistory, destination: &Path) -> Result<Self, Diagnostic> {
        let mut plan = plan.clone();
        let hashes = hash_inputs(&mut plan);
        note_unread_outputs(&mut plan, past);
        note_foreign_outputs(&mut plan, past, destination)?;
        let mut kept = Vec::new();
        let wanted = plan.wanted.clone();
        for library in plan.libraries.iter_mut().filter(|library| library.is_held()) {
            let kept_rows = KeptRows { library, past, destination };
            let rows = kept_rows.read_kept()?;
            if let Some(other) = rows.iter().find(|one| has_other_targets(one, &wanted)) {
                return Err(other_settings(library, &other.row.path));
            }
            let rows: Vec<FileRow> = rows.into_iter().map(|kept| kept.row).collect();
            library.actions = rows.iter().filter_map(action_of_row).collect();
            library.data = rows.iter().find_map(data_of_row);
            kept.extend(rows);
        }
        keep_links(&mut plan, past, &kept);
        Ok(Self { plan, hashes, kept })
    }
}

fn has_other_targets(kept: &&JournalRow, wanted: &[crate::WantedTarget]) -> bool {
    !kept.is_current || kept.row.wanted.iter().any(|row| !wanted.contains(row))
}

/// The hashes of all inputs. Libraries with an input that cannot be read lose their actions.
fn hash_inputs(plan: &mut TreePlan) -> BTreeMap<PathBuf, String> {
    let inputs: BTreeSet<PathBuf> = plan.all_actions().flat_map(Action::inputs).map(Path::to_owned).collect();
    let inputs: Vec<PathBuf> = inputs.into_iter().collect();
    let results = hotswap_files::on_all_cores(inputs.len(), |number| hash::of_file(&inputs[number]));
    let mut hashes = BTreeMap::new();
    let mut unread = BTreeMap::new();
    for (path, result) in inputs.into_iter().zip(results) {
        match result {
            Ok(sha256) => drop(hashes.insert(path, sha256)),
            Err(error) => drop(unread.insert(path, error)),
        }
    }
    for library in &mut plan.libraries {
        let inputs: BTreeSet<&Path> = library.actions.iter().flat_map(Action::inputs).collect();
        let problems: Vec<Diagnostic> = inputs.iter().filter_map(|path| unread.get(*path).cloned()).collect();
        if !problems.is_empty() {
            plan.problems.extend_from_slice(&problems);
            library.mark_unread(problems);
        }
    }
    hashes
}

/// Marks the libraries of which an earlier run made something from a path that could not be read.
fn note_unread_outputs(plan: &mut TreePlan, past: &JournalHistory) {
    let in_tree = plan.unread.iter().map(|unread| unread.problem.clone());
    // The library of a file may be known by its content alone.
    let in_libraries = plan.libraries.iter().flat_map(|library| library.unread.clone());
    let unread: Vec<Diagnostic> = in_tree.chain(in_libraries).collect();
    let covers =
        |problem: &Diagnostic, path: &Path| problem.place.file.as_ref().is_some_and(|unread| path.starts_with(unread));
    for JournalRow { row, .. } in past.files.values().flatten() {
        let problem = unread.iter().find(|problem| output_source_rows(row).any(|source| covers(problem, &source.path)));
        let (Some(name), Some(problem)) = (&row.library, problem) else { continue };
        let problem = vec![problem.clone()];
        match plan.libraries.iter_mut().find(|library| library.name == *name) {
            Some(library) if library.unread.is_empty() => library.mark_unread(problem),
            Some(_) => {}
            None => plan.libraries.push(LibraryPlan { name: name.clone(), unread: problem, ..LibraryPlan::default() }),
        }
    }
}

fn output_source_rows(
    row: &FileRow,
) -> std::iter::Chain<
    std::option::Iter<'_, crate::manifest::OutputSource>,
    std::slice::Iter<'_, crate::manifest::OutputSource>,
> {
    row.input.iter().chain(&row.others)
}

/// Marks the libraries with an output whose place has a file that HotSwap did not write.
fn note_foreign_outputs(plan: &mut TreePlan, past: &JournalHistory, destination: &Path) -> Result<(), Diagnostic> {
    for library in plan.libraries.iter_mut().filter(|library| !library.is_held()) {
        let mut foreign = Vec::new();
        for action in &library.actions {
            match hash_of_output(destination, past, &action.output) {
                Err(error) if error.code == codes::NOT_OURS => foreign.push(error),
                result => drop(result?),
            }
        }
        if !foreign.is_empty() {
            library.mark_foreign(foreign, past);
        }
    }
    Ok(())
}

/// The outputs to keep were made with other settings.
fn other_settings(library: &LibraryPlan, output: &Path) -> Diagnostic {
    let first = library.unread.iter().chain(&library.foreign).next();
    let reason = first.map(|error| error.what.as_str()).unwrap_or_default();
    let output = output.display();
    let what = format!("{reason}; {output} of the same library was made with other settings, so nothing was changed");
    let code = first.map_or(codes::CANNOT_READ, |error| error.code);
    let error = Diagnostic::error(code, what).in_entry(&library.name);
    match first.and_then(|error| error.place.file.as_ref()) {
        Some(file) => error.in_file(file),
        None => error,
    }
}

/// The rows of a library's outputs.
struct KeptRows<'k> {
    library: &'k LibraryPlan,
    past: &'k JournalHistory,
    destination: &'k Path,
}

impl KeptRows<'_> {
    /// The row of each output that is still as a run wrote it. An output that
    /// others have changed keeps its last row, so that it is told by each run.
    fn read_kept(&self) -> Result<Vec<JournalRow>, Diagnostic> {
        let mut rows = Vec::new();
        for (path, all) in &self.past.files {
            let own = all.iter().filter(|kept| kept.row.library.as_ref() == Some(&self.library.name));
            let own = Vec::from_iter(own);
            let full = self.destination.join(path);
            if own.is_empty() || is_missing(&full)? {
                continue;
            }
            let is_changed = self.library.foreign.iter().any(|error| error.place.file.as_ref() == Some(&full));
            if is_changed {
                rows.extend(own.last().copied().cloned());
                continue;
            }
            let sha256 = hash::of_file(&full)?;
            // The last row is that of the last run.
            rows.extend(own.into_iter().rfind(|kept| kept.row.sha256 == sha256).cloned());
        }
        Ok(rows)
    }
}

fn action_of_row(row: &FileRow) -> Option<Action> {
    let input = row.input.as_ref()?.path.clone();
    let kind = rules::find_rule(&input, &row.path)?.rule().kind;
    let content = match row.wanted.is_empty() {
        true => OutputContent::Copied,
        false => OutputContent::Served(row.wanted.clone()),
    };
    Some(Action { input, output: row.path.clone(), kind, content, others: Vec::new() })
}

/// The answer of [`LibraryPlan::data`] for a row of the manifest.
fn data_of_row(row: &FileRow) -> Option<DataDirectory> {
    let found = rules::find_rule(&row.input.as_ref()?.path, &row.path)?;
    let is_data = !matches!(found.rule().kind, FileKind::FatBinary | FileKind::Host);
    Some(DataDirectory { variable: found.rule().variable.filter(|_| is_data)?, directory: found.directory })
}

/// Links of earlier runs that lead to outputs that stay, or that could not be read.
fn keep_links(plan: &mut TreePlan, past: &JournalHistory, kept: &[FileRow]) {
    let target =
        |row: &crate::manifest::LinkRow| normal_path(&row.path.parent().unwrap_or(Path::new("")).join(&row.to));
    let links: BTreeMap<PathBuf, PathBuf> = past.links.iter().map(|row| (row.path.clone(), target(row))).collect();
    for (link, to) in &links {
        let mut end = to;
        for _ in 0..links.len() {
            let Some(next) = links.get(end) else { break };
            end = next;
        }
        let is_unread = plan.unread.iter().any(|unread| link.starts_with(&unread.relative));
        if is_unread || kept.iter().any(|row| row.path.starts_with(end)) {
            plan.links.entry(link.clone()).or_insert_with(|| to.clone());
        }
    }
}
