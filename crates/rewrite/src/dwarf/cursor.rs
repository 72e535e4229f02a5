//! Reading and writing of the numbers of DWARF.

use crate::refuse;
use hotswap_code_object::image::Part;
use hotswap_report::Diagnostic;

/// Reads a section from front to back.
#[derive(Clone)]
pub(crate) struct Cursor<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) at: usize,
    /// Nothing is read from here on.
    pub(crate) end: usize,
    name: &'a str,
    file: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(section: &Part<'a>) -> Self {
        let (data, file) = (section.bytes, section.offset);
        Self { data, at: 0, end: data.len(), name: section.name, file }
    }

    /// A refusal at the place that is read next.
    pub(crate) fn refuse(&self, what: &str) -> Diagnostic {
        refuse(self.file + self.at as u64, format!("`{}` {what}", self.name))
            .advise("link without debug information (-Wl,--strip-debug), or report it with the file")
    }

    pub(crate) fn is_done(&self) -> bool {
        self.at >= self.end
    }

    pub(crate) fn bytes(&mut self, size: usize) -> Result<&'a [u8], Diagnostic> {
        let end = self.at.checked_add(size).filter(|end| *end <= self.end);
        let end = end.ok_or_else(|| self.refuse("is cut off"))?;
        let bytes = &self.data[self.at..end];
        self.at = end;
        Ok(bytes)
    }

    pub(crate) fn number(&mut self, size: usize) -> Result<u64, Diagnostic> {
        Ok(self.bytes(size)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub(crate) fn uleb(&mut self) -> Result<u64, Diagnostic> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.bytes(1)?[0];
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
    }

    pub(crate) fn sleb(&mut self) -> Result<i64, Diagnostic> {
        let (mut value, mut shift) = (0_i64, 0);
        loop {
            let byte = self.bytes(1)?[0];
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

    /// Passes over a text with its NUL.
    pub(crate) fn text(&mut self) -> Result<&'a [u8], Diagnostic> {
        let rest = &self.data[self.at..self.end];
        let size = rest.iter().position(|byte| *byte == 0).ok_or_else(|| self.refuse("is cut off"))?;
        self.bytes(size + 1)
    }

    /// The length of a unit: where it ends. Units of 64-bit DWARF, which nobody writes for these targets, are refused.
    pub(crate) fn unit(&mut self) -> Result<usize, Diagnostic> {
        let length = self.number(4)?;
        let end = self.at + length as usize;
        if length >= 0xffff_fff0 || end > self.end {
            return Err(self.refuse("has a unit that leaves it, or is of 64-bit DWARF"));
        }
        Ok(end)
    }
}

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
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}
