//! The kernel archive (`.kpack`) of TheRock's multi-architecture packages: code objects beside the libraries that they
//! belong to.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | magic `KPAK` |
//! | 4 | 4 | version, 1 |
//! | 8 | 8 | offset of the table, which ends with the file |
//! | 64 | | code objects |
//!
//! The table is a MessagePack map: `format_version` 1, `group_name`, `gfx_arch_family`, `gfx_arches`,
//! `compression_scheme`, and `toc`: for each fat binary (`lib/librocrand.so.1#0`) and target ID a map of `type` (`hsaco`),
//! `ordinal` and `original_size`. The ordinal counts in `blobs`, maps of `offset` and `size` in the file, for the scheme
//! `none`; for `zstd-per-kernel` in the frames from `zstd_offset` to `zstd_offset + zstd_size`: a u32 with their number,
//! each preceded by its size as u32. Readers ignore other keys; HotSwap's records are the key `hotswap_records`, a map of
//! JSON by fat binary. (rocm-systems: shared/kpack/runtime/src/toc_parser.cpp and its tests.)
//!
//! Each fat binary of the archive is a container. Invariants: an unchanged archive is written as its bytes; in a changed
//! one the code objects that stay keep their stored bytes, and unknown keys of the table stay. What an archive holds that
//! no entry of its table names is not written again.
//!
//! Absent on purpose: the references of host libraries to archives (`.rocm_kpack_ref`), which HotSwap does not change, and
//! manifests (`.kpm`).

use crate::Bundle;
use crate::bundle::BundleParts;
use crate::bytes::{EntryBytes, malformed_at, slice, u32_at, u64_at};
use crate::container::{ContainerForm, ContainerFormat, ContainerImage, DeviceContents, FoundContainer};
use crate::draft::FileRope;
use crate::inflate::{CompressionMethod, inflate_exactly};
use crate::magic::KERNEL_ARCHIVE;
use crate::zstd_frame;
use hotswap_report::{Diagnostic, codes};
use rmpv::Value;
use std::borrow::Cow;

const VERSION: u32 = 1;
/// Offset of the first code object.
const FIRST: u64 = 64;
/// Level of zstd that its own tool uses.
const LEVEL: i32 = 3;
/// The text before the target ID in the entry IDs of its fat binaries.
const ENTRY: &str = "hipv4-amdgcn-amd-amdhsa--";
const RECORDS: &str = "hotswap_records";
const TYPE: &str = "hsaco";

/// How code objects are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArchiveScheme {
    Stored,
    Zstd,
}

/// A code object as it is stored.
#[derive(Debug, Clone)]
struct ArchivedKernel<'a> {
    target: String,
    stored: EntryBytes<'a>,
    size: u64,
}

/// One fat binary of an archive.
#[derive(Debug, Clone)]
struct ArchivedBinary<'a> {
    name: String,
    kernels: Vec<ArchivedKernel<'a>>,
    record: Option<Vec<u8>>,
}

/// The content of a map of MessagePack.
type TableKeys = Vec<(Value, Value)>;

#[derive(Debug, Clone)]
pub struct KernelArchive<'a> {
    raw: &'a [u8],
    /// The table's keys that are not derived from the code objects, in their order.
    keys: TableKeys,
    scheme: ArchiveScheme,
    binaries: Vec<ArchivedBinary<'a>>,
    changed: bool,
}

/// Whether a file begins as a kernel archive.
pub fn is_kernel_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(KERNEL_ARCHIVE)
}

fn unknown_archive(what: String) -> Diagnostic {
    Diagnostic::error(codes::UNKNOWN_FORMAT, what).advise("report it with the version of the package")
}

