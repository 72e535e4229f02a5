//! The way from a host program to its containers: wrappers, their pointers, and the constructors that register them.
//!
//! Source: `__hipRegisterFatBinary` of CLR accepts a wrapper with the magic `HIPF` and version 1 and keeps its pointer, which it reads
//! as a bundle when a GPU first needs code. A wrapper with the magic `HIPK` refers to a kernel archive.

use crate::address_space::{AddressSpace, PointerValue};
use crate::constructors::{self, ConstructedWrapper};
use crate::container::LoadableContainer;
use hotswap_report::{Diagnostic, Severity, codes};

/// Section of wrappers in ELF files.
pub const WRAPPERS: &str = ".hipFatBinSegment";
const MAGIC: u32 = 0x4849_5046;
const ARCHIVE_MAGIC: u32 = 0x4b50_4948;
const VERSION: u32 = 1;
const SIZE: u64 = 24;

/// A wrapper of a host program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredWrapper {
    pub address: u64,
    /// Index of the container that it leads to; `None` for a fault, or for a kernel archive.
    pub container: Option<usize>,
    /// The kernels that its constructor registers; `None` where no constructor was read.
    pub kernels: Option<Vec<String>>,
}

/// The wrappers of a host program, and the faults on the way that HIP takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registration {
    /// Wrappers in the order of the section.
    pub wrappers: Vec<RegisteredWrapper>,
    /// Faults, each with the wrapper.
    pub faults: Vec<Diagnostic>,
}

impl Registration {
    /// Walks the wrappers of a linked ELF program or library; `None` where it lacks them.
    ///
    /// # Errors
    /// Damaged headers.
    pub fn read(file: &[u8], containers: &[LoadableContainer]) -> Result<Option<Self>, Diagnostic> {
        let Some(space) = AddressSpace::read(file)? else { return Ok(None) };
        let Some(section) = space.section(WRAPPERS) else { return Ok(None) };
        let constructed = constructors::registrations_of(&space);
        let mut walk = WrapperWalk { space: &space, containers, constructed: &constructed, found: Self::default() };
        for (number, address) in (section.start..section.end).step_by(SIZE as usize).enumerate() {
            walk.visit_wrapper(number + 1, address);
        }
        if section.end.saturating_sub(section.start) % SIZE != 0 {
            let what = format!("{WRAPPERS} is not a row of wrappers of {SIZE} bytes");
            walk.found.faults.push(Diagnostic::error(codes::MALFORMED, what));
        }
        walk.compare_kernels();
        walk.find_unreached();
        Ok(Some(walk.found))
    }
}

struct WrapperWalk<'w, 'a> {
    space: &'w AddressSpace<'a>,
    containers: &'w [LoadableContainer],
    constructed: &'w [ConstructedWrapper],
    found: Registration,
}

impl WrapperWalk<'_, '_> {
    fn visit_wrapper(&mut self, number: usize, address: u64) {
        let container = match self.container_of_wrapper(address) {
            Ok(container) => container,
            Err(what) => {
                let name = wrapper_name(number, address);
                let fault = Diagnostic::error(codes::MALFORMED, format!("{name} {what}")).in_entry(WRAPPERS);
                self.found.faults.push(fault.advise(ADVICE));
                None
            }
        };
        let kernels = self.constructed.iter().find(|one| one.wrapper == address).map(|one| one.kernels.clone());
        self.found.wrappers.push(RegisteredWrapper { address, container, kernels });
    }

    /// The container that a wrapper leads to, or the reason why it leads to none.
    fn container_of_wrapper(&self, address: u64) -> Result<Option<usize>, String> {
        let (magic, version) = (read_wrapper_word(address, self.space)?, read_wrapper_word(address + 4, self.space)?);
        if magic != MAGIC && magic != ARCHIVE_MAGIC {
            return Err(format!("has the magic {magic:#010x} instead of {MAGIC:#010x} (HIPF): HIP refuses it"));
        }
        if version != VERSION {
            return Err(format!("has version {version} instead of {VERSION}: HIP refuses it"));
        }
        let to = self.pointer_at(address + 8)?;
        if magic == ARCHIVE_MAGIC {
            return Ok(None);
        }
        self.container_at(to).map(Some)
    }

    fn pointer_at(&self, address: u64) -> Result<u64, String> {
        match self.space.pointer_at(address) {
            PointerValue::Address(to) => Ok(to),
            PointerValue::NotRelocated(stored) => {
                Err(format!("has a pointer that no relocation adapts to where the program is loaded ({stored:#x})"))
            }
            PointerValue::Import(name) => Err(format!("points to the symbol {name} of another file")),
            PointerValue::UnknownRelocation(kind) => Err(format!("has a pointer with relocation type {kind}")),
            PointerValue::NotMapped => Err("has a pointer that is not loaded from the file".to_owned()),
        }
    }

