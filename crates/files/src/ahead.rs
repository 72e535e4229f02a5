//! A copy that is begun before it is known whether it is wanted.
//!
//! Whoever looks through a large input and finds nothing to change says so part by part; each is copied while the processor's
//! caches hold it. If everything stays, [`crate::replace_parts`] writes only what is left; otherwise the file, which has no
//! name, goes away.
//!
//! Invariants: what counts as copied was read again and compared; a part that could not be copied is left to who writes the
//! rest, and to that error.

use crate::copy::{self, Part};
use crate::input::Input;
use crate::write::{folder_of, resolve, unnamed};
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

/// See the module.
#[derive(Debug)]
pub struct Ahead<'i> {
    input: &'i Input,
    file: File,
    /// Offsets of what is copied, in no order.
    copied: Mutex<Vec<Range<u64>>>,
}

impl<'i> Ahead<'i> {
    /// For a new `path`; `None` where the file system has no files without names, or something else than a file is there.
    pub fn beside(path: &Path, input: &'i Input) -> Option<Self> {
        let target = resolve(path).ok()?;
        if fs::metadata(&target).is_ok_and(|meta| !meta.is_file()) {
            return None;
        }
        let file = unnamed(folder_of(&target)).ok()?;
        copy::read_no_more_than_asked(&file);
        Some(Self { input, file, copied: Mutex::default() })
    }

    /// Copies a part of the input to its offset; any number of threads may.
    pub fn copy(&self, part: &[u8]) {
        let Some((_, at)) = self.input.place_of(part) else { return };
        if copy::put(&self.file, at, part, &[self.input], &mut copy::buffer()).is_ok()
            && let Ok(mut copied) = self.copied.lock()
        {
            copied.push(at..at + part.len() as u64);
        }
    }

    /// The file, and what of the parts is not in it; `None` if it holds something that is in none of the parts.
    pub(crate) fn rest<'p>(self, parts: &[Part<'p>]) -> Option<(File, Vec<Part<'p>>)> {
        let mut copied = self.copied.into_inner().ok()?;
        copied.sort_unstable_by_key(|range| range.start);
        let stays = |(at, part): &Part<'_>| self.input.place_of(part).is_some_and(|(_, from)| from == *at);
        let size = |parts: &[Part<'_>]| parts.iter().map(|(_, part)| part.len() as u64).sum::<u64>();
        let rest = parts.iter().flat_map(|part| if stays(part) { without(*part, &copied) } else { vec![*part] });
        let rest: Vec<_> = rest.collect();
        let wanted = copied.iter().map(|range| range.end - range.start).sum::<u64>() == size(parts) - size(&rest);
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

    #[test]
    fn what_was_copied_ahead_is_not_written_again_and_the_rest_is() {
        let dir = tempfile::tempdir().unwrap();
        let (path, out) = (dir.path().join("in"), dir.path().join("out"));
        let bytes: Vec<u8> = (0..(4u32 << 20)).map(|n| (n / 4093) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let input = crate::open(&path).unwrap();
        let Some(ahead) = Ahead::beside(&out, &input) else { return };
        for range in [2_000_001..3_000_000, 100..1_000_003, 3_000_000..3_000_004] {
            ahead.copy(&input[range]);
        }
        // Nothing of that file is copied.
        ahead.copy(&bytes[5..10]);
        let new = [7; 50];
        let parts = || vec![(0, &input[..100]), (100, &new[..]), (150, &input[150..])];
        let left: usize =
            without((150, &input[150..]), &ahead.copied.lock().unwrap().clone()).iter().map(|part| part.1.len()).sum();
        assert!(left > 0);
        let how = How { sources: &[&input], threads: 2, ahead: Some(ahead) };
        replace_parts(&out, (input.len() as u64, &path), how, parts().into_iter(), |_| Ok(())).unwrap();
        let mut wanted = bytes.clone();
        wanted[100..150].copy_from_slice(&new);
        assert!(std::fs::read(&out).unwrap() == wanted);
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
