//! The files of each library that have or choose code for a GPU: one table.
//!
//! A row is a class of files: where they are, the place of the GPU in their names, what is in them, and how the host
//! library uses the name. The first row that matches a file is the file's. Files of no library that have fat
//! binaries are the last row's.
//!
//! The evidence: the packages of Debian experimental, version 7.2.4, in which the files were listed and read; sources of
//! ROCm by repository and file.

use crate::pattern::match_pattern;
use object::elf::DT_SONAME;
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSymbol};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The kind of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A program or library with fat binaries.
    FatBinary,
    /// A host library that chooses other files by the name of the GPU, with or without fat binaries.
    Host,
    /// A fat binary in a file of its own.
    Container,
    /// One code object in a file of its own.
    CodeObject,
    /// Kernel archive: the code of host libraries beside it, which the HIP runtime looks for by the GPU's own name.
    Archive,
    /// A description of code objects, which names the GPU.
    Index,
    /// An index whose solutions have numbers that no other index of the library has.
    NumberedIndex,
    /// The indices of all GPUs by the numbers of their solutions.
    NumberTable,
    /// Further operations, by GPU.
    OperationIndex,
    /// A database of code objects, whose rows name the GPU.
    KernelDatabase,
    /// Measured times and tuned parameters of a GPU, which the file name alone names.
    Knowledge,
    /// The same file for all GPUs.
    Shared,
}

impl FileKind {
    /// Whether a file of data has code.
    pub fn has_code(self) -> bool {
        matches!(self, Self::Container | Self::CodeObject | Self::Archive | Self::KernelDatabase)
    }
}

/// One class of files.
#[derive(Debug)]
pub struct FileRule {
    /// The library as its users know it.
    pub library: &'static str,
    /// The last parts of the directory's path; none for any directory. `*` and `{gpu}` as in `file`.
    pub directories: &'static [&'static str],
    /// The name; `*` is any text, `{gpu}` the place of the GPU's name.
    pub file: &'static str,
    pub kind: FileKind,
    /// How the host library uses the name of the GPU.
    pub name_use: &'static str,
    /// The variable that names the directory of such files to the host library.
    pub variable: Option<&'static str>,
    /// Where this was seen.
    pub evidence: &'static str,
}

/// A function that one library alone exports.
#[derive(Debug)]
pub struct LibraryExport {
    /// The library as in [`RULES`].
    pub library: &'static str,
    pub symbol: &'static str,
}

const fn exported_by(library: &'static str, symbol: &'static str) -> LibraryExport {
    LibraryExport { library, symbol }
}

/// The libraries by their content: a copy under another name, and a wheel's with a patched SONAME, export the same.
#[rustfmt::skip]
pub const EXPORTS: &[LibraryExport] = &[
    exported_by("rocBLAS", "rocblas_create_handle"), exported_by("hipBLASLt", "hipblasLtCreate"),
    exported_by("hipSPARSELt", "hipsparseLtInit"), exported_by("MIOpen", "miopenCreate"),
    exported_by("rocSPARSE", "rocsparse_create_handle"), exported_by("rocSOLVER", "rocsolver_sgetrf"),
    exported_by("rocRAND", "rocrand_create_generator"), exported_by("rocFFT", "rocfft_plan_create"),
    exported_by("RCCL", "ncclGetUniqueId"), exported_by("MAGMA", "magma_init"), exported_by("RPP", "rppCreate"),
    exported_by("ggml", "ggml_backend_cuda_reg"),
];

/// A library that cannot be served by files.
#[derive(Debug)]
pub struct Unserved {
    /// The library as its users know it.
    pub library: &'static str,
    /// As [`FileRule::directories`].
    pub directories: &'static [&'static str],
    /// As [`FileRule::file`].
    pub file: &'static str,
    /// The reason, and what happens on the GPU.
    pub why: &'static str,
}

const ROCBLAS_DATA: &[&str] =
    &["rocblas/library", "rocblas/*/library", "rocblas/library/{gpu}", "rocblas/*/library/{gpu}"];
