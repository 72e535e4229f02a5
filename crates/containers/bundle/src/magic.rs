//! The first bytes of containers.

/// A plain offload bundle.
pub(crate) const PLAIN: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// A compressed offload bundle.
pub(crate) const COMPRESSED: &[u8] = b"CCOB";
pub(crate) const OFFLOAD_BINARY: &[u8] = &[0x10, 0xff, 0x10, 0xad];

/// A kernel archive (kpack).
pub(crate) const KERNEL_ARCHIVE: &[u8] = b"KPAK";

/// Whether `bytes` begin as a bundle, plain or compressed.
pub fn is_bundle(bytes: &[u8]) -> bool {
    bytes.starts_with(PLAIN) || bytes.starts_with(COMPRESSED)
}
