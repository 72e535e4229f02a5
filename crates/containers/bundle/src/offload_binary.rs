//! LLVM's OffloadBinary, which `.llvm.offloading` sections hold.
//!
//! | offset | V1 (LLVM 22) | V2 (LLVM 23) | V3 (LLVM 24) |
//! |---|---|---|---|
//! | 0 | magic `10 FF 10 AD`, u32 version | same | same |
//! | 8 | u64 whole size | same | same |
//! | 16 | u64 offset of the entry | u64 offset of the entries | same |
//! | 24 | u64 size of the entry | u64 number of entries | same |
//! | 32 | | | u64 inflated size with header; 0: not compressed |
//!
//! An entry has 40 bytes: u16 image kind, u16 offload kind, u32 flags, u64 offset and number of
//! string records, u64 offset and size of the image. A string record is two u64 offsets (key,
//! value), from V2 on followed by the value's u64 size. In a compressed V3 all that follows the
//! header is one zstd frame or zlib stream, and all offsets are those of the inflated form.
//! Sections hold several of them, each at a multiple of 8.

use crate::bytes::{EntryBytes, align_up, malformed_at, slice, u16_at, u32_at, u64_at};
use crate::container::{ContainerForm, ContainerFormat, ContainerImage, DeviceContents, FoundContainer, StatedImage};
use crate::inflate::{CompressionMethod, inflate_behind};
use crate::magic::OFFLOAD_BINARY;
use hotswap_report::{Diagnostic, codes};

/// `.llvm.offloading` sections align each binary to it.
pub(crate) const ALIGNMENT: u64 = 8;
const ENTRY: u64 = 40;

/// One image with its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffloadImage<'a> {
    /// 1 object, 2 bitcode, 3 cubin, 4 fat binary, 5 PTX, 6 SPIR-V; 0 unknown.
    pub image_kind: u16,
    /// 1 OpenMP, 2 CUDA, 4 HIP, 8 SYCL.
    pub offload_kind: u16,
    /// Bit 0: metadata only.
    pub flags: u32,
    /// Keys and values in their order; `triple` and `arch` among them.
    pub strings: Vec<(String, String)>,
    /// The image, at any alignment.
    pub data: EntryBytes<'a>,
}

impl<'a> OffloadImage<'a> {
    fn into_container_image(self) -> ContainerImage<'a> {
        let producer = self.string("producer").map(str::to_owned);
        let stated = StatedImage { kind: image_kind_name(self.image_kind), producer };
        ContainerImage { stated: Some(stated), ..ContainerImage::new(self.entry_id(), self.data) }
    }
}

/// The names of LLVM's `getImageKindName`.
fn image_kind_name(kind: u16) -> &'static str {
    match kind {
        1 => "o",
        2 => "bc",
        3 => "cubin",
        4 => "fatbin",
        5 => "s",
        6 => "spv",
        _ => "unknown",
    }
}

