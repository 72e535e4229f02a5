//! The source of an archive: its file, or the copy without compression that an earlier reading has left.
//!
//! Invariant: a copy has what the limits of expanded content let through.

use crate::{TarCompression, cannot_read, cannot_write, damaged_package};
use hotswap_report::Diagnostic;
use hotswap_report::limit::LimitedReader;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

/// A copy of a package's archive without its compression, which takes the most time of reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlainCopy<'p> {
    /// The archive is read, and no copy is left.
    Absent,
    /// It is read, and a copy is left there.
    Made(&'p Path),
    /// The copy there is read in its place.
    Kept(&'p Path),
}

/// An archive, and its copy.
pub(crate) struct ArchiveSource<'s> {
    pub(crate) input: &'s File,
    pub(crate) compression: TarCompression,
    pub(crate) copy: PlainCopy<'s>,
}

impl<'s> ArchiveSource<'s> {
    pub(crate) fn new(input: &'s File, compression: TarCompression) -> Self {
        Self { input, compression, copy: PlainCopy::Absent }
    }

    /// Whether an earlier reading has left what is read.
    pub(crate) fn is_kept(&self) -> bool {
        self.compression != TarCompression::None && matches!(self.copy, PlainCopy::Kept(_))
    }

    /// The archive without its compression.
    pub(crate) fn content(&self) -> Result<Box<dyn Read + 's>, Diagnostic> {
        match self.copy {
            _ if self.compression == TarCompression::None => expanded(self.input, self.compression),
            PlainCopy::Absent => expanded(self.input, self.compression),
            PlainCopy::Made(path) => {
                let copy = File::create(path).map_err(|error| cannot_write(&error).in_file(path))?;
                Ok(Box::new(CopyingReader { inner: expanded(self.input, self.compression)?, copy, path }))
            }
            PlainCopy::Kept(path) => {
                let copy = File::open(path).map_err(|error| cannot_read(&error).in_file(path))?;
                Ok(Box::new(BufReader::new(copy)))
            }
        }
    }
}

fn expanded(input: &File, compression: TarCompression) -> Result<Box<dyn Read + '_>, Diagnostic> {
    let held = input.metadata().map_err(|error| cannot_read(&error))?.len();
    let input = BufReader::new(input);
    let plain: Box<dyn Read + '_> = match compression {
        TarCompression::None => return Ok(Box::new(input)),
        TarCompression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
        TarCompression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
        TarCompression::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(input)),
        TarCompression::Zstd => {
            Box::new(zstd::stream::read::Decoder::with_buffer(input).map_err(|error| damaged_package(&error))?)
        }
    };
    Ok(Box::new(LimitedReader::new(plain, held)))
}

/// Writes what is read to the copy.
struct CopyingReader<'c> {
    inner: Box<dyn Read + 'c>,
    copy: File,
    path: &'c Path,
}

impl Read for CopyingReader<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let size = self.inner.read(room)?;
        let written = self.copy.write_all(&room[..size]);
        // The disk of temporary files, and not the package.
        written.map_err(|error| io::Error::other(cannot_write(&error).in_file(self.path)))?;
        Ok(size)
    }
}
