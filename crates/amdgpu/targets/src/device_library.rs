//! The numbers of processors in ROCm's device library: the value of its constant `__oclc_ISA_version` for each.
//!
//! The library has one file for each processor, `oclc_isa_version_1030.bc`; a test reads those of the userland and
//! compares. A processor without a row lacks a file there, so no code for it has the constant.

use crate::Processor;

#[rustfmt::skip]
const NUMBERS: &[(&str, u32)] = &[
    ("gfx600", 6000), ("gfx601", 6001), ("gfx602", 6002),
    ("gfx700", 7000), ("gfx701", 7001), ("gfx702", 7002), ("gfx703", 7003), ("gfx704", 7004), ("gfx705", 7005),
    ("gfx801", 8001), ("gfx802", 8002), ("gfx803", 8003), ("gfx805", 8005), ("gfx810", 8100),
    ("gfx900", 9000), ("gfx902", 9002), ("gfx904", 9004), ("gfx906", 9006), ("gfx908", 9008), ("gfx909", 9009),
    ("gfx90a", 9010), ("gfx90c", 9012), ("gfx942", 9402), ("gfx950", 9500),
    ("gfx1010", 10100), ("gfx1011", 10101), ("gfx1012", 10102), ("gfx1013", 10103),
    ("gfx1030", 10300), ("gfx1031", 10301), ("gfx1032", 10302), ("gfx1033", 10303), ("gfx1034", 10304),
    ("gfx1035", 10305), ("gfx1036", 10306),
    ("gfx1100", 11000), ("gfx1101", 11001), ("gfx1102", 11002), ("gfx1103", 11003),
    ("gfx1150", 11500), ("gfx1151", 11501), ("gfx1152", 11502), ("gfx1153", 11503),
    ("gfx1200", 12000), ("gfx1201", 12001), ("gfx1250", 12500), ("gfx1251", 12501),
    // The first stepping is built with the library for gfx1250.
    ("gfx1250-strict", 12500),
    ("gfx9-generic", 9000), ("gfx9-4-generic", 9402), ("gfx10-1-generic", 10100), ("gfx10-3-generic", 10300),
    ("gfx11-generic", 11003), ("gfx12-generic", 12000),
];

impl Processor {
    /// Its number in ROCm's device library (`__oclc_ISA_version`); `None` where the library lacks one.
    pub fn isa_version(&self) -> Option<u32> {
        NUMBERS.iter().find(|(name, _)| *name == self.name).map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use super::NUMBERS;
    use crate::find_processor;

    #[test]
    fn every_row_is_a_processor_and_once_there() {
        for (index, (name, _)) in NUMBERS.iter().enumerate() {
            assert!(find_processor(name).is_some(), "{name}");
            assert!(NUMBERS[..index].iter().all(|(other, _)| other != name), "{name}");
        }
    }
}
