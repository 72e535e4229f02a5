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
use hotswap_files::reads;
use hotswap_load_model::{ContainerUse, DeviceModes, EntryChoice, FileUse, ReadDepth};
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
                    self.outcome.text += &table(name, &shown_modes(gpu, &modes), &choices);
                }
            }
        }
        let problems: Vec<_> = problems.into_iter().map(|problem| problem.in_file(name)).collect();
        let reported: Vec<_> = problems.iter().map(Diagnostic::to_json).collect();
        self.files.push(json!({ "file": name.display().to_string(), "gpus": gpus, "problems": reported }));
        self.outcome.problems.extend(problems);
    }
}

/// The modes of a GPU, those with the same answer together.
fn grouped_modes(gpu: &DeviceModes, is_same: impl Fn(&TargetId, &TargetId) -> bool) -> Vec<Vec<TargetId>> {
    let mut groups: Vec<Vec<TargetId>> = Vec::new();
    for mode in &gpu.modes {
        match groups.iter_mut().find(|group| is_same(&group[0], mode)) {
            Some(group) => group.push(*mode),
            None => groups.push(vec![*mode]),
        }
    }
    groups
}

fn shown_modes(gpu: &DeviceModes, modes: &[TargetId]) -> String {
    if modes.len() == gpu.modes.len() {
        return gpu.requested.to_string();
    }
    modes.iter().map(TargetId::to_string).collect::<Vec<_>>().join(", ")
}

/// A GPU that gets nothing is an error; one that gets only a part, a warning: kernels of the rest cannot start.
fn missing_code(gpu: &str, choices: &[ContainerUse<'_>]) -> Option<Diagnostic> {
    let loaded = choices.iter().filter(|one| is_loaded(one)).count();
    if loaded == choices.len() {
        return None;
    }
    if loaded == 0 {
        return Some(Diagnostic::error(codes::LACKS_GPU, format!("HIP finds no code for {gpu} in it")));
    }
    let what = format!("HIP finds no code for {gpu} in {} of its {} containers", choices.len() - loaded, choices.len());
    Some(Diagnostic::warning(codes::LACKS_GPU, what))
}

fn is_loaded(one: &ContainerUse<'_>) -> bool {
    matches!(one.choice, EntryChoice::Loaded { .. })
}

const HEADS: [&str; 5] = ["WRAPPER", "PLACE", "LOADS", "SIZE", "BECAUSE"];

fn table(name: &Path, gpu: &str, choices: &[ContainerUse<'_>]) -> String {
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    rows.extend(choices.iter().map(cells));
    let loaded = choices.iter().filter(|one| is_loaded(one)).count();
    let plural = if choices.len() == 1 { "container" } else { "containers" };
    let file = text::plain(&name.display().to_string());
    format!("{file}: {gpu} loads code from {loaded} of {} {plural}\n{}", choices.len(), text::table(&rows))
}

fn cells(one: &ContainerUse<'_>) -> Vec<String> {
    let wrapper = one.wrapper.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let place = text::plain(&one.container.place);
    match &one.choice {
        EntryChoice::Loaded { index, how } => {
            let entry = &one.container.entries[*index];
            vec![wrapper, place, text::plain(&entry.id), entry.size.to_string(), how.to_string()]
        }
        EntryChoice::Nothing(failure) => {
            vec![wrapper, place, "nothing".to_owned(), "-".to_owned(), failure.to_string()]
        }
    }
}

fn gpu_json(gpu: &DeviceModes, modes: &[TargetId], choices: &[ContainerUse<'_>]) -> Value {
    let modes: Vec<String> = modes.iter().map(TargetId::to_string).collect();
    let containers: Vec<Value> = choices.iter().map(container_json).collect();
    json!({ "gpu": gpu.requested.to_string(), "modes": modes, "containers": containers })
}

fn container_json(one: &ContainerUse<'_>) -> Value {
    let (entry, reason) = match &one.choice {
        EntryChoice::Loaded { index, how } => (one.container.entries.get(*index), how.to_string()),
        EntryChoice::Nothing(failure) => (None, failure.to_string()),
    };
    json!({
        "place": one.container.place,
        "wrapper": one.wrapper,
        "entry": entry.map(|entry| &entry.id),
        "size": entry.map(|entry| entry.size),
        "reason": reason,
    })
}
