//! Sections that are compressed (`-gz`): the engine works on a file with plain ones, and what changed is compressed again.
//!
//! Invariants: a section whose content is unchanged keeps its compressed bytes; a file without such sections is not
//! copied; a header that claims more than its bytes hold is damage, found without taking the claimed memory.

use hotswap_code_object::image::{Image, Layout};
use hotswap_report::{Diagnostic, codes};
use object::elf;
use std::io::{Read, Write};

/// Bytes of the header of a compressed section: form, a reserved word, size, alignment.
const HEADER: usize = 24;
/// Where flags and alignment are in a row of the section table.
const FLAGS: usize = 8;
const ALIGN: usize = 48;
const ROW: usize = 64;

/// A compressed section.
struct Packed {
    section: usize,
    form: u32,
    plain: Vec<u8>,
}

/// A file whose sections are plain, and which of them were not.
pub(crate) struct Plain {
    pub(crate) file: Vec<u8>,
    sections: Vec<Packed>,
}

fn malformed(offset: u64, what: String) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, what).at(offset)
}

/// The file with plain sections; `None` if it has no others.
pub(crate) fn unpack(image: &Image<'_>) -> Result<Option<Plain>, Diagnostic> {
    let mut sections = Vec::new();
    for (number, part) in image.sections.iter().enumerate() {
        if part.flags & u64::from(elf::SHF_COMPRESSED) != 0 && !part.is_loaded() && part.is_in_file() {
            sections.push(inflate(image, number)?);
        }
    }
    if sections.is_empty() {
        return Ok(None);
    }
    let mut sizes: Vec<u64> = image.sections.iter().map(|section| section.size).collect();
    sections.iter().for_each(|packed| sizes[packed.section] = packed.plain.len() as u64);
    let layout = Layout::new(image, &sizes)?;
    let mut file = layout.write(image)?;
    for packed in &sections {
        file[layout.range(packed.section)].copy_from_slice(&packed.plain);
        let part = &image.sections[packed.section];
        let align = part.bytes[16..HEADER].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let flags = part.flags & !u64::from(elf::SHF_COMPRESSED);
        set_row(&mut file, &layout, packed.section, flags, align);
    }
    Ok(Some(Plain { file, sections }))
}

/// Writes flags and alignment of a section.
fn set_row(file: &mut [u8], layout: &Layout, section: usize, flags: u64, align: u64) {
    let row = layout.sections_at as usize + section * ROW;
    file[row + FLAGS..row + FLAGS + 8].copy_from_slice(&flags.to_le_bytes());
    file[row + ALIGN..row + ALIGN + 8].copy_from_slice(&align.to_le_bytes());
}

fn inflate(image: &Image<'_>, section: usize) -> Result<Packed, Diagnostic> {
    let part = &image.sections[section];
    let damaged = |what: &str| malformed(part.offset, format!("the compressed section `{}` {what}", part.name));
    let (header, content) = part.bytes.split_at_checked(HEADER).ok_or_else(|| damaged("is cut off"))?;
    let number =
        |range: std::ops::Range<usize>| header[range].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let (form, size, align) = (number(0..4) as u32, number(8..16), number(16..24));
    if align & align.wrapping_sub(1) != 0 && align != 0 || align > 1 << 32 {
        return Err(damaged("has an alignment that is no power of two"));
    }
    // One byte more than is claimed tells a lie; memory grows with what is really there.
    let limit = size.saturating_add(1);
    let mut plain = Vec::new();
    let read = match form {
        elf::ELFCOMPRESS_ZLIB => flate2::read::ZlibDecoder::new(content).take(limit).read_to_end(&mut plain),
        elf::ELFCOMPRESS_ZSTD => match zstd::stream::read::Decoder::new(content) {
            Ok(decoder) => decoder.take(limit).read_to_end(&mut plain),
            Err(error) => Err(error),
        },
        other => {
            let what = format!("the section `{}` is compressed in form {other}, which is not known", part.name);
            return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).at(part.offset));
        }
    };
    if read.is_err() || plain.len() as u64 != size {
        return Err(damaged("does not hold what its header says"));
    }
    Ok(Packed { section, form, plain })
}

/// The file with those sections compressed again; `before` is what they were in.
pub(crate) fn pack(before: &Image<'_>, plain: &Plain, file: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    let image = Image::parse(file)?;
    let mut contents = Vec::with_capacity(plain.sections.len());
    for packed in &plain.sections {
        let new = image.sections[packed.section].bytes;
        let old = before.sections[packed.section].bytes;
        contents.push(if new == packed.plain { old.to_vec() } else { deflate(&old[..HEADER], packed.form, new)? });
    }
    let mut sizes: Vec<u64> = image.sections.iter().map(|section| section.size).collect();
    let numbered = || plain.sections.iter().map(|packed| packed.section).zip(&contents);
    numbered().for_each(|(section, content)| sizes[section] = content.len() as u64);
    let layout = Layout::new(&image, &sizes)?;
    let mut out = layout.write(&image)?;
    for (section, content) in numbered() {
        out[layout.range(section)].copy_from_slice(content);
        let part = &before.sections[section];
        set_row(&mut out, &layout, section, part.flags, part.align);
    }
    Ok(out)
}

fn deflate(header: &[u8], form: u32, plain: &[u8]) -> Result<Vec<u8>, Diagnostic> {
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
