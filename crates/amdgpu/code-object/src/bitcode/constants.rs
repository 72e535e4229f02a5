//! Byte strings among a module's constants: the offload binaries that clang embeds into host code.
//!
//! Absent on purpose: the variables that they initialise; what a string begins with says what it is.

use super::{AbbrevOperand, BitReader, BitcodeBlock, BitstreamEntry, ENTER_SUBBLOCK, MODULE_BLOCK, is_bitcode};

const BLOCKINFO_BLOCK: u64 = 0;
const CONSTANTS_BLOCK: u64 = 11;
/// The record of the block of abbreviations that names the block which the following ones are for.
const SET_BLOCK: u64 = 1;
/// Records of constants: bytes, bytes that a zero follows, elements of a vector or array.
const STRINGS: [u64; 3] = [8, 9, 22];

/// The constants of the file's modules that begin with these bytes; `None` where the file cannot be read.
pub fn constants_with(bytes: &[u8], magic: &[u8]) -> Option<Vec<Vec<u8>>> {
    if !is_bitcode(bytes) {
        return None;
    }
    let mut reader = BitReader { bytes, bit: 32 };
    let mut found = Vec::new();
    while reader.bit + 64 <= bytes.len() * 8 {
        if reader.read_fixed(2)? != ENTER_SUBBLOCK {
            return None;
        }
        let block = reader.enter_block()?;
        if block.id == MODULE_BLOCK {
            read_module(&mut reader, &block, magic, &mut found)?;
        }
        reader.bit = block.end;
    }
    Some(found)
}

fn read_module(
    reader: &mut BitReader<'_>,
    module: &BitcodeBlock,
    magic: &[u8],
    found: &mut Vec<Vec<u8>>,
) -> Option<()> {
    let (mut own, mut of_constants) = (Vec::new(), Vec::new());
    loop {
        match reader.next_item(module, &mut own)? {
            BitstreamEntry::End => return Some(()),
            BitstreamEntry::Record(_) => {}
            BitstreamEntry::Block(block) => {
                match block.id {
                    BLOCKINFO_BLOCK => read_abbreviations(reader, &block, &mut of_constants)?,
                    CONSTANTS_BLOCK => {
                        let mut known = Vec::new();
                        std::mem::swap(&mut known, &mut of_constants);
                        let count = known.len();
                        read_constants(reader, &block, &mut known, magic, found)?;
                        known.truncate(count);
                        of_constants = known;
                    }
                    _ => {}
                }
                reader.bit = block.end;
            }
        }
    }
}

/// The abbreviations that every block of constants has.
fn read_abbreviations(
    reader: &mut BitReader<'_>,
    block: &BitcodeBlock,
    of_constants: &mut Vec<Vec<AbbrevOperand>>,
) -> Option<()> {
    let (mut current, mut is_constants) = (Vec::new(), false);
    loop {
        let item = reader.next_item(block, &mut current)?;
        if is_constants {
            of_constants.append(&mut current);
        }
        current.clear();
        match item {
            BitstreamEntry::End => return Some(()),
            BitstreamEntry::Block(inner) => reader.bit = inner.end,
            BitstreamEntry::Record(record) => {
                if let [SET_BLOCK, id, ..] = record.values[..] {
                    is_constants = id == CONSTANTS_BLOCK;
                }
            }
        }
    }
}

fn read_constants(
    reader: &mut BitReader<'_>,
    block: &BitcodeBlock,
    abbreviations: &mut Vec<Vec<AbbrevOperand>>,
    magic: &[u8],
    found: &mut Vec<Vec<u8>>,
) -> Option<()> {
    while let Some(record) = reader.next_record(block, abbreviations)? {
        let [code, ref elements @ ..] = record.values[..] else { continue };
        let begins = elements.iter().zip(magic).all(|(element, byte)| *element == u64::from(*byte));
        if STRINGS.contains(&code) && elements.len() >= magic.len() && begins {
            let bytes: Option<Vec<u8>> = elements.iter().map(|element| u8::try_from(*element).ok()).collect();
            found.extend(bytes);
        }
    }
    Some(())
}
