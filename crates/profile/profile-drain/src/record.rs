//! Records of functions: the sound ones, and a data section without the others.
//!
//! llvm-profdata rejects a whole file for one bad record, so bad ones are removed. The distances of a later record are
//! then corrected by the bytes that were removed before it, because the reader expects each distance to shrink by one
//! record per record.

use crate::bytes::{Span, put, word};
use crate::elf::Sections;
use crate::layout::RecordLayout;

/// The numbers of records in a data section.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Records that are kept.
    pub kept: usize,
    /// Records that were removed.
    pub dropped: usize,
}

/// The targets of records' distances, and the size of a counter.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Addresses as the link fixed them; records hold distances, so the load address does not matter.
    pub sections: &'a Sections,
    /// Bytes of a counter: 8, or 1.
    pub counter: u64,
}

/// Whether LLVM's reader would accept the record at this address.
fn is_sound(record: &[u8], address: u64, layout: &RecordLayout, frame: Frame<'_>) -> bool {
    let count = word::<4>(record, layout.counter_count);
    let sections = frame.sections;
    let own = RecordAt { bytes: record, address };
    let size = count * frame.counter;
    let counters =
        count > 0 && holds_aligned(sections.counters, own.target_of_field(layout.counters), size, frame.counter);
    let uniform = layout.uniform.filter(|_| sections.uniform.size > 0);
    let uniform = uniform.is_none_or(|field| holds_aligned(sections.uniform, own.target_of_field(field), count * 8, 8));
    let bits = word::<4>(record, layout.bit_count);
    counters && uniform && (bits == 0 || holds_aligned(sections.bits, own.target_of_field(layout.bits), bits, 1))
}

/// A record and its address, from which its distances count.
struct RecordAt<'a> {
    bytes: &'a [u8],
    address: u64,
}

impl RecordAt<'_> {
    fn target_of_field(&self, field: usize) -> u64 {
        self.address.wrapping_add(word::<8>(self.bytes, field))
    }
}

/// Whether a section has `size` bytes at `target`, at a multiple of `alignment` from its start.
fn holds_aligned(section: Span, target: u64, size: u64, alignment: u64) -> bool {
    section.holds(target, size) && target.wrapping_sub(section.address) & (alignment - 1) == 0
}

/// The number of records of the data section that are sound in this layout; `None` where records do not fill it.
pub fn sound(data: &[u8], layout: &RecordLayout, frame: Frame<'_>) -> Option<usize> {
    let records = layout.records(data);
    if !records.remainder().is_empty() {
        return None;
    }
    let mut address = frame.sections.data.address;
    let mut sound = 0;
    for record in records {
        sound += usize::from(is_sound(record, address, layout, frame));
        address = address.wrapping_add(layout.record as u64);
    }
    Some(sound)
}

/// Moves the sound records to the front, ready for a file. The bytes after them are meaningless then.
pub fn clean(data: &mut [u8], layout: &RecordLayout, frame: Frame<'_>) -> Count {
    let size = layout.record;
    let mut count = Count::default();
    let mut address = frame.sections.data.address;
    let mut buffer = [0u8; 128];
    let Some(buffer) = buffer.get_mut(..size) else { return count };
    for index in 0..data.len().checked_div(size).unwrap_or(0) {
        let Some(record) = data.get(index * size..(index + 1) * size) else { break };
        let good = is_sound(record, address, layout, frame);
        address = address.wrapping_add(size as u64);
        if !good {
            count.dropped += 1;
            continue;
        }
        let _ = put(buffer, 0, record);
        finish(buffer, (count.dropped * size) as u64, layout, frame);
        let _ = put(data, count.kept * size, buffer);
        count.kept += 1;
    }
    count
}

/// The form of a record in the file, `moved` bytes before its place in memory.
fn finish(record: &mut [u8], moved: u64, layout: &RecordLayout, frame: Frame<'_>) {
    move_pointer(record, layout.counters, Some(moved));
    if let Some(field) = layout.uniform {
        move_pointer(record, field, has_bytes(frame.sections.uniform).then_some(moved));
    }
    move_pointer(record, layout.bits, has_bytes(frame.sections.bits).then_some(moved));
    // Addresses differ from run to run, and values of value profiling are not collected on a device.
    let _ = put(record, layout.addresses, &[0; 16]);
    let _ = put(record, layout.sites, &[0; 6]);
}

/// Corrects a distance by the bytes that its record has moved; `None` clears it, for a section that is absent.
fn move_pointer(record: &mut [u8], field: usize, moved: Option<u64>) {
    let value = moved.map_or(0, |moved| word::<8>(record, field).wrapping_add(moved));
    let _ = put(record, field, &value.to_le_bytes());
}

fn has_bytes(span: Span) -> bool {
    span.size > 0
}

/// Whether two data sections of files agree, except for the size of waves, which is known only to code that ran. Where
/// `into` lacks it, it is copied.
pub fn agree(into: &mut [u8], other: &[u8], layout: &RecordLayout) -> bool {
    if into.len() != other.len() {
        return false;
    }
    let mut equal = true;
    for (own, other) in into.chunks_exact_mut(layout.record.max(1)).zip(layout.records(other)) {
        if let Some(at) = layout.wave {
            let (mine, theirs) = (word::<2>(own, at), word::<2>(other, at));
            let known = if mine == 0 { theirs } else { mine };
            let _ = put(own, at, &(known as u16).to_le_bytes());
            equal &= theirs == 0 || theirs == known;
        }
        let mut bytes = own.iter().zip(other).enumerate();
        equal &= bytes
            .all(|(index, (own, other))| own == other || layout.wave.is_some_and(|at| index == at || index == at + 1));
    }
    equal
}
