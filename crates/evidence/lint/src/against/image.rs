//! The contents of the files except instructions: symbols, relocations, data, kernel descriptors, metadata.
//!
//! Permitted differences: positions of moved parts, sizes of code, the target in header and metadata, counts of
//! registers (no fewer), user registers where the target needs more, the private segments of kernels that spill registers, the lines that a kernel prefetches.

use super::entry_copies::RaisedKernel;
use super::map::AddressMap;
use super::spill::{self, PrivateNeeds};
use super::{dynamic, headers, notes};
use crate::finding::{FILE, LintFinding};
use hotswap_code_object::image::{Formula, ObjectImage, Rela, SectionPart, SymbolRow};
use hotswap_code_object::kernel_descriptor::{ENABLE_SCRATCH, KernelDescriptor, SCRATCH, USER_SGPRS};
use hotswap_code_object::{CodeObject, ObjectKind, certificate_note};
use object::elf;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Maps of the sections of code.
type SectionAddressMaps = BTreeMap<usize, AddressMap>;

/// Bytes of a kernel descriptor.
const DESCRIPTOR: usize = 64;
/// The distance of a kernel's code from its descriptor.
const ENTRY: &str = "kernel_code_entry_byte_offset";
/// Vector registers, which follow the counts of the metadata, and a hint, which may grow.
const VGPRS: &str = "granulated_workitem_vgpr_count";
const PREFETCH: &str = "inst_pref_size";
/// Maximum allocation granule of vector registers in a descriptor.
const GRANULE: u64 = 32;

/// Both files, with the maps of their code.
pub(super) struct ComparedFiles<'f, 'a, 'b> {
    pub(super) old: &'f ObjectImage<'a>,
    pub(super) new: &'f ObjectImage<'b>,
    maps: &'f SectionAddressMaps,
    needs: &'f PrivateNeeds,
    /// Kernels whose user SGPRs were raised.
    raised: &'f [RaisedKernel],
}

/// Compares headers and the tables of the loader. Files that differ in these are not compared any further.
pub(super) fn check_headers(
    old: &ObjectImage<'_>,
    new: &ObjectImage<'_>,
    maps: &SectionAddressMaps,
    findings: &mut Vec<LintFinding>,
) {
    let needs = PrivateNeeds::default();
    let files = ComparedFiles { old, new, maps, needs: &needs, raised: &[] };
    if let Err(what) = files.compare_sections() {
        report_difference("sections", Err(what), findings);
        return;
    }
    report_difference("headers", headers::compare_headers(&files), findings);
    report_difference("symbols", dynamic::symbol_fields(&files), findings);
    report_difference("dynamic section", dynamic::compare_dynamic(&files), findings);
}

/// Adds a finding where the comparison of that part has found a difference.
fn report_difference(part: &str, result: Result<(), String>, findings: &mut Vec<LintFinding>) {
    findings.extend(result.err().map(|what| LintFinding::of_file(&FILE, format!("{part}: {what}"))));
}

/// Compares the rest of both files, whose headers were compared.
pub(super) fn compare_files(
    (old_object, old): (&CodeObject<'_>, &ObjectImage<'_>),
    (new_object, new): (&CodeObject<'_>, &ObjectImage<'_>),
    (maps, needs, raised): (&SectionAddressMaps, &PrivateNeeds, &[RaisedKernel]),
    findings: &mut Vec<LintFinding>,
) {
    let files = ComparedFiles { old, new, maps, needs, raised };
    if let Err(what) = files.compare_sections() {
        findings.push(LintFinding::of_file(&FILE, what));
        return;
    }
    report_difference("symbols", files.compare_symbols(), findings);
    report_difference("relocations", files.compare_relocations(), findings);
    report_difference("descriptors", files.compare_descriptors(old_object, new_object), findings);
    report_difference("metadata", notes::compare_notes((old_object, old), (new_object, new), needs), findings);
    report_difference("data", files.compare_data(old_object), findings);
    if let Err(error) = new_object.check_descriptors() {
        findings.push(LintFinding::of_file(&FILE, error.what));
    }
}

