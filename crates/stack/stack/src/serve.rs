//! Carries out a plan: every output is made, checked, noted in the journal and gets its name, in that order.
//!
//! Invariants: outputs that are what an earlier run of the same request wrote are untouched. A file that HotSwap did not
//! write is never replaced or removed. If one file of a library is refused, its other outputs are removed; if one could not
//! be read, or a file of others is in an output's place, they stay as they are (`kept_outputs`). A failure of the file system later ends the run; what is written stays for
//! the next one.
//!
//! Files are copied, never linked: after an upgrade of a package, links would mix an index of the new version with code
//! of the old one, which gives wrong numbers without an error. Where the file system can share blocks, a copy costs no
//! space.

use crate::environment::{Environment, EnvironmentFile};
use crate::existing::hash_of_output;
use crate::hash;
use crate::journal::{Journal, JournalHistory, create_destination, lock_destination};
use crate::kept_outputs::RunPlan;
use crate::maker::{OutputMaker, input_size};
use crate::manifest::{FileRow, LinkRow, MANIFEST, MakerSettings, OutputSource, RefusedRow, TreeManifest};
use crate::output::{BeforeNamed, OutputRequest, OutputWay, is_large_output};
use crate::plan::{Action, LibraryPlan, NameMode, OtherSource, OutputContent, ServeRun, TreePlan};
use crate::rules::FileKind;
use crate::stock::is_unread;
use crate::tensile;
use crate::undo;
use crate::use_check::{self, ServedFiles, UseComparison};
use hotswap_load_model::tree::{canonical_path, is_missing, link_text};
use hotswap_report::{Diagnostic, codes};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The result for one library.
#[derive(Debug, Clone, Default)]
pub struct ServedLibrary {
    pub name: String,
    /// Numbers of outputs: made now, copied now, left as an earlier run wrote them.
    pub made: usize,
    pub copied: usize,
    pub kept: usize,
    /// Why it is not served.
    pub refused: Vec<Diagnostic>,
    /// Its files that could not be read, so that all of its outputs are those of an earlier run.
    pub unread: Vec<Diagnostic>,
    /// Files in the place of its outputs that HotSwap did not write, so that all other outputs are those of an earlier run.
    pub foreign: Vec<Diagnostic>,
    /// As in the plan.
    pub remark: Option<String>,
    /// As in the plan.
    pub needs_nothing: bool,
}

/// The result of a run.
#[derive(Debug)]
pub struct Served {
    pub libraries: Vec<ServedLibrary>,
    /// The environment for programs.
    pub environment: Environment,
    /// Remarks: files of earlier runs that are not ours any more, and those of the plan.
    pub problems: Vec<Diagnostic>,
    /// The maker's remarks about outputs, in the order of their inputs.
    pub notes: Vec<Diagnostic>,
    /// Outputs of earlier runs that were removed.
    pub removed: usize,
    /// Whether no file and no link of the tree was written or removed.
    pub is_unchanged: bool,
}

/// Refuses a destination in a root, and one with a root in it: outputs are beside the inputs, never among them.
///
/// # Errors
/// [`codes::USAGE`] for a destination that cannot be served into.
pub fn check_place(roots: &[PathBuf], destination: &Path) -> Result<(), Diagnostic> {
    let real = real_path(destination)?;
    if real.to_str().is_none() {
        let what = format!("the path {} is not UTF-8, which the manifest cannot have", real.display());
        return Err(Diagnostic::error(codes::USAGE, what).advise("choose another destination"));
    }
    if real.to_string_lossy().contains(':') {
        let what = format!("the path {} has a colon, which LD_LIBRARY_PATH cannot have", real.display());
        return Err(Diagnostic::error(codes::USAGE, what).advise("choose another destination"));
    }
    for root in roots {
        let root = canonical_path(root)?;
        let is_directory = fs::metadata(&root).map_err(|error| Diagnostic::cannot_read(&root, &error))?.is_dir();
        let inputs = if is_directory { root.as_path() } else { root.parent().unwrap_or(&root) };
        let is_among = if is_directory { real.starts_with(inputs) } else { real == inputs };
        if is_among || root.starts_with(&real) {
            let what = format!(
                "the destination {} and the root {} are one inside of the other",
                real.display(),
                root.display()
            );
            return Err(Diagnostic::error(codes::USAGE, what)
                .advise("choose a destination elsewhere: outputs are written beside the libraries, never among them"));
        }
    }
    Ok(())
}

