//! `hotswap serve` with packages: the files of each are served as a directory, and the package is written anew with them.
//!
//! A wheel gets a build number that ends in `hotswap`, which installers prefer to the wheel without one. The names that its
//! libraries see are in a file of the package ([`hotswap_stack::package_names`]).
//!
//! Invariants: all files that are not made anew stay as they are. The same package and request give the same bytes, and a
//! second run changes nothing. A file in the destination that is not this result is never replaced.

use super::{ServeArguments, report};
use crate::args::OutputFormat;
use crate::outcome::CommandOutcome;
use crate::work::package_tree::PackageTree;
use crate::work::terminal_progress::TerminalProgress;
use crate::work::{packages, text};
use hotswap_file_edit::thread_count;
use hotswap_files::ScratchDirectory;
use hotswap_packages::{
    AddedContent, AddedMember, MemberChange, PackageChanges, PackageFormat, PackageLink, PackageMember, PackageSource,
};
use hotswap_report::{Diagnostic, codes};
use hotswap_stack::manifest::TreeManifest;
use hotswap_stack::package_names::PackageNames;
use hotswap_stack::plan::ServeRun;
use hotswap_stack::tree_report::library_json;
use hotswap_stack::{NameMode, OutputMaker, ServeRequest, Served, TreePlan, hash};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The end of a wheel's build number.
const BUILD: &str = "hotswap";
/// The directories of a wheel whose files are installed beside its packages.
const BESIDE: [&str; 2] = ["purelib/", "platlib/"];

/// The way out where a package was served before.
const ONCE: &str = "serve the package that its publisher has made, for all GPUs at once";

/// A package that is being served.
struct ServedPackage<'p> {
    file: &'p Path,
    format: PackageFormat,
    /// The directory with the package's own files.
    inside: PathBuf,
    /// Its archive without compression.
    copy: PathBuf,
    /// The files that were made.
    made: PathBuf,
}

/// The outcome for one package.
struct PackageOutcome {
    outcome: CommandOutcome,
    /// Whether there is a package for its GPUs now.
    is_written: bool,
}

/// The content of a new package.
struct NewContent {
    /// By path in the package.
    replaced: BTreeMap<String, PathBuf>,
    added: Vec<AddedMember>,
}

impl ServeArguments {
    /// Each package; the first one that cannot be read ends the run.
    pub(super) fn packages(&self, files: &[&Path], settings: &ServeRequest) -> Result<CommandOutcome, Diagnostic> {
        let preload = self.preload(settings)?;
        let is_new = self.dest().symlink_metadata().is_err();
        let outcomes: Result<Vec<PackageOutcome>, Diagnostic> =
            files.iter().map(|file| self.package(file, settings)).collect();
        if is_new {
            // It is removed only where nothing was written into it.
            let _ = fs::remove_dir(self.dest());
        }
        let (mut all, mut unchanged, mut is_any_written) = (CommandOutcome::default(), 0, false);
        for package in outcomes? {
            all.text += &package.outcome.text;
            all.problems.extend(package.outcome.problems);
            unchanged += usize::from(package.outcome.is_unchanged);
            is_any_written |= package.is_written;
        }
        if is_any_written
            && self.format.format == OutputFormat::Text
            && let Some(library) = preload
        {
            let library = text::shell_word(&library.to_string_lossy());
            all.text += &format!("in the shell that starts programs: export LD_PRELOAD={library}\n");
        }
        all.is_unchanged = unchanged == files.len();
        Ok(all)
    }

    fn package(&self, file: &Path, settings: &ServeRequest) -> Result<PackageOutcome, Diagnostic> {
        let format = packages::format_of(file)?.ok_or_else(|| no_package(file))?;
        let scratch = self.scratch()?;
        // The plan's paths must not depend on links.
        let path =
            fs::canonicalize(scratch.path()).map_err(|error| Diagnostic::cannot_write(scratch.path(), &error))?;
        let package = ServedPackage {
            file,
            format,
            inside: path.join("in"),
            copy: path.join("archive"),
            made: path.join("made"),
        };
        fs::create_dir(&package.inside).map_err(|error| Diagnostic::cannot_write(&package.inside, &error))?;
        let mut served = self.served_package(&package, settings).map_err(|error| package.named(error))?;
        let problems = std::mem::take(&mut served.outcome.problems);
        served.outcome.problems = problems.into_iter().map(|problem| package.named(problem)).collect();
        Ok(served)
    }

