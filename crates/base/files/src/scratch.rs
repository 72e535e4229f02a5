//! Bytes kept for an output in an unnamed file, so that they need no memory.
//!
//! Invariants: several threads may add bytes at once; nothing is left when the process ends or is killed.

use crate::beside::directory_of;
use crate::input::InputFile;
use crate::pages;
use hotswap_report::{Diagnostic, codes};
use memmap2::{MmapMut, MmapOptions};
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
    /// [`codes::CANNOT_WRITE`] where it cannot be created.
    pub fn beside_output(output: &Path) -> Result<Self, Diagnostic> {
        // On file systems without unnamed files (FUSE, NFS, 9P), it gets a name that is removed at once.
        let file = tempfile::tempfile_in(directory_of(output)).or_else(|_| tempfile::tempfile());
        let file = file.map_err(|error| cannot_write(output, &error))?;
        Ok(Self { file, end: AtomicU64::new(0), output: output.to_owned() })
    }

    /// Makes one in the directory for temporary files: `TMPDIR`, or `/var/tmp`, which is on a disk where `/tmp` is in memory.
    ///
    /// # Errors
    /// [`codes::CANNOT_WRITE`] where it cannot be created.
    pub fn temporary() -> Result<Self, Diagnostic> {
        let output = temporary_directory();
        let file = temporary_file().map_err(|error| cannot_write(&output, &error))?;
        Ok(Self { file, end: AtomicU64::new(0), output })
    }

    /// Keeps the bytes; returns their range in [`Scratch::read`].
    ///
    /// # Errors
    /// [`codes::CANNOT_WRITE`], for example without space.
    pub fn keep(&self, bytes: &[u8]) -> Result<Range<usize>, Diagnostic> {
        let start = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.file.write_all_at(bytes, start).map_err(|error| cannot_write(&self.output, &error))?;
        Ok(start as usize..start as usize + bytes.len())
    }

    /// All that was kept.
    ///
    /// # Errors
    /// [`codes::CANNOT_WRITE`]: the file is a part of the output.
    pub fn read(&self) -> Result<InputFile, Diagnostic> {
        if self.end.load(Ordering::Relaxed) == 0 {
            return Ok(InputFile::empty());
        }
        InputFile::map_output(&self.file).map_err(|one| scratch_read_error(one, self))
    }
}

fn scratch_read_error(error: io::Error, scratch: &Scratch) -> Diagnostic {
    cannot_write(&scratch.output, &error)
}

fn temporary_directory() -> PathBuf {
    std::env::var_os("TMPDIR").map_or_else(|| PathBuf::from("/var/tmp"), PathBuf::from)
}

fn temporary_file() -> io::Result<File> {
    tempfile::tempfile_in(temporary_directory()).or_else(|_| tempfile::tempfile())
}

/// A buffer that is filled from its start on, and whose finished part is in an unnamed file in the directory for temporary
/// files: it stays readable at its place, and takes no memory. The content is written by system calls, which costs a
/// fifth of what writing to a map of the file does.
#[derive(Debug)]
pub struct ScratchBuffer {
    file: File,
    map: MmapMut,
    /// The size of the part that is in the file; a multiple of [`pages::PAGE`], or all.
    stored: usize,
    /// As `stored`, when pages of that part were given back last.
    released: usize,
}

impl ScratchBuffer {
    /// Bytes after which the pages of the finished part, which were read again meanwhile, are given back.
    const RELEASED: usize = 16 << 20;
    /// Bytes after the finished part that get memory at once: a page at a time costs more.
    const AHEAD: usize = 1 << 20;

    /// Makes one of that size, which is not 0.
    ///
    /// # Errors
    /// Those of the system, which lacks address space for it, or space for temporary files.
    pub fn new(size: usize) -> io::Result<Self> {
        let file = temporary_file()?;
        let map = MmapOptions::new().len(size).no_reserve_swap().map_anon()?;
        // Its memory is given back in smaller pieces than huge pages. A system without huge pages refuses this.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::NoHugePage);
        let buffer = Self { file, map, stored: 0, released: 0 };
        buffer.prepare_pages();
        Ok(buffer)
    }