/// The path without links, of which the last parts may not exist yet.
fn real_path(path: &Path) -> Result<PathBuf, Diagnostic> {
    let absolute = std::path::absolute(path).map_err(|error| Diagnostic::cannot_write(path, &error))?;
    let mut there = absolute.as_path();
    while is_missing(there)? {
        there = there.parent().unwrap_or(Path::new("/"));
    }
    let rest = absolute.strip_prefix(there).unwrap_or(Path::new("")).to_owned();
    Ok(if rest.as_os_str().is_empty() { canonical_path(there)? } else { canonical_path(there)?.join(rest) })
}

/// Writes the tree of a plan into the destination.
///
/// # Errors
/// [`codes::CANNOT_WRITE`] and [`codes::CANNOT_READ`] of the file system; [`codes::LOAD_LOST`] where the tree serves a GPU that this
/// run does not name. Where no library can be served, the result has
/// the reasons, and nothing is left in the destination.
pub fn serve_tree(plan: &TreePlan, run: ServeRun<'_>, maker: &OutputMaker<'_>) -> Result<Served, Diagnostic> {
    check_place(run.roots, run.destination)?;
    create_destination(run.destination)?;
    let lock = lock_destination(run.destination)?;
    if let Some(manifest) = TreeManifest::read(run.destination)? {
        use_check::refuse_forgotten_gpus(&manifest, run.settings)?;
    }
    let row = MakerSettings::of_request(run.settings);
    let past = JournalHistory::read(run.destination, Some(&row))?;
    let run_plan = RunPlan::new(plan, &past, run.destination)?;
    let plan = &run_plan.plan;
    let journal = Journal::begin_or_continue(run.destination, &row, &past)?;
    let hashes = &run_plan.hashes;
    let writer = OutputWriter {
        run,
        past: &past,
        journal: &journal,
        maker,
        hashes,
        stop: AtomicBool::new(false),
        has_written: AtomicBool::new(false),
    };
    maker.progress.begin(plan.all_actions().map(input_size).sum());
    let written = writer.write_libraries(&run_plan);
    maker.progress.finish();
    let WrittenLibraries { mut libraries, files } = written?;
    let mut manifest = TreeManifest::new(row, run.roots, &plan.wanted);
    manifest.files = files;
    let mut problems = plan.problems.clone();
    manifest.links = writer.make_links(plan, &manifest.files, &mut problems)?;
    let compared = writer.compare_use(plan, &manifest.files)?;
    if refuse_losses(&compared, &mut libraries, &mut manifest.files) {
        manifest.links = writer.make_links(plan, &manifest.files, &mut Vec::new())?;
    }
    problems.extend(use_check::lack_warnings(&compared.lacks, |name| is_served_library(name, &libraries)));
    problems.extend(compared.unread);
    manifest.refused = libraries.iter().filter_map(refused_row).collect();
    let environment = Environment::new(plan, &manifest, run)?;
    if !manifest.files.is_empty() {
        manifest.files.extend(writer.own_files(&environment)?);
    }
    let removed = writer.remove_stale(&manifest, &mut problems)?;
    for path in journal.made_directories() {
        if !is_missing(&run.destination.join(&path))? {
            manifest.directories.push(path);
        }
    }
    writer.write_manifest(&manifest)?;
    let is_output_written = libraries.iter().any(|library| library.made + library.copied > 0);
    let is_unchanged = removed == 0 && !is_output_written && !writer.has_written.load(Ordering::Relaxed);
    journal.end_journal()?;
    drop(lock);
    if manifest.files.is_empty() {
        undo::undo_tree(run.destination)?;
    }
    Ok(Served { libraries, environment, problems, notes: maker.take_notes(), removed, is_unchanged })
}

