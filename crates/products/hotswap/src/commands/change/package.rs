//! `hotswap prune`, `compress` and `decompress` of a package or directory: of each of its files.
//!
//! Files that hold data for one GPU are left out with its code, unless host libraries open them on a GPU that is kept, by its own
//! name or by the one that the package shows (`hotswap serve`), or a link that stays leads to them. Device code without entries (code objects in files of their own,
//! relocatable objects) stays, and is counted. Links of a dropped GPU's data go with it.
//!
//! Invariant: nothing is written unless every file could be pruned, each named target is in one of them, and the new package gives
//! the kept GPUs all that they got before: its files are read as those of an installation, before and after.

mod each_file;
mod needs;

pub(super) use each_file::change_each;

use super::told::ContainerOperation;
use super::{ChangePaths, ChangeStep, CommonArguments, KeptGpus, WantedName};
use crate::args::OutputFormat;
use crate::outcome::CommandOutcome;
use crate::work::package_tree::{FileSet, PackageTree};
use crate::work::packages::{self, PackageSums};
use crate::work::text;
use hotswap_files::Placement;
use hotswap_load_model::TreeReader;
use hotswap_packages::{MemberChange, PackageChanges, PackageMember};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use needs::PackageNeeds;
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The note of a package in which every file stays.
const NOTHING_TO_REMOVE: &str = "nothing in it is to be removed";

pub(super) struct Pruning<'p> {
    pub(super) targets: &'p [TargetId],
    /// Whether these targets are kept, or else dropped.
    pub(super) keeps: bool,
    pub(super) step: &'p ChangeStep<'p>,
    pub(super) wanted: &'p [WantedName<'p>],
    /// The GPUs that must not lose code.
    pub(super) kept: KeptGpus<'p>,
}

impl Pruning<'_> {
    /// Whether a GPU is dropped. GPUs that HotSwap does not know are kept.
    fn drops(&self, gpu: &str) -> bool {
        let Some(processor) = hotswap_targets::find_processor(gpu) else { return false };
        let is_named = self.targets.iter().any(|target| target.processor == processor);
        is_named != self.keeps
    }

    /// Notes that the package has something for a GPU.
    fn see(&self, gpu: &str) {
        let named = self.wanted.iter().filter(|wanted| wanted.name.split(':').next() == Some(gpu));
        named.for_each(|wanted| wanted.see(true));
    }
}

pub(super) fn prune(
    arguments: &CommonArguments,
    form: FileSet,
    pruning: &Pruning<'_>,
) -> Result<CommandOutcome, Diagnostic> {
    refuse_options_of_files(arguments)?;
    let package = PackageTree::to_change(&arguments.file, form)?;
    let reader = TreeReader::new(&package.tree);
    let needs = PackageNeeds::read(&package, &reader, pruning)?;
    let scratch = hotswap_files::ScratchDirectory::temporary("hotswap-prune-")?;
    let is_changed = AtomicBool::new(false);
    let mut files = PrunedFiles {
        arguments,
        pruning,
        needs: &needs,
        scratch: scratch.path(),
        is_changed: &is_changed,
        sums: PackageSums::default(),
        without: Vec::new(),
        problems: Vec::new(),
    };
    let before = form.size(&arguments.file, &package.tree)?;
    let changes = PackageChanges {
        change: &mut |member| files.change(member),
        link: Some(&mut |link| {
            let is_dropped = needs.drops_link(link.name, pruning);
            is_changed.fetch_or(is_dropped, Ordering::Relaxed);
            Ok(if is_dropped { MemberChange::Removed } else { MemberChange::Unchanged })
        }),
        added: &[],
    };
    let other_names = form.other_names(&arguments.file, &arguments.output)?;
    let written = package.rewrite(&arguments.output, changes, &|new| {
        pruning.wanted.iter().try_for_each(WantedName::check).map_err(|error| error.in_file(&arguments.file))?;
        // A package that would be replaced by one with the same files is not touched.
        if !is_changed.load(Ordering::Relaxed) && hotswap_files::is_same_place(&arguments.file, &arguments.output)? {
            return Err(Diagnostic::error(codes::UNCHANGED, NOTHING_TO_REMOVE));
        }
        needs.check_losses(&reader, new, form).map_err(|error| error.in_file(&arguments.file))
    });
    let size = match written {
        Err(error) if error.code == codes::UNCHANGED => before,
        size => size?,
    };
    let text = pruning_report(arguments, &files.sums, &files.without, [before, size]);
    let mut outcome = CommandOutcome { text, problems: files.problems, ..CommandOutcome::default() };
    if !is_changed.into_inner() {
        return Ok(outcome.note_unchanged(&arguments.file, NOTHING_TO_REMOVE));
    }
    outcome.problems.extend(other_names);
    Ok(outcome)
}

