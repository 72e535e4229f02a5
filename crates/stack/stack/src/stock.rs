//! The targets of the code in a file, by the tables of its containers alone.

use hotswap_bundle::{ARCHIVE_REFERENCES, ContainerForm, EntryId, FoundContainer, linked, open_with};
use hotswap_code_object::{CodeObject, is_code_object};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use std::collections::BTreeSet;
use std::path::Path;

/// The code in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stock {
    /// The targets of each container that has code for AMD GPUs.
    pub containers: Vec<Vec<TargetId>>,
    /// Whether it is a program or library, or else a file of code objects.
    pub is_linked: bool,
    /// Whether its code is in kernel archives.
    pub is_archived: bool,
    /// Whether it is a program or library for Windows.
    pub is_windows: bool,
}

impl Stock {
    /// The code in a file; `None` for a file without any.
    ///
    /// # Errors
    /// A file that cannot be read, and a damaged container, with the file.
    pub(crate) fn of_file(path: &Path) -> Result<Option<Self>, Diagnostic> {
        let input = hotswap_files::open_input(path)?;
        let (is_linked, is_windows) = (linked::is_linked(&input), is_portable_executable(&input));
        if !is_linked && !is_windows && !is_code_object(&input) && !hotswap_bundle::is_bundle(&input) {
            return Ok(None);
        }
        let contents = open_with(&input, ARCHIVE_REFERENCES);
        let is_archived = !contents.sections.is_empty();
        if let Some(problem) = contents.problems.into_iter().find(|problem| !is_archive_problem(problem, is_archived)) {
            return Err(problem.in_file(path));
        }
        let mut containers = Vec::new();
        for found in &contents.found {
            let targets = targets_of(found).map_err(|error| error.in_file(path))?;
            input.release(found.bytes);
            if !targets.is_empty() {
                containers.push(targets);
            }
        }
        Ok(Some(Self { containers, is_linked, is_archived, is_windows }))
    }

    /// Names of the processors.
    pub(crate) fn processors(&self) -> BTreeSet<&'static str> {
        self.containers.iter().flatten().map(|target| target.processor.name).collect()
    }

    /// Whether each container has code that this processor runs.
    pub(crate) fn serves_processor(&self, processor: &str) -> bool {
        !self.containers.is_empty() && self.containers.iter().all(|targets| any_runs_on(targets, processor))
    }
}

/// Programs and libraries for Windows: the signature of PE is at the offset that the field at 60 has.
fn is_portable_executable(file: &[u8]) -> bool {
    let field = file.get(60..64).and_then(|field| field.try_into().ok()).map(u32::from_le_bytes);
    let header = field.and_then(|at| file.get(at as usize..));
    file.starts_with(b"MZ") && header.is_some_and(|header| header.starts_with(b"PE\0\0"))
}

/// Its wrappers name archives, which are files of their own.
fn is_archive_problem(problem: &Diagnostic, is_archived: bool) -> bool {
    is_archived && problem.what.contains("kpack")
}

/// Whether a file was read and lacks code.
pub(crate) fn is_without_code(path: &Path) -> bool {
    Stock::of_file(path).is_ok_and(|stock| stock.is_none_or(|stock| stock.containers.is_empty()))
}

/// Whether a reason is that a file could not be read, and so tells nothing about its content.
pub(crate) fn is_unread(reason: &Diagnostic) -> bool {
    reason.code == codes::CANNOT_READ
}

/// Whether one of these targets is the processor, or a generic target that covers it.
pub(crate) fn any_runs_on(targets: &[TargetId], processor: &str) -> bool {
    let Some(wanted) = hotswap_targets::find_processor(processor) else { return false };
    targets.iter().any(|target| target.processor == wanted || target.processor.covers(wanted))
}

/// The targets of HIP code in a container; the content of a compressed one is read only where its
/// table does not suffice.
///
/// # Errors
/// The diagnostic of a damaged container.
pub fn targets_of(found: &FoundContainer<'_>) -> Result<Vec<TargetId>, Diagnostic> {
    if found.form == ContainerForm::Bare {
        let (code, _) = hotswap_bundle::split_record(found.bytes)?;
        return Ok(vec![CodeObject::parse(code)?.target_id()]);
    }
    if !found.form.takes_targets() {
        return Ok(Vec::new());
    }
    if let Some(table) = found.table()? {
        return Ok(table.iter().filter(|(_, size)| *size > 0).filter_map(|(id, _)| target_of_entry(id)).collect());
    }
    let images = found.read()?.images.into_iter().filter(|image| !image.data.is_empty());
    Ok(images.filter_map(|image| target_of_entry(image.id.as_deref()?)).collect())
}

fn target_of_entry(id: &str) -> Option<TargetId> {
    let id = EntryId::parse(id).ok().filter(EntryId::is_amdgpu)?;
    id.target()?.parse().ok()
}
