//! Bytes kept for an output in an unnamed file, so that they need no memory.
//!
//! Invariants: several threads may add bytes at once; nothing is left when the process ends or is killed.

use crate::input::InputFile;
use crate::write::directory_of;
use hotswap_report::{Diagnostic, codes};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// An unnamed file in the directory of an output.
#[derive(Debug)]
pub struct Scratch {
    file: File,
    end: AtomicU64,
    output: PathBuf,
}

impl Scratch {
    /// Makes one in the directory of that output, or in that for temporary files.
    ///
    /// # Errors
    /// [`codes::CANNOT_WRITE`].
    pub fn beside(output: &Path) -> Result<Self, Diagnostic> {
        // On file systems without unnamed files (FUSE, NFS, 9P), it gets a name that is removed at once.
        let file = tempfile::tempfile_in(directory_of(output)).or_else(|_| tempfile::tempfile());
        let file = file.map_err(|error| cannot_write(output, &error))?;
        Ok(Self { file, end: AtomicU64::new(0), output: output.to_owned() })
    }

    /// Keeps the bytes; returns their range in [`Scratch::read`].
    ///
    /// # Errors
    /// [`codes::CANNOT_WRITE`].
    pub fn keep(&self, bytes: &[u8]) -> Result<Range<usize>, Diagnostic> {
        let start = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(bytes, start).map_err(|error| cannot_write(&self.output, &error))?;
        Ok(start as usize..start as usize + bytes.len())
    }

    /// All that was kept.
    ///
    /// # Errors
    /// [`codes::CANNOT_READ`].
    pub fn read(&self) -> Result<InputFile, Diagnostic> {
        if self.end.load(Ordering::Relaxed) == 0 {
            return Ok(InputFile::empty());
        }
        let failed = |error: io::Error| Diagnostic::error(codes::CANNOT_READ, error.to_string()).in_file(&self.output);
        InputFile::map(&self.file).map_err(failed)
    }
}

fn cannot_write(output: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, format!("temporary file: {error}")).in_file(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_keep_what_is_theirs_and_nothing_stays() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::beside(&dir.path().join("out")).unwrap();
        assert!(scratch.read().unwrap().is_empty());
        let ranges: Vec<_> = std::thread::scope(|scope| {
            let scratch = &scratch;
            let keep = move |byte: u8| (byte, scratch.keep(&vec![byte; 1000 + usize::from(byte)]).unwrap());
            let threads: Vec<_> = (1..9u8).map(|byte| scope.spawn(move || keep(byte))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let all = scratch.read().unwrap();
        for (byte, range) in ranges {
            assert!(range.len() == 1000 + usize::from(byte) && all[range].iter().all(|found| *found == byte));
        }
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(Scratch::beside(Path::new("/nonexistent-directory/out")).is_ok(), "temporary files have a directory");
    }
}