/// The files of a package that is pruned, and what has come of them.
struct PrunedFiles<'p> {
    arguments: &'p CommonArguments,
    pruning: &'p Pruning<'p>,
    needs: &'p PackageNeeds,
    scratch: &'p Path,
    is_changed: &'p AtomicBool,
    sums: PackageSums,
    /// The files that had no code for the kept targets.
    without: Vec<String>,
    problems: Vec<Diagnostic>,
}

impl PrunedFiles<'_> {
    fn change(&mut self, member: &PackageMember<'_>) -> Result<MemberChange, Diagnostic> {
        if let Some(gpu) = packages::gpu_of(member.name) {
            self.pruning.see(&gpu);
            let is_needed = self.needs.keeps_data(&gpu, self.pruning) || self.needs.is_opened(member.name);
            if !is_needed && !self.needs.is_linked(member.name, self.pruning) {
                self.sums.add(&MemberChange::Removed);
                self.is_changed.store(true, Ordering::Relaxed);
                return Ok(MemberChange::Removed);
            }
        }
        if !packages::has_code(member)? {
            return Ok(MemberChange::Unchanged);
        }
        if packages::is_fixed(member)? {
            self.sums.fixed += 1;
            return Ok(MemberChange::Unchanged);
        }
        self.prune_code(member)
    }

    fn prune_code(&mut self, member: &PackageMember<'_>) -> Result<MemberChange, Diagnostic> {
        let pruning = self.pruning;
        // The package has taken the content of the one before.
        let (name, output) = (packages::label(&self.arguments.file, member.name), self.scratch.join("pruned"));
        let at = ChangePaths { file: member.content, output: &output, name: &name };
        let serves = AtomicBool::new(false);
        let (one, is_pruned) = self.arguments.apply_to(
            &at,
            ContainerOperation::Remove,
            &|container| {
                serves.fetch_or(pruning.wanted.iter().any(|wanted| container.serves(wanted.name)), Ordering::Relaxed);
                (pruning.step)(container)
            },
            &[],
            pruning.kept,
        )?;
        if is_pruned && pruning.keeps && !serves.into_inner() {
            self.without.push(member.name.to_owned());
        }
        self.problems.extend(one.problems);
        self.is_changed.fetch_or(is_pruned, Ordering::Relaxed);
        let made = if is_pruned { MemberChange::Replaced(output) } else { MemberChange::Unchanged };
        self.sums.add(&made);
        Ok(made)
    }
}

/// Options that are about a single file.
fn refuse_options_of_files(arguments: &CommonArguments) -> Result<(), Diagnostic> {
    if arguments.container.is_some() {
        let what = "--container counts the containers of one file, and a package has several";
        return Err(Diagnostic::error(codes::USAGE, what));
    }
    if arguments.in_place.placement() == Placement::SameInode {
        return Err(packages::not_in_place().in_file(&arguments.file));
    }
    Ok(())
}

/// `without` are the files that had no code for the kept targets.
fn pruning_report(arguments: &CommonArguments, sums: &PackageSums, without: &[String], sizes: [u64; 2]) -> String {
    let PackageSums { changed, removed, unchanged, fixed } = sums;
    if arguments.format.format == OutputFormat::Json {
        let value = json!({ "schema": 1, "file": arguments.file.display().to_string(), "sizes": sizes, "without_code": without,
            "files": { "changed": changed, "removed": removed, "unchanged": unchanged, "untouched": fixed } });
        return text::json(&value);
    }
    let file = text::plain(&arguments.file.display().to_string());
    let fixed =
        if *fixed > 0 { format!(", {fixed} untouched, whose device code has no entries") } else { String::new() };
    let [old, new] = sizes;
    let empty: String = without
        .iter()
        .map(|name| format!("no code is left in {}: it had none for these targets\n", text::plain(name)))
        .collect();
    format!(
        "{empty}{file}: {changed} files pruned, {removed} left out, {unchanged} with nothing to remove{fixed}; {old} to {new} bytes\n"
    )
}
