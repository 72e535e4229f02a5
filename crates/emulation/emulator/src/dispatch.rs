//! A dispatch: the packet, and what the kernel finds besides.

use std::collections::BTreeMap;

/// The parts of an AQL packet that a kernel depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AqlDispatch {
    /// Work-items of the grid in each dimension.
    pub grid: [u32; 3],
    /// Work-items of a work-group in each dimension.
    pub workgroup: [u16; 3],
    /// Bytes of scratch of a work-item.
    pub private_segment_size: u32,
    /// Bytes of LDS of a work-group, dynamic ones included.
    pub group_segment_size: u32,
    /// Address of the kernel descriptor.
    pub kernel_object: u64,
    /// Address of the arguments.
    pub kernarg_address: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelDispatch {
    pub packet: AqlDispatch,
    /// Address of the packet, for kernels that read it (`dispatch_ptr`).
    pub packet_address: u64,
    /// Address of the queue (`queue_ptr`).
    pub queue_address: u64,
    /// Number of the packet in its queue (`dispatch_id`).
    pub dispatch_id: u64,
}

/// Counts of a dispatch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DispatchCounts {
    /// Instructions that waves executed.
    pub instructions: u64,
    pub waves: u64,
    pub workgroups: u64,
    /// Elements of products of matrices whose value depends on the order of additions.
    pub undetermined: u64,
    /// Executed instructions by mnemonic, if the device has counters.
    pub by_mnemonic: BTreeMap<&'static str, u64>,
}

impl DispatchCounts {
    /// Adds those of another part of the grid.
    pub fn add(&mut self, other: &Self) {
        self.instructions += other.instructions;
        self.waves += other.waves;
        self.workgroups += other.workgroups;
        self.undetermined += other.undetermined;
        for (mnemonic, count) in &other.by_mnemonic {
            *self.by_mnemonic.entry(mnemonic).or_default() += count;
        }
    }
}
