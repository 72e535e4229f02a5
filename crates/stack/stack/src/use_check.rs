//! The files and code that GPUs get from a served tree, compared with those that the source gets from the original: by the model of what HIP loads and host
//! libraries open ([`hotswap_load_model`]).
//!
//! Invariant: every file that is good for the source in the roots is good for the target in the tree, under the name that the host
//! sees there; and so it is for each further GPU that is kept.

use crate::manifest::{FileRow, TreeManifest};
use crate::package_names::{names_of_tree, shown_name};
use crate::plan::{NameMode, ServeRequest, WantedTarget};
use crate::rules;
use hotswap_load_model::tree::{self, LibraryTree};
use hotswap_load_model::{DeviceModes, FileState, OpenedFile, SeenGpu, TreeReader, UseLoss};
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::TargetId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A GPU with what it is compared to.
struct ComparedGpu {
    before: SeenGpu,
    after: SeenGpu,
}

/// The comparison of a served tree with what it was made from.
#[derive(Debug, Default)]
pub(crate) struct UseComparison {
    pub(crate) losses: Vec<UseLoss>,
    /// Files that libraries of the original open for the source, and that give it nothing: the target has the same lack.
    pub(crate) lacks: Vec<SourceLack>,
    /// The first file of the original that could not be read: whether the source gets it is not known.
    pub(crate) unread: Option<Diagnostic>,
}

/// A file that the source itself does not get.
#[derive(Debug, Clone)]
pub(crate) struct SourceLack {
    pub(crate) library: &'static str,
    problem: Diagnostic,
}

/// A served tree, and what it was made from.
pub(crate) struct ServedFiles<'s> {
    pub(crate) roots: &'s [PathBuf],
    pub(crate) destination: &'s Path,
    pub(crate) files: &'s [FileRow],
    pub(crate) wanted: &'s [WantedTarget],
    pub(crate) settings: &'s ServeRequest,
}

impl ServedFiles<'_> {
    /// The losses, each with the file in the roots or in the tree, and what the source lacks.
    ///
    /// # Errors
    /// Roots or a destination that cannot be read.
    pub(crate) fn compare(&self) -> Result<UseComparison, Diagnostic> {
        let original = tree::read_tree(self.roots)?;
        let mut served = tree::read_tree(&[self.destination.to_owned()])?;
        served.intended = self.intended_paths()?;
        // An output that could not be read is not lost.
        if let Some(unread) = served.unread.first() {
            return Err(unread.problem.clone());
        }
        let compared = compare_use(&original, &served, self.wanted, self.settings)?;
        match compared.losses.iter().find(|loss| loss.reason.contains(codes::CANNOT_READ.id)) {
            Some(unread) => Err(Diagnostic::error(codes::CANNOT_READ, &unread.reason).in_file(&unread.path)),
            None => Ok(compared),
        }
    }

    /// A root may be inside of the directories by which a library is known, which the destination does not have.
    fn intended_paths(&self) -> Result<BTreeMap<PathBuf, PathBuf>, Diagnostic> {
        let mut roots = Vec::new();
        for root in self.roots {
            let root = tree::canonical_path(root)?;
            let meta = std::fs::metadata(&root);
            let meta = meta.map_err(|error| Diagnostic::cannot_read(&root, error))?;
            roots.push(if meta.is_dir() { root } else { root_parent_directory(&root) });
        }
        let mut paths = BTreeMap::new();
        for row in self.files {
            let Some(input) = &row.input else { continue };
            let root = roots.iter().find(|root| input.path.starts_with(root));
            paths.extend(root.map(|root| (row.path.clone(), root.join(&row.path))));
        }
        Ok(paths)
    }
}

fn root_parent_directory(root: &Path) -> PathBuf {
    root.parent().map(Path::to_owned).unwrap_or_default()
}

fn is_unread(problem: &Diagnostic) -> bool {
    problem.code == codes::CANNOT_READ && problem.severity == Severity::Error
}

fn compare_use(
    original: &LibraryTree,
    served: &LibraryTree,
    wanted: &[WantedTarget],
    settings: &ServeRequest,
) -> Result<UseComparison, Diagnostic> {
    let (before, after) = (TreeReader::new(original), TreeReader::new(served));
    if let Some(unread) = after.problems.iter().find(|problem| is_unread(problem)) {
        return Err(unread.clone());
    }
    let mut compared = UseComparison::default();
    for gpu in compared_gpus(wanted, settings) {
        let had = before.use_of_gpu(&gpu.before);
        compared.losses.extend(had.losses(&after.use_of_gpu(&gpu.after)));
        compared.losses.extend(before.host_losses(&after, &gpu.before, &gpu.after));
        for file in had.faults() {
            match unread_file(file, original) {
                Some(unread) => compared.unread = compared.unread.or(Some(unread)),
                None => compared.lacks.extend(source_lack(file, &gpu.before)),
            }
        }
    }
    Ok(compared)
}