impl OffloadImage<'_> {
    /// The value of that key.
    pub fn string(&self, key: &str) -> Option<&str> {
        self.strings.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The bundle entry ID that `clang-linker-wrapper` would give the image.
    pub fn entry_id(&self) -> Option<String> {
        let kind = match self.offload_kind {
            1 => "openmp",
            2 => "cuda",
            4 => "hip",
            8 => "sycl",
            _ => "unknown",
        };
        let triple = self.string("triple")?;
        let environment = if triple.split('-').count() < 4 { "-" } else { "" };
        Some(format!("{kind}-{triple}{environment}-{}", self.string("arch").unwrap_or_default()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffloadBinary<'a> {
    /// The version of the format, 1 to 3.
    pub version: u32,
    /// Whether the payload is compressed.
    pub compressed: bool,
    /// Its images; one in V1.
    pub images: Vec<OffloadImage<'a>>,
}

/// OffloadBinaries, one after the other.
#[derive(Debug)]
pub(crate) struct OffloadBinaries;

impl ContainerFormat for OffloadBinaries {
    fn begins(&self, bytes: &[u8]) -> bool {
        bytes.starts_with(OFFLOAD_BINARY)
    }

    fn is_section(&self, name: &str) -> bool {
        matches!(name, ".llvm.offloading" | ".llvm.of")
    }

    fn next(&self, bytes: &[u8], at: usize) -> Result<Option<usize>, Diagnostic> {
        let at = at.next_multiple_of(ALIGNMENT as usize);
        Ok(bytes.get(at..).is_some_and(|rest| rest.iter().any(|byte| *byte != 0)).then_some(at))
    }

    fn extent(&self, bytes: &[u8]) -> Result<(ContainerForm, usize), Diagnostic> {
        binary_extent(bytes).map(|(version, size)| (ContainerForm::OffloadBinary(version), size as usize))
    }

    fn read<'a>(&self, found: &FoundContainer<'a>) -> Result<DeviceContents<'a>, Diagnostic> {
        let (binary, _) = OffloadBinary::parse(found.bytes)?;
        Ok(found.device(binary.images.into_iter().map(OffloadImage::into_container_image).collect()))
    }

    fn expanded_size(&self, bytes: &[u8]) -> Option<u64> {
        inflated_size(bytes)
    }
}

/// Version and whole size of the binary at the start of `bytes`.
pub(crate) fn binary_extent(bytes: &[u8]) -> Result<(u32, u64), Diagnostic> {
    if !bytes.starts_with(OFFLOAD_BINARY) {
        return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, "it does not begin as an offload binary"));
    }
    let version = u32_at(bytes, 4).ok_or_else(truncated_header_error)?;
    if !(1..=3).contains(&version) {
        return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, format!("offload binary version {version}")).at_offset(4));
    }
    let size = u64_at(bytes, 8).ok_or_else(truncated_header_error)?;
    if size < header_size(version) || size > bytes.len() as u64 {
        let what = format!("the offload binary claims {size} bytes; {} are there", bytes.len());
        return Err(malformed_at(what, 8));
    }
    Ok((version, size))
}

fn truncated_header_error() -> Diagnostic {
    malformed_at("the offload binary ends in its header", 0)
}

/// The size that a compressed binary has without compression; `None` for others.
pub(crate) fn inflated_size(bytes: &[u8]) -> Option<u64> {
    let (version, _) = binary_extent(bytes).ok()?;
    u64_at(bytes, 32).filter(|size| version == 3 && *size != 0)
}

fn header_size(version: u32) -> u64 {
    if version == 3 { 40 } else { 32 }
}

impl<'a> OffloadBinary<'a> {
    /// Reads the binary at the start of `bytes`; also returns the number of bytes that belong to it.
    ///
    /// # Errors
    /// [`codes::UNKNOWN_FORMAT`] for another magic or version, [`codes::MALFORMED`] for damage.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, usize), Diagnostic> {
        let (version, size) = binary_extent(bytes)?;
        let whole = &bytes[..size as usize];
        let inflated = inflated_size(whole);
        let content = inflated.map_or_else(|| Ok(EntryBytes::from(whole)), |size| inflated_form(whole, size))?;
        let images = read_images(&content, version)?;
        Ok((Self { version, compressed: inflated.is_some(), images }, whole.len()))
    }

    /// Writes it like LLVM of that generation; never compressed.
    ///
    /// # Errors
    /// [`codes::INTERNAL`] for an unknown version or a V1 that has not exactly one image.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Diagnostic> {
        let fits = (1..=3).contains(&self.version) && (self.version != 1 || self.images.len() == 1);
        if !fits {
            let what = format!("offload binary version {} with {} images", self.version, self.images.len());
            return Err(Diagnostic::error(codes::INTERNAL, what));
        }
        Ok(write::write_binary(self))
    }
}