impl ComparedFiles<'_, '_, '_> {
    /// The rewritten file has the same sections, followed by its certificate.
    fn compare_sections(&self) -> Result<(), String> {
        let own = usize::from(certificate_note(self.new.bytes()).is_some());
        let had = usize::from(certificate_note(self.old.bytes()).is_some());
        if self.old.kind != self.new.kind || self.new.sections.len() - own != self.old.sections.len() - had {
            return Err("the number of sections differs".to_owned());
        }
        for (old, new) in self.old.sections.iter().zip(&self.new.sections) {
            // Relabelling may move the note out of the loaded part.
            let flags = old.flags == new.flags || old.kind == elf::SHT_NOTE;
            if old.name != new.name || !has_same_header(old, new) || !flags {
                return Err(format!("the section `{}` is described otherwise", old.name));
            }
        }
        Ok(())
    }

    /// The new position of an address, or of an offset of a section of a relocatable file.
    pub(super) fn new_position(&self, section: usize, value: u64, end: bool) -> Option<u64> {
        let (old, new) = (self.old.sections.get(section)?, self.new.sections.get(section)?);
        let offset = value.wrapping_sub(section_base_address(old, self.old));
        let moved = match self.maps.get(&section) {
            Some(map) if offset <= u64::from(map.old_size) => {
                let offset = offset as u32;
                u64::from(if end { map.new_end(offset)? } else { map.new_start(offset)? })
            }
            _ => offset,
        };
        Some(moved.wrapping_add(section_base_address(new, self.old)))
    }

    fn compare_symbols(&self) -> Result<(), String> {
        let old = self.old.symbol_tables().map_err(|error| error.what)?;
        let new = self.new.symbol_tables().map_err(|error| error.what)?;
        for (before, after) in old.iter().zip(&new) {
            if before.rows.len() != after.rows.len() {
                return Err("some are missing, or new".to_owned());
            }
            for (before, after) in before.rows.iter().zip(&after.rows) {
                self.compare_symbol(before, after)?;
            }
        }
        Ok(())
    }

    fn compare_symbol(&self, old: &SymbolRow<'_>, new: &SymbolRow<'_>) -> Result<(), String> {
        if old.name != new.name || !has_same_symbol_kind(old, new) {
            return Err(format!("`{}` is described otherwise", old.name));
        }
        let Some(section) = old.section else {
            return match (old.value, old.size) == (new.value, new.size) {
                true => Ok(()),
                false => Err(format!("`{}` has another value", old.name)),
            };
        };
        // Relabelling may move the metadata out of the loaded part; its symbol, to which nothing refers, then stays.
        let leaves = self.old.sections[section].kind == elf::SHT_NOTE && !self.new.sections[section].is_loaded();
        if leaves && (old.value, old.size) == (new.value, new.size) {
            return Ok(());
        }
        let expected = if leaves { Some(old.value) } else { self.new_position(section, old.value, false) };
        if expected != Some(new.value) {
            return Err(format!(
                "`{}` is at {:#x}, and what it stood for is at {:#x}",
                old.name,
                new.value,
                expected.unwrap_or(0)
            ));
        }
        let size = match old.size {
            0 => Some(0),
            size => self.new_position(section, old.value + size, true).map(|end| end.wrapping_sub(new.value)),
        };
        match size == Some(new.size) {
            true => Ok(()),
            false => Err(format!(
                "`{}` has {:#x} bytes, and what it stood for has {:#x}",
                old.name,
                new.size,
                size.unwrap_or(0)
            )),
        }
    }

    fn compare_relocations(&self) -> Result<(), String> {
        let (old, new) = (self.old.relocations(), self.new.relocations());
        let (old, new) = (old.map_err(|error| error.what)?, new.map_err(|error| error.what)?);
        let tables = self.old.symbol_tables().map_err(|error| error.what)?;
        for (before, after) in old.iter().zip(&new) {
            // Debug information is compared by its lines.
            if self.old.sections[before.target].name.starts_with(".debug_") {
                continue;
            }
            let (before_rows, after_rows) = (collect_relocation_rows(before)?, collect_relocation_rows(after)?);
            let symbols = tables.iter().find(|table| table.section == before.symbols).map(|table| &table.rows);
            if before_rows.len() != after_rows.len() {
                return Err("some are missing, or new".to_owned());
            }
            let found: BTreeSet<RelocationKey> = after_rows.iter().map(RelocationKey::of_row).collect();
            for row in &before_rows {
                let symbol = symbols.and_then(|rows| rows.get(row.symbol as usize));
                let expected = self.permitted_relocations(before.target, row, symbol);
                if !expected.iter().any(|one| found.contains(&RelocationKey::of_row(one))) {
                    return Err(format!("that at {:#x} is about something else", row.place));
                }
            }
        }
        Ok(())
    }

    /// The permitted new forms of a relocation.
    fn permitted_relocations(&self, target: usize, row: &Rela, symbol: Option<&SymbolRow<'_>>) -> Vec<Rela> {
        let section = match self.old.kind {
            ObjectKind::Linked => self.old.section_at(row.place),
            ObjectKind::Relocatable => Some(target),
        };
        let Some(place) = section.and_then(|section| self.new_field_position(section, row.place)) else {
            return Vec::new();
        };
        let same = Rela { place, ..*row };
        let mut all = vec![same];
        let addend = match (row.kind.formula, symbol.and_then(|symbol| Some((symbol, symbol.section?)))) {
            (Formula::LoadRelative, _) => {
                let to = row.addend as u64;
                self.old.section_at(to).and_then(|section| self.new_position(section, to, false)).map(|to| to as i64)
            }
            // Into a section by its symbol: the addend is the position.
            (_, Some((symbol, section))) if self.maps.contains_key(&section) => {
                let to = symbol.value.wrapping_add_signed(row.addend);
                let base = self.new_position(section, symbol.value, false);
                base.zip(self.new_position(section, to, false)).map(|(base, to)| to.wrapping_sub(base) as i64)
            }
            _ => None,
        };
        if let Some(addend) = addend.filter(|addend| *addend != row.addend) {
            let moved = Rela { addend, ..same };
            // Distances from the field count from it; their targets are compared with the code.
            match row.kind.is_relative() {
                true => all.push(moved),
                false => all = vec![moved],
            }
        }
        all
    }

    /// The new position of a field inside of an instruction, or of data.
    fn new_field_position(&self, section: usize, at: u64) -> Option<u64> {
        if let Some(place) = self.new_position(section, at, false) {
            return Some(place);
        }
        // In an instruction of a site: at the same distance from its start, if it is unchanged; its position is that of
        // the site's last words.
        let map = self.maps.get(&section)?;
        let offset = (at - linked_section_base(self.old, self.old, section)) as u32;
        let site = map.sites.iter().find(|site| (site.old..site.old + site.old_size).contains(&offset))?;
        let from_end = site.old + site.old_size - offset;
        Some(u64::from(site.new.end - from_end) + linked_section_base(self.new, self.old, section))
    }

    fn compare_descriptors(&self, old: &CodeObject<'_>, new: &CodeObject<'_>) -> Result<(), String> {
        if old.descriptors().len() != new.descriptors().len() {
            return Err("some are missing, or new".to_owned());
        }
        let kernels = old.note().kernels.iter().enumerate();
        for ((number, kernel), (before, after)) in kernels.zip(old.descriptors().iter().zip(new.descriptors())) {
            // Both with the fields of the original: the steppings have the same.
            let found = read_descriptor(old, &before.range, old).zip(read_descriptor(new, &after.range, old));
            let (was, is) = found.ok_or_else(|| format!("that of `{}` cannot be read", kernel.name))?;
            let needed = self.needs.needed_size(spill::kernel_symbol(kernel));
            let raised = self.raised.iter().find(|raised| raised.number == number);
            for ((field, value), (_, now)) in was.fields().zip(is.fields()) {
                let name = field.name;
                // The position of the code is compared below; in a relocatable file a linker fills it in.
                let entry = name == ENTRY && self.old.kind == ObjectKind::Linked;
                let free = entry || name == VGPRS || name == PREFETCH && now >= value;
                let expected = match needed {
                    Some(bytes) if name == SCRATCH.name => u64::from(bytes),
                    Some(_) if name == ENABLE_SCRATCH.name => 1,
                    _ if name == USER_SGPRS.name => raised.map_or(value, |raised| u64::from(raised.raised)),
                    _ => value,
                };
                if expected != now && !free {
                    return Err(format!("`{}` has {now:#x} as {name}, and had {value:#x}", kernel.name));
                }
            }
            self.compare_vgprs(number, (old, &before.range), (new, &after.range))?;
            self.code_of(kernel.name, before.entry, after.entry)?;
            self.compare_reserved_bits(kernel.name, (old, &before.range), (new, &after.range))?;
        }
        Ok(())
    }

    /// A descriptor allocates what it did before, or the new count of the metadata and at most one granule more.
    fn compare_vgprs(
        &self,
        number: usize,
        (old, before): (&CodeObject<'_>, &Range<usize>),
        (new, after): (&CodeObject<'_>, &Range<usize>),
    ) -> Result<(), String> {
        let (was, is) = (granted_vgprs(old, before, old), granted_vgprs(new, after, old));
        let (count, had) = (note_vgpr_count(new, number), note_vgpr_count(old, number));
        let fits = is.zip(count).is_some_and(|(is, count)| is >= count && is - count < GRANULE);
        match is == was || count > had && fits {
            true => Ok(()),
            false => {
                Err(format!("`{}` is granted other vector registers than it uses", old.note().kernels[number].name))
            }
        }
    }

    fn code_of(&self, kernel: &str, old: u64, new: u64) -> Result<(), String> {
        if self.old.kind == ObjectKind::Relocatable {
            return Ok(());
        }
        let expected = self.old.section_at(old).and_then(|section| self.new_position(section, old, false));
        match expected == Some(new) {
            true => Ok(()),
            false => Err(format!("`{kernel}` begins at {new:#x}, and its code is at {:#x}", expected.unwrap_or(0))),
        }
    }

    /// Bits that no field covers are unchanged.
    fn compare_reserved_bits(
        &self,
        kernel: &str,
        (old, before): (&CodeObject<'_>, &Range<usize>),
        (new, after): (&CodeObject<'_>, &Range<usize>),
    ) -> Result<(), String> {
        match mask_descriptor_fields(old, before, old) == mask_descriptor_fields(new, after, old) {
            true => Ok(()),
            false => Err(format!("that of `{kernel}` has other bits in places without a meaning")),
        }
    }

    /// Sections that are neither code nor tables have unchanged bytes, except for words with addresses.
    fn compare_data(&self, object: &CodeObject<'_>) -> Result<(), String> {
        let mut moving: BTreeMap<usize, Vec<Range<usize>>> = BTreeMap::new();
        for descriptor in object.descriptors() {
            let found = self
                .old
                .sections
                .iter()
                .enumerate()
                .find_map(|(number, part)| Some((number, descriptor_range_within(part, descriptor)?)));
            found.into_iter().for_each(|(number, range)| moving.entry(number).or_default().push(range));
        }
        for rows in self.old.relocations().map_err(|error| error.what)? {
            for row in rows.iter().filter_map(Result::ok) {
                let section = match self.old.kind {
                    ObjectKind::Linked => self.old.section_at(row.place),
                    ObjectKind::Relocatable => Some(rows.target),
                };
                let Some(section) = section else { continue };
                let base = if self.old.kind == ObjectKind::Linked { self.old.sections[section].address } else { 0 };
                let start = (row.place - base) as usize;
                moving.entry(section).or_default().push(start..start + usize::from(row.kind.size));
            }
        }
        for (number, (old, new)) in self.old.sections.iter().zip(&self.new.sections).enumerate() {
            if old.kind == elf::SHT_NOBITS && old.name != ".relro_padding" && old.size != new.size {
                return Err(format!("`{}` has another size", old.name));
            }
            if !is_comparable_data(old) || is_regenerated_section(old) {
                continue;
            }
            let cleared = moving.get(&number).map(Vec::as_slice).unwrap_or_default();
            if with_cleared_ranges(old.bytes, cleared) != with_cleared_ranges(new.bytes, cleared) {
                return Err(format!("`{}` has other bytes", old.name));
            }
        }
        Ok(())
    }
}

fn with_cleared_ranges(bytes: &[u8], ranges: &[Range<usize>]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for range in ranges {
        let range = range.start.min(bytes.len())..range.end.min(bytes.len());
        bytes[range].fill(0);
    }
    bytes
}

/// The descriptor in `range` of `object`, with the fields that the processor of `old` has.
fn read_descriptor<'o>(
    object: &'o CodeObject<'_>,
    range: &Range<usize>,
    old: &CodeObject<'_>,
) -> Option<KernelDescriptor<&'o [u8]>> {
    KernelDescriptor::new(object.bytes().get(range.clone())?, old.target_id().processor)
}

fn granted_vgprs(object: &CodeObject<'_>, range: &Range<usize>, old: &CodeObject<'_>) -> Option<u64> {
    read_descriptor(object, range, old)?.vector_registers().map(u64::from)
}

fn has_same_header(one: &SectionPart<'_>, other: &SectionPart<'_>) -> bool {
    one.kind == other.kind
        && one.link == other.link
        && one.info == other.info
        && one.align == other.align
        && one.entry_size == other.entry_size
}

fn section_base_address(part: &SectionPart<'_>, old: &ObjectImage<'_>) -> u64 {
    if old.kind == ObjectKind::Linked { part.address } else { 0 }
}

fn has_same_symbol_kind(one: &SymbolRow<'_>, other: &SymbolRow<'_>) -> bool {
    one.section == other.section && one.kind == other.kind && one.is_global == other.is_global
}

fn collect_relocation_rows(rows: &hotswap_code_object::image::RelocationSection<'_>) -> Result<Vec<Rela>, String> {
    rows.iter().map(|row| row.map_err(|error| error.what)).collect()
}

/// A relocation, compared as a member of a set: the order of rows may follow their positions.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct RelocationKey {
    place: u64,
    kind: u32,
    symbol: u32,
    addend: i64,
}

