//! Bytes kept for an output in an unnamed file, so that they need no memory.
//!
//! Invariants: several threads may add bytes at once; nothing is left when the process ends or is killed.

use crate::input::InputFile;
use crate::pages;
use crate::write::directory_of;
use hotswap_report::{Diagnostic, codes};
use memmap2::MmapMut;
use rustix::fs::{FallocateFlags, fallocate};
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

    /// Makes one in the directory for temporary files: `TMPDIR`, or `/var/tmp`, which is on a disk where `/tmp` is in memory.
    ///
    /// # Errors
    /// [`codes::CANNOT_WRITE`].
    pub fn temporary() -> Result<Self, Diagnostic> {
        let output = temporary_directory();
        let file = temporary_file().map_err(|error| cannot_write(&output, &error))?;
        Ok(Self { file, end: AtomicU64::new(0), output })
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

fn temporary_directory() -> PathBuf {
    std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from)
}

fn temporary_file() -> io::Result<File> {
    tempfile::tempfile_in(temporary_directory()).or_else(|_| tempfile::tempfile())
}

/// An unnamed file in the directory for temporary files that is written through memory, by code that fills a buffer.
#[derive(Debug)]
pub struct ScratchMap {
    file: File,
    map: MmapMut,
}

impl ScratchMap {
    /// Makes one of that size, which is not 0.
    ///
    /// # Errors
    /// Those of the file system, which has no space for it, or cannot map files.
    #[allow(unsafe_code, reason = "memory maps can only be made by an unsafe function")]
    pub fn new(size: usize) -> io::Result<Self> {
        let file = temporary_file()?;
        // Writing to a hole that the disk has no space for would end the process.
        fallocate(&file, FallocateFlags::empty(), 0, size as u64)?;
        // SAFETY: the file has no name and no other user, so nothing but this map changes it, and its size stays.
        let map = unsafe { MmapMut::map_mut(&file) }?;
        Ok(Self { file, map })
    }

    /// The result of `work`, which fills the buffer.
    pub fn fill<T>(&mut self, work: impl FnOnce(&mut [u8]) -> T) -> T {
        let start = self.map.as_ptr() as usize;
        let addresses = start..start + self.map.len();
        pages::while_released(addresses, || work(&mut self.map))
    }

    /// Its content.
    ///
    /// # Errors
    /// Where it cannot be mapped again.
    pub fn finish(self) -> io::Result<InputFile> {
        drop(self.map);
        InputFile::map(&self.file)
    }
}

fn cannot_write(output: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, format!("temporary file: {error}")).in_file(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filled_map_has_its_bytes_and_takes_little_memory() {
        const SIZE: usize = 64 << 20;
        // Pages of the mapping alone: other tests of this process use memory at the same time.
        let own_pages = |start: usize| {
            let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
            let holds = |line: &str| {
                let range = line.split(' ').next()?.split_once('-')?;
                let (first, end) = (usize::from_str_radix(range.0, 16).ok()?, usize::from_str_radix(range.1, 16).ok()?);
                (first..end).contains(&start).then_some(())
            };
            let lines = text.lines().skip_while(|line| holds(line).is_none());
            let line = lines.skip(1).find(|line| line.starts_with("Rss:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
        };
        let byte = |at: usize| (at / 4096) as u8 | 1;
        let mut map = ScratchMap::new(SIZE).unwrap();
        let (before, after) = map.fill(|bytes| {
            let start = bytes.as_ptr() as usize;
            let before = own_pages(start);
            bytes.iter_mut().enumerate().for_each(|(at, place)| *place = byte(at));
            std::thread::sleep(std::time::Duration::from_millis(100));
            (before, own_pages(start))
        });
        assert!(after < before + (SIZE as u64 >> 11), "{before} KiB became {after}");
        let input = map.finish().unwrap();
        let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        let expected: u64 = (0..SIZE).map(|at| u64::from(byte(at))).sum();
        assert_eq!(input.while_released(|| sum(&input)), expected);
        assert!(ScratchMap::new(usize::MAX / 4).is_err());
    }

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