/// The uncompressed form of the binary: its header, then the inflated payload.
fn inflated_form(whole: &[u8], size: u64) -> Result<EntryBytes<'static>, Diagnostic> {
    let (header, payload) = whole.split_at(header_size(3) as usize);
    let method =
        if payload.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) { CompressionMethod::Zstd } else { CompressionMethod::Zlib };
    let size =
        size.checked_sub(header.len() as u64).ok_or_else(|| malformed_at("the inflated size is too small", 32))?;
    Ok(EntryBytes::from(inflate_behind(header, payload, method, size)?))
}

fn read_images<'a>(bytes: &EntryBytes<'a>, version: u32) -> Result<Vec<OffloadImage<'a>>, Diagnostic> {
    let start = u64_at(bytes, 16).ok_or_else(truncated_entries_error)?;
    let second = u64_at(bytes, 24).ok_or_else(truncated_entries_error)?;
    let count = if version == 1 { 1 } else { second };
    let entries =
        count.checked_mul(ENTRY).and_then(|size| slice(bytes, start, size)).ok_or_else(truncated_entries_error)?;
    entries.chunks_exact(ENTRY as usize).map(|entry| read_image(bytes, entry, version)).collect()
}

fn truncated_entries_error() -> Diagnostic {
    malformed_at("the entries leave the offload binary", 16)
}

fn read_image<'a>(bytes: &EntryBytes<'a>, entry: &[u8], version: u32) -> Result<OffloadImage<'a>, Diagnostic> {
    let (strings, count, offset, size) = (
        image_entry_number(8, entry),
        image_entry_number(16, entry),
        image_entry_number(24, entry),
        image_entry_number(32, entry),
    );
    let end = offset.checked_add(size).ok_or_else(|| image_outside_error(offset, size))?;
    Ok(OffloadImage {
        image_kind: u16_at(entry, 0).unwrap_or_default(),
        offload_kind: u16_at(entry, 2).unwrap_or_default(),
        flags: u32_at(entry, 4).unwrap_or_default(),
        strings: read_strings(bytes, strings, count, version)?,
        data: bytes.part(offset..end).ok_or_else(|| image_outside_error(offset, size))?,
    })
}

fn image_entry_number(at: u64, entry: &[u8]) -> u64 {
    u64_at(entry, at).unwrap_or_default()
}

/// Not `at` that offset: it is the one that cannot be true.
fn image_bounds_message(offset: u64, size: u64) -> String {
    format!("an image is at {offset:#x} with {size:#x} bytes, outside of the offload binary")
}

fn image_outside_error(offset: u64, size: u64) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, image_bounds_message(offset, size))
}

fn read_strings(bytes: &[u8], start: u64, count: u64, version: u32) -> Result<Vec<(String, String)>, Diagnostic> {
    let width = if version == 1 { 16 } else { 24 };
    let table = count
        .checked_mul(width)
        .and_then(|size| slice(bytes, start, size))
        .ok_or_else(|| truncated_strings_error(count, start))?;
    table
        .chunks_exact(width as usize)
        .map(|record| read_string_record(record, bytes).ok_or_else(|| truncated_strings_error(count, start)))
        .collect()
}

fn string_table_message(count: u64, start: u64) -> String {
    format!("{count} strings at {start:#x} lie outside of the offload binary")
}

fn truncated_strings_error(count: u64, start: u64) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, string_table_message(count, start))
}

fn read_string_record(record: &[u8], bytes: &[u8]) -> Option<(String, String)> {
    let key = string_at(bytes, u64_at(record, 0)?, None)?;
    Some((key, string_at(bytes, u64_at(record, 8)?, u64_at(record, 16))?))
}

/// A string that ends with NUL, or has that size.
fn string_at(bytes: &[u8], offset: u64, size: Option<u64>) -> Option<String> {
    let found = match size {
        Some(size) => slice(bytes, offset, size)?,
        None => {
            let rest = bytes.get(usize::try_from(offset).ok()?..)?;
            &rest[..rest.iter().position(|byte| *byte == 0)?]
        }
    };
    Some(String::from_utf8_lossy(found).into_owned())
}

