//! Compact relocations: a count, and for each record its differences from the previous one, as numbers of any length.
//!
//! Layout: ULEB128 of `count * 8 + 4 (there are addends) + shift`; then for each record a byte or more with flags (1:
//! other symbol, 2: other type, 4: other addend) below the distance to the previous place, shifted; then SLEB128 of the
//! differences.

use super::{Rela, relocation_kind};
use crate::image::SectionPart;
use crate::malformed;
use hotswap_report::Diagnostic;
use object::read::elf::CrelIterator;

/// Header flag: there are addends.
const ADDENDS: u64 = 4;
/// Flags of a record.
const SYMBOL: u64 = 1;
const TYPE: u64 = 2;
const ADDEND: u64 = 4;

/// Reads the records of a section.
pub(super) fn read_crel(section: &SectionPart<'_>) -> Result<Vec<Rela>, Diagnostic> {
    let at = section.offset as usize;
    let rows = CrelIterator::new(section.bytes).map_err(|error| damaged_section(section, error))?;
    if !rows.is_rela() {
        let what =
            format!("`{}` holds relocations without addends, which no tool makes for code of GPUs", section.name);
        return Err(crate::unsupported_format(at, what));
    }
    let mut found = Vec::new();
    for row in rows {
        let row = row.map_err(|error| damaged_section(section, error))?;
        let kind = relocation_kind(row.r_type, at)?;
        found.push(Rela { place: row.r_offset, kind, symbol: row.r_sym, addend: row.r_addend });
    }
    Ok(found)
}

fn damaged_section(section: &SectionPart<'_>, error: object::read::Error) -> Diagnostic {
    malformed(section.offset as usize, format!("`{}` cannot be read: {error}", section.name))
}

/// The low bits that are zero in all places, at most 3: assemblers omit them.
pub fn common_shift(rows: &[Rela]) -> u32 {
    rows.iter().fold(8, |mask, row| mask | row.place).trailing_zeros()
}

/// The bits that a section omits, according to its header.
pub fn shift_of(bytes: &[u8]) -> u32 {
    bytes.first().map_or(0, |first| u32::from(first & 3))
}

/// Writes records, in the encoding of LLVM.
pub fn write_crel(rows: &[Rela], shift: u32) -> Vec<u8> {
    let mut out = Vec::new();
    write_uleb128(&mut out, (rows.len() as u64) << 3 | ADDENDS | u64::from(shift));
    let (mut place, mut symbol, mut number, mut addend) = (0_u64, 0_u32, 0_u32, 0_i64);
    for row in rows {
        let distance = row.place.wrapping_sub(place) >> shift;
        let flags = crel_flag_bits(row.symbol != symbol, SYMBOL)
            | crel_flag_bits(row.kind.number != number, TYPE)
            | crel_flag_bits(row.addend != addend, ADDEND);
        let low = (distance << 3 | flags) as u8 & 0x7f;
        match distance >> 4 {
            0 => out.push(low),
            rest => {
                out.push(low | 0x80);
                write_uleb128(&mut out, rest);
            }
        }
        if flags & SYMBOL != 0 {
            write_sleb128(&mut out, i64::from(row.symbol.wrapping_sub(symbol) as i32));
        }
        if flags & TYPE != 0 {
            write_sleb128(&mut out, i64::from(row.kind.number.wrapping_sub(number) as i32));
        }
        if flags & ADDEND != 0 {
            write_sleb128(&mut out, row.addend.wrapping_sub(addend));
        }
        (place, symbol, number, addend) = (row.place, row.symbol, row.kind.number, row.addend);
    }
    out
}

fn crel_flag_bits(differs: bool, flag: u64) -> u64 {
    if differs { flag } else { 0 }
}

fn write_uleb128(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write_sleb128(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let (byte, rest) = (value as u8 & 0x7f, value >> 7);
        if rest == 0 && byte & 0x40 == 0 || rest == -1 && byte & 0x40 != 0 {
            return out.push(byte);
        }
        out.push(byte | 0x80);
        value = rest;
    }
}
