//! Variants of image instructions.

use crate::IMAGE_BASES;

/// The variant that an image instruction is.
#[derive(Debug)]
pub struct Image {
    pub(crate) base: u16,
    /// Encoding variant, for example `Gfx10NSA`.
    pub encoding: &'static str,
    /// Dwords of data of this variant.
    pub data: u8,
    /// Dwords of address of this variant.
    pub address: u8,
}

impl Image {
    #[inline]
    pub fn base(&self) -> Option<&'static ImageBase> {
        IMAGE_BASES.get(usize::from(self.base))
    }
}

/// The base operation of image instructions.
#[derive(Debug)]
pub struct ImageBase {
    pub name: &'static str,
    /// Its properties, sorted.
    pub properties: &'static [&'static str],
    /// Arguments before the coordinates.
    pub extra_arguments: u8,
    /// Variants that exist: encoding, dwords of data, dwords of address; sorted.
    pub variants: &'static [(&'static str, u8, u8)],
}
