//! Line tables.
//!
//! A row's opcodes are unchanged if its distance from the previous row is unchanged. Otherwise the advance is encoded
//! again as LLVM does it, which gives the bytes that its assembler writes for the longer code.

use super::DebugTargets;
use super::cursor::{Cursor, close_unit, write_sleb, write_uleb};
use crate::fix::{ReplacedContent, SectionOffset};
use hotswap_report::Diagnostic;

/// The numbers of a header that opcodes depend on.
struct LineHeader {
    step: u64,
    line_base: i64,
    line_range: u64,
    opcode_base: u8,
    /// Operands of the standard opcodes.
    operands: Vec<u8>,
}

/// A row that is being collected.
#[derive(Default)]
struct LineRow {
    /// Opcodes without an advance.
    kept: Vec<u8>,
    /// The advance of the address, in steps of the program.
    advance: u64,
    /// In bytes, of the opcode that does not count in steps.
    fixed: u64,
    line: i64,
}

pub(super) fn rewrite_lines(source: &DebugTargets<'_>, section: usize) -> Result<ReplacedContent, Diagnostic> {
    let mut cursor = Cursor::new(&source.image.sections[section]);
    let mut new = ReplacedContent::default();
    let whole = cursor.end;
    while cursor.at < whole {
        let (start, at) = (new.bytes.len(), cursor.at);
        let end = cursor.read_unit_length()?;
        cursor.end = end;
        let header = read_header(&mut cursor)?;
        new.chunks.push(at as u64, start as u64);
        new.bytes.extend_from_slice(&cursor.data[at..cursor.at]);
        LineProgram { source, section, header, new: &mut new, cursor: &mut cursor }.rewrite_program()?;
        close_unit(&mut new.bytes, start);
        cursor.end = whole;
    }
    Ok(new)
}

fn read_header(cursor: &mut Cursor<'_>) -> Result<LineHeader, Diagnostic> {
    let version = cursor.read_number(2)?;
    if !(2..=5).contains(&version) {
        return Err(cursor.refuse_here("has a line table of a version that is not known"));
    }
    if version == 5 && cursor.read_bytes(2)? != [8, 0] {
        return Err(cursor.refuse_here("has addresses that are not 8 bytes, or segments"));
    }
    let length = usize::try_from(cursor.read_offset()?).unwrap_or(usize::MAX);
    let program = cursor.at.checked_add(length).filter(|program| *program <= cursor.end);
    let program = program.ok_or_else(|| cursor.refuse_here("has a header that leaves its unit"))?;
    let step = cursor.read_number(1)?;
    let parallel = if version >= 4 { cursor.read_number(1)? } else { 1 };
    let _is_statement = cursor.read_number(1)?;
    let line_base = i64::from(cursor.read_number(1)? as u8 as i8);
    let line_range = cursor.read_number(1)?;
    let opcode_base = cursor.read_number(1)? as u8;
    if step == 0 || line_range == 0 || opcode_base == 0 || parallel > 1 {
        return Err(cursor.refuse_here("has a header with impossible numbers"));
    }
    let operands = cursor.read_bytes(usize::from(opcode_base) - 1)?.to_vec();
    if cursor.at > program {
        return Err(cursor.refuse_here("has a header that leaves its unit"));
    }
    cursor.at = program;
    Ok(LineHeader { step, line_base, line_range, opcode_base, operands })
}

struct LineProgram<'p, 'c> {
    source: &'p DebugTargets<'p>,
    section: usize,
    header: LineHeader,
    new: &'p mut ReplacedContent,
    cursor: &'p mut Cursor<'c>,
}

impl LineProgram<'_, '_> {
    fn rewrite_program(&mut self) -> Result<(), Diagnostic> {
        let mut place: Option<SectionOffset> = None;
        while !self.cursor.is_done() {
            let start = self.cursor.at;
            let mut row = LineRow::default();
            match self.read_row(&mut row, &mut place)? {
                Some(ends) => place = self.write_row(start, row, place, ends)?,
                // Opcodes after the last row, or the address of a sequence: they are kept.
                None => {
                    self.new.chunks.push(start as u64, self.new.bytes.len() as u64);
                    self.new.bytes.extend_from_slice(&self.cursor.data[start..self.cursor.at]);
                }
            }
        }
        Ok(())
    }