/// The reason why nothing is known of a file: it could not be read, or a directory or file that could not be read may be it.
fn unread_file(file: &OpenedFile, original: &LibraryTree) -> Option<Diagnostic> {
    match &file.state {
        FileState::Missing => original.unread.first().map(|unread| unread.problem.clone()),
        FileState::Fails(reason) if reason.contains(codes::CANNOT_READ.id) => {
            Some(Diagnostic::error(codes::CANNOT_READ, reason).in_file(&file.path))
        }
        _ => None,
    }
}

/// A file that is missing, or code that is not for the GPU. An index that cannot be read is refused with its library.
fn source_lack(file: &OpenedFile, gpu: &SeenGpu) -> Option<SourceLack> {
    let is_code = file.path.extension().is_some_and(|end| ["co", "hsaco", "kpack"].iter().any(|code| end == *code));
    let state = match &file.state {
        FileState::Missing => "it does not exist".to_owned(),
        FileState::Fails(reason) if is_code => format!("HIP loads nothing from it: {reason}"),
        _ => return None,
    };
    let what = format!("{} opens it on {} ({}), and {state}", file.library, gpu.shown, file.because);
    Some(SourceLack { library: file.library, problem: Diagnostic::warning(codes::LACKS_GPU, what).in_file(&file.path) })
}

/// The lacks of served libraries, as warnings: each file once, a few of each library by name.
pub(crate) fn lack_warnings(lacks: &[SourceLack], is_served: impl Fn(&str) -> bool) -> Vec<Diagnostic> {
    const SHOWN: usize = 5;
    let mut by_library: BTreeMap<&str, Vec<&Diagnostic>> = BTreeMap::new();
    for lack in lacks.iter().filter(|lack| is_served(lack.library)) {
        let known = by_library.entry(lack.library).or_default();
        if known.iter().all(|one| one.place.file != lack.problem.place.file) {
            known.push(&lack.problem);
        }
    }
    let mut warnings = Vec::new();
    for (library, problems) in by_library {
        warnings.extend(problems.iter().take(SHOWN).map(|problem| (*problem).clone()));
        if let Some(more) = problems.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            let what = format!("{more} more files of {library} do not exist, or give the source nothing");
            warnings.push(Diagnostic::warning(codes::LACKS_GPU, what));
        }
    }
    warnings
}

/// The losses of the GPUs of a tree or package when its files change, under the names that it shows them: of every GPU that data
/// files or shown names are for, except those whose names `is_dropped` accepts.
///
/// # Errors
/// Files with shown names that cannot be read.
pub fn tree_losses(
    original: &LibraryTree,
    changed: &LibraryTree,
    is_dropped: &dyn Fn(&str) -> bool,
) -> Result<Vec<UseLoss>, Diagnostic> {
    let (old_names, new_names) = (names_of_tree(original)?, names_of_tree(changed)?);
    let (before, after) = (TreeReader::new(original), TreeReader::new(changed));
    let mut gpus = data_gpus(original);
    gpus.extend(old_names.iter().map(|name| name.own.clone()));
    let mut losses = Vec::new();
    for gpu in gpus.iter().filter(|gpu| !is_dropped(gpu)) {
        for device in modes_of_gpu(gpu) {
            let old = SeenGpu { device, shown: shown_name(&old_names, gpu).to_owned() };
            let new = SeenGpu { device, shown: shown_name(&new_names, gpu).to_owned() };
            losses.extend(before.use_of_gpu(&old).losses(&after.use_of_gpu(&new)));
            losses.extend(before.host_losses(&after, &old, &new));
        }
    }
    Ok(losses)
}

/// The losses of GPUs when a package is served: those of its data files ([`tree_losses`]), and the targets, compared
/// with their sources, in the libraries that are served: the others see the target's own name.
///
/// # Errors
/// Files with shown names that cannot be read.
pub fn package_losses(
    original: &LibraryTree,
    served: &LibraryTree,
    manifest: &TreeManifest,
) -> Result<Vec<UseLoss>, Diagnostic> {
    let new_names = names_of_tree(served)?;
    let mut losses = tree_losses(original, served, &|_| false)?;
    let (before, after) = (TreeReader::new(original), TreeReader::new(served));
    for row in &manifest.wanted {
        for device in modes_of_gpu(&row.target) {
            let seen = SeenGpu { device, shown: shown_name(&new_names, &row.target).to_owned() };
            let given = after.use_of_gpu(&seen);
            // A file that the package lacked for the source may be missing for the target.
            let sources = modes_of_gpu(&row.source);
            let source = sources.iter().find(|source| source.xnack == device.xnack).or(sources.first());
            let Some(source) = source else { continue };
            let own = before.use_of_gpu(&SeenGpu { device: *source, shown: row.source.clone() });
            losses.extend(own.losses(&given).into_iter().filter(|one| is_served_loss(one, manifest, row)));
        }
    }
    Ok(losses)
}

