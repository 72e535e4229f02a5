//! A change of every container of a package or directory that takes code from no GPU: `hotswap compress` and `decompress`.
//!
//! Kernel archives, whose code has one compression, and device code without entries stay as they are, and are counted.
//!
//! Invariant: nothing is written unless every file could be changed, and every GPU gets from the result what it got before.

use super::refuse_options_of_files;
use crate::args::OutputFormat;
use crate::commands::change::told::ContainerOperation;
use crate::commands::change::{ChangePaths, ChangeStep, CommonArguments, KeptGpus};
use crate::outcome::CommandOutcome;
use crate::work::package_tree::{FileSet, PackageTree};
use crate::work::packages::{self, PackageSums};
use crate::work::text;
use hotswap_bundle::is_kernel_archive;
use hotswap_files::ScratchDirectory;
use hotswap_packages::{MemberChange, PackageChanges, PackageMember};
use hotswap_report::{Diagnostic, codes};
use serde_json::json;
use std::cell::Cell;
use std::path::Path;

/// The note of a package in which every file stays.
const NOTHING_TO_CHANGE: &str = "all of its fat binaries are as requested already";

/// A change of each file, and what has come of it.
struct EachFile<'f> {
    arguments: &'f CommonArguments,
    operation: ContainerOperation,
    step: &'f ChangeStep<'f>,
    /// Place of the changed content of one file.
    output: &'f Path,
    seen: &'f SeenFiles,
    sums: PackageSums,
    problems: Vec<Diagnostic>,
}

/// Findings in the files of a package, for the decision whether it is written.
#[derive(Debug, Default)]
struct SeenFiles {
    has_code: Cell<bool>,
    is_changed: Cell<bool>,
}

impl SeenFiles {
    /// Files without device code are an error, as a single one is; a package that would be replaced by its equal is not touched.
    fn check(&self, arguments: &CommonArguments) -> Result<(), Diagnostic> {
        if !self.has_code.get() {
            return Err(
                Diagnostic::error(codes::NOT_FOUND, "none of its files has device code").in_file(&arguments.file)
            );
        }
        if !self.is_changed.get() && hotswap_files::is_same_place(&arguments.file, &arguments.output)? {
            return Err(Diagnostic::error(codes::UNCHANGED, NOTHING_TO_CHANGE));
        }
        Ok(())
    }
}

impl EachFile<'_> {
    fn change(&mut self, member: &PackageMember<'_>) -> Result<MemberChange, Diagnostic> {
        if !packages::has_code(member)? {
            return Ok(MemberChange::Unchanged);
        }
        self.seen.has_code.set(true);
        if packages::is_fixed(member)? || is_kernel_archive(&hotswap_files::open_input(member.content)?) {
            self.sums.fixed += 1;
            return Ok(MemberChange::Unchanged);
        }
        let name = packages::label(&self.arguments.file, member.name);
        let paths = ChangePaths { file: member.content, output: self.output, name: &name };
        let (one, is_changed) =
            self.arguments.apply_to(&paths, self.operation, self.step, &[], KeptGpus::AllBut(&[]))?;
        self.problems.extend(one.problems);
        self.seen.is_changed.set(self.seen.is_changed.get() || is_changed);
        let made = if is_changed { MemberChange::Replaced(self.output.to_owned()) } else { MemberChange::Unchanged };
        self.sums.add(&made);
        Ok(made)
    }

    fn report(&self, sizes: [u64; 2]) -> String {
        let PackageSums { changed, unchanged, fixed, .. } = &self.sums;
        let file = self.arguments.file.display().to_string();
        if self.arguments.format.format == OutputFormat::Json {
            let files = json!({ "changed": changed, "unchanged": unchanged, "untouched": fixed });
            return text::json(&json!({ "schema": 1, "file": file, "sizes": sizes, "files": files }));
        }
        let fixed = if *fixed > 0 {
            format!(", {fixed} untouched, whose device code has no form to change")
        } else {
            String::new()
        };
        let [old, new] = sizes;
        let file = text::plain(&file);
        format!("{file}: {changed} files changed, {unchanged} as requested already{fixed}; {old} to {new} bytes\n")
    }
}

pub(in crate::commands::change) fn change_each(
    arguments: &CommonArguments,
    form: FileSet,
    operation: ContainerOperation,
    step: &ChangeStep<'_>,
) -> Result<CommandOutcome, Diagnostic> {
    refuse_options_of_files(arguments)?;
    let package = PackageTree::to_change(&arguments.file, form)?;
    let scratch = ScratchDirectory::temporary("hotswap-change-")?;
    let output = scratch.path().join("changed");
    let before = form.size(&arguments.file, &package.tree)?;
    let (seen, sums) = (SeenFiles::default(), PackageSums::default());
    let mut each = EachFile { arguments, operation, step, output: &output, seen: &seen, sums, problems: Vec::new() };
    let other_names = form.other_names(&arguments.file, &arguments.output)?;
    let changes = PackageChanges { change: &mut |member| each.change(member), link: None, added: &[] };
    let written = package.rewrite(&arguments.output, changes, &|new| {
        seen.check(arguments)?;
        package.check_losses(new, form, &[]).map_err(|error| error.in_file(&arguments.file))
    });
    let size = match written {
        Err(error) if error.code == codes::UNCHANGED => before,
        size => size?,
    };
    let mut outcome = CommandOutcome { text: each.report([before, size]), ..CommandOutcome::default() };
    outcome.problems.append(&mut each.problems);
    if !seen.is_changed.get() {
        return Ok(outcome.note_unchanged(&arguments.file, NOTHING_TO_CHANGE));
    }
    outcome.problems.extend(other_names);
    Ok(outcome)
}