fn refused_row(library: &ServedLibrary) -> Option<RefusedRow> {
    let reasons: Vec<String> = library.refused.iter().map(ToString::to_string).collect();
    (!reasons.is_empty()).then(|| RefusedRow { library: library.name.clone(), reasons })
}

/// How an output came about.
enum OutputOrigin {
    Made,
    Copied,
    Kept,
}

/// An output that is there now.
struct WrittenOutput {
    row: FileRow,
    origin: OutputOrigin,
}

/// The result for one output; none where the run has been stopped before.
type OutputResult = Option<Result<WrittenOutput, Vec<Diagnostic>>>;

/// The outputs of all libraries that were not refused, and the result for each library.
struct WrittenLibraries {
    libraries: Vec<ServedLibrary>,
    files: Vec<FileRow>,
}

struct OutputWriter<'w> {
    run: ServeRun<'w>,
    past: &'w JournalHistory,
    journal: &'w Journal,
    maker: &'w OutputMaker<'w>,
    hashes: &'w BTreeMap<PathBuf, String>,
    /// Set by the first failure of the file system.
    stop: AtomicBool,
    /// Set where a link or a file about the tree was written.
    has_written: AtomicBool,
}

/// An action of a library.
#[derive(Clone, Copy)]
struct LibraryAction<'p> {
    /// Number of the library in the plan.
    library: usize,
    action: &'p Action,
}

/// The row of an output of a library.
struct LibraryRow {
    /// Number of the library in the plan.
    library: usize,
    row: FileRow,
}

