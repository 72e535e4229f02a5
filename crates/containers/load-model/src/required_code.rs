//! Whether a file has code that HIP loads on certain GPUs, with the same kernels.
//!
//! HIP loads each fat binary of a program separately, so each must have a code object for the GPU: the one that HIP chooses by
//! [`choice`](crate::choice). A GPU without a stated feature is required in both modes of
//! the feature. Code objects of one fat binary come from one source, so a GPU must have the kernels that any other
//! has. Files that are code objects, and kernel archives, hold separate sets of kernels for each GPU: there only a GPU
//! without any kernels is reported.
//!
//! Absent on purpose: kernels in bitcode that is not linked yet.

use crate::choice::choose_linked_entry;
use crate::{DeviceModes, EntryChoice, LoadableContainer, LoadableEntry};
use hotswap_bundle::{ContainerForm, ContainerPosition, FoundContents, ImageKind, inventory};
use hotswap_code_object::CodeObject;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use std::collections::BTreeSet;

/// The code for one required GPU in one fat binary.
pub struct RequiredCode {
    pub gpu: TargetId,
    /// Targets of the code objects that are loaded, one for each mode of the GPU.
    pub served_by: Vec<TargetId>,
    /// Kernels of these; `None` where the code is not linked yet.
    pub kernels: Option<usize>,
    pub problem: Option<Diagnostic>,
}

/// The code objects that one source was compiled to.
pub struct CodeGroup {
    /// The fat binary or section, as in other messages.
    pub place: String,
    /// Identity of the group; containers with the same one belong together.
    key: GroupKey,
    images: Vec<GroupImage>,
    /// The same images as entries, among which HIP chooses.
    loadable: LoadableContainer,
}

#[derive(PartialEq, Eq)]
enum GroupKey {
    /// A fat binary alone.
    Bundle(ContainerPosition),
    /// The offload binaries of a section.
    Section(Vec<String>, Option<String>),
    /// Code objects without a fat binary, and those of kernel archives.
    Separate,
}

struct GroupImage {
    target: TargetId,
    /// Names of the kernels; `None` for bitcode.
    kernels: Option<BTreeSet<String>>,
}

/// The groups of a file, in its order. Containers that cannot be read are reported by the other checks.
#[deny(clippy::wildcard_enum_match_arm)]
pub fn read_groups(contents: &FoundContents<'_>) -> Vec<CodeGroup> {
    let mut groups: Vec<CodeGroup> = Vec::new();
    inventory::visit(contents, |container| {
        let place = &container.found.place;
        let key = match container.found.form {
            ContainerForm::Bundle | ContainerForm::CompressedBundle(_) => GroupKey::Bundle(place.clone()),
            ContainerForm::OffloadBinary(_) | ContainerForm::ObjectVariant => {
                GroupKey::Section(place.members.clone(), place.section.clone())
            }
            ContainerForm::KernelArchive | ContainerForm::Bare => GroupKey::Separate,
        };
        let images = container.rows.iter().filter_map(|row| read_image(row.target.as_deref()?, &row.image));
        let images: Vec<GroupImage> = images.collect();
        match groups.iter_mut().find(|group| group.key == key) {
            Some(group) => group.images.extend(images),
            None => {
                let loadable = LoadableContainer::of_table(&container.found, Vec::new());
                groups.push(CodeGroup { place: place.to_string(), key, images, loadable });
            }
        }
    });
    groups.iter_mut().for_each(CodeGroup::list_entries);
    groups
}

fn read_image(target: &str, image: &hotswap_bundle::ContainerImage<'_>) -> Option<GroupImage> {
    let target = target.parse().ok()?;
    let kernels = match image.kind {
        ImageKind::CodeObject | ImageKind::DeviceObject => {
            let object = CodeObject::parse(&image.data).ok()?;
            Some(object.note().kernels.iter().map(|kernel| kernel.name.to_owned()).collect())
        }
        _ => None,
    };
    Some(GroupImage { target, kernels })
}

