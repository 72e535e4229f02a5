//! `hotswap plan` and `hotswap manifest`: the commands that a build system runs at configure time.

use crate::cli::Format;
use crate::{Outcome, text};
use clap::Args;
use hotswap_compat::{Class, classes};
use hotswap_families::{families_of, manifest};
use hotswap_plan::{Plan, words};
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Pairs, for example 'gfx1030=>gfx1031,gfx1032'
    #[arg(required_unless_present = "coalesce", value_name = "PAIRS")]
    pub(crate) pairs: Vec<String>,
    /// Add the pairs by which one compilation serves several of these GPUs (identical siblings)
    #[arg(long, value_name = "GPUS", value_delimiter = ',')]
    coalesce: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: Settings,
    /// Directory for the plan's file
    #[arg(long, value_name = "DIR", default_value = words::PLAN_DIRECTORY)]
    out_dir: PathBuf,
    #[command(flatten)]
    output: crate::cli::Output,
}

/// The settings of a plan besides its pairs.
#[derive(Debug, Args)]
pub(crate) struct Settings {
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

impl Settings {
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

/// Pairs for the siblings among these GPUs, unless other pairs need the code object of the derived one.
fn coalesced(gpus: &[String], pairs: &[String]) -> Result<Vec<String>, Diagnostic> {
    let mut named = Plan::default();
    pairs.iter().try_for_each(|pairs| named.add_pairs(pairs))?;
    let requested = gpus.iter().map(|gpu| Ok(gpu.parse()?)).collect::<Result<Vec<TargetId>, Diagnostic>>()?;
    let is_source = |name: &str| named.pairs.iter().any(|pair| pair.source == name);
    let pair = |class: &Class| {
        let others = class.others.iter().filter(|other| !is_source(other.name));
        others.map(|other| format!("{}=>{other}", class.source)).collect::<Vec<_>>()
    };
    Ok(classes(&requested).iter().flat_map(pair).collect())
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Diagnostic> {
    let mut pairs = arguments.pairs.clone();
    pairs.extend(coalesced(&arguments.coalesce, &arguments.pairs)?);
    let plan = arguments.settings.plan(&pairs)?;
    let file = hotswap_plan::save(&plan, &arguments.out_dir)?;
    let hash = plan.hash();
    if arguments.output.format == Format::Text {
        return Ok(format!("{hash}\n").into());
    }
    let pairs: Vec<_> = plan.pairs.iter().map(|pair| json!({ "source": pair.source, "target": pair.target })).collect();
    let value = json!({
        "schema": 1,
        "hash": hash,
        "file": file.display().to_string(),
        "policy": plan.policy.to_string(),
        "names": plan.names.to_string(),
        "experimental": plan.experimental,
        "pairs": pairs,
        "targets": plan.targets(),
        "patches": plan.patches,
        "families": families_of(&plan)?,
    });
    Ok(text::json(&value).into())
}

pub(crate) fn manifest(hash: &str, output: &Path, format: manifest::Format) -> Result<Outcome, Diagnostic> {
    let mut problems = Vec::new();
    let plan = hotswap_plan::find(hash, &mut |skipped| problems.push(skipped))?;
    let object = manifest::object(format, hash, &plan.canonical(), &families_of(&plan)?)?;
    hotswap_files::replace(output, &object)?;
    Ok(Outcome { text: String::new(), problems })
}