mod write {
    //! The layout of LLVM's `OffloadBinary::write`, byte for byte.

    use super::{ALIGNMENT, ENTRY, OFFLOAD_BINARY, OffloadBinary, align_up, header_size};
    use std::collections::{BTreeMap, BTreeSet};

    /// A string table like that of LLVM's `StringTableBuilder`: sorted from the last character, longest first, so that
    /// a string that is a suffix of another one shares its bytes.
    struct StringTable {
        bytes: Vec<u8>,
        offsets: BTreeMap<String, u64>,
    }

    impl StringTable {
        fn of(binary: &OffloadBinary<'_>) -> Self {
            let pairs = binary.images.iter().flat_map(|image| &image.strings);
            let unique: BTreeSet<&String> = pairs.flat_map(|(key, value)| [key, value]).collect();
            let mut order: Vec<&String> = unique.into_iter().collect();
            order.sort_by(|a, b| b.bytes().rev().cmp(a.bytes().rev()));
            let (mut bytes, mut offsets, mut before) = (vec![0u8], BTreeMap::new(), "");
            for string in order {
                let shared = before.ends_with(string.as_str());
                let at = if shared { bytes.len() - string.len() - 1 } else { bytes.len() };
                offsets.insert(string.clone(), at as u64);
                if !shared {
                    bytes.extend_from_slice(string.as_bytes());
                    bytes.push(0);
                    before = string;
                }
            }
            Self { bytes, offsets }
        }
    }

    pub(super) fn write_binary(binary: &OffloadBinary<'_>) -> Vec<u8> {
        let strings = StringTable::of(binary);
        let width = if binary.version == 1 { 16 } else { 24 };
        let header = header_size(binary.version);
        let records = header + ENTRY * binary.images.len() as u64;
        let record_count: u64 = binary.images.iter().map(|image| image.strings.len() as u64).sum();
        let table = records + record_count * width;
        let first = align_up(table + strings.bytes.len() as u64, ALIGNMENT).unwrap_or(u64::MAX);
        let images: u64 = binary.images.iter().map(|image| image.data.len() as u64).sum();
        let size = align_up(first + images, ALIGNMENT).unwrap_or(u64::MAX);

        let mut out = Vec::with_capacity(size as usize);
        out.extend_from_slice(OFFLOAD_BINARY);
        out.extend_from_slice(&binary.version.to_le_bytes());
        let second = if binary.version == 1 { ENTRY } else { binary.images.len() as u64 };
        let fields = [size, header, second, 0];
        let count = if binary.version == 3 { 4 } else { 3 };
        fields[..count].iter().for_each(|field| out.extend_from_slice(&field.to_le_bytes()));
        let (mut record, mut image_at) = (records, first);
        for image in &binary.images {
            out.extend_from_slice(&image.image_kind.to_le_bytes());
            out.extend_from_slice(&image.offload_kind.to_le_bytes());
            out.extend_from_slice(&image.flags.to_le_bytes());
            for field in [record, image.strings.len() as u64, image_at, image.data.len() as u64] {
                out.extend_from_slice(&field.to_le_bytes());
            }
            record += image.strings.len() as u64 * width;
            image_at += image.data.len() as u64;
        }
        for (key, value) in binary.images.iter().flat_map(|image| &image.strings) {
            let fields = [table + strings.offsets[key], table + strings.offsets[value], value.len() as u64];
            fields[..width as usize / 8].iter().for_each(|field| out.extend_from_slice(&field.to_le_bytes()));
        }
        out.extend_from_slice(&strings.bytes);
        out.resize(first as usize, 0);
        binary.images.iter().for_each(|image| out.extend_from_slice(&image.data));
        out.resize(size as usize, 0);
        out
    }
}
