//! Takes a file apart.

use super::{ImageLayout, ImagePart, ObjectImage, SectionPart, SegmentRow};
use crate::elf::{Elf, file_header, record_table, string_at};
use crate::{ObjectKind, malformed, unsupported_format};
use hotswap_report::Diagnostic;
use hotswap_targets::EFlags;
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};

const HEADER: u64 = size_of::<FileHeader64<LE>>() as u64;
const ROW: u64 = size_of::<SectionHeader64<LE>>() as u64;
const SEGMENT: u64 = size_of::<ProgramHeader64<LE>>() as u64;

pub(super) fn parse(data: &[u8]) -> Result<ObjectImage<'_>, Diagnostic> {
    // The reader's own checks: kind of file, versions, names and ranges.
    let elf = Elf::parse(data)?;
    let flags =
        EFlags::decode(elf.flags, elf.abi_version).map_err(|error| unsupported_format(48, error.to_string()))?;
    let header = file_header(data).ok_or_else(|| malformed(0, "the ELF header cannot be read"))?;
    let sections_at = header.e_shoff.get(LE);
    if sections_at == 0 || header.e_shnum.get(LE) == 0 {
        return Err(unsupported_format(40, "the file has no section table, or more than 65279 sections")
            .advise("use the file that the linker wrote; it must not be stripped of its section table"));
    }
    let sections = read_sections(&elf, data, header)?;
    let segments = read_segments(data, header)?;
    let segments_at = if segments.is_empty() { 0 } else { header.e_phoff.get(LE) };
    let order = file_order(data, &sections, sections_at, HEADER.max(segments_at + segments.len() as u64 * SEGMENT))?;
    if segments_at != 0 && segments_at != HEADER {
        return Err(unsupported_format(32, "the program headers do not follow the ELF header"));
    }
    match elf.kind {
        ObjectKind::Linked => check_addresses(&sections, &segments, sections_at)?,
        ObjectKind::Relocatable if !segments.is_empty() => {
            return Err(unsupported_format(32, "a relocatable file has segments"));
        }
        ObjectKind::Relocatable => {}
    }
    let image = ObjectImage { data, kind: elf.kind, flags, sections, segments, segments_at, sections_at, order };
    check_round_trip(&image)?;
    Ok(image)
}

/// The rules for new positions must give the old ones from the old sizes.
fn check_round_trip(image: &ObjectImage<'_>) -> Result<(), Diagnostic> {
    let sizes: Vec<u64> = image.sections.iter().map(|section| section.size).collect();
    let layout = ImageLayout::new(image, &sizes)?;
    let sections = layout.offsets.iter().zip(&layout.addresses).zip(&layout.sizes).zip(&image.sections);
    for (number, (((offset, address), size), section)) in sections.enumerate() {
        if (*offset, *address, *size) != (section.offset, section.address, section.size) {
            let at = image.sections_at as usize + number * ROW as usize;
            return Err(unsupported_format(at, format!("the place of the section `{}` follows no rule", section.name)));
        }
    }
    if layout.sections_at != image.sections_at || layout.segments != image.segments {
        return Err(unsupported_format(32, "the places of the segments or of the section table follow no rule"));
    }
    if layout.size != image.data.len() as u64 {
        return Err(unsupported_format(image.data.len(), "the size of the file does not follow from its parts"));
    }
    Ok(())
}

fn read_sections<'a>(
    elf: &Elf<'a>,
    data: &'a [u8],
    header: &FileHeader64<LE>,
) -> Result<Vec<SectionPart<'a>>, Diagnostic> {
    let (at, count) = (header.e_shoff.get(LE), u64::from(header.e_shnum.get(LE)));
    let rows = record_table::<SectionHeader64<LE>>(data, at, count, 40, "the section table")?;
    let names = elf.sections.get(usize::from(header.e_shstrndx.get(LE))).map(|names| &data[names.range.clone()]);
    let parts = rows.iter().zip(&elf.sections).enumerate().map(|(number, (row, section))| {
        let place = at as usize + number * ROW as usize;
        let align = row.sh_addralign.get(LE);
        if align & align.wrapping_sub(1) != 0 && align != 0 || align > 1 << 32 {
            return Err(malformed(place + 48, format!("the alignment {align:#x} is no power of two up to 2^32")));
        }
        let (address, size) = (row.sh_addr.get(LE), row.sh_size.get(LE));
        if row.sh_offset.get(LE) > 1 << 62 {
            return Err(malformed(place + 24, "a section's offset leaves the file"));
        }
        // Half of the address space is left for growth.
        if address.checked_add(size).is_none_or(|end| end > 1 << 62) {
            return Err(malformed(place + 16, "a section leaves the address space"));
        }
        let name = names.and_then(|names| string_at(names, row.sh_name.get(LE)));
        Ok(SectionPart {
            name: name.and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default(),
            kind: row.sh_type.get(LE),
            flags: row.sh_flags.get(LE),
            address,
            offset: row.sh_offset.get(LE),
            size: if section.kind == elf::SHT_NULL { 0 } else { size },
            link: row.sh_link.get(LE),
            info: row.sh_info.get(LE),
            align,
            entry_size: row.sh_entsize.get(LE),
            bytes: &data[section.range.clone()],
        })
    });
    parts.collect()
}

