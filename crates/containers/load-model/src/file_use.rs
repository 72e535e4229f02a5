//! The answer for a whole file: its containers, the way to them, and the entry that each gives a device.

use crate::choice::{EntryChoice, choose_entry};
use crate::container::{LoadableContainer, ReadDepth};
use crate::registration::Registration;
use hotswap_bundle::FoundContents;
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;

/// The containers of a file as HIP sees them, and the way to them.
#[derive(Debug, Default)]
pub struct FileUse {
    /// Its containers in the order of the file.
    pub containers: Vec<LoadableContainer>,
    /// The wrappers of a linked program; `None` for other files, whose containers are loaded as they are.
    pub registration: Option<Registration>,
    /// Containers that cannot be read.
    pub problems: Vec<Diagnostic>,
}

/// The entry that one container gives a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerUse<'u> {
    pub container: &'u LoadableContainer,
    /// Number of the first wrapper that leads to it, from 1; `None` where wrappers are not used or none leads to it.
    pub wrapper: Option<usize>,
    pub choice: EntryChoice,
}

impl FileUse {
    /// Reads all containers of a file.
    pub fn read(file: &[u8], contents: &FoundContents<'_>, depth: ReadDepth) -> Self {
        let mut answer = Self { problems: contents.problems.clone(), ..Self::default() };
        for found in &contents.found {
            match LoadableContainer::read(found, depth) {
                Ok(container) => answer.containers.push(container),
                Err(error) => answer.problems.push(error.in_entry(found.place.to_string())),
            }
        }
        match Registration::read(file, &answer.containers) {
            Ok(registration) => answer.registration = registration,
            Err(error) => answer.problems.push(error),
        }
        answer
    }

    /// The entry that each container gives the device.
    pub fn choices_of_device(&self, device: &TargetId) -> Vec<ContainerUse<'_>> {
        let wrappers = self.registration.iter().flat_map(|registration| &registration.wrappers);
        let reached: Vec<Option<usize>> = wrappers.map(|wrapper| wrapper.container).collect();
        let uses = self.containers.iter().enumerate().map(|(index, container)| ContainerUse {
            container,
            wrapper: reached.iter().position(|to| *to == Some(index)).map(|at| at + 1),
            choice: choose_entry(container, device),
        });
        uses.collect()
    }
}
