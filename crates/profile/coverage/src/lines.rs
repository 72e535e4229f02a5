//! Lines and their counts, from segments: the rule of LLVM's `LineCoverageStats`, so that lines are those that
//! `llvm-cov show` counts.

use crate::export::CountSegment;
use std::collections::BTreeMap;

/// The lines with code, and how often each was executed.
pub(crate) fn line_counts(segments: &[CountSegment]) -> BTreeMap<u32, u64> {
    let mut counts = BTreeMap::new();
    let mut wrapped: Option<CountSegment> = None;
    let mut rest = segments;
    while let Some(first) = rest.first() {
        let line = first.line;
        let count = rest.iter().take_while(|segment| segment.line == line).count();
        let (own, after) = rest.split_at(count);
        counts.extend(line_count(own, wrapped).map(|count| (line, count)));
        wrapped = own.last().copied();
        let next = after.first().map_or(line, |segment| segment.line);
        // Lines without a segment continue the last one.
        let through = wrapped.filter(|segment| segment.has_count);
        counts.extend(through.into_iter().flat_map(|segment| (line + 1..next).map(move |line| (line, segment.count))));
        rest = after;
    }
    counts
}

/// The count of one line; `None` where nothing is mapped to it. `wrapped` is the last segment before it.
fn line_count(own: &[CountSegment], wrapped: Option<CountSegment>) -> Option<u64> {
    let skips = own.first().is_some_and(|first| !first.has_count && first.is_region_entry);
    let continues = wrapped.is_some_and(|segment| segment.has_count);
    let has_entry = own.iter().any(|segment| segment.is_region_entry && segment.has_count);
    let has_start = own.iter().any(|segment| begins_counted_region(&segment));
    if !has_entry && (skips || !(continues || has_start)) {
        return None;
    }
    let started = own.iter().filter(begins_counted_region).map(|segment| segment.count);
    let count = wrapped.map_or(0, |segment| segment.count);
    Some(started.fold(count, u64::max))
}

fn begins_counted_region(segment: &&CountSegment) -> bool {
    !segment.is_gap && segment.has_count && segment.is_region_entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(line: u32, count: u64, flags: [bool; 3]) -> CountSegment {
        let [has_count, is_region_entry, is_gap] = flags;
        CountSegment { line, count, has_count, is_region_entry, is_gap }
    }

    #[test]
    fn lines_between_segments_continue_and_skipped_ones_are_no_code() {
        let segments = [
            segment(2, 7, [true, true, false]),
            segment(4, 0, [true, true, false]),
            segment(4, 7, [true, false, false]),
            segment(6, 0, [false, true, false]),
            segment(8, 7, [true, false, false]),
            segment(9, 0, [false, false, false]),
            segment(12, 3, [true, true, false]),
            segment(12, 0, [false, false, false]),
        ];
        let expected = [(2, 7), (3, 7), (4, 7), (5, 7), (8, 0), (9, 7), (12, 3)];
        // Line 8 ends the skipped text: no region begins there, and nothing counted continues into it.
        let expected: BTreeMap<u32, u64> = expected.into_iter().filter(|(line, _)| *line != 8).collect();
        assert_eq!(line_counts(&segments), expected);
    }

    #[test]
    fn a_gap_begins_no_region() {
        let segments =
            [segment(1, 5, [true, true, false]), segment(2, 9, [true, true, true]), segment(3, 0, [false; 3])];
        assert_eq!(line_counts(&segments)[&2], 5);
    }
}
