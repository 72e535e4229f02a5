//! Replacing the fat binary inside a COFF object, as clang makes them for Windows.
//!
//! As in ELF objects the new content is appended to the file and the old place is zeroed. The section header states its
//! position; the section's symbol states its length and checksum. Nothing else changes.
//!
//! | item | layout |
//! |---|---|
//! | header | u16 machine, u16 sections, u32 time, u32 symbol table, u32 symbols, u16 optional header, u16 flags |
//! | section | name\[8\], u32 virtual size and address, u32 size and offset of the content, u32 offset of relocations and lines, u16 numbers of both, u32 flags |
//! | symbol | name\[8\], u32 value, u16 section from 1, u16 type, u8 class, u8 number of auxiliary records |
//! | section's auxiliary record | u32 length, u16 relocations, u16 lines, u32 checksum, … |
//!
//! Invariant: the result is read again by `object` and compared before it is returned.
//!
//! Absent on purpose: objects with more than 65279 sections (`/bigobj`), import objects, PE images.

use crate::bytes::{align_up, malformed_at, slice, u16_at, u32_at, u64_at};
use crate::fatbin::walk_fatbin;
use crate::host_object;
use hotswap_report::{Diagnostic, codes};
use object::SectionIndex;
use std::ops::Range;

const MACHINES: [u16; 2] = [0x8664, 0xaa64]; // x86-64, AArch64
const HEADER: u64 = 20;
const SECTION: u64 = 40;
const SYMBOL: u64 = 18;
const RELOCATION: u64 = 10;
/// `IMAGE_REL_AMD64_ADDR64`, and that of AArch64: the only ones with an addend of 8 bytes.
const ADDR64: [u16; 2] = [1, 14];
const CLASS_STATIC: u8 = 3;
/// Clang's alignment of fat binaries in memory; in the file no alignment is required.
const ALIGNMENT: u64 = 16;
/// `IMAGE_SCN_LNK_NRELOC_OVFL`, with 65535 relocations: their number is in the first of them.
const MANY_RELOCATIONS: u32 = 0x0100_0000;
/// The section flag `IMAGE_SCN_CNT_UNINITIALIZED_DATA`: no bytes in the file.
const UNINITIALIZED: u32 = 0x80;

/// Whether `bytes` begin as a COFF object for Windows on x86-64 or AArch64.
pub(crate) fn is_coff_object(bytes: &[u8]) -> bool {
    u16_at(bytes, 0).is_some_and(|machine| MACHINES.contains(&machine)) && u16_at(bytes, 16) == Some(0)
}

struct CoffSection {
    header: u64,
    /// Whether its bytes are zeros that the file does not hold (`.bss`).
    is_zeros: bool,
    offset: u64,
    size: u64,
    relocations: u64,
    relocation_count: u64,
}

struct CoffObject<'a> {
    bytes: &'a [u8],
    sections: Vec<CoffSection>,
    symbols: u64,
    symbol_count: u64,
}

/// A copy of `object` with `new` as the content of the section that begins at `offset`.
pub(crate) fn replace_section(object: &[u8], offset: u64, new: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    let parsed = CoffObject::read(object)?;
    let mut found = parsed.sections.iter().enumerate().filter(|(_, section)| is_replaced_section(section, offset));
    let (Some((index, section)), None) = (found.next(), found.next()) else {
        return Err(malformed_at("no section, or two, have their content there", offset));
    };
    let old = slice(object, section.offset, section.size)
        .ok_or_else(|| malformed_at("a section leaves the file", section.header))?;
    if walk_fatbin(old).take(2).filter(Result::is_ok).count() > 1 {
        return Err(host_object::no_place("it holds several bundles, and symbols point to each"));
    }
    parsed.check_apart(section)?;
    let lengths = parsed.section_length_fields(index)?;
    parsed.check_relocations(index)?;
    let changed = parsed.write_section(section, &lengths, new)?;
    // Sections are counted from 1.
    match host_object::verify_exchange(object, &changed, SectionIndex(index + 1), new) {
        Err(_) if !parsed.is_apart() => Err(malformed_at("sections or headers overlap", 0)),
        result => result.map(|()| changed),
    }
}

fn is_replaced_section(section: &&CoffSection, offset: u64) -> bool {
    section.offset == offset && section.size > 0
}

