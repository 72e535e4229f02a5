//! A changed copy of a file, as its differences: most of a large code object is unchanged, and is not copied to be
//! relabelled.
//!
//! Invariants: patches are inside of the kept part of the old file and do not overlap; parts are in order, and the
//! bytes between them are zero.

use std::collections::BTreeMap;
use std::ops::Range;

/// New bytes over an old file and after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BytePatch {
    /// Number of kept bytes of the old file, from its start.
    kept: usize,
    /// New bytes that replace old ones, by offset.
    over: BTreeMap<usize, Vec<u8>>,
    /// Old bytes that are replaced by zeros; they do not overlap other new bytes.
    zeros: Vec<Range<usize>>,
    behind: Vec<AppendedPiece>,
}

/// Bytes after the kept part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AppendedPiece {
    New(Vec<u8>),
    /// Bytes of the old file, at another offset.
    Moved(Range<usize>),
}

impl AppendedPiece {
    /// Its number of bytes.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::New(bytes) => bytes.len(),
            Self::Moved(range) => range.len(),
        }
    }

    pub(crate) fn piece_bytes<'p>(&'p self, old: &'p [u8]) -> &'p [u8] {
        match self {
            Self::New(bytes) => bytes,
            Self::Moved(range) => &old[range.clone()],
        }
    }
}

impl BytePatch {
    /// No change to a file of that size.
    pub fn without_changes(size: usize) -> Self {
        Self { kept: size, over: BTreeMap::new(), zeros: Vec::new(), behind: Vec::new() }
    }

    /// Size of the new file.
    pub fn size(&self) -> usize {
        self.kept + self.behind.iter().map(AppendedPiece::size).sum::<usize>()
    }

    /// Whether all bytes of that range are those of the old file.
    pub fn keeps_range(&self, range: &Range<usize>) -> bool {
        range.end <= self.kept
            && self.patch_overlaps(range).next().is_none()
            && self.erased_overlaps(range).next().is_none()
    }

    /// Whether all of that range was zeroed in one call.
    pub(crate) fn erases_range(&self, range: &Range<usize>) -> bool {
        self.zeros.contains(range)
    }

    /// Whether bytes of the old file were appended so that they are at that offset.
    pub(crate) fn moves_range(&self, old: &Range<usize>, new: usize) -> bool {
        let mut at = self.kept;
        self.behind.iter().any(|piece| {
            let start = at;
            at += piece.size();
            start == new && *piece == AppendedPiece::Moved(old.clone())
        })
    }

    /// The new file in order: offsets and bytes; a kept part is a slice of `old`. The bytes between them are zero.
    pub fn file_parts<'p>(&'p self, old: &'p [u8]) -> Vec<(u64, &'p [u8])> {
        let over = self.over.iter();
        let over = over.map(|(start, new)| FileChange { range: *start..*start + new.len(), new: Some(new) });
        let mut changes: Vec<FileChange<'_>> = over.collect();
        changes.extend(self.zeros.iter().map(|range| FileChange { range: range.clone(), new: None }));
        changes.sort_by_key(|change| change.range.start);
        let mut parts = Vec::with_capacity(changes.len() * 2 + 2);
        let mut at = 0;
        for FileChange { range, new } in changes {
            parts.push((at as u64, &old[at..range.start]));
            parts.extend(new.map(|new| (range.start as u64, new)));
            at = range.end;
        }
        parts.push((at as u64, &old[at..self.kept]));
        let mut at = self.kept as u64;
        for piece in &self.behind {
            parts.push((at, piece.piece_bytes(old)));
            at += piece.size() as u64;
        }
        parts.retain(|(_, bytes)| !bytes.is_empty());
        parts
    }

    pub fn apply(&self, mut old: Vec<u8>) -> Vec<u8> {
        let behind = self.behind.iter().map(|piece| piece.piece_bytes(&old)).collect::<Vec<_>>().concat();
        old.truncate(self.kept);
        for (start, new) in &self.over {
            old[*start..start + new.len()].copy_from_slice(new);
        }
        self.zeros.iter().for_each(|range| old[range.clone()].fill(0));
        old.extend_from_slice(&behind);
        old
    }

    /// Writes these bytes at that offset, which must be in the kept part of the old file.
    pub(crate) fn put(&mut self, at: usize, new: Vec<u8>) {
        let range = at..at + new.len();
        while let Some(erased) = { self.erased_overlaps(&range).next() } {
            let zeros = self.zeros.swap_remove(erased);
            self.over.insert(zeros.start, vec![0; zeros.len()]);
        }
        let starts: Vec<usize> = self.patch_overlaps(&range).collect();
        let parts = starts.iter().filter_map(|at| Some(PatchPart { at: *at, bytes: self.over.remove(at)? }));
        let mut parts: Vec<PatchPart> = parts.collect();
        parts.push(PatchPart { at, bytes: new });
        let all = match &mut parts[..] {
            [only] => std::mem::take(only),
            _ => join_parts(&parts),
        };
        self.over.insert(all.at, all.bytes);
    }

    /// Zeroes that range, which must be in the kept part of the old file.
    pub(crate) fn erase_range(&mut self, range: Range<usize>) {
        if self.keeps_range(&range) {
            self.zeros.push(range);
        } else {
            self.put(range.start, vec![0; range.len()]);
        }
    }

    /// Cuts the old file off there.
    pub(crate) fn truncate_at(&mut self, size: usize) {
        self.over.retain(|start, _| *start < size);
        self.over.iter_mut().for_each(|(start, bytes)| bytes.truncate(size - start));
        self.zeros.retain(|range| range.start < size);
        self.zeros.iter_mut().for_each(|range| range.end = range.end.min(size));
        self.kept = size;
    }

    /// Appends a piece; moved bytes must be in the old file.
    pub(crate) fn append(&mut self, piece: AppendedPiece) {
        self.behind.push(piece);
    }

    /// Numbers of the ranges of zeros that overlap the range.
    fn erased_overlaps(&self, range: &Range<usize>) -> impl Iterator<Item = usize> {
        self.zeros
            .iter()
            .enumerate()
            .filter(move |(_, zeros)| overlaps_erased_range(zeros, range))
            .map(|(number, _)| number)
    }

    /// Starts of the patches that overlap the range.
    fn patch_overlaps(&self, range: &Range<usize>) -> impl Iterator<Item = usize> {
        let before = self.over.range(..range.end).rev();
        let start = range.start;
        let mut found: Vec<usize> =
            before.take_while(|(at, bytes)| *at + bytes.len() > start).map(|(at, _)| *at).collect();
        found.reverse();
        found.into_iter()
    }
}

