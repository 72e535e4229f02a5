//! The manifest of a served tree: each output with the hash of its input and its own, in JSON.
//!
//! Invariants: it is written when the tree is complete; until then the journal has the same rows. It holds no time and
//! no order of threads, so that the same request gives the same bytes.

use crate::plan::{ServeRequest, WantedTarget};
use hotswap_load_model::tree::is_missing;
use hotswap_plan::{IDENTITY, VERSION};
use hotswap_report::{Diagnostic, codes};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Its name in the destination.
pub const MANIFEST: &str = "hotswap-manifest.json";
/// The version of its form.
const SCHEMA: u32 = 1;

/// An output that was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRow {
    /// Its path below the destination.
    pub path: PathBuf,
    /// The library that it belongs to; none for files about the tree itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub library: Option<String>,
    /// The input, and the SHA-256 of its content.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input: Option<OutputSource>,
    /// Files of other GPUs whose code may be in it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub others: Vec<OutputSource>,
    /// SHA-256 of its content.
    pub sha256: String,
    /// The targets that were asked for, with their sources; none for a copy.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub wanted: Vec<WantedTarget>,
}

/// The input of an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSource {
    pub path: PathBuf,
    /// SHA-256 of its content.
    pub sha256: String,
}

/// A link that was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LinkRow {
    /// Its path below the destination.
    pub path: PathBuf,
    /// The path that the link leads to, as its text has it.
    pub to: PathBuf,
}

/// A library that is not served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRow {
    pub library: String,
    /// The reasons, each as one line.
    pub reasons: Vec<String>,
}

/// The settings that outputs depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MakerSettings {
    pub hotswap: String,
    /// The build that has made the tree.
    pub identity: String,
    pub settings: ServeRequest,
}

impl MakerSettings {
    /// Those of this build for a request.
    pub(crate) fn of_request(request: &ServeRequest) -> Self {
        Self { hotswap: VERSION.to_owned(), identity: IDENTITY.to_owned(), settings: request.clone() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeManifest {
    /// The version of its form.
    pub schema: u32,
    /// The settings that outputs depend on.
    #[serde(flatten)]
    pub maker: MakerSettings,
    /// The roots of the inputs.
    pub roots: Vec<PathBuf>,
    /// Each target with its source; in mode `source`, the name that the host sees.
    pub wanted: Vec<WantedTarget>,
    pub files: Vec<FileRow>,
    pub links: Vec<LinkRow>,
    /// Directories that were made, the outer ones first.
    pub directories: Vec<PathBuf>,
    /// The libraries that are not served.
    pub refused: Vec<RefusedRow>,
}

impl TreeManifest {
    /// The manifest of a complete tree.
    pub(crate) fn new(maker: MakerSettings, roots: &[PathBuf], wanted: &[WantedTarget]) -> Self {
        Self {
            schema: SCHEMA,
            maker,
            roots: roots.to_vec(),
            wanted: wanted.to_vec(),
            files: Vec::new(),
            links: Vec::new(),
            directories: Vec::new(),
            refused: Vec::new(),
        }
    }

    /// Reads the manifest of a destination; `None` where it does not exist.
    ///
    /// # Errors
    /// [`codes::CANNOT_READ`], [`codes::MALFORMED`], and [`codes::UNKNOWN_FORMAT`] for a later version of its form.
    pub fn read(destination: &Path) -> Result<Option<Self>, Diagnostic> {
        let path = destination.join(MANIFEST);
        if is_missing(&path)? {
            return Ok(None);
        }
        let text = hotswap_files::read_file(&path)?;
        let value: serde_json::Value =
            serde_json::from_slice(&text).map_err(|error| damaged_manifest(&error, &path))?;
        if value["schema"] != SCHEMA {
            let what = format!("schema {} of the manifest", value["schema"]);
            return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).in_file(&path));
        }
        let manifest: Self = serde_json::from_value(value).map_err(|error| damaged_manifest(&error, &path))?;
        manifest.check_paths().map_err(|error| error.in_file(&path))?;
        Ok(Some(manifest))
    }

    /// Paths that lead out of the destination are damage: they would be removed.
    fn check_paths(&self) -> Result<(), Diagnostic> {
        let files = self.files.iter().map(|row| &row.path).chain(self.links.iter().map(|row| &row.path));
        files.chain(&self.directories).try_for_each(|path| check_path(path))
    }

    /// The manifest as the text of its file.
    ///
    /// # Errors
    /// [`codes::CANNOT_WRITE`] for paths that are not text.
    pub(crate) fn to_text(&self) -> Result<String, Diagnostic> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|error| Diagnostic::error(codes::CANNOT_WRITE, error.to_string()))
    }

    /// The outputs that do not belong to a library.
    pub fn is_own(row: &FileRow) -> bool {
        row.library.is_none()
    }
}

fn damaged_manifest(error: &serde_json::Error, path: &Path) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, error.to_string()).in_file(path)
}

/// Refuses a path that leads out of the destination.
pub(crate) fn check_path(path: &Path) -> Result<(), Diagnostic> {
    let is_inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if is_inside { Ok(()) } else { Err(Diagnostic::error(codes::MALFORMED, path_escape_message(path))) }
}

fn path_escape_message(path: &Path) -> String {
    format!("the path `{}` leads out of the destination", path.display())
}