impl OutputWriter<'_> {
    /// The outputs of all libraries, the large ones first: their containers and the small outputs share the cores.
    fn write_libraries(&self, run_plan: &RunPlan) -> Result<WrittenLibraries, Diagnostic> {
        let plan = &run_plan.plan;
        let all = actions_large_first(plan);
        let outputs = hotswap_files::on_all_cores(all.len(), |index| {
            let LibraryAction { library, action } = all[index];
            self.try_output(&plan.libraries[library].name, action, is_large_output(action))
        });
        let mut served: Vec<ServedLibrary> = plan.libraries.iter().map(begin_library).collect();
        let mut files: Vec<LibraryRow> = Vec::new();
        for (LibraryAction { library: number, .. }, output) in all.into_iter().zip(outputs) {
            let library = &mut served[number];
            match output {
                None => {}
                Some(Ok(WrittenOutput { row, origin })) => {
                    *match origin {
                        OutputOrigin::Made => &mut library.made,
                        OutputOrigin::Copied => &mut library.copied,
                        OutputOrigin::Kept => &mut library.kept,
                    } += 1;
                    files.push(LibraryRow { library: number, row });
                }
                Some(Err(reasons)) => library.refused.extend(reasons),
            }
        }
        let fatal = served.iter().flat_map(|library| &library.refused).find(|reason| is_fatal(reason));
        if let Some(fatal) = fatal {
            return Err(fatal.clone());
        }
        // The rows of refused libraries stay in the journal, and their outputs are removed as stale ones.
        files.retain(|file| served[file.library].refused.is_empty());
        for library in served.iter_mut().filter(|library| !library.refused.is_empty()) {
            (library.made, library.copied, library.kept) = (0, 0, 0);
        }
        let mut files: Vec<FileRow> = files.into_iter().map(|file| file.row).collect();
        files.extend_from_slice(&run_plan.kept);
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(WrittenLibraries { libraries: served, files })
    }

    fn try_output(&self, library: &str, action: &Action, is_large: bool) -> OutputResult {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let output = self.make_output(library, action, is_large);
        self.maker.progress.advance(input_size(action));
        if output.as_ref().is_err_and(|reasons| reasons.iter().any(is_fatal)) {
            self.stop.store(true, Ordering::Relaxed);
        }
        Some(output)
    }

    fn source_of(&self, path: &Path) -> Result<OutputSource, Diagnostic> {
        let sha256 = self.hashes.get(path).cloned().ok_or_else(|| unread_input_error(path))?;
        Ok(OutputSource { path: path.to_owned(), sha256 })
    }

    fn make_output(&self, library: &str, action: &Action, is_large: bool) -> Result<WrittenOutput, Vec<Diagnostic>> {
        let input = self.source_of(&action.input).map_err(|error| vec![error])?;
        let others = action
            .others
            .iter()
            .map(|one| other_source_file(one, self))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| vec![error])?;
        let unhashed = FileRow {
            path: action.output.clone(),
            library: Some(library.to_owned()),
            input: Some(input),
            others,
            sha256: String::new(),
            wanted: action.content.wanted_targets().to_vec(),
        };
        let path = self.run.destination.join(&action.output);
        if let Some(there) = self.existing_hash(&action.output).map_err(|error| vec![error])? {
            let kept = FileRow { sha256: there, ..unhashed.clone() };
            if self.is_current(&kept) {
                return Ok(WrittenOutput { row: kept, origin: OutputOrigin::Kept });
            }
        }
        self.journal.directories_of(&action.output).map_err(|error| vec![error])?;
        let named = OnceLock::new();
        let origin = self.write_output(action, &path, is_large, &|sha256| {
            let row = FileRow { sha256, ..unhashed.clone() };
            self.journal.note_file(&row)?;
            named.get_or_init(|| row);
            Ok(())
        })?;
        let row = named.into_inner().ok_or_else(|| {
            vec![Diagnostic::error(codes::INTERNAL, "an output was written without its row").in_file(&path)]
        })?;
        Ok(WrittenOutput { row, origin })
    }

    fn write_output(
        &self,
        action: &Action,
        path: &Path,
        is_large: bool,
        before_named: &BeforeNamed<'_>,
    ) -> Result<OutputOrigin, Vec<Diagnostic>> {
        let input = &action.input;
        match &action.content {
            OutputContent::Served(_) | OutputContent::Alone(_) => {
                let order = OutputRequest { action, output: path, is_large, before_named };
                if self.maker.make_output(&order)? == OutputWay::Written {
                    return Ok(OutputOrigin::Made);
                }
            }
            OutputContent::Index(_) | OutputContent::Extended(_) => {
                write_index(action, path, before_named).map_err(|error| vec![error.in_file(input)])?;
                return Ok(OutputOrigin::Made);
            }
            OutputContent::Copied => {}
        }
        copy_input(input, path, before_named).map_err(|error| vec![error.in_file(input)])?;
        Ok(OutputOrigin::Copied)
    }

    fn existing_hash(&self, output: &Path) -> Result<Option<String>, Diagnostic> {
        hash_of_output(self.run.destination, self.past, output)
    }

    /// Whether an earlier run of the same request has written this row.
    fn is_current(&self, row: &FileRow) -> bool {
        let rows = self.past.files.get(&row.path).map(Vec::as_slice).unwrap_or_default();
        // A copy depends on its input alone.
        rows.iter().any(|past| past.row == *row && (past.is_current || row.wanted.is_empty()))
    }

    /// Compares what GPUs get from the tree and from the roots.
    fn compare_use(&self, plan: &TreePlan, files: &[FileRow]) -> Result<UseComparison, Diagnostic> {
        if files.is_empty() {
            return Ok(UseComparison::default());
        }
        let ServeRun { roots, destination, settings, .. } = self.run;
        ServedFiles { roots, destination, files, wanted: &plan.wanted, settings }.compare()
    }

    /// Makes the links that lead to outputs.
    fn make_links(
        &self,
        plan: &TreePlan,
        files: &[FileRow],
        problems: &mut Vec<Diagnostic>,
    ) -> Result<Vec<LinkRow>, Diagnostic> {
        let paths: BTreeSet<&Path> = files.iter().map(|row| row.path.as_path()).collect();
        let mut made: Vec<LinkRow> = Vec::new();
        for (link, to) in &plan.links {
            let mut end = to;
            for _ in 0..plan.links.len() {
                let Some(next) = plan.links.get(end) else { break };
                end = next;
            }
            if !paths.range(end.as_path()..).next().is_some_and(|path| path.starts_with(end)) {
                continue;
            }
            let row = LinkRow { path: link.clone(), to: link_text(link, to) };
            match self.make_link(&row) {
                Err(error) if error.code == codes::NOT_OURS => problems.push(error),
                result => result.map(|()| made.push(row))?,
            }
        }
        Ok(made)
    }

    fn make_link(&self, row: &LinkRow) -> Result<(), Diagnostic> {
        let path = self.run.destination.join(&row.path);
        if !is_missing(&path)? {
            let meta = path.symlink_metadata().map_err(|error| Diagnostic::cannot_read(&path, &error))?;
            if !meta.is_symlink() {
                return Err(foreign_link_error(&path));
            }
            let to = fs::read_link(&path).map_err(|error| Diagnostic::cannot_read(&path, &error))?;
            if to == row.to {
                return Ok(());
            }
            if !self.past.links.contains(&LinkRow { path: row.path.clone(), to }) {
                return Err(foreign_link_error(&path));
            }
            fs::remove_file(&path).map_err(|error| Diagnostic::cannot_write(&path, &error))?;
        }
        self.has_written.store(true, Ordering::Relaxed);
        self.journal.directories_of(&row.path)?;
        self.journal.note_link(row)?;
        symlink(&row.to, &path).map_err(|error| Diagnostic::cannot_write(&path, &error))
    }

    /// Writes the files about the tree itself.
    fn own_files(&self, environment: &Environment) -> Result<Vec<FileRow>, Diagnostic> {
        let mut rows = Vec::new();
        for EnvironmentFile { name, text } in environment.files_to_write(self.run.settings.names == NameMode::Source) {
            let path = PathBuf::from(name);
            let sha256 = hash::sha256_of(text.as_bytes());
            let row = FileRow { path: path.clone(), sha256, ..FileRow::default() };
            if self.existing_hash(&path)?.as_ref() != Some(&row.sha256) {
                self.has_written.store(true, Ordering::Relaxed);
                self.journal.note_file(&row)?;
                hotswap_files::replace_file(&self.run.destination.join(&path), text.as_bytes())?;
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Removes outputs of earlier runs, and of refused libraries, that this tree does not have.
    fn remove_stale(&self, manifest: &TreeManifest, problems: &mut Vec<Diagnostic>) -> Result<usize, Diagnostic> {
        // The journal has the rows of this run, too.
        let past = JournalHistory::read(self.run.destination, None)?;
        let files: BTreeSet<&Path> = manifest.files.iter().map(|row| row.path.as_path()).collect();
        let stale = past.files.keys().filter(|path| !files.contains(path.as_path()));
        let mut removal = undo::Removal::new(self.run.destination, &past);
        stale.for_each(|path| removal.remove_output(path));
        past.links.iter().filter(|row| !manifest.links.contains(row)).for_each(|row| removal.remove_link(row));
        removal.empty_directories(&past.directories);
        let (removed, kept) = removal.finish_removal()?;
        problems.extend(kept);
        Ok(removed)
    }

    /// Writes the manifest, if it is another one.
    fn write_manifest(&self, manifest: &TreeManifest) -> Result<(), Diagnostic> {
        let path = self.run.destination.join(MANIFEST);
        let text = manifest.to_text()?;
        if fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            return Ok(());
        }
        self.has_written.store(true, Ordering::Relaxed);
        hotswap_files::replace_file(&path, text.as_bytes())
    }
}

/// Refuses each library of which a GPU gets less from the tree than the source gets from the roots; whether there is one.
fn refuse_losses(compared: &UseComparison, libraries: &mut [ServedLibrary], files: &mut Vec<FileRow>) -> bool {
    let mut is_any = false;
    for library in libraries.iter_mut().filter(is_fully_served) {
        let rows = files.iter().filter(|row| row.library.as_ref() == Some(&library.name));
        let outputs: BTreeSet<&Path> = rows.map(|row| row.path.as_path()).collect();
        let lost = use_check::of_library(&compared.losses, &library.name, &outputs);
        if outputs.is_empty() || lost.is_empty() {
            continue;
        }
        is_any = true;
        library.refused = lost.into_iter().map(|loss| Diagnostic::from(loss.clone())).collect();
        (library.made, library.copied, library.kept) = (0, 0, 0);
    }
    files.retain(|row| row.library.as_deref().is_none_or(|name| !has_refused_library(name, libraries)));
    is_any
}

fn is_served_library(name: &str, libraries: &[ServedLibrary]) -> bool {
    libraries.iter().any(|one| one.name == name && one.refused.is_empty() && one.made + one.copied + one.kept > 0)
}

fn unread_input_error(path: &Path) -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, "an input was not read").in_file(path)
}

