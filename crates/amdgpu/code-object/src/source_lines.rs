//! Source lines of code, from the line tables of DWARF.
//!
//! Invariants: a table that cannot be read gives no lines, and is not an error: lines are for human readers.

use gimli::{AttributeValue, DebugLine, DebugLineOffset, EndianSlice, LittleEndian};
use hotswap_report::limit::Charge;
use object::read::elf::ElfFile64;
use object::{CompressionFormat, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget};

type DwarfSlice<'d> = EndianSlice<'d, LittleEndian>;
pub(crate) type LinesFile<'d> = ElfFile64<'d, object::LittleEndian>;

/// Sections of a relocatable file lack addresses; here they get some, with this distance (log2).
const APART: u32 = 40;
/// The types `R_AMDGPU_ABS32` and `R_AMDGPU_ABS64`, with the bytes of their fields.
const ABSOLUTE: [(u32, usize); 2] = [(6, 4), (3, 8)];

/// The line tables of a code object.
#[derive(Debug, Default)]
pub struct SourceLines {
    /// Ascending by their places.
    rows: Vec<LineRow>,
}

/// A place in a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SectionPlace {
    /// Number of the section.
    pub(crate) section: usize,
    /// Bytes from the start of the section.
    pub(crate) offset: u64,
}

/// The line of the instructions from a place on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LineRow {
    place: SectionPlace,
    /// File and line; empty after the last instruction.
    line: String,
}

impl SourceLines {
    /// Reads the line tables of a relocatable or linked code object; compressed ones count against the
    /// limits of this process.
    #[must_use]
    pub fn read(data: &[u8]) -> Self {
        let mut rows = LinesFile::parse(data).ok().and_then(|file| read_rows(&file).ok()).unwrap_or_default();
        // A row that ends a sequence sorts before one that begins at the same offset.
        rows.sort();
        Self { rows }
    }

    /// `file:line` of an address in a linked code object; for one question, because it reads all tables.
    #[must_use]
    pub fn of_address(data: &[u8], address: u64) -> Option<String> {
        let file = LinesFile::parse(data).ok()?;
        let SectionPlace { section, offset } = section_of_address(&file, true, address)?;
        Self::read(data).line_at(section, offset)
    }

    /// `file:line` of an offset in bytes in the section with that number.
    #[must_use]
    pub fn line_at(&self, section: usize, offset: u64) -> Option<String> {
        let next = self.rows.partition_point(|row| row.place <= SectionPlace { section, offset });
        let row = self.rows.get(next.checked_sub(1)?).filter(|row| row.place.section == section)?;
        Some(row.line.clone()).filter(|line| !line.is_empty())
    }
}

fn read_rows(file: &LinesFile<'_>) -> Result<Vec<LineRow>, gimli::Error> {
    let linked = file.kind() != object::ObjectKind::Relocatable;
    let [tables, line_strings, strings] =
        [".debug_line", ".debug_line_str", ".debug_str"].map(|name| linked_content(file, name, linked));
    let (mut all, mut at) = (Vec::new(), 0);
    while at < tables.len() {
        let program = DebugLine::new(&tables, LittleEndian).program(DebugLineOffset(at), 8, None, None)?;
        let header = program.header();
        at += header.unit_length() + usize::from(header.format().initial_length_size());
        let mut rows = program.rows();
        while let Some((header, row)) = rows.next_row()? {
            let Some(place) = section_of_address(file, linked, row.address()) else { continue };
            let name = row
                .file(header)
                .filter(|_| !row.end_sequence())
                .and_then(|entry| attribute_string(entry.path_name(), &line_strings, &strings));
            let line = name.zip(row.line()).map_or(String::new(), |(name, line)| format!("{name}:{line}"));
            all.push(LineRow { place, line });
        }
    }
    Ok(all)
}

fn attribute_string(value: AttributeValue<DwarfSlice<'_>>, line_strings: &[u8], strings: &[u8]) -> Option<String> {
    let (section, offset) = match value {
        AttributeValue::String(text) => return Some(text.to_string_lossy().into_owned()),
        AttributeValue::DebugLineStrRef(offset) => (line_strings, offset.0),
        AttributeValue::DebugStrRef(offset) => (strings, offset.0),
        _ => return None,
    };
    let bytes = section.get(offset..)?.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// A section as a linker would fill it.
pub(crate) fn linked_content(file: &LinesFile<'_>, name: &str, linked: bool) -> Vec<u8> {
    let Some(section) = file.section_by_name(name) else { return Vec::new() };
    let Ok(packed) = section.compressed_data() else { return Vec::new() };
    // A section that is larger than the limit gives no lines.
    if packed.format != CompressionFormat::None
        && Charge::default().add(packed.data.len(), packed.uncompressed_size).is_err()
    {
        return Vec::new();
    }
    let mut bytes = packed.decompress().map(|data| data.into_owned()).unwrap_or_default();
    if linked {
        return bytes;
    }
    for (offset, relocation) in section.relocations() {
        let (RelocationFlags::Elf { r_type }, RelocationTarget::Symbol(symbol)) =
            (relocation.flags(), relocation.target())
        else {
            continue;
        };
        let Some((_, size)) = ABSOLUTE.into_iter().find(|(number, _)| *number == r_type) else { continue };
        let Ok(symbol) = file.symbol_by_index(symbol) else { continue };
        let base = symbol
            .section_index()
            .filter(|one| is_text_section_index(one, file))
            .map_or(0, |index| (index.0 as u64) << APART);
        let value = base.wrapping_add(symbol.address()).wrapping_add(relocation.addend() as u64);
        let place = usize::try_from(offset).ok().and_then(|offset| bytes.get_mut(offset..offset.checked_add(size)?));
        if let Some(place) = place {
            place.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    bytes
}

/// 64-bit DWARF refers to other tables by offsets as wide as addresses.
fn is_text_section_index(
    index: &object::SectionIndex,
    file: &object::read::elf::ElfFile<'_, object::elf::FileHeader64<object::LittleEndian>>,
) -> bool {
    file.section_by_index(*index).is_ok_and(|section| section.kind() == object::SectionKind::Text)
}

/// Section and offset of an address.
pub(crate) fn section_of_address(file: &LinesFile<'_>, linked: bool, address: u64) -> Option<SectionPlace> {
    if !linked {
        return Some(SectionPlace { section: (address >> APART) as usize, offset: address & ((1 << APART) - 1) });
    }
    let section = file.sections().find(|one| text_section_holds_address(one, address))?;
    Some(SectionPlace { section: section.index().0, offset: address - section.address() })
}

fn text_section_holds_address(
    section: &object::read::elf::ElfSection64<'_, '_, object::LittleEndian>,
    address: u64,
) -> bool {
    section.kind() == object::SectionKind::Text
        && section.address() <= address
        && address - section.address() <= section.size()
}
