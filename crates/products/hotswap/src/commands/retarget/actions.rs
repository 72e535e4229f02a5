//! `hotswap retarget --list-actions`: the commands that retarget a file or all files of a directory, for build systems and remote
//! executors to run in any order and on any machine.
//!
//! A line of JSON for each file with device code: arguments, inputs, outputs. Paths are as given, so relative ones stay relative;
//! each action depends on its inputs and on HotSwap (`hotswap toolchain`) alone.

use super::RetargetArguments;
use crate::outcome::CommandOutcome;
use crate::work::text;
use clap::ValueEnum;
use hotswap_report::{Diagnostic, codes, limit};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

impl RetargetArguments {
    pub(super) fn actions(&self) -> Result<CommandOutcome, Diagnostic> {
        if !self.source.is_empty() || self.to.is_empty() {
            let what = "--list-actions is for --to, and for sources in the file itself";
            return Err(Diagnostic::error(codes::USAGE, what));
        }
        self.request()?;
        let mut outcome = CommandOutcome::default();
        let mut without = 0;
        for file in files(&self.file)? {
            let has_code =
                hotswap_files::open_input(&file).map(|bytes| !hotswap_bundle::find_containers(&bytes).found.is_empty());
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
        let targets = self.to.join(",");
        let mut words: Vec<String> = ["hotswap", "retarget", &input, "--to", &targets].map(str::to_owned).into();
        words.extend(self.other_words());
        words.extend(["-o".to_owned(), output.clone()]);
        Ok(format!("{}\n", json!({ "arguments": words, "inputs": [input], "outputs": [output] })))
    }

    /// The other options that change an output.
    fn other_words(&self) -> Vec<String> {
        let mut words = max_size();
        // Whether a file needs a change is not known before its action runs.
        words.push("--allow-unchanged".to_owned());
        words.extend(self.settings.words());
        let names = self.allow.iter().filter_map(ValueEnum::to_possible_value);
        words.extend(names.map(|value| format!("--allow={}", value.get_name())));
        if !self.drop.is_empty() {
            words.push(format!("--drop={}", self.drop.join(",")));
        }
        for (is_set, word) in [
            (self.compress, "--compress"),
            (self.keep_source, "--keep-source"),
            (self.leave_out.is_some(), "--leave-out=kernels"),
        ] {
            words.extend(is_set.then(|| word.to_owned()));
        }
        words
    }
}

/// The limit of the command, for the commands that it prints.
pub(crate) fn max_size() -> Vec<String> {
    limit::requested_limit().map(|bytes| format!("--max-size={bytes}")).into_iter().collect()
}

/// A path as a word that is no option. JSON has no bytes that are not text.
pub(crate) fn name(path: &Path) -> Result<String, Diagnostic> {
    let text = path.to_str().ok_or_else(|| non_utf8_name_error(path))?;
    Ok(if text.starts_with('-') { format!("./{text}") } else { text.to_owned() })
}

fn non_utf8_name_error(path: &Path) -> Diagnostic {
    Diagnostic::error(codes::USAGE, "the name is not UTF-8").in_file(path)
}

/// The file, or all regular files below the directory, in the order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    if !hotswap_files::reads::find_metadata(path)?.is_some_and(|meta| meta.is_dir()) {
        return Ok(vec![path.to_owned()]);
    }
    let (mut found, mut open) = (Vec::new(), vec![path.to_owned()]);
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).map_err(|error| Diagnostic::cannot_read(&directory, error))? {
            let entry = entry.map_err(|error| Diagnostic::cannot_read(&directory, error))?;
            let kind = entry.file_type().map_err(|error| Diagnostic::cannot_read(entry.path(), error))?;
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
