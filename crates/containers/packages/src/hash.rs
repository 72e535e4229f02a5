//! Hashes of files.

use crate::cannot_read;
use hotswap_report::Diagnostic;
use md5::{Digest, Md5};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The hash of an algorithm, and the number of bytes.
pub(crate) fn hash_file<D: Digest + io::Write>(path: &Path) -> Result<(Vec<u8>, u64), Diagnostic> {
    let mut state = D::new();
    let size = copy_file(path, &mut state)?;
    Ok((state.finalize().to_vec(), size))
}

/// The number of bytes.
pub(crate) fn file_size(path: &Path) -> Result<u64, Diagnostic> {
    fs::metadata(path).map(|data| data.len()).map_err(|error| cannot_read(&error).in_file(path))
}

/// MD5 as hexadecimal digits.
pub(crate) fn md5_of_file(path: &Path) -> Result<String, Diagnostic> {
    let mut state = Md5::new();
    copy_file(path, &mut state)?;
    Ok(hotswap_report::hex_digits(&state.finalize()))
}

fn copy_file(path: &Path, to: &mut dyn io::Write) -> Result<u64, Diagnostic> {
    let copied = File::open(path).and_then(|mut file| io::copy(&mut file, to));
    copied.map_err(|error| cannot_read(&error).in_file(path))
}
