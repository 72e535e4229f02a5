//! `hotswap merge` and `hotswap split` of packages and directories, as distributions that build for each GPU apart make them.
//!
//! A file that is the same in all stays; one that a single package has is added; programs, libraries and bundles with device code are
//! merged as single files are. Every other difference is refused by name.
//!
//! Invariants: what a GPU loads and opens from any of the packages it gets from the result ([`PackageTree::check_losses`], for each
//! of them). Records of a package about itself are those of the first, kept true by its writer.
//!
//! Absent on purpose: further links in wheels, Arch's and conda packages, whose lists of files the writers cannot extend by links.

use super::{ChangePaths, Merge, merge_files, targets_of_file};
use crate::args::OutputFormat;
use crate::outcome::CommandOutcome;
use crate::work::package_tree::{FileSet, PackageTree};
use crate::work::{packages, text};
use hotswap_packages::{AddedContent, AddedMember, MemberChange, PackageChanges, PackageFormat, PackageMember};
use hotswap_report::{Diagnostic, codes};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A package or directory with the places of its files.
struct OpenedSet<'s> {
    path: &'s Path,
    package: PackageTree,
    files: BTreeMap<String, PathBuf>,
    links: BTreeMap<String, PathBuf>,
}

/// The differences of the further packages from the first.
#[derive(Default)]
struct MergePlan {
    /// The files of others that have other bytes than the first one's, by name.
    different: BTreeMap<String, Vec<PathBuf>>,
    /// The files and links that the first does not have, by name.
    added: BTreeMap<String, AddedContent>,
}

pub(super) fn merge_sets(arguments: &Merge, form: FileSet) -> Result<CommandOutcome, Diagnostic> {
    let sets: Vec<OpenedSet<'_>> =
        arguments.files.iter().map(|file| OpenedSet::read(file, form)).collect::<Result<_, _>>()?;
    let [first, others @ ..] = &sets[..] else {
        return Err(Diagnostic::error(codes::USAGE, "two packages are needed"));
    };
    let plan = MergePlan::new(form, first, others)?;
    let added = plan.added_members();
    let scratch = hotswap_files::ScratchDirectory::temporary("hotswap-merge-")?;
    let mut writer =
        SetWriter { arguments, plan: &plan, output: scratch.path().join("merged"), merged: 0, problems: Vec::new() };
    let changes =
        PackageChanges { change: &mut |member: &PackageMember<'_>| writer.change(member), link: None, added: &added };
    let other_names = form.other_names(first.path, &arguments.output)?;
    let size = first.package.rewrite(&arguments.output, changes, &|new| check_losses(&sets, form, new))?;
    let mut outcome = CommandOutcome { text: writer.report(size), ..CommandOutcome::default() };
    outcome.problems.append(&mut writer.problems);
    if writer.merged == 0 && plan.added.is_empty() {
        return Ok(outcome.note_unchanged(first.path, "it has the code and the files of all of the packages"));
    }
    outcome.problems.extend(other_names);
    Ok(outcome)
}

/// Requires that every GPU gets from the new package what it gets from each of the old ones.
fn check_losses(sets: &[OpenedSet<'_>], form: FileSet, new: &Path) -> Result<(), Diagnostic> {
    let mut all = sets.iter().map(|set| set.package.check_losses(new, form, &[]).map_err(|one| one.in_file(set.path)));
    all.try_for_each(|one| one)
}

/// The GPUs that have code or data files in a package or directory.
pub(super) fn gpus_of_set(path: &Path, form: FileSet) -> Result<BTreeSet<String>, Diagnostic> {
    let set = OpenedSet::read(path, form)?;
    let mut gpus: BTreeSet<String> = set.files.keys().filter_map(|name| packages::gpu_of(name)).collect();
    for (name, content) in &set.files {
        let input = hotswap_files::open_input(content)?;
        let found = hotswap_bundle::find_containers(&input).found;
        gpus.extend(targets_of_file(&found).map_err(|error| error.in_file(packages::label(path, name)))?);
    }
    Ok(gpus)
}

impl<'s> OpenedSet<'s> {
    /// # Errors
    /// A package of another form than the first one's, or one that cannot be read.
    fn read(path: &'s Path, form: FileSet) -> Result<Self, Diagnostic> {
        if FileSet::of_path(path)? != Some(form) {
            let error = Diagnostic::error(codes::USAGE, "it has another form than the first package").in_file(path);
            return Err(error.advise("merge packages of one form"));
        }
        let package = PackageTree::to_change(path, form)?;
        // Names of hard links are files of the unpacked package.
        let links = package.links()?.into_iter().filter(|link| !link.is_hard);
        let links = links.map(|link| (link.name, link.to)).collect();
        let mut files = BTreeMap::new();
        let mut changes = PackageChanges {
            change: &mut |member: &PackageMember<'_>| {
                files.insert(member.name.to_owned(), member.content.to_owned());
                Ok(MemberChange::Unchanged)
            },
            link: None,
            added: &[],
        };
        hotswap_packages::visit_directory(&package.root, &mut changes)?;
        Ok(Self { path, package, files, links })
    }

    fn label(&self, name: &str) -> PathBuf {
        packages::label(self.path, name)
    }
}

impl MergePlan {
    fn new(form: FileSet, first: &OpenedSet<'_>, others: &[OpenedSet<'_>]) -> Result<Self, Diagnostic> {
        let mut plan = Self::default();
        for other in others {
            for (name, content) in other.files.iter().filter(|(name, _)| !is_own_record(form, name)) {
                plan.add_file(form, first, name, content).map_err(|error| error.in_file(other.label(name)))?;
            }
            for (name, to) in &other.links {
                plan.add_link(first, name, to).map_err(|error| error.in_file(other.label(name)))?;
            }
        }
        Ok(plan)
    }

    fn add_file(&mut self, form: FileSet, first: &OpenedSet<'_>, name: &str, content: &Path) -> Result<(), Diagnostic> {
        if first.links.contains_key(name) {
            return Err(sets_differ("it is a link in the first package"));
        }
        let Some(own) = first.files.get(name) else { return self.add_further(form, name, content) };
        if has_same_content(own, content)? {
            return Ok(());
        }
        let member = PackageMember { name, content };
        if !packages::has_code(&member)? || packages::is_fixed(&member)? {
            return Err(sets_differ("it is another file in the first package, and has no fat binary to merge"));
        }
        self.different.entry(name.to_owned()).or_default().push(content.to_owned());
        Ok(())
    }

    /// A file that the first package does not have. Two further packages may both have it.
    fn add_further(&mut self, form: FileSet, name: &str, content: &Path) -> Result<(), Diagnostic> {
        if form == FileSet::Package(PackageFormat::Wheel) && is_in_dist_info(name) {
            return Err(sets_differ("the wheels have different names or versions"));
        }
        match self.added.get(name) {
            None => drop(self.added.insert(name.to_owned(), AddedContent::File(content.to_owned()))),
            Some(AddedContent::File(added)) if has_same_content(added, content)? => {}
            Some(_) => return Err(sets_differ("it is not the same in two packages, and not in the first")),
        }
        Ok(())
    }

    fn add_link(&mut self, first: &OpenedSet<'_>, name: &str, to: &Path) -> Result<(), Diagnostic> {
        match first.links.get(name) {
            Some(own) if own == to => return Ok(()),
            Some(_) => return Err(sets_differ("the first package has a link of this name to elsewhere")),
            None if first.files.contains_key(name) => {
                return Err(sets_differ("it is a link, and a file in the first package"));
            }
            None => {}
        }
        let link = AddedContent::Link(to.to_owned());
        match self.added.insert(name.to_owned(), link.clone()) {
            Some(earlier) if earlier != link => Err(sets_differ("it leads to elsewhere in another package")),
            _ => Ok(()),
        }
    }

    fn added_members(&self) -> Vec<AddedMember> {
        let members = self.added.iter();
        members.map(|(name, content)| AddedMember { name: name.clone(), content: content.clone() }).collect()
    }
}

