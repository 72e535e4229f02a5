//! A code object in memory: its segments at their places, its relocations applied.
//!
//! Invariant: every write is inside of the block.
#![allow(unsafe_code)] // the memory of the block

use super::object_image::{ImageRelocation, LoadRefusal, ObjectImage, RelocationSource};
use crate::executor::MEMORY;
use crate::memory::allocations::{register_pages, release_pages};
use crate::memory::mapping::PageMapping;
use crate::status::HsaStatus;

/// The block of memory of one code object.
#[derive(Debug)]
pub(crate) struct PlacedImage {
    pages: Option<PageMapping>,
    /// Where the object's address 0 is: `first + delta` is the block's first byte.
    pub(crate) delta: u64,
    /// Address of the first byte.
    pub(crate) base: u64,
    pub(crate) size: u64,
}

const ABS32_LO: u32 = 1;
const ABS32_HI: u32 = 2;
const ABS64: u32 = 3;
const ABS32: u32 = 6;
const RELATIVE64: u32 = 13;

impl PlacedImage {
    /// Places an image; `find` gives the addresses of variables that it does not define.
    pub(crate) fn new(
        image: &ObjectImage,
        file: &[u8],
        find: impl Fn(&str) -> Option<u64>,
    ) -> Result<Self, LoadRefusal> {
        let range = image.address_range();
        let pages = usize::try_from(range.end - range.start)
            .ok()
            .and_then(PageMapping::new)
            .ok_or_else(out_of_memory_refusal)?;
        let base = pages.start as u64;
        let mut placed =
            Self { delta: base.wrapping_sub(range.start), base, size: range.end - range.start, pages: Some(pages) };
        for segment in &image.segments {
            let content = &file[segment.content.clone()];
            placed
                .write(segment.address, content)
                .ok_or_else(|| LoadRefusal::invalid("a segment leaves the object"))?;
        }
        for relocation in &image.relocations {
            placed.apply_relocation(relocation, &find)?;
        }
        if let Some(pages) = &placed.pages {
            register_pages(pages);
        }
        MEMORY.code_changed();
        Ok(placed)
    }

    /// Writes at an address of the object; `None` outside of the block.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        let at = self.block_offset(address, bytes.len())?;
        // SAFETY: the bytes are inside of the block, which nothing else knows yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (self.base as usize + at) as *mut u8, bytes.len()) };
        Some(())
    }

    /// The offset in the block of so many bytes at an address of the object.
    fn block_offset(&self, address: u64, size: usize) -> Option<usize> {
        let offset = address.wrapping_add(self.delta).wrapping_sub(self.base);
        let is_inside = offset <= self.size && size as u64 <= self.size - offset;
        is_inside.then_some(offset as usize)
    }

    /// Bytes at an address of the object, as they are in memory now.
    pub(crate) fn read<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let at = self.block_offset(address, N)?;
        // SAFETY: the bytes are inside of the block.
        Some(unsafe { ((self.base as usize + at) as *const [u8; N]).read_unaligned() })
    }

    fn apply_relocation(
        &mut self,
        relocation: &ImageRelocation,
        find: impl Fn(&str) -> Option<u64>,
    ) -> Result<(), LoadRefusal> {
        let symbol = match &relocation.source {
            RelocationSource::Base => self.delta,
            RelocationSource::Own(address) => address.wrapping_add(self.delta),
            RelocationSource::Other(name) => find(name).ok_or_else(|| LoadRefusal {
                status: HsaStatus::VARIABLE_UNDEFINED,
                reason: format!("nothing defines `{name}`, which it refers to"),
            })?,
        };
        let value = symbol.wrapping_add_signed(relocation.addend);
        let written = match relocation.kind {
            ABS64 => self.write(relocation.address, &value.to_le_bytes()),
            RELATIVE64 => {
                let value = self.delta.wrapping_add_signed(relocation.addend);
                self.write(relocation.address, &value.to_le_bytes())
            }
            ABS32_LO | ABS32 => self.write(relocation.address, &(value as u32).to_le_bytes()),
            ABS32_HI => self.write(relocation.address, &((value >> 32) as u32).to_le_bytes()),
            other => return Err(LoadRefusal::invalid(format!("relocations of type {other} are not known"))),
        };
        written.ok_or_else(|| {
            LoadRefusal::invalid(format!("a relocation is at 0x{:x}, outside of the object", relocation.address))
        })
    }
}

fn out_of_memory_refusal() -> LoadRefusal {
    LoadRefusal { status: HsaStatus::OUT_OF_RESOURCES, reason: "no memory for it".to_owned() }
}

impl Drop for PlacedImage {
    fn drop(&mut self) {
        if let Some(pages) = self.pages.take() {
            release_pages(pages);
            MEMORY.code_changed();
        }
    }
}
