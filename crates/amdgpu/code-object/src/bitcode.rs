//! LLVM bitcode of device code: its kernels, and its target triple, which from LLVM 24 on names the processor. Of host code: the
//! offload binaries in it ([`constants`]) and its assembly ([`assembly`]).
//!
//! Only the records of the module itself are read: its triple and its functions; function bodies, metadata and types are
//! skipped by their lengths. Names are in the string table, whose block follows the module.
//!
//! Invariant: whatever does not read as expected is `None`, never a partial list.
//!
//! Absent on purpose: instructions, summaries of ThinLTO, names in modules before LLVM 5.

mod assembly;
mod constants;

use std::collections::BTreeSet;
use std::ops::Range;

pub use assembly::{module_assembly, with_assembly};
pub use constants::constants_with;

const MODULE_BLOCK: u64 = 8;
const STRTAB_BLOCK: u64 = 23;
/// Abbreviation IDs that every block has.
const END_BLOCK: u64 = 0;
const ENTER_SUBBLOCK: u64 = 1;
const DEFINE_ABBREV: u64 = 2;
const UNABBREV_RECORD: u64 = 3;
/// Records of a module.
const MODULE_TRIPLE: u64 = 2;
const MODULE_FUNCTION: u64 = 8;
const STRTAB_BLOB: u64 = 1;
/// The calling convention `CallingConv::AMDGPU_KERNEL` of LLVM.
const AMDGPU_KERNEL: u64 = 91;
/// Bits of a chunk in which an operand of an unabbreviated record is written.
const CHUNK: u32 = 6;

/// Bits of a chunk of a block's ID.
const ID_CHUNK: u32 = 8;

/// A bitcode file as it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bitcode {
    /// The kernels that it defines.
    pub kernels: BTreeSet<String>,
    pub triple: String,
    /// Bit at which the triple's first character is.
    triple_bit: usize,
    /// Bytes of the string table.
    names: Range<usize>,
}

/// Whether the bytes are LLVM bitcode without a wrapper.
pub fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde")
}

/// Reads a bitcode file with one module.
pub fn parse_bitcode(bytes: &[u8]) -> Option<Bitcode> {
    if !is_bitcode(bytes) {
        return None;
    }
    let mut reader = BitReader { bytes, bit: 32 };
    let mut found = Bitcode::default();
    let (mut functions, mut modules) = (Vec::new(), 0);
    // Blocks end on words; a file may be padded.
    while reader.bit + 64 <= bytes.len() * 8 {
        if reader.read_fixed(2)? != ENTER_SUBBLOCK {
            return None;
        }
        let block = reader.enter_block()?;
        match block.id {
            MODULE_BLOCK => {
                modules += 1;
                read_module(&mut reader, &block, &mut found, &mut functions)?;
            }
            STRTAB_BLOCK if found.names.is_empty() => found.names = read_names(&mut reader, &block)?,
            _ => {}
        }
        reader.bit = block.end;
    }
    let names = bytes.get(found.names.clone())?;
    for function in functions {
        let name = names.get(function)?;
        found.kernels.insert(String::from_utf8_lossy(name).into_owned());
    }
    (modules == 1 && !found.triple.is_empty()).then_some(found)
}

/// The same module for another triple of the same length; `None` where it cannot be read or written.
pub fn with_triple(bytes: &[u8], triple: &str) -> Option<Vec<u8>> {
    let read = parse_bitcode(bytes)?;
    if triple.len() != read.triple.len() || !is_printable_ascii(triple) || !is_printable_ascii(&read.triple) {
        return None;
    }
    let mut made = bytes.to_vec();
    let mut bit = read.triple_bit;
    for byte in triple.bytes() {
        // Two chunks: the lower five bits and the flag that another one follows, then the rest.
        write_bits(&mut made, bit, CHUNK, u64::from(byte & 31) | 32);
        write_bits(&mut made, bit + CHUNK as usize, CHUNK, u64::from(byte >> 5));
        bit += 2 * CHUNK as usize;
    }
    // The linker's symbol table names the triple, too.
    let old = read.triple.as_bytes();
    let mut at = read.names.start;
    while at + old.len() <= read.names.end {
        if made[at..].starts_with(old) {
            made[at..at + old.len()].copy_from_slice(triple.as_bytes());
        }
        at += 1;
    }
    (parse_bitcode(&made)? == Bitcode { triple: triple.to_owned(), ..read }).then_some(made)
}

fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| (32..128).contains(&byte))
}

