//! The stale parts of a served tree: inputs that a package upgrade has changed, outputs that are gone or changed, files
//! that would be served now and are not.

use crate::existing::is_other_kind;
use crate::hash;
use crate::journal::{JournalHistory, lock_destination};
use crate::manifest::{FileRow, MakerSettings, TreeManifest};
use crate::plan::TreePlan;
use crate::undo::no_tree;
use crate::use_check::{self, ServedFiles};
use hotswap_load_model::tree::{self, is_missing};
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The result of a check.
#[derive(Debug)]
pub struct TreeCheck {
    /// The number of outputs and links.
    pub files: usize,
    /// A finding for each that is stale.
    pub stale: Vec<Diagnostic>,
}

/// Compares a served tree with its inputs.
///
/// # Errors
/// A destination without a tree, or with one that cannot be read.
pub fn check_tree(destination: &Path) -> Result<TreeCheck, Diagnostic> {
    let _lock = lock_destination(destination)?;
    let mut stale = Vec::new();
    if JournalHistory::read(destination, None)?.is_interrupted {
        let what = "a run was interrupted, so the tree is not complete";
        stale.push(Diagnostic::error(codes::STALE, what).in_file(destination));
    }
    let Some(manifest) = TreeManifest::read(destination)? else {
        return if stale.is_empty() { Err(no_tree(destination)) } else { Ok(TreeCheck { files: 0, stale }) };
    };
    let results =
        hotswap_files::on_all_cores(manifest.files.len(), |number| check_file(destination, &manifest.files[number]));
    results.into_iter().for_each(|result| stale.extend(result.unwrap_or_else(|error| vec![error])));
    for row in &manifest.links {
        let path = destination.join(&row.path);
        match fs::read_link(&path) {
            Ok(to) if to == row.to => {}
            Err(error) if !is_other_kind(&error) => {
                stale.push(Diagnostic::cannot_read(&path, error));
            }
            _ => stale.push(stale_finding("the link is gone or another one", &path)),
        }
    }
    if manifest.maker != MakerSettings::of_request(&manifest.maker.settings) {
        let what = format!("the tree was made by another build of HotSwap ({})", manifest.maker.hotswap);
        stale.push(Diagnostic::warning(codes::STALE, what).in_file(destination));
    }
    stale.extend(unserved_files(&manifest));
    stale.extend(lost_files(destination, &manifest));
    Ok(TreeCheck { files: manifest.files.len() + manifest.links.len(), stale })
}

fn stale_finding(what: impl Into<String>, path: &Path) -> Diagnostic {
    Diagnostic::error(codes::STALE, what).in_file(path)
}

fn check_file(destination: &Path, row: &FileRow) -> Result<Vec<Diagnostic>, Diagnostic> {
    let mut stale = Vec::new();
    for input in row.input.iter().chain(&row.others) {
        let is_gone = is_missing(&input.path)?;
        if is_gone || hash::of_file(&input.path)? != input.sha256 {
            let state = if is_gone { "is gone" } else { "has changed" };
            stale.push(stale_finding(format!("it {state} since {} was made from it", row.path.display()), &input.path));
        }
    }
    let output = destination.join(&row.path);
    if is_missing(&output)? {
        stale.push(stale_finding("it is missing", &output));
    } else if hash::of_file(&output)? != row.sha256 {
        stale.push(stale_finding("it was changed since HotSwap wrote it", &output));
    }
    Ok(stale)
}

/// The files of served libraries that a GPU does not get from the tree as the source gets them from the roots, on every way that
/// leads from the shown name.
fn lost_files(destination: &Path, manifest: &TreeManifest) -> Vec<Diagnostic> {
    let TreeManifest { roots, files, wanted, .. } = manifest;
    let served = ServedFiles { roots, destination, files, wanted, settings: &manifest.maker.settings };
    let compared = match served.compare() {
        Ok(compared) => compared,
        Err(error) => return vec![error],
    };
    let names: BTreeSet<&str> = manifest.files.iter().filter_map(|row| row.library.as_deref()).collect();
    let mut found = use_check::lack_warnings(&compared.lacks, |library| names.contains(library));
    found.extend(compared.unread);
    for name in names {
        let rows = manifest.files.iter().filter(|row| row.library.as_deref() == Some(name));
        let outputs: BTreeSet<&Path> = rows.map(|row| row.path.as_path()).collect();
        let lost = use_check::of_library(&compared.losses, name, &outputs).into_iter();
        found.extend(lost.map(|loss| Diagnostic::from(loss.clone()).in_file(destination)));
    }
    found
}

/// The files that the same request would serve now, and that the tree does not have.
fn unserved_files(manifest: &TreeManifest) -> Vec<Diagnostic> {
    let plan = tree::read_tree(&manifest.roots).and_then(|tree| TreePlan::new(&tree, &manifest.maker.settings));
    let plan = match plan {
        Ok(plan) => plan,
        Err(error) => return vec![error],
    };
    let mut stale: Vec<Diagnostic> = plan.unread.iter().map(|unread| unread.problem.clone()).collect();
    stale.extend(plan.libraries.iter().flat_map(|library| library.unread.clone()));
    // The choice depends on all libraries.
    if stale.is_empty() && plan.wanted != manifest.wanted {
        let what = "another source would be chosen now";
        stale.push(Diagnostic::error(codes::STALE, what));
    }
    let there: BTreeSet<&PathBuf> = manifest.files.iter().map(|row| &row.path).collect();
    for library in plan.libraries.iter().filter(|library| !is_refused_library(&library.name, manifest)) {
        let new = library.actions.iter().filter(|action| !there.contains(&action.output));
        stale.extend(new.map(|action| {
            let is_code = !action.content.wanted_targets().is_empty();
            let what =
                if is_code { "it has code that is not served" } else { "it belongs to the tree and is not there" };
            stale_finding(what, &action.input)
        }));
    }
    stale
}

fn is_refused_library(name: &str, manifest: &TreeManifest) -> bool {
    manifest.refused.iter().any(|row| row.library == name)
}
