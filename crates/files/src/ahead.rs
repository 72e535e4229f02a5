//! A copy that is begun before it is known whether it is wanted.
//!
//! Whoever looks through a large input and finds nothing to change says so part by part, and where each goes; it is copied
//! while the processor's caches hold it. If everything stays, [`crate::replace_parts`] writes only what is left; otherwise the
//! file, which has no name, goes away.
//!
//! Invariants: what counts as copied was read again and compared; where a part could not be copied, who writes the file begins
//! anew, and tells the error.

use crate::copy::{self, Part};
use crate::input::Input;
use crate::write::{folder_of, resolve, unnamed};
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// See the module.
#[derive(Debug)]
pub struct Ahead<'i> {
    input: &'i Input,
    file: File,
    work: Mutex<Work>,
}

/// A part of the input, and where it goes.
#[derive(Debug, Clone)]
struct Piece {
    from: Range<usize>,
    to: u64,
}

#[derive(Debug, Default)]
struct Work {
    waiting: Vec<Piece>,
    /// A thread takes what is waiting.
    is_writing: bool,
    /// In no order.
    copied: Vec<Piece>,
    /// A copy has failed, perhaps half way.
    has_failed: bool,
}

impl Work {
    /// The part that came last is the one that the processor's caches hold.
    fn next(&mut self) -> Option<Piece> {
        self.waiting.pop().filter(|_| !self.has_failed)
    }

    fn copied(&mut self, piece: Piece, is_there: bool) {
        self.copied.push(piece);
        self.has_failed |= !is_there;
    }
}

impl<'i> Ahead<'i> {
    /// For a new `path`; `None` where the file system has no files without names, or something else than a file is there.
    pub fn beside(path: &Path, input: &'i Input) -> Option<Self> {
        let target = resolve(path).ok()?;
        if fs::metadata(&target).is_ok_and(|meta| !meta.is_file()) {
            return None;
        }
        let file = unnamed(folder_of(&target)).ok()?;
        // What is zero is not written, and is there all the same.
        file.set_len(input.len() as u64).ok()?;
        copy::is_read_anywhere(&file);
        Some(Self { input, file, work: Mutex::default() })
    }

    /// Copies a part of the input to an offset; any number of threads may.
    ///
    /// The system lets one thread at a time write to a file: where one does already, it gets this part as well.
    pub fn copy(&self, to: u64, part: &[u8]) {
        let Some((_, from)) = self.input.place_of(part).filter(|_| !part.is_empty()) else { return };
        let from = from as usize;
        let mut work = self.work();
        work.waiting.push(Piece { from: from..from + part.len(), to });
        if work.is_writing {
            return;
        }
        work.is_writing = true;
        while let Some(piece) = work.next() {
            drop(work);
            let part = &self.input[piece.from.clone()];
            let result = copy::put_read(&self.file, piece.to, part);
            self.input.release(part);
            work = self.work();
            work.copied(piece, result.is_ok());
        }
        work.is_writing = false;
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file, and what of the parts is not in it; `None` if it may hold something that is in none of the parts.
    pub(crate) fn rest<'p>(self, parts: &[Part<'p>]) -> Option<(File, Vec<Part<'p>>)> {
        let Work { mut copied, has_failed: false, .. } = self.work.into_inner().ok()? else { return None };
        copied.sort_unstable_by_key(|piece| piece.to);
        let size = |parts: &[Part<'_>]| parts.iter().map(|(_, part)| part.len() as u64).sum::<u64>();
        let rest = |part: &Part<'p>| {
            let place = self.input.place_of(part.1).map(|(_, from)| from);
            // Pieces of elsewhere are none of this part.
            let own = |piece: &&Piece| place.is_some_and(|from| from + piece.to == piece.from.start as u64 + part.0);
            let own: Vec<Range<u64>> =
                copied.iter().filter(own).map(|piece| piece.to..piece.to + piece.from.len() as u64).collect();
            without(*part, &own)
        };
        let rest: Vec<_> = parts.iter().flat_map(rest).collect();
        let wanted = copied.iter().map(|piece| piece.from.len() as u64).sum::<u64>() == size(parts) - size(&rest);
        wanted.then_some((self.file, rest))
    }
}

