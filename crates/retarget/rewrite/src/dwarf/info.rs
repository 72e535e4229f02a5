//! The tree of entries: sizes of functions and blocks, and the base addresses of lists.

use super::cursor::Cursor;
use super::{DebugTargets, Dwarf, expression};
use crate::fix::{OffsetRuns, ReplacedContent, ReplacedSection, SectionOffset};
use crate::refuse_layout;
use gimli::{AttributeValue, DebugAbbrev, DebugInfo, DebugTypes, DwAt, LittleEndian, UnitHeader};
use hotswap_code_object::ObjectKind;
use hotswap_report::Diagnostic;
use std::collections::{HashMap, HashSet};

type Slice<'a> = gimli::EndianSlice<'a, LittleEndian>;

/// The properties of a unit that its lists need.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DwarfUnit {
    /// The base of their distances.
    pub(super) base: Option<SectionOffset>,
    /// The start of its addresses in `.debug_addr`.
    pub(super) addresses: u64,
}

/// References from entries to lists.
#[derive(Default)]
pub(super) struct Units {
    /// By the start that the unit states for its lists in `.debug_rnglists` or `.debug_loclists`.
    pub(super) lists: HashMap<(&'static str, u64), DwarfUnit>,
    pub(super) pairs: Vec<BasedList>,
    /// Words of `.debug_addr` that are addresses of LDS.
    pub(super) foreign: HashSet<u64>,
}

/// A list of DWARF 4.
pub(super) struct BasedList {
    pub(super) list: ListOffset,
    /// The base of the unit that refers to it.
    pub(super) base: Option<SectionOffset>,
}

/// The offset of a list in the section of that name.
#[derive(Clone, Copy)]
pub(super) struct ListOffset {
    pub(super) section: &'static str,
    pub(super) offset: u64,
}

/// A field to change: position, width, and its new value.
struct DwarfPatch {
    offset: usize,
    size: usize,
    is_leb: bool,
    value: u64,
}

pub(super) fn rewrite_units(source: &DebugTargets<'_>, dwarf: &mut Dwarf) -> Result<Units, Diagnostic> {
    let mut units = Units::default();
    let image = source.image;
    let Some(abbreviations) = image.find(".debug_abbrev") else { return Ok(units) };
    let abbreviations = DebugAbbrev::new(image.sections[abbreviations].bytes, LittleEndian);
    // In a relocatable file types may have sections of their own, of the same name.
    for (number, section) in image.sections.iter().enumerate().filter(|(_, section)| is_tree(section.name)) {
        let patches = read_section(source, number, &abbreviations, &mut units)?;
        if patches.is_empty() {
            continue;
        }
        let mut bytes = section.bytes.to_vec();
        for patch in &patches {
            patch.write(&mut bytes).ok_or_else(|| {
                refuse_layout(
                    section.offset + patch.offset as u64,
                    "the size of a function or block does not fit into its field any more",
                )
            })?;
        }
        let content = ReplacedContent { bytes, chunks: OffsetRuns::default() };
        dwarf.replaced.push(ReplacedSection { section: number, content });
    }
    Ok(units)
}

/// Whether a section of that name holds trees of entries; that of types lacks sizes of code.
fn is_tree(name: &str) -> bool {
    matches!(name, ".debug_info" | TYPES)
}

/// Types in DWARF 4.
const TYPES: &str = ".debug_types";

/// Reads the units of one section; returns the fields to change.
fn read_section(
    source: &DebugTargets<'_>,
    info: usize,
    abbreviations: &DebugAbbrev<Slice<'_>>,
    units: &mut Units,
) -> Result<Vec<DwarfPatch>, Diagnostic> {
    let section = &source.image.sections[info];
    let relocated = relocated_bytes(source, info);
    let bytes = relocated.as_deref().unwrap_or(section.bytes);
    let mut reader = AttributeReader { source, info, units, patches: Vec::new(), unit: DwarfUnit::default(), width: 4 };
    if section.name == TYPES {
        let mut headers = DebugTypes::new(bytes, LittleEndian).units();
        while let Some(header) = headers.next().map_err(|error| unreadable_info(section.offset, error))? {
            reader.read_unit(&header, abbreviations)?;
        }
        return Ok(reader.patches);
    }
    let mut headers = DebugInfo::new(bytes, LittleEndian).units();
    while let Some(header) = headers.next().map_err(|error| unreadable_info(section.offset, error))? {
        reader.read_unit(&header, abbreviations)?;
    }
    Ok(reader.patches)
}

fn unreadable_info(offset: u64, error: gimli::Error) -> Diagnostic {
    refuse_layout(offset, format!("the debug information cannot be read: {error}"))
        .advise("link without debug information (-Wl,--strip-debug), or report it with the file")
}

/// A relocatable file has offsets into other sections in its relocations only.
fn relocated_bytes(source: &DebugTargets<'_>, info: usize) -> Option<Vec<u8>> {
    if source.image.kind == ObjectKind::Linked {
        return None;
    }
    let mut bytes = source.image.sections[info].bytes.to_vec();
    for ((_, offset), (owner, value)) in source.fields.iter().filter(|((section, _), _)| *section == info) {
        let is_code = owner.is_some_and(|owner| source.image.sections[owner].is_loaded());
        let field = bytes.get_mut(*offset as usize..).and_then(|bytes| bytes.get_mut(..4));
        if let Some(field) = field.filter(|_| !is_code) {
            field.copy_from_slice(&(*value as u32).to_le_bytes());
        }
    }
    Some(bytes)
}

struct AttributeReader<'r> {
    source: &'r DebugTargets<'r>,
    info: usize,
    units: &'r mut Units,
    patches: Vec<DwarfPatch>,
    unit: DwarfUnit,
    /// Bytes of an offset into a section.
    width: usize,
}

