//! The last step of a link of relocatable device code: the kernels of its output compared with those of its units.
//!
//! The units are read as they were compiled (bitcode and device objects), the output as it was linked. The steps in
//! between (lending, skipping, deriving) are not asked.
//!
//! Invariant: a kernel is expected for a target only where a unit has code for the target, its own or that of the
//! processor with the same text; and, for a member of an archive, only where the link has taken it for another target.
//!
//! Absent on purpose: units that were linked to the end already; kernels of files that cannot be read, which are left to
//! the tools that read them.

use hotswap_bundle::{EntryId, ImageKind, device_object_kernels, find_containers};
use hotswap_code_object::bitcode::parse_bitcode;
use hotswap_code_object::{CodeObject, is_empty_link};
use hotswap_report::{Diagnostic, codes};
use std::collections::{BTreeMap, BTreeSet};

/// The kernels of a relocatable unit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitKernels {
    /// File, with the member of an archive.
    pub name: String,
    /// Whether the linker takes it only where it is needed.
    pub in_archive: bool,
    /// The names of its kernels by processor.
    pub kernels: BTreeMap<String, BTreeSet<String>>,
    /// Processors whose text is that of another one.
    pub same_text: BTreeMap<String, String>,
}

impl UnitKernels {
    /// The kernels of an object; `None` where it lacks relocatable device code that can be read.
    pub fn of_object(bytes: &[u8]) -> Option<Self> {
        let mut unit = Self::default();
        for container in find_containers(bytes).found {
            for image in container.read().ok()?.images {
                let Some(processor) = image.id.as_deref().and_then(processor_of) else { continue };
                let kernels = match ImageKind::of(&image.data) {
                    ImageKind::Bitcode => parse_bitcode(&image.data)?.kernels,
                    ImageKind::DeviceObject => device_object_kernels(&image.data)?,
                    _ => continue,
                };
                unit.kernels.entry(processor).or_default().extend(kernels);
            }
        }
        (!unit.kernels.is_empty()).then_some(unit)
    }

    /// The unit's kernels for a processor; none where it lacks code for it.
    fn for_processor(&self, processor: &str) -> Option<&BTreeSet<String>> {
        self.kernels.get(processor).or_else(|| self.kernels.get(self.same_text.get(processor)?))
    }
}

fn processor_of(id: &str) -> Option<String> {
    let id = EntryId::parse(id).ok().filter(EntryId::is_amdgpu)?;
    id.processor().map(str::to_owned)
}

/// A kernel that a link has lost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LostKernel {
    /// The processor without it.
    pub processor: String,
    pub kernel: String,
    /// The unit that has it.
    pub unit: String,
}

impl LostKernel {
    pub fn lost_kernel_problem(&self) -> Diagnostic {
        let Self { processor, kernel, unit } = self;
        let what = format!("the code object for {processor} lacks kernel {kernel}, which {unit} has for it");
        Diagnostic::error(codes::LACKS_GPU, what)
            .advise("link again without tools of your own in the device link; if that does not help, report it")
    }
}

/// The kernels that the output of a link lacks, for each processor that it has code for and for those of `targets`.
pub fn find_lost_kernels(output: &[u8], units: &[UnitKernels], targets: &[&str]) -> BTreeSet<LostKernel> {
    let Some(linked) = kernels_of_output(output) else { return BTreeSet::new() };
    let somewhere: BTreeSet<&String> = linked.values().flatten().collect();
    let none = BTreeSet::new();
    let mut lost = BTreeSet::new();
    let processors = linked.keys().map(String::as_str).chain(targets.iter().copied());
    for processor in processors.collect::<BTreeSet<_>>() {
        let present = linked.get(processor).unwrap_or(&none);
        for unit in units {
            let expected = unit.for_processor(processor).into_iter().flatten();
            let missing = expected.filter(|kernel| !present.contains(*kernel));
            let missing = missing.filter(|kernel| !unit.in_archive || somewhere.contains(kernel));
            lost.extend(missing.map(|kernel| LostKernel {
                processor: processor.to_owned(),
                kernel: kernel.clone(),
                unit: unit.name.clone(),
            }));
        }
    }
    lost
}

/// The kernels by processor of all code objects in a file; `None` where one cannot be read, or without any.
fn kernels_of_output(output: &[u8]) -> Option<BTreeMap<String, BTreeSet<String>>> {
    let mut linked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for container in find_containers(output).found {
        for image in container.read().ok()?.images.iter().filter(|image| image.kind == ImageKind::CodeObject) {
            let Some(processor) = image.id.as_deref().and_then(processor_of) else { continue };
            let kernels = linked.entry(processor).or_default();
            if !is_empty_link(&image.data) {
                let object = CodeObject::parse(&image.data).ok()?;
                kernels.extend(object.note().kernels.iter().map(|kernel| kernel.name.to_string()));
            }
        }
    }
    (!linked.is_empty()).then_some(linked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_another_processor_counts() {
        let kernels = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let unit = UnitKernels {
            kernels: [("gfx1030".to_owned(), kernels(&["k"]))].into(),
            same_text: [("gfx1031".to_owned(), "gfx1030".to_owned())].into(),
            ..UnitKernels::default()
        };
        assert_eq!(unit.for_processor("gfx1031"), Some(&kernels(&["k"])));
        assert_eq!(unit.for_processor("gfx1032"), None);
    }
}
