//! The compilation units of a code object's debug information, by the code that they have.
//!
//! Invariants: unreadable debug information gives no units, and no error. A place that two units claim lacks one.

use crate::source_lines::{LinesFile, SectionPlace, linked_content, section_of_address};
use gimli::{Dwarf, EndianSlice, LittleEndian, SectionId};
use object::Object;
use std::borrow::Cow;
use std::ops::Range;

type UnitSlice<'d> = EndianSlice<'d, LittleEndian>;

/// The sections that name units and their code; line tables, because the reader looks at their headers.
const SECTIONS: [SectionId; 9] = [
    SectionId::DebugInfo,
    SectionId::DebugAbbrev,
    SectionId::DebugLine,
    SectionId::DebugStr,
    SectionId::DebugLineStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugAddr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
];

/// Some code of a unit.
#[derive(Debug)]
struct UnitRow {
    section: usize,
    /// Offsets in the section, in bytes.
    range: Range<u64>,
    /// Number of the unit's name.
    unit: usize,
}

impl UnitRow {
    fn holds(&self, section: usize, offset: u64) -> bool {
        self.section == section && self.range.contains(&offset)
    }
}

/// The units of a code object.
#[derive(Debug, Default)]
pub struct SourceUnits {
    /// Ascending by section and start.
    rows: Vec<UnitRow>,
    names: Vec<String>,
}

impl SourceUnits {
    /// Reads the units of a relocatable or linked code object; compressed sections count against the limits of this process.
    #[must_use]
    pub fn read(data: &[u8]) -> Self {
        let Ok(file) = LinesFile::parse(data) else { return Self::default() };
        if file.section_by_name(".debug_info").is_none() {
            return Self::default();
        }
        let mut units = read_compile_units(&file).unwrap_or_default();
        units.rows.sort_by_key(|row| (row.section, row.range.start));
        units
    }

    /// The source file of the unit that has the code at an offset in bytes of the section with that number, as the
    /// compiler was told it.
    #[must_use]
    pub fn unit_at(&self, section: usize, offset: u64) -> Option<&str> {
        let next = self.rows.partition_point(|row| (row.section, row.range.start) <= (section, offset));
        let last = self.rows[..next].last().filter(|row| row.holds(section, offset))?;
        let is_alone = self.rows[..next - 1].last().is_none_or(|row| !row.holds(section, offset));
        is_alone.then(|| self.names[last.unit].as_str())
    }
}

fn read_compile_units(file: &LinesFile<'_>) -> Result<SourceUnits, gimli::Error> {
    let linked = file.kind() != object::ObjectKind::Relocatable;
    let sections = gimli::DwarfSections::load(|id: SectionId| -> Result<Cow<'_, [u8]>, gimli::Error> {
        let wanted = SECTIONS.contains(&id);
        Ok(if wanted { Cow::Owned(linked_content(file, id.name(), linked)) } else { Cow::Borrowed(&[]) })
    })?;
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let mut found = SourceUnits::default();
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let Some(name) = unit.name.filter(|name| !name.is_empty()) else { continue };
        let number = found.names.len();
        found.names.push(name.to_string_lossy().into_owned());
        add_ranges(file, linked, (&dwarf, &unit), (number, &mut found.rows))?;
    }
    Ok(found)
}

fn add_ranges(
    file: &LinesFile<'_>,
    linked: bool,
    (dwarf, unit): (&Dwarf<UnitSlice<'_>>, &gimli::Unit<UnitSlice<'_>>),
    (unit_number, rows): (usize, &mut Vec<UnitRow>),
) -> Result<(), gimli::Error> {
    let mut ranges = dwarf.unit_ranges(unit)?;
    while let Some(range) = ranges.next()? {
        if let Some(SectionPlace { section, offset: start }) = section_of_address(file, linked, range.begin) {
            let range = start..start.saturating_add(range.end - range.begin);
            rows.push(UnitRow { section, range, unit: unit_number });
        }
    }
    Ok(())
}