/// The attributes of one entry that matter.
#[derive(Default)]
struct DieAttributes {
    low: Option<Address>,
    /// Sizes from the low address on.
    sizes: Vec<DistanceField>,
    entry: Option<DistanceField>,
    lists: Vec<ListOffset>,
    bases: Vec<ListOffset>,
    addresses: Option<u64>,
    /// The fields of all other addresses.
    others: Vec<AddressField>,
    numbers: Vec<ReferenceField>,
    expressions: Vec<ExpressionBytes>,
}

/// A distance from the low address of an entry.
struct DistanceField {
    at: usize,
    /// Bytes of the field.
    size: usize,
    is_leb: bool,
    value: u64,
}

struct AddressField {
    at: u64,
    value: u64,
}

/// An offset into another section.
struct ReferenceField {
    at: usize,
    /// Bytes of the field.
    size: usize,
    section: &'static str,
    offset: u64,
}

struct ExpressionBytes {
    at: u64,
    bytes: Vec<u8>,
}

/// An address in an attribute.
enum Address {
    /// In the field at this offset, with its content.
    Field(u64, u64),
    /// The index of a word in `.debug_addr`.
    Index(u64),
}

impl AttributeReader<'_> {
    fn read_unit(
        &mut self,
        header: &UnitHeader<Slice<'_>>,
        abbreviations: &DebugAbbrev<Slice<'_>>,
    ) -> Result<(), Diagnostic> {
        let start = header.debug_info_offset().map(|offset| offset.0);
        let start = start.or_else(|| header.debug_types_offset().map(|offset| offset.0)).unwrap_or(0);
        let file = self.source.image.sections[self.info].offset + start as u64;
        if header.address_size() != 8 {
            return Err(refuse_layout(file, "the debug information has addresses that are not 8 bytes"));
        }
        let abbreviations = header.abbreviations(abbreviations).map_err(|one| unit_info_error(one, file))?;
        let mut raw = header.entries_raw(&abbreviations, None).map_err(|one| unit_info_error(one, file))?;
        self.width = usize::from(header.format().word_size());
        // Addresses follow a header of a length, a version and two sizes.
        self.unit = DwarfUnit { base: None, addresses: if self.width == 8 { 16 } else { 8 } };
        let mut is_root = true;
        while !raw.is_empty() {
            let Some(abbreviation) = raw.read_abbreviation().map_err(|one| unit_info_error(one, file))? else {
                continue;
            };
            let mut entry = DieAttributes::default();
            for spec in abbreviation.attributes() {
                let at = start + raw.next_offset().0;
                let attribute = raw.read_attribute_inline(*spec).map_err(|one| unit_info_error(one, file))?;
                let size = start + raw.next_offset().0 - at;
                entry.take_attribute(spec.name(), attribute.raw_value(), at, size, header.version());
            }
            if is_root {
                self.unit.addresses = entry.addresses.unwrap_or(self.unit.addresses);
            }
            self.record_references(&entry)?;
            self.read_die(entry, is_root)?;
            is_root = false;
        }
        Ok(())
    }

    fn read_die(&mut self, entry: DieAttributes, is_root: bool) -> Result<(), Diagnostic> {
        let low = entry.low.as_ref().and_then(|low| self.resolve_address(low));
        if is_root {
            self.unit.base = low;
            for base in &entry.bases {
                self.units.lists.insert((base.section, base.offset), self.unit);
            }
        }
        let base = self.unit.base;
        self.units.pairs.extend(entry.lists.iter().map(|list| BasedList { list: *list, base }));
        let Some(low) = low else { return Ok(()) };
        for field in &entry.sizes {
            self.add_patch(field, self.source.new_size(low, field.value))?;
        }
        if let Some(field) = &entry.entry {
            self.add_patch(field, self.source.new_distance(low, field.value))?;
        }
        Ok(())
    }

    /// Records references to other sections without a relocation.
    fn record_references(&mut self, entry: &DieAttributes) -> Result<(), Diagnostic> {
        if self.source.image.kind != ObjectKind::Linked {
            return Ok(());
        }
        for field in &entry.others {
            self.source.record_address(self.info, field.at, field.value);
        }
        for field in &entry.numbers {
            self.source.note_number(self.info, field.at as u64, field.size, field.section, field.offset);
            if field.section == ".debug_macro" {
                self.record_macros(field.offset)?;
            }
        }
        for ExpressionBytes { at, bytes } in &entry.expressions {
            let foreign = expression::record_addresses(self.source, (self.info, self.width), *at, bytes)?;
            self.units.foreign.extend(foreign.into_iter().filter_map(|index| self.unit.address_index_position(index)));
        }
        Ok(())
    }

    /// Records the reference to the line table in the header of the macros of a unit.
    fn record_macros(&mut self, offset: u64) -> Result<(), Diagnostic> {
        let Some(section) = self.source.image.find(".debug_macro") else { return Ok(()) };
        let mut cursor = Cursor::new(&self.source.image.sections[section]);
        cursor.at = usize::try_from(offset).unwrap_or(usize::MAX).min(cursor.end);
        let (_, flags) = (cursor.read_number(2)?, cursor.read_number(1)?);
        if flags & 2 != 0 {
            let (at, size) = (cursor.at as u64, if flags & 1 != 0 { 8 } else { 4 });
            let line = cursor.read_number(size)?;
            self.source.note_number(section, at, size, ".debug_line", line);
        }
        Ok(())
    }

    fn add_patch(&mut self, field: &DistanceField, new: Option<u64>) -> Result<(), Diagnostic> {
        let file = self.source.image.sections[self.info].offset + field.at as u64;
        let value =
            new.ok_or_else(|| refuse_layout(file, "a function or block ends where no instruction is any more"))?;
        if value != field.value {
            self.patches.push(DwarfPatch { offset: field.at, size: field.size, is_leb: field.is_leb, value });
        }
        Ok(())
    }

    fn resolve_address(&self, address: &Address) -> Option<SectionOffset> {
        match *address {
            Address::Field(offset, stated) => self.source.record_address(self.info, offset, stated),
            Address::Index(index) => self.source.indexed_place(self.unit.addresses, index),
        }
    }
}

