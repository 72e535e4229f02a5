//! A reference to an undefined symbol in a COFF object, for Windows.
//!
//! The section headers follow the file's header, so that all content moves by the size of two more of them; symbols and names are
//! at the end of the file and grow there. Offsets within sections, indices of symbols and of sections stay.
//!
//! Absent on purpose: the format for more than 65,279 sections (`/bigobj`), 32-bit hosts.

use super::UnitReference;
use crate::bytes::{slice, u16_at, u32_at};
use hotswap_report::{Diagnostic, codes};
use object::{Object, ObjectSection, ObjectSymbol};

const HEADER: usize = 20;
const SECTION: usize = 40;
const SYMBOL: usize = 18;
const RELOCATION: usize = 10;
const MACHINE_AMD64: u16 = 0x8664;
const MACHINE_ARM64: u16 = 0xaa64;
const REL_AMD64_ADDR64: u16 = 1;
const REL_ARM64_ADDR64: u16 = 14;
/// `LNK_INFO`, `LNK_REMOVE`, aligned to bytes: linkers leave the section out.
const NOTE_FLAGS: u32 = 0x0010_0a00;
/// Initialised data that is read and written, aligned to 8. No `LNK_COMDAT`: linkers keep the section.
const REFERENCE_FLAGS: u32 = 0xc040_0040;
/// `IMAGE_SYM_CLASS_EXTERNAL`
const EXTERNAL: u8 = 2;
/// Largest offset of a name that a section header can hold in decimal.
const LONGEST_OFFSET: usize = 9_999_999;

/// Whether it is an object of a known host.
pub(super) fn is_coff(bytes: &[u8]) -> bool {
    let machine = u16_at(bytes, 0);
    bytes.len() > HEADER && [MACHINE_AMD64, MACHINE_ARM64].map(Some).contains(&machine)
}

/// The parts of an object.
struct Layout<'a> {
    machine: u16,
    sections: usize,
    symbols: u32,
    /// End of the section headers.
    content: usize,
    symbol_table: usize,
    names: &'a [u8],
}

impl<'a> Layout<'a> {
    /// `None` where the parts are in another order than that of compilers.
    fn read(object: &'a [u8]) -> Option<Self> {
        let sections = usize::from(u16_at(object, 2)?);
        let (symbol_table, symbols) = (u32_at(object, 8)? as usize, u32_at(object, 12)?);
        let optional_header = u16_at(object, 16)?;
        let content = HEADER + sections * SECTION;
        let names = symbol_table.checked_add((symbols as usize).checked_mul(SYMBOL)?)?;
        let size = u32_at(object, names as u64)? as usize;
        let is_usual = optional_header == 0 && symbol_table >= content && names.checked_add(size)? == object.len();
        let names = slice(object, names as u64, size as u64)?;
        is_usual.then_some(Self { machine: u16_at(object, 0)?, sections, symbols, content, symbol_table, names })
    }
}

/// The object with the reference.
///
/// # Errors
/// [`codes::UNKNOWN_FORMAT`] for an order of its parts that no compiler writes, [`codes::VERIFY_FAILED`].
pub(super) fn add(object: &[u8], reference: &UnitReference<'_>) -> Result<Vec<u8>, Diagnostic> {
    let made = Layout::read(object).and_then(|layout| extend(object, &layout, reference));
    let made = made.ok_or_else(|| Diagnostic::error(codes::UNKNOWN_FORMAT, "a COFF object with an unusual order"))?;
    if is_right(object, &made, reference) {
        return Ok(made);
    }
    Err(Diagnostic::error(codes::VERIFY_FAILED, "an object with a plan: the reference is not in it"))
}

