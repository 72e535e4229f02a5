//! The processor table.
//!
//! Sources: `EF_AMDGPU_MACH` and the processor list of LLVM's AMDGPU usage guide, checked against the output of clang
//! 22, 23 and 24 (`tests/against_clang.rs`). The `covers` columns list the processors that clang 24 accepts for a
//! triple with that major sub-architecture. Groups were measured: their members' objects from one source differ in the
//! label only, for clang 22, 23 and 24. The last column names the row's hardware.

use crate::ProcessorKind::{self, Native};
use crate::Support::{self, No, Unsettled, Yes};
use crate::WaveSizes::{self, Both, Only32, Only64};
use crate::hardware::*;
use crate::{Capability, IsaFamily, Processor};

const INIT16: &[Capability] = &[Capability::UserSgprInit16Bug];

type Features = (Support, Support);

const fn native_row(
    name: &'static str,
    subarch: &'static str,
    mach: u8,
    family: IsaFamily,
    waves: WaveSizes,
    (xnack, sramecc): Features,
    hardware: Hardware,
) -> Processor {
    let (kind, group, covers, withdrawn) = (Native, None, &[], false);
    let Hardware { limits, capabilities } = hardware;
    Processor {
        name,
        subarch,
        mach,
        kind,
        family,
        waves,
        xnack,
        sramecc,
        group,
        covers,
        limits,
        capabilities,
        withdrawn,
    }
}

const fn generic_row(row: Processor, covers: &'static [&'static str]) -> Processor {
    Processor { kind: ProcessorKind::Generic { version: 1 }, covers, ..row }
}

const fn sibling_row(group: &'static str, row: Processor) -> Processor {
    Processor { group: Some(group), ..row }
}

const fn withdrawn_row(row: Processor) -> Processor {
    Processor { withdrawn: true, ..row }
}

