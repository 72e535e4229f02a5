//! The entry of a container that HIP loads for a device.
//!
//! Sources: `FatBinaryInfo::ExtractFatBinaryUsingCOMGR` of CLR (the order of requests), `amd_comgr_lookup_code_object` and
//! the unbundling action of comgr 7.2.4 (the first entry that fits a request), CLR's check of a code object's own target.
//!
//! HIP requests the device's target ID, the generic target with the same features, and SPIR-V, and takes the first request
//! that has an entry. An entry fits a request of its processor if every feature that the entry states has that setting.

#![deny(clippy::wildcard_enum_match_arm)]

use crate::container::{LoadableContainer, LoadableEntry};
use crate::generics::{self, HipVersion};
use hotswap_bundle::{ContainerForm, TABLE_LIMIT};
use hotswap_targets::{TargetId, find_processor};
use std::fmt;

/// The answer for one container and one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryChoice {
    /// HIP loads this entry.
    Loaded {
        /// Index of the entry in [`LoadableContainer::entries`].
        index: usize,
        /// The request that it fits.
        how: EntryMatch,
    },
    /// HIP loads nothing, for this reason.
    Nothing(LoadFailure),
}

/// The request that an entry fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryMatch {
    /// The device's target ID.
    Native,
    /// The device's processor with features that the entry leaves open.
    AnyMode,
    /// The generic target of the device's processor.
    Generic(HipVersion),
    SpirV,
}

/// The reason why nothing is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadFailure {
    /// No entry fits; the device's generic target, where HIP has one for it.
    NoEntry(Option<&'static str>),
    /// The entry table of an uncompressed bundle is longer than HIP reads.
    TableTooLong(u64),
    /// A compressed bundle of a version that HIP cannot read.
    CompressedVersion(u16),
    /// The code object in the entry is for another target than the ID says.
    OtherCode(TargetId),
    /// Code that is not linked yet, or in a form that HIP never loads.
    NotLoadable(ContainerForm),
}

/// The entry that HIP loads for a device, whose features are all stated.
pub fn choose_entry(container: &LoadableContainer, device: &TargetId) -> EntryChoice {
    match container.unreadable() {
        Some(failure) => EntryChoice::Nothing(failure),
        None => choose_linked_entry(container, device),
    }
}

/// As [`choose_entry`], where the container is in a form that HIP reads, or after a link has made that of it.
pub fn choose_linked_entry(container: &LoadableContainer, device: &TargetId) -> EntryChoice {
    let row = generics::generic_of(device.processor.name);
    let generic = row.and_then(|row| find_processor(row.generic)).map(|processor| device_as(device, processor));
    let native = first_fitting(container, device).map(|index| (index, native_match(&container.entries[index], device)));
    let requests = native.or_else(|| {
        let (generic, since) = (generic?, row?.since);
        first_fitting(container, &generic).map(|index| (index, EntryMatch::Generic(since)))
    });
    let found = requests
        .or_else(|| container.entries.iter().position(LoadableEntry::is_spirv).map(|index| (index, EntryMatch::SpirV)));
    match found {
        None => EntryChoice::Nothing(LoadFailure::NoEntry(row.map(|row| row.generic))),
        Some((index, how)) => accept_entry(&container.entries[index], index, how),
    }
}

/// CLR compares the code object's own flags with the device before it loads it.
fn accept_entry(entry: &LoadableEntry, index: usize, how: EntryMatch) -> EntryChoice {
    match (entry.target(), entry.code_target) {
        (Some(named), Some(code)) if named.processor != code.processor => {
            EntryChoice::Nothing(LoadFailure::OtherCode(code))
        }
        _ => EntryChoice::Loaded { index, how },
    }
}

impl LoadableContainer {
    /// The reason for which HIP reads no entry of it at all.
    pub fn unreadable(&self) -> Option<LoadFailure> {
        match self.form {
            ContainerForm::Bundle if self.table_size > TABLE_LIMIT => Some(LoadFailure::TableTooLong(self.table_size)),
            ContainerForm::CompressedBundle(version) if !(2..=3).contains(&version) => {
                Some(LoadFailure::CompressedVersion(version))
            }
            ContainerForm::OffloadBinary(_) | ContainerForm::ObjectVariant => Some(LoadFailure::NotLoadable(self.form)),
            ContainerForm::Bundle
            | ContainerForm::CompressedBundle(_)
            | ContainerForm::KernelArchive
            | ContainerForm::Bare => None,
        }
    }
}

/// The device with the name of its generic target: HIP appends the features that the generic target has.
fn device_as(device: &TargetId, generic: &'static hotswap_targets::Processor) -> TargetId {
    TargetId {
        processor: generic,
        xnack: device.xnack.filter(|_| is_feature_supported(generic.xnack)),
        sramecc: device.sramecc.filter(|_| is_feature_supported(generic.sramecc)),
    }
}

fn is_feature_supported(support: hotswap_targets::Support) -> bool {
    support != hotswap_targets::Support::No
}

/// comgr takes the first entry that fits.
fn first_fitting(container: &LoadableContainer, request: &TargetId) -> Option<usize> {
    let fits =
        |entry: &LoadableEntry| entry.size > 0 && entry.target().is_some_and(|stated| features_fit(&stated, request));
    container.entries.iter().position(fits)
}

fn features_fit(stated: &TargetId, request: &TargetId) -> bool {
    stated.processor == request.processor
        && matches_feature_mode(stated.xnack, request.xnack)
        && matches_feature_mode(stated.sramecc, request.sramecc)
}

fn matches_feature_mode(stated: Option<bool>, mode: Option<bool>) -> bool {
    stated.is_none() || stated == mode
}

