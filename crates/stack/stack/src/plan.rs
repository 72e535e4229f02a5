//! The plan: an action for each file that the served tree needs, by library.
//!
//! Invariants: the plan depends on the tree alone, not on the destination. A library whose files are not understood has
//! no actions. Where the host is shown the source's name, all targets of the request are served in each library that is
//! served at all, because the name is shown for all of them.
//!
//! Absent on purpose: reading code objects. What is refused for their sake is found when they are made.

use crate::refusals::{
    not_relabelled, served_apart, two_versions, unchecked_hosts, without_data, without_host, without_source,
};
pub use crate::request::{NameMode, ServeRequest, ServeRun, WantedTarget};
use crate::rules::{self, FileKind, FileRule, LibraryMatch, OTHER};
use crate::stock::{Stock, is_unread, is_without_code};
use crate::{refusals, source};
use hotswap_load_model::tree::{LibraryTree, UnreadPath};
use hotswap_report::{Diagnostic, Severity, codes};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The content of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputContent {
    /// Code for these targets is added to that of the file.
    Served(Vec<WantedTarget>),
    /// Code for this target in the place of its source's, under a name of its own.
    Alone(WantedTarget),
    /// An index for this target, made from its source's.
    Index(WantedTarget),
    /// An index of all GPUs, with rows for these targets.
    Extended(Vec<WantedTarget>),
    /// The bytes of the file, unchanged.
    Copied,
}

impl OutputContent {
    /// The targets that the file gets code or names for.
    pub fn wanted_targets(&self) -> &[WantedTarget] {
        match self {
            Self::Served(wanted) | Self::Extended(wanted) => wanted,
            Self::Alone(wanted) | Self::Index(wanted) => std::slice::from_ref(wanted),
            Self::Copied => &[],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub input: PathBuf,
    /// The output, below the destination.
    pub output: PathBuf,
    pub kind: FileKind,
    pub content: OutputContent,
    /// Files of other GPUs with the same place in the library, the best first: a target whose source fails a check is
    /// made from the first one that has the same kernels and passes.
    pub others: Vec<OtherSource>,
}

/// A file whose code may take the place of the input's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherSource {
    /// The target, and the GPU that the file is for.
    pub wanted: WantedTarget,
    pub input: PathBuf,
}

/// The plan for one library.
#[derive(Debug, Clone, Default)]
pub struct LibraryPlan {
    /// Its name; the path of the file for files of no known library.
    pub name: String,
    /// Its outputs, in the order of their paths.
    pub actions: Vec<Action>,
    /// Reasons why it is not served. It does not have actions then.
    pub refused: Vec<Diagnostic>,
    /// Its files that could not be read. What an earlier run made of it stays.
    pub unread: Vec<Diagnostic>,
    /// Files of others in the place of its outputs; the rest stays.
    pub foreign: Vec<Diagnostic>,
    /// Remarks about a library that is served.
    pub warnings: Vec<Diagnostic>,
    /// The state of a library that gets nothing.
    pub remark: Option<String>,
    /// Whether it has code for every target already.
    pub needs_nothing: bool,
    /// Where its data is; `None` where no variable names it.
    pub data: Option<DataDirectory>,
}

/// A directory with the data of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataDirectory {
    /// The variable by which the library finds it.
    pub variable: &'static str,
    /// Its path below the destination.
    pub directory: PathBuf,
}

/// The plan for a tree.
#[derive(Debug, Clone, Default)]
pub struct TreePlan {
    /// Each target with its source.
    pub wanted: Vec<WantedTarget>,
    pub libraries: Vec<LibraryPlan>,
    /// Links by path, and where they lead, both below the destination.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// Paths at or below which files may be that could not be read.
    pub unread: Vec<UnreadPath>,
    /// Remarks about the tree, and errors about what could not be read.
    pub problems: Vec<Diagnostic>,
}

/// A program or library.
struct HostFile<'t> {
    relative: &'t Path,
    path: &'t Path,
    kind: FileKind,
    stock: Stock,
    /// The GPU in its name, for a library that a host library opens by it.
    gpu: Option<String>,
}

/// A file of data that a rule names.
struct DataFile<'t> {
    relative: &'t Path,
    path: &'t Path,
    found: LibraryMatch,
}

/// The files of one library.
#[derive(Default)]
struct LibraryFiles<'t> {
    data: Vec<DataFile<'t>>,
    hosts: Vec<HostFile<'t>>,
    refused: Vec<Diagnostic>,
}

