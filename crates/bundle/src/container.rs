//! The forms of containers: how bytes begin, where a container ends, and what is in it.
//!
//! A form is one file with its implementation of [`ContainerFormat`], and one row of [`FORMATS`]. The search for containers
//! ([`crate::open`]) knows no form; commands ask properties of [`ContainerForm`].
//!
//! Absent on purpose: what containers are found in (archives, sections: `contents`), and writing, which differs in what
//! can be changed at all ([`crate::Bundle`], [`crate::OffloadBinary`], [`crate::with_record`]).

use crate::bare::CodeObjects;
use crate::contents::{DeviceContents, FoundContainer};
use crate::device_sections::DeviceSections;
use crate::fatbin::Bundles;
use crate::offload_binary::OffloadBinaries;
use hotswap_report::Diagnostic;
use std::fmt;

/// Every form; the first one that bytes begin as, or that a section is named for, is taken.
pub(crate) const FORMATS: &[&dyn ContainerFormat] = &[&Bundles, &OffloadBinaries, &DeviceSections, &CodeObjects];

/// Form of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerForm {
    /// Plain offload bundle.
    Bundle,
    /// Compressed offload bundle with the version of its header.
    CompressedBundle(u16),
    /// OffloadBinary with its version.
    OffloadBinary(u32),
    /// Section of an object with relocatable device code, old driver.
    ObjectVariant,
    /// A code object without a container.
    Bare,
}

impl ContainerForm {
    /// Whether it is an offload bundle, plain or compressed: entries can be added, changed and removed.
    #[must_use]
    pub fn is_bundle(self) -> bool {
        matches!(self, Self::Bundle | Self::CompressedBundle(_))
    }

    /// Whether it is compressed as a bundle.
    #[must_use]
    pub fn is_compressed_bundle(self) -> bool {
        matches!(self, Self::CompressedBundle(_))
    }
}

impl fmt::Display for ContainerForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bundle => f.write_str("offload bundle"),
            Self::CompressedBundle(version) => write!(f, "compressed bundle V{version}"),
            Self::OffloadBinary(version) => write!(f, "offload binary V{version}"),
            Self::ObjectVariant => f.write_str("object with device sections"),
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

    /// Reads the container.
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

    /// See [`FoundContainer::table`].
    fn table(&self, _bytes: &[u8]) -> Result<Option<Vec<(String, u64)>>, Diagnostic> {
        Ok(None)
    }
}
