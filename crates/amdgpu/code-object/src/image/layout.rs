//! Positions of the parts of a file after their sizes change.
//!
//! Each position follows from the preceding part by the rule that gave the old position from the old preceding part:
//! the next multiple of the alignment, or for the first section of a segment the address that linkers choose. Where no
//! rule gave the old position, the distance to the preceding part is kept, and the remainder modulo the alignment.
//!
//! Invariants: the order of parts is unchanged. Offset and address of a loaded section are congruent modulo the page
//! size. Old sizes give the old layout.

use super::{ImagePart, ObjectImage, SectionPart, SegmentRow};
use crate::{ObjectKind, malformed};
use hotswap_report::Diagnostic;
use object::elf;

const HEADER: usize = 64;
const SEGMENT: usize = 56;
const ROW: usize = 64;
/// The largest pages that linkers align to.
const LARGEST_PAGE: u64 = 2 << 20;
/// Section with which lld pads the read-only part of data; it does not have any content.
const RELRO_PADDING: &str = ".relro_padding";

/// Places of all parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageLayout {
    /// The `sh_offset` of each section.
    pub offsets: Vec<u64>,
    /// The `sh_addr` of each section.
    pub addresses: Vec<u64>,
    /// The `sh_size` of each section.
    pub sizes: Vec<u64>,
    pub segments: Vec<SegmentRow>,
    /// Offset of the section table.
    pub sections_at: u64,
    /// Size of the file.
    pub size: u64,
}

/// The end of the placed parts, before and after the change.
#[derive(Clone, Copy)]
struct LayoutEnd {
    old: u64,
    new: u64,
}

impl LayoutEnd {
    /// The new position of a part that was at `old`, after this end.
    fn place_after(self, old: u64, align: u64) -> u64 {
        let align = align.max(1);
        if self.old.next_multiple_of(align) == old {
            return self.new.next_multiple_of(align);
        }
        next_congruent(self.new + old.saturating_sub(self.old), old, align)
    }
}

/// The first number from `least` on that leaves the same remainder as `like`.
fn next_congruent(least: u64, like: u64, align: u64) -> u64 {
    least + (like % align + align - least % align) % align
}

/// The address that lld gives to the first section of a segment: the same offset in another page.
fn next_segment(end: u64, page: u64, align: u64) -> u64 {
    (end.next_multiple_of(page) + end % page).next_multiple_of(align)
}

impl ImageLayout {
    /// Places sections of those sizes, one for each section of the image.
    ///
    /// # Errors
    /// `MALFORMED` where the old positions follow no order, so that new ones cannot be determined.
    pub fn new(image: &ObjectImage<'_>, sizes: &[u64]) -> Result<Self, Diagnostic> {
        let mut layout = Self {
            offsets: image.sections.iter().map(|section| section.offset).collect(),
            addresses: image.sections.iter().map(|section| section.address).collect(),
            sizes: sizes.to_vec(),
            segments: image.segments.clone(),
            sections_at: image.sections_at,
            size: 0,
        };
        if image.kind == ObjectKind::Linked {
            layout.place_addresses(image)?;
        }
        layout.place_offsets(image)?;
        layout.place_segments(image)?;
        Ok(layout)
    }

    fn place_addresses(&mut self, image: &ObjectImage<'_>) -> Result<(), Diagnostic> {
        let headers = image.headers_end();
        let mut end = LayoutEnd { old: headers, new: headers };
        let mut load = image.segments.iter().position(|segment| segment.kind == elf::PT_LOAD && segment.offset == 0);
        if let Some(first) = load {
            let base = image.segments[first].address;
            end = LayoutEnd { old: base + headers, new: base + headers };
        }
        for item in &image.order {
            let ImagePart::Section(number) = *item else { continue };
            let section = &image.sections[number];
            if !section.is_loaded() {
                continue;
            }
            if section.address < end.old {
                let what = format!("the section `{}` has a smaller address than the one before it", section.name);
                return Err(malformed(section.offset as usize, what));
            }
            let of = image.load_of(section);
            self.addresses[number] = match of.filter(|_| of != load).map(|of| image.segments[of].align.max(1)) {
                Some(page) => first_address(end, section, page),
                None => end.place_after(section.address, section.align),
            };
            load = of.or(load);
            if self.pad_relro(section, number) {
                continue;
            }
            end = LayoutEnd { old: section.addresses().end, new: self.addresses[number] + self.sizes[number] };
        }
        Ok(())
    }

