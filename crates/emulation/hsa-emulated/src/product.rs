//! Properties of products: one table, a row for each processor that has one.
//!
//! The row is of one product with that processor; others have fewer compute units or less memory. Sources: AMD's product
//! pages and white papers, and the kernel driver's tables of device IDs and caches. What a processor fixes (LDS, waves, lines
//! of caches) is in `hotswap-targets`.

use hotswap_targets::{IsaFamily, Processor, WaveSizes};

/// A GPU as it is sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProductRow {
    pub processor: &'static str,
    /// The device ID on the PCI bus.
    pub chip: u32,
    pub compute_units: u32,
    /// Shader engines, and arrays in each.
    pub engines: (u32, u32),
    /// Highest clock of the processor and of its memory, MHz.
    pub clocks: (u32, u32),
    /// Width of the memory bus, bits.
    pub bus: u32,
    pub memory: u64,
    /// Caches of level 2 and 3, KiB.
    pub caches: (u32, u32),
    /// Parts of one device (accelerated compute dies).
    pub dies: u32,
    /// It shares its memory with the CPU.
    pub is_apu: bool,
}

#[rustfmt::skip]
macro_rules! rows {
    ($($processor:literal $chip:literal $units:literal $engines:literal x $arrays:literal $clock:literal $memory_clock:literal $bus:literal
       $memory:literal $l2:literal $l3:literal $dies:literal $apu:literal;)*) => {
        /// Every product, by processor.
        pub const PRODUCTS: &[ProductRow] = &[$(ProductRow {
            processor: $processor, chip: $chip, compute_units: $units, engines: ($engines, $arrays), clocks: ($clock, $memory_clock),
            bus: $bus, memory: $memory, caches: ($l2, $l3), dies: $dies, is_apu: $apu,
        }),*];
    };
}

#[rustfmt::skip]
rows! {
    // name    chip   CUs  SE x SA  MHz  mem  bus    MiB   L2     L3    dies APU
    "gfx900"  0x687f  64  4 x 1   1630  945 2048   8192  4096      0    1 false;
    "gfx902"  0x15dd  11  1 x 1   1250 1200  128   4096  1024      0    1 true;
    "gfx904"  0x69af  20  1 x 1   1190  700 1024   4096  1024      0    1 false;
    "gfx906"  0x66af  60  4 x 1   1801 1000 4096  16384  4096      0    1 false;
    "gfx908"  0x738c 120  8 x 1   1502 1200 4096  32768  8192      0    1 false;
    "gfx909"  0x15d8  11  1 x 1   1400 1200  128   4096  1024      0    1 true;
    "gfx90a"  0x740c 104  8 x 1   1700 1600 4096  65536  8192      0    1 false;
    "gfx90c"  0x1638   8  1 x 1   2000 1600  128   4096  1024      0    1 true;
    "gfx942"  0x74a1 304 32 x 1   2100 1300 8192 196608  4096 262144    8 false;
    "gfx950"  0x75a0 256 32 x 1   2400 2000 8192 262144  4096 262144    8 false;
    "gfx1010" 0x731f  40  2 x 2   2100  875  256   8192  4096      0    1 false;
    "gfx1011" 0x7360  36  2 x 2   1300 1000 2048   8192  4096      0    1 false;
    "gfx1012" 0x7340  22  1 x 2   1900  875  128   8192  2048      0    1 false;
    "gfx1013" 0x13fe  24  2 x 1   1500 1750  256   8192  4096      0    1 true;
    "gfx1030" 0x73bf  72  4 x 2   2475 1000  256  16384  4096 131072    1 false;
    "gfx1031" 0x73df  40  2 x 2   2725 1000  192  12288  3072  98304    1 false;
    "gfx1032" 0x73ff  32  2 x 2   2900 1000  128   8192  2048  32768    1 false;
    "gfx1033" 0x163f   8  1 x 2   1600 1375  256   4096  1024      0    1 true;
    "gfx1034" 0x743f  16  1 x 2   3200 1124   64   4096  1024  16384    1 false;
    "gfx1035" 0x1681  12  1 x 2   2400 3200  128   4096  2048      0    1 true;
    "gfx1036" 0x164e   2  1 x 1   2200 2600  128   4096   256      0    1 true;
    "gfx1100" 0x744c  96  6 x 2   2615 1249  384  24576  6144  98304    1 false;
    "gfx1101" 0x747e  60  3 x 2   2565 1218  256  16384  4096  65536    1 false;
    "gfx1102" 0x7480  32  2 x 2   2755 1124  128   8192  2048  32768    1 false;
    "gfx1103" 0x15bf  12  1 x 2   2700 2800  128   4096  2048      0    1 true;
    "gfx1150" 0x150e  16  1 x 2   2900 3750  128   8192  2048      0    1 true;
    "gfx1151" 0x1586  40  2 x 2   2900 4000  256  32768  2048  32768    1 true;
    "gfx1152" 0x1114   8  1 x 2   2900 3750  128   8192  1024      0    1 true;
    "gfx1153" 0x1902   4  1 x 1   2800 3750  128   4096  1024      0    1 true;
    "gfx1200" 0x7590  32  2 x 2   3320 1258  128  16384  4096  32768    1 false;
    "gfx1201" 0x7550  64  4 x 2   2970 1258  256  16384  8192  65536    1 false;
    // Processors that HIP 7.2 does not know yet: figures of gfx942.
    "gfx1250" 0x75b0 256 32 x 1   2400 2000 8192 262144  4096 262144    1 false;
    "gfx1250-strict" 0x75b0 256 32 x 1 2400 2000 8192 262144 4096 262144 1 false;
}

