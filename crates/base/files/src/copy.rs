//! Writing the parts of a file, from memory or from another file without a copy in our memory, and reading each back as
//! soon as it is written.
//!
//! Invariants: afterwards the parts' bytes are in the file, or an error is returned: the first one in the order of the
//! parts, whatever the number of threads. Zeros become holes where that needs no scan (holes of the source) or a short
//! one (small pieces). The files' positions are meaningless.

use crate::input::{InputFile, MappedPlace};
use rustix::fs::{Advice, FallocateFlags, SeekFrom, copy_file_range, fadvise, fallocate, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The unit of work of a thread. It is read back while the processor's caches still hold it.
const BLOCK: usize = 1 << 20;
/// Smaller blocks are written from memory: a copy from file to file costs two system calls more.
const WORTH_COPYING: usize = 256 << 10;
/// The unit that is scanned for zeros and written from memory.
const PIECE: usize = 128 << 10;

/// The offset of a part, and its bytes.
pub(crate) type CopyPart<'p> = (u64, &'p [u8]);

/// Writes all parts at their offsets; they do not overlap.
pub(crate) fn put_all(file: &File, parts: &[CopyPart<'_>], sources: &[&InputFile], threads: usize) -> io::Result<()> {
    let blocks: Vec<CopyPart<'_>> =
        parts.iter().flat_map(|(at, part)| (*at..).step_by(BLOCK).zip(part.chunks(BLOCK))).collect();
    is_read_anywhere(file);
    let queue = BlockQueue { file, blocks, sources, next: AtomicUsize::new(0), failed: Mutex::new(None) };
    thread::scope(|scope| {
        // Where the system provides no more threads, fewer are used.
        (1..threads.min(queue.blocks.len()))
            .all(|_| thread::Builder::new().spawn_scoped(scope, || queue.put_blocks()).is_ok());
        queue.put_blocks();
    });
    queue.failed.into_inner().ok().flatten().map_or(Ok(()), |failed| Err(failed.error))
}

/// Blocks that several threads write.
struct BlockQueue<'q> {
    file: &'q File,
    blocks: Vec<CopyPart<'q>>,
    sources: &'q [&'q InputFile],
    /// The number of the next block that a thread takes.
    next: AtomicUsize,
    /// The first block that could not be written.
    failed: Mutex<Option<FailedBlock>>,
}

struct FailedBlock {
    index: usize,
    error: io::Error,
}

impl BlockQueue<'_> {
    /// Writes blocks until all are taken, or one has failed.
    fn put_blocks(&self) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((at, block)) = self.blocks.get(index) else { return };
            let Err(error) = put_block(self.file, *at, block, self.sources) else { continue };
            // No thread takes further blocks; blocks taken by other threads precede this one, or fail with their own
            // error.
            self.next.store(self.blocks.len(), Ordering::Relaxed);
            if let Ok(mut failed) = self.failed.lock()
                && failed.as_ref().is_none_or(|first| index < first.index)
            {
                *failed = Some(FailedBlock { index, error });
            }
        }
    }
}

/// Writes a block at its offset and reads it back.
pub(crate) fn put_block(file: &File, at: u64, block: &[u8], sources: &[&InputFile]) -> io::Result<()> {
    let place = sources.iter().find_map(|source| Some((source, source.place_of(block)?)));
    let mut rest = 0;
    if let Some((_, MappedPlace { file: from, offset })) = place.filter(|_| block.len() >= WORTH_COPYING) {
        let copied = copy_range(from, offset..offset + block.len() as u64, file, at)?;
        if copied == Copied::Nothing {
            return Ok(());
        }
        rest = copied.copied_size(block.len());
    }
    put_read(file, at + rest as u64, &block[rest..])?;
    read_again(file, at, &block[..rest], &mut vec![0; rest.min(PIECE)])?;
    if let Some((source, _)) = place {
        source.release(block);
    }
    Ok(())
}

/// As [`put`], for a block that was just read: writing it from memory costs less then than a copy from file to file.
pub(crate) fn put_read(file: &File, at: u64, block: &[u8]) -> io::Result<()> {
    // Pieces that hold nothing but zeros stay holes. The others are read back while the processor's caches hold them.
    let mut again = vec![0; block.len().min(PIECE)];
    if !block.chunks(PIECE).any(is_zero) {
        reserve_space(file, at..at + block.len() as u64);
    }
    for (piece, at) in block.chunks(PIECE).zip((at..).step_by(PIECE)) {
        if !is_zero(piece) {
            file.write_all_at(piece, at)?;
        }
        read_again(file, at, piece, &mut again)?;
    }
    Ok(())
}

/// Reserves the space of the next writes as a whole: a file system that allocates it page by page takes half as long
/// again (ext4, 189 MB: 44 ms against 30).
fn reserve_space(file: &File, range: Range<u64>) {
    // The write reports the error, if there is one.
    let _ = fallocate(file, FallocateFlags::empty(), range.start, range.end - range.start);
}

/// Compares the file with the block that was written there, in pieces as large as the buffer passed in.
fn read_again(file: &File, at: u64, block: &[u8], lent: &mut [u8]) -> io::Result<()> {
    for (piece, at) in block.chunks(PIECE).zip((at..).step_by(PIECE)) {
        // Reading a hole would fill memory with zeros.
        if is_zero(piece) && data_start(file, &(at..at + piece.len() as u64))?.is_none() {
            continue;
        }
        let again = &mut lent[..piece.len()];
        file.read_exact_at(again, at)?;
        if again != piece {
            let differs = again.iter().zip(piece).take_while(|(one, other)| one == other).count();
            return Err(reads_differently(at + differs as u64));
        }
    }
    Ok(())
}