/// The place of a symbol.
struct SymbolPlace {
    /// Number of its section, from 1.
    section: u16,
    /// Its offset in the section.
    value: u32,
}

impl<'a> CoffObject<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Diagnostic> {
        let count = u64::from(u16_at(bytes, 2).ok_or_else(truncated_header_error)?);
        let symbols = u64::from(u32_at(bytes, 8).ok_or_else(truncated_header_error)?);
        let symbol_count = u64::from(u32_at(bytes, 12).ok_or_else(truncated_header_error)?);
        slice(bytes, symbols, symbol_count * SYMBOL)
            .ok_or_else(|| malformed_at("the symbol table leaves the file", 8))?;
        let sections: Vec<_> = (0..count).map_while(|number| read_section(bytes, number)).collect();
        if sections.len() as u64 != count {
            return Err(malformed_at("the section headers leave the file", HEADER));
        }
        Ok(Self { bytes, sections, symbols, symbol_count })
    }

    /// The ranges that headers refer to.
    fn header_ranges(&self) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        parts.push(0..HEADER + self.sections.len() as u64 * SECTION);
        for section in &self.sections {
            // Other sections at 0 overlap the header.
            if section.offset > 0 || !section.is_zeros {
                parts.push(section.offset..section.offset + section.size);
            }
            parts.push(section.relocations..section.relocations + section.relocation_count * RELOCATION);
        }
        let strings = self.symbols + self.symbol_count * SYMBOL;
        let size = u32_at(self.bytes, strings).filter(|_| self.symbols > 0).map_or(0, u64::from);
        parts.extend([self.symbols..strings, strings..strings + size]);
        parts.retain(|part| !part.is_empty());
        parts
    }

    /// Requires that the zeroed range belongs to one part of the file.
    fn check_apart(&self, ours: &CoffSection) -> Result<(), Diagnostic> {
        let end = ours.offset + ours.size;
        match self.header_ranges().iter().filter(|part| part.start < end && ours.offset < part.end).count() {
            1 => Ok(()),
            _ => Err(malformed_at("sections or headers overlap", ours.offset)),
        }
    }

    /// Whether nothing overlaps or exceeds the file. In other files the effects of a change are unknown.
    fn is_apart(&self) -> bool {
        let mut parts = self.header_ranges();
        parts.sort_by_key(|part| part.start);
        let inside = parts.iter().all(|part| part.end <= self.bytes.len() as u64);
        inside && parts.windows(2).all(|pair| pair[0].end <= pair[1].start)
    }

    fn symbol_place(&self, number: u64) -> Option<SymbolPlace> {
        let at = self.symbols + number * SYMBOL;
        if number >= self.symbol_count {
            return None;
        }
        Some(SymbolPlace { section: u16_at(self.bytes, at + 12)?, value: u32_at(self.bytes, at + 8)? })
    }

    /// Offsets of the auxiliary records that state the section's length. Rejects symbols that are parts of it.
    fn section_length_fields(&self, index: usize) -> Result<Vec<u64>, Diagnostic> {
        let (mut found, mut number) = (Vec::new(), 0);
        while let Some(SymbolPlace { section, value }) = self.symbol_place(number) {
            let at = self.symbols + number * SYMBOL;
            let [class, auxiliary] = [16, 17].map(|field| slice(self.bytes, at + field, 1).map_or(0, |byte| byte[0]));
            let auxiliary = u64::from(auxiliary);
            if usize::from(section) == index + 1 {
                if value != 0 {
                    return Err(host_object::no_place(format!("symbol {number} is a part of it (at {value:#x})")));
                }
                if class == CLASS_STATIC && auxiliary > 0 && number + 1 < self.symbol_count {
                    found.push(at + SYMBOL);
                }
            }
            number += 1 + auxiliary;
        }
        Ok(found)
    }

    /// Rejects relocations inside of the content, and those that point beyond its start.
    fn check_relocations(&self, index: usize) -> Result<(), Diagnostic> {
        for (number, section) in self.sections.iter().enumerate() {
            if number == index && section.relocation_count > 0 {
                return Err(host_object::no_place("relocations change it"));
            }
            for at in (0..section.relocation_count).map(|number| section.relocations + number * RELOCATION) {
                let symbol = u32_at(self.bytes, at + 4).ok_or_else(|| truncated_relocation_error(at))?;
                let kind = u16_at(self.bytes, at + 8).ok_or_else(|| truncated_relocation_error(at))?;
                let inside =
                    self.symbol_place(u64::from(symbol)).is_some_and(|found| usize::from(found.section) == index + 1);
                let place =
                    section.offset + u64::from(u32_at(self.bytes, at).ok_or_else(|| truncated_relocation_error(at))?);
                let is_start = match ADDR64.contains(&kind) {
                    true => u64_at(self.bytes, place) == Some(0),
                    false => u32_at(self.bytes, place) == Some(0),
                };
                if inside && !is_start {
                    return Err(host_object::no_place("a relocation points past its start"));
                }
            }
        }
        Ok(())
    }

    fn write_section(&self, section: &CoffSection, lengths: &[u64], new: &[u8]) -> Result<Vec<u8>, Diagnostic> {
        let offset = align_up(self.bytes.len() as u64, ALIGNMENT).ok_or_else(oversized_object_error)?;
        let place = u32::try_from(offset).map_err(|_| oversized_object_error())?;
        u32::try_from(offset + new.len() as u64).map_err(|_| oversized_object_error())?;
        let size = (new.len() as u32).to_le_bytes();
        let mut out = self.bytes.to_vec();
        out[section.offset as usize..(section.offset + section.size) as usize].fill(0);
        out.resize(offset as usize, 0);
        out.extend_from_slice(new);
        out[field_range(section.header + 16)].copy_from_slice(&size);
        out[field_range(section.header + 20)].copy_from_slice(&place.to_le_bytes());
        for at in lengths {
            out[field_range(*at)].copy_from_slice(&size);
            // Zero means that none was computed.
            if u32_at(self.bytes, at + 8) != Some(0) {
                out[field_range(at + 8)].copy_from_slice(&section_checksum(new).to_le_bytes());
            }
        }
        Ok(out)
    }
}

