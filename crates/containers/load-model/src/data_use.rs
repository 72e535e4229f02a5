//! The data files that host libraries open for a GPU, and the code in them that HIP loads: the walk of the rows of
//! [`crate::lookups`] through a tree.
//!
//! Each file has a role, its path with `{gpu}` in the place of the name that the host sees, by which two trees are compared.
//!
//! Invariants: the file that a library would open is the first of its candidates that exists, links followed; a name that leads
//! out of the library's directory is a fault. The answer depends on names only where the library itself goes by names.
//!
//! Absent on purpose: the rows of MIOpen's databases, and which of its files fits the number of compute units.

use crate::choice::{EntryChoice, choose_entry};
use crate::container::{LoadableContainer, ReadDepth};
use crate::libraries::FileKind;
use crate::lookups::{BesideContent, BesideFile, CodePlace, DataLookup, LOOKUPS};
use crate::tensile_index::{self, COMPRESSED, SolutionCode};
use crate::tree::LibraryTree;
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// The GPU as the parts of a program see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenGpu {
    /// The device, for HIP: every feature is stated.
    pub device: TargetId,
    /// The processor's name that host libraries see.
    pub shown: String,
}

impl SeenGpu {
    /// A name of a file with its places filled in; `None` where the GPU has not the feature that the name states.
    fn fill_pattern(&self, pattern: &str) -> Option<String> {
        let named = pattern.replace("{gpu}", &self.shown);
        match self.device.xnack {
            Some(on) => Some(named.replace("{mode}", if on { "xnack+" } else { "xnack-" })),
            None if named.contains("{mode}") => None,
            None => Some(named),
        }
    }
}

/// The state of a file that a library opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// It exists, and is data.
    Read,
    /// HIP loads these entries of it.
    Loads(Vec<String>),
    /// It does not exist.
    Missing,
    /// It exists, and the GPU gets nothing from it: the reason.
    Fails(String),
}

impl FileState {
    /// Whether the library gets what it asks for.
    pub fn is_good(&self) -> bool {
        matches!(self, Self::Read | Self::Loads(_))
    }
}

/// A file that a library opens for a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedFile {
    pub library: &'static str,
    /// The path below the root, as the library opens it.
    pub path: PathBuf,
    /// The path with `{gpu}` in the place of the shown name.
    pub role: String,
    /// Why it is opened.
    pub because: String,
    pub state: FileState,
    /// Whether the library works without it.
    pub is_optional: bool,
}

/// The facts of an index that were read.
#[derive(Debug, Clone)]
struct IndexFacts {
    placeholders: BTreeSet<String>,
    code: SolutionCode,
}

/// Containers of a code file; the error's text.
type CodeContainers = Rc<Result<Vec<LoadableContainer>, String>>;

/// Reads the files of a tree once, whatever the number of GPUs.
#[derive(Debug)]
pub(crate) struct DataReader<'t> {
    tree: &'t LibraryTree,
    code: RefCell<BTreeMap<PathBuf, CodeContainers>>,
}

impl<'t> DataReader<'t> {
    pub(crate) fn new(tree: &'t LibraryTree) -> Self {
        Self { tree, code: RefCell::default() }
    }

    /// Every file that the libraries of the tree open for a GPU.
    pub(crate) fn opened_files(&self, gpu: &SeenGpu) -> Vec<OpenedFile> {
        let mut opened = Vec::new();
        let mut directories: BTreeMap<&'static str, BTreeSet<PathBuf>> = BTreeMap::new();
        for (relative, path) in &self.tree.files {
            let Some(found) = self.tree.rule(relative, path) else { continue };
            let rule = found.rule();
            if LOOKUPS.iter().any(|row| row.library == rule.library) && !rule.directories.is_empty() {
                directories.entry(rule.library).or_default().insert(found.directory);
            } else if found.gpu.as_deref() == Some(&gpu.shown) && !rule.directories.is_empty() {
                opened.push(self.by_name(rule.library, rule.kind, relative, gpu));
            }
        }
        for row in LOOKUPS {
            for directory in directories.remove(row.library).unwrap_or_default() {
                let mut walk = TensileWalk { reader: self, row, gpu, directory, opened: Vec::new() };
                walk.walk_index();
                opened.extend(walk.opened);
            }
        }
        opened.sort_by(|one, other| one.path.cmp(&other.path));
        opened.dedup_by(|one, other| one.path == other.path && one.state == other.state);
        opened
    }