impl<'a> KernelArchive<'a> {
    /// Reads an archive with its table.
    ///
    /// # Errors
    /// [`codes::UNKNOWN_FORMAT`] for another version, scheme or kind of code; [`codes::MALFORMED`] for damage.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Diagnostic> {
        if !is_kernel_archive(bytes) {
            return Err(unknown_archive("it does not begin as a kernel archive".to_owned()));
        }
        let version = u32_at(bytes, 4).ok_or_else(truncated_header_error)?;
        if version != VERSION {
            return Err(unknown_archive(format!("version {version} of the kernel archive")).at_offset(4));
        }
        let at = u64_at(bytes, 8).ok_or_else(truncated_header_error)?;
        let table = usize::try_from(at).ok().and_then(|at| bytes.get(at..)).filter(|table| !table.is_empty());
        let keys = read_table(table.ok_or_else(|| table_outside_error(at))?).map_err(|what| malformed_at(what, at))?;
        Self::of_table(bytes, keys)
            .map_err(|error| if error.place.offset.is_some() { error } else { error.at_offset(at) })
    }

    fn of_table(bytes: &'a [u8], mut keys: TableKeys) -> Result<Self, Diagnostic> {
        if let Some(version) = find_key(&keys, "format_version").filter(|version| version.as_u64() != Some(1)) {
            return Err(unknown_archive(format!("format {version} of the kernel archive's table")));
        }
        let scheme = match find_key(&keys, "compression_scheme").and_then(Value::as_str) {
            Some("none") => ArchiveScheme::Stored,
            Some("zstd-per-kernel") => ArchiveScheme::Zstd,
            Some(other) => return Err(unknown_archive(format!("the compression `{other}` of the kernel archive"))),
            None => return Err(damaged_table_error("no compression_scheme")),
        };
        let places = match scheme {
            ArchiveScheme::Stored => stored_places(bytes, &keys)?,
            ArchiveScheme::Zstd => frame_places(bytes, &keys)?,
        };
        let toc = find_key(&keys, "toc").and_then(Value::as_map).ok_or_else(|| damaged_table_error("no map toc"))?;
        let mut binaries = Vec::new();
        for (name, targets) in toc {
            let name = name.as_str().ok_or_else(|| damaged_table_error("a fat binary without a name"))?;
            let targets = targets.as_map().ok_or_else(|| damaged_table_error("a fat binary without targets"))?;
            let kernels = targets.iter().map(|(target, kernel)| kernel_of(target, kernel, &places, scheme));
            let kernels = kernels.collect::<Result<_, _>>().map_err(|error: Diagnostic| error.in_entry(name))?;
            binaries.push(ArchivedBinary { name: name.to_owned(), kernels, record: None });
        }
        for (name, record) in find_key(&keys, RECORDS).and_then(Value::as_map).into_iter().flatten() {
            let binary = binaries.iter_mut().find(|binary| name.as_str() == Some(&binary.name));
            if let Some((binary, record)) = binary.zip(record.as_str()) {
                binary.record = Some(record.as_bytes().to_vec());
            }
        }
        keys.retain(|(key, _)| !key.as_str().is_some_and(is_derived_key));
        Ok(Self { raw: bytes, keys, scheme, binaries, changed: false })
    }

    /// Names of its fat binaries.
    pub fn binaries(&self) -> impl Iterator<Item = &str> {
        self.binaries.iter().map(|binary| binary.name.as_str())
    }

    /// The fat binary that a container found in an archive is, as [`KernelArchive::bundle`].
    ///
    /// # Errors
    /// As for [`KernelArchive::parse`] and [`KernelArchive::bundle`].
    pub fn bundle_of(found: &FoundContainer<'a>) -> Result<Bundle<'a>, Diagnostic> {
        KernelArchive::parse(found.bytes)?.bundle(found.part_name())
    }

    /// A fat binary as a bundle, whose entries are unpacked.
    ///
    /// # Errors
    /// [`codes::MALFORMED`] for code that does not unpack; [`codes::NO_ENTRY`] for an unknown name.
    pub fn bundle(&self, name: &str) -> Result<Bundle<'a>, Diagnostic> {
        let binary = self.binaries.iter().find(|binary| binary.name == name);
        let binary = binary.ok_or_else(|| Diagnostic::error(codes::NO_ENTRY, format!("nothing is for `{name}`")))?;
        let mut bundle = Bundle::default();
        for kernel in &binary.kernels {
            let id = format!("{ENTRY}{}", kernel.target);
            let data = self.unpack_kernel(kernel).map_err(|error| error.in_entry(&id))?;
            if bundle.entry(&id).is_some() {
                return Err(malformed_at("a fat binary has this entry twice", 0).in_entry(id));
            }
            bundle.push(id, data)?;
        }
        bundle.set_record(binary.record.clone());
        bundle.mark_unchanged();
        Ok(bundle)
    }

    fn unpack_kernel(&self, kernel: &ArchivedKernel<'a>) -> Result<EntryBytes<'a>, Diagnostic> {
        match self.scheme {
            ArchiveScheme::Stored => Ok(kernel.stored.clone()),
            ArchiveScheme::Zstd => {
                inflate_exactly(&kernel.stored, CompressionMethod::Zstd, kernel.size).map(EntryBytes::from)
            }
        }
    }

    /// Replaces the entries and the record of a fat binary by those of a bundle. Entries with the same bytes stay
    /// as they are stored.
    ///
    /// # Errors
    /// As for [`KernelArchive::bundle`]; [`codes::UNKNOWN_TARGET`] for an entry that is not HIP code.
    pub fn set_bundle(&mut self, name: &str, bundle: &Bundle<'_>) -> Result<(), Diagnostic> {
        let old = self.bundle(name)?;
        let scheme = self.scheme;
        let Some(binary) = self.binaries.iter_mut().find(|binary| binary.name == name) else { return Ok(()) };
        let mut kernels = Vec::new();
        for entry in bundle.entries().iter().filter(|entry| !entry.data.is_empty()) {
            let target = entry.id.strip_prefix(ENTRY).ok_or_else(|| {
                Diagnostic::error(codes::UNKNOWN_TARGET, "a kernel archive has no place for it").in_entry(&entry.id)
            })?;
            let is_old = old.entry(&entry.id).is_some_and(|old| old.data == entry.data);
            let kept = binary.kernels.iter().find(|kernel| is_old && kernel.target == target).cloned();
            kernels.push(match kept {
                Some(kernel) => kernel,
                None => store_kernel(target, &entry.data, scheme)?,
            });
        }
        binary.kernels = kernels;
        binary.record = bundle.record().map(<[u8]>::to_vec);
        self.changed = true;
        Ok(())
    }

    /// Removes the fat binaries that do not have any code left.
    pub fn drop_empty(&mut self) {
        self.binaries.retain(|binary| !binary.kernels.is_empty());
    }

    /// Its bytes: those of the input where nothing was changed.
    ///
    /// # Errors
    /// [`codes::INTERNAL`] where the table cannot be written.
    pub fn to_draft(&self) -> Result<FileRope<'a>, Diagnostic> {
        if !self.changed {
            return Ok(FileRope::from(self.raw));
        }
        let mut content = FileRope::default();
        let mut places = Vec::new();
        let kernels = self.binaries.iter().flat_map(|binary| &binary.kernels);
        content.pad_to(FIRST);
        if self.scheme == ArchiveScheme::Zstd {
            content.push((kernels.clone().count() as u32).to_le_bytes().to_vec());
        }
        for kernel in kernels {
            if self.scheme == ArchiveScheme::Zstd {
                content.push((kernel.stored.len() as u32).to_le_bytes().to_vec());
            }
            places.push(StoredPlace { offset: content.size(), size: kernel.stored.len() as u64 });
            content.push(kernel.stored.clone());
        }
        let end = content.size();
        content.push(self.table_bytes(&places, end)?);
        let header = [KERNEL_ARCHIVE, &VERSION.to_le_bytes(), &end.to_le_bytes()].concat();
        content.overwrite_at(0, header);
        Ok(content)
    }

    /// The MessagePack of the table.
    fn table_bytes(&self, places: &[StoredPlace], end: u64) -> Result<Vec<u8>, Diagnostic> {
        let mut keys = self.keys.clone();
        let mut targets: Vec<&str> =
            self.binaries.iter().flat_map(|binary| &binary.kernels).map(|kernel| kernel.target.as_str()).collect();
        targets.sort_unstable();
        targets.dedup();
        keys.push(("gfx_arches".into(), Value::Array(targets.into_iter().map(Value::from).collect())));
        let (mut binaries, mut ordinal) = (Vec::with_capacity(self.binaries.len()), 0_u64);
        for binary in &self.binaries {
            let mut kernels = Vec::with_capacity(binary.kernels.len());
            for kernel in &binary.kernels {
                let fields = vec![
                    ("type".into(), TYPE.into()),
                    ("ordinal".into(), ordinal.into()),
                    ("original_size".into(), kernel.size.into()),
                ];
                kernels.push((Value::from(kernel.target.as_str()), Value::Map(fields)));
                ordinal += 1;
            }
            binaries.push((Value::from(binary.name.as_str()), Value::Map(kernels)));
        }
        keys.push(("toc".into(), Value::Map(binaries)));
        match self.scheme {
            ArchiveScheme::Stored => {
                keys.push(("blobs".into(), Value::Array(places.iter().map(StoredPlace::blob_map).collect())));
            }
            ArchiveScheme::Zstd => {
                keys.push(("zstd_offset".into(), FIRST.into()));
                keys.push(("zstd_size".into(), (end - FIRST).into()));
            }
        }
        let records = self.binaries.iter().filter_map(|binary| {
            let record = String::from_utf8(binary.record.clone()?).ok()?;
            Some((Value::from(binary.name.as_str()), Value::from(record)))
        });
        let records: Vec<_> = records.collect();
        if !records.is_empty() {
            keys.push((RECORDS.into(), Value::Map(records)));
        }
        let mut table = Vec::new();
        let written = rmpv::encode::write_value(&mut table, &Value::Map(keys));
        written.map_err(|error| Diagnostic::error(codes::INTERNAL, format!("the table: {error}")))?;
        Ok(table)
    }

    /// Whether `bytes` are this archive: its fat binaries with the same code, and nothing else.
    ///
    /// # Errors
    /// [`codes::VERIFY_FAILED`], or the error that makes them unreadable.
    pub fn check_written(&self, bytes: &[u8]) -> Result<(), Diagnostic> {
        let again = KernelArchive::parse(bytes)?;
        if !again.binaries().eq(self.binaries()) || again.keys != self.keys {
            return Err(archive_difference_error("table"));
        }
        for name in self.binaries() {
            let (found, expected) = (again.bundle(name)?, self.bundle(name)?);
            if found.entries() != expected.entries() || found.record() != expected.record() {
                return Err(archive_difference_error(name));
            }
        }
        Ok(())
    }
}

