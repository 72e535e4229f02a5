//! Arguments that several commands share.
//!
//! Absent on purpose: the arguments of single commands, which are beside them.

use crate::work::inventory::Depth;
use clap::{Args, ValueEnum};
use hotswap_plan::Plan;
use hotswap_report::Diagnostic;
use std::path::PathBuf;

/// Files to look into.
#[derive(Debug, Args)]
pub(crate) struct Files {
    /// Programs, libraries, objects, archives, fat binaries or code objects; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
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
    pub(crate) fn depth(&self) -> Depth {
        if self.kernels { Depth::Images } else { Depth::Tables }
    }
}

/// How to print.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

/// Output formats.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// The settings of a plan besides its pairs.
#[derive(Debug, Args)]
pub(crate) struct PlanSettings {
    /// Patch families to apply beyond those that the pairs need, separated by commas
    #[arg(long, value_name = "NAMES")]
    patches: Vec<String>,
    /// Action when a target cannot be made: error, warn or keep [default: error]
    #[arg(long)]
    policy: Option<String>,
    /// Action where a source's text depends on the name of the GPU: compile, error, warn or derive [default: compile]
    #[arg(long)]
    names: Option<String>,
    /// Apply experimental pairs, too, which nothing but the compatibility matrix speaks for
    #[arg(long)]
    pub(crate) allow_experimental: bool,
}

impl PlanSettings {
    /// Whether nothing was set.
    pub(crate) fn is_empty(&self) -> bool {
        self.patches.is_empty() && self.policy.is_none() && self.names.is_none() && !self.allow_experimental
    }

    /// The plan of these settings with those pairs, checked.
    pub(crate) fn plan(&self, pairs: &[String]) -> Result<Plan, Diagnostic> {
        self.plan_allowing(pairs, false)
    }

    /// Like `plan`; `experimental` also allows such pairs.
    pub(crate) fn plan_allowing(&self, pairs: &[String], experimental: bool) -> Result<Plan, Diagnostic> {
        let policy = self.policy.as_deref().map(str::parse).transpose()?.unwrap_or_default();
        let names = self.names.as_deref().map(str::parse).transpose()?.unwrap_or_default();
        let experimental = self.allow_experimental || experimental;
        let mut plan = Plan { policy, names, experimental, ..Plan::default() };
        pairs.iter().try_for_each(|pairs| plan.add_pairs(pairs))?;
        self.patches.iter().try_for_each(|names| plan.add_patches(names))?;
        hotswap_pipeline::check_plan(&plan)?;
        Ok(plan)
    }
}
