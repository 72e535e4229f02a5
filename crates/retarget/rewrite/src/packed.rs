//! Packed sections: compressed ones (`-gz`) and compact relocations (`--crel`). The engine works on a file with plain
//! ones, and changed sections are packed again.
//!
//! Invariants: a section with unchanged content keeps its packed bytes. A file without such sections is not copied. A
//! header that claims more than its bytes hold is damage, found without allocating the claimed memory.

use hotswap_code_object::image::{
    ImageLayout, ObjectImage, Rela, RelocationForm, RelocationSection, SectionPart, crel,
};
use hotswap_report::limit::Charge;
use hotswap_report::{Diagnostic, codes};
use object::elf;
use std::io::{Read, Write};

/// Bytes of the header of a compressed section: form, a reserved word, size, alignment.
const HEADER: usize = 24;
/// Offsets of the kind, flags, alignment and entry size in a row of the section table.
const KIND: usize = 4;
const FLAGS: usize = 8;
const ALIGN: usize = 48;
const ENTRY: usize = 56;
const ROW: usize = 64;
/// Initial size of an allocation.
const STEP: u64 = 1 << 20;
/// Bytes of a plain relocation.
const RELA: usize = 24;

/// The packing of a section.
#[derive(Clone, Copy)]
enum PackingKind {
    /// Compressed in the form of this number (`ch_type`).
    Compressed(u32),
    /// Compact relocations; whether the bits that are zero in all places are omitted.
    Crel { shifts: bool },
}

struct PackedSection {
    section: usize,
    how: PackingKind,
    plain: Vec<u8>,
    /// The row of the plain section.
    row: HeaderChanges,
}

/// The changes in a row of the section table.
#[derive(Clone, Copy)]
struct HeaderChanges {
    kind: u32,
    flags: u64,
    align: u64,
    entry_size: u64,
}

impl HeaderChanges {
    fn from_section(part: &SectionPart<'_>) -> Self {
        Self { kind: part.kind, flags: part.flags, align: part.align, entry_size: part.entry_size }
    }
}

/// A file whose sections are plain, and those that were packed.
pub(crate) struct PlainFile {
    pub(crate) file: Vec<u8>,
    sections: Vec<PackedSection>,
}

fn malformed_at(offset: u64, what: String) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, what).at_offset(offset)
}

/// The file with plain sections; `None` if it lacks packed ones.
pub(crate) fn unpack_sections(image: &ObjectImage<'_>) -> Result<Option<PlainFile>, Diagnostic> {
    let (mut sections, mut charge) = (Vec::new(), Charge::default());
    for (number, part) in image.sections.iter().enumerate() {
        if part.flags & u64::from(elf::SHF_COMPRESSED) != 0 && !part.is_loaded() && part.is_in_file() {
            sections.push(inflate_section(image, number, &mut charge)?);
        }
    }
    if image.sections.iter().any(|part| part.kind == elf::SHT_CREL) {
        for records in image.relocations()?.iter().filter(|records| records.form == RelocationForm::Crel) {
            sections.push(expand_relocations(image, records)?);
        }
    }
    if sections.is_empty() {
        return Ok(None);
    }
    let mut sizes: Vec<u64> = image.sections.iter().map(|section| section.size).collect();
    sections.iter().for_each(|packed| sizes[packed.section] = packed.plain.len() as u64);
    let layout = ImageLayout::new(image, &sizes)?;
    let mut file = layout.write_file(image)?;
    for packed in &sections {
        file[layout.section_range(packed.section)].copy_from_slice(&packed.plain);
        set_row(&mut file, &layout, packed.section, packed.row);
    }
    Ok(Some(PlainFile { file, sections }))
}

fn set_row(file: &mut [u8], layout: &ImageLayout, section: usize, new: HeaderChanges) {
    let start = layout.sections_at as usize + section * ROW;
    put_row_bytes(KIND, &new.kind.to_le_bytes(), file, start);
    put_row_bytes(FLAGS, &new.flags.to_le_bytes(), file, start);
    put_row_bytes(ALIGN, &new.align.to_le_bytes(), file, start);
    put_row_bytes(ENTRY, &new.entry_size.to_le_bytes(), file, start);
}