impl TreePlan {
    /// Plans to serve the targets of the request from a tree.
    ///
    /// # Errors
    /// As for [`source`]: a target that no source in the tree can serve; [`codes::NOT_FOUND`] where the
    /// tree lacks device code.
    pub fn new(tree: &LibraryTree, settings: &ServeRequest) -> Result<Self, Diagnostic> {
        let mut libraries = BTreeMap::new();
        let mut unserved = BTreeMap::new();
        for (relative, path) in &tree.files {
            match rules::find_unserved(path) {
                // A build of such a library may have code of its own, which is served as any other.
                Some(row) if is_without_code(path) => {
                    unserved.insert(row.library, row.why);
                }
                _ => sort_into_library(relative, path, &mut libraries),
            }
        }
        let wanted = choose_sources(&libraries, unserved.is_empty(), settings);
        // Fewer sources than there are: the reason is what could not be read, or what was refused.
        let wanted = wanted.map_err(|error| {
            first_unread(tree, &libraries).or_else(|| first_refused(&libraries)).cloned().unwrap_or(error)
        })?;
        let plans = libraries.into_iter().map(|(name, library)| library.plan_library(name, &wanted, settings));
        let mut plan = Self { libraries: plans.collect(), wanted, ..Self::default() };
        plan.libraries.extend(unserved.into_iter().map(|(name, why)| LibraryPlan {
            name: name.to_owned(),
            remark: Some(format!("not served: {why}")),
            ..LibraryPlan::default()
        }));
        plan.unread.clone_from(&tree.unread);
        plan.problems.extend(plan.unread.iter().map(|unread| unread.problem.clone()));
        plan.problems.extend(plan.libraries.iter().flat_map(|library| library.unread.clone()));
        plan.problems.extend_from_slice(&tree.remarks);
        plan.problems.extend(plan.libraries.iter().flat_map(|library| library.warnings.clone()));
        plan.links = plan.links_to_outputs(tree);
        Ok(plan)
    }

    /// The outputs of all libraries.
    pub fn all_actions(&self) -> impl Iterator<Item = &Action> {
        self.libraries.iter().flat_map(|library| &library.actions)
    }

    /// The links that lead to an output, or to a directory with one.
    fn links_to_outputs(&self, tree: &LibraryTree) -> BTreeMap<PathBuf, PathBuf> {
        let outputs: BTreeSet<&Path> = self.all_actions().map(|action| action.output.as_path()).collect();
        let leading = tree.links.iter().filter(|(_, to)| holds_output(&outputs, end_of_links(tree, to)));
        let kept = leading.filter(|(link, _)| !holds_output(&outputs, link));
        kept.map(|(link, to)| (link.clone(), to.clone())).collect()
    }
}

/// Whether an output is at the path or below it.
fn holds_output(outputs: &BTreeSet<&Path>, path: &Path) -> bool {
    outputs.range(path..).next().is_some_and(|output| output.starts_with(path))
}

fn end_of_links<'t>(tree: &'t LibraryTree, to: &'t Path) -> &'t Path {
    let mut to = to;
    // As many steps as there are links, so that a cycle ends.
    for _ in 0..tree.links.len() {
        let Some(next) = tree.links.get(to) else { break };
        to = next;
    }
    to
}

/// The first file or directory that could not be read.
fn first_unread<'t>(
    tree: &'t LibraryTree,
    libraries: &'t BTreeMap<String, LibraryFiles<'_>>,
) -> Option<&'t Diagnostic> {
    let in_tree = tree.unread.iter().map(|unread| &unread.problem);
    in_tree.chain(libraries.values().flat_map(|library| &library.refused).filter(|error| is_unread(error))).next()
}

/// The first refused file, where no library has code that can be served.
fn first_refused<'t>(libraries: &'t BTreeMap<String, LibraryFiles<'_>>) -> Option<&'t Diagnostic> {
    let has_none = libraries.values().all(|library| library.processors().is_empty());
    libraries.values().flat_map(|library| &library.refused).find(|_| has_none)
}

