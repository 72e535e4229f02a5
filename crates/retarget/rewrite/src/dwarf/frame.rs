//! Call frames: `.eh_frame` and `.debug_frame`.

use super::cursor::Cursor;
use super::{DebugTargets, DwarfDistance};
use crate::fix::{ReplacedContent, SectionOffset};
use hotswap_code_object::ObjectKind;
use hotswap_report::Diagnostic;
use std::collections::HashMap;

/// Operands of an instruction of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameOperand {
    Uleb,
    Sleb,
    /// A size, and that many bytes.
    Block,
}

use FrameOperand::{Block, Sleb, Uleb};

/// Instructions that do not advance: opcode and operands. Those from 0x30 on are LLVM's for AMD GPUs.
const KEPT: &[(u8, &[FrameOperand])] = &[
    (0x00, &[]),
    (0x05, &[Uleb, Uleb]),
    (0x06, &[Uleb]),
    (0x07, &[Uleb]),
    (0x08, &[Uleb]),
    (0x09, &[Uleb, Uleb]),
    (0x0a, &[]),
    (0x0b, &[]),
    (0x0c, &[Uleb, Uleb]),
    (0x0d, &[Uleb]),
    (0x0e, &[Uleb]),
    (0x0f, &[Block]),
    (0x10, &[Uleb, Block]),
    (0x11, &[Uleb, Sleb]),
    (0x12, &[Uleb, Sleb]),
    (0x13, &[Sleb]),
    (0x14, &[Uleb, Uleb]),
    (0x15, &[Uleb, Sleb]),
    (0x16, &[Uleb, Block]),
    (0x2e, &[Uleb]),
    (0x2f, &[Uleb, Uleb]),
    (0x30, &[Uleb, Uleb, Uleb]),
    (0x31, &[Uleb, Sleb, Uleb]),
];

/// The address format of the entries of a common part.
#[derive(Debug, Clone, Copy)]
struct FrameEncoding {
    /// Bytes of an address.
    address: usize,
    is_relative: bool,
    /// The unit of advances.
    step: u64,
    has_data: bool,
}

struct FrameRewriter<'f, 'c> {
    source: &'f DebugTargets<'f>,
    section: usize,
    is_eh: bool,
    cursor: Cursor<'c>,
    new: ReplacedContent,
    common: HashMap<usize, FrameEncoding>,
    distances: &'f mut Vec<DwarfDistance>,
}

pub(super) fn rewrite_frames(
    source: &DebugTargets<'_>,
    section: usize,
    distances: &mut Vec<DwarfDistance>,
) -> Result<ReplacedContent, Diagnostic> {
    let part = &source.image.sections[section];
    let (cursor, new) = (Cursor::new(part), ReplacedContent::default());
    let is_eh = part.name == ".eh_frame";
    let mut frames = FrameRewriter { source, section, is_eh, cursor, new, common: HashMap::new(), distances };
    let whole = frames.cursor.end;
    // Entries are padded to 4 bytes, and the last of a section to 8; other producers pad all of them.
    let unit = frames.entry_alignment()?;
    while frames.cursor.at < whole {
        frames.rewrite_entry(unit)?;
        frames.cursor.end = whole;
    }
    Ok(frames.new)
}

impl FrameRewriter<'_, '_> {
    /// The alignment of all entries.
    fn entry_alignment(&self) -> Result<usize, Diagnostic> {
        let mut cursor = self.cursor.clone();
        let mut unit = 8;
        while !cursor.is_done() {
            let start = cursor.at;
            let end = cursor.read_unit_length()?;
            cursor.at = end;
            if !(end - start).is_multiple_of(8) && end - start > 4 {
                unit = 4;
            }
        }
        Ok(unit)
    }

    fn keep_bytes(&mut self, from: usize) {
        self.new.chunks.push(from as u64, self.new.bytes.len() as u64);
        let bytes = &self.cursor.data[from..self.cursor.at];
        self.new.bytes.extend_from_slice(bytes);
    }

    fn rewrite_entry(&mut self, unit: usize) -> Result<(), Diagnostic> {
        let start = self.cursor.at;
        let end = self.cursor.read_unit_length()?;
        self.cursor.end = end;
        // The end mark of a linker.
        if end == self.cursor.at {
            self.keep_bytes(start);
            return Ok(());
        }
        let field = self.cursor.at;
        if self.is_eh && self.cursor.width != 4 {
            return Err(self
                .cursor
                .refuse_here("has an entry of 64-bit DWARF, which call frames of loaded code have not"));
        }
        let stated = self.cursor.read_offset()?;
        let stated =
            if self.is_eh { stated } else { self.source.section_reference(self.section, field as u64, stated) };
        let is_common = stated == if self.is_eh { 0 } else { u64::MAX >> (64 - 8 * self.cursor.width) };
        if is_common && !self.source.is_relocated(self.section, field as u64) {
            let common = self.read_common()?;
            self.common.insert(start, common);
            self.cursor.at = end;
            self.keep_bytes(start);
            return Ok(());
        }
        let owner = if self.is_eh { (field as u64).checked_sub(stated) } else { Some(stated) };
        let common = owner.and_then(|owner| Some((owner, *self.common.get(&usize::try_from(owner).ok()?)?)));
        let (owner, common) =
            common.ok_or_else(|| self.cursor.refuse_here("has an entry whose common part is not before it"))?;
        self.rewrite_fde(start, field, owner, common, unit)
    }