fn other_source_file(other: &OtherSource, writer: &OutputWriter<'_>) -> Result<OutputSource, Diagnostic> {
    writer.source_of(&other.input)
}

fn is_fully_served(library: &&mut ServedLibrary) -> bool {
    library.refused.is_empty() && library.unread.is_empty() && library.foreign.is_empty()
}

fn has_refused_library(name: &str, libraries: &[ServedLibrary]) -> bool {
    libraries.iter().any(|one| one.name == name && !one.refused.is_empty())
}

fn foreign_link_error(path: &Path) -> Diagnostic {
    Diagnostic::error(codes::NOT_OURS, "it is not the link that HotSwap made").in_file(path)
}

fn begin_library(library: &LibraryPlan) -> ServedLibrary {
    ServedLibrary {
        name: library.name.clone(),
        refused: library.refused.clone(),
        unread: library.unread.clone(),
        foreign: library.foreign.clone(),
        kept: if library.is_held() { library.actions.len() } else { 0 },
        remark: library.remark.clone(),
        needs_nothing: library.needs_nothing,
        ..ServedLibrary::default()
    }
}

/// Failures of the file system concern all libraries. An input that was read before and cannot be read again would
/// leave outputs of two states.
fn is_fatal(reason: &Diagnostic) -> bool {
    reason.code == codes::CANNOT_WRITE || reason.code == codes::INTERNAL || is_unread(reason)
}

