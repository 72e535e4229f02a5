//! The libraries that choose kernels by the GPU's name, and the names that each version knows. Data only.
//!
//! Sources: `config_types.hpp` of rocPRIM at the tags rocm-5.4.0 to rocm-6.2.2, in Debian's packages of 6.4.3 and 7.2.4,
//! and in rocm-libraries; `config_types.hpp` of rocRAND since 2023; strings of official wheels for ROCm 7.0.

/// Names that one version knows. Every other name is one entry, `unknown`.
#[derive(Debug)]
pub(crate) struct VersionNames {
    /// Version of the library, for messages.
    pub(crate) version: &'static str,
    /// The number in the inline namespace of its kernels' names, without the last two digits (patches); none for
    /// versions without such a namespace.
    pub(crate) namespace: Option<u32>,
    pub(crate) names: &'static [&'static str],
}

/// A build option that maps further names to those of the table, on both sides alike.
#[derive(Debug)]
pub(crate) struct OptionNameMap {
    pub(crate) option: &'static str,
    /// Names and their replacements, in the order in which they follow the table.
    pub(crate) names: &'static [(&'static str, &'static str)],
}

/// A library that chooses by name.
#[derive(Debug)]
pub(crate) struct NamingLibrary {
    pub(crate) name: &'static str,
    /// The prefix of its kernels' mangled names.
    pub(crate) kernels: &'static [&'static str],
    /// The texts before and after the version number in those names.
    pub(crate) namespace: Option<(&'static str, &'static str)>,
    pub(crate) versions: &'static [VersionNames],
    pub(crate) conversion: Option<OptionNameMap>,
}

const PRIM_5_4: &[&str] = &["gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx1030"];
const PRIM_5_7: &[&str] = &["gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx1030", "gfx1102"];
const PRIM_6_3: &[&str] = &["gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx1030", "gfx1100", "gfx1102"];
#[rustfmt::skip]
const PRIM_6_4: &[&str] = &[
    "gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1102", "gfx1200", "gfx1201",
];
#[rustfmt::skip]
const PRIM_7_2: &[&str] = &[
    "gfx803", "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1102", "gfx1200",
    "gfx1201",
];
#[rustfmt::skip]
const RAND_6_0: &[&str] = &[
    "gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx1030", "gfx1100", "gfx1101", "gfx1102",
];
#[rustfmt::skip]
const RAND_6_2: &[&str] = &[
    "gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101",
    "gfx1102",
];
#[rustfmt::skip]
const RAND_7_2: &[&str] = &[
    "gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101",
    "gfx1102", "gfx1201",
];

const fn version(version: &'static str, namespace: Option<u32>, names: &'static [&'static str]) -> VersionNames {
    VersionNames { version, namespace, names }
}

pub(crate) const LIBRARIES: &[NamingLibrary] = &[
    // Inside hipCUB, rocThrust, rocSPARSE, rocSOLVER, PyTorch, TensorFlow, CuPy, JAX.
    NamingLibrary {
        name: "rocPRIM",
        kernels: &["_ZN7rocprim"],
        namespace: Some(("ROCPRIM_", "_NS")),
        versions: &[
            version("2.12", None, PRIM_5_4),
            version("2.13 to 3.2", None, PRIM_5_7),
            version("3.3", None, PRIM_6_3),
            version("3.4", None, PRIM_6_4),
            version("3.4", Some(3004), PRIM_6_4),
            version("4.0", Some(4000), PRIM_6_4),
            version("4.1", Some(4001), PRIM_6_4),
            version("4.1", Some(4001), PRIM_7_2),
            version("4.2", Some(4002), PRIM_7_2),
        ],
        // Debian's patch since ROCm 6.4, which projects enable.
        conversion: Some(OptionNameMap {
            option: "ROCPRIM_USE_ARCH_CONVERSION",
            names: &[
                ("gfx902", "gfx900"),
                ("gfx909", "gfx900"),
                ("gfx90c", "gfx900"),
                ("gfx1031", "gfx1030"),
                ("gfx1032", "gfx1030"),
                ("gfx1033", "gfx1030"),
                ("gfx1034", "gfx1030"),
                ("gfx1035", "gfx1030"),
                ("gfx1036", "gfx1030"),
            ],
        }),
    },
    NamingLibrary {
        name: "rocRAND",
        kernels: &["_ZN12rocrand_impl", "_ZN12rocrand_host"],
        namespace: None,
        versions: &[
            version("3.0", None, RAND_6_0),
            version("3.1 to 3.4", None, RAND_6_2),
            version("4.2", None, RAND_7_2),
        ],
        conversion: None,
    },
];

/// The number of a GPU in template arguments of kernels' names; `unknown` is the largest number of 32 bits.
pub(crate) fn gpu_number(name: Option<&str>) -> Option<u32> {
    match name {
        None => Some(u32::MAX),
        Some("gfx90a") => Some(910),
        Some(name) => name.strip_prefix("gfx")?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_targets::find_processor;

    /// GPUs of GCN 3, which are otherwise unknown here.
    const OLD: &str = "gfx803";

    #[test]
    fn every_name_is_a_processor_once_and_has_a_number() {
        for version in LIBRARIES.iter().flat_map(|library| library.versions) {
            for (place, name) in version.names.iter().enumerate() {
                assert!(*name == OLD || find_processor(name).is_some(), "{name}");
                assert!(!version.names[..place].contains(name) && gpu_number(Some(name)).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn conversions_lead_from_new_names_to_names_of_every_version_that_has_them() {
        for library in LIBRARIES {
            for (from, to) in library.conversion.iter().flat_map(|conversion| conversion.names) {
                let wrong = |version: &&VersionNames| version.names.contains(from) || !version.names.contains(to);
                assert!(
                    find_processor(from).is_some() && !library.versions.iter().any(|version| wrong(&version)),
                    "{from}"
                );
            }
        }
    }
}
