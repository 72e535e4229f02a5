//! A file before it is written: slices of existing bytes, zeros, and small changes on top.
//!
//! A library of a gigabyte is changed without a copy of it in memory: a draft refers to parts of the mapped input and
//! of the storage of new bundles, and holds only the new bytes. Bundles are drafts, and so are the files around them.
//!
//! Invariants: parts do not overlap and are within the size. Bytes without a part are zero. Of two changes of one place
//! the later one counts. The same steps give the same parts.
//!
//! Absent on purpose: files. The caller writes the parts to their offsets.

use crate::bytes::EntryBytes;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;

/// Bytes that are searched for zeros at once.
const BLOCK: usize = 64 << 10;
/// Bytes that are compared before their memory is given back.
const COMPARED: usize = 1 << 20;
/// Fewer equal bytes in a row are not worth a part of their own.
const MIN_SHARED: usize = 4 << 10;

/// A new file, or a part of one, made of old and new bytes.
#[derive(Debug, Clone, Default)]
pub struct FileRope<'a> {
    /// By their start offsets; none is empty.
    parts: BTreeMap<u64, EntryBytes<'a>>,
    size: u64,
}

impl<'a> FileRope<'a> {
    pub(crate) fn push(&mut self, bytes: impl Into<EntryBytes<'a>>) {
        let (bytes, start) = (bytes.into(), self.size);
        self.size += bytes.len() as u64;
        self.insert_part(start, bytes);
    }

    /// Appends the parts of another draft.
    pub(crate) fn append_draft(&mut self, other: &Self) {
        let start = self.size;
        self.size += other.size;
        self.parts.extend(other.parts.iter().map(|(at, part)| (start + at, part.clone())));
    }

    /// Appends zeros up to that size, which is not less than the present one.
    pub(crate) fn pad_to(&mut self, size: u64) {
        self.size = self.size.max(size);
    }

    /// Overwrites existing bytes at that offset.
    pub fn overwrite_at(&mut self, at: u64, bytes: impl Into<EntryBytes<'a>>) {
        let bytes = bytes.into();
        self.clear(at..at + bytes.len() as u64);
        self.insert_part(at, bytes);
    }

    /// As [`FileRope::write`] with the parts of another draft.
    pub(crate) fn overwrite_with_draft(&mut self, start: u64, other: &Self) {
        self.clear(start..start + other.size);
        self.parts.extend(other.parts.iter().map(|(at, part)| (start + at, part.clone())));
    }

    pub fn clear(&mut self, range: Range<u64>) {
        self.split_at(range.start);
        self.split_at(range.end);
        let inside: Vec<u64> = self.parts.range(range.start..range.end.max(range.start)).map(|(at, _)| *at).collect();
        inside.iter().for_each(|at| drop(self.parts.remove(at)));
    }

    /// Takes those bytes of the range that are the same in `source`, at the same distance from its start, from there:
    /// an edited copy of something large then costs only the edited bytes.
    pub(crate) fn share_with(&mut self, start: u64, source: &EntryBytes<'a>) {
        let end = start.saturating_add(source.len() as u64);
        let inside: Vec<(u64, EntryBytes<'a>)> =
            self.parts.range(start..end).map(|(at, part)| (*at, part.clone())).collect();
        for (at, part) in inside {
            for range in equal_ranges(&part, source.get((at - start) as usize..).unwrap_or_default()) {
                let from = at - start + range.start as u64;
                if let Some(same) = source.part(from..from + range.len() as u64) {
                    self.overwrite_at(at + range.start as u64, same);
                }
            }
        }
        self.detach_range(start..end);
    }

    /// Copies the remaining pieces of a large allocation that is mostly shared now, so that it is freed.
    fn detach_range(&mut self, range: Range<u64>) {
        for (_, part) in self.parts.range_mut(range) {
            part.detach();
        }
    }

    /// Splits a part at that offset.
    fn split_at(&mut self, at: u64) {
        let Some((start, part)) = self.parts.range(..at).next_back() else { return };
        let (start, size) = (*start, part.len() as u64);
        if start + size <= at {
            return;
        }
        let halves = (part.part(0..at - start), part.part(at - start..size));
        if let (Some(low), Some(high)) = halves {
            self.parts.insert(start, low);
            self.parts.insert(at, high);
        }
    }

    fn insert_part(&mut self, at: u64, bytes: EntryBytes<'a>) {
        if !bytes.is_empty() {
            self.parts.insert(at, bytes);
        }
    }

    /// Number of its bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether it is without bytes.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// The non-zero parts, in ascending order: offsets and bytes.
    pub fn parts(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.parts.iter().map(|(at, part)| (*at, &**part))
    }

    /// All of it in memory.
    pub fn to_vec(&self) -> Vec<u8> {
        self.copy_to(Vec::with_capacity(self.size as usize))
    }

    /// As [`FileRope::to_vec`]; `None` where memory does not suffice.
    pub(crate) fn try_to_vec(&self) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        out.try_reserve_exact(usize::try_from(self.size).ok()?).ok()?;
        Some(self.copy_to(out))
    }

