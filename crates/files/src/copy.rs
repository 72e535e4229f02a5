//! Writing the parts of a file, from memory or from another file without a way through memory of ours, and reading each
//! again as soon as it is there.
//!
//! Invariants: the parts' bytes are in the file afterwards, or an error is told, the first one in the order of the parts
//! whatever the number of threads; zeros become holes where that costs no look at them (holes of the source) or little
//! (small pieces). The files' positions mean nothing.

use crate::input::Input;
use rustix::fs::{SeekFrom, copy_file_range, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What a thread takes at once. It is read again while the processor's caches still hold it.
const BLOCK: usize = 1 << 20;
/// Smaller blocks are written from memory: a copy from file to file costs two system calls more.
const WORTH_COPYING: usize = 256 << 10;
/// Bytes that are looked at for zeros and written from memory at once.
const PIECE: usize = 128 << 10;

/// Where a part goes, and its bytes.
pub(crate) type Part<'p> = (u64, &'p [u8]);

/// Puts all parts to their offsets; they do not overlap.
pub(crate) fn put_all(file: &File, parts: &[Part<'_>], sources: &[&Input], threads: usize) -> io::Result<()> {
    let blocks: Vec<Part<'_>> =
        parts.iter().flat_map(|(at, part)| (*at..).step_by(BLOCK).zip(part.chunks(BLOCK))).collect();
    let next = AtomicUsize::new(0);
    let failed: Mutex<Option<(usize, io::Error)>> = Mutex::new(None);
    let take = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((at, block)) = blocks.get(index) else { return };
            let Err(error) = put(file, *at, block, sources) else { continue };
            // No more blocks for anybody; those that others have taken come before this one, or fail by themselves.
            next.store(blocks.len(), Ordering::Relaxed);
            if let Ok(mut failed) = failed.lock()
                && failed.as_ref().is_none_or(|(first, _)| index < *first)
            {
                *failed = Some((index, error));
            }
        }
    };
    thread::scope(|scope| {
        (1..threads.min(blocks.len())).for_each(|_| drop(scope.spawn(take)));
        take();
    });
    failed.into_inner().ok().flatten().map_or(Ok(()), |(_, error)| Err(error))
}

/// Writes a block to its offset and reads it again.
pub(crate) fn put(file: &File, at: u64, block: &[u8], sources: &[&Input]) -> io::Result<()> {
    let place = sources.iter().find_map(|source| Some((source, source.place_of(block)?)));
    let mut rest = 0;
    if let Some((_, (from, offset))) = place.filter(|_| block.len() >= WORTH_COPYING) {
        let copied = copy(from, offset..offset + block.len() as u64, file, at)?;
        if copied == Copied::Nothing {
            return Ok(());
        }
        rest = copied.size(block.len());
    }
    write(file, at + rest as u64, &block[rest..])?;
    read_again(file, at, block)?;
    if let Some((source, _)) = place {
        source.release(block);
    }
    Ok(())
}

/// As [`put`], for a block that was just read: writing it from memory costs less then than a copy from file to file.
pub(crate) fn put_read(file: &File, at: u64, block: &[u8]) -> io::Result<()> {
    write(file, at, block)?;
    read_again(file, at, block)
}

/// Compares what is in the file with the block that was written there.
fn read_again(file: &File, at: u64, block: &[u8]) -> io::Result<()> {
    // Reading a hole would fill memory with zeros.
    if block.chunks(PIECE).all(is_zero) && next_data(file, at..at + block.len() as u64)?.is_none() {
        return Ok(());
    }
    let again = Input::map_part(file, at, block.len())?;
    if again[..] == *block {
        return Ok(());
    }
    let differs = again.iter().zip(block).take_while(|(one, other)| one == other).count();
    let what = format!("what was written reads back differently, at {:#x} of the new file", at + differs as u64);
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

fn is_zero(piece: &[u8]) -> bool {
    static ZEROS: [u8; PIECE] = [0; PIECE];
    *piece == ZEROS[..piece.len()]
}

/// Pieces that hold nothing but zeros stay holes.
fn write(file: &File, at: u64, block: &[u8]) -> io::Result<()> {
    let pieces = block.chunks(PIECE).zip((at..).step_by(PIECE));
    let mut filled = pieces.filter(|(piece, _)| !is_zero(piece));
    filled.try_for_each(|(piece, at)| file.write_all_at(piece, at))
}

/// How much was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    /// Everything, and it is a hole.
    Nothing,
    All,
    /// So many bytes: the system does not do it between these files, or no further.
    Some(u64),
}

impl Copied {
    fn size(self, all: usize) -> usize {
        match self {
            Self::Nothing | Self::All => all,
            Self::Some(size) => size as usize,
        }
    }
}

fn copy(from: &File, range: Range<u64>, to: &File, start: u64) -> io::Result<Copied> {
    let (mut at, mut result) = (range.start, Copied::Nothing);
    while at < range.end {
        let Some(data) = next_data(from, at..range.end)? else { return Ok(result) };
        (at, result) = (data.start, Copied::All);
        while at < data.end {
            let (mut source, mut target) = (at, start + (at - range.start));
            match copy_file_range(from, Some(&mut source), to, Some(&mut target), (data.end - at) as usize) {
                Ok(0) => return Err(shorter()),
                Ok(size) => at += size as u64,
                Err(Errno::INTR) => {}
                Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL | Errno::PERM) => {
                    return Ok(Copied::Some(at - range.start));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(result)
}

/// The next stretch of the file that is no hole.
fn next_data(file: &File, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
    let start = match seek(file, SeekFrom::Data(range.start)) {
        Ok(start) => start.max(range.start),
        // Behind the last byte that is stored: a hole, if the file still reaches there.
        Err(Errno::NXIO) if file.metadata()?.len() >= range.end => return Ok(None),
        Err(Errno::NXIO) => return Err(shorter()),
        // This file system does not know of holes.
        Err(_) => return Ok(Some(range)),
    };
    if start >= range.end {
        return Ok(None);
    }
    let end = seek(file, SeekFrom::Hole(start)).map_or(range.end, |end| end.min(range.end));
    Ok(Some(start..end.max(start + 1)))
}

fn shorter() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the input became shorter meanwhile")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn holes_stay_holes_and_data_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let (source, target) = (dir.path().join("source"), dir.path().join("target"));
        let file = File::create(&source).unwrap();
        file.set_len(8 << 20).unwrap();
        for at in [0, (3 << 20) - 100, (8 << 20) - 9] {
            file.write_all_at(b"123456789", at).unwrap();
        }
        let input = crate::open(&source).unwrap();
        for (number, start) in [0, 5, 1 << 20].into_iter().enumerate() {
            let file = File::options().read(true).write(true).create(true).truncate(true).open(&target).unwrap();
            file.set_len((8 << 20) + 77).unwrap();
            put_all(&file, &[(77, &input[start..])], &[&input], 1 + number).unwrap();
            let written = std::fs::read(&target).unwrap();
            assert!(written[77..][..input.len() - start] == input[start..], "{number}");
            assert!(written[77 + input.len() - start..].iter().all(|byte| *byte == 0));
            assert!(file.metadata().unwrap().blocks() <= source.metadata().unwrap().blocks() + 64);
        }
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("source");
        std::fs::write(&source, vec![1; 1 << 20]).unwrap();
        let from = File::options().read(true).write(true).open(&source).unwrap();
        from.set_len(4096).unwrap();
        let to = File::create(dir.path().join("target")).unwrap();
        for start in [0, 4096, 8192] {
            let error = copy(&from, start..1 << 20, &to, 0).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{start}");
        }
    }
}
