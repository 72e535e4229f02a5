//! `hotswap uses`: the entry that HIP loads from each container for a GPU, and the way to it; in directories and packages also the
//! data files that host libraries open (`tree`).
//!
//! JSON: `{schema: 1, files: [{file, gpus: [{gpu, modes, containers: [{place, wrapper, entry, size, reason}]}], problems}],
//! trees: [{tree, gpus: [{gpu, modes, shown, files: [{library, file, state, entries, reason}]}], problems}]}`; `entry` is null
//! where nothing is loaded. Modes of a GPU (XNACK, SRAMECC) with the same answer are together.
//!
//! Absent on purpose: the rules of HIP and of the libraries (`hotswap-load-model`).

mod tree;

use crate::args::{Files, OutputFormat};
use crate::outcome::CommandOutcome;
use crate::work::{packages, text};
use clap::Args;
use hotswap_file_reports::container_uses::{container_table, gpu_json, grouped_modes, missing_code, shown_modes};
use hotswap_files::reads;
use hotswap_load_model::{DeviceModes, FileUse, ReadDepth};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct UsesArguments {
    /// GPUs, for example gfx1030 or gfx90a:xnack+; a name without features means all of its modes
    #[arg(long, value_name = "GPU", required = true, num_args = 1, value_delimiter = ',')]
    gpu: Vec<TargetId>,
    /// The name of the GPU that host libraries see in directories and packages [default: as files of `hotswap serve` say,
    /// or the GPU's own]
    #[arg(long, value_name = "NAME")]
    shown: Option<String>,
    /// Take the packages and directories for parts of one installation, as a package with libraries and those with the code of each GPU
    #[arg(long)]
    together: bool,
    #[command(flatten)]
    files: Files,
}

pub(crate) fn run(arguments: &UsesArguments) -> Result<CommandOutcome, Diagnostic> {
    if let Some(generic) = arguments.gpu.iter().find(|gpu| gpu.processor.is_generic()) {
        let what = format!("{generic} is a generic target, not a GPU");
        return Err(Diagnostic::error(codes::USAGE, what).advise("name a GPU that it covers: see `hotswap targets`"));
    }
    let gpus: Vec<DeviceModes> = arguments.gpu.iter().copied().map(DeviceModes::of_target).collect();
    if let Some(name) = arguments.shown.as_ref().filter(|name| hotswap_targets::find_processor(name).is_none()) {
        let what = format!("`{name}` is not the name of a GPU");
        return Err(Diagnostic::error(codes::UNKNOWN_TARGET, what).advise("name one as `hotswap targets` does"));
    }
    let format = arguments.files.output.format;
    let mut answers = UsesAnswers { gpus, shown: arguments.shown.clone(), format, ..UsesAnswers::default() };
    let apart: &[PathBuf] = if arguments.together { &[] } else { &arguments.files.files };
    if arguments.together {
        answers.add_installation(&arguments.files.files)?;
    }
    for file in apart {
        let answered = match packages::format_of(file) {
            Ok(None) => answers.add_file_or_directory(file),
            Ok(Some(format)) => answers.add_package(file, format),
            Err(error) => Err(error),
        };
        // A file that cannot be read does not hide the others.
        answers.outcome.problems.extend(answered.err());
    }
    let UsesAnswers { mut outcome, files, trees, format, .. } = answers;
    if format == OutputFormat::Json {
        outcome.text = text::json(&json!({ "schema": 1, "files": files, "trees": trees }));
    }
    Ok(outcome)
}

#[derive(Default)]
struct UsesAnswers {
    gpus: Vec<DeviceModes>,
    /// The name that hosts see, where the user states it.
    shown: Option<String>,
    format: OutputFormat,
    outcome: CommandOutcome,
    files: Vec<Value>,
    trees: Vec<Value>,
}

impl UsesAnswers {
    fn add_file_or_directory(&mut self, path: &Path) -> Result<(), Diagnostic> {
        // Neither standard input nor a file that does not exist is a directory; the read says what they are.
        let is_directory = reads::find_metadata(path)?.is_some_and(|meta| meta.is_dir());
        if is_directory { self.add_directory(path) } else { self.add(path, path) }
    }

    /// `name` is shown for the file.
    fn add(&mut self, path: &Path, name: &Path) -> Result<(), Diagnostic> {
        let bytes = hotswap_files::open_or_stdin(path)?;
        let contents = hotswap_bundle::find_containers(&bytes);
        let mut answer = FileUse::read(&bytes, &contents, ReadDepth::Headers);
        let has_faults = answer.registration.iter().any(|registration| !registration.faults.is_empty());
        if answer.containers.is_empty() && answer.problems.is_empty() && !has_faults {
            answer.problems.push(contents.missing_container());
        }
        self.add_answer(name, &answer);
        Ok(())
    }

    fn add_answer(&mut self, name: &Path, answer: &FileUse) {
        let mut problems = answer.problems.clone();
        problems.extend(answer.registration.iter().flat_map(|registration| registration.faults.clone()));
        let mut gpus = Vec::new();
        for gpu in &self.gpus {
            for modes in
                grouped_modes(gpu, |one, other| answer.choices_of_device(one) == answer.choices_of_device(other))
            {
                let choices = answer.choices_of_device(&modes[0]);
                problems.extend(missing_code(&shown_modes(gpu, &modes), &choices));
                gpus.push(gpu_json(gpu, &modes, &choices));
                if self.format == OutputFormat::Text && !choices.is_empty() {
                    self.outcome.text += &container_table(name, &shown_modes(gpu, &modes), &choices);
                }
            }
        }
        let problems: Vec<_> = problems.into_iter().map(|problem| problem.in_file(name)).collect();
        let reported: Vec<_> = problems.iter().map(Diagnostic::to_json).collect();
        self.files.push(json!({ "file": name.display().to_string(), "gpus": gpus, "problems": reported }));
        self.outcome.problems.extend(problems);
    }
}