    fn copy_to(&self, mut out: Vec<u8>) -> Vec<u8> {
        for (at, part) in self.parts() {
            out.resize(at as usize, 0);
            out.extend_from_slice(part);
        }
        out.resize(self.size as usize, 0);
        out
    }

    /// Reads all of it in order, and gives back the memory of what was read.
    pub(crate) fn reader(&self) -> DraftReader<'_, 'a> {
        DraftReader { draft: self, at: 0 }
    }

    /// Whether `bytes` are equal to it.
    pub fn equals_bytes(&self, bytes: &[u8]) -> bool {
        self.size == bytes.len() as u64 && self.has_at(0, bytes)
    }

    /// Whether it has these bytes at that offset; the memory of its own is given back.
    pub(crate) fn has_at(&self, start: u64, bytes: &[u8]) -> bool {
        let end = start.saturating_add(bytes.len() as u64);
        if end > self.size {
            return false;
        }
        let before = self.parts.range(..start).next_back();
        let mut compared = start;
        for (at, part) in before.into_iter().chain(self.parts.range(start..end)) {
            let (first, last) = (start.max(*at), end.min(at + part.len() as u64));
            if first >= last {
                continue;
            }
            let own = &part[(first - at) as usize..(last - at) as usize];
            if !is_zero(&bytes[range_in_draft(compared, first, start)])
                || !is_same(part, own, &bytes[range_in_draft(first, last, start)])
            {
                return false;
            }
            compared = last;
        }
        is_zero(&bytes[(compared - start) as usize..])
    }
}

fn range_in_draft(from: u64, to: u64, start: u64) -> Range<usize> {
    (from - start) as usize..(to - start) as usize
}

/// Compares a part's own bytes with others, and gives back their memory.
fn is_same(part: &EntryBytes<'_>, own: &[u8], other: &[u8]) -> bool {
    own.chunks(COMPARED).zip(other.chunks(COMPARED)).all(|(own, other)| {
        let is_same = same_bytes(own, other);
        part.release(own);
        is_same
    })
}

/// The bytes of a draft in order.
pub(crate) struct DraftReader<'d, 'a> {
    draft: &'d FileRope<'a>,
    at: u64,
}

impl Read for DraftReader<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let before = self.draft.parts.range(..=self.at).next_back();
        let inside = before.filter(|(start, part)| self.at < **start + part.len() as u64);
        let count = if let Some((start, part)) = inside {
            let rest = &part[(self.at - start) as usize..];
            let count = rest.len().min(out.len());
            out[..count].copy_from_slice(&rest[..count]);
            part.release(&rest[..count]);
            count
        } else {
            let next = self.draft.parts.range(self.at..).next().map_or(self.draft.size, |(start, _)| *start);
            let count = usize::try_from(next - self.at).unwrap_or(usize::MAX).min(out.len());
            out[..count].fill(0);
            count
        };
        self.at += count as u64;
        Ok(count)
    }
}

/// The facts known about a changed file before it is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DraftFacts {
    /// Nothing: its containers have to be compared with the plan.
    Nothing,
    /// That it holds the parts of its draft: the writer has compared every part of the draft with the file.
    Contents,
}

/// A container that is kept, or a new one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DraftContent<'d, 'a> {
    Old(&'a [u8]),
    New(&'d FileRope<'a>),
}

impl<'a> DraftContent<'_, 'a> {
    pub(crate) fn size(self) -> u64 {
        match self {
            Self::Old(bytes) => bytes.len() as u64,
            Self::New(draft) => draft.size(),
        }
    }

    /// Appends it to a file.
    pub(crate) fn append_to(self, out: &mut FileRope<'a>) {
        match self {
            Self::Old(bytes) => out.push(bytes),
            Self::New(draft) => out.append_draft(draft),
        }
    }

    /// Writes it over the existing bytes.
    pub(crate) fn write_to(self, out: &mut FileRope<'a>, at: u64) {
        match self {
            Self::Old(bytes) => out.overwrite_at(at, bytes),
            Self::New(draft) => out.overwrite_with_draft(at, draft),
        }
    }

    /// Whether it is equal, as far as that is not known yet.
    pub(crate) fn equals_content(self, found: &[u8], known: DraftFacts) -> bool {
        let is_compared = known == DraftFacts::Contents;
        self.size() == found.len() as u64
            && match self {
                Self::Old(bytes) => is_compared || same_bytes(bytes, found),
                Self::New(draft) => is_compared || draft.equals_bytes(found),
            }
    }
}

