//! The assembly of a module (`module asm`): read, and extended by further lines.
//!
//! The module keeps all its bits. Its old assembly and its hash, by which ThinLTO caches know it, become records of an unknown code,
//! which readers pass over, and new ones follow at the end of the module. The linker's symbol table is left out: readers make it
//! again from a module without it. Readers of module parts stop at its functions if its own symbol table has their
//! places, and would not see the end; so this table, an index, becomes a block of an unknown ID, too.
//!
//! Invariant: the result is read again before it is returned.
//!
//! Absent on purpose: files with several modules.

use super::{
    BitReader, BitcodeBlock, BitstreamEntry, CHUNK, END_BLOCK, ENTER_SUBBLOCK, ID_CHUNK, MODULE_BLOCK, UNABBREV_RECORD,
    is_bitcode, parse_bitcode, write_bits,
};
use std::ops::Range;

const SYMTAB_BLOCK: u64 = 25;
/// Records of a module.
const MODULE_ASM: u64 = 4;
const MODULE_SYMBOLS_OFFSET: u64 = 13;
const MODULE_HASH: u64 = 17;
/// The block that [`MODULE_SYMBOLS_OFFSET`] leads to: places of functions.
const MODULE_SYMBOLS_BLOCK: u64 = 14;
/// The offset without such a block; the written value is one larger.
const ABSENT: u64 = 1;
/// An ID that no block has.
const PASSED_OVER_BLOCK: u64 = 63;
/// A code that no record of a module has.
const PASSED_OVER: u64 = 31;

/// The only module of a file.
#[derive(Default)]
struct ModuleLayout {
    /// Bit of the block's length, which precedes the content.
    length_bit: usize,
    /// Width of its abbreviation IDs.
    width: u32,
    /// Bit of the end marker.
    content_end: usize,
    /// Byte at which the block ends.
    end: usize,
    /// The assembly, and the bit of its record's code.
    assembly: Option<FoundRecord>,
    hash: Option<FoundRecord>,
    /// Bit of the offset of the module's own symbol table, and that of its block's ID.
    symbols_offset: Option<usize>,
    symbols_id: Option<usize>,
    /// Bytes of the linker's symbol table.
    symbols: Option<Range<usize>>,
}

struct FoundRecord {
    code_bit: usize,
    values: Vec<u64>,
}

/// The assembly of the file's module; empty where it lacks any. `None` where the file cannot be read.
pub fn module_assembly(bytes: &[u8]) -> Option<String> {
    assembly_text(&read_layout(bytes)?)
}

fn assembly_text(layout: &ModuleLayout) -> Option<String> {
    let Some(record) = &layout.assembly else { return Some(String::new()) };
    let text: Option<Vec<u8>> = record.values.iter().map(|value| u8::try_from(*value).ok()).collect();
    String::from_utf8(text?).ok()
}

/// The file with these lines after the assembly of its module; `None` where it cannot be read or written.
pub fn with_assembly(bytes: &[u8], lines: &str) -> Option<Vec<u8>> {
    let layout = read_layout(bytes)?;
    let mut text = assembly_text(&layout)?;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text += lines;
    let mut writer = BitWriter { bytes: bytes[..layout.end].to_vec(), bit: layout.content_end };
    for record in [&layout.assembly, &layout.hash].into_iter().flatten() {
        write_bits(&mut writer.bytes, record.code_bit, CHUNK, PASSED_OVER);
    }
    if let Some(bit) = layout.symbols_offset {
        write_bits(&mut writer.bytes, bit, 32, ABSENT);
    }
    if let Some(bit) = layout.symbols_id {
        write_bits(&mut writer.bytes, bit, ID_CHUNK, PASSED_OVER_BLOCK);
    }
    writer.record(layout.width, MODULE_ASM, text.bytes().map(u64::from));
    if let Some(hash) = &layout.hash {
        writer.record(layout.width, MODULE_HASH, changed_hash(&hash.values, lines).into_iter());
    }
    writer.fixed(layout.width, END_BLOCK);
    let length = writer.align();
    let words = (length * 8 - layout.length_bit - 32) / 32;
    write_bits(&mut writer.bytes, layout.length_bit, 32, words as u64);
    let mut made = writer.bytes;
    made.truncate(length);
    let symbols = layout.symbols.clone().unwrap_or(bytes.len()..bytes.len());
    made.extend_from_slice(bytes.get(layout.end..symbols.start)?);
    made.extend_from_slice(bytes.get(symbols.end..)?);
    let is_same = parse_bitcode(&made)?.kernels == parse_bitcode(bytes)?.kernels;
    (is_same && module_assembly(&made)? == text).then_some(made)
}

