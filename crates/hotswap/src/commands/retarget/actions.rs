//! `hotswap retarget --list-actions`: the commands that retarget a file or all files of a directory, for build systems and remote
//! executors to run in any order and on any machine.
//!
//! A line of JSON for each file with device code: arguments, inputs, outputs. Paths are as given, so relative ones stay relative;
//! each action depends on its inputs and on HotSwap (`hotswap toolchain`) alone.

use super::RetargetArguments;
use crate::outcome::Outcome;
use crate::work::text;
use hotswap_report::{Diagnostic, codes};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

impl RetargetArguments {
    pub(super) fn actions(&self) -> Result<Outcome, Diagnostic> {
        if !self.source.is_empty() || self.to.is_empty() {
            let what = "--list-actions is for --to, and for sources in the file itself";
            return Err(Diagnostic::error(codes::USAGE, what));
        }
        self.request()?;
        let mut outcome = Outcome::default();
        let mut without = 0;
        for file in files(&self.file)? {
            let has_code = hotswap_files::open(&file).map(|bytes| !hotswap_bundle::open(&bytes).found.is_empty());
            match has_code {
                Ok(true) => outcome.text += &self.action(&file)?,
                Ok(false) => without += 1,
                Err(error) => outcome.problems.push(error.in_file(&file)),
            }
        }
        if outcome.text.is_empty() && outcome.problems.is_empty() {
            return Err(Diagnostic::error(codes::NOT_FOUND, text::counted(without, "file")).in_file(&self.file));
        }
        Ok(outcome)
    }

    fn action(&self, file: &Path) -> Result<String, Diagnostic> {
        let output = match file.strip_prefix(&self.file) {
            Ok(below) if !below.as_os_str().is_empty() => self.output().join(below),
            _ => self.output().to_owned(),
        };
        let (input, output) = (name(file)?, name(&output)?);
        let mut words = vec!["hotswap", "retarget", input, "--to"].into_iter().map(str::to_owned).collect::<Vec<_>>();
        words.push(self.to.join(","));
        words.extend(self.unchanged_words());
        words.extend(["-o".to_owned(), output.to_owned()]);
        Ok(format!("{}\n", json!({ "arguments": words, "inputs": [input], "outputs": [output] })))
    }

    /// The other options of this command, as they were given.
    fn unchanged_words(&self) -> Vec<String> {
        let mut own = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
        let mut words = Vec::new();
        while let Some(word) = own.next() {
            let name = word.split('=').next().unwrap_or_default();
            if !KEPT.contains(&name) {
                continue;
            }
            let has_value = !word.contains('=') && !SWITCHES.contains(&name);
            words.push(word);
            words.extend(has_value.then(|| own.next()).flatten());
        }
        words
    }
}

/// Options that are options of each action.
const KEPT: &[&str] = &[
    "--policy",
    "--allow",
    "--allow-experimental",
    "--leave-out",
    "--compress",
    "--keep-source",
    "--drop",
    "--max-size",
];
/// Those without a value.
const SWITCHES: &[&str] = &["--allow-experimental", "--compress", "--keep-source"];

/// JSON has no bytes that are not text.
fn name(path: &Path) -> Result<&str, Diagnostic> {
    path.to_str().ok_or_else(|| Diagnostic::error(codes::USAGE, "the name is not UTF-8").in_file(path))
}

/// The file, or all regular files below the directory, in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let unreadable =
        |error: std::io::Error, path: &Path| Diagnostic::error(codes::CANNOT_READ, error.to_string()).in_file(path);
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut open) = (Vec::new(), vec![path.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).map_err(|error| unreadable(error, &directory))? {
            let entry = entry.map_err(|error| unreadable(error, &directory))?;
            let kind = entry.file_type().map_err(|error| unreadable(error, &entry.path()))?;
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}
