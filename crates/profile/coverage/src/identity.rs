//! The code that a raw profile belongs to: the identity that HotSwap's drain puts among the binary IDs of the raw format,
//! build IDs, and the functions of a coverage map.
//!
//! Names of files decide nothing, except between host and device for profiles without any identity (of older drains, or
//! of hosts without a build ID), which is reported.

use hotswap_targets::EFlags;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};
use std::collections::BTreeSet;

/// The device code of a raw profile, as the drain identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceIdentity {
    /// The hash of the code object; 0 where the drain could not read it.
    pub code: u64,
    /// The target ID of the code object, `gfx10-3-generic` or `gfx90a:xnack+`.
    pub target: String,
    /// The processor that ran it.
    pub gpu: String,
}

impl DeviceIdentity {
    /// Reads an entry of the binary IDs; `None` if it is an ID of a linker.
    pub fn parse(entry: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(entry.strip_prefix(hotswap_profile_drain::raw::IDENTITY)?).ok()?;
        let field = |name: &str| text.split(':').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        let code = u64::from_str_radix(field("id")?, 16).ok()?;
        let flags = u32::from_str_radix(field("flags")?, 16).ok()?;
        let gpu = field("gpu")?.to_owned();
        Some(Self { code, target: target_of_flags(flags).unwrap_or_else(|| gpu.clone()), gpu })
    }
}

/// The target ID of `e_flags`. The version of a generic processor is there since version 6 of code objects.
fn target_of_flags(flags: u32) -> Option<String> {
    let abi_version = if flags >> 24 == 0 { 3 } else { 4 };
    EFlags::decode(flags, abi_version).ok().map(|flags| flags.target_id().to_string())
}

/// A function of a coverage map or of a profile: the hashes of its name and of its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionKey {
    pub name: u64,
    pub shape: u64,
}

/// A program, library or code object, as far as profiles name it.
#[derive(Debug, Clone, Default)]
pub struct ObjectIdentity {
    /// The hash of a code object.
    pub code: Option<u64>,
    /// The build ID of a host's file.
    pub build_id: Option<Vec<u8>>,
    /// The functions of its coverage map.
    pub functions: BTreeSet<FunctionKey>,
}

impl ObjectIdentity {
    /// The identity of a code object.
    pub fn from_code_object(bytes: &[u8]) -> Self {
        let code = hotswap_profile_drain::image::code_id_of_file(bytes);
        Self { code, functions: mapped_functions(bytes), ..Self::default() }
    }

    /// The identity of the host's code of a file.
    pub fn from_host(bytes: &[u8]) -> Self {
        let build_id =
            object::File::parse(bytes).ok().and_then(|file| file.build_id().ok().flatten().map(<[u8]>::to_vec));
        Self { build_id, functions: mapped_functions(bytes), code: None }
    }

    /// The hashes of its functions' names.
    pub fn names(&self) -> impl Iterator<Item = u64> + '_ {
        self.functions.iter().map(|function| function.name)
    }
}

/// The functions of the section `__llvm_covfun`: hash of the name, size of the mapping, hash of the shape, hash of the
/// file names (28 bytes), the mapping; each record begins at a multiple of eight. Source: `InstrProfData.inc`.
fn mapped_functions(bytes: &[u8]) -> BTreeSet<FunctionKey> {
    let section = ElfFile64::<LittleEndian>::parse(bytes).ok().and_then(|file| {
        file.section_by_name("__llvm_covfun")?.uncompressed_data().ok().map(std::borrow::Cow::into_owned)
    });
    let mut functions = BTreeSet::new();
    let mut rest = section.as_deref().unwrap_or_default();
    while let Some(head) = rest.first_chunk::<28>() {
        let size = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
        functions.insert(FunctionKey { name: little_endian_word_at(0, head), shape: little_endian_word_at(12, head) });
        rest = rest.get((28 + size).next_multiple_of(8)..).unwrap_or_default();
    }
    functions
}

fn little_endian_word_at(at: usize, head: &[u8; 28]) -> u64 {
    head[at..at + 8].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
