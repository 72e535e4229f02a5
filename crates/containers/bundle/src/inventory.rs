//! The containers of a file with their images and records, read one by one: what commands that only read begin with.
//!
//! Invariant: a decompressed container lives only as long as its visit; one damaged container does not hide the others.
//!
//! Absent on purpose: text and JSON, and the progress on a terminal, which callers show.

use crate::{
    ContainerImage, DeviceContents, EntryId, EntrySize, FoundContainer, FoundContents, HashState, ImageKind,
    OffloadKind,
};
use hotswap_code_object::{CodeObject, kernel_count};
use hotswap_report::limit::Charge;
use hotswap_report::{Diagnostic, EntryRecord, Record, Route, SourceText, codes};
use hotswap_targets::TargetId;

/// The target of an image: that of its entry's name, else that of its code.
#[must_use]
pub fn image_target(image: &ContainerImage<'_>) -> Option<String> {
    match &image.id {
        Some(id) => EntryId::parse(id).ok()?.target().map(str::to_owned),
        None => CodeObject::parse(&image.data).ok().map(|object| object.target_id().to_string()),
    }
}

pub struct InventoryContainer<'a> {
    pub found: FoundContainer<'a>,
    pub hash: HashState,
    /// The container's bytes without compression.
    pub plain_size: u64,
    pub record: Option<Record>,
    pub rows: Vec<ImageRow<'a>>,
    /// Entries of an offload binary that state a GPU and hold nothing.
    pub empty: Vec<ContainerImage<'a>>,
    /// Whether the bytes of its images are there; otherwise only its entry table was read.
    pub is_read: bool,
}

/// One image of device code.
pub struct ImageRow<'a> {
    /// Number in the file, from 1.
    pub number: usize,
    pub image: ContainerImage<'a>,
    /// Bytes of the image.
    pub size: u64,
    pub target: Option<String>,
    /// Row of the record with the same entry ID.
    pub record: Option<EntryRecord>,
}

impl ImageRow<'_> {
    /// The route by which it was made, as text. Without any record it counts as compiled. Where there is a record that
    /// does not name the entry, the route is unknown.
    pub fn made(&self, container: &InventoryContainer<'_>) -> String {
        match (&self.record, &container.record) {
            (Some(_), _) => self.route(),
            (None, Some(_)) => "unknown".to_owned(),
            (None, None) => "compiled".to_owned(),
        }
    }

    /// The route by which it was made, as text; empty where no record has it.
    pub fn route(&self) -> String {
        let Some(record) = &self.record else { return String::new() };
        let how = made_by(record);
        match text_of_source(record) {
            Some(text) => format!("{how}, {text}"),
            None => how,
        }
    }

    /// The number of its kernels, where its metadata has it.
    pub fn kernels(&self) -> Option<usize> {
        match self.image.kind {
            ImageKind::CodeObject | ImageKind::DeviceObject => kernel_count(&self.image.data),
            _ => None,
        }
    }

    /// Whether `wanted` names its target, ignoring the order of features.
    pub fn is_for(&self, wanted: &str) -> bool {
        let Some(target) = &self.target else { return false };
        match (target.parse::<TargetId>(), wanted.parse::<TargetId>()) {
            (Ok(one), Ok(other)) => one == other,
            _ => target == wanted,
        }
    }
}

/// The route by which a code object was made, as text.
fn made_by(record: &EntryRecord) -> String {
    match (record.route, &record.source) {
        (Route::Native, _) => "compiled".to_owned(),
        (Route::Generic, None) => "compiled, generic".to_owned(),
        (route, source) => {
            let verb = match route {
                Route::Recompiled => "compiled again",
                Route::Rewritten => "rewritten",
                _ => "retargeted",
            };
            format!("{verb} from {}", source.as_deref().unwrap_or("an unnamed source"))
        }
    }
}

