//! The references of host libraries to kernel archives (kpack), as the HIP runtime follows them.
//!
//! The section `.rocm_kpack_ref` (`.kpackrf` in PE files) is a MessagePack map of `kernel_name`, the fat binary's name in the archives, and
//! `kpack_search_paths`, paths from the library's directory with `@GFXARCH@` in the place of the GPU's own name or of its generic
//! target. (rocm-systems: shared/kpack, runtime.)

use hotswap_bundle::{ARCHIVE_REFERENCES, open_with};
use hotswap_report::{Diagnostic, codes};
use rmpv::Value;

/// The place of the GPU in a path.
const GPU: &str = "@GFXARCH@";

/// The reference of one host library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveReference {
    /// Name of the fat binary in the archives.
    pub binary: String,
    /// Paths of the archives from the directory of the library, the first that exists is opened.
    pub paths: Vec<String>,
}

impl ArchiveReference {
    /// The references of a file.
    ///
    /// # Errors
    /// [`codes::UNKNOWN_FORMAT`] for a section of another form.
    pub fn read(file: &[u8]) -> Result<Vec<Self>, Diagnostic> {
        let contents = open_with(file, ARCHIVE_REFERENCES);
        contents.sections.iter().map(|(_, section)| Self::parse(section)).collect()
    }

    fn parse(section: &[u8]) -> Result<Self, Diagnostic> {
        let mut rest = section;
        let value = rmpv::decode::read_value(&mut rest).map_err(|_| unknown_reference())?;
        let field = |name: &str| {
            let entries = value.as_map()?;
            entries.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
        };
        let binary = field("kernel_name").and_then(Value::as_str).ok_or_else(unknown_reference)?;
        let paths = field("kpack_search_paths").and_then(Value::as_array).ok_or_else(unknown_reference)?;
        let paths = paths.iter().map(|path| path.as_str().map(str::to_owned));
        Ok(Self { binary: binary.to_owned(), paths: paths.collect::<Option<_>>().ok_or_else(unknown_reference)? })
    }

    /// The paths for a name of the GPU.
    pub fn paths_for<'r>(&'r self, gpu: &'r str) -> impl Iterator<Item = String> + 'r {
        self.paths.iter().map(move |path| path.replace(GPU, gpu))
    }

    /// Whether a fat binary of an archive is the library's: archives number the several ones of a library.
    pub fn is_its(&self, name: &str) -> bool {
        name.strip_prefix(&self.binary).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
    }
}

fn unknown_reference() -> Diagnostic {
    Diagnostic::error(codes::UNKNOWN_FORMAT, "the reference to kernel archives").in_entry(ARCHIVE_REFERENCES[0])
}