fn extend(object: &[u8], layout: &Layout<'_>, reference: &UnitReference<'_>) -> Option<Vec<u8>> {
    let moved = 2 * SECTION;
    let mut names = layout.names.to_vec();
    let [note_name, section_name, symbol_name] =
        [reference.note_section, reference.section, reference.symbol].map(|name| add_name(&mut names, name));
    let note_at = layout.symbol_table + moved;
    let reference_at = note_at + reference.note.len();
    let relocation_at = reference_at + 8;
    let symbol_table = relocation_at + RELOCATION;
    let mut made = object.get(..layout.content)?.to_vec();
    made[2..4].copy_from_slice(&u16::try_from(layout.sections + 2).ok()?.to_le_bytes());
    made[8..12].copy_from_slice(&u32::try_from(symbol_table).ok()?.to_le_bytes());
    made[12..16].copy_from_slice(&layout.symbols.checked_add(1)?.to_le_bytes());
    for section in 0..layout.sections {
        move_offsets(&mut made, HEADER + section * SECTION, u32::try_from(moved).ok()?)?;
    }
    let note =
        NewSection { name: note_name, at: note_at, size: reference.note.len(), relocation: None, flags: NOTE_FLAGS };
    made.extend(note.header()?);
    let relocation = Some(relocation_at);
    let section = NewSection { name: section_name, at: reference_at, size: 8, relocation, flags: REFERENCE_FLAGS };
    made.extend(section.header()?);
    made.extend_from_slice(object.get(layout.content..layout.symbol_table)?);
    made.extend_from_slice(reference.note);
    made.extend_from_slice(&[0; 8]);
    let kind = if layout.machine == MACHINE_ARM64 { REL_ARM64_ADDR64 } else { REL_AMD64_ADDR64 };
    made.extend([&0_u32.to_le_bytes()[..], &layout.symbols.to_le_bytes(), &kind.to_le_bytes()].concat());
    made.extend_from_slice(object.get(layout.symbol_table..object.len() - layout.names.len())?);
    let mut symbol = [0; SYMBOL];
    symbol[4..8].copy_from_slice(&u32::try_from(symbol_name).ok()?.to_le_bytes());
    symbol[16] = EXTERNAL;
    made.extend_from_slice(&symbol);
    let size = u32::try_from(names.len()).ok()?;
    names[..4].copy_from_slice(&size.to_le_bytes());
    made.extend(names);
    Some(made)
}

/// Appends a name to the table; returns its offset.
fn add_name(names: &mut Vec<u8>, name: &str) -> usize {
    let offset = names.len();
    names.extend_from_slice(name.as_bytes());
    names.push(0);
    offset
}

/// Moves the offsets of a section's data, relocations and line numbers.
fn move_offsets(bytes: &mut [u8], header: usize, by: u32) -> Option<()> {
    for field in [20, 24, 28] {
        let at = header + field;
        let offset = u32_at(bytes, at as u64)?;
        if offset != 0 {
            bytes[at..at + 4].copy_from_slice(&offset.checked_add(by)?.to_le_bytes());
        }
    }
    Some(())
}

struct NewSection {
    /// Offset of its name.
    name: usize,
    at: usize,
    size: usize,
    /// The place of its relocation.
    relocation: Option<usize>,
    flags: u32,
}

impl NewSection {
    fn header(&self) -> Option<Vec<u8>> {
        if self.name > LONGEST_OFFSET {
            return None;
        }
        let mut header = format!("/{}", self.name).into_bytes();
        header.resize(8, 0);
        let relocation = self.relocation.unwrap_or_default();
        for value in [0, 0, self.size, self.at, relocation, 0] {
            header.extend_from_slice(&u32::try_from(value).ok()?.to_le_bytes());
        }
        header.extend_from_slice(&u16::from(self.relocation.is_some()).to_le_bytes());
        header.extend_from_slice(&[0; 2]);
        header.extend_from_slice(&self.flags.to_le_bytes());
        Some(header)
    }
}

/// Another reader finds the old sections and symbols as they were, and the reference.
pub(super) fn is_right(old: &[u8], new: &[u8], reference: &UnitReference<'_>) -> bool {
    let (Ok(before), Ok(after)) = (object::File::parse(old), object::File::parse(new)) else { return false };
    let is_kept = before.sections().zip(after.sections()).all(|(before, after)| {
        before.name() == after.name()
            && before.data() == after.data()
            && before.relocations().count() == after.relocations().count()
    });
    let symbols = before.symbols().zip(after.symbols());
    let is_named = symbols.into_iter().all(|(before, after)| before.name() == after.name());
    let note = after.section_by_name(reference.note_section).and_then(|section| section.data().ok());
    let target = after.section_by_name(reference.section).and_then(|section| section.relocations().next());
    let symbol = target.and_then(|(_, relocation)| match relocation.target() {
        object::RelocationTarget::Symbol(index) => after.symbol_by_index(index).ok(),
        _ => None,
    });
    let is_undefined = symbol.is_some_and(|symbol| symbol.is_undefined() && symbol.name() == Ok(reference.symbol));
    let is_longer = after.sections().count() == before.sections().count() + 2;
    is_kept && is_named && is_longer && note == Some(reference.note) && is_undefined
}