    fn read_common(&mut self) -> Result<FrameEncoding, Diagnostic> {
        let version = self.cursor.read_number(1)?;
        let augmentation = self.cursor.skip_string()?;
        let augmentation = &augmentation[..augmentation.len() - 1];
        if !(1..=4).contains(&version) || version == 2 || !matches!(augmentation.first(), None | Some(b'z' | b'[')) {
            return Err(self.cursor.refuse_here("has a common part of a form that is not known"));
        }
        let mut common = FrameEncoding { address: 8, is_relative: false, step: 1, has_data: false };
        if version == 4 && self.cursor.read_bytes(2)? != [8, 0] {
            return Err(self.cursor.refuse_here("has addresses that are not 8 bytes"));
        }
        common.step = self.cursor.read_uleb128()?;
        self.cursor.read_sleb128()?;
        if version == 1 {
            self.cursor.read_number(1)?
        } else {
            self.cursor.read_uleb128()?
        };
        if augmentation.first() == Some(&b'z') {
            self.cursor.read_uleb128()?;
            common.has_data = true;
            for letter in &augmentation[1..] {
                match letter {
                    b'R' => self.read_encoding(&mut common)?,
                    b'S' | b'B' => {}
                    _ => return Err(self.cursor.refuse_here("has a common part of a form that is not known")),
                }
            }
        }
        if common.step == 0 {
            return Err(self.cursor.refuse_here("advances by steps of nothing"));
        }
        Ok(common)
    }