fn put_row_bytes(at: usize, bytes: &[u8], file: &mut [u8], start: usize) {
    file[start + at..start + at + bytes.len()].copy_from_slice(bytes)
}

/// The plain form of compact relocations.
fn expand_relocations(image: &ObjectImage<'_>, records: &RelocationSection<'_>) -> Result<PackedSection, Diagnostic> {
    let part = &image.sections[records.section];
    if part.is_loaded() {
        return Err(malformed_at(part.offset, format!("the compact relocations of `{}` are loaded", part.name)));
    }
    let rows = records.iter().collect::<Result<Vec<Rela>, _>>()?;
    let mut plain = vec![0; rows.len() * RELA];
    for (record, row) in plain.chunks_exact_mut(RELA).zip(&rows) {
        record[8..16].copy_from_slice(&(u64::from(row.symbol) << 32 | u64::from(row.kind.number)).to_le_bytes());
        Rela::write(record, row.place, row.addend);
    }
    // Assemblers omit the bits that are 0 in all places, lld omits none.
    let shift = crel::shift_of(part.bytes);
    let how = PackingKind::Crel { shifts: shift != 0 && shift == crel::common_shift(&rows) };
    // Packed again they must be at the same place: the alignment is kept.
    let row = HeaderChanges { kind: elf::SHT_RELA, entry_size: RELA as u64, ..HeaderChanges::from_section(part) };
    Ok(PackedSection { section: records.section, how, plain, row })
}

/// Compact relocations for the current contents of a file.
fn compact_relocations(image: &ObjectImage<'_>, section: usize, shifts: bool) -> Result<Vec<u8>, Diagnostic> {
    let all = image.relocations()?;
    let records = all.iter().find(|records| records.section == section);
    let rows = records.into_iter().flat_map(RelocationSection::iter).collect::<Result<Vec<Rela>, _>>()?;
    Ok(crel::write_crel(&rows, if shifts { crel::common_shift(&rows) } else { 0 }))
}

fn inflate_section(image: &ObjectImage<'_>, section: usize, charge: &mut Charge) -> Result<PackedSection, Diagnostic> {
    let part = &image.sections[section];
    let (header, content) =
        part.bytes.split_at_checked(HEADER).ok_or_else(|| compressed_section_error("is cut off", part))?;
    let number =
        |range: std::ops::Range<usize>| header[range].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let (form, size, align) = (number(0..4) as u32, number(8..16), number(16..24));
    if align & align.wrapping_sub(1) != 0 && align != 0 || align > 1 << 32 {
        return Err(compressed_section_error("has an alignment that is no power of two", part));
    }
    charge.add(content.len(), size).map_err(|error| error.in_entry(part.name.to_string()).at_offset(part.offset))?;
    let mut reader: Box<dyn Read + '_> = match form {
        elf::ELFCOMPRESS_ZLIB => Box::new(flate2::read::ZlibDecoder::new(content)),
        elf::ELFCOMPRESS_ZSTD => match zstd::stream::read::Decoder::new(content) {
            Ok(decoder) => Box::new(decoder),
            Err(_) => return Err(compressed_section_error("does not hold what its header says", part)),
        },
        other => {
            let what = format!("the section `{}` is compressed in form {other}, which is not known", part.name);
            return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).at_offset(part.offset));
        }
    };
    let plain = read_exactly(&mut reader, size).map_err(|()| no_memory(part, size))?;
    let Some(plain) = plain else {
        return Err(compressed_section_error("does not hold what its header says", part));
    };
    let row = HeaderChanges {
        flags: part.flags & !u64::from(elf::SHF_COMPRESSED),
        align,
        ..HeaderChanges::from_section(part)
    };
    Ok(PackedSection { section, how: PackingKind::Compressed(form), plain, row })
}

