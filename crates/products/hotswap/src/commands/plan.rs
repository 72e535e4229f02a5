//! `hotswap plan`: checks a plan and writes its file, at configure time of a build.

use crate::args::{OutputFormat, OutputOptions, PlanSettings};
use crate::outcome::CommandOutcome;
use crate::work::text;
use clap::Args;
use hotswap_compat::{Class, coalesced_classes};
use hotswap_families::families_of;
use hotswap_plan::{PLAN_OPTIONS, Plan, PlanValue, words};
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// Pairs, for example 'gfx1030=>gfx1031,gfx1032'
    #[arg(required_unless_present_any = ["coalesce", "device-link", "device-symbols", "device-exports", "device-imports"], value_name = "PAIRS")]
    pub(crate) pairs: Vec<String>,
    /// Add the pairs by which one compilation serves several of these GPUs (identical siblings)
    #[arg(long, value_name = "GPUS", value_delimiter = ',')]
    coalesce: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: PlanSettings,
    /// Directory for the plan's file
    #[arg(long, value_name = "DIR", default_value = words::PLAN_DIRECTORY)]
    out_dir: PathBuf,
    #[command(flatten)]
    output: OutputOptions,
}

/// Pairs for the siblings among these GPUs, unless other pairs need the code object of the derived one.
fn coalesced(gpus: &[String], pairs: &[String]) -> Result<Vec<String>, Diagnostic> {
    let mut named = Plan::default();
    pairs.iter().try_for_each(|pairs| named.add_pairs(pairs))?;
    let requested = gpus.iter().map(|gpu| Ok(gpu.parse()?)).collect::<Result<Vec<TargetId>, Diagnostic>>()?;
    Ok(coalesced_classes(&requested).iter().flat_map(|class| pairs_of_class(class, &named)).collect())
}

/// The pairs from the source of a class to its others, without those that are the source of a named pair.
fn pairs_of_class(class: &Class, named: &Plan) -> Vec<String> {
    let others = class.others.iter().filter(|other| !named.pairs.iter().any(|pair| pair.source == other.name));
    others.map(|other| format!("{}=>{other}", class.source)).collect()
}

pub(crate) fn run(arguments: &PlanArguments) -> Result<CommandOutcome, Diagnostic> {
    let mut pairs = arguments.pairs.clone();
    pairs.extend(coalesced(&arguments.coalesce, &arguments.pairs)?);
    let plan = arguments.settings.plan(&pairs, false)?;
    let file = hotswap_plan::save_plan(&plan, &arguments.out_dir)?;
    let hash = plan.hash();
    if arguments.output.format == OutputFormat::Text {
        return Ok(format!("{hash}\n").into());
    }
    let mut value = json!({
        "schema": 1,
        "hash": hash,
        "file": file.display().to_string(),
        "targets": plan.targets(),
        "families": families_of(&plan)?,
    });
    for option in PLAN_OPTIONS {
        value[option.json] = option_json((option.get)(&plan));
    }
    Ok(text::json(&value).into())
}

fn option_json(value: PlanValue<'_>) -> Value {
    match value {
        PlanValue::Word { word, .. } => json!(word),
        PlanValue::Switch(is_set) => json!(is_set),
        PlanValue::Number(number) => json!(number),
        PlanValue::Names(names) => json!(names),
        PlanValue::Pairs(pairs) => {
            pairs.iter().map(|pair| json!({ "source": pair.source, "target": pair.target })).collect()
        }
    }
}
