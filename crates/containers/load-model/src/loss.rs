//! The code that a GPU loads before a change and not after it.
//!
//! The containers of a file keep their number and order in every change, except those of a kernel archive and of offload
//! binaries, which are left out when they become empty; they are told apart by their names in the archive. The bytes of
//! entries that remain are compared by the writers.

use crate::choice::EntryChoice;
use crate::device::DeviceModes;
use crate::file_use::{ContainerUse, FileUse};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;

/// A container from which a device loads less than before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadLoss {
    /// The device in its mode.
    pub device: TargetId,
    /// The container as it was found before.
    pub place: String,
    /// The entry that was loaded before.
    pub entry: String,
    /// The reason why it is not loaded any more.
    pub reason: String,
}

/// Every container whose loaded entry a device has lost.
pub fn find_losses(before: &FileUse, after: &FileUse, device: &DeviceModes) -> Vec<LoadLoss> {
    let alike = device.modes.iter().map(|mode| ComparedDevices { before: *mode, after: *mode });
    alike.flat_map(|devices| losses_between(before, after, devices)).collect()
}

/// The device that loaded code before, and the one that is to load it afterwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ComparedDevices {
    pub(crate) before: TargetId,
    pub(crate) after: TargetId,
}

pub(crate) fn losses_between(before: &FileUse, after: &FileUse, devices: ComparedDevices) -> Vec<LoadLoss> {
    let now = after.choices_of_device(&devices.after);
    let mut losses = Vec::new();
    for (position, old) in before.choices_of_device(&devices.before).iter().enumerate() {
        let EntryChoice::Loaded { index, .. } = old.choice else { continue };
        let reason = match same_container(before, &now, position) {
            None => "the container is gone".to_owned(),
            Some(ContainerUse { choice: EntryChoice::Loaded { .. }, .. }) => continue,
            Some(ContainerUse { choice: EntryChoice::Nothing(failure), .. }) => failure.to_string(),
        };
        let (place, entry) = (old.container.place.clone(), old.container.entries[index].id.clone());
        losses.push(LoadLoss { device: devices.after, place, entry, reason });
    }
    losses
}

/// The container after the change: of the same number, or of the same name where others were left out.
fn same_container<'n, 'u>(
    before: &FileUse,
    now: &'n [ContainerUse<'u>],
    position: usize,
) -> Option<&'n ContainerUse<'u>> {
    if before.containers.len() == now.len() {
        return now.get(position);
    }
    let old = before.containers.get(position)?;
    now.iter().find(|new| !old.members.is_empty() && new.container.members == old.members)
}

impl From<LoadLoss> for Diagnostic {
    fn from(loss: LoadLoss) -> Self {
        let LoadLoss { device, place, entry, reason } = loss;
        let what = format!("{device} would lose the code that it loads from {place} ({entry}): {reason}");
        Self::error(codes::LOAD_LOST, what)
    }
}
