//! Registers beyond those that kernels had: descriptors, notes, and the cost in occupancy.
//!
//! Invariants: a kernel gets at least as many registers as any function that it reaches uses, and its note counts them
//! all.

use super::RegisterUse;
use super::budget::KernelBudget;
use super::spill::{ALIGNMENT, SLOT};
use crate::order::{KernelRecord, NumberChange};
use hotswap_code_object::image::{ObjectImage, SectionPart};
use hotswap_code_object::kernel_descriptor::{ENABLE_SCRATCH, KernelDescriptor, SCRATCH, VGPRS};
use hotswap_code_object::{CodeObject, KernelNumber, with_numbers};
use hotswap_program::{KernelNeeds, occupancy};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::Processor;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// VCC, which the metadata counts as well.
const VCC: u16 = 2;

/// New contents of sections, by section number.
pub(crate) type SectionContents = BTreeMap<usize, Vec<u8>>;

/// The register counts that a kernel is to have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KernelRegisters {
    pub(crate) vgprs: u16,
    pub(crate) sgprs: u16,
    /// Bytes of its private segment if registers are spilled in what it reaches.
    pub(crate) private_segment: Option<u32>,
}

/// The register counts that the kernels of a unit need for the code put into the functions that they reach.
pub(crate) fn needed_registers<'r>(
    kernels: &[KernelBudget],
    uses: impl Iterator<Item = &'r RegisterUse>,
) -> Vec<KernelRegisters> {
    let mut grants = vec![KernelRegisters::default(); kernels.len()];
    for used in uses {
        for number in &used.budget.kernels {
            let grant = &mut grants[*number];
            grant.vgprs = grant.vgprs.max(used.vgprs);
            grant.sgprs = grant.sgprs.max(used.sgprs);
            grant.private_segment = grant.private_segment.max(private_segment(used));
        }
    }
    for (grant, kernel) in grants.iter_mut().zip(kernels) {
        let sgprs = if grant.sgprs > 0 { grant.sgprs + VCC } else { 0 };
        let had = u16::try_from(kernel.needs.sgprs.unwrap_or(0)).unwrap_or(0);
        *grant = KernelRegisters { vgprs: grant.vgprs.max(kernel.granted), sgprs: sgprs.max(had), ..*grant };
    }
    grants
}

/// The bytes of private segment that the slots of a function need.
fn private_segment(used: &RegisterUse) -> Option<u32> {
    let slots = used.spilled.iter().flat_map(|place| &place.list);
    let end = slots.map(|slot| slot.offset + SLOT).max()?;
    Some(end.next_multiple_of(ALIGNMENT))
}

/// The record of a kernel.
pub(crate) fn record_kernel(kernel: &KernelBudget, grant: &KernelRegisters, processor: &Processor) -> KernelRecord {
    let vgprs = NumberChange { before: u32::from(kernel.granted), after: u32::from(grant.vgprs) };
    let sgprs = NumberChange { before: kernel.needs.sgprs.unwrap_or(0), after: u32::from(grant.sgprs) };
    let known = kernel.needs.vgprs.is_some() && kernel.needs.sgprs.is_some();
    let before = KernelNeeds { vgprs: Some(vgprs.before), sgprs: Some(sgprs.before), ..kernel.needs };
    let after = KernelNeeds { vgprs: Some(vgprs.after), sgprs: Some(sgprs.after), ..kernel.needs };
    let waves = occupancy(processor, &before).zip(occupancy(processor, &after)).filter(|_| known);
    let waves =
        waves.map(|(before, after)| NumberChange { before: before.waves_per_simd, after: after.waves_per_simd });
    let had = kernel.private_segment.unwrap_or(0);
    let private_segment = grant.private_segment.map(|after| NumberChange { before: had, after });
    KernelRecord { vgprs, sgprs, waves, private_segment }
}

