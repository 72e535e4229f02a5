//! Resources and capabilities, once for each kind of hardware; a row of the table names one.
//!
//! Sources: LLVM 23's processor features and the functions of its `IsaInfo`; `tests/hardware.rs` compares each row with
//! the output, the errors and the limits of compilers and assemblers. Granules of GFX6 to GFX8 are not used by any
//! family but are checked nevertheless.

use crate::Capability::{self, *};
use crate::{Capabilities, Lds, Limits, SgprFile, Sgprs, Vgprs};

/// The resources of a row of the processor table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hardware {
    pub(crate) limits: Limits,
    pub(crate) capabilities: Capabilities,
}

const KB: u32 = 1024;

const fn vgpr_limits(addressable: u16, total: u16, granule: u8, descriptor_granule: u8) -> Option<Vgprs> {
    Some(Vgprs { addressable, allocatable: addressable, total, granule, descriptor_granule })
}

const fn lds_limits(kilobytes: u32, granule: u16) -> Lds {
    Lds { addressable: kilobytes * KB, per_cu: kilobytes * KB, granule }
}

const fn shared_sgprs(addressable: u8, total: u16, granule: u8) -> Sgprs {
    Sgprs { addressable, user: 16, shared: Some(SgprFile { total, granule, descriptor_granule: 8 }) }
}

/// Since GFX10 every wave has all scalar registers.
const fn own_sgprs(user: u8) -> Sgprs {
    Sgprs { addressable: 106, user, shared: None }
}

/// Every wave of 64 lanes: GFX6 to GFX9.
const GCN: Limits = Limits {
    wave32: None,
    wave64: vgpr_limits(256, 256, 4, 4),
    sgprs: shared_sgprs(102, 800, 16),
    waves_per_simd: 10,
    simds_per_cu: 4,
    lds: lds_limits(64, 512),
    workgroup: 1024,
    cache_line: 64,
    clause: 0,
};

const GCN_1: Limits =
    Limits { sgprs: shared_sgprs(104, 512, 8), lds: Lds { addressable: 32 * KB, ..lds_limits(64, 256) }, ..GCN };
const GCN_2: Limits = Limits { sgprs: shared_sgprs(104, 512, 8), ..GCN };
/// See [`SgprInitBug`].
const GCN_3_FIXED: Limits = Limits { sgprs: shared_sgprs(96, 800, 16), ..GCN };

/// One file for VGPRs and AGPRs, 256 of each.
const CDNA: Limits = Limits {
    wave64: Some(Vgprs { addressable: 256, allocatable: 512, total: 512, granule: 8, descriptor_granule: 8 }),
    waves_per_simd: 8,
    ..GCN
};

const RDNA: Limits = Limits {
    wave32: vgpr_limits(256, 1024, 8, 8),
    wave64: vgpr_limits(256, 512, 4, 4),
    sgprs: own_sgprs(16),
    waves_per_simd: 20,
    simds_per_cu: 2,
    lds: lds_limits(64, 512),
    workgroup: 1024,
    cache_line: 64,
    clause: 63,
};

const RDNA_2: Limits = Limits {
    wave32: vgpr_limits(256, 1024, 16, 8),
    wave64: vgpr_limits(256, 512, 8, 4),
    waves_per_simd: 16,
    lds: lds_limits(64, 1024),
    ..RDNA
};

const RDNA_3: Limits = Limits { cache_line: 128, clause: 32, ..RDNA_2 };

/// 1.5 times as many registers.
const LARGE: Limits = Limits { wave32: vgpr_limits(256, 1536, 24, 8), wave64: vgpr_limits(256, 768, 12, 4), ..RDNA_3 };

const GFX12_5: Limits = Limits {
    wave32: vgpr_limits(1024, 1024, 16, 16),
    wave64: None,
    sgprs: own_sgprs(32),
    simds_per_cu: 4,
    lds: lds_limits(320, 2048),
    clause: 63,
    ..RDNA_3
};

const BASE: Capabilities = Capabilities::of_list(&[GlobalDataShare, GlobalWaveSync, ClampAndIeeeMode]);
const ON_CDNA_2: &[Capability] =
    &[AccumulationRegisters, UnifiedRegisterFile, EvenVgprTuples, PackedWorkItemIds, KernargPreload, ThreadgroupSplit];
const ON_RDNA: Capabilities = BASE.with(&[WgpMode, SharedVgprs]);
const ON_RDNA_3: Capabilities = ON_RDNA.with(&[ArchitectedFlatScratch, PackedWorkItemIds, InstructionPrefetch]);
const ON_RDNA_4: Capabilities = ON_RDNA_3.with(&[ArchitectedSgprs, RoundRobin]).without(&[
    ClampAndIeeeMode,
    SharedVgprs,
    GlobalDataShare,
    GlobalWaveSync,
]);
const NEXT: &[Capability] = &[GloballyAddressableScratch, Clusters, Literals64, NamedBarriers];

const fn new_hardware(limits: Limits, capabilities: Capabilities) -> Hardware {
    Hardware { limits, capabilities }
}

impl Hardware {
    pub(crate) const fn with(self, list: &[Capability]) -> Self {
        new_hardware(self.limits, self.capabilities.with(list))
    }

    const fn without(self, list: &[Capability]) -> Self {
        new_hardware(self.limits, self.capabilities.without(list))
    }
}

pub(crate) const GFX6: Hardware = new_hardware(GCN_1, BASE);
pub(crate) const GFX7: Hardware = new_hardware(GCN_2, BASE);
pub(crate) const GFX8: Hardware = new_hardware(GCN, BASE);
pub(crate) const GFX8_FIXED: Hardware = new_hardware(GCN_3_FIXED, BASE).with(&[SgprInitBug]);
pub(crate) const VEGA: Hardware = new_hardware(GCN, BASE);
pub(crate) const CDNA1: Hardware = VEGA.with(&[AccumulationRegisters]);
pub(crate) const CDNA2: Hardware = new_hardware(CDNA, BASE).with(ON_CDNA_2).without(&[GlobalDataShare]);
pub(crate) const CDNA3: Hardware = CDNA2.with(&[ArchitectedFlatScratch]);
pub(crate) const CDNA4: Hardware = new_hardware(Limits { lds: lds_limits(160, 1280), ..CDNA }, CDNA3.capabilities);
pub(crate) const RDNA1: Hardware = new_hardware(RDNA, ON_RDNA);
pub(crate) const RDNA2: Hardware = new_hardware(RDNA_2, ON_RDNA);
pub(crate) const RDNA3: Hardware = new_hardware(RDNA_3, ON_RDNA_3);
pub(crate) const RDNA3_LARGE: Hardware = new_hardware(LARGE, ON_RDNA_3);
pub(crate) const GFX117: Hardware = RDNA3.without(&[ClampAndIeeeMode]);
pub(crate) const RDNA4: Hardware = new_hardware(LARGE, ON_RDNA_4);
/// GFX12.5 without the differences between its members.
pub(crate) const GFX125: Hardware =
    new_hardware(GFX12_5, ON_RDNA_4).with(NEXT).with(&[EvenVgprTuples, VgprBanks, KernargPreload]).without(&[WgpMode]);
pub(crate) const GFX1250: Hardware = GFX125.with(&[SetregClobbersBanks]);
pub(crate) const GFX13: Hardware = new_hardware(
    Limits { sgprs: own_sgprs(32), lds: Lds { addressable: 192 * KB, per_cu: 96 * KB, granule: 1024 }, ..RDNA_3 },
    ON_RDNA_4,
)
.with(NEXT);