fn read_segments(data: &[u8], header: &FileHeader64<LE>) -> Result<Vec<SegmentRow>, Diagnostic> {
    let (at, count) = (header.e_phoff.get(LE), u64::from(header.e_phnum.get(LE)));
    if count == 0 {
        return Ok(Vec::new());
    }
    let rows = record_table::<ProgramHeader64<LE>>(data, at, count, 32, "the program header table")?;
    (0..).zip(rows).map(|one| read_segment_row(one, at)).collect()
}

fn read_segment_row((number, row): (u64, &ProgramHeader64<LE>), at: u64) -> Result<SegmentRow, Diagnostic> {
    let place = (at + number * SEGMENT) as usize;
    let (address, align) = (row.p_vaddr.get(LE), row.p_align.get(LE));
    if row.p_paddr.get(LE) != address {
        return Err(unsupported_format(place + 24, "a segment's physical address is not its virtual address"));
    }
    if address.checked_add(row.p_memsz.get(LE)).is_none_or(|end| end > 1 << 62) {
        return Err(malformed(place + 16, "a segment leaves the address space"));
    }
    if align & align.wrapping_sub(1) != 0 && align != 0 || align > 1 << 32 {
        return Err(malformed(place + 48, format!("the alignment {align:#x} is no power of two up to 2^32")));
    }
    let (kind, flags, offset) = (row.p_type.get(LE), row.p_flags.get(LE), row.p_offset.get(LE));
    let (file_size, memory_size) = (row.p_filesz.get(LE), row.p_memsz.get(LE));
    Ok(SegmentRow { kind, flags, offset, address, file_size, memory_size, align })
}

/// A part with its place in the file.
struct PlacedPart {
    offset: u64,
    size: u64,
    part: ImagePart,
}

/// The parts after the headers in the order of the file; refuses those that overlap.
fn file_order(
    data: &[u8],
    sections: &[SectionPart<'_>],
    table: u64,
    headers: u64,
) -> Result<Vec<ImagePart>, Diagnostic> {
    let mut numbers: Vec<usize> =
        (1..sections.len()).filter(|number| sections[*number].kind != elf::SHT_NULL).collect();
    numbers.sort_by_key(|number| (file_order_rank(&sections[*number]), *number));
    let mut items: Vec<PlacedPart> = Vec::with_capacity(numbers.len() + 1);
    for number in numbers {
        let section = &sections[number];
        let part = ImagePart::Section(number);
        items.push(PlacedPart { offset: section.offset, size: section.bytes.len() as u64, part });
    }
    let behind = items.iter().position(|item| item.offset >= table && item.size > 0).unwrap_or(items.len());
    let size = sections.len() as u64 * ROW;
    items.insert(behind, PlacedPart { offset: table, size, part: ImagePart::Table });
    let mut end = headers;
    for PlacedPart { offset, size, part: item } in &items {
        if *size > 0 && *offset < end {
            let what = match item {
                ImagePart::Section(number) => format!("the section `{}`", sections[*number].name),
                ImagePart::Table => "the section table".to_owned(),
            };
            return Err(malformed(
                *offset as usize,
                format!("{what} overlaps the part before it, which ends at {end:#x}"),
            ));
        }
        end = end.max(offset.saturating_add(*size));
    }
    if end > data.len() as u64 {
        return Err(malformed(data.len(), "the file ends before its parts do"));
    }
    Ok(items.into_iter().map(|item| item.part).collect())
}

fn file_order_rank(section: &SectionPart<'_>) -> impl Ord + use<> {
    (section.offset, section.is_in_file() && section.size > 0, section.address)
}

/// Sections of a loaded program must not share addresses, and must agree with their segment.
fn check_addresses(sections: &[SectionPart<'_>], segments: &[SegmentRow], table: u64) -> Result<(), Diagnostic> {
    let mut loaded: Vec<usize> =
        (0..sections.len()).filter(|number| sections[*number].is_loaded() && sections[*number].size > 0).collect();
    loaded.sort_by_key(|number| sections[*number].address);
    for pair in loaded.windows(2) {
        let (first, second) = (&sections[pair[0]], &sections[pair[1]]);
        if second.address < first.addresses().end {
            let what = format!("the sections `{}` and `{}` overlap at {:#x}", first.name, second.name, second.address);
            return Err(malformed(table as usize + pair[1] * ROW as usize + 16, what));
        }
    }
    for number in loaded.into_iter().filter(|number| sections[*number].is_in_file()) {
        let section = &sections[number];
        let mut holding = segments.iter().filter(|segment| {
            segment.kind == elf::PT_LOAD
                && segment.address <= section.address
                && section.address < segment.address + segment.memory_size
        });
        if holding.any(|segment| section_offset_in_segment(segment, section) != Some(section.offset)) {
            let what = format!("the section `{}` is not where its segment has it", section.name);
            return Err(malformed(table as usize + number * ROW as usize + 24, what));
        }
    }
    Ok(())
}

fn section_offset_in_segment(segment: &SegmentRow, section: &SectionPart<'_>) -> Option<u64> {
    segment.offset.checked_add(section.address - segment.address)
}
