//! Removes the kernels' descriptions from the metadata notes; a note without meaning fills the rest of the section.
//!
//! So sections and segments of notes keep their sizes, also where a segment has more than one section.

use super::{Leaving, cannot_leave_out, put_bytes};
use crate::image::ObjectImage;
use crate::msgpack::{NoteFault, ValueReader};
use crate::{malformed, note};
use hotswap_report::Diagnostic;
use object::elf;
use std::ops::Range;

/// A note of ours, which no loader reads: sizes of name and content, type, name.
const FILLER: &[u8; 8] = b"HotSwap\0";
const FILLER_HEAD: usize = 12 + FILLER.len();

/// Rewrites every note section.
pub(super) fn remove_kernels(image: &ObjectImage<'_>, leaving: &Leaving<'_>, out: &mut [u8]) -> Result<(), Diagnostic> {
    for section in image.sections.iter().filter(|section| section.kind == elf::SHT_NOTE) {
        let mut new =
            notes_without_kernels(section.bytes, leaving).map_err(|one| metadata_fault_error(one, section))?;
        pad_notes(&mut new, section.bytes.len())?;
        put_bytes(out, section.offset as usize, &new)?;
    }
    Ok(())
}

fn metadata_fault_error((at, what): NoteFault, section: &crate::image::SectionPart<'_>) -> Diagnostic {
    malformed(section.offset as usize + at, what)
}

/// Pads the notes to the size of the section.
fn pad_notes(notes: &mut Vec<u8>, size: usize) -> Result<(), Diagnostic> {
    let free = size.saturating_sub(notes.len());
    if free == 0 && notes.len() == size {
        return Ok(());
    }
    let content = free.checked_sub(FILLER_HEAD).ok_or_else(|| cannot_leave_out("too little of its notes would go"))?;
    notes.extend([FILLER.len() as u32, content as u32, 0].iter().flat_map(|word| word.to_le_bytes()));
    notes.extend(FILLER);
    notes.resize(size, 0);
    Ok(())
}

fn notes_without_kernels(section: &[u8], leaving: &Leaving<'_>) -> Result<Vec<u8>, NoteFault> {
    let notes = note::metadata_notes(section, 0..section.len(), 4).map_err(|_| (0, "the notes cannot be read"))?;
    let (mut out, mut from) = (Vec::with_capacity(section.len()), 0);
    for content in notes {
        out.extend_from_slice(&section[from..content.start]);
        let start = out.len();
        write_kernels(section, content.clone(), leaving, &mut out)?;
        // Name, with its NUL and padding, is 8 bytes; it is preceded by the sizes of name and content, and the type.
        let size = ((out.len() - start) as u32).to_le_bytes();
        out[start - 16..start - 12].copy_from_slice(&size);
        out.resize(out.len().next_multiple_of(4), 0);
        from = content.end.next_multiple_of(4).min(section.len());
    }
    out.extend_from_slice(&section[from..]);
    Ok(out)
}

/// One note's map, with the remaining kernels.
fn write_kernels(data: &[u8], range: Range<usize>, leaving: &Leaving<'_>, out: &mut Vec<u8>) -> Result<(), NoteFault> {
    let mut reader = ValueReader::new(data, range.clone());
    let mut from = range.start;
    for _ in 0..reader.read_map("the metadata is no map")? {
        if reader.read_text()? != Some(b"amdhsa.kernels") {
            reader.skip_value()?;
            continue;
        }
        out.extend_from_slice(&data[from..reader.at()]);
        let mut stay = Vec::new();
        for _ in 0..reader.read_array("amdhsa.kernels is no array")? {
            let start = reader.at();
            if !leaves_kernel(&mut reader, leaving)? {
                stay.push(start..reader.at());
            }
        }
        write_array(out, stay.len());
        stay.into_iter().for_each(|kernel| out.extend_from_slice(&data[kernel]));
        from = reader.at();
    }
    out.extend_from_slice(&data[from..range.end]);
    Ok(())
}

/// Whether the next kernel is one to remove.
fn leaves_kernel(reader: &mut ValueReader<'_>, leaving: &Leaving<'_>) -> Result<bool, NoteFault> {
    let mut leaves = false;
    for _ in 0..reader.read_map("a kernel in the metadata is no map")? {
        if reader.read_text()? == Some(b".name") {
            let name = std::str::from_utf8(reader.read_text()?.unwrap_or_default()).unwrap_or_default();
            leaves = leaving.kernels.contains(name);
        } else {
            reader.skip_value()?;
        }
    }
    Ok(leaves)
}

/// The head of an array, in the shortest form.
fn write_array(out: &mut Vec<u8>, count: usize) {
    match count {
        0..16 => out.push(0x90 | count as u8),
        16..0x1_0000 => {
            out.push(0xdc);
            out.extend((count as u16).to_be_bytes());
        }
        _ => {
            out.push(0xdd);
            out.extend((count as u32).to_be_bytes());
        }
    }
}
