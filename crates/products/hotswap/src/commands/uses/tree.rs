//! `hotswap uses` of directories and packages: each program and library, and the data files that host libraries open.

use super::{UsesAnswers, grouped_modes, shown_modes};
use crate::args::OutputFormat;
use crate::work::package_tree::{FileSet, PackageTree};
use crate::work::{packages, text};
use hotswap_load_model::tree::LibraryTree;
use hotswap_load_model::{DeviceModes, FileState, FileUse, OpenedFile, SeenGpu, TreeReader, TreeUse};
use hotswap_packages::PackageFormat;
use hotswap_report::{Diagnostic, codes};
use hotswap_stack::package_names::{ShownName, names_of_tree, shown_name};
use hotswap_targets::TargetId;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The name of a file of a tree in messages.
type FileLabel<'l> = dyn Fn(&Path) -> PathBuf + 'l;

impl UsesAnswers {
    pub(super) fn add_directory(&mut self, directory: &Path) -> Result<(), Diagnostic> {
        let tree = hotswap_stack::read_tree(&[directory.to_owned()])?;
        self.add_tree(directory, &tree, &|file| directory.join(file))
    }

    pub(super) fn add_package(&mut self, file: &Path, format: PackageFormat) -> Result<(), Diagnostic> {
        let package = PackageTree::read(file, format)?;
        self.add_tree(file, &package.tree, &|inner| packages::label(file, &inner.display().to_string()))
    }

    /// Packages and directories that are installed in one place.
    pub(super) fn add_installation(&mut self, parts: &[PathBuf]) -> Result<(), Diagnostic> {
        let mut packages = Vec::new();
        for part in parts {
            let form = FileSet::of_path(part)?;
            let form = form.ok_or_else(|| {
                let error = Diagnostic::error(codes::USAGE, "--together is for packages and directories").in_file(part);
                error.advise("put the file into the directory of the installation")
            })?;
            packages.push(PackageTree::of_files(part, form)?);
        }
        let roots: Vec<PathBuf> = packages.iter().map(|package| package.root.clone()).collect();
        let tree = hotswap_stack::read_tree(&roots)?;
        let names: Vec<String> = parts.iter().map(|part| part.display().to_string()).collect();
        self.add_tree(Path::new(&names.join(" + ")), &tree, &|file| label_of_part(&tree, parts, &roots, file))
    }

    fn add_tree(&mut self, name: &Path, tree: &LibraryTree, label: &FileLabel<'_>) -> Result<(), Diagnostic> {
        let reader = TreeReader::new(tree);
        let names = names_of_tree(tree)?;
        let mut count = 0;
        for (path, host) in reader.hosts().filter(|(_, host)| !is_empty(&host.answer)) {
            let is_opened =
                |gpu: &DeviceModes| host.gpu.as_ref().is_none_or(|named| *named == self.shown_to(gpu, &names));
            if self.gpus.iter().any(is_opened) {
                count += 1;
                self.add_answer(&label(path), &host.answer);
            }
        }
        let (mut rows, mut problems) = (Vec::new(), reader.problems.clone());
        for gpu in self.gpus.clone() {
            for ModesAnswer { modes, answer } in grouped_answers(&reader, &gpu, &self.shown_to(&gpu, &names)) {
                let gpu_text = shown_modes(&gpu, &modes);
                count += answer.files.len();
                problems.extend(faults(&gpu_text, &answer, label));
                rows.push(json_of(&gpu, &modes, &answer));
                if self.format == OutputFormat::Text && !answer.files.is_empty() {
                    self.outcome.text += &table(name, &gpu_text, &answer);
                }
            }
        }
        if count == 0 && problems.is_empty() {
            problems.push(Diagnostic::error(codes::NOT_FOUND, "no file in it has device code"));
        }
        let problems: Vec<_> = problems.into_iter().map(|problem| problem.in_file(name)).collect();
        let reported: Vec<_> = problems.iter().map(Diagnostic::to_json).collect();
        self.trees.push(json!({ "tree": name.display().to_string(), "gpus": rows, "problems": reported }));
        self.outcome.problems.extend(problems);
        Ok(())
    }

    /// The name that hosts see for a GPU.
    fn shown_to(&self, gpu: &DeviceModes, names: &[ShownName]) -> String {
        let own = gpu.requested.processor.name;
        self.shown.clone().unwrap_or_else(|| shown_name(names, own).to_owned())
    }
}