/// Each target with its source.
fn choose_sources(
    libraries: &BTreeMap<String, LibraryFiles<'_>>,
    is_all: bool,
    settings: &ServeRequest,
) -> Result<Vec<WantedTarget>, Diagnostic> {
    if libraries.is_empty() && is_all {
        return Err(Diagnostic::error(codes::NOT_FOUND, "no library with device code is below the roots")
            .advise("name the directory of the ROCm libraries by --root"));
    }
    let has: Vec<BTreeSet<String>> = libraries.values().map(LibraryFiles::processors).collect();
    let unknown = settings.keep.iter().find(|gpu| !has.iter().any(|library| library.contains(*gpu)));
    if let Some(gpu) = unknown {
        let what = format!("no library below the roots has code for `{gpu}`, which is to be kept");
        return Err(Diagnostic::error(codes::UNKNOWN_TARGET, what));
    }
    settings.targets.iter().map(|target| wanted_target(target, settings, &has)).collect()
}

fn wanted_target(
    target: &str,
    settings: &ServeRequest,
    libraries: &[BTreeSet<String>],
) -> Result<WantedTarget, Diagnostic> {
    let source = source::choose_source(target, settings.from.as_deref(), libraries, settings.experimental)?;
    Ok(WantedTarget { target: target.to_owned(), source: source.to_owned() })
}

/// Gives a file to its library.
fn sort_into_library<'t>(relative: &'t Path, path: &'t Path, libraries: &mut BTreeMap<String, LibraryFiles<'t>>) {
    let Some(found) = rules::find_rule(path, relative) else { return };
    let rule = found.rule();
    if !matches!(rule.kind, FileKind::FatBinary | FileKind::Host) {
        libraries.entry(rule.library.to_owned()).or_default().data.push(DataFile { relative, path, found });
        return;
    }
    if let Some(library) = rules::data_directory(path) {
        let what = format!("{library} is not known to have a file of that name");
        let advice = "report it with the version of the library; move the file away if it is none of its";
        let refused = Diagnostic::error(codes::NOT_SERVED, what).in_file(path).advise(advice);
        return libraries.entry(library.to_owned()).or_default().refused.push(refused);
    }
    let found = match by_content(relative, path, found) {
        Ok(found) => found,
        Err(error) => return libraries.entry(library_name(rule, relative)).or_default().refused.push(error),
    };
    let rule = found.rule();
    match Stock::of_file(path) {
        Ok(Some(stock)) if stock.is_windows => {
            if stock.is_archived || !stock.containers.is_empty() {
                let name = if stock.is_archived { rules::ARCHIVES.to_owned() } else { library_name(rule, relative) };
                libraries.entry(name).or_default().refused.push(refusals::not_for_linux(path));
            }
        }
        Ok(Some(stock)) if stock.is_archived && stock.containers.is_empty() && rule.kind == FileKind::FatBinary => {
            let row = HostFile { relative, path, kind: FileKind::Host, stock, gpu: None };
            libraries.entry(rules::ARCHIVES.to_owned()).or_default().hosts.push(row);
        }
        Ok(Some(stock)) if stock.is_linked && (rule.kind == FileKind::Host || !stock.containers.is_empty()) => {
            let row = HostFile { relative, path, kind: rule.kind, stock, gpu: found.gpu };
            libraries.entry(library_name(rule, relative)).or_default().hosts.push(row);
        }
        Ok(_) => {}
        Err(error) => libraries.entry(library_name(rule, relative)).or_default().refused.push(error),
    }
}

fn library_name(rule: &FileRule, relative: &Path) -> String {
    if rule.library == OTHER { relative.display().to_string() } else { rule.library.to_owned() }
}

/// The row of a host file by its content, where its name is unknown: a copy under another name is the same library.
fn by_content(relative: &Path, path: &Path, named: LibraryMatch) -> Result<LibraryMatch, Diagnostic> {
    if named.rule().library != OTHER {
        return Ok(named);
    }
    let file = hotswap_files::open_input(path)?;
    Ok(rules::find_by_content(&file, path, relative).unwrap_or(named))
}