    fn container_at(&self, to: u64) -> Result<usize, String> {
        let offset = self.space.file_offset(to);
        if let Some(index) = self.containers.iter().position(|one| has_file_offset(one, &offset)) {
            return Ok(index);
        }
        Err(match self.space.section_at(to) {
            Some(section) => format!("points to {to:#x} in {section}, where no container begins"),
            None if self.space.is_mapped(to) => format!("points to {to:#x}, where no container begins"),
            None => format!("points to {to:#x}, where the program has no memory"),
        })
    }

    /// A kernel that is registered with a wrapper is looked up in that wrapper's container. One that another container has, or that
    /// comes with no other of the wrapper's kernels, shows that the wrapper leads to the wrong container. Else it is a kernel for
    /// GPUs that the file has no code for, as rocPRIM has them.
    fn compare_kernels(&mut self) {
        let mut faults = Vec::new();
        for (number, wrapper) in self.found.wrappers.iter().enumerate() {
            let Some(container) = wrapper.container.and_then(|index| self.containers.get(index)) else { continue };
            let kernels = wrapper.kernels.as_deref().unwrap_or_default();
            let mut missing: Vec<&String> = kernels.iter().filter(|kernel| lacks_kernel(container, kernel)).collect();
            let is_foreign = has_only_others(container, kernels);
            // The worst one is told.
            missing.sort_by_key(|kernel| self.container_with(kernel).is_none());
            if let Some(kernel) = missing.first() {
                let name = wrapper_name(number + 1, wrapper.address);
                faults.push(self.missing_kernel(&name, container, kernel, is_foreign));
            }
        }
        self.found.faults.extend(faults);
    }

    fn container_with(&self, kernel: &str) -> Option<&LoadableContainer> {
        self.containers.iter().find(|other| has_kernel(other, kernel))
    }

    fn missing_kernel(&self, name: &str, container: &LoadableContainer, kernel: &str, is_foreign: bool) -> Diagnostic {
        let mut what = format!("{name} leads to {}, which has no kernel `{kernel}`", container.place);
        let mut fault = match self.container_with(kernel) {
            Some(other) => {
                what += &format!("; {} has it", other.place);
                Diagnostic::error(codes::MALFORMED, what).advise(ADVICE)
            }
            None if is_foreign => Diagnostic::error(codes::MALFORMED, what).advise(ADVICE),
            None => Diagnostic::warning(codes::MALFORMED, what).advise(ABSENT_KERNEL),
        };
        fault.place.kernel = Some(kernel.to_owned());
        fault.in_entry(WRAPPERS)
    }

    /// Two wrappers may share a container (relocatable device code), but not while another lacks a wrapper.
    fn find_unreached(&mut self) {
        let reached: Vec<usize> = self.found.wrappers.iter().filter_map(|wrapper| wrapper.container).collect();
        let is_shared = reached.iter().enumerate().any(|(at, one)| reached[..at].contains(one));
        for (index, container) in self.containers.iter().enumerate() {
            if reached.contains(&index) || reached.is_empty() || !container.place.starts_with(".hip_fatbin") {
                continue;
            }
            let what = "no wrapper leads to it, so HIP never loads its code";
            let has_error = self.found.faults.iter().any(is_error);
            let fault = match is_shared || has_error {
                true => Diagnostic::error(codes::MALFORMED, what),
                false => Diagnostic::warning(codes::MALFORMED, what),
            };
            self.found.faults.push(fault.in_entry(&container.place).advise(ADVICE));
        }
    }
}

fn read_wrapper_word(at: u64, space: &AddressSpace<'_>) -> Result<u32, String> {
    space.word_at(at).ok_or_else(|| "is not loaded from the file".to_owned())
}

fn has_file_offset(container: &LoadableContainer, offset: &Option<u64>) -> bool {
    Some(container.file_offset) == *offset
}

const ADVICE: &str = "link the program again, or start from the file as it was before it was edited";

const ABSENT_KERNEL: &str =
    "it can be one for GPUs that the file has no code for; a program that starts it fails on the GPUs of the file";

/// Whether the container has kernels, and none that is registered with its wrapper.
fn has_only_others(container: &LoadableContainer, registered: &[String]) -> bool {
    let kernels = container.entries.iter().flat_map(|entry| entry.kernels.iter().flatten()).count();
    kernels > 0 && !registered.iter().any(|kernel| has_kernel(container, kernel))
}

fn is_error(fault: &Diagnostic) -> bool {
    fault.severity == Severity::Error
}

fn wrapper_name(number: usize, address: u64) -> String {
    format!("wrapper {number} (at {address:#x})")
}

fn has_kernel(container: &LoadableContainer, kernel: &str) -> bool {
    let mut read = container.entries.iter().filter_map(|entry| entry.kernels.as_ref());
    read.any(|kernels| kernels.iter().any(|name| name == kernel))
}

/// Whether the code of the container was read and no code object of it has the kernel.
fn lacks_kernel(container: &LoadableContainer, kernel: &str) -> bool {
    container.entries.iter().any(|entry| entry.kernels.is_some()) && !has_kernel(container, kernel)
}
