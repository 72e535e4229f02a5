//! The generic target that HIP asks for beside the name of a GPU.
//!
//! Source: `TargetGenericMap` in `hip_fatbin.cpp` of CLR (rocm-systems), as built into HIP 7.2.4. A GPU without a row gets no
//! generic code object from HIP, whatever LLVM's list of covered processors says.

/// A processor with its generic target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenericRow {
    pub processor: &'static str,
    /// The generic target that HIP requests for it.
    pub generic: &'static str,
    /// The first HIP whose map has the row.
    pub since: HipVersion,
}

/// A version of the HIP runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HipVersion {
    /// In HIP 7.2, and before it since ROCm 6.4.
    Hip7_2,
    /// Later than HIP 7.2.
    Later,
}

const fn loaded_since_7_2(processor: &'static str, generic: &'static str) -> GenericRow {
    GenericRow { processor, generic, since: HipVersion::Hip7_2 }
}

const fn loaded_later(processor: &'static str, generic: &'static str) -> GenericRow {
    GenericRow { processor, generic, since: HipVersion::Later }
}

#[rustfmt::skip]
pub const GENERIC_ROWS: &[GenericRow] = &[
    loaded_since_7_2("gfx900", "gfx9-generic"), loaded_since_7_2("gfx902", "gfx9-generic"), loaded_since_7_2("gfx904", "gfx9-generic"),
    loaded_since_7_2("gfx906", "gfx9-generic"), loaded_since_7_2("gfx909", "gfx9-generic"), loaded_since_7_2("gfx90c", "gfx9-generic"),
    loaded_since_7_2("gfx942", "gfx9-4-generic"), loaded_since_7_2("gfx950", "gfx9-4-generic"),
    loaded_since_7_2("gfx1010", "gfx10-1-generic"), loaded_since_7_2("gfx1011", "gfx10-1-generic"),
    loaded_since_7_2("gfx1012", "gfx10-1-generic"), loaded_since_7_2("gfx1013", "gfx10-1-generic"),
    loaded_since_7_2("gfx1030", "gfx10-3-generic"), loaded_since_7_2("gfx1031", "gfx10-3-generic"), loaded_since_7_2("gfx1032", "gfx10-3-generic"),
    loaded_since_7_2("gfx1033", "gfx10-3-generic"), loaded_since_7_2("gfx1034", "gfx10-3-generic"), loaded_since_7_2("gfx1035", "gfx10-3-generic"),
    loaded_since_7_2("gfx1036", "gfx10-3-generic"),
    loaded_since_7_2("gfx1100", "gfx11-generic"), loaded_since_7_2("gfx1101", "gfx11-generic"), loaded_since_7_2("gfx1102", "gfx11-generic"),
    loaded_since_7_2("gfx1103", "gfx11-generic"), loaded_since_7_2("gfx1150", "gfx11-generic"), loaded_since_7_2("gfx1151", "gfx11-generic"),
    loaded_since_7_2("gfx1152", "gfx11-generic"), loaded_since_7_2("gfx1153", "gfx11-generic"),
    loaded_since_7_2("gfx1200", "gfx12-generic"), loaded_since_7_2("gfx1201", "gfx12-generic"),
    // rocm-systems#9741 adds gfx12-5-generic; LLVM covers the others, so a later HIP is expected to follow.
    loaded_later("gfx1154", "gfx11-generic"),
    loaded_later("gfx1170", "gfx11-7-generic"), loaded_later("gfx1171", "gfx11-7-generic"), loaded_later("gfx1172", "gfx11-7-generic"),
    loaded_later("gfx1250", "gfx12-5-generic"), loaded_later("gfx1251", "gfx12-5-generic"),
    loaded_later("gfx1310", "gfx13-generic"),
];

/// The row of a processor.
pub fn generic_of(processor: &str) -> Option<&'static GenericRow> {
    GENERIC_ROWS.iter().find(|row| row.processor == processor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_targets::PROCESSORS;

    /// LLVM's list of covered processors comes from another source; a typing error in one of the two shows here.
    #[test]
    fn rows_agree_with_the_processors_that_llvm_covers() {
        for generic in PROCESSORS {
            for name in generic.covers {
                let row = generic_of(name).unwrap_or_else(|| panic!("{name} has no row, and {generic} covers it"));
                assert_eq!(row.generic, generic.name, "{name}");
            }
        }
        for row in GENERIC_ROWS {
            let generic = hotswap_targets::find_processor(row.generic).unwrap();
            assert!(generic.covers.contains(&row.processor), "{row:?}");
        }
        assert_eq!(generic_of("gfx90a"), None);
    }
}
