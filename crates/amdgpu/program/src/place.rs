//! Addresses that code can point to, before or after linking.

/// A byte of the program.
///
/// In a linked file base 0 is the whole image and `at` is an address. In a relocatable file base 0 is the code section
/// itself and `at` an offset in it; other sections and undefined symbols have bases of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramByte {
    /// The origin from which `at` counts.
    pub base: u32,
    /// Address or offset, 64 bits that wrap around.
    pub at: u64,
}

impl ProgramByte {
    /// The base of the image, or of the code section itself.
    pub const CODE: u32 = 0;
    /// Bases from here on are symbols that the file does not define: dynamic ones of a linked file.
    pub const EXTERN: u32 = 1 << 30;
    /// Bases from here on are words of the GOT that a linker will make, one for each symbol.
    pub const GOT: u32 = 1 << 31;

    /// The same base, `distance` bytes later.
    #[must_use]
    pub const fn plus(self, distance: u64) -> Self {
        Self { base: self.base, at: self.at.wrapping_add(distance) }
    }
}
