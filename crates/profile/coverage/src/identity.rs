//! The code that a raw profile belongs to: the identity that HotSwap's drain puts among the binary IDs of the raw format,
//! build IDs, and the functions of a coverage map.
//!
//! Names of files decide nothing, except between host and device for profiles without any identity (of older drains, or
//! of hosts without a build ID), which is reported.

use hotswap_targets::EFlags;
use md5::{Digest, Md5};
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
        let code = u64::from_str_radix(identity_field(text, "id")?, 16).ok()?;
        let flags = u32::from_str_radix(identity_field(text, "flags")?, 16).ok()?;
        let gpu = identity_field(text, "gpu")?.to_owned();
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
    /// Of these, the hashes of the names whose only records are of units that do not emit them.
    unused: BTreeSet<u64>,
}

impl ObjectIdentity {
    /// The identity of a code object.
    pub fn from_code_object(bytes: &[u8]) -> Self {
        let code = hotswap_profile_drain::image::code_id_of_file(bytes);
        Self { code, ..Self::of_map(&coverage_map(bytes)) }
    }

    /// The identity of the host's code of a file.
    pub fn from_host(bytes: &[u8]) -> Self {
        let build_id =
            object::File::parse(bytes).ok().and_then(|file| file.build_id().ok().flatten().map(<[u8]>::to_vec));
        Self { build_id, ..Self::of_map(&coverage_map(bytes)) }
    }

    fn of_map(section: &[u8]) -> Self {
        let (mut own, mut used) = (Self::default(), BTreeSet::new());
        for record in MapRecord::all(section) {
            own.functions.insert(record.key);
            let names = if record.is_unused() { &mut own.unused } else { &mut used };
            names.insert(record.key.name);
        }
        own.unused.retain(|name| !used.contains(name));
        own
    }

    /// Whether no unit of this object emits the function, as with an inline function of a header that they do not call.
    pub fn is_unused(&self, function: &str) -> bool {
        self.unused.contains(&name_hash(function))
    }

    /// The hashes of its functions' names.
    pub fn names(&self) -> impl Iterator<Item = u64> + '_ {
        self.functions.iter().map(|function| function.name)
    }
}

/// LLVM's reference to a function's name: the first half of the MD5 of it, little endian.
fn name_hash(name: &str) -> u64 {
    let [first, ..] = *Md5::digest(name).as_chunks::<8>().0 else { return 0 };
    u64::from_le_bytes(first)
}

/// The section `__llvm_covfun`; empty where the file has none.
fn coverage_map(bytes: &[u8]) -> Vec<u8> {
    let section = ElfFile64::<LittleEndian>::parse(bytes).ok().and_then(|file| {
        file.section_by_name("__llvm_covfun")?.uncompressed_data().ok().map(std::borrow::Cow::into_owned)
    });
    section.unwrap_or_default()
}

/// A record of the section `__llvm_covfun`: hash of the name, size of the mapping, hash of the shape, hash of the file names
/// (28 bytes), the mapping; each record begins at a multiple of eight. Source: `InstrProfData.inc`.
struct MapRecord<'a> {
    key: FunctionKey,
    mapping: &'a [u8],
}

impl<'a> MapRecord<'a> {
    fn all(section: &'a [u8]) -> impl Iterator<Item = Self> {
        let mut rest = section;
        std::iter::from_fn(move || {
            let head = rest.first_chunk::<28>()?;
            let size = u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
            let key = FunctionKey { name: little_endian_word_at(0, head), shape: little_endian_word_at(12, head) };
            let mapping = rest.get(28..28 + size).unwrap_or_default();
            rest = rest.get((28 + size).next_multiple_of(8)..).unwrap_or_default();
            Some(Self { key, mapping })
        })
    }

    /// Clang writes a function that its unit does not emit with the shape 0, one file, no expression, and one region whose
    /// counter is the constant zero (tag 0). An empty function has the shape 0, too, and a counter.
    fn is_unused(&self) -> bool {
        let mut numbers = LebNumbers(self.mapping);
        let (files, _file) = (numbers.next(), numbers.next());
        let (expressions, regions, counter) = (numbers.next(), numbers.next(), numbers.next());
        let is_zero = counter.is_some_and(|counter| counter & 3 == 0);
        self.key.shape == 0 && (files, expressions, regions) == (Some(1), Some(0), Some(1)) && is_zero
    }
}

/// Numbers in unsigned LEB128; ends at one that is cut or too large.
struct LebNumbers<'a>(&'a [u8]);

impl Iterator for LebNumbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

fn little_endian_word_at(at: usize, head: &[u8; 28]) -> u64 {
    head[at..at + 8].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The value of a field in the text of an identity, `NAME=VALUE` between colons.
fn identity_field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.split(':').find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with this shape and mapping, of a function with this name.
    fn record(name: &str, shape: u64, mapping: &[u8]) -> Vec<u8> {
        let mut bytes = name_hash(name).to_le_bytes().to_vec();
        bytes.extend((mapping.len() as u32).to_le_bytes());
        bytes.extend(shape.to_le_bytes());
        bytes.extend([0; 8]);
        bytes.extend(mapping);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    const UNUSED: &[u8] = &[1, 0x81, 0x01, 0, 1, 0, 1, 1, 0, 5];
    const EMPTY: &[u8] = &[1, 1, 0, 1, 1, 1, 1, 0, 5];

    #[test]
    fn functions_that_no_unit_emits_are_told_from_empty_ones() {
        let section: Vec<u8> = [
            record("unused", 0, UNUSED),
            record("empty", 0, EMPTY),
            record("elsewhere", 0, UNUSED),
            record("elsewhere", 24, EMPTY),
            record("shaped", 24, UNUSED),
            record("cut", 0, &UNUSED[..2]),
        ]
        .concat();
        let identity = ObjectIdentity::of_map(&section);
        let unused = ["unused", "empty", "elsewhere", "shaped", "cut", "absent"].map(|name| identity.is_unused(name));
        assert_eq!(unused, [true, false, false, false, false, false]);
        assert_eq!(identity.functions.len(), 6);
    }

    /// The reference that LLVM writes for this name.
    #[test]
    fn names_have_llvms_references() {
        assert_eq!(name_hash("main"), 0xdb95_6436_e78d_d5fa);
    }
}
