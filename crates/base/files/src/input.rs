//! Input files, mapped where they are regular files.
//!
//! A mapped file that is scanned completely would fill the memory that the system accounts to the process: callers
//! release finished parts with [`InputFile::release`].

use crate::pages::{self, PAGE};
use hotswap_report::{Diagnostic, codes};
use memmap2::{Mmap, MmapOptions, UncheckedAdvice};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::Deref;
use std::os::fd::AsFd;
use std::path::Path;

/// The bytes of an input file.
#[derive(Debug)]
pub struct InputFile(InputStorage);

#[derive(Debug)]
enum InputStorage {
    Mapped(Mmap, File),
    /// A pipe, a device, an empty file.
    Read(Vec<u8>),
}

impl Deref for InputFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            InputStorage::Mapped(map, _) => map,
            InputStorage::Read(bytes) => bytes,
        }
    }
}

impl InputFile {
    pub(crate) fn empty() -> Self {
        Self(InputStorage::Read(Vec::new()))
    }

    /// Maps the file for reading, private to this process: file systems that keep no pages of their own (FUSE with direct I/O)
    /// share no maps of files that may be written. It must not be empty.
    #[allow(unsafe_code, reason = "memory maps can only be made by an unsafe function")]
    pub(crate) fn map_file(file: &File) -> io::Result<Self> {
        // SAFETY: the map is never written through and outlives no slice of it (`Input` owns it, the slices borrow).
        // Nothing of ours writes to an input: outputs are new files that are renamed into place. A foreign process that
        // writes into the file meanwhile can change what is read or end the process by SIGBUS, as with every mapping
        // reader (ld, objdump).
        let map = unsafe { MmapOptions::new().map_copy_read_only(file) }?;
        Ok(Self(InputStorage::Mapped(map, file.try_clone()?)))
    }

    /// As [`InputFile::map`], for a file of our own that is being written.
    pub(crate) fn map_output(file: &File) -> io::Result<Self> {
        let map = Self::map_file(file)?;
        crate::truncated::note_output(&map);
        Ok(map)
    }

    /// Releases the pages of the part, a slice of these bytes, which is not needed for now: they no longer count as
    /// memory of this process. A later read gets the same bytes from the file. Slices of something else are ignored.
    #[allow(unsafe_code, reason = "pages of memory maps can only be given back by an unsafe function")]
    pub fn release(&self, part: &[u8]) {
        let (InputStorage::Mapped(map, _), Some(offset)) = (&self.0, self.offset_of(part)) else { return };
        let (start, end) = (offset as usize, offset as usize + part.len());
        // Parts are consecutive: the page in which this one ends is released with the next one.
        let start = start / PAGE * PAGE;
        let end = if end == map.len() { end } else { end / PAGE * PAGE };
        if start < end {
            // SAFETY: the map is private, backed by a file and never written to, so a released page has the content of
            // the file, and the next access reads it from there (madvise(2), MADV_DONTNEED). `map` describes the
            // effects of another process that changes the file.
            let result = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, start, end - start) };
            // Where the system refuses, the pages stay: that costs only memory.
            drop(result);
        }
    }

    /// The result of `work`, which reads these bytes, while their pages are released again and again, so that
    /// they take little memory.
    pub fn while_released<T>(&self, work: impl FnOnce() -> T) -> T {
        match &self.0 {
            InputStorage::Mapped(map, _) => {
                let start = map.as_ptr() as usize;
                pages::while_released(start..start + map.len(), work)
            }
            InputStorage::Read(_) => work(),
        }
    }

    /// Whether the part is a slice of these bytes.
    pub fn holds(&self, part: &[u8]) -> bool {
        self.offset_of(part).is_some()
    }

    /// The offset of the part in these bytes, if it is a slice of them.
    fn offset_of(&self, part: &[u8]) -> Option<u64> {
        let offset = (part.as_ptr() as usize).checked_sub(self.as_ptr() as usize)?;
        (offset.checked_add(part.len())? <= self.len()).then_some(offset as u64)
    }

    /// The file and the part's offset in it, if the part is a slice of a mapped file.
    pub(crate) fn place_of(&self, part: &[u8]) -> Option<MappedPlace<'_>> {
        match &self.0 {
            InputStorage::Mapped(_, file) => Some(MappedPlace { file, offset: self.offset_of(part)? }),
            InputStorage::Read(_) => None,
        }
    }
}

/// A place in a mapped file.
#[derive(Clone, Copy)]
pub(crate) struct MappedPlace<'f> {
    pub(crate) file: &'f File,
    pub(crate) offset: u64,
}

/// Opens a file for reading it whole, without copying a regular one.
///
/// # Errors
/// [`codes::CANNOT_READ`], also where the file is absent.
pub fn open_input(path: &Path) -> Result<InputFile, Diagnostic> {
    open_file(path).map_err(|error| cannot_read(path, &error))
}

/// Permissions are not the reason where a file is expected and a directory is named.
pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> Diagnostic {
    if error.kind() == io::ErrorKind::IsADirectory {
        let found = Diagnostic::error(codes::CANNOT_READ, "it is a directory").in_file(path);
        return found
            .advise("name the files in it; `hotswap retarget DIRECTORY --list-actions` prints a command for each");
    }
    Diagnostic::cannot_read(path, error)
}

/// As [`open`], where `-` is standard input. Input redirected from the start of a regular file is not copied either.
///
/// # Errors
/// [`codes::CANNOT_READ`], also where the file is absent.
pub fn open_or_stdin(path: &Path) -> Result<InputFile, Diagnostic> {
    if !is_stdin(path) {
        return open_input(path);
    }
    let input = stdin_file().and_then(read_or_map);
    input.map_err(|error| Diagnostic::cannot_read("standard input", error))
}

/// Whether the path of a command denotes standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

pub(crate) fn stdin_file() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

fn open_file(path: &Path) -> io::Result<InputFile> {
    read_or_map(File::open(path)?)
}

pub(crate) fn read_or_map(mut file: File) -> io::Result<InputFile> {
    let meta = file.metadata()?;
    if meta.is_file() && meta.len() > 0 && file.stream_position()? == 0 {
        return InputFile::map_file(&file);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(InputFile(InputStorage::Read(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_released_reads_the_same_and_takes_no_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in");
        let bytes: Vec<u8> = (0..(32u32 << 20)).map(|n| (n / 4096) as u8 | 1).collect();
        std::fs::write(&path, &bytes).unwrap();
        let input = open_input(&path).unwrap();
        // File pages of this process, which other tests share: small ones.
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap().to_owned();
            line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
        };
        assert!(input[..] == bytes);
        let full = resident();
        input.release(&input[5..input.len() - 5]);
        assert!(resident() + (24 << 10) < full, "{full} KiB became {}", resident());
        input.release(&bytes);
        input.release(&input[7..7]);
        assert!(input[..] == bytes);
        assert_eq!(input.place_of(&input[9..20]).map(|place| place.offset), Some(9));
        assert!(input.place_of(&bytes).is_none());
        assert!(open_input(Path::new("/dev/null")).unwrap().is_empty());
    }
}