    /// A file of a library that goes by the name alone.
    fn by_name(&self, library: &'static str, kind: FileKind, path: &Path, gpu: &SeenGpu) -> OpenedFile {
        let state = match kind {
            FileKind::Container | FileKind::CodeObject => self.state_of_code_file(path, gpu),
            _ => FileState::Read,
        };
        let because = format!("{library} looks for files of {}", gpu.shown);
        // The number of compute units in the name of a database differs between siblings.
        let role = match kind {
            FileKind::KernelDatabase => role_of_path(&path.with_file_name("{gpu}.kdb"), &gpu.shown),
            _ => role_of_path(path, &gpu.shown),
        };
        OpenedFile { library, path: path.to_owned(), role, because, state, is_optional: true }
    }

    /// The entries that HIP loads from a code file.
    fn state_of_code_file(&self, path: &Path, gpu: &SeenGpu) -> FileState {
        let Some(file) = self.tree.find_file(path) else { return FileState::Missing };
        let containers = self.containers_of_file(file);
        let containers = match &*containers {
            Ok(containers) => containers,
            Err(error) => return FileState::Fails(error.clone()),
        };
        let mut entries = Vec::new();
        for container in containers {
            match choose_entry(container, &gpu.device) {
                EntryChoice::Loaded { index, .. } => {
                    entries.extend(container.entries.get(index).map(|entry| entry.id.clone()));
                }
                EntryChoice::Nothing(failure) => return FileState::Fails(failure.to_string()),
            }
        }
        if entries.is_empty() {
            FileState::Fails("no device code is in it".to_owned())
        } else {
            FileState::Loads(entries)
        }
    }

    fn containers_of_file(&self, file: &Path) -> CodeContainers {
        if let Some(known) = self.code.borrow().get(file) {
            return known.clone();
        }
        let read = Rc::new(read_containers(file).map_err(|error| error.to_string()));
        self.code.borrow_mut().insert(file.to_owned(), read.clone());
        read
    }
}

fn read_containers(file: &Path) -> Result<Vec<LoadableContainer>, Diagnostic> {
    let input = hotswap_files::open_input(file)?;
    let contents = hotswap_bundle::find_containers(&input);
    if let Some(problem) = contents.problems.into_iter().next() {
        return Err(problem);
    }
    contents.found.iter().map(|found| LoadableContainer::read(found, ReadDepth::Headers)).collect()
}

/// The path of a file with the place of the GPU's name.
fn role_of_path(path: &Path, shown: &str) -> String {
    path.display().to_string().replace(shown, "{gpu}")
}

/// The walk of one directory of data of a library that uses Tensile.
struct TensileWalk<'w, 't> {
    reader: &'w DataReader<'t>,
    row: &'static DataLookup,
    gpu: &'w SeenGpu,
    directory: PathBuf,
    opened: Vec<OpenedFile>,
}

impl TensileWalk<'_, '_> {
    fn walk_index(&mut self) {
        let names = self.row.subdirectories.iter().filter_map(|name| self.gpu.fill_pattern(name));
        let mut below = names.map(|name| self.directory.join(name));
        let directory = below.find(|path| self.tree().has_directory(path)).unwrap_or_else(|| self.directory.clone());
        let candidates: Vec<PathBuf> =
            self.row.indices.iter().filter_map(|name| Some(directory.join(self.gpu.fill_pattern(name)?))).collect();
        let Some(index) = candidates.iter().find_map(|path| self.existing_index(path)) else {
            let because = format!("index for {}; without it {}", self.gpu.shown, self.row.without_index);
            let first = candidates.into_iter().next().unwrap_or_default();
            return self.add_opened(&first, &because, FileState::Missing);
        };
        self.open_beside(&directory);
        let is_lazy = file_name(&index).starts_with(self.row.lazy);
        let facts = self.read_index(&index);
        let state = facts.as_ref().map_or_else(|error| FileState::Fails(error.clone()), |_| FileState::Read);
        self.add_opened(&index, &format!("index for {}", self.gpu.shown), state);
        if !is_lazy {
            self.add_all_code(&directory);
        }
        for name in facts.map(|facts| facts.placeholders).unwrap_or_default() {
            self.follow_placeholder(&directory, &index, &name);
        }
    }