/// The record's evidence about the source's text, unless the text is the same for both processors.
fn text_of_source(record: &EntryRecord) -> Option<String> {
    let evidence = record.text_evidence.as_deref();
    match record.text? {
        SourceText::Same => None,
        SourceText::Compiled => Some(text_with_evidence("its text differs", &evidence)),
        SourceText::Differs => Some(text_with_evidence("although its text differs", &evidence)),
        SourceText::NotChecked => Some(text_with_evidence("text not checked", &evidence)),
        SourceText::Refused => Some(text_with_evidence("since nothing can be derived", &evidence)),
    }
}

fn text_with_evidence(what: &str, evidence: &Option<&str>) -> String {
    evidence.map_or_else(|| what.to_owned(), |evidence| format!("{what}: {evidence}"))
}

/// How much of compressed containers is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InventoryDepth {
    /// All images, also those in compressed containers.
    Images,
    /// Only entry tables, where all of the file's together are larger than [`SMALL`]; everything with HotSwap's record.
    Tables,
}

/// Bytes that are decompressed without a request: some hundredths of a second.
const SMALL: u64 = 32 << 20;

/// Reads the containers one by one; a decompressed bundle lives only as long as `visit` runs. Problems are collected,
/// so that one damaged container does not hide the others.
pub fn visit<'a>(contents: &FoundContents<'a>, visit: impl FnMut(InventoryContainer<'a>)) -> Vec<Diagnostic> {
    visit_to(contents, InventoryDepth::Images, &ignore_progress, visit)
}

fn ignore_progress(_: u64) {}

/// Like [`visit`], no deeper than requested. `progress` is told the bytes of each container of the file itself that was read.
pub fn visit_to<'a>(
    contents: &FoundContents<'a>,
    depth: InventoryDepth,
    progress: &dyn Fn(u64),
    mut visit: impl FnMut(InventoryContainer<'a>),
) -> Vec<Diagnostic> {
    let mut problems = contents.problems.clone();
    let mut reader = InventoryReader { depth: read_depth(contents, depth), number: 0, charge: Charge::default() };
    // Containers in images of others follow these.
    let mut open: Vec<OpenContainer<'a>> = contents.found.iter().rev().cloned().map(OpenContainer::outermost).collect();
    while let Some(OpenContainer { found, level }) = open.pop() {
        match reader.read(&found) {
            Ok((container, problem)) => {
                problems.extend(problem);
                open.extend(nested_containers(&container, level, &mut problems));
                visit(container);
            }
            Err(error) => problems.push(error),
        }
        if level == 0 {
            progress(found.bytes.len() as u64);
        }
    }
    if contents.found.is_empty() && contents.sections.is_empty() && problems.is_empty() {
        problems.push(contents.missing_container());
    }
    problems
}

/// Everything is read of small files.
fn read_depth(contents: &FoundContents<'_>, depth: InventoryDepth) -> InventoryDepth {
    let packed = contents.found.iter().filter(|found| found.form.is_compressed_bundle());
    let is_small = packed.map(FoundContainer::plain_size).fold(0, u64::saturating_add) <= SMALL;
    if is_small { InventoryDepth::Images } else { depth }
}

struct InventoryReader {
    depth: InventoryDepth,
    /// Number of the last image.
    number: usize,
    charge: Charge,
}

impl InventoryReader {
    fn read<'a>(&mut self, found: &FoundContainer<'a>) -> Result<ContainerRead<'a>, Diagnostic> {
        let table = if self.depth == InventoryDepth::Images { None } else { found.table()? };
        if let Some(entries) = table {
            return Ok((unread_container(found, entries, &mut self.number), None));
        }
        let charged = self.charge.add(found.bytes.len(), found.expands_to());
        charged.map_err(|error| error.in_entry(found.place.to_string()))?;
        container(found, found.read()?, &mut self.number)
    }
}

/// Containers inside of containers; more is not a real file.
const NESTED: usize = 4;

/// A container to read, and the number of containers around it.
struct OpenContainer<'a> {
    found: FoundContainer<'a>,
    level: usize,
}

impl<'a> OpenContainer<'a> {
    fn outermost(found: FoundContainer<'a>) -> Self {
        Self { found, level: 0 }
    }
}

