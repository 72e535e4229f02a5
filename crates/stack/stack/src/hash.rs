//! Hashes of files, as `sha256sum` prints them.

use hotswap_files::InputFile;
use hotswap_report::{Diagnostic, hex_digits};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Bytes that are hashed at a time.
const BLOCK: usize = 1 << 20;

/// SHA-256 as hexadecimal digits.
pub fn sha256_of(bytes: &[u8]) -> String {
    hex_digits(Sha256::digest(bytes).as_slice())
}

/// The hash of a mapped file, of which no more than a block is in memory.
pub fn of_input(input: &InputFile) -> String {
    let mut state = Sha256::new();
    for block in input.chunks(BLOCK) {
        state.update(block);
        input.release(block);
    }
    hex_digits(state.finalize().as_slice())
}

/// The hash of a file's content. It is read, not mapped: that is faster for content that is needed once.
///
/// # Errors
/// [`codes::CANNOT_READ`], also for what is not a regular file.
pub fn of_file(path: &Path) -> Result<String, Diagnostic> {
    hash_regular_file(path).map_err(|error: io::Error| Diagnostic::cannot_read(path, error))
}

fn hash_regular_file(path: &Path) -> Result<String, io::Error> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let (mut file, mut state, mut block) = (File::open(path)?, Sha256::new(), vec![0; BLOCK]);
    loop {
        match file.read(&mut block) {
            Ok(0) => return Ok(hex_digits(state.finalize().as_slice())),
            Ok(count) => state.update(&block[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
