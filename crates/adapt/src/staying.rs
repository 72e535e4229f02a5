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
        let parts = label.map_or_else(|| vec![(0, bytes)], |label| label.parts(bytes));
        for (at, part) in parts.into_iter().flat_map(|part| outside(part, object)) {
            (at..).step_by(PIECE).zip(part.chunks(PIECE)).for_each(|(at, piece)| self.part(at, piece));
        }
    }
}

/// What of a part lies in no section of code of the new file, where these are in their old places.
fn outside<'p>((at, part): (u64, &'p [u8]), object: &CodeObject<'_>) -> Vec<(u64, &'p [u8])> {
    let code = object.sections().iter().filter(|section| section.is_code()).map(|section| section.range.clone());
    let mut code: Vec<Range<usize>> = code.collect();
    code.sort_by_key(|range| range.start);
    let (start, end) = (at as usize, at as usize + part.len());
    code.push(end..end);
    let (mut left, mut from) = (Vec::new(), start);
    for range in code {
        let until = range.start.clamp(from, end);
        left.push((from as u64, &part[from - start..until - start]));
        from = range.end.clamp(until, end);
    }
    left.retain(|(_, part)| !part.is_empty());
    left
}
