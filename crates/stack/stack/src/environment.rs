//! The environment in which programs use a served tree: as variables, as a file for the shell, and as the file in which
//! the library for LD_PRELOAD finds the names.
//!
//! HOTSWAP_NAMES is not set: it would show the source's name to all code of the process, also to programs that were
//! compiled for the GPU itself. Without it only the files of the tree see the name.

use crate::manifest::{FileRow, TreeManifest};
use crate::plan::{DataDirectory, NameMode, ServeRun, TreePlan};
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The file to source.
pub const ENVIRONMENT: &str = "env.sh";
/// The file that the library for LD_PRELOAD reads.
pub const NAMES: &str = "hotswap-names.conf";
/// The library for LD_PRELOAD.
pub const PRELOAD: &str = "libhotswap-names.so";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    pub name: &'static str,
    pub value: String,
    /// Whether an existing value follows it after a colon.
    pub is_list: bool,
}

/// The environment of a tree.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    pub variables: Vec<Variable>,
    /// The names that the host sees: `gfx1031=gfx1030,…`.
    pub names: String,
    /// The files of the tree whose code sees the names, also by the names of links.
    pub serves: Vec<PathBuf>,
    /// The GPUs that the tree has files for.
    pub code: BTreeSet<String>,
}

/// A file about the environment, below the destination.
pub(crate) struct EnvironmentFile {
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

impl Environment {
    /// # Errors
    /// [`codes::CANNOT_READ`] where the working directory lacks a path.
    pub(crate) fn new(plan: &TreePlan, manifest: &TreeManifest, run: ServeRun<'_>) -> Result<Self, Diagnostic> {
        let absolute = std::path::absolute(run.destination);
        let destination = absolute.map_err(|error| environment_read_error(error).in_file(run.destination))?;
        let is_library =
            |row: &&FileRow| row.path.file_name().is_some_and(|name| name.to_string_lossy().contains(".so"));
        let hosts: Vec<&FileRow> = manifest.files.iter().filter(|row| is_host(plan, &row.path)).collect();
        let directories: BTreeSet<PathBuf> = hosts
            .iter()
            .copied()
            .filter(is_library)
            .filter_map(|row| Some(destination.join(row.path.parent()?)))
            .collect();
        let mut environment = Self::default();
        if !directories.is_empty() {
            environment.set_variable("LD_LIBRARY_PATH", join_paths(directories.iter().map(PathBuf::as_path)), true);
        }
        for library in plan.libraries.iter().filter(|library| is_served_library(&library.name, manifest)) {
            if let Some(DataDirectory { variable, directory }) = &library.data {
                environment.set_variable(variable, destination.join(directory).display().to_string(), false);
            }
        }
        if run.settings.names == NameMode::Source {
            let preload = run.preload.map_or_else(|| PathBuf::from(PRELOAD), Path::to_owned);
            environment.set_variable("LD_PRELOAD", preload.display().to_string(), true);
            let names: Vec<_> = plan.wanted.iter().map(|row| format!("{}={}", row.target, row.source)).collect();
            environment.names = names.join(",");
            environment.code = plan.wanted.iter().flat_map(|row| [row.target.clone(), row.source.clone()]).collect();
            environment.code.extend(run.settings.keep.iter().cloned());
            // A library may be loaded by the name of a link.
            let links =
                manifest.links.iter().map(|row| (&row.path, row.path.parent().unwrap_or(Path::new("")).join(&row.to)));
            let links: Vec<_> = links.filter(|(_, to)| hosts.iter().any(|row| row.path == *to)).collect();
            environment.serves = hosts.iter().map(|row| row.path.clone()).collect();
            environment.serves.extend(links.into_iter().map(|(link, _)| link.clone()));
            environment.serves.sort();
        }
        Ok(environment)
    }

    fn set_variable(&mut self, name: &'static str, value: String, is_list: bool) {
        self.variables.push(Variable { name, value, is_list });
    }

    /// The files about the environment that a tree has.
    pub(crate) fn files_to_write(&self, has_names: bool) -> Vec<EnvironmentFile> {
        let mut files = vec![EnvironmentFile { name: ENVIRONMENT, text: self.shell_text() }];
        if has_names {
            files.push(EnvironmentFile { name: NAMES, text: self.names_file() });
        }
        files
    }

    /// The text of the file to source.
    pub fn shell_text(&self) -> String {
        let mut text = "# Written by `hotswap serve`; to be sourced by a shell.\n".to_owned();
        for Variable { name, value, is_list } in &self.variables {
            let value = shell_words::quote(value);
            let rest = if *is_list { format!("${{{name}:+:${name}}}") } else { String::new() };
            let _ = writeln!(text, "export {name}={value}{rest}");
        }
        if !self.names.is_empty() {
            let _ = writeln!(
                text,
                "# Only the libraries of this tree see the names in {NAMES}. For all code of a process:\n# export HOTSWAP_NAMES={}",
                self.names
            );
        }
        text
    }

    fn names_file(&self) -> String {
        let text = names_file(&self.names, self.serves.iter().map(PathBuf::as_path));
        text + &self.code.iter().map(|gpu| format!("code {gpu}\n")).collect::<String>()
    }
}

fn environment_read_error(error: std::io::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_READ, error.to_string())
}

fn is_served_library(name: &str, manifest: &TreeManifest) -> bool {
    manifest.files.iter().any(|row| row.library.as_deref() == Some(name))
}

/// The text of the file that the library for LD_PRELOAD reads.
pub(crate) fn names_file<'p>(names: &str, serves: impl Iterator<Item = &'p Path>) -> String {
    let mut text = "# Written by `hotswap serve`, for libhotswap-names.so.\n".to_owned();
    for pair in names.split(',') {
        let _ = writeln!(text, "names {pair}");
    }
    for path in serves {
        let _ = writeln!(text, "serves {}", path.display());
    }
    text
}

fn is_host(plan: &TreePlan, path: &Path) -> bool {
    use crate::rules::FileKind::{FatBinary, Host};
    plan.all_actions().any(|action| action.output == path && matches!(action.kind, FatBinary | Host))
}

fn join_paths<'p>(paths: impl Iterator<Item = &'p Path>) -> String {
    paths.map(|path| path.display().to_string()).collect::<Vec<_>>().join(":")
}