/// What of a part lies in none of the ranges, which rise.
fn without<'p>((mut at, mut part): Part<'p>, ranges: &[Range<u64>]) -> Vec<Part<'p>> {
    let mut rest = Vec::new();
    for range in ranges {
        let end = at + part.len() as u64;
        let (from, to) = (range.start.clamp(at, end), range.end.clamp(at, end));
        if from == to {
            continue;
        }
        let (before, behind) = part.split_at((from - at) as usize);
        rest.push((at, before));
        (at, part) = (to, &behind[(to - from) as usize..]);
    }
    rest.push((at, part));
    rest.retain(|(_, part)| !part.is_empty());
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::{How, replace_parts};

    /// A copy with some ranges at their new offsets, each by a thread of its own; `None` only where there are no files without
    /// names.
    fn begun<'i>(out: &Path, input: &'i Input, pieces: &[(u64, Range<usize>)]) -> Option<Ahead<'i>> {
        let ahead = Ahead::beside(out, input);
        assert_eq!(ahead.is_some(), unnamed(folder_of(out)).is_ok());
        let ahead = ahead?;
        std::thread::scope(|scope| {
            for (to, range) in pieces {
                let ahead = &ahead;
                scope.spawn(move || ahead.copy(*to, &input[range.clone()]));
            }
        });
        Some(ahead)
    }

    #[test]
    fn what_was_copied_ahead_is_not_written_again_and_the_rest_is() {
        let dir = tempfile::tempdir().unwrap();
        let (path, out) = (dir.path().join("in"), dir.path().join("out"));
        let mut bytes: Vec<u8> = (0..(4u32 << 20)).map(|n| (n / 4093) as u8).collect();
        // Nobody writes that.
        bytes[3_000_004..].fill(0);
        std::fs::write(&path, &bytes).unwrap();
        let input = crate::open(&path).unwrap();
        let ranges = [2_000_001..3_000_000, 100..1_000_003, 3_000_000..3_000_004, 3_100_000..4_100_000];
        // Behind the end, and where something else is to be.
        let behind = (4 << 20) + 7;
        let mut pieces: Vec<_> = ranges.iter().map(|range| (range.start as u64, range.clone())).collect();
        pieces.push((behind, 500..600_000));
        let begun = || begun(&out, &input, &pieces);
        let (Some(one), Some(other)) = (begun(), begun()) else { return };
        // Nothing of that is in the file.
        one.copy(5, &bytes[5..10]);
        let new = [7; 50];
        let parts = [(0, &input[..50]), (50, &new[..]), (100, &input[100..]), (behind, &input[500..700_000])];
        let (_, rest) = other.rest(&parts).unwrap();
        let left: usize = rest.iter().map(|(_, part)| part.len()).sum();
        assert_eq!(left, bytes.len() + 100_000 - ranges.iter().map(Range::len).sum::<usize>());
        let how = How { sources: &[&input], threads: 2, ahead: Some(one) };
        replace_parts(&out, (behind + 699_500, &path), how, parts.into_iter(), |_| Ok(())).unwrap();
        let mut wanted = [&bytes[..], &[0; 7], &bytes[500..700_000]].concat();
        wanted[50..100].copy_from_slice(&new);
        assert!(std::fs::read(&out).unwrap() == wanted);
    }

    /// Zeros are not written: what stood there would stay.
    #[test]
    fn what_is_not_wanted_after_all_is_not_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let (path, out) = (dir.path().join("in"), dir.path().join("out"));
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let input = crate::open(&path).unwrap();
        let zeros = vec![0; 1 << 20];
        let cases: [&[(u64, &[u8])]; 4] = [
            // The same bytes of elsewhere.
            &[(0, &input[1..1 << 19])],
            &[(0, &zeros)],
            &[(0, &input[..4096]), (4096, &zeros[4096..])],
            &[(0, &zeros[..8192]), (8192, &input[..4096])],
        ];
        for parts in cases {
            let Some(ahead) = begun(&out, &input, &[(4000, 4000..12_000)]) else { return };
            let wanted = parts.iter().map(|(_, part)| *part).collect::<Vec<_>>().concat();
            let how = How { sources: &[&input], threads: 1, ahead: Some(ahead) };
            replace_parts(&out, (wanted.len() as u64, &path), how, parts.iter().copied(), |_| Ok(())).unwrap();
            assert!(std::fs::read(&out).unwrap() == wanted);
        }
    }

    #[test]
    fn ranges_are_taken_out_of_parts() {
        let bytes = [1u8; 100];
        let rest = |ranges: &[Range<u64>]| -> Vec<(u64, u64)> {
            let parts = without((1000, &bytes), ranges).into_iter();
            parts.map(|(at, part)| (at, at + part.len() as u64)).collect()
        };
        assert_eq!(rest(&[]), [(1000, 1100)]);
        assert_eq!(rest(&[0..1000, 1100..1200]), [(1000, 1100)]);
        assert_eq!(rest(&[0..1010, 1020..1030, 1030..1040, 1090..2000]), [(1010, 1020), (1040, 1090)]);
        assert_eq!(rest(&[Range { start: 0, end: 5000 }]), []);
    }
}
