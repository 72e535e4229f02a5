//! The GPUs that a change must not take code from, and the check before the changed file gets its name.
//!
//! `prune --keep` names them. Otherwise they are all GPUs, except those that the command drops by name, and except those that
//! load nothing afterwards: taking a generic target out is a request, leaving a GPU with a part of its code is not.

use hotswap_bundle::EntryId;
use hotswap_files::InputFile;
use hotswap_load_model::loss::find_losses;
use hotswap_load_model::{DeviceModes, EntryChoice, FileUse, ReadDepth};
use hotswap_report::Diagnostic;
use hotswap_targets::{PROCESSORS, TargetId};

/// The GPUs that are kept.
#[derive(Debug, Clone, Copy)]
pub enum KeptGpus<'k> {
    /// These; generic targets among them stand for entries, not for GPUs.
    Named(&'k [TargetId]),
    /// All that still load something, except these.
    AllBut(&'k [TargetId]),
}

/// The target of an entry ID or target ID.
#[must_use]
pub fn target_of(name: &str) -> Option<TargetId> {
    let id = EntryId::parse(name).ok();
    let target = id.as_ref().and_then(EntryId::target).unwrap_or(name);
    target.parse().ok()
}

impl KeptGpus<'_> {
    /// Compares what the kept GPUs load from the file and from its changed copy.
    ///
    /// # Errors
    /// The first GPU that would load less than before.
    pub fn check(self, before: &FileUse, changed: &InputFile) -> Result<(), Diagnostic> {
        let after = FileUse::read(changed, &hotswap_bundle::find_containers(changed), ReadDepth::Headers);
        let gpus = PROCESSORS.iter().filter(|processor| !processor.is_generic() && !processor.withdrawn);
        let losses = match self {
            Self::Named(targets) => {
                let named = targets.iter().filter(|target| !target.processor.is_generic());
                named.flat_map(|target| find_losses(before, &after, &DeviceModes::of_target(*target))).next()
            }
            Self::AllBut(dropped) => gpus
                .flat_map(|processor| DeviceModes::of_target(TargetId::of_processor(processor)).modes)
                .filter(|mode| !dropped.iter().any(|target| is_mode_of(target, mode)) && loads_any(&after, mode))
                .flat_map(|mode| find_losses(before, &after, &DeviceModes { requested: mode, modes: vec![mode] }))
                .next(),
        };
        losses.map_or(Ok(()), |loss| Err(loss.into()))
    }
}

/// Whether the target names the device in this mode; a feature that it does not state means both settings.
fn is_mode_of(target: &TargetId, mode: &TargetId) -> bool {
    DeviceModes::of_target(*target).modes.contains(mode)
}

fn loads_any(file: &FileUse, mode: &TargetId) -> bool {
    file.choices_of_device(mode).iter().any(|one| matches!(one.choice, EntryChoice::Loaded { .. }))
}