/// Equal addresses need no comparison.
fn same_bytes(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && (std::ptr::eq(one.as_ptr(), other.as_ptr()) || one == other)
}

fn is_zero(bytes: &[u8]) -> bool {
    static ZEROS: [u8; BLOCK] = [0; BLOCK];
    bytes.chunks(BLOCK).all(|piece| *piece == ZEROS[..piece.len()])
}

/// Ranges in which both are equal and that are worth sharing.
fn equal_ranges(one: &[u8], other: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let pieces = one.chunks(MIN_SHARED).zip(other.chunks(MIN_SHARED)).zip((0..).step_by(MIN_SHARED));
    for ((one, other), at) in pieces {
        if one != other {
            continue;
        }
        match found.last_mut().filter(|last| last.end == at) {
            Some(last) => last.end += one.len(),
            None => found.push(at..at + one.len()),
        }
    }
    found
}

impl<'a, T: Into<EntryBytes<'a>>> From<T> for FileRope<'a> {
    fn from(bytes: T) -> Self {
        let mut draft = Self::default();
        draft.push(bytes);
        draft
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(draft: &FileRope<'_>, plain: &[u8]) {
        assert_eq!(draft.size(), plain.len() as u64);
        assert!(draft.to_vec() == plain && draft.equals_bytes(plain));
        let mut read = Vec::new();
        draft.reader().read_to_end(&mut read).unwrap();
        assert!(read == plain);
        let ends: Vec<_> = draft.parts().map(|(at, part)| at..at + part.len() as u64).collect();
        assert!(ends.windows(2).all(|pair| pair[0].end <= pair[1].start), "{ends:?}");
        for at in [0, plain.len() / 2, plain.len() - 1] {
            let mut other = plain.to_vec();
            other[at] ^= 1;
            assert!(!draft.equals_bytes(&other), "a changed byte at {at} is not seen");
        }
        assert!(!draft.equals_bytes(&plain[1..]));
    }

    /// Against the same steps on plain bytes, with boundaries in and between parts.
    #[test]
    fn a_draft_is_what_the_steps_say() {
        let old: Vec<u8> = (0..3 * BLOCK as u32 + 77).map(|n| (n % 251) as u8 + 1).collect();
        let new = vec![7u8; BLOCK + 5];
        let mut draft = FileRope::default();
        draft.push(&old[..BLOCK + 3]);
        draft.pad_to(2 * BLOCK as u64 + 9);
        draft.push(&old[5..]);
        draft.push(new.clone());
        let mut plain = old[..BLOCK + 3].to_vec();
        plain.resize(2 * BLOCK + 9, 0);
        plain.extend_from_slice(&old[5..]);
        plain.extend_from_slice(&new);
        for at in [0, BLOCK - 3, BLOCK, 2 * BLOCK - 1, plain.len() - new.len()] {
            draft.overwrite_at(at as u64, &new[..]);
            plain[at..at + new.len()].copy_from_slice(&new);
            check(&draft, &plain);
        }
        draft.clear(100..BLOCK as u64 + 100);
        plain[100..BLOCK + 100].fill(0);
        draft.overwrite_at(200, vec![9; 3]);
        plain[200..203].fill(9);
        check(&draft, &plain);
        let mut outer = FileRope::from(vec![1; 10]);
        outer.append_draft(&draft);
        outer.push(vec![3; draft.size() as usize]);
        let laid = outer.size() - draft.size();
        check(&outer, &[&[1; 10], &plain[..], &vec![3; plain.len()]].concat());
        outer.overwrite_with_draft(laid, &draft);
        check(&outer, &[&[1; 10], &plain[..], &plain[..]].concat());
        assert!(FileRope::default().to_vec().is_empty() && FileRope::from(new.clone()).to_vec() == new);
    }

    #[test]
    fn an_edited_copy_costs_what_was_edited() {
        let old: Vec<u8> = (0..20 * MIN_SHARED as u32).map(|n| (n % 251) as u8).collect();
        let mut copy = old.clone();
        copy[5 * MIN_SHARED + 1] ^= 1;
        copy.extend_from_slice(b"a new note");
        let mut draft = FileRope::from(&b"before"[..]);
        draft.push(copy.clone());
        draft.share_with(6, &EntryBytes::from(&old[..]));
        assert!(draft.to_vec() == [&b"before"[..], &copy].concat());
        let inside = |part: &[u8]| old.as_ptr_range().contains(&part.as_ptr());
        let own: usize = draft.parts().filter(|(_, part)| !inside(part)).map(|(_, part)| part.len()).sum();
        assert_eq!(own, 6 + MIN_SHARED + 10);
    }
}