const HIPBLASLT_DATA: &[&str] = &["hipblaslt/library", "hipblaslt/library/{gpu}"];
const HIPSPARSELT_DATA: &[&str] = &["hipsparselt/library", "hipsparselt/library/{gpu}"];
const MIOPEN_DATA: &[&str] = &["miopen/db"];
const ROCBLAS_PATH: Option<&str> = Some("ROCBLAS_TENSILE_LIBPATH");
const HIPBLASLT_PATH: Option<&str> = Some("HIPBLASLT_TENSILE_LIBPATH");
const HIPSPARSELT_PATH: Option<&str> = Some("ROCSPARSELT_TENSILE_LIBPATH");
const MIOPEN_PATH: Option<&str> = Some("MIOPEN_SYSTEM_DB_PATH");
const LIBRARIES: Option<&str> = Some("LD_LIBRARY_PATH");

const BY_NUMBER: &str = "finds a kept algorithm's index by its number";
const LOADED_BY_NAME: &str = "opens the file with the GPU's name at its end";
const NAMED_IN_INDEX: &str = "opens TensileLibrary_lazy_GPU.dat, which names the other files";
const BY_RUNTIME: &str = "not at all: the HIP runtime takes the entry for the GPU";
const COMPILES: &str = "compiles its kernels at run time for that name";
const BY_TABLE: &str = "chooses kernels by a table of names that is compiled in";
const ROCBLAS_SOURCE: &str =
    "Debian's librocblas5; rocblas/library/src/tensile_host.cpp, Tensile/PlaceholderLibrary.hpp";
const HIPBLASLT_SOURCE: &str =
    "Debian's libhipblaslt1; hipblaslt/library/src/amd_detail/rocblaslt/src/tensile_host.cpp";
const HIPSPARSELT_SOURCE: &str =
    "Debian's libhipsparselt0; hipsparselt/library/src/hcc_detail/rocsparselt/src/tensile_host.cpp";
const MIOPEN_SOURCE: &str = "Debian's libmiopen1 and libmiopen-tests-data; miopen/src: binary_cache.cpp, find_db.cpp, include/miopen/kern_db.hpp";

