//! Input files, mapped where they are regular files.

use hotswap_report::{Diagnostic, codes};
use memmap2::Mmap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

/// The bytes of an input file.
#[derive(Debug)]
pub enum Input {
    /// A regular file.
    Mapped(Mmap),
    /// A pipe, a device, an empty file.
    Read(Vec<u8>),
}

impl Deref for Input {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Read(bytes) => bytes,
        }
    }
}

/// Opens a file for reading it whole, without copying a regular one.
///
/// # Errors
/// [`codes::CANNOT_READ`].
pub fn open(path: &Path) -> Result<Input, Diagnostic> {
    open_file(path).map_err(|error| Diagnostic::error(codes::CANNOT_READ, error.to_string()).in_file(path))
}

fn open_file(path: &Path) -> io::Result<Input> {
    let mut file = File::open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() && meta.len() > 0 {
        return map(&file).map(Input::Mapped);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Input::Read(bytes))
}

/// Maps the file for reading, private to this process.
#[allow(unsafe_code, reason = "memory maps can only be made by an unsafe function")]
pub(crate) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is never written through and outlives no slice of it (`Input` owns it, the
    // slices borrow). Nothing of ours writes to an input: outputs are new files that are renamed
    // into place. A foreign process that writes into the file meanwhile can change what is read
    // or end the process by SIGBUS, as with every mapping reader (ld, objdump).
    unsafe { Mmap::map(file) }
}
