//! Containers of device code: clang offload bundles plain and compressed, LLVM OffloadBinary,
//! and the ELF, COFF and archive files that hold them.
//!
//! [`parse`] reads one bundle, [`walk_fatbin`] the bundles that a host linker has concatenated, [`open`] any file.
//! [`Bundle::to_bytes`] writes, [`host_object`] replaces the bundle inside a relocatable host object.
//!
//! Invariants: no input makes these functions panic, nor allocate more than the input can justify. An unchanged bundle
//! is written as the very bytes it was read from. Entries are views of the input (or of its one decompressed form),
//! never copies.
//!
//! Absent on purpose: the meaning of code objects and the compatibility of targets (`hotswap-code-object`,
//! `hotswap-compat`); the text form of bundles (assembly,
//! preprocessed source), which holds no code objects.

mod aside;
mod bare;
mod bundle;
mod bytes;
mod ccob;
mod coff_object;
mod container;
mod contents;
mod device_sections;
mod draft;
mod elf;
mod embed;
mod entry_id;
mod fatbin;
mod foreign;
pub mod host_object;
mod image;
mod inflate;
pub mod inventory;
mod kernel_archive;
pub mod linked;
mod loose;
mod magic;
mod md5_lanes;
mod offload_binary;
mod plain;
mod record_block;
mod unit_reference;
mod zstd_frame;

pub use aside::STREAMED_FROM;
pub use bare::{split_record, with_record};
pub use bundle::{Bundle, BundleEntry, BundleSummary, HashState, parse, parse_all_lenient, parse_aside, parse_lenient};
pub use bytes::EntryBytes;
pub use ccob::Compression;
pub use container::{ContainerForm, ContainerImage, ContainerPosition, DeviceContents, FoundContainer, StatedImage};
pub use contents::{ARCHIVE_REFERENCES, FoundContents, find_containers, open_with};
pub use draft::{DraftFacts, FileRope};
pub use embed::{draft_with_exchanges, embed_containers, verify_exchanges, verify_with};
pub use entry_id::{EntryId, OffloadKind};
pub use fatbin::{BundleWalk, LocatedBundle, walk_fatbin, walk_fatbin_lenient};
pub use image::{ImageKind, device_object_kernels};
pub use inflate::CompressionMethod;
pub use kernel_archive::{KernelArchive, is_kernel_archive};
pub use magic::is_bundle;
pub use md5_lanes::LANES as SIDE_BY_SIDE;
pub use offload_binary::{OffloadBinary, OffloadImage};
pub use plain::{ALIGNMENT, EntrySize, TABLE_LIMIT};
pub use unit_reference::{BitcodeUnit, UnitReference, add_unit_reference, read_bitcode_unit};