const fn data_rule(
    library: (&'static str, &'static [&'static str], Option<&'static str>, &'static str),
    file: &'static str,
    kind: FileKind,
    name_use: &'static str,
) -> FileRule {
    let (library, directories, variable, evidence) = library;
    FileRule { library, directories, file, kind, name_use, variable, evidence }
}

const fn host_rule(
    library: &'static str,
    file: &'static str,
    name_use: &'static str,
    evidence: &'static str,
) -> FileRule {
    FileRule { library, directories: &[], file, kind: FileKind::Host, name_use, variable: LIBRARIES, evidence }
}

const fn fat_binary_rule(
    library: &'static str,
    file: &'static str,
    name_use: &'static str,
    evidence: &'static str,
) -> FileRule {
    FileRule { library, directories: &[], file, kind: FileKind::FatBinary, name_use, variable: LIBRARIES, evidence }
}

type LibraryDataRow = (&'static str, &'static [&'static str], Option<&'static str>, &'static str);
const ROCBLAS: LibraryDataRow = ("rocBLAS", ROCBLAS_DATA, ROCBLAS_PATH, ROCBLAS_SOURCE);
const HIPBLASLT: LibraryDataRow = ("hipBLASLt", HIPBLASLT_DATA, HIPBLASLT_PATH, HIPBLASLT_SOURCE);
const HIPSPARSELT: LibraryDataRow = ("hipSPARSELt", HIPSPARSELT_DATA, HIPSPARSELT_PATH, HIPSPARSELT_SOURCE);
const MIOPEN: LibraryDataRow = ("MIOpen", MIOPEN_DATA, MIOPEN_PATH, MIOPEN_SOURCE);

/// Name of the kernel archives and of the libraries whose code is in them.
pub const ARCHIVES: &str = "kernel archives";

/// Name of the library in the last row.
pub const OTHER: &str = "other";

/// Every class of files, the more special ones first.
#[rustfmt::skip]
pub const RULES: &[FileRule] = &[
    data_rule(ROCBLAS, "*{gpu}.co", FileKind::Container, LOADED_BY_NAME),
    data_rule(ROCBLAS, "*{gpu}.hsaco", FileKind::CodeObject, LOADED_BY_NAME),
    data_rule(ROCBLAS, "*{gpu}.dat", FileKind::Index, NAMED_IN_INDEX),
    data_rule(ROCBLAS, "*{gpu}.yaml", FileKind::Index, NAMED_IN_INDEX),
    data_rule(ROCBLAS, "*{gpu}.dat.zlib", FileKind::Index, NAMED_IN_INDEX),
    data_rule(ROCBLAS, "*.dat", FileKind::Shared, NAMED_IN_INDEX),
    data_rule(ROCBLAS, "*.dat.zlib", FileKind::Shared, NAMED_IN_INDEX),
    data_rule(ROCBLAS, "*.yaml", FileKind::Shared, NAMED_IN_INDEX),
    data_rule(ROCBLAS, "TensileManifest.txt", FileKind::Shared, "not at all"),
    host_rule("rocBLAS", "librocblas.so*", "looks for files of that name, and chooses gemv instead of GEMM by a table", ROCBLAS_SOURCE),
    data_rule(HIPBLASLT, "*{gpu}.co", FileKind::Container, LOADED_BY_NAME),
    data_rule(HIPBLASLT, "*{gpu}.hsaco", FileKind::CodeObject, LOADED_BY_NAME),
    data_rule(HIPBLASLT, "*{gpu}.dat", FileKind::NumberedIndex, NAMED_IN_INDEX),
    data_rule(HIPBLASLT, "*{gpu}.dat.zlib", FileKind::NumberedIndex, NAMED_IN_INDEX),
    data_rule(HIPBLASLT, "hipblasltTransform.hsaco", FileKind::Container, BY_RUNTIME),
    data_rule(HIPBLASLT, "hipblasltExtOpLibrary.dat", FileKind::OperationIndex, "looks for the name in it"),
    data_rule(HIPBLASLT, "TensileLiteLibrary_lazy_Mapping.dat", FileKind::NumberTable, BY_NUMBER),
    data_rule(HIPBLASLT, "TensileLiteLibrary_lazy_{gpu}_Mapping.dat", FileKind::NumberTable, BY_NUMBER),
    data_rule(HIPBLASLT, "TensileManifest.txt", FileKind::Shared, "not at all"),
    host_rule("hipBLASLt", "libhipblaslt.so*", "looks for files of that name; it has no code of its own", HIPBLASLT_SOURCE),
    data_rule(HIPSPARSELT, "*{gpu}.co", FileKind::Container, LOADED_BY_NAME),
    data_rule(HIPSPARSELT, "*{gpu}.hsaco", FileKind::CodeObject, LOADED_BY_NAME),
    data_rule(HIPSPARSELT, "*{gpu}.dat", FileKind::NumberedIndex, NAMED_IN_INDEX),
    data_rule(HIPSPARSELT, "*{gpu}.dat.zlib", FileKind::NumberedIndex, NAMED_IN_INDEX),
    data_rule(HIPSPARSELT, "hipblasltTransform.hsaco", FileKind::Container, BY_RUNTIME),
    data_rule(HIPSPARSELT, "hipblasltExtOpLibrary.dat", FileKind::OperationIndex, "looks for the name in it"),
    data_rule(HIPSPARSELT, "TensileLiteLibrary_lazy_Mapping.dat", FileKind::NumberTable, BY_NUMBER),
    data_rule(HIPSPARSELT, "TensileLiteLibrary_lazy_{gpu}_Mapping.dat", FileKind::NumberTable, BY_NUMBER),
    data_rule(HIPSPARSELT, "TensileManifest.txt", FileKind::Shared, "not at all"),
    host_rule("hipSPARSELt", "libhipsparselt.so*", "looks for files of that name", HIPSPARSELT_SOURCE),
    data_rule(MIOPEN, "{gpu}*.kdb", FileKind::KernelDatabase, "looks for GPU_UNITS.kdb and GPU.kdb, and in it for the options that end in the GPU's name"),
    data_rule(MIOPEN, "{gpu}*.fdb.txt", FileKind::Knowledge, "takes the file for the nearest number of compute units"),
    data_rule(MIOPEN, "{gpu}*.db.txt", FileKind::Knowledge, "takes the file for the nearest number of compute units"),
    data_rule(MIOPEN, "{gpu}*.db", FileKind::Knowledge, "takes the file for the nearest number of compute units"),
    data_rule(MIOPEN, "{gpu}*.model", FileKind::Knowledge, "opens the file where it knows the GPU"),
    FileRule { library: "MIOpen", directories: &[], file: "libMIOpenCK*_{gpu}.so*", kind: FileKind::FatBinary, name_use: "opens the library with the GPU's name at its end", variable: LIBRARIES, evidence: "rocm-systems: shared/kpack (database_handlers.py); miopen/src/solver/ck_grouped_conv_interface.hpp" },
    host_rule("MIOpen", "libMIOpen.so*", COMPILES, MIOPEN_SOURCE),
    FileRule { library: ARCHIVES, directories: &[], file: "*{gpu}.kpack", kind: FileKind::Archive, name_use: "the HIP runtime opens the archive with the GPU's own name; the libraries use it as their rows say", variable: None, evidence: "rocm-systems: shared/kpack" },
    FileRule { library: ARCHIVES, directories: &[], file: "*.kpack", kind: FileKind::Archive, name_use: "as above", variable: None, evidence: "rocm-systems: shared/kpack" },
    fat_binary_rule("rocSPARSE", "librocsparse.so*", BY_TABLE, "Debian's librocsparse1; the table is rocPRIM's"),
    fat_binary_rule("rocSOLVER", "librocsolver.so*", BY_TABLE, "rocSOLVER contains rocPRIM's table"),
    fat_binary_rule("rocRAND", "librocrand.so*", BY_TABLE, "Debian's librocrand1; rocrand/library/src/rng/config_types.hpp"),
    fat_binary_rule("rocFFT", "librocfft.so*", COMPILES, "Debian's librocfft0"),
    fat_binary_rule("RCCL", "librccl.so*", "tunes by prefixes of the name", "Debian's librccl1; rccl/src/graph/tuning.cc"),
    fat_binary_rule("MIGraphX", "libmigraphx*.so*", COMPILES, "Debian's migraphx-tools"),
    fat_binary_rule("MAGMA", "libmagma.so*", BY_RUNTIME, "Debian's libmagma2-rocm"),
    fat_binary_rule("RPP", "librpp.so*", BY_RUNTIME, "Debian's librpp2-hip"),
    fat_binary_rule("ggml", "libggml-hip.so*", "tests for families of names", "Debian's libggml0-backend-hip"),
    fat_binary_rule(OTHER, "*", "unknown to HotSwap", "any ELF file with fat binaries"),
];

/// Libraries that files alone cannot serve.
#[rustfmt::skip]
pub const UNSERVED: &[Unserved] = &[
    Unserved { library: "AOTriton", directories: &[], file: "libaotriton_v2.so*",
               why: "which GPUs it supports is compiled into it, so its operators refuse the GPU whatever files it has" },
];

/// Whether the library compiles kernels for the name that its host part sees, while a program runs.
pub fn compiles_kernels(library: &str) -> bool {
    RULES.iter().any(|rule| rule.library == library && rule.name_use == COMPILES)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryMatch {
    /// Its place in [`RULES`].
    pub row: usize,
    /// The GPU in its name or in its directory's.
    pub gpu: Option<String>,
    /// The directory of the library's files: without the part that names a GPU.
    pub directory: PathBuf,
}

impl LibraryMatch {
    pub fn rule(&self) -> &'static FileRule {
        &RULES[self.row]
    }
}

/// The row of a file; the last row matches every file. The root may be inside of the directories that a row names, so
/// these are matched with the whole path; `relative` is the path below the root.
pub fn find_rule(path: &Path, relative: &Path) -> Option<LibraryMatch> {
    let (directory, name) = split_path(path)?;
    let name = &without_wheel_hash(name);
    RULES.iter().enumerate().find_map(|(row, rule)| {
        let in_directory = in_directories(rule.directories, directory)?;
        let in_name = match_pattern(rule.file, name)?;
        let parent = relative.parent().unwrap_or(Path::new(""));
        let library = if in_directory.is_some() { parent.parent().unwrap_or(parent) } else { parent };
        let gpu = in_name.or(in_directory).map(str::to_owned);
        Some(LibraryMatch { row, gpu, directory: library.to_owned() })
    })
}

/// As [`find`], where no row but the last knows the name: the row of the library that the file is by its content, the functions that
/// it exports and its SONAME.
pub fn find_by_content(file: &[u8], path: &Path, relative: &Path) -> Option<LibraryMatch> {
    let named = find_rule(path, relative)?;
    if named.rule().library != OTHER {
        return Some(named);
    }
    let identity = LibraryIdentity::read(file);
    let exported = EXPORTS.iter().find(|row| identity.exports_symbol(row.symbol)).map(|row| row.library);
    let is_host =
        |rule: &FileRule| matches!(rule.kind, FileKind::FatBinary | FileKind::Host) && rule.directories.is_empty();
    let by_export =
        RULES.iter().position(|rule| is_host(rule) && !rule.file.contains("{gpu}") && Some(rule.library) == exported);
    let row = by_export.or_else(|| {
        let soname = without_wheel_hash(identity.soname?);
        RULES
            .iter()
            .position(|rule| is_host(rule) && rule.library != OTHER && match_pattern(rule.file, &soname).is_some())
    });
    Some(row.map_or(named.clone(), |row| LibraryMatch { row, ..named }))
}

/// The library whose directory of data a file is in, whatever its name.
pub fn data_directory(path: &Path) -> Option<&'static str> {
    let (directory, _) = split_path(path)?;
    let rules = RULES.iter().filter(|rule| !rule.directories.is_empty());
    rules.into_iter().find(|rule| in_directories(rule.directories, directory).is_some()).map(|rule| rule.library)
}

/// The library that files cannot serve, if the file is its.
pub fn find_unserved(path: &Path) -> Option<&'static Unserved> {
    let (directory, name) = split_path(path)?;
    let name = &without_wheel_hash(name);
    UNSERVED.iter().find(|one| matches_unserved_row(one, directory, name))
}

fn matches_unserved_row(row: &&Unserved, directory: &str, name: &str) -> bool {
    in_directories(row.directories, directory).is_some() && match_pattern(row.file, name).is_some()
}

/// The names by which a linked ELF library identifies itself.
#[derive(Debug, Default)]
struct LibraryIdentity<'f> {
    symbols: Vec<&'f str>,
    soname: Option<&'f str>,
}

impl<'f> LibraryIdentity<'f> {
    /// Of other files, and of damaged ones, nothing is known.
    fn read(file: &'f [u8]) -> Self {
        let Ok(elf) = ElfFile64::<LittleEndian>::parse(file) else { return Self::default() };
        let defined = elf.dynamic_symbols().filter(|symbol| symbol.is_definition());
        let symbols = defined.filter_map(|symbol| symbol.name().ok()).collect();
        Self { symbols, soname: soname_of(&elf) }
    }

    fn exports_symbol(&self, symbol: &str) -> bool {
        self.symbols.contains(&symbol)
    }
}

fn soname_of<'f>(elf: &ElfFile64<'f, LittleEndian>) -> Option<&'f str> {
    let (entries, link) = elf.elf_section_table().dynamic(LittleEndian, elf.data()).ok()??;
    let strings = elf.elf_section_table().strings(LittleEndian, elf.data(), link).ok()?;
    let entry = entries.iter().find(|entry| entry.d_tag.get(LittleEndian) == u64::from(DT_SONAME))?;
    std::str::from_utf8(strings.get(u32::try_from(entry.d_val.get(LittleEndian)).ok()?).ok()?).ok()
}