    fn tree(&self) -> &LibraryTree {
        self.reader.tree
    }

    /// The index of that name, or its compressed form.
    fn existing_index(&self, path: &Path) -> Option<PathBuf> {
        let packed = PathBuf::from(format!("{}{COMPRESSED}", path.display()));
        [path.to_owned(), packed].into_iter().find(|path| self.tree().find_file(path).is_some())
    }

    fn read_index(&self, path: &Path) -> Result<IndexFacts, String> {
        let file = self.tree().find_file(path).ok_or("it does not exist")?;
        self.index_facts(file, path).map_err(|error| error.to_string())
    }

    /// Reads the index `file`, which the library opens as `path`.
    fn index_facts(&self, file: &Path, path: &Path) -> Result<IndexFacts, Diagnostic> {
        let bytes = hotswap_files::open_input(file)?;
        let plain = tensile_index::plain_index(&bytes, file_name(path))?;
        let placeholders = match file_name(path).starts_with("TensileLibrary_lazy") || self.is_top(path) {
            true => tensile_index::placeholders_of(&plain, &self.gpu.shown)?,
            false => BTreeSet::new(),
        };
        Ok(IndexFacts { placeholders, code: tensile_index::solution_code(&plain) })
    }

    fn is_top(&self, path: &Path) -> bool {
        let name = file_name(path).trim_end_matches(COMPRESSED);
        self.row.indices.iter().any(|index| self.gpu.fill_pattern(index).as_deref() == Some(name))
    }

    fn follow_placeholder(&mut self, directory: &Path, index: &Path, name: &str) {
        let because = format!("named by {}", file_name(index));
        let is_plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || name.contains('/') {
            let path = PathBuf::from(format!("{}/{name}", directory.display()));
            return self.add_opened(
                &path,
                &because,
                FileState::Fails("the name leads out of the library's directory".to_owned()),
            );
        }
        let path = directory.join(format!("{name}.dat"));
        let Some(found) = self.existing_index(&path) else {
            return self.add_opened(&path, &because, FileState::Missing);
        };
        let facts = self.read_index(&found);
        let state = facts.as_ref().map_or_else(|error| FileState::Fails(error.clone()), |_| FileState::Read);
        self.add_opened(&found, &because, state);
        let Ok(IndexFacts { code, .. }) = facts else { return };
        let index = file_name(&found);
        let assembly = directory.join(format!("{name}.co"));
        match self.row.code {
            CodePlace::OneFile => self.add_code(&assembly, &format!("kernels of {index}")),
            CodePlace::ByKind => {
                if code.has_assembly {
                    self.add_code(&assembly, &format!("assembly kernels of {index}"));
                }
                if code.has_source {
                    self.add_code(&directory.join(self.source_file(name)), &format!("HIP kernels of {index}"));
                }
            }
        }
    }

    /// The file of an index's HIP kernels; of a fallback, that for the GPU.
    fn source_file(&self, name: &str) -> String {
        let ending = format!("_{}", self.gpu.shown);
        let is_fallback = name.contains("fallback") && !name.ends_with(&ending);
        if is_fallback { format!("{name}{ending}.hsaco") } else { format!("{name}.hsaco") }
    }

    /// A code file, which may have the mode of XNACK in its name.
    fn add_code(&mut self, path: &Path, because: &str) {
        let candidates = [Some(path.to_owned()), self.with_mode(path)];
        let found = candidates.into_iter().flatten().find(|path| self.tree().find_file(path).is_some());
        let path = found.unwrap_or_else(|| path.to_owned());
        let state = self.reader.state_of_code_file(&path, self.gpu);
        self.add_opened(&path, because, state);
    }

    fn with_mode(&self, path: &Path) -> Option<PathBuf> {
        let stem = path.file_stem()?.to_str()?;
        let end = path.extension()?.to_str()?;
        self.gpu.fill_pattern(&format!("{stem}-{{mode}}.{end}")).map(|name| path.with_file_name(name))
    }

