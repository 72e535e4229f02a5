//! `hotswap serve`: more GPUs for a whole tree of ROCm libraries, in a directory beside it.
//!
//! The libraries, their files, the plan and the outputs are [`hotswap_stack`]'s. A package is served as the directory that its files make, and written anew (`package`).
//!
//! Invariants: as those of the tree ([`hotswap_stack`]). Libraries that are refused are errors of the command, and the
//! others are served all the same.

mod actions;
mod package;
mod report;
mod try_tree;

use crate::args::OutputOptions;
use crate::outcome::CommandOutcome;
use crate::work::terminal_progress::TerminalProgress;
use clap::{Args, ValueEnum};
use hotswap_file_edit::thread_count;
use hotswap_report::{Diagnostic, codes};
use hotswap_stack::plan::ServeRun;
use hotswap_stack::{NameMode, OutputMaker, ServeRequest, TreePlan, environment};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("later").multiple(false))]
pub(crate) struct ServeArguments {
    /// GPUs to serve, for example gfx1031 or "RX 6700 XT"; or packages to serve them with: wheels, tar archives, Debian packages
    #[arg(
        value_name = "GPU|PACKAGE",
        required_unless_present = "later",
        conflicts_with = "later",
        value_delimiter = ','
    )]
    targets: Vec<String>,
    /// Directories of the ROCm libraries, or single libraries; a library and its data files belong together
    #[arg(long, value_name = "DIR|FILE", num_args = 1.., conflicts_with = "later")]
    root: Vec<PathBuf>,
    /// Directory for the results, outside of the roots
    #[arg(long, value_name = "DIR", required_unless_present_any = ["action", "probe"])]
    dest: Option<PathBuf>,
    /// The GPU whose code serves, which the libraries have [default: the best that they have]
    #[arg(long, value_name = "GPU", conflicts_with = "later")]
    from: Option<String>,
    /// The name of the GPU that the host libraries see
    #[arg(long, value_enum, value_name = "WHICH", default_value_t, conflicts_with = "later")]
    names: NamesOption,
    /// Copy the data files for these GPUs, too, which the machine has besides
    #[arg(long, value_name = "GPU", num_args = 1, value_delimiter = ',', conflicts_with = "later")]
    keep: Vec<String>,
    /// Allow pairs of GPUs that nothing has confirmed
    #[arg(long, conflicts_with = "later")]
    allow_experimental: bool,
    /// Leave out kernels that fail a check of their pair; the host library does not find them then
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "later")]
    leave_out: Option<LeftOut>,
    /// Say what would be made, and write nothing
    #[arg(long, conflicts_with = "later")]
    dry_run: bool,
    /// Print a command for each output with code, as a line of JSON with its inputs and outputs, and one for the tree that
    /// takes them; run none of them
    #[arg(long, requires = "made", conflicts_with_all = ["later", "dry_run"])]
    list_actions: bool,
    /// Directory of outputs that listed commands have made; they are taken where they are those that this run makes
    #[arg(long, value_name = "DIR", conflicts_with = "later")]
    made: Option<PathBuf>,
    /// Make one output, as --list-actions prints it, and a record beside it
    #[arg(long, value_name = "JSON", group = "later", requires = "output")]
    action: Option<String>,
    /// Output file of --action
    #[arg(short, value_name = "OUT", requires = "action")]
    output: Option<PathBuf>,
    /// Compare the results of an earlier run with the libraries that they were made from
    #[arg(long, group = "later")]
    check: bool,
    /// Remove what earlier runs have written
    #[arg(long, group = "later")]
    undo: bool,
    /// Let each library of an earlier run compute a known answer on an emulated GPU, with the environment of env.sh
    #[arg(long = "try", group = "later")]
    tries: bool,
    /// Compute the known answer of one library; --try starts this
    #[arg(long, value_name = "FILE", group = "later", hide = true)]
    probe: Option<PathBuf>,
    /// Number of threads for a library [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    #[command(flatten)]
    format: OutputOptions,
}

/// The values of `--names`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum NamesOption {
    /// The source's, by libhotswap-names.so: files keep their names, and host and device code agree
    #[default]
    Source,
    /// Its own: files are renamed; only where no library chooses kernels by the name
    Own,
}

/// The values of `--leave-out`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LeftOut {
    /// Kernels that fail a check of their pair
    Kernels,
}

pub(crate) fn run(arguments: &ServeArguments) -> Result<CommandOutcome, Diagnostic> {
    if let Some(file) = &arguments.probe {
        return try_tree::probe(file);
    }
    match &arguments.action {
        Some(action) => arguments.single(action),
        None if arguments.check => arguments.check(),
        None if arguments.undo => arguments.undo(),
        None if arguments.tries => try_tree::run(arguments.dest(), arguments.format.format),
        None => arguments.serve(),
    }
}

impl ServeArguments {
    /// The destination, which all but `--action` require.
    fn dest(&self) -> &Path {
        self.dest.as_deref().unwrap_or(Path::new(""))
    }

