//! What of a file stays as it is in the new one, told piece by piece while nothing else is known to change.

use crate::Stays;
use crate::prepared::Label;
use hotswap_code_object::CodeObject;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// See the module.
pub(crate) struct Staying<'s> {
    tell: &'s Stays<'s>,
    is_over: AtomicBool,
}

/// Bytes of which somebody is told at once.
const PIECE: usize = 1 << 20;

impl<'s> Staying<'s> {
    pub(crate) fn new(tell: &'s Stays<'s>) -> Self {
        Self { tell, is_over: AtomicBool::new(false) }
    }

    /// For who has nobody to tell.
    pub(crate) fn untold() -> Self {
        Self::new(&|_, _| {})
    }

    /// Something changes.
    pub(crate) fn ends(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// That goes to an offset of the new file.
    pub(crate) fn part(&self, at: u64, part: &[u8]) {
        if !self.is_over.load(Ordering::Relaxed) {
            (self.tell)(at, part);
        }
    }

    /// Everything outside of the sections of code, but for what the label changes.
    pub(crate) fn beside_code(&self, object: &CodeObject<'_>, label: Option<&Label>) {
        let bytes = object.bytes();
        // Without sections, segments hold the code, and with it all the rest.
        if object.sections().is_empty() {
            return;
        }
        let code = object.sections().iter().filter(|section| section.is_code()).map(|section| section.range.clone());
        let mut code: Vec<Range<usize>> = code.collect();
        code.sort_by_key(|range| range.start);
        let parts = label.map_or_else(|| vec![(0, bytes)], |label| label.parts(bytes));
        for (at, part) in parts.into_iter().flat_map(|part| outside(part, &code)) {
            (at..).step_by(PIECE).zip(part.chunks(PIECE)).for_each(|(at, piece)| self.part(at, piece));
        }
    }
}

/// What of a part lies in no code of the new file, which is where it was in the old one; sorted by where it begins.
fn outside<'p>((at, part): (u64, &'p [u8]), code: &[Range<usize>]) -> Vec<(u64, &'p [u8])> {
    let (start, end) = (at as usize, at as usize + part.len());
    let (mut left, mut from) = (Vec::new(), start);
    for range in code.iter().chain([&(end..end)]) {
        let until = range.start.clamp(from, end);
        left.push((from as u64, &part[from - start..until - start]));
        from = range.end.clamp(until, end);
    }
    left.retain(|(_, part)| !part.is_empty());
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_of_code_is_told() {
        let bytes = [0; 100];
        let told = |code: &[Range<usize>]| -> Vec<(u64, u64)> {
            let left = outside((1000, &bytes), code).into_iter();
            left.map(|(at, part)| (at, at + part.len() as u64)).collect()
        };
        assert_eq!(told(&[]), [(1000, 1100)]);
        // One lies in another; two touch; others are elsewhere.
        let code = [0..10, 990..1010, 1020..1060, 1030..1040, 1060..1070, 1090..1200, 2000..3000];
        assert_eq!(told(&code), [(1010, 1020), (1070, 1090)]);
        assert_eq!(told(&[Range { start: 0, end: 5000 }]), []);
    }
}