/// Where a kernel's code is in the file.
struct StoredPlace {
    offset: u64,
    size: u64,
}

impl StoredPlace {
    fn blob_map(&self) -> Value {
        Value::Map(vec![("offset".into(), self.offset.into()), ("size".into(), self.size.into())])
    }
}

fn truncated_header_error() -> Diagnostic {
    malformed_at("the kernel archive ends in its header", 4)
}

fn table_outside_error(at: u64) -> Diagnostic {
    malformed_at(format!("the table is at {at:#x}, outside of the file"), 8)
}

fn damaged_table_error(what: &str) -> Diagnostic {
    malformed_at(format!("the table of the kernel archive has {what}"), 0)
}

fn is_derived_key(key: &str) -> bool {
    ["toc", "blobs", "zstd_offset", "zstd_size", "gfx_arches", RECORDS].contains(&key)
}

fn archive_difference_error(name: &str) -> Diagnostic {
    Diagnostic::error(codes::VERIFY_FAILED, "the kernel archive differs from what was planned").in_entry(name)
}

/// The keys of the table, which is one map and ends with the file.
fn read_table(mut bytes: &[u8]) -> Result<TableKeys, Cow<'static, str>> {
    let value = rmpv::decode::read_value(&mut bytes).map_err(|error| format!("the table does not decode: {error}"))?;
    if !bytes.is_empty() {
        return Err("bytes follow the table of the kernel archive".into());
    }
    match value {
        Value::Map(keys) => Ok(keys),
        _ => Err("the table of the kernel archive is no map".into()),
    }
}

