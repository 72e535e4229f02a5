//! The way in which host libraries find their data files for a GPU: one row for each library, which the walk of
//! [`crate::data_use`] follows.
//!
//! `{gpu}` in a name is the name of the GPU that the host sees, without features; `{mode}` is `xnack+` or `xnack-`, and a name with it
//! applies to GPUs with that feature only.

/// The place of a library's code objects for one index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodePlace {
    /// Assembly in `NAME.co`; HIP code in `NAME.hsaco`, for fallbacks in `NAME_{gpu}.hsaco`.
    ByKind,
    /// All kernels are in `NAME.co`.
    OneFile,
}

/// A file beside the index.
#[derive(Debug)]
pub struct BesideFile {
    /// Its names, the first that exists is opened.
    pub names: &'static [&'static str],
    pub content: BesideContent,
    /// Whether its kernels are missing where it is: the library begins without it, and calls that need one of them fail.
    pub is_needed: bool,
}

/// The content of a file beside the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BesideContent {
    /// Code, which must load on the GPU.
    Code(&'static str),
    /// The files of operations beyond the index, by GPU.
    Operations,
    /// Indices by the numbers of their solutions.
    Numbers,
}

/// The look-up of one library.
#[derive(Debug)]
pub struct DataLookup {
    /// The library, as in the table of [`crate::libraries`].
    pub library: &'static str,
    /// Subdirectories of the data directory; the first that exists is used in its place.
    pub subdirectories: &'static [&'static str],
    /// Names of the index; the first that exists is opened.
    pub indices: &'static [&'static str],
    /// The start of the names of lazy indices: without one, all code of the directory with the GPU's name is loaded.
    pub lazy: &'static str,
    /// The effect of a missing index.
    pub without_index: &'static str,
    /// The place of code.
    pub code: CodePlace,
    pub beside: &'static [BesideFile],
    /// Where this was read.
    pub evidence: &'static str,
}

const HELPERS: BesideFile = BesideFile {
    names: &["Kernels.so-000-{gpu}.hsaco", "Kernels.so-000-{gpu}-{mode}.hsaco"],
    content: BesideContent::Code("helper kernels"),
    is_needed: true,
};

const fn optional(names: &'static [&'static str], content: BesideContent) -> BesideFile {
    BesideFile { names, content, is_needed: false }
}

const LITE_BESIDE: &[BesideFile] = &[
    HELPERS,
    optional(&["hipblasltExtOpLibrary.dat"], BesideContent::Operations),
    optional(
        &["TensileLiteLibrary_lazy_{gpu}_Mapping.dat", "TensileLiteLibrary_lazy_Mapping.dat"],
        BesideContent::Numbers,
    ),
    optional(&["hipblasltTransform.hsaco"], BesideContent::Code("kernels of matrix transforms")),
];

pub const LOOKUPS: &[DataLookup] = &[
    DataLookup {
        library: "rocBLAS",
        subdirectories: &["{gpu}-{mode}", "{gpu}"],
        indices: &["TensileLibrary_lazy_{gpu}.dat", "TensileLibrary_{gpu}.dat", "TensileLibrary.dat"],
        lazy: "TensileLibrary_lazy_",
        without_index: "rocBLAS ends the program (\"Cannot read ... TensileLibrary\")",
        code: CodePlace::ByKind,
        beside: &[HELPERS],
        evidence: "rocblas/library/src/tensile_host.cpp; Tensile: PlaceholderLibrary.hpp, HipSolutionAdapter.cpp",
    },
    DataLookup {
        library: "hipBLASLt",
        subdirectories: &["{gpu}"],
        indices: &["TensileLibrary_lazy_{gpu}.dat", "TensileLibrary_{gpu}.dat"],
        lazy: "TensileLibrary_lazy_",
        without_index: "hipBLASLt has no kernels (\"rocblaslt error: Cannot read\")",
        code: CodePlace::OneFile,
        beside: LITE_BESIDE,
        evidence: "hipblaslt: rocblaslt/src/tensile_host.cpp; tensilelite: PlaceholderLibrary.hpp",
    },
    DataLookup {
        library: "hipSPARSELt",
        subdirectories: &["{gpu}"],
        indices: &["TensileLibrary_lazy_{gpu}.dat", "TensileLibrary_{gpu}.dat"],
        lazy: "TensileLibrary_lazy_",
        without_index: "hipSPARSELt has no kernels",
        code: CodePlace::OneFile,
        beside: LITE_BESIDE,
        evidence: "hipsparselt: rocsparselt/src/tensile_host.cpp; tensilelite: PlaceholderLibrary.hpp",
    },
];

/// The row of a library.
pub fn lookup_of(library: &str) -> Option<&'static DataLookup> {
    LOOKUPS.iter().find(|row| row.library == library)
}
