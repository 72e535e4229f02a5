//! Compares a rewritten code object with its original: every instruction outside of the certificate's sites is
//! unchanged, every site is proven by running it, and all references to code have the same targets.
//!
//! | proven | in |
//! |---|---|
//! | instructions outside of sites, branches, hints, padding | [`walk`] |
//! | replacements of instructions | [`site`], [`machine`], [`meaning`] |
//! | copies of work-group IDs at the entries of kernels | [`entry_copies`] |
//! | registers that replacements spill, and their slots | [`spill`], [`machine`] |
//! | unchanged accesses to LDS at two addresses are aligned | [`alignment`] |
//! | computed addresses, words with addresses | [`places`] |
//! | symbols, relocations, data, descriptors | [`image`] |
//! | metadata and other notes | [`notes`] |
//! | headers of file, segments and sections | [`headers`] |
//! | the dynamic section, fields of symbols | [`dynamic`] |
//! | call frames and line tables | [`frames`] |
//!
//! Relocations that the rewritten file alone has are removed before ([`kept`]).
//!
//! The certificate is not trusted: a wrong one makes a proof fail, and cannot make one succeed.

mod alignment;
mod dynamic;
mod encoded;
mod entry_copies;
mod frames;
mod headers;
mod image;
mod kept;
mod machine;
mod map;
mod meaning;
mod names;
mod notes;
mod numbers;
mod places;
mod releases;
mod site;
mod spill;
mod symbol_order;
mod tables;
mod walk;

use crate::finding::{CERTIFICATE, LintFinding};
use crate::sort_findings;
use crate::unit::LintUnit;
use hotswap_code_object::image::ObjectImage;
use hotswap_code_object::{CodeObject, certificate_note};
use hotswap_report::{Certificate, Diagnostic};
use map::AddressMap;
pub use releases::{RELEASES, ReleaseRule, ReleasedBytes, ReleasedPart, released_bytes};
use std::collections::BTreeMap;
use walk::SectionWalk;

/// The extent of the comparison, and the parts that are not proven.
#[derive(Debug, Clone, Default)]
pub struct Proof {
    /// The parts of the rewritten file that are not compared, with the reasons.
    pub released: Vec<ReleasedPart>,
    /// Instructions that are the same in both files.
    pub unchanged: u64,
    /// Instructions that were replaced.
    pub sites: u64,
    /// Assumptions of the rewriter, which no checker can prove.
    pub assumes: Vec<String>,
    /// The parts that are not proven; empty if all are.
    pub findings: Vec<LintFinding>,
}

/// Compares a rewritten code object with its original.
///
/// # Errors
/// Files that cannot be read as code objects.
pub fn compare_with_original(original: &[u8], rewritten: &[u8]) -> Result<Proof, Diagnostic> {
    let released = releases::released_parts(rewritten);
    let without_relocations = kept::remove_kept_sections(original, rewritten);
    let rewritten = without_relocations.as_deref().unwrap_or(rewritten);
    let (old, new) = (CodeObject::parse(original)?, CodeObject::parse(rewritten)?);
    let mut proof = Proof { released, ..Proof::default() };
    let certificate = match certificate_note(rewritten).map(Certificate::from_bytes) {
        Some(Ok(certificate)) => certificate,
        Some(Err(error)) => {
            proof.findings.push(LintFinding::of_file(&CERTIFICATE, error.to_string()));
            return Ok(proof);
        }
        // Nothing was changed, or the certificate was removed: then the code is not unchanged.
        None => Certificate::default(),
    };
    proof.assumes = certificate.assumes.clone();
    let images = (ObjectImage::parse(original)?, ObjectImage::parse(rewritten)?);
    let (old_units, new_units) = (LintUnit::units_of_object(&old)?, LintUnit::units_of_object(&new)?);
    let maps = section_maps(&certificate, (&images.0, &images.1), &old_units, &mut proof.findings);
    if !proof.findings.is_empty() {
        return Ok(proof);
    }
    image::check_headers(&images.0, &images.1, &maps, &mut proof.findings);
    if !proof.findings.is_empty() {
        return Ok(proof);
    }
    let segments = (spill::private_segments(&old), spill::private_segments(&new));
    let mut needs = spill::PrivateNeeds::default();
    let raised = entry_copies::raised_kernels(&old, &new);
    for unit in &old_units {
        let map = &maps[&unit.number];
        let Some(other) = new_units.iter().find(|other| other.number == unit.number) else {
            let what = format!("the section `{}` is missing", unit.name);
            proof.findings.push(LintFinding::of_file(&CERTIFICATE, what));
            continue;
        };
        let mut walk = SectionWalk::new((unit, other), map, (&segments.0, &segments.1));
        walk.add_raised_kernels(&raised);
        walk.walk_section();
        let mut unaligned = Vec::new();
        alignment::check_alignment(
            unit,
            other.isa(),
            |at| map.site_at(at).is_none() || walk.itself.contains_key(&at),
            &mut unaligned,
        );
        crate::matrix::check_exits(other, &mut unaligned);
        places::compare_addresses(&mut walk, (&images.0, &images.1), &maps);
        proof.unchanged += walk.compared;
        proof.sites += map.sites.len() as u64;
        proof.findings.append(&mut walk.findings);
        needs.append(walk.take_needs());
        proof.findings.append(&mut unaligned);
    }
    image::compare_files((&old, &images.0), (&new, &images.1), (&maps, &needs, &raised), &mut proof.findings);
    frames::compare_frames((original, &images.0), (rewritten, &images.1), (&old_units, &maps), &mut proof.findings);
    if !proof.findings.is_empty() && certificate_note(rewritten).is_none() {
        let what = "the rewritten file carries no certificate, and is not the original";
        proof.findings.push(LintFinding::of_file(&CERTIFICATE, what));
    }
    sort_findings(original, &mut proof.findings);
    Ok(proof)
}

/// The map of each section of code, by its number.
fn section_maps(
    certificate: &Certificate,
    (old, new): (&ObjectImage<'_>, &ObjectImage<'_>),
    units: &[LintUnit<'_>],
    findings: &mut Vec<LintFinding>,
) -> BTreeMap<usize, AddressMap> {
    let mut maps = BTreeMap::new();
    for unit in units {
        let own = certificate.sections.iter().find(|section| section.number as usize == unit.number);
        let size =
            |image: &ObjectImage<'_>| image.sections.get(unit.number).map_or(0, |section| section.bytes.len() as u32);
        match AddressMap::new(own, size(old), size(new)) {
            Ok(map) => drop(maps.insert(unit.number, map)),
            Err(what) => findings.push(LintFinding::of_file(&CERTIFICATE, format!("section `{}`: {what}", unit.name))),
        }
    }
    maps
}
