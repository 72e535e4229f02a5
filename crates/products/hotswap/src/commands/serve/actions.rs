//! `hotswap serve --list-actions`: the outputs of a tree as commands for build systems and remote executors, which run them
//! in any order and on any machine.
//!
//! A line of JSON for each output with code: arguments, inputs, outputs; each depends on its inputs and on HotSwap
//! (`hotswap toolchain`) alone. The last line is the command that makes the tree of them (`--made`).
//!
//! Invariant: a tree that is made with outputs of such commands is the one that is made without: an output is taken only
//! where its record is that of the run's own action, and others are made as ever.

use super::{NamesOption, ServeArguments, absolute};
use crate::commands::retarget::actions::{max_size, name};
use crate::outcome::CommandOutcome;
use hotswap_file_edit::{NoProgress, thread_count};
use hotswap_report::{Diagnostic, codes};
use hotswap_stack::made::{MadeRecord, SingleAction};
use hotswap_stack::{OutputMaker, ServeRequest, TreePlan, make_single_output};
use hotswap_targets::TargetId;
use serde_json::json;
use std::path::{Path, PathBuf};

impl ServeArguments {
    /// Lists the actions for `--list-actions`.
    pub(super) fn actions(&self, plan: &TreePlan, settings: &ServeRequest) -> Result<CommandOutcome, Diagnostic> {
        let Some(made) = &self.made else {
            let error = Diagnostic::error(codes::USAGE, "--list-actions needs --made, the directory for the outputs");
            return Err(error);
        };
        let roots = GivenRoots::new(&self.root)?;
        let (mut text, mut all) = (String::new(), Vec::new());
        for action in plan.all_actions() {
            let Some(mut single) = SingleAction::of_plan_action(action, settings) else { continue };
            single.input = roots.given(&single.input);
            single.others.iter_mut().for_each(|other| other.input = roots.given(&other.input));
            let output = made.join(&action.output);
            let outputs = [name(&output)?, name(&MadeRecord::record_path(&output))?];
            let inputs = single.distinct_inputs().into_iter().map(name).collect::<Result<Vec<_>, _>>()?;
            let mut arguments: Vec<String> = ["hotswap", "serve"].map(str::to_owned).into();
            arguments.extend(max_size());
            arguments.extend(["--action".to_owned(), json!(single).to_string(), "-o".to_owned(), outputs[0].clone()]);
            text += &format!("{}\n", json!({ "arguments": arguments, "inputs": inputs, "outputs": outputs }));
            all.extend(outputs);
        }
        let roots = self.root.iter().map(|root| name(root)).collect::<Result<Vec<_>, _>>()?;
        let inputs: Vec<String> = roots.into_iter().chain(all).collect();
        let last =
            json!({ "arguments": self.tree_arguments(made)?, "inputs": inputs, "outputs": [name(self.dest())?] });
        text += &format!("{last}\n");
        let refused = plan.libraries.iter().flat_map(|library| library.refused.clone());
        Ok(CommandOutcome {
            text,
            problems: refused.chain(plan.problems.iter().cloned()).collect(),
            ..CommandOutcome::default()
        })
    }

    /// The command that makes the tree.
    fn tree_arguments(&self, made: &Path) -> Result<Vec<String>, Diagnostic> {
        let mut words: Vec<String> = ["hotswap", "serve", &self.targets.join(",")].map(str::to_owned).into();
        words.extend(max_size());
        // The tree may be up to date.
        words.push("--allow-unchanged".to_owned());
        words.push("--root".to_owned());
        for root in &self.root {
            words.push(name(root)?);
        }
        for (option, path) in [("--dest", self.dest()), ("--made", made)] {
            words.extend([option.to_owned(), name(path)?]);
        }
        words.extend(self.from.iter().map(|from| format!("--from={from}")));
        if !self.keep.is_empty() {
            words.push(format!("--keep={}", self.keep.join(",")));
        }
        for (is_set, word) in [
            (self.names == NamesOption::Own, "--names=own"),
            (self.allow_experimental, "--allow-experimental"),
            (self.leave_out.is_some(), "--leave-out=kernels"),
        ] {
            words.extend(is_set.then(|| word.to_owned()));
        }
        Ok(words)
    }

    /// Carries out the one of `--action`.
    pub(super) fn single(&self, action: &str) -> Result<CommandOutcome, Diagnostic> {
        let single: SingleAction = serde_json::from_str(action).map_err(action_format_error)?;
        let Some(output) = &self.output else {
            return Err(Diagnostic::error(codes::USAGE, "--action needs -o, the output"));
        };
        for row in single.content.wanted_targets().iter().chain(single.others.iter().map(|other| &other.wanted)) {
            for name in [&row.target, &row.source] {
                check_processor(name)?;
            }
        }
        check_apart(&single, output)?;
        let directory = output.parent().unwrap_or(Path::new(""));
        hotswap_files::create_directories(directory).map_err(|error| action_write_error(error).in_file(directory))?;
        let maker = OutputMaker::new(&single.request_settings(), thread_count(self.jobs), &NoProgress);
        let problems = match make_single_output(&single, output, &maker) {
            Ok(()) => maker.take_notes(),
            Err(reasons) => reasons,
        };
        Ok(CommandOutcome { text: String::new(), problems, ..CommandOutcome::default() })
    }
}

fn action_format_error(error: serde_json::Error) -> Diagnostic {
    Diagnostic::error(codes::USAGE, format!("--action: {error}"))
}

fn action_write_error(error: std::io::Error) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, error.to_string())
}

/// Whether the output and its record are not among the inputs.
fn check_apart(single: &SingleAction, output: &Path) -> Result<(), Diagnostic> {
    let record = MadeRecord::record_path(output);
    for input in single.distinct_inputs() {
        if [output, &record].iter().any(|path| is_same(path, input)) {
            return Err(Diagnostic::error(codes::USAGE, "--action: the output is an input").in_file(input));
        }
    }
    Ok(())
}

fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Whether it is the name of a GPU, without features.
fn check_processor(name: &str) -> Result<(), Diagnostic> {
    let id: TargetId = name.parse()?;
    if name == id.processor.name {
        return Ok(());
    }
    Err(Diagnostic::error(codes::USAGE, format!("--action: `{name}` has features, which are those of the code")))
}

/// A root as it was given.
struct GivenRoot {
    given: PathBuf,
    /// Its path without links.
    real: PathBuf,
}

/// The roots: the plan's paths are real ones.
struct GivenRoots(Vec<GivenRoot>);

impl GivenRoots {
    fn new(given: &[PathBuf]) -> Result<Self, Diagnostic> {
        given.iter().map(resolve_root_directory).collect::<Result<_, _>>().map(Self)
    }

    /// The path below the root as it was given.
    fn given(&self, path: &Path) -> PathBuf {
        let below = self.0.iter().find_map(|root| Some((&root.given, path.strip_prefix(&root.real).ok()?)));
        match below {
            Some((given, below)) if below.as_os_str().is_empty() => given.clone(),
            Some((given, below)) => given.join(below),
            None => path.to_owned(),
        }
    }
}

fn resolve_root_directory(root: &PathBuf) -> Result<GivenRoot, Diagnostic> {
    let real = absolute(root)?.canonicalize();
    let real = real.map_err(|error| Diagnostic::cannot_read(root, error))?;
    Ok(GivenRoot { given: root.clone(), real })
}
