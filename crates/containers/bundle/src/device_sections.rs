//! Relocatable device code of the old driver: an object has a section for each target, named for it.

use crate::EntryBytes;
use crate::container::{ContainerForm, ContainerFormat, ContainerImage, DeviceContents, FoundContainer};
use hotswap_report::Diagnostic;

/// Sections `__CLANG_OFFLOAD_BUNDLE__ID`, each the image of that ID.
#[derive(Debug)]
pub(crate) struct DeviceSections;

const PREFIX: &str = "__CLANG_OFFLOAD_BUNDLE__";

impl ContainerFormat for DeviceSections {
    /// Only names of sections tell.
    fn begins(&self, _bytes: &[u8]) -> bool {
        false
    }

    fn is_section(&self, name: &str) -> bool {
        name.starts_with(PREFIX)
    }

    /// The section as a whole, even an empty one.
    fn next(&self, _bytes: &[u8], at: usize) -> Result<Option<usize>, Diagnostic> {
        Ok((at == 0).then_some(0))
    }

    fn extent(&self, bytes: &[u8]) -> Result<(ContainerForm, usize), Diagnostic> {
        Ok((ContainerForm::ObjectVariant, bytes.len()))
    }

    fn read<'a>(&self, found: &FoundContainer<'a>) -> Result<DeviceContents<'a>, Diagnostic> {
        Ok(found.device(vec![ContainerImage::new(found.id.clone(), EntryBytes::from(found.bytes))]))
    }

    fn entry_id<'n>(&self, section: &'n str) -> Option<&'n str> {
        section.strip_prefix(PREFIX)
    }
}
