//! An output that is made apart from its tree, on any machine, and the record beside it by which a run takes it.
//!
//! Invariants: the record is a function of the program, the action and the content of its inputs; no path is in it. An
//! output is taken only where the record is that of the action at hand and the content is the recorded one.
//!
//! Absent on purpose: outputs that are copied, and indices. They are made with the tree, faster than they are sent.

use crate::hash;
use crate::plan::{Action, NameMode, OtherSource, OutputContent, ServeRequest};
use crate::rules::FileKind;
use hotswap_plan::{IDENTITY, VERSION};
use hotswap_report::{Diagnostic, codes};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Everything that an output depends on besides the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SingleAction {
    pub input: PathBuf,
    pub kind: FileKind,
    pub content: OutputContent,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherSource>,
    pub names: NameMode,
    pub experimental: bool,
    pub leave_out_kernels: bool,
}

/// More bytes are not a record.
const LARGEST: u64 = 4096;

/// The record of an output that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeRecord {
    /// The hash of the program's identity, the action and its inputs.
    pub action: String,
    /// The SHA-256 of the output.
    pub sha256: String,
    /// Whether nothing needs to be added to the input, and the output is a copy.
    pub is_copy: bool,
}

impl SingleAction {
    /// The action of a plan; `None` where no code object is made.
    pub fn of_plan_action(action: &Action, settings: &ServeRequest) -> Option<Self> {
        matches!(action.content, OutputContent::Served(_) | OutputContent::Alone(_)).then(|| Self {
            input: action.input.clone(),
            kind: action.kind,
            content: action.content.clone(),
            others: action.others.clone(),
            names: settings.names,
            experimental: settings.experimental,
            leave_out_kernels: settings.leave_out_kernels,
        })
    }

    /// The action with the output's path.
    pub fn action_with_output(&self, output: &Path) -> Action {
        let Self { input, kind, content, others, .. } = self.clone();
        Action { input, output: output.to_owned(), kind, content, others }
    }

    /// The settings of the request that it depends on.
    pub fn request_settings(&self) -> ServeRequest {
        ServeRequest {
            names: self.names,
            experimental: self.experimental,
            leave_out_kernels: self.leave_out_kernels,
            ..ServeRequest::default()
        }
    }

    /// The files that it reads, each once.
    pub fn distinct_inputs(&self) -> Vec<&Path> {
        let mut inputs = vec![self.input.as_path()];
        for other in &self.others {
            if !inputs.contains(&other.input.as_path()) {
                inputs.push(&other.input);
            }
        }
        inputs
    }

    /// The hash that [`MadeRecord::action`] holds.
    ///
    /// # Errors
    /// [`codes::CANNOT_READ`] for an input.
    pub fn action_hash(&self) -> Result<String, Diagnostic> {
        let mut named_by_content = self.clone();
        named_by_content.input = hash::of_file(&self.input)?.into();
        for other in &mut named_by_content.others {
            other.input = hash::of_file(&other.input)?.into();
        }
        let text = serde_json::to_string(&(VERSION, IDENTITY, named_by_content));
        let text = text.map_err(|error| Diagnostic::error(codes::INTERNAL, error.to_string()))?;
        Ok(hash::sha256_of(text.as_bytes()))
    }
}

impl MadeRecord {
    /// The path of an output's record.
    pub fn record_path(output: &Path) -> PathBuf {
        let mut path = output.as_os_str().to_owned();
        path.push(".hotswap-made.json");
        path.into()
    }

    /// Reads the record of an output; `None` where it does not exist, or another file of that name does.
    pub fn read(output: &Path) -> Option<Self> {
        let path = Self::record_path(output);
        let is_record = fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= LARGEST);
        is_record.then(|| serde_json::from_slice(&fs::read(&path).ok()?).ok()).flatten()
    }

    /// Writes the record beside the output.
    ///
    /// # Errors
    /// [`codes::CANNOT_WRITE`] where the file system refuses.
    pub fn write(&self, output: &Path) -> Result<(), Diagnostic> {
        let text = serde_json::to_string(self);
        let text = text.map_err(|error| Diagnostic::error(codes::INTERNAL, error.to_string()))?;
        hotswap_files::replace_file(&Self::record_path(output), format!("{text}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::WantedTarget;

    fn action(directory: &Path) -> SingleAction {
        let wanted = WantedTarget { target: "gfx1031".into(), source: "gfx1030".into() };
        SingleAction {
            input: directory.join("input"),
            kind: FileKind::Container,
            content: OutputContent::Served(vec![wanted.clone()]),
            others: vec![OtherSource { wanted, input: directory.join("other") }],
            names: NameMode::Source,
            experimental: false,
            leave_out_kernels: false,
        }
    }

    #[test]
    fn the_hash_is_of_contents_and_of_all_settings() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for directory in [&one, &other] {
            fs::write(directory.path().join("input"), "input").unwrap();
            fs::write(directory.path().join("other"), "other").unwrap();
        }
        let first = action(one.path());
        let hash = first.action_hash().unwrap();
        assert_eq!(hash, action(other.path()).action_hash().unwrap(), "a path is in it");
        let mut changed: Vec<SingleAction> = vec![first.clone(); 6];
        changed[0].kind = FileKind::FatBinary;
        changed[1].content = OutputContent::Alone(changed[1].content.wanted_targets()[0].clone());
        changed[2].names = NameMode::Own;
        changed[3].experimental = true;
        changed[4].leave_out_kernels = true;
        changed[5].others.clear();
        for changed in &changed {
            assert_ne!(changed.action_hash().unwrap(), hash, "{changed:?}");
        }
        for file in ["input", "other"] {
            let path = other.path().join(file);
            fs::write(&path, "changed").unwrap();
            assert_ne!(action(other.path()).action_hash().unwrap(), hash, "{file}");
            fs::write(path, file).unwrap();
        }
        let again: SingleAction = serde_json::from_str(&serde_json::to_string(&first).unwrap()).unwrap();
        assert_eq!(again, first);
    }
}