/// Every processor, natives before generic targets, each by generation.
#[rustfmt::skip]
pub const PROCESSORS: &[Processor] = &[
    native_row("gfx600", "6.00", 0x20, IsaFamily::Gfx6, Only64, (No, No), GFX6),
    native_row("gfx601", "6.01", 0x21, IsaFamily::Gfx6, Only64, (No, No), GFX6),
    native_row("gfx602", "6.02", 0x3a, IsaFamily::Gfx6, Only64, (No, No), GFX6),
    native_row("gfx700", "7.00", 0x22, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx701", "7.01", 0x23, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx702", "7.02", 0x24, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx703", "7.03", 0x25, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx704", "7.04", 0x26, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx705", "7.05", 0x3b, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx801", "8.01", 0x28, IsaFamily::Gfx8, Only64, (Yes, No), GFX8),
    native_row("gfx802", "8.02", 0x29, IsaFamily::Gfx8, Only64, (No, No), GFX8_FIXED),
    native_row("gfx803", "8.03", 0x2a, IsaFamily::Gfx8, Only64, (No, No), GFX8),
    native_row("gfx805", "8.05", 0x3c, IsaFamily::Gfx8, Only64, (No, No), GFX8_FIXED),
    native_row("gfx810", "8.10", 0x2b, IsaFamily::Gfx8, Only64, (Yes, No), GFX8),
    sibling_row("gfx900", native_row("gfx900", "9.00", 0x2c, IsaFamily::Vega, Only64, (Yes, No), VEGA)),
    sibling_row("gfx900", native_row("gfx902", "9.02", 0x2d, IsaFamily::Vega, Only64, (Yes, No), VEGA)),
    native_row("gfx904", "9.04", 0x2e, IsaFamily::Vega, Only64, (Yes, No), VEGA),
    native_row("gfx906", "9.06", 0x2f, IsaFamily::Vega, Only64, (Yes, Yes), VEGA),
    native_row("gfx908", "9.08", 0x30, IsaFamily::Cdna1, Only64, (Yes, Yes), CDNA1),
    sibling_row("gfx900", native_row("gfx909", "9.09", 0x31, IsaFamily::Vega, Only64, (Yes, No), VEGA)),
    native_row("gfx90a", "9.0a", 0x3f, IsaFamily::Cdna2, Only64, (Yes, Yes), CDNA2),
    sibling_row("gfx900", native_row("gfx90c", "9.0c", 0x32, IsaFamily::Vega, Only64, (Yes, No), VEGA)),
    withdrawn_row(native_row("gfx940", "9.40", 0x40, IsaFamily::Cdna3, Only64, (Yes, Yes), CDNA3)),
    withdrawn_row(native_row("gfx941", "9.41", 0x4b, IsaFamily::Cdna3, Only64, (Yes, Yes), CDNA3)),
    native_row("gfx942", "9.42", 0x4c, IsaFamily::Cdna3, Only64, (Yes, Yes), CDNA3),
    native_row("gfx950", "9.50", 0x4f, IsaFamily::Cdna4, Only64, (Yes, Yes), CDNA4),
    sibling_row("gfx1010", native_row("gfx1010", "10.10", 0x33, IsaFamily::Rdna1, Both, (Yes, No), RDNA1)),
    sibling_row("gfx1011", native_row("gfx1011", "10.11", 0x34, IsaFamily::Rdna1, Both, (Yes, No), RDNA1)),
    sibling_row("gfx1011", native_row("gfx1012", "10.12", 0x35, IsaFamily::Rdna1, Both, (Yes, No), RDNA1)),
    sibling_row("gfx1010", native_row("gfx1013", "10.13", 0x42, IsaFamily::Rdna1, Both, (Yes, No), RDNA1)),
    sibling_row("gfx1030", native_row("gfx1030", "10.30", 0x36, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1031", "10.31", 0x37, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1032", "10.32", 0x38, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1033", "10.33", 0x39, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1034", "10.34", 0x3e, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1035", "10.35", 0x3d, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1036", "10.36", 0x45, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    native_row("gfx1100", "11.00", 0x41, IsaFamily::Rdna3, Both, (No, No), RDNA3_LARGE.with(INIT16)),
    native_row("gfx1101", "11.01", 0x46, IsaFamily::Rdna3, Both, (No, No), RDNA3_LARGE),
    native_row("gfx1102", "11.02", 0x47, IsaFamily::Rdna3, Both, (No, No), RDNA3.with(INIT16)),
    native_row("gfx1103", "11.03", 0x44, IsaFamily::Rdna3, Both, (No, No), RDNA3),
    sibling_row("gfx1150", native_row("gfx1150", "11.50", 0x43, IsaFamily::Rdna35, Both, (No, No), RDNA3)),
    native_row("gfx1151", "11.51", 0x4a, IsaFamily::Rdna35, Both, (No, No), RDNA3_LARGE),
    sibling_row("gfx1150", native_row("gfx1152", "11.52", 0x55, IsaFamily::Rdna35, Both, (No, No), RDNA3)),
    sibling_row("gfx1150", native_row("gfx1153", "11.53", 0x58, IsaFamily::Rdna35, Both, (No, No), RDNA3)),
    native_row("gfx1154", "11.54", 0x57, IsaFamily::Rdna35, Both, (No, No), RDNA3),
    native_row("gfx1170", "11.70", 0x5d, IsaFamily::Gfx117, Both, (No, No), GFX117),
    native_row("gfx1171", "11.71", 0x5e, IsaFamily::Gfx117, Both, (No, No), GFX117),
    native_row("gfx1172", "11.72", 0x5c, IsaFamily::Gfx117, Both, (No, No), GFX117),
    sibling_row("gfx1200", native_row("gfx1200", "12.00", 0x48, IsaFamily::Rdna4, Both, (No, No), RDNA4)),
    sibling_row("gfx1200", native_row("gfx1201", "12.01", 0x4e, IsaFamily::Rdna4, Both, (No, No), RDNA4)),
    native_row("gfx1250", "12.50", 0x49, IsaFamily::Gfx125, Only32, (Unsettled, Unsettled), GFX1250),
    native_row("gfx1250-strict", "12.50s", 0xeb, IsaFamily::Gfx125, Only32, (Unsettled, Unsettled), GFX1250),
    native_row("gfx1251", "12.51", 0x5a, IsaFamily::Gfx125, Only32, (Unsettled, Unsettled), GFX125),
    native_row("gfx1310", "13.10", 0x50, IsaFamily::Gfx13, Both, (No, No), GFX13),
    generic_row(native_row("gfx9-generic", "9", 0x51, IsaFamily::Vega, Only64, (Yes, No), VEGA), &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"]),
    generic_row(native_row("gfx9-4-generic", "9.4", 0x5f, IsaFamily::Cdna3, Only64, (Yes, Yes), CDNA3), &["gfx942", "gfx950"]),
    generic_row(native_row("gfx10-1-generic", "10.1", 0x52, IsaFamily::Rdna1, Both, (Yes, No), RDNA1), &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    generic_row(native_row("gfx10-3-generic", "10.3", 0x53, IsaFamily::Rdna2, Both, (No, No), RDNA2), &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"]),
    generic_row(native_row("gfx11-generic", "11", 0x54, IsaFamily::Rdna3, Both, (No, No), RDNA3.with(INIT16)), &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1154"]),
    generic_row(native_row("gfx11-7-generic", "11.7", 0x62, IsaFamily::Gfx117, Both, (No, No), GFX117), &["gfx1170", "gfx1171", "gfx1172"]),
    generic_row(native_row("gfx12-generic", "12", 0x59, IsaFamily::Rdna4, Both, (No, No), RDNA4), &["gfx1200", "gfx1201"]),
    generic_row(native_row("gfx12-5-generic", "12.5", 0x5b, IsaFamily::Gfx125, Only32, (Unsettled, Unsettled), GFX1250), &["gfx1250", "gfx1251"]),
    generic_row(native_row("gfx13-generic", "13", 0x63, IsaFamily::Gfx13, Both, (No, No), GFX13), &["gfx1310"]),
];
