//! `hotswap verify --require GPU`: a file has code that HIP loads on each of these GPUs, with the same kernels.
//!
//! HIP loads each fat binary of a program separately, so each must have a code object for the GPU: the one that HIP chooses by
//! `hotswap-load-model`. A GPU without a stated feature is required in both modes of
//! the feature. Code objects of one fat binary come from one source, so a GPU must have the kernels that any other
//! has. Files that are code objects, and kernel archives, hold separate sets of kernels for each GPU: there only a GPU
//! without any kernels is reported.
//!
//! Absent on purpose: kernels in bitcode that is not linked yet.

use crate::work::{inventory, text};
use hotswap_bundle::{ContainerForm, ContainerPosition, FoundContents, ImageKind};
use hotswap_code_object::CodeObject;
use hotswap_load_model::choice::choose_linked_entry;
use hotswap_load_model::{DeviceModes, EntryChoice, LoadableContainer, LoadableEntry};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The GPUs that every file must have code for.
pub(super) struct RequiredGpus(Vec<TargetId>);

/// The code for one required GPU in one fat binary.
struct RequiredCode {
    gpu: TargetId,
    /// Targets of the code objects that are loaded, one for each mode of the GPU.
    served_by: Vec<TargetId>,
    /// Kernels of these; `None` where the code is not linked yet.
    kernels: Option<usize>,
    problem: Option<Diagnostic>,
}

/// The code objects that one source was compiled to.
struct CodeGroup {
    /// The fat binary or section, as in other messages.
    place: String,
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

/// The result of the check of one file.
pub(super) struct RequiredReport {
    pub(super) text: String,
    pub(super) json: Value,
    pub(super) problems: Vec<Diagnostic>,
}

impl RequiredGpus {
    /// # Errors
    /// [`codes::UNKNOWN_TARGET`] for a name that is not a GPU.
    pub(super) fn parse(names: &[String]) -> Result<Self, Diagnostic> {
        let ids: Result<Vec<TargetId>, _> = names.iter().map(|name| name.parse()).collect();
        Ok(Self(ids?))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Compares the containers of a file with the GPUs.
    pub(super) fn check(&self, contents: &FoundContents<'_>) -> RequiredReport {
        let groups = read_groups(contents);
        let mut report = RequiredReport { text: String::new(), json: json!([]), problems: Vec::new() };
        let mut rows = Vec::new();
        for group in &groups {
            let found: Vec<RequiredCode> = self.0.iter().map(|gpu| group.code_for(*gpu)).collect();
            report.text += &format!("  {}: {}\n", text::plain(&group.place), text_of(&found));
            rows.push(json!({ "place": group.place, "gpus": found.iter().map(json_of).collect::<Vec<_>>() }));
            let problems = found.into_iter().filter_map(|code| code.problem);
            report.problems.extend(problems.map(|problem| problem.in_entry(&group.place)));
        }
        report.json = json!(rows);
        report
    }
}

fn text_of(found: &[RequiredCode]) -> String {
    found.iter().map(RequiredCode::text).collect::<Vec<_>>().join(", ")
}

fn json_of(code: &RequiredCode) -> Value {
    json!({
        "gpu": code.gpu.to_string(),
        "code": code.served_by.iter().map(TargetId::to_string).collect::<Vec<_>>(),
        "kernels": code.kernels,
        "problem": code.problem.as_ref().map(|problem| &problem.what),
    })
}

impl RequiredCode {
    /// `gfx1031 4 kernels`, with the generic target where that is what HIP loads.
    fn text(&self) -> String {
        let kernels = match self.kernels {
            _ if self.served_by.is_empty() => "missing".to_owned(),
            None => "not linked yet".to_owned(),
            Some(1) => "1 kernel".to_owned(),
            Some(count) => format!("{count} kernels"),
        };
        let other: Vec<String> =
            self.served_by.iter().filter(|code| **code != self.gpu).map(TargetId::to_string).collect();
        let by = if other.is_empty() { String::new() } else { format!(" by {}", other.join(" and ")) };
        format!("{} {kernels}{by}", self.gpu)
    }
}

/// The groups of a file, in its order. Containers that cannot be read are reported by the other checks.
#[deny(clippy::wildcard_enum_match_arm)]
fn read_groups(contents: &FoundContents<'_>) -> Vec<CodeGroup> {
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

    fn code_for(&self, gpu: TargetId) -> RequiredCode {
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