    /// Reads up to the opcode that makes a row. Returns whether that ends the sequence; `None` where
    /// an address was set.
    fn read_row(&mut self, row: &mut LineRow, place: &mut Option<SectionOffset>) -> Result<Option<bool>, Diagnostic> {
        while !self.cursor.is_done() {
            let start = self.cursor.at;
            let opcode = self.cursor.read_number(1)? as u8;
            if opcode >= self.header.opcode_base {
                let adjusted = u64::from(opcode - self.header.opcode_base);
                row.advance += adjusted / self.header.line_range;
                row.line += self.header.line_base + (adjusted % self.header.line_range) as i64;
                return Ok(Some(false));
            }
            match opcode {
                0 => {
                    if let Some(result) = self.read_extended(start, row, place)? {
                        return Ok(result);
                    }
                    continue;
                }
                1 => return Ok(Some(false)),
                2 => row.advance = row.advance.wrapping_add(self.cursor.read_uleb128()?),
                3 => row.line = row.line.wrapping_add(self.cursor.read_sleb128()?),
                8 => row.advance += u64::from(255 - self.header.opcode_base) / self.header.line_range,
                9 => row.fixed += self.cursor.read_number(2)?,
                _ => {
                    for _ in 0..self.header.operands[usize::from(opcode) - 1] {
                        self.cursor.read_uleb128()?;
                    }
                    row.kept.extend_from_slice(&self.cursor.data[start..self.cursor.at]);
                }
            }
        }
        Ok(None)
    }

    /// An extended opcode: an end, an address, or another one, which is kept.
    #[allow(clippy::option_option, reason = "whether reading stops, and what it gave")]
    fn read_extended(
        &mut self,
        start: usize,
        row: &mut LineRow,
        place: &mut Option<SectionOffset>,
    ) -> Result<Option<Option<bool>>, Diagnostic> {
        let size = self.cursor.read_uleb128()? as usize;
        let operands = self.cursor.at;
        let bytes = self.cursor.read_bytes(size)?;
        match bytes.first() {
            Some(1) => Ok(Some(Some(true))),
            Some(2) if size == 9 => {
                if row.advance != 0 || row.fixed != 0 || row.line != 0 {
                    return Err(self.cursor.refuse_here("sets an address in the middle of a row"));
                }
                let stated = bytes[1..].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
                *place = self.source.record_address(self.section, operands as u64 + 1, stated);
                Ok(Some(None))
            }
            Some(2) => Err(self.cursor.refuse_here("sets an address that has not 8 bytes")),
            _ => {
                row.kept.extend_from_slice(&self.cursor.data[start..self.cursor.at]);
                Ok(None)
            }
        }
    }

    /// Writes a row; returns the place that it describes.
    fn write_row(
        &mut self,
        start: usize,
        row: LineRow,
        place: Option<SectionOffset>,
        ends: bool,
    ) -> Result<Option<SectionOffset>, Diagnostic> {
        let advance = row.advance.wrapping_mul(self.header.step).wrapping_add(row.fixed);
        let next =
            place.filter(|_| !ends).map(|place| SectionOffset { offset: place.offset.wrapping_add(advance), ..place });
        let moved = match place {
            Some(place) if ends => self.source.new_size(place, advance),
            Some(place) => self.source.new_distance(place, advance),
            None => Some(advance),
        };
        let moved = moved.ok_or_else(|| self.cursor.refuse_here("has a row where no instruction is any more"))?;
        self.new.chunks.push(start as u64, self.new.bytes.len() as u64);
        if moved == advance {
            self.new.bytes.extend_from_slice(&self.cursor.data[start..self.cursor.at]);
            return Ok(next);
        }
        if moved % self.header.step != 0 {
            return Err(self.cursor.refuse_here("has a row between two instructions"));
        }
        self.new.bytes.extend_from_slice(&row.kept);
        self.encode_row(moved / self.header.step, row.line, ends);
        Ok(next)
    }

    /// Writes the shortest opcodes with that advance, in LLVM's order of preference.
    fn encode_row(&mut self, advance: u64, line: i64, ends: bool) {
        let header = &self.header;
        let most = u64::from(255 - header.opcode_base) / header.line_range;
        let out = &mut self.new.bytes;
        if ends {
            match advance {
                _ if advance == most => out.push(8),
                0 => {}
                _ => {
                    out.push(2);
                    write_uleb(out, advance);
                }
            }
            return out.extend([0, 1, 1]);
        }
        let (mut line, mut copy) = (line, false);
        if !(0..header.line_range as i64).contains(&first_line_advance(line, header))
            || first_line_advance(line, header) + i64::from(header.opcode_base) > 255
        {
            out.push(3);
            write_sleb(out, line);
            (line, copy) = (0, true);
        }
        if line == 0 && advance == 0 {
            return out.push(1);
        }
        let opcode = first_line_advance(line, header) as u64 + u64::from(header.opcode_base);
        if advance < 256 + most {
            let direct = opcode + advance * header.line_range;
            if direct <= 255 {
                return out.push(direct as u8);
            }
            let behind = opcode.wrapping_add(advance.wrapping_sub(most).wrapping_mul(header.line_range));
            if behind <= 255 {
                return out.extend([8, behind as u8]);
            }
        }
        out.push(2);
        write_uleb(out, advance);
        out.push(if copy { 1 } else { opcode as u8 });
    }
}

fn first_line_advance(line: i64, header: &LineHeader) -> i64 {
    line - header.line_base
}
