//! Hashes of files.

use crate::cannot_read;
use hotswap_report::Diagnostic;
use md5::{Digest, Md5};
use sha2::Sha256;
use std::fs::File;
use std::io;
use std::path::Path;

/// SHA-256 and number of bytes.
pub(crate) fn sha256(path: &Path) -> Result<([u8; 32], u64), Diagnostic> {
    let mut state = Sha256::new();
    let size = copy(path, &mut state)?;
    Ok((state.finalize().into(), size))
}

/// MD5 as hexadecimal digits.
pub(crate) fn md5(path: &Path) -> Result<String, Diagnostic> {
    let mut state = Md5::new();
    copy(path, &mut state)?;
    Ok(state.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn copy(path: &Path, to: &mut dyn io::Write) -> Result<u64, Diagnostic> {
    let copied = File::open(path).and_then(|mut file| io::copy(&mut file, to));
    copied.map_err(|error| cannot_read(&error).in_file(path))
}