fn sets_differ(what: &str) -> Diagnostic {
    Diagnostic::error(codes::HOSTS_DIFFER, what)
}

fn has_same_content(one: &Path, other: &Path) -> Result<bool, Diagnostic> {
    Ok(hotswap_files::open_input(one)?[..] == hotswap_files::open_input(other)?[..])
}

fn is_in_dist_info(name: &str) -> bool {
    name.split('/').any(|part| part.ends_with(".dist-info"))
}

/// Whether a package writes the file about itself: hashes, sizes and dates of the build.
fn is_own_record(form: FileSet, name: &str) -> bool {
    match form {
        FileSet::Package(PackageFormat::Wheel) => is_in_dist_info(name) && name.ends_with("/RECORD"),
        FileSet::Package(PackageFormat::Conda) => name.starts_with("info/"),
        FileSet::Package(PackageFormat::Tar(_)) => matches!(name, ".MTREE" | ".PKGINFO" | ".BUILDINFO"),
        FileSet::Package(PackageFormat::Debian) | FileSet::Directory => false,
    }
}

/// The changes of the first package.
struct SetWriter<'w> {
    arguments: &'w Merge,
    plan: &'w MergePlan,
    /// Place of one merged file.
    output: PathBuf,
    merged: usize,
    /// Warnings of merged files.
    problems: Vec<Diagnostic>,
}

impl SetWriter<'_> {
    fn change(&mut self, member: &PackageMember<'_>) -> Result<MemberChange, Diagnostic> {
        let Some(others) = self.plan.different.get(member.name) else { return Ok(MemberChange::Unchanged) };
        let name = packages::label(&self.arguments.files[0], member.name);
        let paths = ChangePaths { file: member.content, output: &self.output, name: &name };
        let (one, is_changed) = merge_files(&paths, others, self.arguments.format)?;
        self.problems.extend(one.problems);
        if !is_changed {
            return Ok(MemberChange::Unchanged);
        }
        self.merged += 1;
        Ok(MemberChange::Replaced(self.output.clone()))
    }

    fn report(&self, size: u64) -> String {
        let (file, added) = (self.arguments.output.display().to_string(), self.plan.added.len());
        if self.arguments.format.format == OutputFormat::Json {
            let files = json!({ "merged": self.merged, "added": added });
            return text::json(&json!({ "schema": 1, "file": file, "size": size, "files": files }));
        }
        format!("{}: {} files merged, {added} added; {size} bytes\n", text::plain(&file), self.merged)
    }
}
