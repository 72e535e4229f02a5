//! The answer for a tree of files: what HIP loads from its programs and libraries for a GPU, and which data files its host
//! libraries open; and what a change of the tree takes from the GPU.
//!
//! Invariants: files are found as the file system has them, links followed. Two answers are compared by roles, so that a tree whose
//! files have another GPU's name can be compared with the original.
//!
//! Absent on purpose: reading packages, whose files the caller writes into a directory.

use crate::archive_reference::ArchiveReference;
use crate::choice::{EntryChoice, choose_entry};
use crate::container::ReadDepth;
use crate::data_use::{DataReader, FileState, OpenedFile, SeenGpu};
use crate::file_use::FileUse;
use crate::generics::generic_of;
use crate::libraries::{ARCHIVES, FileKind};
use crate::loss::{ComparedDevices, losses_between};
use crate::tree::LibraryTree;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A program or library of a tree, or another file with device code.
#[derive(Debug)]
pub struct HostUse {
    pub answer: FileUse,
    /// Its references to kernel archives.
    pub references: Vec<ArchiveReference>,
    /// The GPU in its name, for a library that is opened by it.
    pub gpu: Option<String>,
}

/// Reads a tree once, and answers for any number of GPUs.
#[derive(Debug)]
pub struct TreeReader<'t> {
    tree: &'t LibraryTree,
    data: DataReader<'t>,
    hosts: BTreeMap<PathBuf, HostUse>,
    /// Files that cannot be read.
    pub problems: Vec<Diagnostic>,
}

/// The data files that a GPU's libraries open in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeUse {
    pub gpu: SeenGpu,
    /// The files in the order of their paths.
    pub files: Vec<OpenedFile>,
}

/// A file that a GPU gets less from after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UseLoss {
    pub device: TargetId,
    /// The library of a data file; none for programs and libraries themselves.
    pub library: Option<&'static str>,
    /// The file below the root.
    pub path: PathBuf,
    pub reason: String,
}

impl<'t> TreeReader<'t> {
    /// Reads the programs and libraries of the tree; data files are read when they are asked for.
    pub fn new(tree: &'t LibraryTree) -> Self {
        let mut reader =
            Self { tree, data: DataReader::new(tree), hosts: BTreeMap::new(), problems: tree.remarks.clone() };
        reader.problems.extend(tree.unread.iter().map(|unread| unread.problem.clone()));
        for (relative, path) in &tree.files {
            let Some(found) = tree.rule(relative, path) else { continue };
            if !matches!(found.rule().kind, FileKind::FatBinary | FileKind::Host) {
                continue;
            }
            match read_host(path, found.gpu) {
                Ok(Some(host)) => drop(reader.hosts.insert(relative.clone(), host)),
                Ok(None) => {}
                Err(error) => reader.problems.push(error.in_file(path)),
            }
        }
        reader
    }

    /// The programs and libraries with device code, or with references to archives, by their paths.
    pub fn hosts(&self) -> impl Iterator<Item = (&Path, &HostUse)> {
        self.hosts.iter().map(|(path, host)| (path.as_path(), host))
    }

    /// The data files that libraries open for a GPU.
    pub fn use_of_gpu(&self, gpu: &SeenGpu) -> TreeUse {
        let mut files = self.data.opened_files(gpu);
        for (path, host) in &self.hosts {
            files.extend(host.references.iter().map(|reference| self.archive_opened(path, reference, gpu)));
        }
        TreeUse { gpu: gpu.clone(), files }
    }

    /// The archive that HIP opens for a library: by the GPU's own name, then by its generic target's.
    fn archive_opened(&self, host: &Path, reference: &ArchiveReference, gpu: &SeenGpu) -> OpenedFile {
        let own = gpu.device.processor.name;
        let names = [Some(own), generic_of(own).map(|row| row.generic)];
        let directory = host.parent().unwrap_or(Path::new(""));
        let paths = names.into_iter().flatten().flat_map(|name| reference.paths_for(name));
        let paths: Vec<PathBuf> = paths.map(|path| directory.join(path)).collect();
        let found = paths.iter().find(|path| self.tree.find_file(path).is_some());
        let state = found.map_or(FileState::Missing, |path| self.archived_code(path, reference, gpu));
        let path = found.or(paths.first()).and_then(|path| self.tree.resolve_path(path)).unwrap_or_default();
        OpenedFile {
            library: ARCHIVES,
            role: format!("archive of {} for {}", reference.binary, host.display()),
            path,
            because: format!("reference of {}", host.display()),
            state,
            is_optional: false,
        }
    }

