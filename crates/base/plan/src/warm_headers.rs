//! Where precompiled headers are kept in the user's cache: for the driver wrapper, which makes them, and for `hotswap doctor`, which
//! counts them.
//!
//! Layout: `warm-headers/headers/KEY/header.pch` with a record beside it.
//!
//! Absent on purpose: what a record says.

/// The directory in the cache.
pub const WARM_HEADERS: &str = "warm-headers";
/// The directory in it that has a directory for each precompiled header.
pub const STORED_HEADERS: &str = "headers";
/// The precompiled header in its directory.
pub const HEADER_FILE: &str = "header.pch";
/// Headers that were not used for longest are removed beyond so many bytes.
pub const HEADERS_LIMIT: u64 = 4 << 30;
