//! `hotswap compat`: the verdict about a pair of processors, all pairs of one processor, or the whole matrix
//! (`hotswap-compat` has the reports).
//!
//! The exit code of a pair is a yes or no: an experimental pair is a no unless it is allowed, as in the other commands.

use crate::outcome::CommandOutcome;
use crate::work::text;
use clap::{Args, ValueEnum};
use hotswap_compat::{NeighbourPairs, PairVerdict, RoutePermissions, matrix_report};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::resolve_or_refuse;
use serde_json::Value;

#[derive(Debug, Args)]
pub(crate) struct CompatArguments {
    /// Processor that the code was compiled for, or a product with it
    #[arg(required_unless_present_any = ["matrix", "pairs_of"])]
    source: Option<String>,
    /// Processor, generic target or product that it is wanted for
    #[arg(required_unless_present_any = ["matrix", "pairs_of"])]
    target: Option<String>,
    /// Print all pairs of a processor: what its code can serve, and whose code can serve it
    #[arg(long, value_name = "GPU", conflicts_with_all = ["source", "target", "matrix"])]
    pairs_of: Option<String>,
    /// Print the verdicts about all pairs
    #[arg(long, conflicts_with_all = ["source", "target", "allow_experimental"])]
    matrix: bool,
    /// Take an experimental pair for allowed
    #[arg(long)]
    allow_experimental: bool,
    /// Form of the output; `markdown` for the matrix only
    #[arg(long, value_enum, default_value_t)]
    format: CompatFormat,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum CompatFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// For documents
    Markdown,
}

pub(crate) fn run(arguments: &CompatArguments) -> Result<CommandOutcome, Diagnostic> {
    let format = arguments.format;
    let allow = RoutePermissions { experimental: arguments.allow_experimental };
    if let Some(name) = &arguments.pairs_of {
        let pairs = NeighbourPairs::new(resolve_or_refuse(name)?, allow);
        return Ok(in_format(format, || pairs.to_text(), || pairs.to_json())?.into());
    }
    let (Some(source), Some(target)) = (&arguments.source, &arguments.target) else {
        return Ok(match format {
            CompatFormat::Text => matrix_report::to_text(),
            CompatFormat::Json => text::json(&matrix_report::to_json()),
            CompatFormat::Markdown => matrix_report::to_markdown(),
        }
        .into());
    };
    let answer = PairVerdict::new(resolve_or_refuse(source)?, resolve_or_refuse(target)?, allow);
    let text = in_format(format, || answer.to_text(), || answer.to_json())?;
    // A no is a valid answer, but a script that checks the exit code must not take it for a yes.
    Ok(CommandOutcome { text, problems: answer.refusal.into_iter().collect(), ..CommandOutcome::default() })
}

fn in_format(
    format: CompatFormat,
    text: impl FnOnce() -> String,
    json: impl FnOnce() -> Value,
) -> Result<String, Diagnostic> {
    match format {
        CompatFormat::Text => Ok(text()),
        CompatFormat::Json => Ok(text::json(&json())),
        CompatFormat::Markdown => Err(Diagnostic::error(codes::USAGE, "`--format markdown` is for `--matrix` only")),
    }
}