/// Returns the file, and the sections that hold the new counts. The file is copied only if a descriptor is within code.
pub(crate) fn write_registers<'a>(
    object: &CodeObject<'a>,
    image: &ObjectImage<'_>,
    changed: &BTreeMap<String, KernelRegisters>,
) -> Result<(Cow<'a, [u8]>, SectionContents), Diagnostic> {
    let mut sections = BTreeMap::new();
    if changed.is_empty() {
        return Ok((Cow::Borrowed(object.bytes()), sections));
    }
    let mut data = Cow::Borrowed(object.bytes());
    let processor = object.target_id().processor;
    let mut numbers = Vec::new();
    for (kernel, descriptor) in object.note().kernels.iter().zip(object.descriptors()) {
        let Some(grant) = changed.get(kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name)) else { continue };
        let bytes = descriptor_buffer(image, &descriptor.range, (&mut data, &mut sections));
        let bytes = bytes.and_then(|bytes| KernelDescriptor::new(bytes, processor));
        let missing =
            || layout_error(format!("the descriptor of `{}` has no room for {} registers", kernel.name, grant.vgprs));
        write_descriptor(bytes.ok_or_else(missing)?, processor, grant).ok_or_else(missing)?;
        let counts = [
            (".vgpr_count", kernel.vgpr_count, u64::from(grant.vgprs)),
            (".sgpr_count", kernel.sgpr_count, u64::from(grant.sgprs)),
            (".private_segment_fixed_size", kernel.scratch, u64::from(grant.private_segment.unwrap_or(0))),
        ];
        let raised = counts.into_iter().filter(|(_, old, new)| old.is_some_and(|old| old < *new));
        numbers.extend(raised.map(|(key, _, value)| KernelNumber { symbol: kernel.symbol, key, value }));
    }
    edit_notes(image, &numbers, &mut sections)?;
    Ok((data, sections))
}

/// The buffer to write a descriptor to: a copy of the section that holds it, or of the file.
pub(crate) fn descriptor_buffer<'d>(
    image: &ObjectImage<'_>,
    range: &Range<usize>,
    (data, sections): (&'d mut Cow<'_, [u8]>, &'d mut SectionContents),
) -> Option<&'d mut [u8]> {
    let mut parts = image.sections.iter().enumerate();
    match parts.find_map(|(number, section)| Some((number, range_within_section(section, range)?))) {
        Some((number, own)) => {
            let bytes = sections.entry(number).or_insert_with(|| image.sections[number].bytes.to_vec());
            bytes.get_mut(own)
        }
        None => data.to_mut().get_mut(range.clone()),
    }
}

fn range_within_section(section: &SectionPart<'_>, range: &Range<usize>) -> Option<Range<usize>> {
    let start = range.start.checked_sub(section.offset as usize)?;
    let holds = section.is_in_file() && !section.is_code() && start + range.len() <= section.bytes.len();
    holds.then_some(start..start + range.len())
}

fn write_descriptor(
    mut descriptor: KernelDescriptor<&mut [u8]>,
    processor: &Processor,
    grant: &KernelRegisters,
) -> Option<()> {
    if let Some(bytes) = grant.private_segment {
        descriptor.set_field(SCRATCH, u64::from(bytes))?;
        descriptor.set_field(ENABLE_SCRATCH, 1)?;
    }
    let limits = processor.limits.vgprs(descriptor.wave_size())?;
    if descriptor.vector_registers()? >= u32::from(grant.vgprs) {
        return Some(());
    }
    descriptor.set_field(VGPRS, u64::from(limits.descriptor_blocks(u32::from(grant.vgprs))?))
}

fn edit_notes(
    image: &ObjectImage<'_>,
    numbers: &[KernelNumber<'_>],
    sections: &mut SectionContents,
) -> Result<(), Diagnostic> {
    if numbers.is_empty() {
        return Ok(());
    }
    let Some(number) = image.find(".note") else {
        return Err(layout_error("the metadata note is in no section `.note`".to_owned()));
    };
    let section = &image.sections[number];
    let made = with_numbers(section.bytes, section.offset as usize, numbers)?;
    match sections.insert(number, made) {
        Some(_) => Err(layout_error("a kernel descriptor is inside the metadata".to_owned())),
        None => Ok(()),
    }
}

fn layout_error(what: String) -> Diagnostic {
    Diagnostic::error(codes::NO_LAYOUT, what)
}
