//! `hotswap retarget`: add a plan's targets to what a build has made already.
//!
//! A fat binary (bundle, plain or compressed) and a relocatable host object that holds one have
//! room for more; a linked program has not, and is refused.

use crate::Outcome;
use crate::plan::Settings;
use clap::Args;
use hotswap_bundle::{host_object, is_bundle};
use hotswap_plan::Plan;
use hotswap_report::{Diagnostic, codes};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Fat binary, or host object with one
    file: PathBuf,
    /// Output file
    #[arg(short, value_name = "OUT")]
    output: PathBuf,
    /// Pairs, for example 'gfx1030=>gfx1031,gfx1032'
    #[arg(long, value_name = "PAIRS", required_unless_present = "plan", conflicts_with = "plan")]
    pairs: Vec<String>,
    /// Hash of a plan that `hotswap plan` has written
    #[arg(long, value_name = "HASH")]
    plan: Option<String>,
    #[command(flatten)]
    settings: Settings,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Diagnostic> {
    let plan = match &arguments.plan {
        Some(_) if !arguments.settings.is_empty() => {
            return Err(Diagnostic::error(codes::USAGE, "--plan has its own policy and patches"));
        }
        Some(hash) => hotswap_plan::find(hash)?,
        None => arguments.settings.plan(&arguments.pairs)?,
    };
    let bytes = hotswap_files::open(&arguments.file)?;
    let (content, outcome) = retarget(&bytes, &plan).map_err(|error| error.in_file(&arguments.file))?;
    hotswap_files::replace(&arguments.output, content.as_deref().unwrap_or(&bytes))?;
    Ok(outcome)
}

type Changed = (Option<Vec<u8>>, Outcome);

fn retarget(bytes: &[u8], plan: &Plan) -> Result<Changed, Diagnostic> {
    if is_bundle(bytes) {
        return expand(bytes, plan);
    }
    if !host_object::is_host_object(bytes) {
        let what = "it is neither a fat binary nor a relocatable host object";
        let advice = "retarget before the host link: a linked program has no room";
        return Err(Diagnostic::error(codes::NO_PLACE, what).advise(advice));
    }
    let fatbin = host_object::fatbin_of(bytes)?
        .ok_or_else(|| Diagnostic::error(codes::NOT_FOUND, "the object has no .hip_fatbin"))?;
    let (content, outcome) = expand(fatbin, plan)?;
    let changed = content.map(|content| host_object::replace_fatbin(bytes, &content)).transpose()?;
    Ok((changed, outcome))
}

fn expand(fatbin: &[u8], plan: &Plan) -> Result<Changed, Diagnostic> {
    let expansion = hotswap_pipeline::expand(fatbin, plan, None)?;
    let mut text: String = expansion.derived.iter().map(|id| format!("added {id}\n")).collect();
    if let Some(kept) = expansion.kept {
        text += &format!("unchanged: {kept}\n");
    }
    Ok((expansion.bytes, Outcome { text, problems: expansion.warnings }))
}