    /// Whether it is padding up to a page, which linkers ignore when they place the next segment.
    fn pad_relro(&mut self, section: &SectionPart<'_>, number: usize) -> bool {
        let is_padding = section.name == RELRO_PADDING && section.size == page_padding_size(section.address);
        // Padding of no bytes lies in no segment, which would have to grow with it.
        if is_padding && section.size > 0 {
            self.sizes[number] = page_padding_size(self.addresses[number]);
        }
        is_padding
    }

    fn place_offsets(&mut self, image: &ObjectImage<'_>) -> Result<(), Diagnostic> {
        let headers = image.headers_end();
        let mut end = LayoutEnd { old: headers, new: headers };
        // The segment that is being filled, and a section of it whose position is known.
        let mut current: Option<(usize, Option<usize>)> = image
            .segments
            .iter()
            .position(|segment| segment.kind == elf::PT_LOAD && segment.offset == 0)
            .map(|load| (load, None));
        for item in &image.order {
            let ImagePart::Section(number) = *item else {
                self.sections_at = end.place_after(image.sections_at, 8);
                end = LayoutEnd { old: image.sections_at, new: self.sections_at }
                    .advance_by((image.sections.len() * ROW) as u64);
                continue;
            };
            let section = &image.sections[number];
            let load = image.load_of(section);
            let offset = match (load, current) {
                (Some(load), Some((filled, known))) if load == filled => {
                    let segment = &image.segments[load];
                    let (offset, address) = match known {
                        Some(known) => (self.offsets[known], self.addresses[known]),
                        None => (segment.offset, segment.address),
                    };
                    if section.is_in_file() {
                        let distance = self.addresses[number].checked_sub(address).ok_or_else(|| {
                            let what = format!("the section `{}` is out of order in its segment", section.name);
                            malformed(section.offset as usize, what)
                        })?;
                        offset + distance
                    } else {
                        end.place_after(section.offset, section.align)
                    }
                }
                (Some(load), _) => {
                    let page = image.segments[load].align.max(1);
                    if next_congruent(end.old, section.address, page) == section.offset {
                        next_congruent(end.new, self.addresses[number], page)
                    } else {
                        next_congruent(end.place_after(section.offset, 1), self.addresses[number], page)
                    }
                }
                (None, _) => end.place_after(section.offset, section.align),
            };
            if let Some(load) = load {
                current = Some((load, Some(number)));
            }
            self.offsets[number] = offset;
            if section.is_in_file() && section.size.max(self.sizes[number]) > 0 {
                // The offset of a loaded section follows from its address, whatever other parts precede it in the file.
                if offset < end.new && section.offset >= end.old {
                    let what = format!("the section `{}` would lie over what is before it", section.name);
                    return Err(malformed(section.offset as usize, what));
                }
                end = LayoutEnd { old: section.offset + section.size, new: offset + self.sizes[number] };
            }
        }
        self.size = end.new + image.trailing_bytes().len() as u64;
        self.check_size(image)
    }

    /// Alignments that only headers claim would result in a file of any size.
    fn check_size(&self, image: &ObjectImage<'_>) -> Result<(), Diagnostic> {
        let sizes = image.sections.iter().zip(&self.sizes).filter(|(section, _)| section.is_in_file());
        let grown: u64 = sizes.map(|(section, size)| size.saturating_sub(section.size)).sum();
        let most = image.data.len() as u64 + grown + (image.order.len() as u64 + 1) * LARGEST_PAGE;
        if self.size <= most {
            return Ok(());
        }
        let what = format!("alignments would make a file of {} bytes of one of {}", self.size, image.data.len());
        Err(malformed(image.sections_at as usize, what))
    }