fn write_bits(bytes: &mut [u8], bit: usize, count: u32, value: u64) {
    for index in 0..count as usize {
        let (byte, mask) = ((bit + index) / 8, 1 << ((bit + index) % 8));
        bytes[byte] = if value >> index & 1 == 1 { bytes[byte] | mask } else { bytes[byte] & !mask };
    }
}

/// A block, whose abbreviations have this width.
struct BitcodeBlock {
    id: u64,
    /// Bit of the ID, a chunk of [`ID_CHUNK`].
    id_bit: usize,
    width: u32,
    end: usize,
}

/// An operand of an abbreviation.
enum AbbrevOperand {
    Literal(u64),
    Fixed(u32),
    Vbr(u32),
    Array,
    Char6,
    Blob,
}

/// A record: its code and operands, the first operand's place, that of the code if unabbreviated, and the
/// bytes of its blob.
#[derive(Default)]
struct BitcodeRecord {
    values: Vec<u64>,
    code_bit: usize,
    first_operand: usize,
    blob: Range<usize>,
}

/// The next part of a block.
enum BitstreamEntry {
    End,
    Block(BitcodeBlock),
    Record(BitcodeRecord),
}

fn read_module(
    reader: &mut BitReader<'_>,
    block: &BitcodeBlock,
    found: &mut Bitcode,
    kernels: &mut Vec<Range<usize>>,
) -> Option<()> {
    let mut abbreviations = Vec::new();
    while let Some(record) = reader.next_record(block, &mut abbreviations)? {
        match record.values[..] {
            [MODULE_TRIPLE, ref text @ ..] => {
                let text: Option<Vec<u8>> = text.iter().map(|value| u8::try_from(*value).ok()).collect();
                found.triple = String::from_utf8(text?).ok()?;
                found.triple_bit = record.first_operand;
            }
            // Offset and size of the name, type, calling convention, whether it is a declaration.
            [MODULE_FUNCTION, offset, size, _, AMDGPU_KERNEL, 0, ..] => {
                let (offset, size) = (usize::try_from(offset).ok()?, usize::try_from(size).ok()?);
                kernels.push(offset..offset.checked_add(size)?);
            }
            _ => {}
        }
    }
    Some(())
}

fn read_names(reader: &mut BitReader<'_>, block: &BitcodeBlock) -> Option<Range<usize>> {
    let mut abbreviations = Vec::new();
    while let Some(record) = reader.next_record(block, &mut abbreviations)? {
        if record.values == [STRTAB_BLOB] {
            return Some(record.blob);
        }
    }
    None
}

struct BitReader<'a> {
    bytes: &'a [u8],
    bit: usize,
}