fn unit_info_error(error: gimli::Error, file: u64) -> Diagnostic {
    unreadable_info(file, error)
}

impl DieAttributes {
    fn take_attribute(&mut self, name: DwAt, value: AttributeValue<Slice<'_>>, at: usize, size: usize, version: u16) {
        self.take_foreign(name, &value, at, size, version);
        match (name, &value) {
            (gimli::DW_AT_low_pc, AttributeValue::Addr(stated)) => self.low = Some(Address::Field(at as u64, *stated)),
            (gimli::DW_AT_low_pc, AttributeValue::DebugAddrIndex(index)) => {
                self.low = Some(Address::Index(index.0 as u64))
            }
            (gimli::DW_AT_high_pc, value) => {
                self.sizes.extend(DistanceField::of_attribute(value, at, size));
            }
            (gimli::DW_AT_entry_pc, value) => self.entry = DistanceField::of_attribute(value, at, size),
            (gimli::DW_AT_addr_base, AttributeValue::SecOffset(base)) => self.addresses = Some(*base as u64),
            (gimli::DW_AT_rnglists_base, AttributeValue::SecOffset(base)) => {
                self.bases.push(ListOffset { section: ".debug_rnglists", offset: *base as u64 });
            }
            (gimli::DW_AT_loclists_base, AttributeValue::SecOffset(base)) => {
                self.bases.push(ListOffset { section: ".debug_loclists", offset: *base as u64 });
            }
            (gimli::DW_AT_ranges, AttributeValue::SecOffset(offset)) => {
                self.lists.push(ListOffset { section: ".debug_ranges", offset: *offset as u64 });
            }
            (_, AttributeValue::SecOffset(offset)) if is_location(name) => {
                self.lists.push(ListOffset { section: ".debug_loc", offset: *offset as u64 });
            }
            _ => {}
        }
    }
}