    /// On the file system of the result; a dry run writes nothing there.
    fn scratch(&self) -> Result<ScratchDirectory, Diagnostic> {
        if self.dry_run {
            return ScratchDirectory::temporary("hotswap-serve-");
        }
        hotswap_files::create_directories(self.dest())
            .map_err(|error| Diagnostic::cannot_write(self.dest(), &error))?;
        ScratchDirectory::new(self.dest(), "hotswap-serve-")
    }

    fn served_package(
        &self,
        package: &ServedPackage<'_>,
        settings: &ServeRequest,
    ) -> Result<PackageOutcome, Diagnostic> {
        hotswap_packages::unpack_to_change(package.file, package.format, &package.inside, &package.copy)?;
        let roots = [package.inside.clone()];
        let plan = TreePlan::new(&hotswap_stack::read_tree(&roots)?, settings)?;
        if self.dry_run {
            let outcome = report::planned(&plan, settings, self.format.format);
            return Ok(PackageOutcome { outcome, is_written: false });
        }
        let progress = TerminalProgress::new("serve");
        let maker = OutputMaker::new(settings, thread_count(self.jobs), &progress);
        let run = ServeRun { roots: &roots, destination: &package.made, settings, preload: None };
        let served = hotswap_stack::serve_tree(&plan, run, &maker)?;
        // A package without the files that could not be read would be another one.
        let in_libraries = served.libraries.iter().flat_map(|library| &library.unread);
        if let Some(unread) = plan.unread.iter().map(|unread| &unread.problem).chain(in_libraries).next() {
            return Err(unread.clone());
        }
        let mut outcome = report::of_libraries(&plan, settings, &served, package.file);
        let Some(manifest) = TreeManifest::read(&package.made)? else {
            return Ok(self.not_written(package, &served, outcome));
        };
        let content = package.content(&manifest, &served, settings, &mut outcome.problems)?;
        let output = self.dest().join(package.output_name()?);
        package.write(&output, &content, &manifest)?;
        let counts = [content.replaced.len(), content.added.len()];
        outcome.text = self.served_report(package, &served, Some((&output, counts)), &outcome);
        Ok(PackageOutcome { outcome, is_written: true })
    }

    fn not_written(&self, package: &ServedPackage<'_>, served: &Served, mut outcome: CommandOutcome) -> PackageOutcome {
        outcome.text = self.served_report(package, served, None, &outcome);
        PackageOutcome { outcome, is_written: false }
    }

    /// `written`: the output, and the numbers of files that were changed and added.
    fn served_report(
        &self,
        package: &ServedPackage<'_>,
        served: &Served,
        written: Option<(&PathBuf, [usize; 2])>,
        outcome: &CommandOutcome,
    ) -> String {
        if self.format.format == OutputFormat::Json {
            return text::json(&json!({
                "schema": 1, "package": package.file, "output": written.map(|(output, _)| output),
                "changed": written.map_or(0, |(_, [changed, _])| changed), "added": written.map_or(0, |(_, [_, added])| added),
                "HOTSWAP_NAMES": served.environment.names,
                "libraries": served.libraries.iter().map(library_json).collect::<Vec<_>>(),
                "problems": outcome.problems.iter().map(Diagnostic::to_json).collect::<Vec<_>>(),
            }));
        }
        let name = text::plain(&package.file.display().to_string());
        let Some((output, [changed, added])) = written else {
            return format!("{}{name}: nothing was written\n", outcome.text);
        };
        let shown = text::plain(&output.display().to_string());
        let word = text::shell_word(&output.to_string_lossy());
        let install = match package.format {
            PackageFormat::Wheel => format!("install it: pip install --force-reinstall --no-deps {word}\n"),
            PackageFormat::Debian => format!("install it: dpkg -i {word}\n"),
            PackageFormat::Conda => format!("install it: conda install {word}\n"),
            PackageFormat::Tar(_) => String::new(),
        };
        format!("{}{name}: {changed} files changed, {added} added: {shown}\n{install}", outcome.text)
    }
}