/// The name of a file of an installation: with the part that has it.
fn label_of_part(tree: &LibraryTree, parts: &[PathBuf], roots: &[PathBuf], file: &Path) -> PathBuf {
    let owner = tree.files.get(file).and_then(|path| roots.iter().position(|root| path.starts_with(root)));
    match owner.and_then(|owner| parts.get(owner)) {
        Some(part) => packages::label(part, &file.display().to_string()),
        None => file.to_owned(),
    }
}

/// Libraries whose code is in kernel archives have nothing to show themselves.
fn is_empty(answer: &FileUse) -> bool {
    answer.containers.is_empty()
}

/// The answer for some modes of a GPU.
struct ModesAnswer {
    modes: Vec<TargetId>,
    answer: TreeUse,
}

/// The answers for the modes of a GPU, those with the same one together.
fn grouped_answers(reader: &TreeReader<'_>, gpu: &DeviceModes, shown: &str) -> Vec<ModesAnswer> {
    let groups = grouped_modes(gpu, |one, other| {
        gpu_use_answer(one, reader, shown).files == gpu_use_answer(other, reader, shown).files
    });
    let answers = groups.into_iter().map(|modes| {
        let answer = gpu_use_answer(&modes[0], reader, shown);
        ModesAnswer { modes, answer }
    });
    answers.collect()
}

fn gpu_use_answer(device: &TargetId, reader: &TreeReader<'_>, shown: &str) -> TreeUse {
    reader.use_of_gpu(&SeenGpu { device: *device, shown: shown.to_owned() })
}

/// Faults that are shown one by one; a GPU without code has as many as the library has files.
const SHOWN_FAULTS: usize = 10;

fn faults(gpu: &str, answer: &TreeUse, label: &FileLabel<'_>) -> Vec<Diagnostic> {
    let mut shown: Vec<Diagnostic> = answer.faults().take(SHOWN_FAULTS).map(|file| fault(gpu, file, label)).collect();
    let more = answer.faults().count().saturating_sub(SHOWN_FAULTS);
    if more > 0 {
        let what =
            format!("{} of its libraries on {gpu} do not exist, or give it nothing", text::counted(more, "more file"));
        shown.push(Diagnostic::error(codes::LACKS_GPU, what));
    }
    shown
}

fn fault(gpu: &str, file: &OpenedFile, label: &FileLabel<'_>) -> Diagnostic {
    let what = format!("{} opens it on {gpu} ({}), and {}", file.library, file.because, state_text(&file.state));
    Diagnostic::error(codes::LACKS_GPU, what).in_file(label(&file.path))
}

fn state_text(state: &FileState) -> String {
    match state {
        FileState::Read => "read".to_owned(),
        FileState::Loads(entries) => entries.join(", "),
        FileState::Missing => "it does not exist".to_owned(),
        FileState::Fails(reason) => format!("HIP loads nothing: {reason}"),
    }
}

const HEADS: [&str; 4] = ["LIBRARY", "FILE", "LOADS", "BECAUSE"];

fn table(name: &Path, gpu: &str, answer: &TreeUse) -> String {
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    rows.extend(answer.files.iter().map(|file| {
        let path = text::plain(&file.path.display().to_string());
        vec![file.library.to_owned(), path, text::plain(&state_text(&file.state)), text::plain(&file.because)]
    }));
    let good = answer.files.iter().filter(|file| file.state.is_good()).count();
    let shown = match answer.gpu.shown == answer.gpu.device.processor.name {
        true => String::new(),
        false => format!(", shown as {}", answer.gpu.shown),
    };
    let of = text::counted(answer.files.len(), "data file");
    format!("{}: {gpu}{shown} gets {good} of {of}\n{}", text::plain(&name.display().to_string()), text::table(&rows))
}

fn json_of(gpu: &DeviceModes, modes: &[TargetId], answer: &TreeUse) -> Value {
    let modes: Vec<String> = modes.iter().map(TargetId::to_string).collect();
    let files: Vec<Value> = answer.files.iter().map(file_json).collect();
    json!({ "gpu": gpu.requested.to_string(), "modes": modes, "shown": answer.gpu.shown, "files": files })
}

fn file_json(file: &OpenedFile) -> Value {
    let state = match &file.state {
        FileState::Read => "read",
        FileState::Loads(_) => "loaded",
        FileState::Missing => "missing",
        FileState::Fails(_) => "failed",
    };
    let entries = if let FileState::Loads(entries) = &file.state { entries.clone() } else { Vec::new() };
    json!({
        "library": file.library,
        "file": file.path.display().to_string(),
        "state": state,
        "entries": entries,
        "optional": file.is_optional,
        "reason": format!("{}{}", file.because, fail_text(&file.state)),
    })
}

fn fail_text(state: &FileState) -> String {
    if let FileState::Fails(reason) = state { format!("; {reason}") } else { String::new() }
}