    /// All of it. The finished part is not to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }

    /// Declares the first bytes finished, so that they need no memory; up to a page of them is finished later.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn mark_finished(&mut self, size: usize) -> io::Result<()> {
        let end = if size == self.map.len() { size } else { size / pages::PAGE * pages::PAGE };
        if end <= self.stored {
            return Ok(());
        }
        let part = self.stored..end;
        self.file.write_all_at(&self.map[part.clone()], part.start as u64)?;
        pages::map_file_over(&mut self.map, part, &self.file)?;
        self.stored = end;
        self.prepare_pages();
        if end - self.released >= Self::RELEASED {
            pages::give_back_of(&self.map[..end]);
            self.released = end;
        }
        Ok(())
    }

    fn prepare_pages(&self) {
        pages::populate_pages(&self.map[self.stored..self.map.len().min(self.stored + Self::AHEAD)]);
    }

    /// Its content, of which all is finished.
    ///
    /// # Errors
    /// Where it cannot be mapped again.
    pub fn finish(mut self) -> io::Result<InputFile> {
        self.mark_finished(self.map.len())?;
        drop(self.map);
        InputFile::map_file(&self.file)
    }
}

fn cannot_write(output: &Path, error: &io::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, format!("temporary file: {error}")).in_file(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of one mapping that are in memory, in KiB: other tests of this process use memory at the same time.
    fn resident(map: &[u8]) -> u64 {
        let (first, last) = (map.as_ptr() as usize, map.as_ptr() as usize + map.len());
        let text = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let is_inside = |line: &str| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let start = range.and_then(|(start, _)| usize::from_str_radix(start, 16).ok());
            start.map(|start| (first..last).contains(&start))
        };
        let (mut inside, mut sum) = (false, 0);
        for line in text.lines() {
            inside = is_inside(line).unwrap_or(inside);
            if let Some(size) = line.strip_prefix("Rss:").filter(|_| inside) {
                sum += size.split_whitespace().next().unwrap().parse::<u64>().unwrap();
            }
        }
        sum
    }

    #[test]
    fn a_filled_buffer_has_its_bytes_and_takes_little_memory() {
        const SIZE: usize = (64 << 20) + 12_345;
        const STEP: usize = 999_999;
        let byte = |at: usize| (at / 4096) as u8 | 1;
        let mut buffer = ScratchBuffer::new(SIZE).unwrap();
        let mut most = 0;
        for start in (0..SIZE).step_by(STEP) {
            let end = SIZE.min(start + STEP);
            let bytes = buffer.bytes_mut();
            bytes[start..end].iter_mut().zip(start..).for_each(|(place, at)| *place = byte(at));
            // All that was finished can still be read, as a decompressor does.
            assert!(bytes[..start].iter().step_by(4096).zip((0..).step_by(4096)).all(|(found, at)| *found == byte(at)));
            buffer.mark_finished(end).unwrap();
            most = most.max(if end > SIZE / 2 { resident(buffer.bytes_mut()) } else { 0 });
        }
        // Pages that were read since the last release are there: all of them after most steps, none after some.
        buffer.mark_finished(SIZE).unwrap();
        assert!(resident(buffer.bytes_mut()) <= most);
        pages::give_back_of(buffer.bytes_mut());
        assert_eq!(resident(buffer.bytes_mut()), 0, "a part of the buffer is in no file");
        let input = buffer.finish().unwrap();
        assert!(input.len() == SIZE && input.iter().zip(0..).all(|(found, at)| *found == byte(at)));
        assert!(ScratchBuffer::new(usize::MAX / 4).is_err());
    }

    #[test]
    fn threads_keep_what_is_theirs_and_nothing_stays() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::beside_output(&dir.path().join("out")).unwrap();
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
        assert!(
            Scratch::beside_output(Path::new("/nonexistent-directory/out")).is_ok(),
            "temporary files have a directory"
        );
    }
}