impl ServedPackage<'_> {
    /// The diagnostic with the package's file in the place of its copy.
    fn named(&self, mut problem: Diagnostic) -> Diagnostic {
        if let Some(inner) = problem.place.file.as_ref().and_then(|file| self.path_in_package(file)) {
            problem.place.file = Some(packages::label(self.file, &inner.display().to_string()));
        }
        let roots = [&self.inside, &self.made].map(|root| format!("{}/", root.display()));
        problem.what = roots.iter().fold(problem.what, |what, root| what.replace(root, ""));
        problem.in_file(self.file)
    }

    fn path_in_package(&self, file: &Path) -> Option<PathBuf> {
        [&self.inside, &self.made].iter().find_map(|root| file.strip_prefix(root).ok()).map(Path::to_owned)
    }

    /// The files that differ from the package's, and the file with the names.
    fn content(
        &self,
        manifest: &TreeManifest,
        served: &Served,
        settings: &ServeRequest,
        problems: &mut Vec<Diagnostic>,
    ) -> Result<NewContent, Diagnostic> {
        let mut content = NewContent { replaced: BTreeMap::new(), added: Vec::new() };
        for row in manifest.files.iter().filter(|row| !TreeManifest::is_own(row)) {
            let (name, made) = (row.path.display().to_string(), self.made.join(&row.path));
            let is_same = row
                .input
                .as_ref()
                .is_some_and(|input| input.path == self.inside.join(&row.path) && input.sha256 == row.sha256);
            content.put(name, made, &self.inside, is_same)?;
        }
        if settings.names == NameMode::Source
            && let Some(names) = self.names(served, problems)?
        {
            let made = self.made.join("names");
            fs::write(&made, names.variable_text()).map_err(|error| Diagnostic::cannot_write(&made, &error))?;
            content.put(names.path.display().to_string(), made, &self.inside, false)?;
        }
        Ok(content)
    }

    fn names(&self, served: &Served, problems: &mut Vec<Diagnostic>) -> Result<Option<PackageNames>, Diagnostic> {
        let mut environment = served.environment.clone();
        if self.format == PackageFormat::Wheel {
            problems.extend(installed_paths(&mut environment.serves));
        }
        let stem = self.stem()?;
        let Some(mut names) = PackageNames::new(&stem, &environment) else { return Ok(None) };
        let old = self.inside.join(&names.path);
        if let Some(other) = self.other_names(&names)? {
            let what = format!("its names are in {} already, and would be in a second file", other.display());
            return Err(Diagnostic::error(codes::NOT_SERVED, what).advise(ONCE));
        }
        if exists(&old)? {
            let text =
                fs::read_to_string(&old).map_err(|error| Diagnostic::error(codes::CANNOT_READ, error.to_string()))?;
            names.extend(&text).map_err(|error| error.in_file(&old))?;
        }
        Ok(Some(names))
    }

    /// The file with names that an earlier run has put elsewhere in the package.
    fn other_names(&self, names: &PackageNames) -> Result<Option<PathBuf>, Diagnostic> {
        let ending: PathBuf = names.path.components().rev().take(2).collect::<Vec<_>>().into_iter().rev().collect();
        let tree = hotswap_stack::read_tree(std::slice::from_ref(&self.inside))?;
        if let Some(unread) = tree.unread.first() {
            return Err(unread.problem.clone());
        }
        Ok(tree.files.into_keys().find(|path| path.ends_with(&ending) && *path != names.path))
    }

    /// The package's name, as the name of its file has it.
    fn stem(&self) -> Result<String, Diagnostic> {
        let name = self.file_name()?;
        let end = match self.format {
            PackageFormat::Wheel => name.find('-'),
            PackageFormat::Debian => name.find('_'),
            // NAME-VERSION-BUILD.conda, and the name may have more of them.
            PackageFormat::Conda => name.rmatch_indices('-').nth(1).map(|(at, _)| at),
            PackageFormat::Tar(_) => name.find(".tar"),
        };
        Ok(name[..end.unwrap_or(name.len())].trim_end_matches(".whl").trim_end_matches(".deb").to_owned())
    }

    fn file_name(&self) -> Result<&str, Diagnostic> {
        let name = self.file.file_name().and_then(|name| name.to_str());
        name.ok_or_else(|| Diagnostic::error(codes::USAGE, "the name of the package is no text"))
    }

    /// The name of the result: that of the package, for a wheel with a build number.
    fn output_name(&self) -> Result<String, Diagnostic> {
        let name = self.file_name()?;
        if self.format != PackageFormat::Wheel {
            return Ok(name.to_owned());
        }
        let mut parts: Vec<String> = name.split('-').map(str::to_owned).collect();
        match parts.len() {
            5 => parts.insert(2, format!("0{BUILD}")),
            6 if !parts[2].ends_with(BUILD) => parts[2] += BUILD,
            6 => {}
            _ => {
                let what = "the name of a wheel is NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl";
                return Err(Diagnostic::error(codes::USAGE, what));
            }
        }
        Ok(parts.join("-"))
    }

    /// Requires that the new package gives each GPU all that it had before, and each target what its source has.
    fn check_use(&self, manifest: &TreeManifest, new: &Path) -> Result<(), Diagnostic> {
        let old = hotswap_stack::read_tree(std::slice::from_ref(&self.inside))?;
        let package = PackageTree::read(new, self.format)?;
        let losses = hotswap_stack::use_check::package_losses(&old, &package.tree, manifest)?;
        losses.into_iter().next().map_or(Ok(()), |loss| Err(loss.into()))
    }

    fn write(&self, output: &Path, content: &NewContent, manifest: &TreeManifest) -> Result<(), Diagnostic> {
        let name = output.file_name().unwrap_or_default();
        let new = self.made.join(name);
        let changes = PackageChanges {
            change: &mut |member: &PackageMember<'_>| Ok(content.change_of_path(member.name)),
            // A link to a file without a place among the library's files becomes a file with code for the GPU.
            link: Some(&mut |link: &PackageLink<'_>| Ok(content.change_of_path(link.name))),
            added: &content.added,
        };
        let source = PackageSource { file: self.file, format: self.format, copy: Some(&self.copy) };
        hotswap_packages::rewrite_package(source, &new, changes, &|new| self.check_use(manifest, new))?;
        if !exists(output)? {
            return fs::rename(&new, output).map_err(|error| Diagnostic::cannot_write(output, &error));
        }
        let [old, new] = [output, &new].map(hotswap_files::open_input);
        if hash::of_input(&old?) == hash::of_input(&new?) {
            return Ok(());
        }
        let what = "it is there, and it is not the package that would be written";
        Err(Diagnostic::error(codes::NOT_OURS, what).in_file(output).advise("remove it, or choose another --dest"))
    }
}

