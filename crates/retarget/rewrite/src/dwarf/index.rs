//! `.gdb_index`: the table of addresses in which debuggers look up the unit of an address.
//!
//! Layout (versions 4 to 9, as gdb documents it): a version and offsets of 4 bytes of the list of units, of that of
//! types, of the addresses, of the symbols; rows of addresses have 20 bytes: begin, end, number of the unit. Everything
//! else refers to `.debug_info`, which keeps its size.

use super::DebugTargets;
use super::cursor::Cursor;
use crate::fix::SectionOffset;
use hotswap_code_object::ObjectKind;
use hotswap_report::Diagnostic;

const VERSIONS: std::ops::RangeInclusive<u64> = 4..=9;
/// Bytes of a row.
const ROW: usize = 20;

/// Records all addresses of the table. Linkers write it, so it lacks relocations.
pub(super) fn record_addresses(source: &DebugTargets<'_>, section: usize) -> Result<(), Diagnostic> {
    if source.image.kind != ObjectKind::Linked {
        return Ok(());
    }
    let mut cursor = Cursor::new(&source.image.sections[section]);
    if !VERSIONS.contains(&cursor.read_number(4)?) {
        return Err(cursor
            .refuse_here("is an index of a version that is not known")
            .advise("link without --gdb-index"));
    }
    cursor.read_bytes(8)?;
    let (first, end) = (cursor.read_number(4)? as usize, cursor.read_number(4)? as usize);
    if first > end || end > cursor.end || !(end - first).is_multiple_of(ROW) {
        return Err(cursor.refuse_here("has a table of addresses that leaves it").advise("link without --gdb-index"));
    }
    (cursor.at, cursor.end) = (first, end);
    while !cursor.is_done() {
        let at = cursor.at as u64;
        let (begin, behind) = (cursor.read_number(8)?, cursor.read_number(8)?);
        cursor.read_bytes(4)?;
        let Some(place) = source.record_address(section, at, begin) else { continue };
        let size = behind.checked_sub(begin).filter(|size| *size <= source.image.sections[place.section].size);
        let last = size.map(|size| SectionOffset { offset: place.offset + size, ..place });
        let last = last.filter(|last| last.offset <= source.image.sections[place.section].size);
        let last = last.ok_or_else(|| cursor.refuse_here("has a range of addresses that leaves its section"))?;
        source.record_field(section, at + 8, 8, last, true);
    }
    Ok(())
}