/// Another hash for another module: that of the old one and of the lines (FNV-1a).
fn changed_hash(old: &[u64], lines: &str) -> Vec<u64> {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut changed = Vec::new();
    for word in old {
        for byte in word.to_le_bytes().into_iter().chain(lines.bytes()) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        changed.push(word ^ (state >> 32));
    }
    changed
}

fn read_layout(bytes: &[u8]) -> Option<ModuleLayout> {
    if !is_bitcode(bytes) {
        return None;
    }
    let mut reader = BitReader { bytes, bit: 32 };
    let (mut layout, mut modules) = (ModuleLayout::default(), 0);
    while reader.bit + 64 <= bytes.len() * 8 {
        let start = reader.bit / 8;
        if reader.read_fixed(2)? != ENTER_SUBBLOCK {
            return None;
        }
        let block = reader.enter_block()?;
        match block.id {
            MODULE_BLOCK => {
                modules += 1;
                (layout.length_bit, layout.width, layout.end) = (reader.bit - 32, block.width, block.end / 8);
                read_module(&mut reader, &block, &mut layout)?;
            }
            SYMTAB_BLOCK => layout.symbols = Some(start..block.end / 8),
            _ => {}
        }
        reader.bit = block.end;
    }
    (modules == 1).then_some(layout)
}

fn read_module(reader: &mut BitReader<'_>, module: &BitcodeBlock, layout: &mut ModuleLayout) -> Option<()> {
    let mut abbreviations = Vec::new();
    loop {
        match reader.next_item(module, &mut abbreviations)? {
            BitstreamEntry::End => break,
            BitstreamEntry::Block(block) => {
                if block.id == MODULE_SYMBOLS_BLOCK {
                    layout.symbols_id = Some(block.id_bit);
                }
                reader.bit = block.end;
            }
            BitstreamEntry::Record(record) => match record.values[..] {
                [MODULE_ASM, ref values @ ..] => layout.assembly = Some(found(record.code_bit, values)?),
                [MODULE_SYMBOLS_OFFSET, _] => layout.symbols_offset = Some(record.first_operand),
                [MODULE_HASH, ref values @ ..] => layout.hash = Some(found(record.code_bit, values)?),
                _ => {}
            },
        }
    }
    layout.content_end = reader.bit - module.width as usize;
    Some(())
}

/// A record that can get another code: it lacks an abbreviation.
fn found(code_bit: usize, values: &[u64]) -> Option<FoundRecord> {
    (code_bit != 0).then(|| FoundRecord { code_bit, values: values.to_vec() })
}

/// Writes bits from a place on.
struct BitWriter {
    bytes: Vec<u8>,
    bit: usize,
}

impl BitWriter {
    fn fixed(&mut self, width: u32, value: u64) {
        let end = self.bit + width as usize;
        if self.bytes.len() * 8 < end {
            self.bytes.resize(end.div_ceil(8), 0);
        }
        write_bits(&mut self.bytes, self.bit, width, value);
        self.bit = end;
    }

    fn vbr(&mut self, mut value: u64) {
        let more = 1 << (CHUNK - 1);
        while value >= more {
            self.fixed(CHUNK, (value & (more - 1)) | more);
            value >>= CHUNK - 1;
        }
        self.fixed(CHUNK, value);
    }

    fn record(&mut self, width: u32, code: u64, values: impl ExactSizeIterator<Item = u64>) {
        self.fixed(width, UNABBREV_RECORD);
        self.vbr(code);
        self.vbr(values.len() as u64);
        for value in values {
            self.vbr(value);
        }
    }

    /// Fills the word with zeros; returns its end in bytes.
    fn align(&mut self) -> usize {
        while !self.bit.is_multiple_of(32) {
            self.fixed(1, 0);
        }
        self.bit / 8
    }
}
