//! The forms of containers: how bytes begin, where a container ends, and what is in it.
//!
//! A form is one file with its implementation of [`ContainerFormat`], and one row of `contents::FORMATS`. The search for containers
//! ([`crate::find_containers`]) knows no form; commands ask properties of [`ContainerForm`], or match over all forms: a
//! form that is new stops the compiler wherever something must be decided about it.
//!
//! Absent on purpose: what containers are found in (archives, sections: `contents`), and writing, which differs in what
//! can be changed at all ([`crate::Bundle`], [`crate::OffloadBinary`], [`crate::with_record`]).

#![deny(clippy::wildcard_enum_match_arm)]

use crate::bundle::HashState;
use crate::bytes::EntryBytes;
use crate::image::ImageKind;
use crate::plain::EntrySize;
use hotswap_report::Diagnostic;
use std::fmt;

/// Form of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerForm {
    Bundle,
    /// Compressed offload bundle with the version of its header.
    CompressedBundle(u16),
    /// OffloadBinary with its version.
    OffloadBinary(u32),
    /// Section of an object with relocatable device code, old driver.
    ObjectVariant,
    /// Fat binary of a kernel archive (kpack).
    KernelArchive,
    /// A code object without a container.
    Bare,
}

impl ContainerForm {
    /// Whether it is an offload bundle, plain or compressed: entries can be added, changed and removed.
    #[must_use]
    pub fn is_bundle(self) -> bool {
        match self {
            Self::Bundle | Self::CompressedBundle(_) => true,
            Self::OffloadBinary(_) | Self::ObjectVariant | Self::KernelArchive | Self::Bare => false,
        }
    }

    /// Whether code for further GPUs can be added to it.
    #[must_use]
    pub fn takes_targets(self) -> bool {
        match self {
            Self::Bundle | Self::CompressedBundle(_) | Self::KernelArchive => true,
            Self::OffloadBinary(_) | Self::ObjectVariant | Self::Bare => false,
        }
    }

    /// Whether its code has a place of its own in the file, and no entry that can be removed.
    #[must_use]
    pub fn is_without_entries(self) -> bool {
        match self {
            Self::ObjectVariant | Self::Bare => true,
            Self::Bundle | Self::CompressedBundle(_) | Self::OffloadBinary(_) | Self::KernelArchive => false,
        }
    }

    /// Whether it is compressed as a bundle.
    #[must_use]
    pub fn is_compressed_bundle(self) -> bool {
        match self {
            Self::CompressedBundle(_) => true,
            Self::Bundle | Self::OffloadBinary(_) | Self::ObjectVariant | Self::KernelArchive | Self::Bare => false,
        }
    }
}

impl fmt::Display for ContainerForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundle => f.write_str("offload bundle"),
            Self::CompressedBundle(version) => write!(f, "compressed bundle V{version}"),
            Self::OffloadBinary(version) => write!(f, "offload binary V{version}"),
            Self::ObjectVariant => f.write_str("object with device sections"),
            Self::KernelArchive => f.write_str("kernel archive"),
            Self::Bare => f.write_str("bare"),
        }
    }
}

/// Recognises, delimits and reads containers of one form.
pub(crate) trait ContainerFormat: fmt::Debug + Sync {
    /// Whether a file, or a member of an archive, begins as such a container.
    fn begins(&self, bytes: &[u8]) -> bool;

    /// Whether sections of that name hold such containers. PE images truncate names to 8 characters.
    fn is_section(&self, name: &str) -> bool;

    /// Where the next container begins, at or after `at`; `None` where only padding is left.
    ///
    /// # Errors
    /// Something else begins there.
    fn next(&self, bytes: &[u8], at: usize) -> Result<Option<usize>, Diagnostic>;

    /// Form and number of bytes of the container at the start of `bytes`, without decompressing it.
    ///
    /// # Errors
    /// A damaged header, or a size beyond the end of `bytes`.
    fn extent(&self, bytes: &[u8]) -> Result<(ContainerForm, usize), Diagnostic>;

    /// Reads the container that [`Self::extent`] has found.
    ///
    /// # Errors
    /// Damage, or a version that is not known.
    fn read<'a>(&self, found: &FoundContainer<'a>) -> Result<DeviceContents<'a>, Diagnostic>;

    /// The entry ID of a container, where the name of its section states it.
    fn entry_id<'n>(&self, _section: &'n str) -> Option<&'n str> {
        None
    }

    /// The size without compression that the header claims; `None` where nothing is compressed.
    fn expanded_size(&self, _bytes: &[u8]) -> Option<u64> {
        None
    }

    fn entry(&self, _bytes: &[u8], _number: usize) -> Result<Option<Vec<u8>>, Diagnostic> {
        Ok(None)
    }

    /// Names of the containers that share these bytes, each to be read as the member of that name; `None` where the
    /// bytes are one container.
    fn parts(&self, _bytes: &[u8]) -> Option<Vec<String>> {
        None
    }

    fn table(&self, _bytes: &[u8]) -> Result<Option<Vec<EntrySize>>, Diagnostic> {
        Ok(None)
    }
}

/// The position of a container in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerPosition {
    /// Archive members, outermost first.
    pub members: Vec<String>,
    /// Section of the object, program or library.
    pub section: Option<String>,
    /// Offset in the section, or in the member or file without one.
    pub offset: u64,
    /// Offset in the file.
    pub file_offset: u64,
}