    fn settings(&self) -> Result<ServeRequest, Diagnostic> {
        let mut targets: Vec<String> = Vec::new();
        for target in self.targets.iter().filter(|word| !is_package(word)) {
            let target = gpu_name(target)?;
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        Ok(ServeRequest {
            targets,
            from: self.from.as_deref().map(gpu_name).transpose()?,
            names: if self.names == NamesOption::Source { NameMode::Source } else { NameMode::Own },
            keep: self.keep.iter().map(|gpu| gpu_name(gpu)).collect::<Result<_, _>>()?,
            experimental: self.allow_experimental,
            leave_out_kernels: self.leave_out.is_some(),
        })
    }

    fn serve(&self) -> Result<CommandOutcome, Diagnostic> {
        let settings = self.settings()?;
        let packages: Vec<&Path> = self.targets.iter().filter(|word| is_package(word)).map(Path::new).collect();
        self.check_inputs(&settings, &packages)?;
        if !packages.is_empty() {
            return self.packages(&packages, &settings);
        }
        hotswap_stack::serve::check_place(&self.root, self.dest())?;
        if let Some(made) = &self.made {
            hotswap_stack::serve::check_place(&self.root, made)?;
        }
        let roots = self.root.iter().map(absolute).collect::<Result<Vec<_>, _>>()?;
        let plan = TreePlan::new(&hotswap_stack::read_tree(&roots)?, &settings)?;
        if self.dry_run {
            return Ok(report::planned(&plan, &settings, self.format.format));
        }
        if self.list_actions {
            return self.actions(&plan, &settings);
        }
        let progress = TerminalProgress::new("serve");
        let maker =
            OutputMaker::new(&settings, thread_count(self.jobs), &progress).with_made_outputs(self.made.as_deref());
        let preload = self.preload(&settings)?;
        let run =
            ServeRun { roots: &roots, destination: self.dest(), settings: &settings, preload: preload.as_deref() };
        let served = hotswap_stack::serve_tree(&plan, run, &maker)?;
        Ok(report::served(&plan, &settings, &served, self.dest(), self.format.format))
    }

    /// Libraries come from directories or from packages.
    fn check_inputs(&self, settings: &ServeRequest, packages: &[&Path]) -> Result<(), Diagnostic> {
        match (self.root.is_empty(), packages.is_empty()) {
            _ if settings.targets.is_empty() => usage_error_result("no GPU is named"),
            _ if self.output.is_some() => {
                usage_error_result("-o is for --action; --dest names the directory of a tree")
            }
            (true, true) => usage_error_result("neither --root nor a package names the libraries").map_err(|error| {
                error.advise("name their directory, as --root /usr/lib/x86_64-linux-gnu in Debian, or /opt/rocm/lib")
            }),
            (true, false) if self.list_actions || self.made.is_some() => {
                usage_error_result("--list-actions and --made are for --root").map_err(|error| {
                    error.advise("to serve a package is an action by itself, whose input is the package")
                })
            }
            (false, false) => usage_error_result("--root is for installed libraries, and packages are named besides"),
            _ => Ok(()),
        }
    }

    /// The library that shows programs the source's name, where the tree needs it. Without it the libraries see the GPU's own name
    /// and look for files that the tree does not have, so nothing is written then.
    fn preload(&self, settings: &ServeRequest) -> Result<Option<PathBuf>, Diagnostic> {
        if settings.names == NameMode::Own || self.dry_run {
            return Ok(None);
        }
        installed_preload().map(Some)
    }

    fn check(&self) -> Result<CommandOutcome, Diagnostic> {
        let checked = hotswap_stack::check::check_tree(self.dest())?;
        Ok(report::checked(checked, self.dest(), self.format.format))
    }

    fn undo(&self) -> Result<CommandOutcome, Diagnostic> {
        let undone = hotswap_stack::undo::undo_tree(self.dest())?;
        Ok(report::undone(undone, self.dest(), self.format.format))
    }
}

fn usage_error_result(what: &str) -> Result<(), Diagnostic> {
    Err(Diagnostic::error(codes::USAGE, what))
}

/// The name of the processor that is meant: its own, or that of a product. Other words are left to the plan, whose message
/// says what a GPU's name is.
fn gpu_name(word: &str) -> Result<String, Diagnostic> {
    match hotswap_targets::resolve_processor(word) {
        Ok(None) => Ok(word.to_owned()),
        _ => hotswap_targets::resolve_or_refuse(word).map(|processor| processor.name.to_owned()),
    }
}

/// Whether the word is the path of a file; the names of GPUs are none.
fn is_package(word: &str) -> bool {
    hotswap_targets::find_processor(word).is_none() && (word.contains(['/', '.']) || Path::new(word).is_file())
}

fn absolute(path: &PathBuf) -> Result<PathBuf, Diagnostic> {
    std::path::absolute(path).map_err(|error| Diagnostic::cannot_read(path, error))
}

/// The library that shows programs the source's name, in this installation.
fn installed_preload() -> Result<PathBuf, Diagnostic> {
    let program = hotswap_files::own_program()?;
    let program = std::fs::canonicalize(program).map_err(|error| missing_preload(error.to_string()))?;
    let prefix = program.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
    let library = prefix.join("lib/hotswap").join(environment::PRELOAD);
    let meta = std::fs::metadata(&library).map_err(|error| missing_preload(error.to_string()).in_file(&library))?;
    if meta.is_file() { Ok(library) } else { Err(missing_preload("it is not a file".to_owned()).in_file(&library)) }
}

fn missing_preload(what: String) -> Diagnostic {
    Diagnostic::error(codes::NO_INSTALL, what)
        .advise("install HotSwap as a whole: without this library a served tree does not work (--names own needs none)")
}