impl LibraryFiles<'_> {
    /// The processors that it has code for: in its data, where it has any.
    fn processors(&self) -> BTreeSet<String> {
        let code = self.data.iter().filter(|file| file.found.rule().kind != FileKind::Shared);
        let in_data: BTreeSet<String> = code.filter_map(|file| file.found.gpu.clone()).collect();
        if in_data.is_empty() {
            return self.hosts.iter().flat_map(|host| host.stock.processors()).map(str::to_owned).collect();
        }
        in_data
    }

    fn plan_library(self, name: String, wanted: &[WantedTarget], settings: &ServeRequest) -> LibraryPlan {
        let has_data = !self.data.is_empty();
        let processors = self.processors();
        let plan = LibraryPlan { name, ..LibraryPlan::default() };
        let unread: Vec<Diagnostic> = self.refused.iter().filter(|error| is_unread(error)).cloned().collect();
        if !unread.is_empty() {
            return LibraryPlan { unread, ..plan };
        }
        // Files that are damaged may have had something to serve.
        let unread = self.refused.iter().map(|error| Diagnostic { severity: Severity::Warning, ..error.clone() });
        let unread: Vec<Diagnostic> = unread.collect();
        if wanted.iter().all(|row| self.is_there(&row.target, &processors)) {
            return LibraryPlan { needs_nothing: true, ..plan.with_remark("has code for it already", unread) };
        }
        let lacks_code = self.hosts.iter().all(|host| host.stock.containers.is_empty());
        if !has_data && lacks_code && rules::compiles_kernels(&plan.name) {
            return plan
                .with_remark("compiles its kernels at run time, and nothing that was compiled before is here", unread);
        }
        if !wanted.iter().any(|row| processors.contains(&row.source)) {
            let lost = wanted.iter().filter_map(|row| served_apart(&plan.name, row, &processors, settings));
            let lost = Vec::from_iter(lost);
            if !lost.is_empty() {
                return LibraryPlan { refused: lost, ..plan };
            }
            let sources = WantedTarget::source_names(wanted);
            return plan.with_remark(&format!("has nothing for {sources}, so there is nothing to serve from"), unread);
        }
        if !self.refused.is_empty() {
            return LibraryPlan { refused: self.refused, ..plan };
        }
        let is_archived = plan.name == rules::ARCHIVES;
        if is_archived && settings.names == NameMode::Own {
            return LibraryPlan { refused: vec![unchecked_hosts()], ..plan };
        }
        if has_data && self.hosts.iter().all(|host| host.gpu.is_some()) && !is_archived {
            return LibraryPlan { refused: vec![without_host(&plan.name)], ..plan };
        }
        let directories: BTreeSet<&Path> = self.data.iter().map(|file| file.found.directory.as_path()).collect();
        if let (Some(first), Some(last)) = (directories.first(), directories.last())
            && first != last
            && !is_archived
        {
            return LibraryPlan { refused: vec![two_versions(&plan.name, first, last)], ..plan };
        }
        if settings.names == NameMode::Source && rules::compiles_kernels(&plan.name) {
            let refused: Vec<Diagnostic> = wanted.iter().filter_map(|row| not_relabelled(&plan.name, row)).collect();
            if !refused.is_empty() {
                return LibraryPlan { refused, ..plan };
            }
        }
        let is_alone = !has_data && rules::has_data(&plan.name);
        let absent = wanted.iter().filter(|row| !processors.contains(&row.source) && !processors.contains(&row.target));
        let mut warnings: Vec<Diagnostic> = absent.map(|row| without_source(&plan.name, row)).collect();
        warnings.extend(is_alone.then(|| without_data(&plan.name)));
        let data = self.data.first().and_then(|DataFile { found, .. }| {
            Some(DataDirectory { variable: found.rule().variable?, directory: found.directory.clone() })
        });
        let mut actions = match settings.names {
            NameMode::Source => self.data_actions(wanted, settings),
            NameMode::Own => self.renamed_data_actions(wanted, settings),
        };
        actions.extend(self.hosts.into_iter().filter_map(|host| host.plan_host_file(wanted, settings)));
        actions.sort_by(|one, other| one.output.cmp(&other.output));
        LibraryPlan { actions, data, warnings, ..plan }
    }

    /// Whether it has all code for a target.
    fn is_there(&self, target: &str, processors: &BTreeSet<String>) -> bool {
        let mut hosts = self.hosts.iter().filter(|host| !host.stock.containers.is_empty() && host.gpu.is_none());
        let in_hosts = hosts.clone().all(|host| host.stock.serves_processor(target));
        if self.data.is_empty() { in_hosts && hosts.next().is_some() } else { processors.contains(target) && in_hosts }
    }

    fn data_actions(&self, wanted: &[WantedTarget], settings: &ServeRequest) -> Vec<Action> {
        let data = self.data.iter();
        let actions = data.filter_map(|DataFile { relative, path, found }| {
            let content = data_content(found, wanted, settings)?;
            let kind = found.rule().kind;
            let output = if kind == FileKind::KernelDatabase {
                self.database_name(relative, found)
            } else {
                relative.to_path_buf()
            };
            let others = self.other_sources(relative, kind, content.wanted_targets(), settings);
            Some(Action { input: path.to_path_buf(), output, kind, content, others })
        });
        actions.chain(self.archive_actions(wanted, settings)).collect()
    }

    /// The files of other GPUs for the targets of a code object in a file of its own: those with their name in the
    /// place of the source's.
    fn other_sources(
        &self,
        relative: &Path,
        kind: FileKind,
        wanted: &[WantedTarget],
        settings: &ServeRequest,
    ) -> Vec<OtherSource> {
        if kind != FileKind::CodeObject {
            return Vec::new();
        }
        let mut sources = Vec::new();
        for row in wanted {
            let named = source::other_sources(&row.target, &row.source, settings.experimental);
            // One that is served itself is not a source.
            let named = named.filter(|other| !settings.targets.iter().any(|target| target == other));
            sources.extend(named.filter_map(|other| self.other_source(relative, row, other)));
        }
        sources
    }

    fn other_source(&self, relative: &Path, row: &WantedTarget, other: &str) -> Option<OtherSource> {
        let at = rename_path(relative, &WantedTarget { target: other.to_owned(), source: row.source.clone() });
        let DataFile { path, .. } = self.data.iter().find(|file| file.relative == at)?;
        let wanted = WantedTarget { target: row.target.clone(), source: other.to_owned() };
        Some(OtherSource { wanted, input: path.to_path_buf() })
    }

    /// The name of a database of kernels. MIOpen opens the one for the GPU's number of compute units, or the one without a
    /// number; a target has other numbers than its source, so the one for the largest number gets the name without. A row
    /// is found by all of its options, so that none for another number is taken by mistake.
    fn database_name(&self, relative: &Path, found: &LibraryMatch) -> PathBuf {
        let gpu = found.gpu.as_deref().unwrap_or_default();
        let name = DatabaseName::of_path(relative, gpu);
        let others = self.data.iter().filter(|other| other.found.row == found.row);
        let others =
            others.filter(|other| other.found.gpu == found.gpu).map(|other| DatabaseName::of_path(other.relative, gpu));
        let is_largest = others.filter(|other| other.id == name.id).all(|other| other.units <= name.units);
        if is_largest { relative.with_file_name(name.id + ".kdb") } else { relative.to_path_buf() }
    }

    /// The archives of the sources, each as one for every target beside it. (One whose name lacks a GPU gets entries.)
    fn archive_actions(&self, wanted: &[WantedTarget], settings: &ServeRequest) -> Vec<Action> {
        let mut actions = Vec::new();
        let archives = self.data.iter().filter(|file| file.found.rule().kind == FileKind::Archive);
        for DataFile { relative, path, found } in archives {
            let Some(gpu) = &found.gpu else { continue };
            if settings.keep.contains(gpu) {
                actions.push(archive_action(path, relative.to_path_buf(), OutputContent::Copied));
            }
            for row in wanted.iter().filter(|row| *gpu == row.source) {
                actions.push(archive_action(path, rename_path(relative, row), OutputContent::Alone(row.clone())));
            }
        }
        actions
    }

    fn renamed_action(
        &self,
        file: &DataFile<'_>,
        output: PathBuf,
        content: OutputContent,
        settings: &ServeRequest,
    ) -> Action {
        let kind = file.found.rule().kind;
        let alone = matches!(content, OutputContent::Alone(_));
        let wanted = if alone { content.wanted_targets() } else { &[] };
        let others = self.other_sources(file.relative, kind, wanted, settings);
        Action { input: file.path.to_path_buf(), output, kind, content, others }
    }

    /// The files of each target under names of their own, and the shared ones.
    fn renamed_data_actions(&self, wanted: &[WantedTarget], settings: &ServeRequest) -> Vec<Action> {
        let mut actions = Vec::new();
        for file in &self.data {
            let DataFile { relative, found, .. } = file;
            let kind = found.rule().kind;
            let is_kept = found.gpu.as_ref().is_none_or(|gpu| settings.keep.contains(gpu));
            if is_kept {
                let content = match kind {
                    FileKind::NumberTable | FileKind::OperationIndex => OutputContent::Extended(wanted.to_vec()),
                    _ if kind.has_code() && found.gpu.is_none() => OutputContent::Served(wanted.to_vec()),
                    _ => OutputContent::Copied,
                };
                actions.push(self.renamed_action(file, relative.to_path_buf(), content, settings));
            }
            for row in wanted.iter().filter(|row| found.gpu.as_ref() == Some(&row.source)) {
                let content = match kind {
                    FileKind::Index | FileKind::NumberedIndex => OutputContent::Index(row.clone()),
                    FileKind::NumberTable => OutputContent::Extended(vec![row.clone()]),
                    _ if kind.has_code() => OutputContent::Alone(row.clone()),
                    _ => OutputContent::Copied,
                };
                let name = if kind == FileKind::KernelDatabase {
                    self.database_name(relative, found)
                } else {
                    relative.to_path_buf()
                };
                actions.push(self.renamed_action(file, rename_path(&name, row), content, settings));
            }
        }
        actions
    }
}

