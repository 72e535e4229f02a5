//! Call frames and line tables have the same contents for each instruction, at its new position.
//!
//! Absent on purpose: the rest of the debug information (scopes, locations of variables); `docs/evidence/verification.md` lists
//! it.

use super::map::AddressMap;
use crate::finding::{FILE, LintFinding};
use crate::unit::LintUnit;
use hotswap_code_object::ObjectKind;
use hotswap_code_object::SourceLines;
use hotswap_code_object::image::ObjectImage;
use std::collections::BTreeMap;

/// An instruction of a frame: the address from which on it applies, and its bytes; for a whole function its end.
type FrameRow = (u64, u64, String);

pub(super) fn compare_frames(
    (old_data, old): (&[u8], &ObjectImage<'_>),
    (new_data, new): (&[u8], &ObjectImage<'_>),
    (units, maps): (&[LintUnit<'_>], &BTreeMap<usize, AddressMap>),
    findings: &mut Vec<LintFinding>,
) {
    let (before, after) = (SourceLines::read(old_data), SourceLines::read(new_data));
    for unit in units {
        if let Some(at) = first_different_line(&before, &after, unit, &maps[&unit.number]) {
            let what = "the line table says another line of the instruction";
            findings.push(LintFinding::at_offset(&FILE, unit, at, what));
        }
    }
    // Addresses in relocatable files are filled in by a linker.
    if old.kind == ObjectKind::Relocatable {
        return;
    }
    for name in [".eh_frame", ".debug_frame"] {
        let rows =
            |image: &ObjectImage<'_>| image.find(name).map(|number| frame_rows(image, number, name == ".eh_frame"));
        let result = match (rows(old), rows(new)) {
            (None, None) => Ok(()),
            (Some(Some(before)), Some(Some(after))) => compare_rows(&before, &after, (old, new), maps),
            _ => Err(format!("`{name}` cannot be read")),
        };
        findings.extend(result.err().map(|what| LintFinding::of_file(&FILE, format!("call frames: {what}"))));
    }
}

/// The first instruction for which the line tables disagree.
fn first_different_line(old: &SourceLines, new: &SourceLines, unit: &LintUnit<'_>, map: &AddressMap) -> Option<u32> {
    let mut first = None;
    for number in 0..unit.program.functions.len() {
        unit.each_instruction(number, |_, at, _, _| {
            let before = old.line_at(unit.number, u64::from(at));
            let now = map.new_start(at).filter(|_| first.is_none() && before.is_some());
            if now.is_some_and(|now| new.line_at(unit.number, u64::from(now)) != before) {
                first = Some(at);
            }
        });
    }
    first
}

/// The rows of all entries of a section: each instruction of a frame that does not advance begins one.
fn frame_rows(image: &ObjectImage<'_>, number: usize, is_eh: bool) -> Option<Vec<FrameRow>> {
    let section = &image.sections[number];
    let (bytes, mut at, mut all) = (section.bytes, 0, Vec::new());
    let mut commons: BTreeMap<usize, CommonEntry> = BTreeMap::new();
    while at + 4 <= bytes.len() {
        let size = u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize;
        let body = at + 4;
        // The end of `.eh_frame`; LLVM writes 32 bits.
        if size == 0 {
            break;
        }
        let mut reader = FrameReader { bytes: bytes.get(..body + size)?, at: body };
        let id = reader.read_u32()?;
        let is_common = if is_eh { id == 0 } else { id == u32::MAX };
        if is_common {
            commons.insert(at, CommonEntry::read(&mut reader, is_eh)?);
        } else {
            let of = if is_eh { body.checked_sub(id as usize)? } else { id as usize };
            let common = commons.get(&of)?;
            let place = section.address + reader.at as u64;
            let (start, length) = match common.encoding {
                RELATIVE4 => {
                    (place.wrapping_add_signed(i64::from(reader.read_u32()? as i32)), u64::from(reader.read_u32()?))
                }
                ABSOLUTE => (reader.read_u64()?, reader.read_u64()?),
                _ => return None,
            };
            if common.has_data {
                let size = reader.read_leb128()? as usize;
                reader.take_bytes(size)?;
            }
            read_instructions(&mut reader, common.step, start, start + length, &mut all)?;
        }
        at = body + size;
    }
    Some(all)
}

/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`, and addresses of eight bytes.
const RELATIVE4: u8 = 0x1b;
const ABSOLUTE: u8 = 0;

/// Properties shared by the entries of functions.
struct CommonEntry {
    encoding: u8,
    has_data: bool,
    /// The unit of advances.
    step: u64,
}

impl CommonEntry {
    fn read(reader: &mut FrameReader<'_>, is_eh: bool) -> Option<Self> {
        let version = reader.read_byte()?;
        let mut letters = Vec::new();
        loop {
            match reader.read_byte()? {
                0 => break,
                letter => letters.push(letter),
            }
        }
        // LLVM names its own extension there; it changes none of the fields read here.
        let has_data = letters.first() == Some(&b'z');
        if !is_eh && version >= 4 {
            reader.take_bytes(2)?;
        }
        let step = reader.read_leb128()?;
        reader.read_leb128()?;
        let _return_address = if version == 1 { u64::from(reader.read_byte()?) } else { reader.read_leb128()? };
        let mut encoding = ABSOLUTE;
        if has_data {
            let size = reader.read_leb128()? as usize;
            let data = reader.take_bytes(size)?;
            if letters.contains(&b'R') {
                encoding = *data.first()?;
            }
        }
        Some(Self { encoding, has_data, step })
    }
}

/// The description in the row of an entry as a whole.
const WHOLE: &str = "a function";

/// Reads the instructions of an entry.
fn read_instructions(
    reader: &mut FrameReader<'_>,
    step: u64,
    start: u64,
    end: u64,
    all: &mut Vec<FrameRow>,
) -> Option<()> {
    let mut at = start;
    all.push((start, end, WHOLE.to_owned()));
    while reader.at < reader.bytes.len() {
        let begin = reader.at;
        let op = reader.read_byte()?;
        let advance = match op {
            0x40..0x80 => Some(u64::from(op & 0x3f)),
            0x02 => Some(u64::from(reader.read_byte()?)),
            0x03 => Some(u64::from(reader.read_byte()?) | u64::from(reader.read_byte()?) << 8),
            0x04 => Some(u64::from(reader.read_u32()?)),
            _ => None,
        };
        if let Some(advance) = advance {
            at += advance * step;
            continue;
        }
        let operands: &[u8] = match op {
            0x80.. | 0x06..=0x08 | 0x0d | 0x0e | 0x13 | 0x2e => b"n",
            0x00 => continue,
            0x0a | 0x0b => b"",
            0x05 | 0x09 | 0x0c | 0x11 | 0x12 | 0x14 | 0x15 | 0x2f => b"nn",
            0x0f => b"b",
            0x10 | 0x16 => b"nb",
            // LLVM's for AMD GPUs.
            0x30 | 0x31 => b"nnn",
            _ => return None,
        };
        for operand in operands {
            let value = reader.read_leb128()?;
            if *operand == b'b' {
                reader.take_bytes(value as usize)?;
            }
        }
        all.push((at, at, format!("{:02x?}", &reader.bytes[begin..reader.at])));
    }
    Some(())
}

struct FrameReader<'r> {
    bytes: &'r [u8],
    at: usize,
}

impl<'r> FrameReader<'r> {
    fn take_bytes(&mut self, size: usize) -> Option<&'r [u8]> {
        let taken = self.bytes.get(self.at..self.at.checked_add(size)?)?;
        self.at += size;
        Some(taken)
    }

    fn read_byte(&mut self) -> Option<u8> {
        self.take_bytes(1).map(|bytes| bytes[0])
    }

    fn read_u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take_bytes(4)?.try_into().ok()?))
    }

    fn read_u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take_bytes(8)?.try_into().ok()?))
    }

    /// ULEB128; of SLEB128 the bits, which is enough to skip it.
    fn read_leb128(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = self.read_byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            shift += 7;
            if byte < 0x80 {
                return Some(value);
            }
        }
    }
}

fn compare_rows(
    before: &[FrameRow],
    after: &[FrameRow],
    (old, new): (&ObjectImage<'_>, &ObjectImage<'_>),
    maps: &BTreeMap<usize, AddressMap>,
) -> Result<(), String> {
    if before.len() != after.len() {
        return Err("rows are missing, or new".to_owned());
    }
    // Of a function that the linker threw away an entry may be left; all rows of it stay as they are.
    let mut is_left = false;
    for ((start, end, says), (new_start, new_end, now)) in before.iter().zip(after) {
        if says == WHOLE {
            is_left = old.section_at(*start).is_none_or(|number| !maps.contains_key(&number));
        }
        if is_left {
            if (start, end, says) != (new_start, new_end, now) {
                return Err(format!("the row of {start:#x}, where no code is, is another one"));
            }
            continue;
        }
        // New code before an instruction belongs to the preceding code, or to the instruction.
        let starts =
            [moved_frame_address(*start, false, old, maps, new), moved_frame_address(*start, true, old, maps, new)];
        if !starts.contains(&Some(*new_start)) || says != now {
            return Err(format!("the row of {start:#x} is about {new_start:#x}"));
        }
        let ends = [moved_frame_address(*end, true, old, maps, new), moved_frame_address(*end, false, old, maps, new)];
        if !ends.contains(&Some(*new_end)) {
            return Err(format!("the row up to {end:#x} ends at {new_end:#x}"));
        }
    }
    Ok(())
}

fn moved_frame_address(
    address: u64,
    end: bool,
    old: &ObjectImage<'_>,
    maps: &BTreeMap<usize, AddressMap>,
    new: &ObjectImage<'_>,
) -> Option<u64> {
    let inside = if end { address.checked_sub(1)? } else { address };
    let number = old.section_at(inside)?;
    let (map, base) = (maps.get(&number)?, old.sections[number].address);
    let offset = (address - base) as u32;
    let moved = if end { map.new_end(offset)? } else { map.new_start(offset)? };
    Some(u64::from(moved) + new.sections[number].address)
}
