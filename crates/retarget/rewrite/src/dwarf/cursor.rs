//! Reads and writes the numbers of DWARF.

use crate::refuse_layout;
use hotswap_code_object::image::SectionPart;
use hotswap_report::Diagnostic;

/// Reads a section from front to back.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) at: usize,
    /// The offset at which reading stops.
    pub(crate) end: usize,
    /// Bytes of an offset into a section, in the current unit: 8 in 64-bit DWARF.
    pub(crate) width: usize,
    name: &'a str,
    file: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(section: &SectionPart<'a>) -> Self {
        let (data, file) = (section.bytes, section.offset);
        Self { data, at: 0, end: data.len(), width: 4, name: section.name, file }
    }

    /// A refusal at the current position.
    pub(crate) fn refuse_here(&self, what: &str) -> Diagnostic {
        refuse_layout(self.file + self.at as u64, format!("`{}` {what}", self.name))
            .advise("link without debug information (-Wl,--strip-debug), or report it with the file")
    }

    pub(crate) fn is_done(&self) -> bool {
        self.at >= self.end
    }

    pub(crate) fn read_bytes(&mut self, size: usize) -> Result<&'a [u8], Diagnostic> {
        let end = self.at.checked_add(size).filter(|end| *end <= self.end);
        let end = end.ok_or_else(|| self.refuse_here("is cut off"))?;
        let bytes = &self.data[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    pub(crate) fn read_number(&mut self, size: usize) -> Result<u64, Diagnostic> {
        Ok(self.read_bytes(size)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub(crate) fn read_uleb128(&mut self) -> Result<u64, Diagnostic> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.read_bytes(1)?[0];
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
    }

    pub(crate) fn read_sleb128(&mut self) -> Result<i64, Diagnostic> {
        let (mut value, mut shift) = (0_i64, 0);
        loop {
            let byte = self.read_bytes(1)?[0];
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                let sign = shift < 64 && byte & 0x40 != 0;
                return Ok(if sign { value | -1 << shift } else { value });
            }
        }
    }

    /// Skips a string with its NUL.
    pub(crate) fn skip_string(&mut self) -> Result<&'a [u8], Diagnostic> {
        let rest = &self.data[self.at..self.end];
        let size = rest.iter().position(|byte| *byte == 0).ok_or_else(|| self.refuse_here("is cut off"))?;
        self.read_bytes(size + 1)
    }

    /// Reads the length of a unit and returns its end. Sets the width of offsets in it.
    pub(crate) fn read_unit_length(&mut self) -> Result<usize, Diagnostic> {
        let (mut length, mut width) = (self.read_number(4)?, 4);
        if length == WIDE {
            (length, width) = (self.read_number(8)?, 8);
        }
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        let is_reserved = width == 4 && length >= 0xffff_fff0;
        let end = end.filter(|end| *end <= self.end && !is_reserved);
        self.width = width;
        end.ok_or_else(|| self.refuse_here("has a unit that leaves it"))
    }

    /// An offset into a section.
    pub(crate) fn read_offset(&mut self) -> Result<u64, Diagnostic> {
        self.read_number(self.width)
    }

    /// Bytes of the length of the current unit.
    pub(crate) fn length_size(&self) -> usize {
        if self.width == 8 { 12 } else { 4 }
    }
}

/// The prefix of the length of a unit of 64-bit DWARF.
const WIDE: u64 = 0xffff_ffff;

pub(crate) fn write_uleb(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

pub(crate) fn write_sleb(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 && byte & 0x40 == 0 || value == -1 && byte & 0x40 != 0 {
            return out.push(byte);
        }
        out.push(byte | 0x80);
    }
}

/// Sets the length of a unit that began at `start`.
pub(crate) fn close_unit(out: &mut [u8], start: usize) {
    let is_wide = out[start..start + 4] == (WIDE as u32).to_le_bytes();
    let (at, size) = if is_wide { (start + 4, 8) } else { (start, 4) };
    let length = (out.len() - at - size) as u64;
    out[at..at + size].copy_from_slice(&length.to_le_bytes()[..size]);
}
