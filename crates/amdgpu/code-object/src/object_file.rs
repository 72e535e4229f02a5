//! The code object as a whole.

use crate::descriptor::{self, DescriptorLocation, MANY};
use crate::elf::{self, Elf, ElfSectionView, ElfSegment, ObjectKind};
use crate::kernel_descriptor::KernelDescriptor;
use crate::metadata::KernelMetadata;
use crate::note::Note;
use crate::{malformed, unsupported_format};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{EFlags, FlagsError, TargetId};
use rayon::prelude::*;
use std::sync::Arc;

/// Offset of `EI_ABIVERSION` in an ELF header.
pub(crate) const ABI_VERSION: usize = 8;
/// Offset of `e_flags` in an ELF64 header.
pub(crate) const E_FLAGS: usize = 48;

/// Minimum size of a file whose note and symbols are worth reading in parallel.
const MUCH: usize = 16 << 20;

/// A code object that agrees with itself. Borrows the file.
#[derive(Debug, Clone)]
pub struct CodeObject<'a> {
    elf: Elf<'a>,
    flags: EFlags,
    target: TargetId,
    note: Note<'a>,
    descriptors: Arc<Vec<DescriptorLocation>>,
}

/// Whether the bytes begin like an AMDGPU ELF64 file. The rest is not checked.
pub fn is_code_object(data: &[u8]) -> bool {
    elf::file_header(data).is_some()
}

/// The target that the ELF header of a code object states; nothing else is read or checked. `None` for other files and for
/// flags that are not known.
pub fn header_target(data: &[u8]) -> Option<TargetId> {
    let header = elf::file_header(data)?;
    let flags = EFlags::decode(header.e_flags.get(object::LittleEndian), header.e_ident.abi_version).ok()?;
    Some(flags.target_id())
}

/// The tables of the file, and its flags.
fn parse_headers(data: &[u8]) -> Result<(Elf<'_>, EFlags), Diagnostic> {
    let elf = Elf::parse(data)?;
    let flags = EFlags::decode(elf.flags, elf.abi_version).map_err(|error| match error {
        FlagsError::Machine(_) | FlagsError::Withdrawn { .. } => {
            Diagnostic::error(codes::UNKNOWN_MACHINE, error.to_string()).at_offset(E_FLAGS as u64)
        }
        FlagsError::Abi(_) | FlagsError::GenericVersion { .. } => unsupported_format(E_FLAGS, error.to_string()),
        FlagsError::Feature { .. } | FlagsError::Reserved(_) => malformed(E_FLAGS, error.to_string()),
    })?;
    Ok((elf, flags))
}

/// Checks that the note names no other target than the header.
fn check_target(note: &Note<'_>, target: TargetId) -> Result<(), Diagnostic> {
    let Some(stated) = note.target_id()?.filter(|stated| *stated != target) else { return Ok(()) };
    let what = format!("the metadata is for {stated}, the ELF header for {target}");
    Err(malformed(note.target_start(), what))
}

impl<'a> CodeObject<'a> {
    /// Reads and checks a code object.
    ///
    /// # Errors
    /// `NOT_CODE_OBJECT` for other files, `UNKNOWN_FORMAT` for versions, OS ABIs and machines that
    /// are not known, `MALFORMED` for everything that contradicts itself; each with the offset.
    pub fn parse(data: &'a [u8]) -> Result<Self, Diagnostic> {
        let (elf, flags) = parse_headers(data)?;
        let (note, places) = match data.len() {
            // Below that, starting a thread takes as long as reading.
            0..MUCH => (Note::find(&elf), descriptor::descriptor_symbols(&elf)),
            _ => rayon::join(|| Note::find(&elf), || descriptor::descriptor_symbols(&elf)),
        };
        let note = note?;
        let target = flags.target_id();
        check_target(&note, target)?;
        let descriptors = descriptor::find_descriptors(&elf, places, &note.kernels, target.processor)?;
        Ok(Self { elf, flags, target, note, descriptors: Arc::new(descriptors) })
    }

    /// The result of [`CodeObject::parse`] for a file that may be a copy of `model` except for its label: results that
    /// follow from bytes of the model are taken from there, after comparing them.
    ///
    /// # Errors
    /// The same as those of [`CodeObject::parse`].
    pub fn parse_copy(data: &'a [u8], model: &Self) -> Result<Self, Diagnostic> {
        Self::parse_like_model(data, model).map_or_else(|| Self::parse(data), Ok)
    }

    fn parse_like_model(data: &'a [u8], model: &Self) -> Option<Self> {
        let (elf, flags) = parse_headers(data).ok()?;
        let target = flags.target_id();
        let (note, is_like) = rayon::join(
            || Note::reuse_parsed(&elf, &model.note, model.bytes()),
            || target.processor.waves == model.target.processor.waves && descriptor::are_those(&elf, model),
        );
        let note = note.filter(|note| is_like && check_target(note, target).is_ok())?;
        Some(Self { elf, flags, target, note, descriptors: model.descriptors.clone() })
    }

    pub(crate) fn elf(&self) -> &Elf<'a> {
        &self.elf
    }

    pub fn bytes(&self) -> &'a [u8] {
        self.elf.data
    }

    pub fn kind(&self) -> ObjectKind {
        self.elf.kind
    }

    /// The target that header and note agree on.
    pub fn target_id(&self) -> TargetId {
        self.target
    }

    /// `e_flags` as stored in the file.
    pub fn e_flags(&self) -> u32 {
        self.elf.flags
    }

    pub fn flags(&self) -> EFlags {
        self.flags
    }

    /// `EI_ABIVERSION`: 1 for V3 up to 4 for V6.
    pub fn abi_version(&self) -> u8 {
        self.elf.abi_version
    }

    pub fn note(&self) -> &Note<'a> {
        &self.note
    }

    /// The descriptors of [`Note::kernels`], in the same order.
    pub fn descriptors(&self) -> &[DescriptorLocation] {
        &self.descriptors
    }

    /// Compares every kernel's descriptor with the note.
    ///
    /// # Errors
    /// `MALFORMED` with the kernel's name, see [`KernelDescriptor::check`].
    pub fn check_descriptors(&self) -> Result<(), Diagnostic> {
        let (kernels, places) = (&*self.note.kernels, &*self.descriptors);
        let error = match kernels.len() {
            0..MANY => kernels.iter().zip(places).find_map(|one| descriptor_metadata_error(one, self)),
            _ => kernels
                .par_iter()
                .zip(places.par_iter())
                .with_min_len(MANY / 4)
                .find_map_first(|one| descriptor_metadata_error(one, self)),
        };
        error.map_or(Ok(()), Err)
    }

    /// Sections in the order of their table; empty when the file does not have any.
    pub fn sections(&self) -> &[ElfSectionView<'a>] {
        &self.elf.sections
    }

    /// Segments in the order of their table; empty in relocatable files.
    pub fn segments(&self) -> &[ElfSegment] {
        &self.elf.segments
    }
}

fn descriptor_metadata_error(
    (kernel, place): (&KernelMetadata<'_>, &DescriptorLocation),
    object: &CodeObject<'_>,
) -> Option<Diagnostic> {
    let bytes = &object.elf.data[place.range.clone()];
    let descriptor = KernelDescriptor::new(bytes, object.target.processor)?;
    descriptor.check_metadata(kernel, place.range.start).err()
}
