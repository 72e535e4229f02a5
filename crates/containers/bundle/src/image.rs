//! The kind of an entry's bytes, determined from the first ones.

use crate::bytes::{u16_at, u32_at};
use crate::magic::{OFFLOAD_BINARY, is_bundle};
use object::elf::{EM_AMDGPU, ET_REL};
use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;
use std::fmt;

/// Kind of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageKind {
    /// Nothing, as in the host's entry.
    Empty,
    /// Linked ELF for an AMD GPU.
    CodeObject,
    /// Relocatable ELF for an AMD GPU.
    DeviceObject,
    Bitcode,
    SpirV,
    OtherElf,
    /// A bundle or an OffloadBinary inside of another container, to be read as a separate file.
    Container,
    Unknown,
}

impl ImageKind {
    /// Examines the first bytes.
    pub fn of(bytes: &[u8]) -> Self {
        match bytes {
            [] => Self::Empty,
            [0x7f, b'E', b'L', b'F', 2, 1, ..] if u16_at(bytes, 18) == Some(EM_AMDGPU) => {
                if u16_at(bytes, 16) == Some(ET_REL) { Self::DeviceObject } else { Self::CodeObject }
            }
            [0x7f, b'E', b'L', b'F', ..] => Self::OtherElf,
            [b'B', b'C', 0xc0, 0xde, ..] => Self::Bitcode,
            _ if is_bundle(bytes) || bytes.starts_with(OFFLOAD_BINARY) => Self::Container,
            _ => match u32_at(bytes, 0) {
                Some(0x0b17_c0de) => Self::Bitcode, // the wrapper around bitcode
                Some(0x0723_0203) => Self::SpirV,
                _ => Self::Unknown,
            },
        }
    }
}

/// The names of the kernels that a relocatable device object defines: those of its kernel descriptors.
pub fn device_object_kernels(bytes: &[u8]) -> Option<BTreeSet<String>> {
    let file = object::File::parse(bytes).ok()?;
    let defined = file.symbols().filter(|symbol| !symbol.is_undefined()).filter_map(|symbol| symbol.name().ok());
    Some(defined.filter_map(|name| name.strip_suffix(".kd")).map(str::to_owned).collect())
}

impl fmt::Display for ImageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Empty => "empty",
            Self::CodeObject => "code object",
            Self::DeviceObject => "device object",
            Self::Bitcode => "bitcode",
            Self::SpirV => "SPIR-V",
            Self::OtherElf => "other ELF",
            Self::Container => "container",
            Self::Unknown => "unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ImageKind;

    /// LLVM 23 puts OffloadBinaries into OffloadBinaries.
    #[test]
    fn a_container_in_a_container_is_named() {
        for bytes in [&b"__CLANG_OFFLOAD_BUNDLE__\0"[..], b"CCOB\x03\0", b"\x10\xff\x10\xad\x02\0\0\0"] {
            assert_eq!(ImageKind::of(bytes), ImageKind::Container);
        }
        assert_eq!(ImageKind::of(b"\x10\xff\x10\xac\x02\0\0\0"), ImageKind::Unknown);
    }
}