fn is_served_loss(loss: &UseLoss, manifest: &TreeManifest, row: &WantedTarget) -> bool {
    let mut rows = manifest.files.iter().filter(|file| file.wanted.contains(row));
    rows.any(|file| file.library.as_deref() == loss.library)
}

/// The GPUs that data files of the tree are for.
fn data_gpus(tree: &LibraryTree) -> BTreeSet<String> {
    let found = tree.files.iter().filter_map(|(relative, path)| rules::find_rule(path, relative));
    found.filter(|found| !found.rule().directories.is_empty()).filter_map(|found| found.gpu).collect()
}

/// The first file that a GPU had from a tree of an earlier run, and that this run would not make for it.
///
/// # Errors
/// [`codes::LOAD_LOST`] with the GPU and the file.
pub(crate) fn refuse_forgotten_gpus(past: &TreeManifest, request: &ServeRequest) -> Result<(), Diagnostic> {
    let asked: BTreeSet<&String> = request.targets.iter().chain(&request.keep).collect();
    let mut served = past.wanted.iter().map(|row| &row.target).chain(&past.maker.settings.keep);
    let Some(gpu) = served.find(|gpu| !asked.contains(gpu)) else { return Ok(()) };
    let mut rows = past.files.iter().filter(|row| !TreeManifest::is_own(row));
    let made = rows.clone().find(|row| row.wanted.iter().any(|wanted| wanted.target == *gpu));
    let Some(row) = made.or(rows.next()) else { return Ok(()) };
    let what = format!(
        "{gpu} would lose {}: an earlier run has made it, and this one does not name {gpu}",
        row.path.display()
    );
    let error = Diagnostic::error(codes::LOAD_LOST, what);
    Err(error.advise(format!(
        "name {gpu} as well, choose another --dest, or remove the tree by `hotswap serve --undo` first"
    )))
}

/// The losses of host libraries that stay in a directory when rows of HotSwap are removed from it: a library that the user has put there
/// or changed, and files that it opens. Libraries that go with their files lose nothing.
///
/// # Errors
/// A directory that cannot be read.
pub(crate) fn removal_losses(destination: &Path, removed: &BTreeSet<PathBuf>) -> Result<Vec<UseLoss>, Diagnostic> {
    let before = tree::read_tree(&[destination.to_owned()])?;
    if let Some(unread) = before.unread.first() {
        return Err(unread.problem.clone());
    }
    let mut after = before.clone();
    after.files.retain(|path, _| !removed.contains(path));
    after.links.retain(|path, _| !removed.contains(path));
    let staying = staying_libraries(&after);
    if staying.is_empty() {
        return Ok(Vec::new());
    }
    let losses = tree_losses(&before, &after, &|_| false)?;
    Ok(losses.into_iter().filter(|loss| loss.library.is_some_and(|library| staying.contains(library))).collect())
}

/// The libraries with data files whose host libraries are in the tree.
fn staying_libraries(tree: &LibraryTree) -> BTreeSet<&'static str> {
    let found = tree.files.iter().filter_map(|(relative, path)| tree.rule(relative, path));
    let hosts = found.map(|found| found.rule()).filter(|rule| rule.kind == rules::FileKind::Host);
    hosts.map(|rule| rule.library).collect()
}

fn compared_gpus(wanted: &[WantedTarget], settings: &ServeRequest) -> Vec<ComparedGpu> {
    let mut compared = Vec::new();
    for row in wanted {
        let shown = if settings.names == NameMode::Source { &row.source } else { &row.target };
        let (sources, targets) = (modes_of_gpu(&row.source), modes_of_gpu(&row.target));
        for target in targets {
            let alike = sources.iter().find(|source| source.xnack == target.xnack && source.sramecc == target.sramecc);
            let Some(source) = alike.or(sources.first()) else { continue };
            compared.push(ComparedGpu {
                before: SeenGpu { device: *source, shown: row.source.clone() },
                after: SeenGpu { device: target, shown: shown.clone() },
            });
        }
    }
    for gpu in &settings.keep {
        compared.extend(modes_of_gpu(gpu).into_iter().map(|device| {
            let seen = SeenGpu { device, shown: gpu.clone() };
            ComparedGpu { before: seen.clone(), after: seen }
        }));
    }
    compared
}

fn modes_of_gpu(gpu: &str) -> Vec<TargetId> {
    gpu.parse().map(|target| DeviceModes::of_target(target).modes).unwrap_or_default()
}

/// The losses in files of the libraries with these outputs.
pub(crate) fn of_library<'l>(losses: &'l [UseLoss], library: &str, outputs: &BTreeSet<&Path>) -> Vec<&'l UseLoss> {
    let is_its =
        |loss: &&UseLoss| loss.library == Some(library) || loss.library.is_none() && outputs.contains(&*loss.path);
    losses.iter().filter(is_its).collect()
}
