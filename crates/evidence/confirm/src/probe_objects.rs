//! The code objects of a processor: one for each group of probes.

use crate::assembler::InstructionSet;
use crate::error::ConfirmError;
use crate::kernels::probe_kernel;
use crate::object_writer::{KernelCode, write_object};
use crate::probe_table::{Probe, ProbeKind, all_groups, all_probes};
use crate::programs::program_kernel;
use hotswap_targets::{IsaFamily, PROCESSORS, Processor};

/// A code object with the kernels of a group.
#[derive(Debug, Clone)]
pub struct ProbeObject {
    pub group: &'static str,
    /// The processor that it is for.
    pub processor: &'static Processor,
    pub bytes: Vec<u8>,
    /// Its kernels, in the order in which they are run.
    pub launches: Vec<ProbeLaunch>,
}

/// A kernel with its launch.
#[derive(Debug, Clone)]
pub struct ProbeLaunch {
    pub probe: Probe,
    /// The name of the probe and of the kernel.
    pub name: String,
    /// Work-groups of the launch.
    pub groups: u32,
    /// Work-items of a work-group.
    pub group_size: u32,
}

/// The processors that HIP programs can be started on, and whose results are known.
pub fn judged_processors() -> impl Iterator<Item = &'static Processor> {
    PROCESSORS.iter().filter(|processor| is_judged(processor))
}

fn is_judged(processor: &Processor) -> bool {
    (IsaFamily::Vega..=IsaFamily::Rdna4).contains(&processor.family)
        && processor.family != IsaFamily::Gfx117
        && !processor.is_generic()
        && !processor.withdrawn
        && !["gfx909", "gfx1154"].contains(&processor.name)
}

/// The code objects of all groups for a processor.
///
/// # Errors
/// For a processor whose instructions are not known, or that cannot encode a kernel.
pub fn make_objects(processor: &'static Processor) -> Result<Vec<ProbeObject>, ConfirmError> {
    let set = InstructionSet::new(processor)?;
    let probes = all_probes();
    let mut objects = Vec::new();
    for group in all_groups() {
        let (mut kernels, mut launches): (Vec<KernelCode>, Vec<ProbeLaunch>) = (Vec::new(), Vec::new());
        for probe in probes.iter().filter(|probe| probe.group == group) {
            let made = match probe.kind {
                ProbeKind::Program => Some(program_kernel(&set, &probe.name())?),
                _ => probe_kernel(&set, probe)?,
            };
            let Some(kernel) = made else { continue };
            launches.push(ProbeLaunch {
                probe: *probe,
                name: kernel.name.clone(),
                groups: kernel.groups,
                group_size: kernel.group_size,
            });
            kernels.push(kernel);
        }
        if !kernels.is_empty() {
            objects.push(ProbeObject { group, processor, bytes: write_object(&set, &kernels)?, launches });
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_code_object::CodeObject;

    #[test]
    fn code_objects_of_each_processor_are_valid() {
        let mut processors: Vec<&Processor> = judged_processors().collect();
        processors.dedup_by_key(|processor| processor.family);
        for processor in processors {
            let objects = make_objects(processor).unwrap_or_else(|error| panic!("{processor}: {error}"));
            for object in &objects {
                let parsed = CodeObject::parse(&object.bytes).unwrap_or_else(|error| panic!("{processor}: {error}"));
                assert_eq!(parsed.target_id().processor, processor);
                assert_eq!(parsed.note().kernels.len(), object.launches.len());
                parsed.check_descriptors().unwrap();
            }
            let count: usize = objects.iter().map(|object| object.launches.len()).sum();
            assert!(count > 250, "{processor}: {count}");
        }
    }
}