    fn place_segments(&mut self, image: &ObjectImage<'_>) -> Result<(), Diagnostic> {
        for (index, segment) in image.segments.iter().enumerate() {
            let range = segment.address..segment.address + segment.memory_size;
            let covered = image.sections.iter().enumerate().filter(|(_, section)| {
                let inside = range.start <= section.address && section.addresses().end <= range.end;
                section.is_loaded() && section.size > 0 && inside
            });
            let first = covered.clone().min_by_key(|(_, section)| section.address);
            let last = covered.clone().max_by_key(|(_, section)| section.address);
            let (Some((first, start)), Some((last, end))) = (first, last) else { continue };
            let row = &mut self.segments[index];
            if segment.offset != 0 || segment.kind != elf::PT_LOAD {
                row.address = (self.addresses[first] + segment.address).wrapping_sub(start.address);
                row.offset = (self.offsets[first] + segment.offset).wrapping_sub(start.offset);
            }
            let behind = range.end - end.addresses().end;
            row.memory_size = (self.addresses[last] + self.sizes[last] + behind).wrapping_sub(row.address);
            let in_file = covered.filter(|(_, section)| section.is_in_file());
            let Some((last, end)) = in_file.max_by_key(|(_, section)| section.address) else { continue };
            let segment_end = segment.offset.checked_add(segment.file_size);
            let behind = segment_end.and_then(|all| all.checked_sub(end.offset + end.size)).ok_or_else(|| {
                malformed(HEADER + index * SEGMENT, format!("the segment ends inside of the section `{}`", end.name))
            })?;
            row.file_size = (self.offsets[last] + self.sizes[last] + behind).wrapping_sub(row.offset);
        }
        Ok(())
    }

    /// The file with its headers and tables; the sections are those of the image where their size is unchanged, and
    /// zeros otherwise: the caller fills [`ImageLayout::range`] of those that it changed.
    ///
    /// # Errors
    /// `MALFORMED` where bytes that belong to no part would have to move apart.
    pub fn write_file(&self, image: &ObjectImage<'_>) -> Result<Vec<u8>, Diagnostic> {
        let size = usize::try_from(self.size).map_err(|_| malformed(0, "the file would be too large"))?;
        let mut out = Vec::new();
        out.try_reserve_exact(size)
            .map_err(|_| malformed(0, format!("the file would have {size} bytes, more than memory holds")))?;
        out.resize(size, 0);
        let headers = image.headers_end() as usize;
        out[..headers].copy_from_slice(&image.data[..headers]);
        out[40..48].copy_from_slice(&self.sections_at.to_le_bytes());
        for (number, segment) in self.segments.iter().enumerate() {
            segment.write(&mut out[image.segments_at as usize + number * SEGMENT..]);
        }
        let mut end = LayoutEnd { old: image.headers_end(), new: image.headers_end() };
        for item in &image.order {
            let (old, new, size) = match *item {
                ImagePart::Section(number) if !image.sections[number].is_in_file() => continue,
                ImagePart::Section(number) => {
                    let section = &image.sections[number];
                    if section.size == 0 && self.sizes[number] == 0 {
                        continue;
                    }
                    if section.size == self.sizes[number] {
                        out[self.section_range(number)].copy_from_slice(section.bytes);
                    }
                    (section.offset, self.offsets[number], LayoutEnd { old: section.size, new: self.sizes[number] })
                }
                ImagePart::Table => {
                    self.write_table(image, &mut out);
                    let size = (image.sections.len() * ROW) as u64;
                    (image.sections_at, self.sections_at, LayoutEnd { old: size, new: size })
                }
            };
            copy_gap(image.data, &mut out, end, LayoutEnd { old, new })?;
            end = LayoutEnd { old: old + size.old, new: new + size.new };
        }
        let tail = image.trailing_bytes();
        out[size - tail.len()..].copy_from_slice(tail);
        Ok(out)
    }