impl LibraryPlan {
    fn with_remark(self, text: &str, warnings: Vec<Diagnostic>) -> Self {
        Self { remark: Some(text.to_owned()), warnings, ..self }
    }
}

/// The content of a data file; `None` where it gets no output of its own.
fn data_content(found: &LibraryMatch, wanted: &[WantedTarget], settings: &ServeRequest) -> Option<OutputContent> {
    let kind = found.rule().kind;
    let rows = rows_of_gpu(wanted, found.gpu.as_deref());
    if kind == FileKind::Archive && found.gpu.is_some() {
        return None;
    }
    let is_kept = found.gpu.as_ref().is_some_and(|gpu| settings.keep.contains(gpu));
    match (rows.is_empty(), kind.has_code()) {
        (true, _) if !is_kept => None,
        (false, true) => Some(OutputContent::Served(rows)),
        _ => Some(OutputContent::Copied),
    }
}

/// The rows whose source is the GPU; all for a file that is for every GPU.
fn rows_of_gpu(wanted: &[WantedTarget], gpu: Option<&str>) -> Vec<WantedTarget> {
    wanted.iter().filter(|row| gpu.is_none_or(|gpu| gpu == row.source)).cloned().collect()
}

fn archive_action(path: &Path, output: PathBuf, content: OutputContent) -> Action {
    Action { input: path.to_owned(), output, kind: FileKind::Archive, content, others: Vec::new() }
}

