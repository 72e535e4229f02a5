//! A container as HIP's loader sees it: its form, and its entries in their order.

use hotswap_bundle::{ContainerForm, DeviceContents, EntryId, EntrySize, FoundContainer, ImageKind};
use hotswap_code_object::{CodeObject, header_target};
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;

/// A container with the facts that decide which of its entries is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadableContainer {
    /// Its position in the file, as `hotswap list` shows it.
    pub place: String,
    /// Members of archives that it is in, outermost first; its name in a kernel archive is the last one.
    pub members: Vec<String>,
    /// Offset in the file.
    pub file_offset: u64,
    pub form: ContainerForm,
    /// Bytes of the entry table, for a bundle.
    pub table_size: u64,
    /// Its entries in their order, that of the host included.
    pub entries: Vec<LoadableEntry>,
}

/// An entry of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadableEntry {
    /// Entry ID; that of a bare code object is made from its flags.
    pub id: String,
    /// Bytes of the entry.
    pub size: u64,
    /// The target that the code object itself states, where its bytes were read.
    pub code_target: Option<TargetId>,
    /// The kernels of its metadata, where the bytes were read and are a code object.
    pub kernels: Option<Vec<String>>,
}

/// The facts about code objects that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadDepth {
    /// The entry's own target, from the ELF header, where nothing has to be decompressed for it.
    Headers,
    /// The target and the kernels of every code object.
    Kernels,
}

impl LoadableContainer {
    /// Reads the entry table, and the code objects as far as `depth` asks for.
    ///
    /// # Errors
    /// Damage of the container.
    pub fn read(found: &FoundContainer<'_>, depth: ReadDepth) -> Result<Self, Diagnostic> {
        let table = if depth == ReadDepth::Headers { found.table()? } else { None };
        match table {
            Some(entries) => Ok(Self::of_table(found, entries)),
            None => Ok(Self::of_images(found, &found.read()?, depth)),
        }
    }

    /// A container of which the IDs and sizes of its entries are known.
    pub fn of_table(found: &FoundContainer<'_>, entries: Vec<EntrySize>) -> Self {
        Self::of_entries(found, entries.into_iter().map(|(id, size)| entry_of_table(id, size)).collect())
    }

    /// A container that was read.
    pub fn of_images(found: &FoundContainer<'_>, contents: &DeviceContents<'_>, depth: ReadDepth) -> Self {
        let images =
            contents.images.iter().map(|image| LoadableEntry::of_image(image.id.as_deref(), &image.data, depth));
        Self::of_entries(found, images.collect())
    }

    /// A container of these entries.
    pub(crate) fn of_entries(found: &FoundContainer<'_>, entries: Vec<LoadableEntry>) -> Self {
        let table_size = table_size(&entries);
        let (place, members) = (found.place.to_string(), found.place.members.clone());
        Self { place, members, file_offset: found.place.file_offset, form: found.form, table_size, entries }
    }
}

fn entry_of_table(id: String, size: u64) -> LoadableEntry {
    LoadableEntry { id, size, code_target: None, kernels: None }
}

/// The magic, the number of entries, and for each entry three numbers and the ID.
fn table_size(entries: &[LoadableEntry]) -> u64 {
    32 + entries.iter().map(|entry| 24 + entry.id.len() as u64).sum::<u64>()
}

impl LoadableEntry {
    /// The entry with these bytes.
    pub(crate) fn of_image(id: Option<&str>, data: &[u8], depth: ReadDepth) -> Self {
        let is_code = ImageKind::of(data) == ImageKind::CodeObject;
        let code_target = header_target(data).filter(|_| is_code);
        let object = (is_code && depth == ReadDepth::Kernels).then(|| CodeObject::parse(data).ok()).flatten();
        let kernels = object.map(|object| object.note().kernels.iter().map(|kernel| kernel.name.to_owned()).collect());
        let id = id.map(str::to_owned).or_else(|| entry_id_from_flags(&code_target)).unwrap_or_default();
        Self { id, size: data.len() as u64, code_target, kernels }
    }

    /// The target that the entry ID names; `None` for the host, for other devices, and for SPIR-V.
    pub fn target(&self) -> Option<TargetId> {
        let id = EntryId::parse(&self.id).ok().filter(EntryId::is_amdgpu)?;
        id.target()?.parse().ok()
    }

    /// Whether it is HIP code in SPIR-V, which the runtime compiles for the GPU.
    pub fn is_spirv(&self) -> bool {
        EntryId::parse(&self.id).is_ok_and(|id| id.is_hip() && id.triple().starts_with("spirv"))
    }
}

fn entry_id_from_flags(code_target: &Option<TargetId>) -> Option<String> {
    code_target.map(|target| format!("hipv4-amdgcn-amd-amdhsa--{target}"))
}