fn split_path(path: &Path) -> Option<(&str, &str)> {
    Some((path.parent()?.to_str()?, path.file_name()?.to_str()?))
}

/// The name of a library as its project has it: auditwheel puts eight hexadecimal digits before `.so`, in the SONAME, too.
fn without_wheel_hash(name: &str) -> String {
    let parts = name.split_once(".so").and_then(|(stem, end)| Some((stem.rsplit_once('-')?, end)));
    match parts {
        Some(((stem, hash), end)) if hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            format!("{stem}.so{end}")
        }
        _ => name.to_owned(),
    }
}

/// Whether one of the patterns matches the last parts of the directory's path; the GPU in it.
fn in_directories<'d>(patterns: &[&str], directory: &'d str) -> Option<Option<&'d str>> {
    if patterns.is_empty() {
        return Some(None);
    }
    patterns.iter().find_map(|pattern| {
        let parts = pattern.matches('/').count();
        let start = directory.rmatch_indices('/').nth(parts).map_or(0, |(at, _)| at + 1);
        match_pattern(pattern, &directory[start..])
    })
}

/// Whether the library has files that its host library looks for by the name of the GPU.
pub fn has_data(library: &str) -> bool {
    RULES.iter().any(|rule| rule.library == library && !rule.directories.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: &str) -> (&'static str, FileKind, Option<String>) {
        let found = find_rule(Path::new(path), Path::new(path)).unwrap();
        (found.rule().library, found.rule().kind, found.gpu)
    }

    #[test]
    fn files_of_packages_have_the_row_of_their_library() {
        let gfx1030 = || Some("gfx1030".to_owned());
        for (path, library, kind, gpu) in [
            ("lib/x/rocblas/5/library/TensileLibrary_lazy_gfx1030.dat", "rocBLAS", FileKind::Index, gfx1030()),
            ("lib/rocblas/library/Kernels.so-000-gfx1030.hsaco", "rocBLAS", FileKind::CodeObject, gfx1030()),
            ("lib/rocblas/library/TensileLibrary_Type_HH_gfx1030.co", "rocBLAS", FileKind::Container, gfx1030()),
            ("lib/rocblas/library/TensileLibrary_Type_HH_fallback.dat", "rocBLAS", FileKind::Shared, None),
            ("lib/rocblas/library/gfx1030/TensileLibrary.dat", "rocBLAS", FileKind::Shared, gfx1030()),
            ("hipblaslt/library/hipblasltTransform.hsaco", "hipBLASLt", FileKind::Container, None),
            ("hipblaslt/library/extop_gfx1100.co", "hipBLASLt", FileKind::Container, Some("gfx1100".to_owned())),
            ("lib/librocblas.so.5.2", "rocBLAS", FileKind::Host, None),
            ("share/miopen/db/gfx1030_36.kdb", "MIOpen", FileKind::KernelDatabase, gfx1030()),
            ("share/miopen/db/gfx1030_36.HIP.fdb.txt", "MIOpen", FileKind::Knowledge, gfx1030()),
            ("miopen/db/gfx90878.db.txt", "MIOpen", FileKind::Knowledge, Some("gfx908".to_owned())),
            ("miopen/db/gfx942_metadata.tn.model", "MIOpen", FileKind::Knowledge, Some("gfx942".to_owned())),
            ("lib/libMIOpenCKGroupedConv_gfx1030.so", "MIOpen", FileKind::FatBinary, gfx1030()),
            ("lib/libMIOpen.so.1.0", "MIOpen", FileKind::Host, None),
            ("librocrand.so.1.1", "rocRAND", FileKind::FatBinary, None),
            ("pkg.libs/librocfft-1f7b8bcc.so.0.1", "rocFFT", FileKind::FatBinary, None),
            ("pkg.libs/librocblas-0123abcd.so.5", "rocBLAS", FileKind::Host, None),
            ("librocfft-1f7b8bcx.so.0", OTHER, FileKind::FatBinary, None),
            ("bin/program", OTHER, FileKind::FatBinary, None),
            ("elsewhere/TensileLibrary_lazy_gfx1030.dat", OTHER, FileKind::FatBinary, None),
        ] {
            assert_eq!(row(path), (library, kind, gpu), "{path}");
        }
        let path = Path::new("lib/rocblas/library/gfx1030/TensileLibrary.dat");
        for (relative, directory) in
            [(path.to_str().unwrap(), "lib/rocblas/library"), ("gfx1030/x.dat", ""), ("x.dat", "")]
        {
            let found = find_rule(path, Path::new(relative)).unwrap();
            assert_eq!((found.rule().library, found.directory.to_str()), ("rocBLAS", Some(directory)));
        }
    }

    #[test]
    fn files_that_no_row_knows_belong_to_their_directory() {
        let path = Path::new("rocblas/library/TensileLibrary_gfx1030.new");
        assert_eq!((row(path.to_str().unwrap()).0, data_directory(path)), (OTHER, Some("rocBLAS")));
        assert_eq!(data_directory(Path::new("lib/librocblas.so.5")), None);
        assert_eq!(find_unserved(Path::new("lib/libaotriton_v2.so.0")).unwrap().library, "AOTriton");
        assert!(find_unserved(Path::new("lib/librocblas.so.5")).is_none());
    }

    /// The rows of the page's table.
    fn page_rows() -> Vec<String> {
        let mut libraries: Vec<&str> = RULES.iter().map(|rule| rule.library).collect();
        libraries.dedup();
        let served = libraries.into_iter().map(|library| {
            let rules = || RULES.iter().filter(|rule| rule.library == library);
            let files: Vec<String> = rules().map(|rule| format!("`{}`", rule.file)).collect();
            let is_host = |kind| matches!(kind, FileKind::Host | FileKind::FatBinary | FileKind::Archive);
            let is_host =
                |kind| is_host(kind) && !rules().any(|rule| rule.kind == FileKind::Host) || kind == FileKind::Host;
            let host = rules().find(|rule| is_host(rule.kind)).unwrap();
            let mut variables: Vec<String> =
                rules().filter_map(|rule| rule.variable.map(|name| format!("`{name}`"))).collect();
            variables.dedup();
            format!("| {library} | {} | {} | {} |", files.join(", "), host.name_use, variables.join(", "))
        });
        let unserved =
            UNSERVED.iter().map(|row| format!("| {} | `{}` | not served: {} | |", row.library, row.file, row.why));
        served.chain(unserved).collect()
    }

    #[test]
    fn the_page_has_the_table() {
        let page = include_str!("../../../../docs/guide/serve.md");
        let missing: Vec<String> = page_rows().into_iter().filter(|row| !page.contains(row)).collect();
        assert!(missing.is_empty(), "docs/guide/serve.md lacks:\n{}", missing.join("\n"));
    }

    #[test]
    fn each_library_with_data_has_a_host_library() {
        for rule in RULES.iter().filter(|rule| !rule.directories.is_empty()) {
            let is_host = |row: &&FileRule| row.library == rule.library && row.kind == FileKind::Host;
            assert!(RULES.iter().any(|row| is_host(&row)) && rule.variable.is_some(), "{}", rule.library);
        }
        assert_eq!(RULES.last().unwrap().library, OTHER);
    }
}