fn truncated_header_error() -> Diagnostic {
    malformed_at("the COFF header is cut off", 0)
}

fn truncated_relocation_error(at: u64) -> Diagnostic {
    malformed_at("a relocation is cut off", at)
}

fn oversized_object_error() -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, "the object would be larger than COFF's 4 GiB")
}

/// The checksum of sections: CRC-32 whose register begins with zeros and is not inverted at the end.
///
/// CRCs are linear: the contribution of the usual initial value is the CRC of as many zeros.
fn section_checksum(content: &[u8]) -> u32 {
    let (mut crc, mut zeros) = (flate2::Crc::new(), flate2::Crc::new());
    for part in content.chunks(4096) {
        crc.update(part);
        zeros.update(&[0; 4096][..part.len()]);
    }
    crc.sum() ^ zeros.sum()
}

/// The bytes of a `u32` field at that offset.
fn field_range(at: u64) -> Range<usize> {
    at as usize..at as usize + 4
}

/// Returns `None` where the header of that section leaves the file.
fn read_section(bytes: &[u8], number: u64) -> Option<CoffSection> {
    let header = HEADER + number * SECTION;
    let [size, offset, relocations] = [16, 20, 24].map(|field| u32_at(bytes, header + field).map(u64::from));
    let flags = u32_at(bytes, header + 36)?;
    let relocation_count = u64::from(u16_at(bytes, header + 32)?);
    let is_zeros = flags & UNINITIALIZED != 0;
    let is_full = flags & MANY_RELOCATIONS != 0 && relocation_count == 0xffff;
    let relocation_count = if is_full { u64::from(u32_at(bytes, relocations?)?) } else { relocation_count };
    Some(CoffSection { header, is_zeros, offset: offset?, size: size?, relocations: relocations?, relocation_count })
}

#[cfg(test)]
mod tests {
    use super::section_checksum;

    /// LLVM's checksums of these contents (`JamCRC(0)` in its COFF writer).
    #[test]
    fn the_checksum_begins_with_zeros() {
        let bitwise = |content: &[u8]| {
            content.iter().fold(0u32, |crc, byte| {
                let mut crc = crc ^ u32::from(*byte);
                (0..8).for_each(|_| crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 });
                crc
            })
        };
        for content in [&b""[..], b"a", &[7; 5000]] {
            assert_eq!(section_checksum(content), bitwise(content));
        }
    }
}