fn find_key<'k>(keys: &'k TableKeys, name: &str) -> Option<&'k Value> {
    keys.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
}

fn number_of_key(keys: &TableKeys, name: &str) -> Result<u64, Diagnostic> {
    find_key(keys, name).and_then(Value::as_u64).ok_or_else(|| missing_number_error(name))
}

fn missing_number_error(name: &str) -> Diagnostic {
    malformed_at(format!("the table of the kernel archive has no number {name}"), 0)
}

fn stored_places<'a>(bytes: &'a [u8], keys: &TableKeys) -> Result<Vec<&'a [u8]>, Diagnostic> {
    let blobs = find_key(keys, "blobs").and_then(Value::as_array).ok_or_else(missing_blobs_error)?;
    let places = blobs.iter().map(|blob| {
        let fields = blob.as_map().ok_or_else(missing_blobs_error)?;
        let (offset, size) = (number_of_key(fields, "offset")?, number_of_key(fields, "size")?);
        slice(bytes, offset, size).ok_or_else(|| blob_outside_error(size, offset))
    });
    places.collect()
}

fn missing_blobs_error() -> Diagnostic {
    malformed_at("the table of the kernel archive has no list of blobs", 0)
}

fn blob_outside_error(size: u64, offset: u64) -> Diagnostic {
    malformed_at(format!("a code object has {size:#x} bytes, outside of the file"), offset)
}

fn frame_places<'a>(bytes: &'a [u8], keys: &TableKeys) -> Result<Vec<&'a [u8]>, Diagnostic> {
    let (start, size) = (number_of_key(keys, "zstd_offset")?, number_of_key(keys, "zstd_size")?);
    let frames = slice(bytes, start, size).ok_or_else(|| truncated_frames_error(start))?;
    let count = u32_at(frames, 0).ok_or_else(|| truncated_frames_error(start))?;
    let (mut places, mut at) = (Vec::new(), 4);
    for _ in 0..count {
        let size = u32_at(frames, at).ok_or_else(|| truncated_frames_error(start + at))?;
        let frame = slice(frames, at + 4, u64::from(size)).ok_or_else(|| truncated_frames_error(start + at))?;
        places.push(frame);
        at += 4 + u64::from(size);
    }
    if at == size { Ok(places) } else { Err(malformed_at("bytes follow the frames of the kernel archive", start + at)) }
}