impl CodeGroup {
    /// The choice is among targets; whether an entry has the code that it names is another check.
    fn list_entries(&mut self) {
        self.loadable.entries = self.images.iter().map(loadable_entry_of).collect();
    }

    /// The code that HIP loads on that GPU, in every mode that it includes.
    #[must_use]
    pub fn code_for(&self, gpu: TargetId) -> RequiredCode {
        let modes = DeviceModes::of_target(gpu).modes;
        let loaded: Vec<Option<&GroupImage>> = modes.iter().map(|mode| self.image_for(mode)).collect();
        let mut served_by: Vec<TargetId> = loaded.iter().flatten().map(|image| image.target).collect();
        served_by.dedup();
        let lacking = modes.iter().zip(&loaded).find(|(_, image)| image.is_none()).map(|(mode, _)| *mode);
        let counted: Option<Vec<&BTreeSet<String>>> =
            loaded.iter().flatten().map(|image| image.kernels.as_ref()).collect();
        let kernels = counted.as_ref().map(|sets| sets.iter().map(|set| set.len()).min().unwrap_or_default());
        let problem = match lacking {
            Some(mode) => Some(self.missing(gpu, mode)),
            None => counted.and_then(|sets| sets.into_iter().find_map(|set| self.fewer(gpu, set))),
        };
        RequiredCode { gpu, served_by, kernels, problem }
    }

    /// The code object that HIP loads, by the model's choice among the entries.
    fn image_for(&self, mode: &TargetId) -> Option<&GroupImage> {
        match choose_linked_entry(&self.loadable, mode) {
            EntryChoice::Loaded { index, .. } => self.images.get(index),
            EntryChoice::Nothing(_) => None,
        }
    }

    fn missing(&self, gpu: TargetId, mode: TargetId) -> Diagnostic {
        let present: Vec<String> = self.images.iter().map(|image| image.target.to_string()).collect();
        let present = if present.is_empty() { "none".to_owned() } else { present.join(", ") };
        let of = if mode == gpu { String::new() } else { format!(", which {gpu} includes,") };
        let what = format!("no code object serves {mode}{of}; the file has {present}");
        let is_unlinked = self.images.iter().any(|image| image.kernels.is_none());
        let problem = Diagnostic::error(codes::LACKS_GPU, what);
        match is_unlinked {
            true => problem.advise(
                "this is relocatable device code: its link adds the targets of the plan, so check the linked program",
            ),
            false => problem,
        }
    }

    /// Kernels that another GPU has.
    fn fewer(&self, gpu: TargetId, own: &BTreeSet<String>) -> Option<Diagnostic> {
        let other = self.images.iter().find(|one| has_more_kernels(one, self, own))?;
        let lacking: Vec<&String> = other.kernels.iter().flatten().filter(|name| !own.contains(*name)).collect();
        let more = if lacking.len() > 1 { format!(" and {} more", lacking.len() - 1) } else { String::new() };
        let what = format!(
            "the code for {gpu} has {} kernels and lacks {}{more}, which {} has",
            own.len(),
            lacking.first().map_or("", |name| name.as_str()),
            other.target
        );
        Some(Diagnostic::error(codes::LACKS_GPU, what))
    }
}

fn loadable_entry_of(image: &GroupImage) -> LoadableEntry {
    LoadableEntry {
        id: format!("hipv4-amdgcn-amd-amdhsa--{}", image.target),
        size: 1,
        code_target: None,
        kernels: None,
    }
}

fn has_more_kernels(image: &&GroupImage, group: &CodeGroup, own: &BTreeSet<String>) -> bool {
    match (&image.kernels, &group.key) {
        (Some(kernels), GroupKey::Separate) => own.is_empty() && !kernels.is_empty(),
        (Some(kernels), _) => !kernels.is_subset(own),
        (None, _) => false,
    }
}