impl HostFile<'_> {
    fn plan_host_file(self, wanted: &[WantedTarget], settings: &ServeRequest) -> Option<Action> {
        let rows = rows_of_gpu(wanted, self.gpu.as_deref());
        let is_kept = self.gpu.as_ref().is_none_or(|gpu| settings.keep.contains(gpu));
        // A library that is opened by the source's name is of no use where the host sees another.
        let is_opened = self.gpu.is_none() || settings.names == NameMode::Source;
        let content = match rows.is_empty() || self.stock.containers.is_empty() || !is_opened {
            false => OutputContent::Served(rows),
            true if is_kept => OutputContent::Copied,
            true => return None,
        };
        let (input, output) = (self.path.to_owned(), self.relative.to_owned());
        Some(Action { input, output, kind: self.kind, content, others: Vec::new() })
    }
}

/// The parts of a database's name.
struct DatabaseName {
    /// The GPU, with its features.
    id: String,
    /// The number of compute units, decimal after `_`, or else hexadecimal; the largest for a name without one.
    units: u32,
}

impl DatabaseName {
    fn of_path(path: &Path, gpu: &str) -> Self {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some((id, units)) = stem.rsplit_once('_').and_then(|(id, number)| Some((id, number.parse().ok()?))) {
            return Self { id: id.to_owned(), units };
        }
        let digits = stem.strip_prefix(gpu).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        digits.map_or(Self { id: stem, units: u32::MAX }, |units| Self { id: gpu.to_owned(), units })
    }
}

/// The path with another name of the GPU: in the file's name, and in that of its directory where it is the GPU's.
fn rename_path(path: &Path, wanted: &WantedTarget) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().replace(&wanted.source, &wanted.target);
    let parent = path.parent().unwrap_or(Path::new(""));
    let directory = parent.file_name().unwrap_or_default().to_string_lossy();
    match directory.strip_prefix(&wanted.source) {
        // Features may follow, as in `gfx90a-xnack+`.
        Some(features) if features.is_empty() || features.starts_with(['-', ':']) => {
            parent.with_file_name(format!("{}{features}", wanted.target)).join(name)
        }
        _ => parent.join(name),
    }
}
