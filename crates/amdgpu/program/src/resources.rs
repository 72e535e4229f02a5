//! The hardware resources of a kernel: registers of all that it calls, and the number of waves that fit.

use crate::calls::CallDestination;
use crate::program::Program;
use crate::source::{KernelNeeds, MarkKind};
use hotswap_isa::reg::RegFile;
use hotswap_targets::{Capability, Processor};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Registers that code names, one more than the highest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegisterNeeds {
    /// Number of vector registers.
    pub vgprs: u16,
    /// Number of accumulation registers.
    pub agprs: u16,
    /// Scalar registers, VCC not counted.
    pub sgprs: u16,
    /// Some callee is not known: there may be more.
    pub open: bool,
}

impl Program<'_> {
    /// The registers that a function and everything that it calls name.
    ///
    /// Vector registers beyond the first bank are not visible where the bank mode is not the first one: then all count.
    #[must_use]
    pub fn needs(&self, function: usize) -> RegisterNeeds {
        let mut needs = RegisterNeeds::default();
        for number in self.reachable(function) {
            let Some(called) = self.functions.get(number as usize) else { continue };
            let named = self.named(called);
            for set in [&named.reads, &named.writes] {
                for reg in set {
                    let slot = match reg.file {
                        RegFile::Vgpr => &mut needs.vgprs,
                        RegFile::Agpr => &mut needs.agprs,
                        RegFile::Sgpr => &mut needs.sgprs,
                        _ => continue,
                    };
                    *slot = (*slot).max(reg.index + 1);
                }
            }
            let unknown = called.calls.iter().any(|call| !matches!(call.callee, CallDestination::Function { .. }));
            needs.open |= unknown || !called.is_closed();
            if called.sets_banks() && needs.vgprs > 0 {
                needs.vgprs = 1024;
            }
        }
        needs
    }

    /// Numbers of the functions that a function can reach by known calls, itself included.
    #[must_use]
    pub fn reachable(&self, function: usize) -> BTreeSet<u32> {
        let mut seen = BTreeSet::new();
        let mut work = vec![function as u32];
        while let Some(number) = work.pop() {
            let Some(called) = self.functions.get(number as usize).filter(|_| seen.insert(number)) else { continue };
            work.extend(called.calls.iter().filter_map(|call| match call.callee {
                CallDestination::Function { function, .. } => Some(function),
                _ => None,
            }));
        }
        seen
    }

    /// Numbers of the kernels that can reach a function by known calls; ascending.
    #[must_use]
    pub fn kernels_of(&self, function: usize) -> &[u32] {
        self.kernels.get_or_init(|| self.find_kernels()).get(function).map_or(&[], |kernels| kernels)
    }

    /// The same for all functions, callers before callees; those with the same kernels share them.
    fn find_kernels(&self) -> Vec<Arc<[u32]>> {
        let mut all: Vec<Arc<[u32]>> = vec![Arc::from([]); self.functions.len()];
        for group in self.groups.iter().rev() {
            let own = group.iter().copied().filter(|member| self.functions[*member as usize].is_kernel());
            let own: Vec<u32> = own.collect();
            let callers =
                group.iter().flat_map(|member| self.callers(*member as usize)).map(|(caller, _)| &all[caller]);
            // The sets of members of the group are still empty.
            let mut sets: Vec<&Arc<[u32]>> = callers.filter(|kernels| !kernels.is_empty()).collect();
            sets.sort_unstable_by_key(|kernels| kernels.as_ptr());
            sets.dedup_by_key(|kernels| kernels.as_ptr());
            let kernels = match (&own[..], &sets[..]) {
                ([], [only]) => Arc::clone(only),
                _ => {
                    let kernels: BTreeSet<u32> =
                        own.iter().chain(sets.iter().flat_map(|kernels| kernels.iter())).copied().collect();
                    kernels.into_iter().collect()
                }
            };
            group.iter().for_each(|member| all[*member as usize] = Arc::clone(&kernels));
        }
        all
    }

    /// The needs stated by the descriptor and the metadata of a kernel.
    #[must_use]
    pub fn kernel_needs(&self, function: usize) -> Option<KernelNeeds> {
        let function = self.functions.get(function)?;
        let marks = &self.source.marks[self.source.marks.partition_point(|mark| mark.offset < function.start)..];
        marks.iter().take_while(|mark| mark.offset < function.end).find_map(|mark| match mark.kind {
            MarkKind::Kernel(needs) => Some(needs),
            _ => None,
        })
    }
}

/// The number of waves of a kernel that fit at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// On one SIMD, as limited by its vector registers.
    pub by_vgprs: u32,
    /// On one SIMD, as limited by its scalar registers.
    pub by_sgprs: u32,
    /// On one SIMD, as limited by LDS for whole work-groups.
    pub by_lds: u32,
    /// The least of these.
    pub waves_per_simd: u32,
    /// Whether one work-group of the largest size fits at all.
    pub workgroup_fits: bool,
}

/// Registers that the runtime's trap handler takes of each wave.
const TRAP_HANDLER: u32 = 16;

/// The number of waves with these needs that fit. `None` for a wave size that the processor does not have.
///
/// `workgroup` of the kernel's needs is the work-items of its largest work-group; without it, that of the processor.
#[must_use]
pub fn occupancy(processor: &Processor, needs: &KernelNeeds) -> Option<Occupancy> {
    let limits = &processor.limits;
    let lanes = u64::from(needs.lanes);
    limits.vgprs(lanes)?;
    let (vgprs, agprs) = (needs.vgprs.unwrap_or(0), needs.agprs.unwrap_or(0));
    // In one file AGPRs follow the VGPRs, at a multiple of four.
    let unified = processor.capabilities.contains(Capability::UnifiedRegisterFile) && agprs > 0;
    let count = if unified { vgprs.next_multiple_of(4).saturating_add(agprs) } else { vgprs.max(agprs) };
    let by_vgprs = limits.waves_with_vgprs(lanes, count);
    let by_sgprs = limits.waves_with_sgprs(needs.sgprs.unwrap_or(0), TRAP_HANDLER);
    let workgroup = needs.workgroup.unwrap_or(u32::from(limits.workgroup)).max(1);
    let waves = workgroup.div_ceil(u32::from(needs.lanes));
    let units = if needs.wgp { 2 } else { 1 };
    let simds = u32::from(limits.simds_per_cu) * units;
    let most = u32::from(limits.waves_per_simd);
    let granule = u32::from(limits.lds.granule.max(1));
    let by_lds = match needs.lds {
        0 => most,
        bytes if bytes > limits.lds.addressable => 0,
        bytes => {
            let groups = limits.lds.per_cu.saturating_mul(units) / bytes.next_multiple_of(granule);
            (groups.saturating_mul(waves) / simds).max(u32::from(groups > 0)).min(most)
        }
    };
    let by_registers = by_vgprs.min(by_sgprs);
    let workgroup_fits = by_lds > 0 && by_registers.saturating_mul(simds) >= waves;
    Some(Occupancy { by_vgprs, by_sgprs, by_lds, waves_per_simd: by_registers.min(by_lds), workgroup_fits })
}