impl RelocationKey {
    fn of_row(row: &Rela) -> Self {
        Self { place: row.place, kind: row.kind.number, symbol: row.symbol, addend: row.addend }
    }
}

fn linked_section_base(image: &ObjectImage<'_>, old: &ObjectImage<'_>, section: usize) -> u64 {
    if old.kind == ObjectKind::Linked { image.sections[section].address } else { 0 }
}

fn note_vgpr_count(object: &CodeObject<'_>, number: usize) -> Option<u64> {
    object.note().kernels[number].vgpr_count
}

fn mask_descriptor_fields(object: &CodeObject<'_>, range: &Range<usize>, old: &CodeObject<'_>) -> Option<[u8; 64]> {
    let mut bytes: [u8; DESCRIPTOR] = object.bytes().get(range.clone())?.try_into().ok()?;
    let mut descriptor = KernelDescriptor::new(&mut bytes[..], old.target_id().processor)?;
    for field in hotswap_code_object::kernel_descriptor::FIELDS {
        let _ = descriptor.set_field(field, 0);
    }
    // The distance to the code.
    bytes[16..24].fill(0);
    Some(bytes)
}

fn descriptor_range_within(
    part: &SectionPart<'_>,
    descriptor: &hotswap_code_object::DescriptorLocation,
) -> Option<Range<usize>> {
    let start = descriptor.range.start.checked_sub(part.offset as usize)?;
    (part.is_in_file() && start + DESCRIPTOR <= part.bytes.len()).then_some(start..start + DESCRIPTOR)
}

/// Names in tables that are not loaded are compared with their sections and symbols.
fn is_comparable_data(part: &SectionPart<'_>) -> bool {
    matches!(part.kind, elf::SHT_PROGBITS | elf::SHT_HASH | elf::SHT_GNU_HASH)
        || part.kind == elf::SHT_STRTAB && part.is_loaded()
}

fn is_regenerated_section(part: &SectionPart<'_>) -> bool {
    part.is_code() || part.name.starts_with(".debug_") || part.name.starts_with(".eh_frame") || part.name == ".got"
}
