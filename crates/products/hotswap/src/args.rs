//! Arguments that several commands share.
//!
//! Absent on purpose: the arguments of single commands, which are beside them.

use crate::stream_input::input_file;
use crate::work::inventory::InventoryDepth;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use hotswap_files::Placement;
use hotswap_plan::{CommandOption, PLAN_OPTIONS, Plan, PlanOption};
use hotswap_report::Diagnostic;
use std::path::PathBuf;

/// Files to look into.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// Programs, libraries, objects, archives, fat binaries or code objects; `-` is standard input
    #[arg(value_parser = input_file(), required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
}

/// Files to look into, and how deep.
#[derive(Debug, Args)]
pub(crate) struct Look {
    #[command(flatten)]
    pub(crate) files: Files,
    /// Decompress large containers, too, to count kernels, tell kinds and check hashes
    #[arg(long)]
    kernels: bool,
}

impl Look {
    pub(crate) fn depth(&self) -> InventoryDepth {
        if self.kernels { InventoryDepth::Images } else { InventoryDepth::Tables }
    }
}

/// How to print.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct OutputOptions {
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Whether a file keeps its inode.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct InPlaceOption {
    /// Write into the existing file, so that its other names (hard links) have the new content, too; -o names the file itself.
    /// Not in one step: see docs/guide/device-code.md
    #[arg(long)]
    in_place: bool,
}

impl InPlaceOption {
    pub(crate) fn placement(self) -> Placement {
        if self.in_place { Placement::SameInode } else { Placement::NewFile }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// The settings of a plan besides its pairs: the options of the plan that are options of the command.
#[derive(Debug)]
pub(crate) struct PlanSettings {
    /// Each option with one of its values.
    values: Vec<(&'static PlanOption, String)>,
}

impl PlanSettings {
    /// Whether nothing was set.
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The name of an option that was set and is none of these.
    pub(crate) fn other_than(&self, names: &[&str]) -> Option<&'static str> {
        self.names().find(|name| !names.contains(name))
    }

    fn names(&self) -> impl Iterator<Item = &'static str> {
        self.values.iter().filter_map(|(option, _)| Some(option.command.as_ref()?.name))
    }

    /// The settings as words of a command.
    pub(crate) fn words(&self) -> Vec<String> {
        self.values.iter().filter_map(option_command_word).collect()
    }

    /// The plan of these settings with those pairs, checked; `experimental` also allows such pairs.
    pub(crate) fn plan(&self, pairs: &[String], experimental: bool) -> Result<Plan, Diagnostic> {
        let positional = PLAN_OPTIONS.iter().filter(|option| option.command.is_none());
        let pairs = positional.flat_map(|option| pairs.iter().map(move |pairs| (option, pairs)));
        let mut values: Vec<_> = self.values.iter().map(|(option, value)| (*option, value)).chain(pairs).collect();
        values.sort_by_key(|(option, _)| option.rank);
        let mut plan = Plan { experimental, ..Plan::default() };
        values.into_iter().try_for_each(|(option, value)| (option.set)(&mut plan, value))?;
        hotswap_pipeline::check_plan(&plan)?;
        Ok(plan)
    }
}

fn option_command_word((option, value): &(&'static PlanOption, String)) -> Option<String> {
    let form = option.command.as_ref()?;
    Some(if form.value.is_some() { format!("--{}={value}", form.name) } else { format!("--{}", form.name) })
}

/// The options of a plan that are options of the command.
fn plan_options() -> impl Iterator<Item = (&'static PlanOption, &'static CommandOption)> {
    PLAN_OPTIONS.iter().filter_map(|option| Some((option, option.command.as_ref()?)))
}

impl Args for PlanSettings {
    fn augment_args(command: Command) -> Command {
        command.args(plan_options().map(option_command_argument))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn option_command_argument((option, form): (&'static PlanOption, &'static CommandOption)) -> Arg {
    let argument = Arg::new(form.name).long(form.name).help(form.help);
    match form.value {
        None => argument.action(ArgAction::SetTrue),
        Some(name) if option.is_list => argument.value_name(name).action(ArgAction::Append),
        Some(name) => argument.value_name(name).action(ArgAction::Set),
    }
}

impl FromArgMatches for PlanSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut values = Vec::new();
        for (option, form) in plan_options() {
            if form.value.is_some() {
                let given = matches.get_many::<String>(form.name).into_iter().flatten();
                values.extend(given.map(|value| (option, value.clone())));
            } else if matches.get_flag(form.name) {
                values.push((option, option.value.to_owned()));
            }
        }
        Ok(Self { values })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
