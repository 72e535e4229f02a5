//! The bytes of a file, mapped or copied.

use hotswap_files::InputFile;
use std::ops::Deref;

/// The bytes of a file.
#[derive(Debug)]
pub(crate) enum FileBytes {
    Mapped(InputFile),
    Owned(Vec<u8>),
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(input) => input,
            Self::Owned(bytes) => bytes,
        }
    }
}