impl BitReader<'_> {
    fn read_fixed(&mut self, width: u32) -> Option<u64> {
        if width > 64 {
            return None;
        }
        let mut value = 0;
        for index in 0..width {
            let byte = *self.bytes.get(self.bit / 8)?;
            value |= u64::from(byte >> (self.bit % 8) & 1) << index;
            self.bit += 1;
        }
        Some(value)
    }

    fn read_vbr(&mut self, width: u32) -> Option<u64> {
        let more = 1_u64.checked_shl(width.checked_sub(1)?)?;
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let chunk = self.read_fixed(width)?;
            value |= (chunk & (more - 1)).checked_shl(shift)?;
            if chunk & more == 0 {
                return Some(value);
            }
            shift += width - 1;
        }
    }

    fn align_to_word(&mut self) {
        self.bit = self.bit.next_multiple_of(32);
    }

    fn enter_block(&mut self) -> Option<BitcodeBlock> {
        let id_bit = self.bit;
        let (id, width) = (self.read_vbr(ID_CHUNK)?, u32::try_from(self.read_vbr(4)?).ok()?);
        self.align_to_word();
        let words = usize::try_from(self.read_fixed(32)?).ok()?;
        let end = self.bit.checked_add(words.checked_mul(32)?)?;
        (end <= self.bytes.len() * 8 && (2..=32).contains(&width)).then_some(BitcodeBlock { id, id_bit, width, end })
    }

    /// The next record of the block itself; `None` inside at its end.
    #[allow(clippy::option_option)] // outside: it does not read as expected
    fn next_record(
        &mut self,
        block: &BitcodeBlock,
        abbreviations: &mut Vec<Vec<AbbrevOperand>>,
    ) -> Option<Option<BitcodeRecord>> {
        loop {
            match self.next_item(block, abbreviations)? {
                BitstreamEntry::End => return Some(None),
                BitstreamEntry::Block(inner) => self.bit = inner.end,
                BitstreamEntry::Record(record) => return Some(Some(record)),
            }
        }
    }

    /// The next item of the block itself; abbreviations are added to those that it has.
    fn next_item(
        &mut self,
        block: &BitcodeBlock,
        abbreviations: &mut Vec<Vec<AbbrevOperand>>,
    ) -> Option<BitstreamEntry> {
        loop {
            match self.read_fixed(block.width)? {
                END_BLOCK => return Some(BitstreamEntry::End),
                ENTER_SUBBLOCK => return self.enter_block().map(BitstreamEntry::Block),
                DEFINE_ABBREV => abbreviations.push(self.read_abbreviation()?),
                UNABBREV_RECORD => return self.read_unabbreviated().map(BitstreamEntry::Record),
                id => {
                    let index = usize::try_from(id - UNABBREV_RECORD - 1).ok()?;
                    return self.read_abbreviated(abbreviations.get(index)?).map(BitstreamEntry::Record);
                }
            }
        }
    }

    fn read_abbreviation(&mut self) -> Option<Vec<AbbrevOperand>> {
        let count = self.read_vbr(5)?;
        let mut operands = Vec::new();
        for _ in 0..count {
            let operand = if self.read_fixed(1)? == 1 {
                AbbrevOperand::Literal(self.read_vbr(8)?)
            } else {
                match self.read_fixed(3)? {
                    1 => AbbrevOperand::Fixed(u32::try_from(self.read_vbr(5)?).ok()?),
                    2 => AbbrevOperand::Vbr(u32::try_from(self.read_vbr(5)?).ok()?),
                    3 => AbbrevOperand::Array,
                    4 => AbbrevOperand::Char6,
                    5 => AbbrevOperand::Blob,
                    _ => return None,
                }
            };
            operands.push(operand);
        }
        Some(operands)
    }

    fn read_unabbreviated(&mut self) -> Option<BitcodeRecord> {
        let code_bit = self.bit;
        let (code, count) = (self.read_vbr(CHUNK)?, self.read_vbr(CHUNK)?);
        let mut record =
            BitcodeRecord { values: vec![code], code_bit, first_operand: self.bit, ..BitcodeRecord::default() };
        for _ in 0..count {
            record.values.push(self.read_vbr(CHUNK)?);
        }
        Some(record)
    }

    fn read_abbreviated(&mut self, operands: &[AbbrevOperand]) -> Option<BitcodeRecord> {
        let mut record = BitcodeRecord::default();
        let mut operands = operands.iter();
        while let Some(operand) = operands.next() {
            if record.values.len() == 1 {
                record.first_operand = self.bit;
            }
            match operand {
                AbbrevOperand::Array => {
                    let count = self.read_vbr(CHUNK)?;
                    let element = operands.next()?;
                    for _ in 0..count {
                        record.values.push(self.read_scalar(element)?);
                    }
                }
                AbbrevOperand::Blob => {
                    let size = usize::try_from(self.read_vbr(CHUNK)?).ok()?;
                    self.align_to_word();
                    let start = self.bit / 8;
                    record.blob = start..start.checked_add(size)?;
                    self.bit = record.blob.end.checked_mul(8)?;
                    self.align_to_word();
                }
                scalar => record.values.push(self.read_scalar(scalar)?),
            }
        }
        Some(record)
    }

    fn read_scalar(&mut self, operand: &AbbrevOperand) -> Option<u64> {
        match operand {
            AbbrevOperand::Literal(value) => Some(*value),
            AbbrevOperand::Fixed(0) | AbbrevOperand::Vbr(0) => Some(0),
            AbbrevOperand::Fixed(width) => self.read_fixed(*width),
            AbbrevOperand::Vbr(width) => self.read_vbr(*width),
            AbbrevOperand::Char6 => {
                const CHARS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
                let index = usize::try_from(self.read_fixed(CHUNK)?).ok()?;
                CHARS.get(index).copied().map(u64::from)
            }
            AbbrevOperand::Array | AbbrevOperand::Blob => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_not_a_module() {
        assert_eq!(parse_bitcode(b"BC\xc0\xde"), None);
        assert_eq!(parse_bitcode(b"\x7fELF"), None);
        let noise: Vec<u8> = (0..4096_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for start in 0..512 {
            let _ = parse_bitcode(&[b"BC\xc0\xde", &noise[start..]].concat());
            let _ = with_triple(&[b"BC\xc0\xde", &noise[start..]].concat(), "amdgcn-amd-amdhsa");
            let _ = with_assembly(&[b"BC\xc0\xde", &noise[start..]].concat(), ".text\n");
            let _ = constants_with(&[b"BC\xc0\xde", &noise[start..]].concat(), b"x");
        }
    }
}
