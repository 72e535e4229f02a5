//! The certificate of a result: the new offset of each input instruction, and the registers that new code uses. It is
//! proved by a checker that shares no code with this crate (`hotswap-lint`).
//!
//! Invariants: offsets are those of the input, even if functions were moved in between. The certificate does not depend
//! on the number of threads.

use crate::changes::OTHERS;
use crate::select::{FunctionRewrite, SectionRewrite};
use crate::verify::CodeOffsetMap;
use hotswap_code_object::image::ObjectImage;
use hotswap_families::FAMILIES;
use hotswap_families::code::SpillSlot;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_report::{Certificate, MapRun, ScratchRegisters, SectionCertificate, SiteCertificate, SpilledRegister};
use hotswap_rewrite::MovedFunction;
use std::collections::BTreeSet;

/// The changed instructions of one section, before the result is read.
#[derive(Debug, Default)]
pub(crate) struct SectionSites {
    pub(crate) number: usize,
    sites: Vec<CertificateSite>,
    assumes: BTreeSet<&'static str>,
}

#[derive(Debug)]
struct CertificateSite {
    offset: u32,
    size: u8,
    families: u32,
    scratch: Box<[ScratchRegisters]>,
    spilled: Box<[SpilledRegister]>,
}

impl SectionSites {
    /// Those of each section.
    pub(crate) fn of_all(rewrites: &[SectionRewrite<'_>]) -> Vec<Self> {
        rewrites.iter().map(|section| Self::from_outcomes(section.unit.number, &section.outcomes)).collect()
    }

    fn from_outcomes(number: usize, outcomes: &[FunctionRewrite]) -> Self {
        let mut all = Self { number, ..Self::default() };
        for outcome in outcomes {
            all.assumes.extend(outcome.assumes.iter().copied());
            let mut scratch = outcome.registers.scratch.iter().peekable();
            let mut spilled = outcome.registers.spilled.iter().peekable();
            for (offset, old, families) in outcome.changes.sites() {
                while scratch.next_if(|place| place.offset < offset).is_some() {}
                let own = scratch.next_if(|place| place.offset == offset).map_or(&[][..], |place| &place.list);
                while spilled.next_if(|place| place.offset < offset).is_some() {}
                let slots = spilled.next_if(|place| place.offset == offset).map_or(&[][..], |place| &place.list);
                let (scratch, spilled) = (scratch_runs(own), slots.iter().map(spilled_register).collect());
                all.sites.push(CertificateSite { offset, size: old.len(), families, scratch, spilled });
            }
        }
        all.sites.sort_by_key(|site| site.offset);
        all
    }
}

fn spilled_register(slot: &SpillSlot) -> SpilledRegister {
    SpilledRegister { register: slot.reg.index, slot: slot.offset }
}

/// Registers as runs of neighbours.
fn scratch_runs(regs: &[Reg]) -> Box<[ScratchRegisters]> {
    let numbers = regs.iter().filter(|reg| matches!(reg.file, RegFile::Vgpr | RegFile::Sgpr));
    let each = numbers.flat_map(|reg| {
        let is_vector = reg.file == RegFile::Vgpr;
        (reg.index..reg.index + u16::from(reg.count)).map(move |first| ScratchRegisters { is_vector, first, count: 1 })
    });
    let sorted: BTreeSet<ScratchRegisters> = each.collect();
    let mut runs: Vec<ScratchRegisters> = Vec::new();
    for reg in sorted {
        match runs.last_mut().filter(|run| run.is_vector == reg.is_vector && run.first + run.count == reg.first) {
            Some(run) => run.count += 1,
            None => runs.push(reg),
        }
    }
    runs.into()
}

/// The result of verifying one section.
#[derive(Debug)]
pub(crate) struct SectionMap {
    pub(crate) number: usize,
    /// Bytes of the new section.
    pub(crate) new_size: u32,
    pub(crate) followed: CodeOffsetMap,
}

/// Builds the certificate of a result. `moved` are functions that were moved before all other changes, so `sites` and
/// `maps` refer to their new offsets.
pub(crate) fn build_certificate(
    old: &ObjectImage<'_>,
    sites: &[SectionSites],
    maps: &[SectionMap],
    moved: &[MovedFunction],
) -> Certificate {
    let mut families: Vec<String> = FAMILIES.iter().map(|family| family.name.to_owned()).collect();
    if sites.iter().flat_map(|section| &section.sites).any(|site| site.families >> OTHERS != 0) {
        families.resize(OTHERS, String::new());
        families.push("other".to_owned());
    }
    let assumes: BTreeSet<&str> = sites.iter().flat_map(|section| &section.assumes).copied().collect();
    let sections = sites.iter().filter_map(|sites| certify_section(old, sites, maps, moved)).collect();
    Certificate { families, assumes: assumes.into_iter().map(str::to_owned).collect(), sections }
}

/// Returns `None` if the section lacks a map.
fn certify_section(
    old: &ObjectImage<'_>,
    sites: &SectionSites,
    maps: &[SectionMap],
    moved: &[MovedFunction],
) -> Option<SectionCertificate> {
    let map = maps.iter().find(|map| map.number == sites.number)?;
    let old_size = old.sections.get(sites.number).map_or(0, |section| section.size as u32);
    let own: Vec<MovedFunction> = moved.iter().copied().filter(|one| one.section == sites.number).collect();
    let section = of_section(sites, &map.followed, &own);
    Some(SectionCertificate { old_size, new_size: map.new_size, ..section })
}

fn of_section(section: &SectionSites, followed: &CodeOffsetMap, moved: &[MovedFunction]) -> SectionCertificate {
    let mut sites: Vec<SiteCertificate> = Vec::with_capacity(section.sites.len());
    for site in &section.sites {
        let places = followed.places_in(site.offset..site.offset + 1);
        let Some(place) = places.first() else { continue };
        sites.push(SiteCertificate {
            old: original_offset(moved, site.offset),
            old_size: u32::from(site.size),
            new: place.start..place.end,
            families: u64::from(site.families),
            scratch: site.scratch.to_vec(),
            spilled: site.spilled.to_vec(),
        });
    }
    sites.sort_by_key(|site| site.old);
    let mut steps: Vec<MapRun> = Vec::new();
    let kept = followed.steps.iter().filter(|step| !is_left_behind(step.old, moved));
    steps.extend(kept.map(|step| MapRun { old: original_offset(moved, step.old), new: step.new }));
    for one in moved {
        let behind = (one.from + one.size) as u32;
        steps.extend(followed.new_start(behind).map(|new| MapRun { old: behind, new }));
    }
    steps.sort_by_key(|run| run.old);
    let runs = necessary_steps(&sites, steps);
    SectionCertificate { number: section.number as u32, sites, runs, ..SectionCertificate::default() }
}

fn is_left_behind(at: u32, moved: &[MovedFunction]) -> bool {
    moved.iter().any(|one| (one.from..one.from + one.size).contains(&u64::from(at)))
}

/// The offset before functions were moved.
fn original_offset(moved: &[MovedFunction], at: u32) -> u32 {
    let found = moved.iter().find(|one| (one.to..one.to + one.size).contains(&u64::from(at)));
    found.map_or(at, |one| (u64::from(at) - one.to + one.from) as u32)
}

/// The steps that do not follow from the site or the step before.
fn necessary_steps(sites: &[SiteCertificate], steps: Vec<MapRun>) -> Vec<MapRun> {
    let (mut sites, mut runs) = (sites.iter().peekable(), Vec::new());
    let mut last = MapRun::default();
    for step in steps {
        while let Some(site) = sites.next_if(|site| site.old + site.old_size <= step.old) {
            last = MapRun { old: site.old + site.old_size, new: site.new.end };
        }
        if last.new.checked_add(step.old - last.old) != Some(step.new) {
            runs.push(step);
        }
        last = step;
    }
    runs
}