fn native_match(entry: &LoadableEntry, device: &TargetId) -> EntryMatch {
    if entry.target() == Some(*device) { EntryMatch::Native } else { EntryMatch::AnyMode }
}

impl fmt::Display for EntryMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "the GPU's own",
            Self::AnyMode => "the GPU's own, in any mode that the entry does not state",
            Self::Generic(HipVersion::Hip7_2) => "the GPU's generic target; no entry of its own comes first",
            Self::Generic(HipVersion::Later) => "the GPU's generic target, which HIP later than 7.2 asks for",
            Self::SpirV => "SPIR-V, which HIP compiles for the GPU",
        })
    }
}

impl fmt::Display for LoadFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEntry(None) => f.write_str("no entry for the GPU, which has no generic target in HIP"),
            Self::NoEntry(Some(generic)) => write!(f, "no entry for the GPU, nor for {generic}"),
            Self::TableTooLong(size) => {
                write!(f, "its entry table has {size} bytes, and HIP reads {TABLE_LIMIT}")
            }
            Self::CompressedVersion(version) => write!(
                f,
                "it is a compressed bundle of version {version}; HIP 7.2 reads versions 2 and 3, and takes the \
                 uncompressed size of version 1 for the size of the bundle"
            ),
            Self::OtherCode(code) => write!(f, "the code object in the entry is for {code}, which HIP refuses"),
            Self::NotLoadable(form) => write!(f, "HIP does not load an {form}; a linker makes a fat binary of it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceModes;

    fn container(form: ContainerForm, targets: &[&str]) -> LoadableContainer {
        let entry = |id: String| LoadableEntry { id, size: 8, code_target: None, kernels: None };
        let host = LoadableEntry { size: 0, ..entry("host-x86_64-unknown-linux-gnu-".to_owned()) };
        let id = |target: &&str| match *target {
            "amdgcnspirv" => "hip-spirv64-amd-amdhsa--amdgcnspirv".to_owned(),
            target => format!("hipv4-amdgcn-amd-amdhsa--{target}"),
        };
        let entries = [host].into_iter().chain(targets.iter().map(id).map(entry)).collect();
        LoadableContainer { place: String::new(), members: Vec::new(), file_offset: 0, form, table_size: 100, entries }
    }

    /// The entry's number in `targets`, from 1; 0 where nothing is loaded.
    fn chosen(targets: &[&str], device: &str) -> usize {
        let device = DeviceModes::of_target(device.parse().unwrap()).modes[0];
        match choose_entry(&container(ContainerForm::Bundle, targets), &device) {
            EntryChoice::Loaded { index, .. } => index,
            EntryChoice::Nothing(_) => 0,
        }
    }

    #[test]
    fn entries_are_chosen_in_the_order_of_hip() {
        for (targets, device, expected) in [
            (&["gfx1030", "gfx10-3-generic"][..], "gfx1030", 1),
            (&["gfx10-3-generic", "gfx1030"], "gfx1030", 2),
            (&["gfx10-3-generic", "gfx1030"], "gfx1031", 1),
            (&["gfx1031"], "gfx1030", 0),
            (&["amdgcnspirv", "gfx10-3-generic"], "gfx1030", 2),
            (&["amdgcnspirv", "gfx1100"], "gfx1030", 1),
            // comgr takes the first that fits, not the most specific.
            (&["gfx90a", "gfx90a:xnack+"], "gfx90a:sramecc+:xnack+", 1),
            (&["gfx90a:xnack+", "gfx90a"], "gfx90a:sramecc+:xnack+", 1),
            (&["gfx90a:xnack+", "gfx90a:xnack-"], "gfx90a:sramecc+:xnack-", 2),
            (&["gfx90a:xnack+"], "gfx90a:sramecc+:xnack-", 0),
            (&["gfx90a:sramecc-"], "gfx90a:sramecc+:xnack-", 0),
            // HIP has no generic target for gfx90a.
            (&["gfx9-generic", "gfx9-4-generic"], "gfx90a:sramecc+:xnack-", 0),
            (&["gfx9-generic:xnack-"], "gfx906:sramecc+:xnack-", 1),
            (&["gfx9-generic:xnack-"], "gfx906:sramecc+:xnack+", 0),
        ] {
            assert_eq!(chosen(targets, device), expected, "{targets:?} {device}");
        }
    }

    #[test]
    fn forms_that_hip_cannot_read_load_nothing() {
        let device: TargetId = "gfx1030".parse().unwrap();
        for (form, is_loaded) in [
            (ContainerForm::CompressedBundle(1), false),
            (ContainerForm::CompressedBundle(2), true),
            (ContainerForm::CompressedBundle(3), true),
            (ContainerForm::OffloadBinary(2), false),
            (ContainerForm::KernelArchive, true),
        ] {
            let choice = choose_entry(&container(form, &["gfx1030"]), &device);
            assert_eq!(matches!(choice, EntryChoice::Loaded { .. }), is_loaded, "{form}: {choice:?}");
        }
        let mut long = container(ContainerForm::Bundle, &["gfx1030"]);
        long.table_size = TABLE_LIMIT + 1;
        assert_eq!(choose_entry(&long, &device), EntryChoice::Nothing(LoadFailure::TableTooLong(TABLE_LIMIT + 1)));
    }

    #[test]
    fn code_for_another_target_than_the_entry_names_is_refused() {
        let mut wrong = container(ContainerForm::Bundle, &["gfx1030"]);
        wrong.entries[1].code_target = "gfx1031".parse().ok();
        let choice = choose_entry(&wrong, &"gfx1030".parse().unwrap());
        assert!(matches!(choice, EntryChoice::Nothing(LoadFailure::OtherCode(_))), "{choice:?}");
    }
}