fn overlaps_erased_range(zeros: &Range<usize>, range: &Range<usize>) -> bool {
    zeros.start < range.end && range.start < zeros.end
}

/// A word of the file that gets another value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewWord {
    /// Its position in the file.
    pub(crate) at: usize,
    pub(crate) value: u32,
}

/// A range of the file with its new bytes, `None` where it is erased.
struct FileChange<'p> {
    range: Range<usize>,
    new: Option<&'p [u8]>,
}

/// New bytes and their place.
#[derive(Default)]
struct PatchPart {
    at: usize,
    bytes: Vec<u8>,
}

/// Joins overlapping parts; of two the later in the list counts.
fn join_parts(parts: &[PatchPart]) -> PatchPart {
    let start = parts.iter().map(|part| part.at).min().unwrap_or(0);
    let end = parts.iter().map(|part| part.at + part.bytes.len()).max().unwrap_or(start);
    let mut all = vec![0; end - start];
    for PatchPart { at, bytes } in parts {
        all[at - start..at - start + bytes.len()].copy_from_slice(bytes);
    }
    PatchPart { at: start, bytes: all }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compared with the same changes to a copy.
        #[test]
        fn parts_are_the_changed_copy(
            old in proptest::collection::vec(any::<u8>(), 1..200),
            changes in proptest::collection::vec((any::<u16>(), proptest::collection::vec(any::<u8>(), 1..40)), 0..12),
            erased in proptest::collection::vec((any::<u16>(), 1..40usize, any::<proptest::sample::Index>()), 0..4),
            cut in any::<Option<u16>>(),
            behind in proptest::collection::vec(any::<u8>(), 0..20),
            moved in any::<(u16, u16)>(),
        ) {
            let (mut patch, mut wanted) = (BytePatch::without_changes(old.len()), old.clone());
            let when = |place: &proptest::sample::Index| place.index(changes.len() + 1);
            for number in 0..=changes.len() {
                for (at, size, _) in erased.iter().filter(|(_, _, place)| when(place) == number) {
                    let at = usize::from(*at) % old.len();
                    let range = at..old.len().min(at + size);
                    patch.erase_range(range.clone());
                    wanted[range].fill(0);
                }
                let Some((at, new)) = changes.get(number) else { break };
                let at = usize::from(*at) % old.len();
                let new = &new[..new.len().min(old.len() - at)];
                patch.put(at, new.to_vec());
                wanted[at..at + new.len()].copy_from_slice(new);
            }
            if let Some(size) = cut.map(|size| usize::from(size) % old.len()) {
                patch.truncate_at(size);
                wanted.truncate(size);
            }
            let [one, other] = [moved.0, moved.1].map(|at| usize::from(at) % old.len());
            let moved = one.min(other)..one.max(other);
            patch.append(AppendedPiece::New(behind.clone()));
            patch.append(AppendedPiece::Moved(moved.clone()));
            patch.append(AppendedPiece::New(behind.clone()));
            wanted.extend_from_slice(&[&behind[..], &old[moved], &behind].concat());
            prop_assert_eq!(patch.size(), wanted.len());
            prop_assert_eq!(&patch.apply(old.clone()), &wanted);
            let mut joined = Vec::new();
            for (at, part) in patch.file_parts(&old) {
                prop_assert!(at as usize >= joined.len());
                joined.resize(at as usize, 0);
                joined.extend_from_slice(part);
            }
            joined.resize(wanted.len(), 0);
            prop_assert_eq!(&joined, &wanted);
            for start in 0..old.len() {
                let range = start..(start + 3).min(old.len());
                if patch.keeps_range(&range) {
                    prop_assert_eq!(&old[range.clone()], &wanted[range]);
                }
            }
        }
    }
}
