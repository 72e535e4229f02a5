//! The amount of each resource of a processor, and the share of a wave with a given number of registers.
//!
//! Invariants: a granule is never 0, and counts are rounded up to it; a wave size that the processor does not have has
//! no [`Vgprs`].
//!
//! Absent on purpose: dynamic VGPRs of GFX12, which the HSA runtimes do not offer, and scratch memory, whose size is
//! chosen by the runtime.

/// Resources of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Vector registers in waves of 32 lanes.
    pub wave32: Option<Vgprs>,
    /// Vector registers in waves of 64 lanes.
    pub wave64: Option<Vgprs>,
    pub sgprs: Sgprs,
    /// Waves that one SIMD holds at the same time.
    pub waves_per_simd: u8,
    /// SIMDs of one compute unit, which the waves of a workgroup share.
    pub simds_per_cu: u8,
    /// Memory that the waves of a workgroup share.
    pub lds: Lds,
    /// Work-items of a workgroup.
    pub workgroup: u16,
    /// Bytes of a line of the instruction cache.
    pub cache_line: u16,
    /// Instructions that one `s_clause` can cover; 0 where it does not exist.
    pub clause: u8,
}

/// Vector registers of one lane of a wave of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vgprs {
    /// Registers of one kind that instructions can name, with the bank mode where there is one.
    pub addressable: u16,
    /// Maximum registers of one wave; where VGPRs and AGPRs share one file, of both kinds together.
    pub allocatable: u16,
    /// Registers of one SIMD.
    pub total: u16,
    /// A wave gets a multiple of this.
    pub granule: u8,
    /// The kernel descriptor counts in steps of this.
    pub descriptor_granule: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sgprs {
    /// Registers that instructions can name, without VCC and other special ones.
    pub addressable: u8,
    /// User registers that a kernel can start with.
    pub user: u8,
    /// Their allocation; `None` where every wave has all of them.
    pub shared: Option<SgprFile>,
}

/// A file of scalar registers that the waves of a SIMD share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SgprFile {
    /// Registers of one SIMD.
    pub total: u16,
    /// A wave gets a multiple of this.
    pub granule: u8,
    /// The kernel descriptor counts in steps of this.
    pub descriptor_granule: u8,
}

/// Memory that the waves of a workgroup share, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lds {
    /// Maximum for one workgroup.
    pub addressable: u32,
    /// Size in one compute unit; a work-group processor has twice as much.
    pub per_cu: u32,
    /// A workgroup gets a multiple of this.
    pub granule: u16,
}

/// `count`, at least 1, rounded up to a multiple of `granule`.
fn round_up(count: u32, granule: u8) -> u32 {
    count.max(1).next_multiple_of(u32::from(granule.max(1)))
}

impl Limits {
    /// Vector registers in waves of that many lanes; `None` where the processor lacks such waves.
    pub fn vgprs(&self, lanes: u64) -> Option<&Vgprs> {
        match lanes {
            32 => self.wave32.as_ref(),
            64 => self.wave64.as_ref(),
            _ => None,
        }
    }

    /// The number of waves of `lanes` lanes with `count` vector registers that one SIMD holds; 0 where none fits.
    pub fn waves_with_vgprs(&self, lanes: u64, count: u32) -> u32 {
        let Some(vgprs) = self.vgprs(lanes).filter(|vgprs| count <= u32::from(vgprs.allocatable)) else { return 0 };
        (u32::from(vgprs.total) / vgprs.allocated_count(count)).min(u32::from(self.waves_per_simd))
    }

    /// The number of waves with `count` scalar registers, VCC and other special ones included, that one SIMD holds.
    ///
    /// `trap_handler` is the number of registers that the runtime's trap handler takes of each wave (16 under HSA).
    pub fn waves_with_sgprs(&self, count: u32, trap_handler: u32) -> u32 {
        let most = u32::from(self.waves_per_simd);
        let Some(file) = &self.sgprs.shared else { return most };
        (u32::from(file.total) / (round_up(count, file.granule) + trap_handler)).min(most)
    }
}

impl Vgprs {
    /// Registers allocated to a wave that requests `count`.
    pub fn allocated_count(&self, count: u32) -> u32 {
        round_up(count, self.granule)
    }

    /// The value of the kernel descriptor for `count` registers; `None` if it does not fit.
    pub fn descriptor_blocks(&self, count: u32) -> Option<u8> {
        let blocks = round_up(count, self.descriptor_granule) / u32::from(self.descriptor_granule) - 1;
        // Six bits of COMPUTE_PGM_RSRC1.
        u8::try_from(blocks).ok().filter(|blocks| *blocks < 64)
    }

    /// Registers for which the kernel descriptor states `blocks`.
    pub fn described_count(&self, blocks: u8) -> u32 {
        (u32::from(blocks) + 1) * u32::from(self.descriptor_granule)
    }
}