/// The product with that processor.
pub(crate) fn find_product(processor: &Processor) -> Option<&'static ProductRow> {
    PRODUCTS.iter().find(|row| row.processor == processor.name)
}

/// Lanes of a wave of code without a choice of its own, which is what the device reports.
pub(crate) fn reported_wave(processor: &Processor) -> u32 {
    if processor.waves == WaveSizes::Only64 { 64 } else { 32 }
}

/// The number by which the kernel driver knows the family.
pub(crate) fn driver_family(processor: &Processor) -> u32 {
    match processor.family {
        IsaFamily::Vega | IsaFamily::Cdna1 | IsaFamily::Cdna2 | IsaFamily::Cdna3 | IsaFamily::Cdna4 => 141,
        IsaFamily::Rdna1 | IsaFamily::Rdna2 => 143,
        IsaFamily::Rdna3 => 145,
        IsaFamily::Rdna35 => 150,
        _ => 152,
    }
}

/// Bytes of a line of the cache that all compute units share.
pub(crate) fn cache_line(processor: &Processor) -> u32 {
    if processor.family < IsaFamily::Cdna2 { 64 } else { 128 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_targets::{PROCESSORS, find_processor};

    #[test]
    fn each_row_is_of_a_known_processor_and_occurs_once() {
        for (number, row) in PRODUCTS.iter().enumerate() {
            assert!(find_processor(row.processor).is_some_and(|processor| !processor.withdrawn), "{}", row.processor);
            assert!(PRODUCTS[..number].iter().all(|other| other.processor != row.processor), "{}", row.processor);
            // HIP divides by the number of compute units, and halves it for work-group processors.
            assert!(row.compute_units >= 2 && row.engines.0 * row.engines.1 <= row.compute_units, "{}", row.processor);
        }
    }

    #[test]
    fn every_gpu_of_hip_has_a_row() {
        let known = |processor: &&Processor| (IsaFamily::Vega..=IsaFamily::Rdna4).contains(&processor.family);
        // LLVM knows them, HIP 7.2 does not.
        let is_later = |name: &str| name.starts_with("gfx117") || name == "gfx1154";
        let missing: Vec<&str> = PROCESSORS
            .iter()
            .filter(|processor| known(processor) && !processor.is_generic() && !processor.withdrawn)
            .filter(|processor| find_product(processor).is_none() && !is_later(processor.name))
            .map(|processor| processor.name)
            .collect();
        assert!(missing.is_empty(), "these GPUs have no row: {missing:?}");
    }
}
