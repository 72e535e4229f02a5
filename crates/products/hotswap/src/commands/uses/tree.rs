//! `hotswap uses` of directories and packages: each program and library, and the data files that host libraries open.

use super::UsesAnswers;
use crate::args::OutputFormat;
use crate::work::package_tree::{FileSet, PackageTree};
use crate::work::packages;
use hotswap_file_reports::container_uses::shown_modes;
use hotswap_file_reports::opened_files::{
    FileLabel, ModesAnswer, grouped_answers, opened_json, opened_table, use_faults,
};
use hotswap_load_model::tree::LibraryTree;
use hotswap_load_model::{DeviceModes, FileUse, TreeReader};
use hotswap_packages::PackageFormat;
use hotswap_report::{Diagnostic, codes};
use hotswap_stack::package_names::{ShownName, names_of_tree, shown_name};
use serde_json::json;
use std::path::{Path, PathBuf};

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
                problems.extend(use_faults(&gpu_text, &answer, label));
                rows.push(opened_json(&gpu, &modes, &answer));
                if self.format == OutputFormat::Text && !answer.files.is_empty() {
                    self.outcome.text += &opened_table(name, &gpu_text, &answer);
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
