//! A file with device code: its containers and their entries.
//!
//! Invariant: compressed bundles are decompressed only when one of their images is asked for; of others nothing is copied.

use crate::call_error::{CallError, c_string};
use crate::device_image::{DeviceImage, ImageBytes};
use crate::file_bytes::FileBytes;
use hotswap_bundle::{EntryBytes, EntryId, FoundContainer, FoundContents, ImageKind, OffloadKind};
use hotswap_code_object::CodeObject;
use hotswap_report::Diagnostic;
use std::ffi::CString;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The kind of an entry, `hotswap_entry_kind` in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum EntryForm {
    Empty = 0,
    CodeObject = 1,
    DeviceObject = 2,
    Bitcode = 3,
    SpirV = 4,
    Other = 5,
    Compressed = 6,
}

/// One entry of a container.
#[derive(Debug)]
pub(crate) struct EntryRow {
    pub(crate) form: EntryForm,
    pub(crate) container: u32,
    /// Its number in the container.
    image: usize,
    pub(crate) size: u64,
    pub(crate) file_offset: u64,
    pub(crate) id: CString,
    pub(crate) target: CString,
    pub(crate) place: CString,
    /// Its bytes in the file; `None` where they are compressed.
    range: Option<Range<usize>>,
}

/// The contents behind a `hotswap_file`: its entries, and the containers that could not be read.
#[derive(Debug)]
pub struct DeviceFile {
    bytes: Arc<FileBytes>,
    pub(crate) entries: Vec<EntryRow>,
    pub(crate) problems: Vec<CString>,
}

impl DeviceFile {
    /// Maps a file and reads its tables of entries.
    ///
    /// # Errors
    /// `CannotRead`; `BadInput` for a file in which nothing can be read.
    pub fn open(path: &Path) -> Result<Self, CallError> {
        let input = hotswap_files::open_input(path)?;
        Self::read(FileBytes::Mapped(input)).map_err(|error| CallError::from(error.in_file(path)))
    }

    /// The same for a copy of bytes.
    ///
    /// # Errors
    /// The same as those of [`Self::open`].
    pub fn from_memory(bytes: &[u8]) -> Result<Self, CallError> {
        Ok(Self::read(FileBytes::Owned(bytes.to_vec()))?)
    }

    fn read(bytes: FileBytes) -> Result<Self, Diagnostic> {
        let FoundContents { found, mut problems, .. } = hotswap_bundle::find_containers(&bytes);
        let mut entries = Vec::new();
        for (number, container) in found.iter().enumerate() {
            match rows_of_container(&bytes, container, number as u32) {
                Ok(rows) => entries.extend(rows),
                Err(problem) => problems.push(problem),
            }
        }
        if entries.is_empty() && !problems.is_empty() {
            return Err(problems.swap_remove(0));
        }
        let problems = problems.iter().map(|problem| c_string(problem.to_string())).collect();
        drop(found);
        Ok(Self { bytes: Arc::new(bytes), entries, problems })
    }

    /// The image of an entry.
    ///
    /// # Errors
    /// `BadInput` where it is damaged, or no code object.
    pub fn image_of_entry(&self, entry: usize) -> Result<DeviceImage, CallError> {
        let row = self.entry_row(entry)?;
        if let Some(range) = &row.range {
            return DeviceImage::new(ImageBytes::Part(Arc::clone(&self.bytes), range.clone()));
        }
        let contents = hotswap_bundle::find_containers(&self.bytes);
        let container = contents.found.get(row.container as usize);
        if let Some(bytes) = container.map(|container| container.entry(row.image)).transpose()?.flatten() {
            return DeviceImage::new(ImageBytes::Owned(bytes));
        }
        let image = container.map(FoundContainer::read).transpose()?.and_then(|device| {
            let image = device.images.get(row.image)?;
            Some(image.data.to_vec())
        });
        let bytes = image.ok_or_else(|| CallError::not_found("the container has fewer entries than its table"))?;
        DeviceImage::new(ImageBytes::Owned(bytes))
    }

    pub(crate) fn entry_row(&self, entry: usize) -> Result<&EntryRow, CallError> {
        let count = self.entries.len();
        self.entries.get(entry).ok_or_else(|| CallError::invalid_argument(format!("entry {entry} of {count}")))
    }
}

/// The members that all rows of a container have alike.
struct ContainerRows {
    container: u32,
    file_offset: u64,
    place: CString,
}

impl ContainerRows {
    /// The row of an entry whose bytes are not known yet.
    fn compressed_row(&self, image: usize, id: Option<&str>, size: u64) -> EntryRow {
        EntryRow {
            form: EntryForm::Compressed,
            container: self.container,
            image,
            size,
            file_offset: self.file_offset,
            id: c_string(id.unwrap_or_default()),
            target: c_string(id.and_then(target_of).unwrap_or_default()),
            place: self.place.clone(),
            range: None,
        }
    }
}

/// The rows of a container. The table of a compressed one is enough.
fn rows_of_container(file: &[u8], container: &FoundContainer<'_>, number: u32) -> Result<Vec<EntryRow>, Diagnostic> {
    let place = c_string(container.place.to_string());
    let rows = ContainerRows { container: number, file_offset: container.place.file_offset, place };
    if let Some(table) = container.table()? {
        let compressed = table.iter().enumerate().map(|(image, (id, size))| {
            let form = if is_host(id) { EntryForm::Empty } else { EntryForm::Compressed };
            EntryRow { form, ..rows.compressed_row(image, Some(id), *size) }
        });
        return Ok(compressed.collect());
    }
    let device = container.read()?;
    let read = device.images.iter().enumerate().map(|(number, image)| {
        let mut entry = rows.compressed_row(number, image.id.as_deref(), image.data.len() as u64);
        entry.range = range_in(file, &image.data);
        entry.form = form_of(image.kind);
        if entry.target.is_empty() && entry.form == EntryForm::CodeObject {
            let target = CodeObject::parse(&image.data).map(|object| object.target_id().to_string());
            entry.target = c_string(target.unwrap_or_default());
        }
        entry
    });
    Ok(read.collect())
}

fn target_of(id: &str) -> Option<String> {
    Some(EntryId::parse(id).ok()?.target()?.to_owned())
}

fn is_host(id: &str) -> bool {
    EntryId::parse(id).is_ok_and(|id| *id.kind() == OffloadKind::Host)
}

fn form_of(kind: ImageKind) -> EntryForm {
    match kind {
        ImageKind::Empty => EntryForm::Empty,
        ImageKind::CodeObject => EntryForm::CodeObject,
        ImageKind::DeviceObject => EntryForm::DeviceObject,
        ImageKind::Bitcode => EntryForm::Bitcode,
        ImageKind::SpirV => EntryForm::SpirV,
        ImageKind::OtherElf | ImageKind::Container | ImageKind::Unknown => EntryForm::Other,
    }
}

/// The position of a part of the file; `None` for bytes that were decompressed.
fn range_in(file: &[u8], part: &EntryBytes<'_>) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(file.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    (end <= file.len()).then_some(start..end)
}