impl DistanceField {
    /// Returns `None` for a value that is not an unsigned number: an address.
    fn of_attribute(value: &AttributeValue<Slice<'_>>, at: usize, size: usize) -> Option<Self> {
        let (is_leb, value) = match *value {
            AttributeValue::Data1(value) => (false, u64::from(value)),
            AttributeValue::Data2(value) => (false, u64::from(value)),
            AttributeValue::Data4(value) => (false, u64::from(value)),
            AttributeValue::Data8(value) => (false, value),
            AttributeValue::Udata(value) => (true, value),
            _ => return None,
        };
        Some(Self { at, size, is_leb, value })
    }
}

impl DieAttributes {
    /// Collects references to other sections.
    fn take_foreign(&mut self, name: DwAt, value: &AttributeValue<Slice<'_>>, at: usize, size: usize, version: u16) {
        match value {
            AttributeValue::Addr(stated) if name != gimli::DW_AT_low_pc => {
                self.others.push(AddressField { at: at as u64, value: *stated });
            }
            AttributeValue::Exprloc(expression) => {
                let bytes = expression.0.slice().to_vec();
                self.expressions.push(ExpressionBytes { at: (at + size - bytes.len()) as u64, bytes });
            }
            AttributeValue::Block(block) if is_location(name) => {
                let bytes = block.slice().to_vec();
                self.expressions.push(ExpressionBytes { at: (at + size - bytes.len()) as u64, bytes });
            }
            AttributeValue::SecOffset(number) => {
                let section = match name {
                    gimli::DW_AT_stmt_list => ".debug_line",
                    gimli::DW_AT_rnglists_base => ".debug_rnglists",
                    gimli::DW_AT_loclists_base => ".debug_loclists",
                    gimli::DW_AT_macros | gimli::DW_AT_GNU_macros => ".debug_macro",
                    gimli::DW_AT_ranges if version >= 5 => ".debug_rnglists",
                    _ if is_location(name) && version >= 5 => ".debug_loclists",
                    _ => return,
                };
                self.numbers.push(ReferenceField { at, size, section, offset: *number as u64 });
            }
            _ => {}
        }
    }
}

/// Attributes that may have a list of locations.
fn is_location(name: DwAt) -> bool {
    matches!(
        name,
        gimli::DW_AT_location
            | gimli::DW_AT_frame_base
            | gimli::DW_AT_string_length
            | gimli::DW_AT_return_addr
            | gimli::DW_AT_data_member_location
            | gimli::DW_AT_segment
            | gimli::DW_AT_static_link
            | gimli::DW_AT_use_location
            | gimli::DW_AT_vtable_elem_location
    )
}

impl DwarfPatch {
    fn write(&self, bytes: &mut [u8]) -> Option<()> {
        let field = bytes.get_mut(self.offset..)?.get_mut(..self.size)?;
        let bits = if self.is_leb { 7 } else { 8 };
        let mut value = self.value;
        let last = field.len().checked_sub(1)?;
        for (number, byte) in field.iter_mut().enumerate() {
            let more = self.is_leb && number < last;
            *byte = (value & ((1 << bits) - 1)) as u8 | if more { 0x80 } else { 0 };
            value = value.checked_shr(bits).unwrap_or(0);
        }
        (value == 0).then_some(())
    }
}

impl DebugTargets<'_> {
    /// The place to which an address of `.debug_addr` refers.
    pub(super) fn indexed_place(&self, base: u64, index: u64) -> Option<SectionOffset> {
        let section = self.image.find(".debug_addr")?;
        let offset = index.checked_mul(8)?.checked_add(base)?;
        let mut cursor = Cursor::new(&self.image.sections[section]);
        cursor.at = usize::try_from(offset).ok()?;
        let stated = cursor.read_number(8).ok()?;
        self.referenced_place(section, offset, stated)
    }
}

impl DwarfUnit {
    /// The position of the address with that index in `.debug_addr`.
    pub(super) fn address_index_position(&self, index: u64) -> Option<u64> {
        index.checked_mul(8)?.checked_add(self.addresses)
    }
}