fn compressed_section_error(what: &str, part: &SectionPart<'_>) -> Diagnostic {
    malformed_at(part.offset, format!("the compressed section `{}` {what}", part.name))
}

fn no_memory(part: &SectionPart<'_>, size: u64) -> Diagnostic {
    let what = format!("the compressed section `{}` claims {size} bytes, more than can be held", part.name);
    Diagnostic::error(codes::TOO_LARGE, what).at_offset(part.offset).advise("give the command more memory")
}

/// Reads exactly `size` bytes, up to the end: `None` if there are more or fewer, an error if memory is insufficient.
/// Memory grows with the bytes actually present, and never by more than is claimed.
fn read_exactly(reader: &mut impl Read, size: u64) -> Result<Option<Vec<u8>>, ()> {
    let (mut plain, mut left) = (Vec::new(), size);
    while left > 0 {
        let step = left.min((plain.len() as u64).max(STEP));
        plain.try_reserve_exact(usize::try_from(step).map_err(drop)?).map_err(drop)?;
        match reader.by_ref().take(step).read_to_end(&mut plain) {
            Ok(read) if read as u64 == step => left -= step,
            _ => return Ok(None),
        }
    }
    // One more byte contradicts the claimed size.
    Ok(matches!(reader.read(&mut [0]), Ok(0)).then_some(plain))
}

/// The file with those sections packed again; `before` is the file in which they were packed.
pub(crate) fn pack_sections(before: &ObjectImage<'_>, plain: &PlainFile, file: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    let image = ObjectImage::parse(file)?;
    let mut contents = Vec::with_capacity(plain.sections.len());
    for packed in &plain.sections {
        let new = image.sections[packed.section].bytes;
        let old = before.sections[packed.section].bytes;
        contents.push(match packed.how {
            _ if new == packed.plain => old.to_vec(),
            PackingKind::Compressed(form) => deflate_section(&old[..HEADER], form, new)?,
            PackingKind::Crel { shifts } => compact_relocations(&image, packed.section, shifts)?,
        });
    }
    let mut sizes: Vec<u64> = image.sections.iter().map(|section| section.size).collect();
    for (packed, content) in plain.sections.iter().zip(&contents) {
        sizes[packed.section] = content.len() as u64;
    }
    let layout = ImageLayout::new(&image, &sizes)?;
    let mut out = layout.write_file(&image)?;
    for (packed, content) in plain.sections.iter().zip(&contents) {
        let section = packed.section;
        out[layout.section_range(section)].copy_from_slice(content);
        set_row(&mut out, &layout, section, HeaderChanges::from_section(&before.sections[section]));
    }
    Ok(out)
}

fn deflate_section(header: &[u8], form: u32, plain: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    let mut out = header.to_vec();
    out[8..16].copy_from_slice(&(plain.len() as u64).to_le_bytes());
    let written = match form {
        elf::ELFCOMPRESS_ZLIB => {
            let mut encoder = flate2::write::ZlibEncoder::new(&mut out, flate2::Compression::default());
            encoder.write_all(plain).and_then(|()| encoder.finish().map(drop))
        }
        _ => zstd::stream::copy_encode(plain, &mut out, 0),
    };
    written.map_err(|error| Diagnostic::error(codes::INTERNAL, format!("a section cannot be compressed: {error}")))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn memory_grows_with_what_is_there_and_not_with_the_claim() {
        let zeros = |size: u64| io::repeat(0).take(size);
        for (there, claim, expected) in [
            (0, 0, Some(0)),
            (5, 5, Some(5)),
            (5, 4, None),
            (5, 6, None),
            (STEP * 3, STEP * 3, Some(STEP as usize * 3)),
        ] {
            let read = read_exactly(&mut zeros(there), claim).unwrap();
            assert_eq!(read.map(|bytes| bytes.len()), expected, "{there} {claim}");
        }
        // A claim of petabytes with little data takes little memory.
        assert_eq!(read_exactly(&mut zeros(STEP), 1 << 50), Ok(None));
    }
}