fn reads_differently(at: u64) -> io::Error {
    let what = format!("what was written reads back differently, at {at:#x} of the new file");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Compares the gaps between the parts, which do not overlap, with zeros.
pub(crate) fn check_gaps(file: &File, size: u64, parts: &[CopyPart<'_>]) -> io::Result<()> {
    let mut filled: Vec<Range<u64>> = parts.iter().map(|(at, part)| *at..at + part.len() as u64).collect();
    filled.sort_unstable_by_key(|range| range.start);
    filled.push(size..size);
    let mut again = vec![0; PIECE];
    let mut at = 0;
    for range in filled {
        while at < range.start {
            let Some(data) = data_start(file, &(at..range.start))? else { break };
            at = data;
            let piece = &ZEROS[..(range.start.min(at + PIECE as u64) - at) as usize];
            read_again(file, at, piece, &mut again)?;
            at += piece.len() as u64;
        }
        at = range.end;
    }
    Ok(())
}

/// Declares that the file is not read sequentially: read-ahead of parts that are not written yet
/// fills memory with zeros.
pub(crate) fn is_read_anywhere(file: &File) {
    // Where the system does not support the advice, that is its cost.
    let _ = fadvise(file, 0, None, Advice::Random);
}

static ZEROS: [u8; PIECE] = [0; PIECE];

fn is_zero(piece: &[u8]) -> bool {
    *piece == ZEROS[..piece.len()]
}

/// The amount that was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    /// Everything, and it is a hole.
    Nothing,
    All,
    /// This many bytes: the system does not copy between these files, or no further.
    Some(u64),
}

impl Copied {
    fn copied_size(self, all: usize) -> usize {
        match self {
            Self::Nothing | Self::All => all,
            Self::Some(size) => size as usize,
        }
    }
}

fn copy_range(from: &File, range: Range<u64>, to: &File, start: u64) -> io::Result<Copied> {
    let (mut at, mut result) = (range.start, Copied::Nothing);
    while at < range.end {
        let Some(data) = next_data(from, at..range.end)? else { return Ok(result) };
        (at, result) = (data.start, Copied::All);
        reserve_space(to, start + (data.start - range.start)..start + (data.end - range.start));
        while at < data.end {
            let (mut source, mut target) = (at, start + (at - range.start));
            match copy_file_range(from, Some(&mut source), to, Some(&mut target), (data.end - at) as usize) {
                Ok(0) => return Err(shortened_error()),
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

/// The next range of the file that is not a hole.
fn next_data(file: &File, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
    let Some(start) = data_start(file, &range)? else { return Ok(None) };
    let end = seek(file, SeekFrom::Hole(start)).map_or(range.end, |end| end.min(range.end));
    Ok(Some(start..end.max(start + 1)))
}

/// Its start. To find its end a file system may have to examine every page of it.
fn data_start(file: &File, range: &Range<u64>) -> io::Result<Option<u64>> {
    let start = match seek(file, SeekFrom::Data(range.start)) {
        Ok(start) => start.max(range.start),
        // After the last byte that is stored: a hole, if the file still extends there.
        Err(Errno::NXIO) if file.metadata()?.len() >= range.end => return Ok(None),
        Err(Errno::NXIO) => return Err(shortened_error()),
        // This file system does not support holes.
        Err(_) => range.start,
    };
    Ok((start < range.end).then_some(start))
}

fn shortened_error() -> io::Error {
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
        let input = crate::open_input(&source).unwrap();
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
    fn what_is_in_a_gap_is_found() {
        let file = tempfile::tempfile().unwrap();
        let size = 3 << 20;
        file.set_len(size).unwrap();
        let bytes = vec![1; 4096];
        let parts = [(2 << 20, &bytes[..]), (4096, &bytes[..])];
        put_all(&file, &parts, &[], 1).unwrap();
        check_gaps(&file, size, &parts).unwrap();
        for at in [0, 9000, (2 << 20) - 1, (2 << 20) + 4096, size - 1] {
            file.write_all_at(&[7], at).unwrap();
            let error = check_gaps(&file, size, &parts).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().ends_with(&format!("at {at:#x} of the new file")), "{error}");
            file.write_all_at(&[0], at).unwrap();
        }
        check_gaps(&file, size, &parts).unwrap();
    }

    /// Whatever the system reports for a write, missing bytes are detected.
    #[test]
    fn what_was_written_differently_is_found() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..PIECE as u32 * 2 + 77).map(|n| (n / 5) as u8 | 1).collect();
        put_read(&file, 3, &bytes).unwrap();
        for at in [0, 5, PIECE - 1, PIECE, bytes.len() - 1] {
            file.write_all_at(&[0], 3 + at as u64).unwrap();
            let error = read_again(&file, 3, &bytes, &mut vec![0; PIECE]).unwrap_err();
            assert!(error.to_string().ends_with(&format!("at {:#x} of the new file", 3 + at)), "{error}");
            file.write_all_at(&bytes[at..=at], 3 + at as u64).unwrap();
        }
        read_again(&file, 3, &bytes, &mut vec![0; PIECE]).unwrap();
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
            let error = copy_range(&from, start..1 << 20, &to, 0).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{start}");
        }
    }
}
