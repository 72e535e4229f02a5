//! The entries that HIP loads from the containers of a file for a GPU, as text and JSON.

use hotswap_load_model::{ContainerUse, DeviceModes, EntryChoice};
use hotswap_report::{Diagnostic, codes, text};
use hotswap_targets::TargetId;
use serde_json::{Value, json};
use std::path::Path;

/// The modes of a GPU, those with the same answer together.
pub fn grouped_modes(gpu: &DeviceModes, is_same: impl Fn(&TargetId, &TargetId) -> bool) -> Vec<Vec<TargetId>> {
    let mut groups: Vec<Vec<TargetId>> = Vec::new();
    for mode in &gpu.modes {
        match groups.iter_mut().find(|group| is_same(&group[0], mode)) {
            Some(group) => group.push(*mode),
            None => groups.push(vec![*mode]),
        }
    }
    groups
}

pub fn shown_modes(gpu: &DeviceModes, modes: &[TargetId]) -> String {
    if modes.len() == gpu.modes.len() {
        return gpu.requested.to_string();
    }
    modes.iter().map(TargetId::to_string).collect::<Vec<_>>().join(", ")
}

/// A GPU that gets nothing is an error; one that gets only a part, a warning: kernels of the rest cannot start.
pub fn missing_code(gpu: &str, choices: &[ContainerUse<'_>]) -> Option<Diagnostic> {
    let loaded = choices.iter().filter(|one| is_loaded(one)).count();
    if loaded == choices.len() {
        return None;
    }
    if loaded == 0 {
        return Some(Diagnostic::error(codes::LACKS_GPU, format!("HIP finds no code for {gpu} in it")));
    }
    let what = format!("HIP finds no code for {gpu} in {} of its {} containers", choices.len() - loaded, choices.len());
    Some(Diagnostic::warning(codes::LACKS_GPU, what))
}

fn is_loaded(one: &ContainerUse<'_>) -> bool {
    matches!(one.choice, EntryChoice::Loaded { .. })
}

const HEADS: [&str; 5] = ["WRAPPER", "PLACE", "LOADS", "SIZE", "BECAUSE"];

pub fn container_table(name: &Path, gpu: &str, choices: &[ContainerUse<'_>]) -> String {
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    rows.extend(choices.iter().map(cells));
    let loaded = choices.iter().filter(|one| is_loaded(one)).count();
    let plural = if choices.len() == 1 { "container" } else { "containers" };
    let file = text::plain(&name.display().to_string());
    format!("{file}: {gpu} loads code from {loaded} of {} {plural}\n{}", choices.len(), text::table(&rows))
}

fn cells(one: &ContainerUse<'_>) -> Vec<String> {
    let wrapper = one.wrapper.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let place = text::plain(&one.container.place);
    match &one.choice {
        EntryChoice::Loaded { index, how } => {
            let entry = &one.container.entries[*index];
            vec![wrapper, place, text::plain(&entry.id), entry.size.to_string(), how.to_string()]
        }
        EntryChoice::Nothing(failure) => {
            vec![wrapper, place, "nothing".to_owned(), "-".to_owned(), failure.to_string()]
        }
    }
}

pub fn gpu_json(gpu: &DeviceModes, modes: &[TargetId], choices: &[ContainerUse<'_>]) -> Value {
    let modes: Vec<String> = modes.iter().map(TargetId::to_string).collect();
    let containers: Vec<Value> = choices.iter().map(container_json).collect();
    json!({ "gpu": gpu.requested.to_string(), "modes": modes, "containers": containers })
}

fn container_json(one: &ContainerUse<'_>) -> Value {
    let (entry, reason) = match &one.choice {
        EntryChoice::Loaded { index, how } => (one.container.entries.get(*index), how.to_string()),
        EntryChoice::Nothing(failure) => (None, failure.to_string()),
    };
    json!({
        "place": one.container.place,
        "wrapper": one.wrapper,
        "entry": entry.map(|entry| &entry.id),
        "size": entry.map(|entry| entry.size),
        "reason": reason,
    })
}