    /// Reads how addresses are encoded, a `DW_EH_PE_…` constant.
    fn read_encoding(&mut self, common: &mut FrameEncoding) -> Result<(), Diagnostic> {
        let encoding = self.cursor.read_number(1)?;
        common.is_relative = encoding & 0x70 == 0x10;
        common.address = match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => 8,
            0x03 | 0x0b => 4,
            _ => 0,
        };
        if common.address == 0 || !matches!(encoding & 0xf0, 0 | 0x10) {
            return Err(self.cursor.refuse_here("has addresses in a form that is not known"));
        }
        Ok(())
    }

    fn rewrite_fde(
        &mut self,
        start: usize,
        field: usize,
        owner: u64,
        common: FrameEncoding,
        unit: usize,
    ) -> Result<(), Diagnostic> {
        let at = self.cursor.at;
        let stated = self.cursor.read_number(common.address)?;
        let place = self.initial_location(at, stated, common);
        let numbers = self.cursor.at;
        let size = self.cursor.read_number(common.address)?;
        let behind = self.cursor.at;
        if common.has_data {
            let size = self.cursor.read_uleb128()? as usize;
            self.cursor.read_bytes(size)?;
        }
        let moved = place.map_or(Some(size), |place| self.source.new_size(place, size));
        let moved = moved
            .ok_or_else(|| self.cursor.refuse_here("has a function that ends where no instruction is any more"))?;
        let new_start = self.new.bytes.len();
        self.keep_bytes(start);
        let [new_numbers, new_behind, new_field, new_at] =
            [numbers, behind, field, at].map(|old| new_start + (old - start));
        self.new.bytes[new_numbers..new_behind].copy_from_slice(&moved.to_le_bytes()[..common.address]);
        let distance = if self.is_eh {
            new_field as u64 - self.new.chunks.new_offset(owner)
        } else {
            self.new.chunks.new_offset(owner)
        };
        if self.is_eh || !self.source.is_relocated(self.section, field as u64) {
            let width = self.cursor.width;
            self.new.bytes[new_field..new_field + width].copy_from_slice(&distance.to_le_bytes()[..width]);
        }
        if let Some(target) = place.filter(|_| common.is_relative && !self.source.is_relocated(self.section, at as u64))
        {
            self.distances.push(DwarfDistance { section: self.section, offset: new_at as u64, target });
        }
        let content = self.rewrite_instructions(place, common)?;
        self.pad_entry(new_start, start, content, unit);
        Ok(())
    }

    fn initial_location(&self, at: usize, stated: u64, common: FrameEncoding) -> Option<SectionOffset> {
        let value = match (common.is_relative, common.address) {
            (true, 4) => {
                let base = self.source.image.sections[self.section].address + at as u64;
                base.wrapping_add_signed(i64::from(stated as u32 as i32))
            }
            (true, _) => (self.source.image.sections[self.section].address + at as u64).wrapping_add(stated),
            _ => stated,
        };
        let is_known =
            self.source.image.kind == ObjectKind::Linked || self.source.is_relocated(self.section, at as u64);
        let place = self.source.referenced_place(self.section, at as u64, value).filter(|_| is_known)?;
        if !common.is_relative && common.address == 8 {
            self.source.record_field(self.section, at as u64, 8, place, false);
        }
        Some(place)
    }

    /// Writes the instructions of an entry; returns the start of its padding, in the new bytes and in the old ones.
    fn rewrite_instructions(
        &mut self,
        place: Option<SectionOffset>,
        common: FrameEncoding,
    ) -> Result<(usize, usize), Diagnostic> {
        let mut place = place;
        let mut content = (self.new.bytes.len(), self.cursor.at);
        while !self.cursor.is_done() {
            let start = self.cursor.at;
            let Some(advance) = self.skip_instruction()? else {
                self.keep_bytes(start);
                if self.cursor.data[start] != 0 {
                    content = (self.new.bytes.len(), self.cursor.at);
                }
                continue;
            };
            let advance = advance.wrapping_mul(common.step);
            let moved = place.map_or(Some(advance), |place| self.source.new_distance(place, advance));
            let moved = moved.ok_or_else(|| self.cursor.refuse_here("has a row where no instruction is any more"))?;
            place = place.map(|place| SectionOffset { offset: place.offset.wrapping_add(advance), ..place });
            if moved % common.step != 0 && moved != advance {
                return Err(self.cursor.refuse_here("has a row between two instructions"));
            }
            if moved == advance {
                self.keep_bytes(start);
            } else {
                self.new.chunks.push(start as u64, self.new.bytes.len() as u64);
                self.write_advance(moved / common.step);
            }
            content = (self.new.bytes.len(), self.cursor.at);
        }
        Ok(content)
    }

    /// Skips an instruction. Returns its advance, if it has one.
    fn skip_instruction(&mut self) -> Result<Option<u64>, Diagnostic> {
        let opcode = self.cursor.read_number(1)? as u8;
        match opcode {
            0x40..=0x7f => return Ok(Some(u64::from(opcode & 0x3f))),
            0x80..=0xbf => {
                self.cursor.read_uleb128()?;
                return Ok(None);
            }
            0xc0..=0xff => return Ok(None),
            0x02 => return self.cursor.read_number(1).map(Some),
            0x03 => return self.cursor.read_number(2).map(Some),
            0x04 => return self.cursor.read_number(4).map(Some),
            _ => {}
        }
        let row = KEPT.iter().find(|(known, _)| *known == opcode);
        let (_, operands) = row.ok_or_else(|| self.cursor.refuse_here("has an instruction that is not known"))?;
        for operand in *operands {
            match operand {
                Uleb => {
                    self.cursor.read_uleb128()?;
                }
                Sleb => {
                    self.cursor.read_sleb128()?;
                }
                Block => {
                    let size = self.cursor.read_uleb128()? as usize;
                    self.cursor.read_bytes(size)?;
                }
            }
        }
        Ok(None)
    }

    fn write_advance(&mut self, steps: u64) {
        let out = &mut self.new.bytes;
        let bytes = steps.to_le_bytes();
        match steps {
            0 => {}
            1..=0x3f => out.push(0x40 | steps as u8),
            0x40..=0xff => out.extend([2, bytes[0]]),
            0x100..=0xffff => out.extend([3, bytes[0], bytes[1]]),
            _ => {
                out.push(4);
                out.extend(&bytes[..4]);
            }
        }
    }

    /// Ends an entry. `content` is the start of its padding, in the new bytes and in the old ones.
    fn pad_entry(&mut self, start: usize, old_start: usize, content: (usize, usize), unit: usize) {
        let data = self.cursor.data;
        let out = &mut self.new.bytes;
        // The last entry of a section ends at a multiple of 8, whatever the alignment of the others.
        let rest = &data[self.cursor.at..];
        let is_last = rest.len() <= 4 && rest.iter().all(|byte| *byte == 0) && self.cursor.at.is_multiple_of(8);
        if content.0 - start != content.1 - old_start || is_last && start % 8 != old_start % 8 {
            out.truncate(content.0);
            let end = if is_last {
                out.len().next_multiple_of(8)
            } else {
                start + (out.len() - start).next_multiple_of(unit)
            };
            out.resize(end, 0);
        }
        super::cursor::close_unit(out, start);
    }
}