/// The containers in the images of an offload binary, the last one first. Those of a compressed one stay images:
/// `extract` writes them to files.
fn nested_containers<'a>(
    container: &InventoryContainer<'a>,
    level: usize,
    problems: &mut Vec<Diagnostic>,
) -> Vec<OpenContainer<'a>> {
    let mut nested = Vec::new();
    let images = container.rows.iter().filter(|row| row.image.kind == ImageKind::Container && level < NESTED);
    for row in images.rev() {
        let Some(bytes) = row.image.data.of_input() else { continue };
        let name = row.image.id.clone().unwrap_or_else(|| format!("image {}", row.number));
        let inner = crate::find_containers(bytes);
        let place = format!("{}: {name}", container.found.place);
        problems.extend(inner.problems.into_iter().map(|problem| problem.in_entry(&place)));
        let found = inner.found.iter().rev().map(|found| found.inside_of(&container.found, &name));
        nested.extend(found.map(|found| OpenContainer { found, level: level + 1 }));
    }
    nested
}

/// Reports a wrong hash, which readers of bundles do not check.
pub fn hash_problem(container: &InventoryContainer<'_>) -> Option<Diagnostic> {
    let what = "the hash in the header is not that of the content; comgr's cache may mix it up with another";
    (container.hash == HashState::Wrong)
        .then(|| Diagnostic::warning(codes::MALFORMED, what).in_entry(container.found.place.to_string()))
}

type ContainerRead<'a> = (InventoryContainer<'a>, Option<Diagnostic>);

fn container<'a>(
    found: &FoundContainer<'a>,
    device: DeviceContents<'a>,
    number: &mut usize,
) -> Result<ContainerRead<'a>, Diagnostic> {
    let read = device.record.as_deref().map(Record::from_json).transpose();
    let (record, problem) = match read {
        Ok(record) => (record, None),
        Err(error) => {
            let what = format!("HotSwap's record: {error}");
            (None, Some(Diagnostic::error(codes::MALFORMED, what).in_entry(found.place.to_string())))
        }
    };
    let (empty, images): (Vec<_>, Vec<_>) = device.images.into_iter().partition(|image| image.kind == ImageKind::Empty);
    let images = images.into_iter().filter(|image| !is_host(image));
    let empty = empty.into_iter().filter(|image| image.stated.is_some()).collect();
    let rows = images.map(|image| {
        *number += 1;
        // A code object on its own lacks an ID, and its record has one row.
        let mut entries = record.iter().flat_map(|record: &Record| &record.entries);
        let row = entries.find(|row| image.id.as_ref().is_none_or(|id| *id == row.id));
        let size = image.data.len() as u64;
        ImageRow { number: *number, size, target: image_target(&image), record: row.cloned(), image }
    });
    let rows = rows.collect();
    let (hash, plain_size) = (device.hash, device.plain_size);
    Ok((InventoryContainer { found: found.clone(), hash, plain_size, record, rows, empty, is_read: true }, problem))
}

/// A container of which only the entry table was read. The kinds of its entries are unknown.
fn unread_container<'a>(
    found: &FoundContainer<'a>,
    entries: Vec<EntrySize>,
    number: &mut usize,
) -> InventoryContainer<'a> {
    let images = entries.into_iter().map(|(id, size)| (unread_image(id), size));
    let images = images.filter(|(image, size)| *size > 0 && !is_host(image));
    let rows = images.map(|(image, size)| {
        *number += 1;
        ImageRow { number: *number, size, target: image_target(&image), record: None, image }
    });
    let (hash, plain_size) = (HashState::Unchecked, found.plain_size());
    InventoryContainer {
        found: found.clone(),
        hash,
        plain_size,
        record: None,
        rows: rows.collect(),
        empty: Vec::new(),
        is_read: false,
    }
}

fn unread_image<'a>(id: String) -> ContainerImage<'a> {
    ContainerImage { id: Some(id), kind: ImageKind::Unknown, data: Vec::new().into(), stated: None }
}

/// The host's part of an object with device sections is one byte, not nothing.
fn is_host(image: &ContainerImage<'_>) -> bool {
    let id = image.id.as_ref().and_then(|id| EntryId::parse(id).ok());
    id.is_some_and(|id| *id.kind() == OffloadKind::Host)
}