    /// Every code file with the GPU's name, which is loaded where no lazy index is there.
    fn add_all_code(&mut self, directory: &Path) {
        let other = match self.gpu.device.xnack {
            Some(true) => "xnack-",
            Some(false) => "xnack+",
            None => "xnack?",
        };
        let names: Vec<PathBuf> = self.tree().names_in(directory).into_iter().map(PathBuf::from).collect();
        for name in names {
            let text = file_name(&name);
            let is_code = text.contains(&self.gpu.shown) && text.ends_with("co");
            if is_code && !text.contains(other) && !text.contains("Experimental") {
                self.add_code(&directory.join(&name), "code of the GPU, all of which is loaded without a lazy index");
            }
        }
    }

    fn open_beside(&mut self, directory: &Path) {
        let outer = self.directory.clone();
        for file in self.row.beside {
            let names: Vec<String> = file.names.iter().filter_map(|name| self.gpu.fill_pattern(name)).collect();
            let places = [directory, &outer].into_iter().flat_map(|place| names.iter().map(|name| place.join(name)));
            let places: Vec<PathBuf> = places.collect();
            match (places.iter().find_map(|path| self.existing_index(path)), places.first()) {
                (Some(path), _) => self.add_beside(file, &path),
                (None, Some(first)) if file.is_needed => self.add_opened(first, "helper kernels", FileState::Missing),
                _ => {}
            }
        }
    }

    fn add_beside(&mut self, file: &BesideFile, path: &Path) {
        match file.content {
            BesideContent::Code(what) => {
                let state = self.reader.state_of_code_file(path, self.gpu);
                self.add_opened(path, what, state);
            }
            BesideContent::Operations => self.add_operations(path),
            BesideContent::Numbers => self.add_numbers(path),
        }
    }

    fn add_operations(&mut self, path: &Path) {
        let files = self.read_plain(path).and_then(|plain| tensile_index::operation_files(&plain, &self.gpu.shown));
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        match files {
            Err(error) => self.add_opened(path, "index of further operations", FileState::Fails(error.to_string())),
            Ok(None) => {
                let state = FileState::Fails(format!("it has no operations for {}", self.gpu.shown));
                self.add_optional(path, "index of further operations", state);
            }
            Ok(Some(files)) => {
                self.add_opened(path, "index of further operations", FileState::Read);
                for name in files {
                    self.add_code(&directory.join(&name), &format!("named by {}", file_name(path)));
                }
            }
        }
    }

    /// Indices that the table names and the lazy index does not are looked up by number only.
    fn add_numbers(&mut self, path: &Path) {
        let names = self.read_plain(path).and_then(|plain| tensile_index::numbered_indices(&plain, &self.gpu.shown));
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        match names {
            Err(error) => {
                self.add_opened(path, "table of the numbers of solutions", FileState::Fails(error.to_string()))
            }
            Ok(names) => {
                self.add_opened(path, "table of the numbers of solutions", FileState::Read);
                let because = format!("named by {}", file_name(path));
                let paths = names.into_iter().map(|name| directory.join(format!("{name}.dat")));
                let missing = paths.filter(|path| self.existing_index(path).is_none());
                let missing: Vec<PathBuf> = missing.collect();
                missing.iter().for_each(|path| self.add_opened(path, &because, FileState::Missing));
            }
        }
    }

    fn read_plain(&self, path: &Path) -> Result<Vec<u8>, Diagnostic> {
        let file = self.tree().find_file(path).unwrap_or(path);
        let bytes = hotswap_files::open_input(file)?;
        tensile_index::plain_index(&bytes, file_name(path)).map(std::borrow::Cow::into_owned)
    }

    fn add_opened(&mut self, path: &Path, because: &str, state: FileState) {
        self.push(path, because, state, false);
    }

    fn add_optional(&mut self, path: &Path, because: &str, state: FileState) {
        self.push(path, because, state, true);
    }

    fn push(&mut self, path: &Path, because: &str, state: FileState, is_optional: bool) {
        let (library, role) = (self.row.library, role_of_path(path, &self.gpu.shown));
        let opened =
            OpenedFile { library, path: path.to_owned(), role, because: because.to_owned(), state, is_optional };
        self.opened.push(opened);
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