    fn archived_code(&self, path: &Path, reference: &ArchiveReference, gpu: &SeenGpu) -> FileState {
        let answer = match read_file_use(self.tree, path) {
            Ok(answer) => answer,
            Err(error) => return FileState::Fails(Diagnostic::to_string(&error)),
        };
        let mut entries = Vec::new();
        for container in
            answer.containers.iter().filter(|container| is_referenced_member(&container.members, reference))
        {
            match choose_entry(container, &gpu.device) {
                EntryChoice::Loaded { index, .. } => entries.push(container.entries[index].id.clone()),
                EntryChoice::Nothing(failure) => return FileState::Fails(failure.to_string()),
            }
        }
        if entries.is_empty() {
            return FileState::Fails(format!("the archive has nothing for {}", reference.binary));
        }
        FileState::Loads(entries)
    }

    /// The losses in programs and libraries that are in both trees: code that `old` gets from this tree, and `new` does
    /// not get from the other.
    pub fn host_losses(&self, after: &TreeReader<'_>, old: &SeenGpu, new: &SeenGpu) -> Vec<UseLoss> {
        let mut losses = Vec::new();
        for (path, host) in &self.hosts {
            let is_opened = host.gpu.as_ref().is_none_or(|gpu| *gpu == old.shown);
            let Some(changed) = after.hosts.get(path).filter(|_| is_opened) else { continue };
            let pair = ComparedDevices { before: old.device, after: new.device };
            let lost = losses_between(&host.answer, &changed.answer, pair).into_iter().next();
            losses.extend(lost.map(|loss| {
                let reason = format!("{} ({}): {}", loss.place, loss.entry, loss.reason);
                UseLoss { device: new.device, library: None, path: path.clone(), reason }
            }));
        }
        losses
    }
}

fn read_file_use(tree: &LibraryTree, path: &Path) -> Result<FileUse, Diagnostic> {
    let input = hotswap_files::open_input(tree.find_file(path).unwrap_or(path))?;
    Ok(FileUse::read(&input, &hotswap_bundle::find_containers(&input), ReadDepth::Headers))
}

fn is_referenced_member(members: &[String], reference: &ArchiveReference) -> bool {
    members.last().is_some_and(|name| reference.is_its(name))
}

fn read_host(path: &Path, gpu: Option<String>) -> Result<Option<HostUse>, Diagnostic> {
    let input = hotswap_files::open_input(path)?;
    let references = ArchiveReference::read(&input)?;
    let contents = hotswap_bundle::find_containers(&input);
    if contents.found.is_empty() && references.is_empty() {
        return Ok(None);
    }
    Ok(Some(HostUse { answer: FileUse::read(&input, &contents, ReadDepth::Headers), references, gpu }))
}

impl TreeUse {
    /// The paths of the files that exist: as libraries open them, and as links lead.
    pub fn paths(&self, tree: &LibraryTree) -> BTreeSet<PathBuf> {
        let existing = self.files.iter().filter(|file| file.state != FileState::Missing);
        existing
            .flat_map(|file| [Some(file.path.clone()), tree.resolve_path(&file.path)].into_iter().flatten())
            .collect()
    }

    /// The files that are not what the library asks for.
    pub fn faults(&self) -> impl Iterator<Item = &OpenedFile> {
        self.files.iter().filter(|file| !file.state.is_good() && !file.is_optional)
    }

    /// The files that were good before and are not after the change. Those that nothing asks for any more come last: their loss
    /// follows from another one.
    pub fn losses(&self, after: &Self) -> Vec<UseLoss> {
        let now: BTreeMap<&str, &OpenedFile> = after.files.iter().map(|file| (file.role.as_str(), file)).collect();
        let (mut lost, mut following) = (Vec::new(), Vec::new());
        for old in self.files.iter().filter(|file| file.state.is_good()) {
            match now.get(old.role.as_str()).map(|new| (&new.path, &new.state)) {
                Some((_, state)) if state.is_good() => {}
                Some((path, FileState::Fails(reason))) => {
                    lost.push(after.loss_of(old, &format!("{}: {reason}", path.display())));
                }
                Some((path, _)) => {
                    lost.push(after.loss_of(old, &format!("{} does not exist any more", path.display())))
                }
                None => following.push(after.loss_of(old, "nothing in its place is opened any more")),
            }
        }
        lost.append(&mut following);
        lost
    }

    fn loss_of(&self, old: &OpenedFile, reason: &str) -> UseLoss {
        let reason = format!("{reason} ({})", old.because);
        UseLoss { device: self.gpu.device, library: Some(old.library), path: old.path.clone(), reason }
    }
}

impl From<UseLoss> for Diagnostic {
    fn from(loss: UseLoss) -> Self {
        let UseLoss { device, path, reason, .. } = loss;
        let what = format!("{device} would lose {}: {reason}", path.display());
        Self::error(codes::LOAD_LOST, what)
    }
}
