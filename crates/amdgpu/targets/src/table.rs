//! The processor table.
//!
//! Sources: `EF_AMDGPU_MACH` and the processor list of LLVM's AMDGPU usage guide, checked against the output of clang
//! 22, 23 and 24 (`tests/against_clang.rs`). The `covers` columns list the processors that clang 24 accepts for a
//! triple with that major sub-architecture. The numbers after the machines are those of ROCm's device library, which has
//! one file for each processor (`oclc_isa_version_1030.bc`); a test reads those of the userland. gfx1250-strict is built
//! with the library for gfx1250. Groups were measured: their members' objects from one source differ in the
//! label only, for clang 22, 23 and 24. The last column names the row's hardware.

use crate::ProcessorKind::{self, Native};
use crate::Support::{self, No, Unsettled, Yes};
use crate::WaveSizes::{self, Both, Only32, Only64};
use crate::hardware::*;
use crate::{Capability, IsaFamily, Processor};

const INIT16: &[Capability] = &[Capability::UserSgprInit16Bug];

type Features = (Support, Support);

/// ROCm's device library has no file for the processor.
const NO_FILE: u32 = 0;

#[expect(clippy::too_many_arguments, reason = "columns of a table")]
const fn native_row(
    name: &'static str,
    subarch: &'static str,
    mach: u8,
    library_number: u32,
    family: IsaFamily,
    waves: WaveSizes,
    (xnack, sramecc): Features,
    hardware: Hardware,
) -> Processor {
    let (kind, group, covers, withdrawn) = (Native, None, &[], false);
    let Hardware { limits, capabilities } = hardware;
    let isa_version = if library_number == NO_FILE { None } else { Some(library_number) };
    Processor {
        name,
        subarch,
        mach,
        isa_version,
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
    native_row("gfx600", "6.00", 0x20, 6000, IsaFamily::Gfx6, Only64, (No, No), GFX6),
    native_row("gfx601", "6.01", 0x21, 6001, IsaFamily::Gfx6, Only64, (No, No), GFX6),
    native_row("gfx602", "6.02", 0x3a, 6002, IsaFamily::Gfx6, Only64, (No, No), GFX6),
    native_row("gfx700", "7.00", 0x22, 7000, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx701", "7.01", 0x23, 7001, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx702", "7.02", 0x24, 7002, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx703", "7.03", 0x25, 7003, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx704", "7.04", 0x26, 7004, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx705", "7.05", 0x3b, 7005, IsaFamily::Gfx7, Only64, (No, No), GFX7),
    native_row("gfx801", "8.01", 0x28, 8001, IsaFamily::Gfx8, Only64, (Yes, No), GFX8),
    native_row("gfx802", "8.02", 0x29, 8002, IsaFamily::Gfx8, Only64, (No, No), GFX8_FIXED),
    native_row("gfx803", "8.03", 0x2a, 8003, IsaFamily::Gfx8, Only64, (No, No), GFX8),
    native_row("gfx805", "8.05", 0x3c, 8005, IsaFamily::Gfx8, Only64, (No, No), GFX8_FIXED),
    native_row("gfx810", "8.10", 0x2b, 8100, IsaFamily::Gfx8, Only64, (Yes, No), GFX8),
    sibling_row("gfx900", native_row("gfx900", "9.00", 0x2c, 9000, IsaFamily::Vega, Only64, (Yes, No), VEGA)),
    sibling_row("gfx900", native_row("gfx902", "9.02", 0x2d, 9002, IsaFamily::Vega, Only64, (Yes, No), VEGA)),
    native_row("gfx904", "9.04", 0x2e, 9004, IsaFamily::Vega, Only64, (Yes, No), VEGA),
    native_row("gfx906", "9.06", 0x2f, 9006, IsaFamily::Vega, Only64, (Yes, Yes), VEGA),
    native_row("gfx908", "9.08", 0x30, 9008, IsaFamily::Cdna1, Only64, (Yes, Yes), CDNA1),
    sibling_row("gfx900", native_row("gfx909", "9.09", 0x31, 9009, IsaFamily::Vega, Only64, (Yes, No), VEGA)),
    native_row("gfx90a", "9.0a", 0x3f, 9010, IsaFamily::Cdna2, Only64, (Yes, Yes), CDNA2),
    sibling_row("gfx900", native_row("gfx90c", "9.0c", 0x32, 9012, IsaFamily::Vega, Only64, (Yes, No), VEGA)),
    withdrawn_row(native_row("gfx940", "9.40", 0x40, NO_FILE, IsaFamily::Cdna3, Only64, (Yes, Yes), CDNA3)),
    withdrawn_row(native_row("gfx941", "9.41", 0x4b, NO_FILE, IsaFamily::Cdna3, Only64, (Yes, Yes), CDNA3)),
    native_row("gfx942", "9.42", 0x4c, 9402, IsaFamily::Cdna3, Only64, (Yes, Yes), CDNA3),
    native_row("gfx950", "9.50", 0x4f, 9500, IsaFamily::Cdna4, Only64, (Yes, Yes), CDNA4),
    sibling_row("gfx1010", native_row("gfx1010", "10.10", 0x33, 10100, IsaFamily::Rdna1, Both, (Yes, No), RDNA1)),
    sibling_row("gfx1011", native_row("gfx1011", "10.11", 0x34, 10101, IsaFamily::Rdna1, Both, (Yes, No), RDNA1)),
    sibling_row("gfx1011", native_row("gfx1012", "10.12", 0x35, 10102, IsaFamily::Rdna1, Both, (Yes, No), RDNA1)),
    sibling_row("gfx1010", native_row("gfx1013", "10.13", 0x42, 10103, IsaFamily::Rdna1, Both, (Yes, No), RDNA1)),
    sibling_row("gfx1030", native_row("gfx1030", "10.30", 0x36, 10300, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1031", "10.31", 0x37, 10301, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1032", "10.32", 0x38, 10302, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1033", "10.33", 0x39, 10303, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1034", "10.34", 0x3e, 10304, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1035", "10.35", 0x3d, 10305, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    sibling_row("gfx1030", native_row("gfx1036", "10.36", 0x45, 10306, IsaFamily::Rdna2, Both, (No, No), RDNA2)),
    native_row("gfx1100", "11.00", 0x41, 11000, IsaFamily::Rdna3, Both, (No, No), RDNA3_LARGE.with(INIT16)),
    native_row("gfx1101", "11.01", 0x46, 11001, IsaFamily::Rdna3, Both, (No, No), RDNA3_LARGE),
    native_row("gfx1102", "11.02", 0x47, 11002, IsaFamily::Rdna3, Both, (No, No), RDNA3.with(INIT16)),
    native_row("gfx1103", "11.03", 0x44, 11003, IsaFamily::Rdna3, Both, (No, No), RDNA3),
    sibling_row("gfx1150", native_row("gfx1150", "11.50", 0x43, 11500, IsaFamily::Rdna35, Both, (No, No), RDNA3)),
    native_row("gfx1151", "11.51", 0x4a, 11501, IsaFamily::Rdna35, Both, (No, No), RDNA3_LARGE),
    sibling_row("gfx1150", native_row("gfx1152", "11.52", 0x55, 11502, IsaFamily::Rdna35, Both, (No, No), RDNA3)),
    sibling_row("gfx1150", native_row("gfx1153", "11.53", 0x58, 11503, IsaFamily::Rdna35, Both, (No, No), RDNA3)),
    native_row("gfx1154", "11.54", 0x57, NO_FILE, IsaFamily::Rdna35, Both, (No, No), RDNA3),
    native_row("gfx1170", "11.70", 0x5d, NO_FILE, IsaFamily::Gfx117, Both, (No, No), GFX117),
    native_row("gfx1171", "11.71", 0x5e, NO_FILE, IsaFamily::Gfx117, Both, (No, No), GFX117),
    native_row("gfx1172", "11.72", 0x5c, NO_FILE, IsaFamily::Gfx117, Both, (No, No), GFX117),
    sibling_row("gfx1200", native_row("gfx1200", "12.00", 0x48, 12000, IsaFamily::Rdna4, Both, (No, No), RDNA4)),
    sibling_row("gfx1200", native_row("gfx1201", "12.01", 0x4e, 12001, IsaFamily::Rdna4, Both, (No, No), RDNA4)),
    native_row("gfx1250", "12.50", 0x49, 12500, IsaFamily::Gfx125, Only32, (Unsettled, Unsettled), GFX1250),
    native_row("gfx1250-strict", "12.50s", 0xeb, 12500, IsaFamily::Gfx125, Only32, (Unsettled, Unsettled), GFX1250),
    native_row("gfx1251", "12.51", 0x5a, 12501, IsaFamily::Gfx125, Only32, (Unsettled, Unsettled), GFX125),
    native_row("gfx1310", "13.10", 0x50, NO_FILE, IsaFamily::Gfx13, Both, (No, No), GFX13),
    generic_row(native_row("gfx9-generic", "9", 0x51, 9000, IsaFamily::Vega, Only64, (Yes, No), VEGA), &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"]),
    generic_row(native_row("gfx9-4-generic", "9.4", 0x5f, 9402, IsaFamily::Cdna3, Only64, (Yes, Yes), CDNA3), &["gfx942", "gfx950"]),
    generic_row(native_row("gfx10-1-generic", "10.1", 0x52, 10100, IsaFamily::Rdna1, Both, (Yes, No), RDNA1), &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    generic_row(native_row("gfx10-3-generic", "10.3", 0x53, 10300, IsaFamily::Rdna2, Both, (No, No), RDNA2), &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"]),
    generic_row(native_row("gfx11-generic", "11", 0x54, 11003, IsaFamily::Rdna3, Both, (No, No), RDNA3.with(INIT16)), &["gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1154"]),
    generic_row(native_row("gfx11-7-generic", "11.7", 0x62, NO_FILE, IsaFamily::Gfx117, Both, (No, No), GFX117), &["gfx1170", "gfx1171", "gfx1172"]),
    generic_row(native_row("gfx12-generic", "12", 0x59, 12000, IsaFamily::Rdna4, Both, (No, No), RDNA4), &["gfx1200", "gfx1201"]),
    generic_row(native_row("gfx12-5-generic", "12.5", 0x5b, NO_FILE, IsaFamily::Gfx125, Only32, (Unsettled, Unsettled), GFX1250), &["gfx1250", "gfx1251"]),
    generic_row(native_row("gfx13-generic", "13", 0x63, NO_FILE, IsaFamily::Gfx13, Both, (No, No), GFX13), &["gfx1310"]),
];