/// The actions of all libraries that are not held, the large outputs first.
fn actions_large_first(plan: &TreePlan) -> Vec<LibraryAction<'_>> {
    let libraries = plan.libraries.iter().enumerate().filter(|(_, library)| !library.is_held());
    let all = libraries.flat_map(|(number, library)| {
        library.actions.iter().map(move |action| LibraryAction { library: number, action })
    });
    let (mut all, small): (Vec<_>, Vec<_>) = all.partition(|one| is_large_output(one.action));
    all.extend(small);
    all
}

fn write_index(action: &Action, output: &Path, before_named: &BeforeNamed<'_>) -> Result<(), Diagnostic> {
    let old = hotswap_files::open_input(&action.input)?;
    let new = index(&old, action)?;
    before_named(hash::sha256_of(&new))?;
    hotswap_files::replace_like(output, &new, &action.input)
}

/// The new content of an index.
fn index(old: &[u8], action: &Action) -> Result<Vec<u8>, Diagnostic> {
    match (&action.content, action.kind) {
        (OutputContent::Index(wanted), kind) => tensile::rewrite_index(old, wanted, kind),
        (content, FileKind::OperationIndex) => tensile::operations_with_targets(old, content.wanted_targets()),
        (content, _) => tensile::table_with_targets(old, content.wanted_targets()),
    }
}

fn copy_input(input: &Path, output: &Path, before_named: &BeforeNamed<'_>) -> Result<(), Diagnostic> {
    let content = hotswap_files::open_input(input)?;
    before_named(hash::sha256_of(&content))?;
    hotswap_files::replace_like(output, &content, input)
}
