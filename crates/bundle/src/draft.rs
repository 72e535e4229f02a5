//! A file as it will be, before it is written: slices of what is there, zeros, and small changes on top.
//!
//! A library of a gigabyte is changed without a copy of it in memory: the draft is written block by block, straight
//! from the mapped input and from where the new bundles wait.
//!
//! Invariants: later parts follow earlier ones without a gap; a change lies inside and wins over what is below it.
//!
//! Absent on purpose: files. The caller has a sink.

use std::borrow::Cow;
use std::ops::Range;

/// Bytes that are handed on at once.
const BLOCK: usize = 1 << 20;

/// A new file made of old and new bytes.
#[derive(Debug, Default)]
pub struct Draft<'a> {
    /// Each with the offset at which it begins; zeros where none is.
    parts: Vec<(u64, Cow<'a, [u8]>)>,
    changes: Vec<Change<'a>>,
    size: u64,
}

#[derive(Debug)]
enum Change<'a> {
    Bytes(u64, Cow<'a, [u8]>),
    Zeros(Range<u64>),
}

impl<'a> Draft<'a> {
    /// Bytes behind those that are there.
    pub(crate) fn push(&mut self, bytes: impl Into<Cow<'a, [u8]>>) {
        let bytes = bytes.into();
        let start = self.size;
        self.size += bytes.len() as u64;
        self.parts.push((start, bytes));
    }

    /// Zeros up to that size, which is not less than the present one.
    pub(crate) fn pad(&mut self, size: u64) {
        self.size = self.size.max(size);
    }

    /// Other bytes at that offset.
    pub(crate) fn write(&mut self, at: u64, bytes: impl Into<Cow<'a, [u8]>>) {
        self.changes.push(Change::Bytes(at, bytes.into()));
    }

    /// Zeros in that range.
    pub(crate) fn clear(&mut self, range: Range<u64>) {
        self.changes.push(Change::Zeros(range));
    }

    /// Number of its bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The whole file in memory.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size as usize);
        let fill = |_: u64, block: &[u8]| -> Result<(), std::convert::Infallible> {
            out.extend_from_slice(block);
            Ok(())
        };
        match self.write_to(fill) {
            Ok(()) => out,
            Err(never) => match never {},
        }
    }

    /// Hands on block after block, each with its offset; all of them together are the file.
    ///
    /// # Errors
    /// What the sink returns.
    pub fn write_to<E>(&self, mut sink: impl FnMut(u64, &[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut block = vec![0; BLOCK.min(self.size as usize)];
        let (mut at, mut first) = (0, 0);
        while at < self.size {
            let size = (self.size - at).min(BLOCK as u64);
            let block = &mut block[..size as usize];
            block.fill(0);
            // Parts are in order: those before this block are done with.
            first += self.parts[first..].iter().take_while(|(start, part)| start + part.len() as u64 <= at).count();
            let parts = self.parts[first..].iter().take_while(|(start, _)| *start < at + size);
            parts.for_each(|(start, part)| overlay(block, at, *start, part));
            for change in &self.changes {
                match change {
                    Change::Bytes(start, bytes) => overlay(block, at, *start, bytes),
                    Change::Zeros(range) => {
                        let inside = range.start.clamp(at, at + size)..range.end.clamp(at, at + size);
                        block[(inside.start - at) as usize..(inside.end - at) as usize].fill(0);
                    }
                }
            }
            sink(at, block)?;
            at += size;
        }
        Ok(())
    }
}

/// Copies the part of `bytes`, which begin at `start`, that lies in the block at `at`.
fn overlay(block: &mut [u8], at: u64, start: u64, bytes: &[u8]) {
    let end = at + block.len() as u64;
    let from = start.clamp(at, end);
    let to = (start + bytes.len() as u64).clamp(from, end);
    if from < to {
        let source = &bytes[(from - start) as usize..(to - start) as usize];
        block[(from - at) as usize..(to - at) as usize].copy_from_slice(source);
    }
}

impl From<Vec<u8>> for Draft<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        let mut draft = Self::default();
        draft.push(bytes);
        draft
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the same steps on plain bytes, with borders in and between blocks.
    #[test]
    fn a_draft_is_what_the_steps_say() {
        let old: Vec<u8> = (0..3 * BLOCK as u32 + 77).map(|n| (n % 251) as u8 + 1).collect();
        let new = vec![7u8; BLOCK + 5];
        let mut draft = Draft::default();
        draft.push(&old[..BLOCK + 3]);
        draft.pad(2 * BLOCK as u64 + 9);
        draft.push(&old[5..]);
        draft.push(new.clone());
        let mut plain = old[..BLOCK + 3].to_vec();
        plain.resize(2 * BLOCK + 9, 0);
        plain.extend_from_slice(&old[5..]);
        plain.extend_from_slice(&new);
        for at in [0, BLOCK - 3, BLOCK, 2 * BLOCK - 1, plain.len() - new.len()] {
            draft.write(at as u64, &new[..]);
            plain[at..at + new.len()].copy_from_slice(&new);
        }
        draft.clear(100..BLOCK as u64 + 100);
        plain[100..BLOCK + 100].fill(0);
        draft.write(200, vec![9; 3]);
        plain[200..203].fill(9);
        assert_eq!(draft.size(), plain.len() as u64);
        assert!(draft.to_vec() == plain);
        assert!(Draft::default().to_vec().is_empty() && Draft::from(new.clone()).to_vec() == new);
    }
}