    fn write_table(&self, image: &ObjectImage<'_>, out: &mut [u8]) {
        let (old, new, size) = (image.sections_at as usize, self.sections_at as usize, image.sections.len() * ROW);
        let table = &mut out[new..new + size];
        table.copy_from_slice(&image.data[old..old + size]);
        for (number, row) in table.chunks_exact_mut(ROW).enumerate().skip(1) {
            row[16..24].copy_from_slice(&self.addresses[number].to_le_bytes());
            row[24..32].copy_from_slice(&self.offsets[number].to_le_bytes());
            if image.sections[number].kind != elf::SHT_NULL {
                row[32..40].copy_from_slice(&self.sizes[number].to_le_bytes());
            }
        }
    }

    /// The bytes of a section in the new file.
    pub fn section_range(&self, section: usize) -> std::ops::Range<usize> {
        let start = self.offsets[section] as usize;
        start..start + self.sizes[section] as usize
    }
}

fn page_padding_size(address: u64) -> u64 {
    address.next_multiple_of(4096) - address
}

impl LayoutEnd {
    fn advance_by(self, size: u64) -> Self {
        Self { old: self.old + size, new: self.new + size }
    }
}

fn first_address(end: LayoutEnd, section: &SectionPart<'_>, page: u64) -> u64 {
    let align = section.align.max(1);
    if next_segment(end.old, page, align) == section.address {
        return next_segment(end.new, page, align);
    }
    end.place_after(section.address, page.max(align))
}

/// Bytes between two parts are kept; the number of zeros may change.
fn copy_gap(data: &[u8], out: &mut [u8], from: LayoutEnd, to: LayoutEnd) -> Result<(), Diagnostic> {
    let old = data.get(from.old as usize..to.old as usize).unwrap_or_default();
    if old.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    let new = out.get_mut(from.new as usize..to.new as usize).filter(|new| new.len() == old.len());
    let new =
        new.ok_or_else(|| malformed(from.old as usize, "there are bytes between the sections that belong to none"))?;
    new.copy_from_slice(old);
    Ok(())
}

impl SegmentRow {
    fn write(&self, row: &mut [u8]) {
        let (address, offset) = (self.address.to_le_bytes(), self.offset.to_le_bytes());
        row[8..16].copy_from_slice(&offset);
        row[16..24].copy_from_slice(&address);
        row[24..32].copy_from_slice(&address);
        row[32..40].copy_from_slice(&self.file_size.to_le_bytes());
        row[40..48].copy_from_slice(&self.memory_size.to_le_bytes());
    }
}

impl<'a> ObjectImage<'a> {
    fn headers_end(&self) -> u64 {
        (HEADER + self.segments.len() * SEGMENT) as u64
    }

    /// The bytes after the last part.
    fn trailing_bytes(&self) -> &'a [u8] {
        let ends = self.order.iter().filter_map(|item| match *item {
            ImagePart::Section(number) if self.sections[number].bytes.is_empty() => None,
            ImagePart::Section(number) => Some(self.sections[number].offset + self.sections[number].bytes.len() as u64),
            ImagePart::Table => Some(self.sections_at + (self.sections.len() * ROW) as u64),
        });
        self.data.get(ends.max().unwrap_or(0) as usize..).unwrap_or_default()
    }

    /// The segment with which a section is loaded.
    fn load_of(&self, section: &SectionPart<'_>) -> Option<usize> {
        if !section.is_loaded() {
            return None;
        }
        let mut loads = self.segments.iter().enumerate().filter(|(_, segment)| segment.kind == elf::PT_LOAD);
        let found = loads.clone().find(|(_, segment)| segment_holds_section(segment, false, section));
        found
            .or_else(|| loads.find(|(_, segment)| segment_holds_section(segment, true, section)))
            .map(|(index, _)| index)
    }
}

fn segment_holds_section(segment: &SegmentRow, last: bool, section: &SectionPart<'_>) -> bool {
    let end = segment.address + segment.memory_size;
    segment.address <= section.address && (section.address < end || last && section.address == end)
}