fn truncated_frames_error(at: u64) -> Diagnostic {
    malformed_at("the frames of the kernel archive are cut off", at)
}

fn kernel_of<'a>(
    target: &Value,
    kernel: &Value,
    places: &[&'a [u8]],
    scheme: ArchiveScheme,
) -> Result<ArchivedKernel<'a>, Diagnostic> {
    let target = target.as_str().ok_or_else(|| damaged_entry_error("no target"))?;
    let fields = kernel.as_map().ok_or_else(|| damaged_entry_error("no fields"))?;
    if let Some(kind) = find_key(fields, "type").and_then(Value::as_str).filter(|kind| *kind != TYPE) {
        return Err(unknown_archive(format!("code of the type `{kind}` in the kernel archive")).in_entry(target));
    }
    let (ordinal, size) = (number_of_key(fields, "ordinal")?, number_of_key(fields, "original_size")?);
    let place = usize::try_from(ordinal).ok().and_then(|ordinal| places.get(ordinal));
    let place = place.ok_or_else(|| damaged_entry_error(&format!("the ordinal {ordinal} of {}", places.len())))?;
    let is_claimed = match scheme {
        ArchiveScheme::Stored => place.len() as u64 == size,
        ArchiveScheme::Zstd => zstd_frame::frame_extent(place).is_some_and(|extent| extent.size == place.len() as u64),
    };
    if !is_claimed {
        return Err(damaged_entry_error("another size than its code object").in_entry(target));
    }
    Ok(ArchivedKernel { target: target.to_owned(), stored: EntryBytes::from(*place), size })
}

fn damaged_entry_error(what: &str) -> Diagnostic {
    malformed_at(format!("an entry of the kernel archive has {what}"), 0)
}

fn store_kernel<'a>(target: &str, data: &[u8], scheme: ArchiveScheme) -> Result<ArchivedKernel<'a>, Diagnostic> {
    let stored = match scheme {
        ArchiveScheme::Stored => data.to_vec(),
        ArchiveScheme::Zstd => zstd::bulk::compress(data, LEVEL).map_err(kernel_compression_error)?,
    };
    if u32::try_from(stored.len()).is_err() {
        return Err(Diagnostic::error(codes::NO_PLACE, "a code object of 4 GiB").in_entry(target));
    }
    Ok(ArchivedKernel { target: target.to_owned(), stored: EntryBytes::from(stored), size: data.len() as u64 })
}

fn kernel_compression_error(error: std::io::Error) -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, format!("compression: {error}"))
}

/// The fat binaries of kernel archives; which one is the last member of the container's place.
#[derive(Debug)]
pub(crate) struct ArchivedBinaries;

impl ContainerFormat for ArchivedBinaries {
    fn begins(&self, bytes: &[u8]) -> bool {
        is_kernel_archive(bytes)
    }

    fn is_section(&self, _name: &str) -> bool {
        false
    }

    fn next(&self, _bytes: &[u8], at: usize) -> Result<Option<usize>, Diagnostic> {
        Ok(Some(at).filter(|at| *at == 0))
    }

    fn extent(&self, bytes: &[u8]) -> Result<(ContainerForm, usize), Diagnostic> {
        KernelArchive::parse(bytes).map(|_| (ContainerForm::KernelArchive, bytes.len()))
    }

    fn read<'a>(&self, found: &FoundContainer<'a>) -> Result<DeviceContents<'a>, Diagnostic> {
        let archive = KernelArchive::parse(found.bytes)?;
        let BundleParts { entries, record, .. } = archive.bundle(found.part_name())?.into_parts();
        let plain_size = entries.iter().map(|entry| entry.data.len() as u64).sum();
        let images = entries.into_iter().map(|entry| ContainerImage::new(Some(entry.id), entry.data)).collect();
        Ok(DeviceContents { record, plain_size, ..found.device(images) })
    }

    fn parts(&self, bytes: &[u8]) -> Option<Vec<String>> {
        let archive = KernelArchive::parse(bytes).ok()?;
        Some(archive.binaries().map(str::to_owned).collect())
    }
}