/// A container, found but not yet read.
#[derive(Debug, Clone)]
pub struct FoundContainer<'a> {
    pub place: ContainerPosition,
    pub form: ContainerForm,
    pub bytes: &'a [u8],
    /// Entry ID, where the name of the section states it.
    pub(crate) id: Option<String>,
    pub(crate) format: &'static dyn ContainerFormat,
}

/// An image of a container.
#[derive(Debug, Clone)]
pub struct ContainerImage<'a> {
    /// Bundle entry ID; `None` for a bare code object, which names its target itself.
    pub id: Option<String>,
    /// The kind of its bytes.
    pub kind: ImageKind,
    pub data: EntryBytes<'a>,
    /// The statements of an offload binary about it; `None` in other containers.
    pub stated: Option<StatedImage>,
}

/// The statements of an entry of an offload binary besides its ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedImage {
    /// The kind of the image, in LLVM's words: `o`, `bc`, `fatbin` and so on.
    pub kind: &'static str,
    /// The tool that made it, where the entry names one.
    pub producer: Option<String>,
}

/// The contents of a container.
#[derive(Debug, Clone)]
pub struct DeviceContents<'a> {
    /// Images in their order.
    pub images: Vec<ContainerImage<'a>>,
    /// Payload of HotSwap's record block, in a bundle or after a code object.
    pub record: Option<EntryBytes<'a>>,
    /// The validity of a compressed bundle's hash.
    pub hash: HashState,
    /// Bytes of the container without compression.
    pub plain_size: u64,
}

impl<'a> FoundContainer<'a> {
    /// Reads the container, decompressing where needed. A wrong hash is reported, not rejected.
    ///
    /// # Errors
    /// [`codes::MALFORMED`] or [`codes::UNKNOWN_FORMAT`], with the place as its entry.
    pub fn read(&self) -> Result<DeviceContents<'a>, Diagnostic> {
        self.format.read(self).map_err(|error| error.in_entry(self.place.to_string()))
    }

    /// IDs and sizes of the entries of a compressed bundle, read from the start of its content alone, which
    /// costs only some kilobytes. `None` where more must be read: for every other container, and where HotSwap's
    /// record follows the entries.
    ///
    /// # Errors
    /// As for [`FoundContainer::read`], but damage further on is not detected.
    pub fn table(&self) -> Result<Option<Vec<EntrySize>>, Diagnostic> {
        self.format.table(self.bytes).map_err(|error| error.in_entry(self.place.to_string()))
    }

    /// One entry of a compressed bundle by its number in [`FoundContainer::table`], decompressed no further than its end;
    /// neither the hash nor what follows is checked. `None` where the whole must be read.
    ///
    /// # Errors
    /// The same as those of [`FoundContainer::read`].
    pub fn entry(&self, number: usize) -> Result<Option<Vec<u8>>, Diagnostic> {
        self.format.entry(self.bytes, number).map_err(|error| error.in_entry(self.place.to_string()))
    }

    /// Its size without compression, as its header claims.
    pub fn plain_size(&self) -> u64 {
        self.format.expanded_size(self.bytes).unwrap_or(self.bytes.len() as u64)
    }

    /// Memory that reading it needs in addition to the file: its stated expanded size, 0 where nothing is compressed.
    pub fn expands_to(&self) -> u64 {
        self.format.expanded_size(self.bytes).unwrap_or(0)
    }

    /// Its name in a kernel archive.
    pub fn part_name(&self) -> &str {
        self.place.members.last().map(String::as_str).unwrap_or_default()
    }

    /// The same container as one that lies in an image of `outer`.
    #[must_use]
    pub fn inside_of(&self, outer: &FoundContainer<'_>, image: &str) -> Self {
        let mut inner = self.clone();
        let mut members = outer.place.members.clone();
        members.extend(outer.place.section.clone());
        members.push(image.to_owned());
        members.append(&mut inner.place.members);
        inner.place.members = members;
        inner.place.file_offset = outer.place.file_offset + offset_in(outer.bytes, self.bytes).unwrap_or_default();
        inner
    }

    /// The container of that name in the same bytes.
    pub(crate) fn part(&self, name: String) -> Self {
        let mut part = self.clone();
        part.place.members.push(name);
        part
    }

    /// Contents of images alone: no record, no hash.
    pub(crate) fn device(&self, images: Vec<ContainerImage<'a>>) -> DeviceContents<'a> {
        DeviceContents { images, record: None, hash: HashState::Absent, plain_size: self.plain_size() }
    }
}

/// The offset of a part of some bytes.
fn offset_in(whole: &[u8], part: &[u8]) -> Option<u64> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (start + part.len() <= whole.len()).then_some(start as u64)
}

impl<'a> ContainerImage<'a> {
    /// An image of the kind that its first bytes tell.
    pub(crate) fn new(id: Option<String>, data: EntryBytes<'a>) -> Self {
        Self { id, kind: ImageKind::of(&data), data, stated: None }
    }
}

impl fmt::Display for ContainerPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.members.clone();
        parts.extend(self.section.clone());
        match (parts.is_empty(), self.offset) {
            (true, offset) => write!(f, "{offset:#x}"),
            (false, 0) => f.write_str(&parts.join(":")),
            (false, offset) => write!(f, "{}+{offset:#x}", parts.join(":")),
        }
    }
}
