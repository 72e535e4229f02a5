//! A code object for the comparison: loaded, with its code and its source lines.

use crate::memory::MemoryImage;
use crate::report::CodePlace;
use hotswap_code_object::image::ObjectImage;
use hotswap_code_object::{CodeObject, SourceLines, certificate_note};
use hotswap_emulator::{DeviceMemory, EmulatedDevice, LoadedObject, SparseMemory};
use hotswap_isa::{Flag, Isa, Target};
use hotswap_report::{Certificate, Diagnostic, MapRun, SectionCertificate, codes};
use std::sync::atomic::AtomicU64;

pub(crate) struct CheckedObject<'a> {
    pub(crate) parsed: CodeObject<'a>,
    pub(crate) image: ObjectImage<'a>,
    pub(crate) loaded: LoadedObject,
    /// Its segments in memory.
    pub(crate) memory: MemoryImage,
    pub(crate) device: EmulatedDevice,
    /// The same, with results of memory operations that are late.
    pub(crate) late_device: EmulatedDevice,
    /// The same, with waves that take turns after each instruction.
    pub(crate) other_order: EmulatedDevice,
    pub(crate) isa: Isa,
    lines: SourceLines,
}

/// Instructions that a wave of a launch executes at most.
const BUDGET: u64 = 50_000;

impl<'a> CheckedObject<'a> {
    /// Loads a code object.
    ///
    /// # Errors
    /// Files that are damaged, and processors that cannot be executed.
    pub(crate) fn load(bytes: &'a [u8]) -> Result<Self, Diagnostic> {
        let parsed = CodeObject::parse(bytes)?;
        let image = ObjectImage::parse(bytes)?;
        let mut memory = SparseMemory::new();
        let loaded = LoadedObject::load(bytes, &mut memory)?;
        let name = loaded.processor;
        let (device, mut late_device, mut other_order) = (new_device(name)?, new_device(name)?, new_device(name)?);
        (late_device.late_completion, other_order.turn) = (true, 1);
        let isa = Isa::new(Target::find(name).ok_or_else(|| unknown_processor_error(name))?);
        let memory = copy_image(&memory);
        let lines = SourceLines::read(bytes);
        Ok(Self { parsed, image, loaded, memory, device, late_device, other_order, isa, lines })
    }

    /// The address in memory of an offset in a section.
    pub(crate) fn memory_address(&self, section: usize, offset: u32) -> u64 {
        self.loaded.sections.get(section).copied().unwrap_or_default().wrapping_add(u64::from(offset))
    }

    /// The section of code and the offset in it of an address in memory.
    pub(crate) fn code_offset(&self, address: u64) -> Option<CodeOffset> {
        let places = self.image.sections.iter().zip(&self.loaded.sections);
        places.enumerate().find_map(|(number, (section, start))| {
            let offset = address.checked_sub(*start).filter(|offset| section.is_code() && *offset < section.size)?;
            Some(CodeOffset { section: number, offset: offset as u32 })
        })
    }

    /// The bytes of a section of code.
    pub(crate) fn section_code(&self, section: usize) -> &'a [u8] {
        self.image.sections.get(section).map_or(&[], |section| section.bytes)
    }

    /// Whether its code has products of matrices. Data between instructions may look like one, which does no harm.
    pub(crate) fn has_products(&self) -> bool {
        let code = self.image.sections.iter().filter(|section| section.is_code());
        code.into_iter().any(|section| {
            let mut rest = section.bytes;
            while !rest.is_empty() {
                let inst = self.isa.decode(rest).ok();
                if inst.as_ref().is_some_and(|inst| inst.is(Flag::Wmma) || inst.is(Flag::Swmmac)) {
                    return true;
                }
                rest = rest.get(inst.map_or(4, |inst| usize::from(inst.len()))..).unwrap_or_default();
            }
            false
        })
    }

    /// A place for people.
    pub(crate) fn code_place(&self, address: u64) -> CodePlace {
        let found = self.code_offset(address);
        let inst = found.and_then(|at| self.isa.decode(self.section_code(at.section).get(at.offset as usize..)?).ok());
        // In a relocatable file, an address is the offset in its section.
        let in_file = match found {
            Some(at) => self.image.sections[at.section].address.wrapping_add(u64::from(at.offset)),
            None => address.wrapping_sub(self.loaded.delta),
        };
        CodePlace {
            address: in_file,
            mnemonic: inst.map_or_else(String::new, |inst| inst.mnemonic().to_owned()),
            line: found.and_then(|at| self.lines.line_at(at.section, u64::from(at.offset))),
        }
    }

    /// Whether a certificate of `other` may say how this object became it: a rewrite is for another processor. If both
    /// are for one, they are both rewritten, and its sites mean nothing here.
    pub(crate) fn may_become(&self, other: &Self) -> bool {
        self.loaded.processor != other.loaded.processor
    }

    /// The certificate of a rewrite, if it has one.
    pub(crate) fn read_certificate(&self) -> Result<Option<Certificate>, Diagnostic> {
        certificate_note(self.parsed.bytes()).map(Certificate::from_bytes).transpose().map_err(
            |error: hotswap_report::CertificateError| {
                Diagnostic::error(codes::MALFORMED, error.to_string()).in_entry(".note.hotswap")
            },
        )
    }
}

