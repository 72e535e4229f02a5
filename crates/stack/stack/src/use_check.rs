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
use hotswap_load_model::{DeviceModes, SeenGpu, TreeReader, UseLoss};
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::TargetId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A GPU with what it is compared to.
struct ComparedGpu {
    before: SeenGpu,
    after: SeenGpu,
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
    /// The losses, each with the file in the roots or in the tree.
    ///
    /// # Errors
    /// Roots or a destination that cannot be read.
    pub(crate) fn find_losses(&self) -> Result<Vec<UseLoss>, Diagnostic> {
        let original = tree::read_tree(self.roots)?;
        let mut served = tree::read_tree(&[self.destination.to_owned()])?;
        served.intended = self.intended_paths()?;
        // An output that could not be read is not lost.
        if let Some(unread) = served.unread.first() {
            return Err(unread.problem.clone());
        }
        let losses = compare_use(&original, &served, self.wanted, self.settings)?;
        match losses.iter().find(|loss| loss.reason.contains(codes::CANNOT_READ.id)) {
            Some(unread) => Err(Diagnostic::error(codes::CANNOT_READ, &unread.reason).in_file(&unread.path)),
            None => Ok(losses),
        }
    }

    /// A root may be inside of the directories by which a library is known, which the destination does not have.
    fn intended_paths(&self) -> Result<BTreeMap<PathBuf, PathBuf>, Diagnostic> {
        let mut roots = Vec::new();
        for root in self.roots {
            let root = tree::canonical_path(root)?;
            let meta = std::fs::metadata(&root);
            let meta = meta.map_err(|error| Diagnostic::error(codes::CANNOT_READ, error.to_string()).in_file(&root))?;
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
) -> Result<Vec<UseLoss>, Diagnostic> {
    let (before, after) = (TreeReader::new(original), TreeReader::new(served));
    if let Some(unread) = after.problems.iter().find(|problem| is_unread(problem)) {
        return Err(unread.clone());
    }
    let mut losses = Vec::new();
    for gpu in compared_gpus(wanted, settings) {
        losses.extend(before.use_of_gpu(&gpu.before).losses(&after.use_of_gpu(&gpu.after)));
        losses.extend(before.host_losses(&after, &gpu.before, &gpu.after));
    }
    Ok(losses)
}

/// The losses of GPUs when a package is served: those of its data files, under the names that it shows them, and the targets, compared
/// with their sources, in the libraries that are served: the others see the target's own name.
///
/// # Errors
/// Files with shown names that cannot be read.
pub fn package_losses(
    original: &LibraryTree,
    served: &LibraryTree,
    manifest: &TreeManifest,
) -> Result<Vec<UseLoss>, Diagnostic> {
    let (old_names, new_names) = (names_of_tree(original)?, names_of_tree(served)?);
    let (before, after) = (TreeReader::new(original), TreeReader::new(served));
    let mut losses = Vec::new();
    for gpu in data_gpus(original).union(&old_names.iter().map(|name| name.own.clone()).collect()) {
        for device in modes_of_gpu(gpu) {
            let old = SeenGpu { device, shown: shown_name(&old_names, gpu).to_owned() };
            let new = SeenGpu { device, shown: shown_name(&new_names, gpu).to_owned() };
            losses.extend(before.use_of_gpu(&old).losses(&after.use_of_gpu(&new)));
            losses.extend(before.host_losses(&after, &old, &new));
        }
    }
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

fn compared_gpus(wanted: &[WantedTarget], settings: &ServeRequest) -> Vec<ComparedGpu> {
    let mut compared = Vec::new();
    for row in wanted {
        let shown = if settings.names == NameMode::Source { &row.source } else { &row.target };
        let (sources, targets) = (modes_of_gpu(&row.source), modes_of_gpu(&row.target));
        for target in targets {
            let is_like = |source: &&TargetId| source.xnack == target.xnack && source.sramecc == target.sramecc;
            let Some(source) = sources.iter().find(is_like).or(sources.first()) else { continue };
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
