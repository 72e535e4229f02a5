//! The files of a package that a GPU needs although their names are those of another one: those that host libraries open on it, by
//! its own name or a shown one, and those that links lead to.

use super::Pruning;
use crate::work::package_tree::{FileSet, PackageTree};
use crate::work::packages;
use hotswap_load_model::tree::LibraryTree;
use hotswap_load_model::{DeviceModes, SeenGpu, TreeReader};
use hotswap_packages::UnpackedLink;
use hotswap_report::Diagnostic;
use hotswap_stack::package_names::{ShownName, names_of_tree, shown_name};
use hotswap_targets::TargetId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The names that a package shows, its links, and what is opened on the GPUs that are kept.
#[derive(Debug, Default)]
pub(super) struct PackageNeeds {
    names: Vec<ShownName>,
    links: Vec<MemberLink>,
    /// The GPUs that are kept, in each of their modes.
    kept: Vec<SeenGpu>,
    /// The paths that their libraries open.
    opened: BTreeSet<PathBuf>,
}

/// A link with the place in the package that it leads to.
#[derive(Debug)]
struct MemberLink {
    name: PathBuf,
    target: PathBuf,
}

impl MemberLink {
    /// A link that leads to a place in the package.
    fn inside(link: &UnpackedLink) -> Option<Self> {
        Some(Self { name: PathBuf::from(&link.name), target: link.target()? })
    }
}

impl PackageNeeds {
    /// Asks about all links first, because links may follow the files that they concern.
    pub(super) fn read(
        package: &PackageTree,
        reader: &TreeReader<'_>,
        pruning: &Pruning<'_>,
    ) -> Result<Self, Diagnostic> {
        let tree = &package.tree;
        let links = package.links()?.iter().filter_map(MemberLink::inside).collect();
        let names = names_of_tree(tree)?;
        let kept = kept_gpus(tree, &names, pruning);
        let opened = kept.iter().flat_map(|gpu| reader.use_of_gpu(gpu).paths(tree)).collect();
        Ok(Self { names, links, kept, opened })
    }

    /// Whether a GPU that is kept needs the data with the name `gpu`: it is that GPU, or hosts are shown that name on it.
    pub(super) fn keeps_data(&self, gpu: &str, pruning: &Pruning<'_>) -> bool {
        let shown = self.names.iter().filter(|name| name.shown == gpu);
        !pruning.drops(gpu) || shown.into_iter().any(|name| !pruning.drops(&name.own))
    }

    /// Whether a library opens the file on a GPU that is kept.
    pub(super) fn is_opened(&self, member: &str) -> bool {
        self.opened.contains(Path::new(member))
    }

    /// Whether a link goes with the data of a GPU that is dropped.
    pub(super) fn drops_link(&self, name: &str, pruning: &Pruning<'_>) -> bool {
        let gpu = packages::gpu_of(name).filter(|_| !self.is_opened(name));
        gpu.is_some_and(|gpu| !self.keeps_data(&gpu, pruning))
    }

    /// Whether a link that stays leads to the file.
    pub(super) fn is_linked(&self, member: &str, pruning: &Pruning<'_>) -> bool {
        let member = Path::new(member);
        self.links
            .iter()
            .filter(|one| is_kept_link(one, self, pruning))
            .any(|link| self.resolve(&link.target) == member)
    }

    /// The end of a chain of links; as many steps as there are links, so that a cycle ends.
    fn resolve<'n>(&'n self, target: &'n Path) -> &'n Path {
        let mut target = target;
        for _ in 0..self.links.len() {
            match self.links.iter().find(|link| link.name == target) {
                Some(next) => target = &next.target,
                None => break,
            }
        }
        target
    }

    /// Compares what the kept GPUs get from the package and from the new one.
    ///
    /// # Errors
    /// The first loss, and a new package that cannot be read.
    pub(super) fn check_losses(&self, before: &TreeReader<'_>, new: &Path, form: FileSet) -> Result<(), Diagnostic> {
        let package = PackageTree::of_files(new, form)?;
        let after = TreeReader::new(&package.tree);
        for gpu in &self.kept {
            let mut losses = before.use_of_gpu(gpu).losses(&after.use_of_gpu(gpu));
            losses.extend(before.host_losses(&after, gpu, gpu));
            if let Some(loss) = losses.into_iter().next() {
                return Err(loss.into());
            }
        }
        Ok(())
    }
}

fn is_kept_link(link: &&MemberLink, needs: &PackageNeeds, pruning: &Pruning<'_>) -> bool {
    let gpu = link.name.to_str().and_then(packages::gpu_of);
    gpu.is_none_or(|gpu| needs.keeps_data(&gpu, pruning))
}

/// The named GPUs; where targets are dropped, every other GPU that files or shown names of the package have.
fn kept_gpus(tree: &LibraryTree, names: &[ShownName], pruning: &Pruning<'_>) -> Vec<SeenGpu> {
    let targets: Vec<TargetId> = if pruning.keeps {
        pruning.targets.iter().filter(|target| !target.processor.is_generic()).copied().collect()
    } else {
        let of_files = tree.files.keys().filter_map(|path| path.to_str().and_then(packages::gpu_of));
        let named: BTreeSet<String> = of_files.chain(names.iter().map(|name| name.own.clone())).collect();
        named.into_iter().filter(|gpu| !pruning.drops(gpu)).filter_map(|gpu| gpu.parse().ok()).collect()
    };
    targets
        .into_iter()
        .flat_map(|target| DeviceModes::of_target(target).modes)
        .map(|one| make_seen_gpu(one, names))
        .collect()
}

fn make_seen_gpu(device: TargetId, names: &[ShownName]) -> SeenGpu {
    let shown = shown_name(names, device.processor.name).to_owned();
    SeenGpu { device, shown }
}