/// A place in a section of code.
#[derive(Clone, Copy)]
pub(crate) struct CodeOffset {
    pub(crate) section: usize,
    pub(crate) offset: u32,
}

/// A device that executes within the budget and counts stores of lanes that meet.
fn new_device(name: &'static str) -> Result<EmulatedDevice, Diagnostic> {
    let mut device = EmulatedDevice::new(name).map_err(|_| unknown_processor_error(name))?;
    (device.threads, device.instruction_budget, device.uninterpreted) = (1, Some(BUDGET), true);
    device.meeting_stores = Some(AtomicU64::new(0));
    Ok(device)
}

fn unknown_processor_error(name: &str) -> Diagnostic {
    Diagnostic::error(codes::NOT_CHECKED, format!("code for {name} cannot be executed"))
}

fn copy_image(memory: &SparseMemory) -> MemoryImage {
    let range = memory.ranges().next().unwrap_or_default();
    let mut bytes = vec![0; (range.end - range.start) as usize];
    // The range is the memory's own, so that reading it cannot fail.
    let _ = memory.read(range.start, &mut bytes);
    // Memory consists of whole words.
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    MemoryImage { start: range.start, bytes }
}

/// New offsets of old ones, according to a certificate. Nothing of it is trusted: a wrong one makes a comparison fail.
pub(crate) struct OffsetMap<'c> {
    points: Vec<MapRun>,
    pub(crate) section: &'c SectionCertificate,
}

impl<'c> OffsetMap<'c> {
    pub(crate) fn new(section: &'c SectionCertificate) -> Self {
        let after = section.sites.iter().map(|site| MapRun { old: site.old + site.old_size, new: site.new.end });
        let mut points: Vec<MapRun> = std::iter::once(MapRun { old: 0, new: 0 }).chain(after).collect();
        points.extend(section.runs.iter().copied());
        // Of two points of one offset the later one holds: a run that begins at the end of a site.
        points.sort_by_key(|point| point.old);
        Self { points, section }
    }

    /// The new offset of the code at an old one.
    pub(crate) fn new_offset(&self, old: u32) -> Option<u32> {
        let sites = &self.section.sites;
        let found = self.points.partition_point(|point| point.old <= old).checked_sub(1)?;
        let point = &self.points[found];
        let inside = sites[..sites.partition_point(|site| site.old < old)].last();
        let is_inside = inside.is_some_and(|site| old < site.old + site.old_size);
        if is_inside { None } else { point.new.checked_add(old - point.old) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_report::SiteCertificate;

    #[test]
    fn offsets_follow_sites_and_runs() {
        let site = SiteCertificate { old: 8, old_size: 8, new: 8..32, ..SiteCertificate::default() };
        let runs = vec![MapRun { old: 0x40, new: 0x200 }];
        let section = SectionCertificate { old_size: 0x80, new_size: 0x240, sites: vec![site], runs, number: 1 };
        let map = OffsetMap::new(&section);
        let found = [0, 8, 12, 16, 20, 0x44].map(|old| map.new_offset(old));
        assert_eq!(found, [Some(0), Some(8), None, Some(32), Some(36), Some(0x204)]);
    }
}
