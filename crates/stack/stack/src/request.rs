//! The request to serve GPUs: which, from what, under which name, and the places of a run.

use hotswap_report::Diagnostic;
use hotswap_targets::{Processor, require_processor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The name of the GPU that the host libraries see.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameMode {
    /// The source's: files keep their names.
    #[default]
    Source,
    /// The GPU's own: files and indices are renamed.
    Own,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServeRequest {
    /// The GPUs to serve.
    pub targets: Vec<String>,
    pub from: Option<String>,
    /// The name that the host sees.
    pub names: NameMode,
    /// Further GPUs whose files are copied.
    pub keep: Vec<String>,
    pub experimental: bool,
    /// Leaves out kernels that fail a check of their pair.
    pub leave_out_kernels: bool,
}

/// The fixed parts of a run.
#[derive(Debug, Clone, Copy)]
pub struct ServeRun<'r> {
    /// The roots of the inputs.
    pub roots: &'r [PathBuf],
    /// The directory for the outputs.
    pub destination: &'r Path,
    pub settings: &'r ServeRequest,
    /// The library that shows programs the source's name, where it is installed.
    pub preload: Option<&'r Path>,
}

/// A target and its source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WantedTarget {
    /// The GPU to serve.
    pub target: String,
    /// The GPU that the code was compiled for.
    pub source: String,
}

impl WantedTarget {
    /// The GPU to serve.
    ///
    /// # Errors
    /// [`hotswap_report::codes::UNKNOWN_TARGET`] for a name that no processor has.
    pub(crate) fn processor(&self) -> Result<&'static Processor, Diagnostic> {
        Ok(require_processor(&self.target)?)
    }

    /// The sources, each once.
    pub(crate) fn source_names(wanted: &[Self]) -> String {
        let sources = BTreeSet::from_iter(wanted.iter().map(|row| row.source.clone()));
        Vec::from_iter(sources).join(", ")
    }
}