/// Whether something has that name.
fn exists(path: &Path) -> Result<bool, Diagnostic> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Diagnostic::cannot_read(path, error)),
    }
}

impl NewContent {
    fn change_of_path(&self, path: &str) -> MemberChange {
        self.replaced.get(path).map_or(MemberChange::Unchanged, |made| MemberChange::Replaced(made.clone()))
    }

    fn put(&mut self, name: String, content: PathBuf, inside: &Path, is_same: bool) -> Result<(), Diagnostic> {
        if is_same {
            return Ok(());
        }
        if exists(&inside.join(&name))? {
            self.replaced.insert(name, content);
        } else {
            self.added.push(AddedMember { name, content: AddedContent::File(content) });
        }
        Ok(())
    }
}

/// The paths of a wheel's files after its installation; the files that are installed where no names can be for them.
fn installed_paths(serves: &mut Vec<PathBuf>) -> Vec<Diagnostic> {
    let mut elsewhere = Vec::new();
    serves.retain_mut(|path| {
        let text = path.display().to_string();
        let Some((first, rest)) = text.split_once(".data/").filter(|(first, _)| !first.contains('/')) else {
            return true;
        };
        match BESIDE.iter().find_map(|directory| rest.strip_prefix(directory)) {
            Some(beside) => {
                *path = PathBuf::from(beside);
                true
            }
            None => {
                let what = format!("installers put the files of {first}.data elsewhere, so it sees the GPU's own name");
                elsewhere.push(
                    Diagnostic::warning(codes::NOT_SERVED, what)
                        .in_entry(text.clone())
                        .advise("set HOTSWAP_NAMES for the programs that use it"),
                );
                false
            }
        }
    });
    elsewhere
}

fn no_package(file: &Path) -> Diagnostic {
    let what = "it is neither a GPU nor a wheel, a tar archive or a Debian package";
    Diagnostic::error(codes::USAGE, what).in_file(file).advise("name libraries and their directories by --root")
}
