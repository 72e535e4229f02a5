//! The functions that an address of a linked code object belongs to, inlined ones included, from DWARF.
//!
//! Invariants: the innermost function comes first. Unreadable debug information gives no frames, and no error.
//!
//! Absent on purpose: relocatable files, in which an address is one of several sections.

use crate::source_lines::{LinesFile, SourceLines, linked_content};
use gimli::{AttributeValue, Dwarf, EndianSlice, LittleEndian, SectionId, Unit, UnitOffset, constants};
use object::{Object, ObjectKind};
use std::borrow::Cow;

type Slice<'d> = EndianSlice<'d, LittleEndian>;
type DebugInfoEntry<'d> = gimli::DebuggingInformationEntry<Slice<'d>>;

/// Names that refer to each other end after so many steps.
const MOST_ORIGINS: usize = 8;

/// A function at an address, and the place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFrame {
    /// Its name as in the symbol table, or as in the source where debug information only has that.
    pub function: String,
    /// The file, as debug information names it; empty where nothing states it.
    pub file: String,
    /// The line; 0 where nothing states it.
    pub line: u32,
}

/// A function or an inlined call that holds the address.
struct InlinedScope {
    function: String,
    /// Where it was inlined.
    call_file: String,
    call_line: u32,
}

/// The frames of an address, the innermost first; empty without debug information.
#[must_use]
pub fn source_frames(data: &[u8], address: u64) -> Vec<SourceFrame> {
    let Ok(file) = LinesFile::parse(data) else { return Vec::new() };
    if file.kind() == ObjectKind::Relocatable || file.section_by_name(".debug_info").is_none() {
        return Vec::new();
    }
    let scopes = scopes(&file, address).unwrap_or_default();
    let text = SourceLines::of_address(data, address).unwrap_or_default();
    let (mut path, mut line) = match text.rsplit_once(':') {
        Some((path, line)) => (path.to_owned(), line.parse().unwrap_or(0)),
        None => (String::new(), 0),
    };
    let mut frames = Vec::new();
    for scope in scopes.into_iter().rev() {
        frames.push(SourceFrame { function: scope.function, file: path, line });
        (path, line) = (scope.call_file, scope.call_line);
    }
    frames
}

/// The scopes that hold an address, the outermost first.
fn scopes(file: &LinesFile<'_>, address: u64) -> Result<Vec<InlinedScope>, gimli::Error> {
    let sections = gimli::DwarfSections::load(|id: SectionId| {
        Ok::<_, gimli::Error>(Cow::<[u8]>::Owned(linked_content(file, id.name(), true)))
    })?;
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let mut headers = dwarf.units();
    while let Some(header) = headers.next()? {
        let unit = dwarf.unit(header)?;
        let found = scopes_of_unit(&dwarf, &unit, address)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

fn scopes_of_unit<'d>(
    dwarf: &Dwarf<Slice<'d>>,
    unit: &Unit<Slice<'d>>,
    address: u64,
) -> Result<Vec<InlinedScope>, gimli::Error> {
    let mut found = Vec::new();
    let mut entries = unit.entries();
    while let Some(entry) = entries.next_dfs()? {
        if ![constants::DW_TAG_subprogram, constants::DW_TAG_inlined_subroutine].contains(&entry.tag()) {
            continue;
        }
        let mut ranges = dwarf.die_ranges(unit, entry)?;
        let mut holds = false;
        while let Some(range) = ranges.next()? {
            holds |= (range.begin..range.end).contains(&address);
        }
        if holds {
            found.push(scope_of(dwarf, unit, entry));
        }
    }
    Ok(found)
}

fn scope_of<'d>(dwarf: &Dwarf<Slice<'d>>, unit: &Unit<Slice<'d>>, entry: &DebugInfoEntry<'d>) -> InlinedScope {
    InlinedScope {
        function: function_name(dwarf, unit, entry).unwrap_or_default(),
        call_file: entry_attribute_number(constants::DW_AT_call_file, entry)
            .and_then(|file| file_name(dwarf, unit, file))
            .unwrap_or_default(),
        call_line: entry_attribute_number(constants::DW_AT_call_line, entry)
            .and_then(|line| u32::try_from(line).ok())
            .unwrap_or(0),
    }
}

fn entry_attribute_number(
    name: gimli::DwAt,
    entry: &gimli::DebuggingInformationEntry<EndianSlice<'_, LittleEndian>, usize>,
) -> Option<u64> {
    entry.attr(name).and_then(|attr| attr.udata_value())
}

/// The linkage name of a function, or its name, of the entry itself or of the one that it was made from.
fn function_name<'d>(dwarf: &Dwarf<Slice<'d>>, unit: &Unit<Slice<'d>>, entry: &DebugInfoEntry<'d>) -> Option<String> {
    let mut current = entry.clone();
    let mut plain = None;
    for _ in 0..MOST_ORIGINS {
        if let Some(name) = text_of(dwarf, unit, &current, constants::DW_AT_linkage_name) {
            return Some(name);
        }
        plain = plain.or_else(|| text_of(dwarf, unit, &current, constants::DW_AT_name));
        let origin = [constants::DW_AT_abstract_origin, constants::DW_AT_specification]
            .into_iter()
            .find_map(|name| origin_of(unit, &current, name));
        match origin.and_then(|offset| unit.entry(offset).ok()) {
            Some(next) => current = next,
            None => break,
        }
    }
    plain
}

fn origin_of(unit: &Unit<Slice<'_>>, entry: &DebugInfoEntry<'_>, name: gimli::DwAt) -> Option<UnitOffset> {
    match entry.attr_value(name)? {
        AttributeValue::UnitRef(offset) => Some(offset),
        AttributeValue::DebugInfoRef(offset) => offset.to_unit_offset(&unit.header),
        _ => None,
    }
}

fn text_of<'d>(
    dwarf: &Dwarf<Slice<'d>>,
    unit: &Unit<Slice<'d>>,
    entry: &DebugInfoEntry<'d>,
    name: gimli::DwAt,
) -> Option<String> {
    let text = dwarf.attr_string(unit, entry.attr_value(name)?).ok()?;
    Some(text.to_string_lossy().into_owned())
}

/// A file of the unit's line table.
fn file_name(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>, number: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let path = header.file(number)?.path_name();
    Some(dwarf.attr_string(unit, path).ok()?.to_string_lossy().into_owned())
}
