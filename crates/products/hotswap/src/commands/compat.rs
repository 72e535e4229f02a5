//! `hotswap compat`: the verdict about a pair of processors, all pairs of one processor, or the whole matrix.
//!
//! The exit code of a pair is a yes or no: an experimental pair is a no unless it is allowed, as in the other commands.

mod matrix;
mod neighbours;

use crate::outcome::CommandOutcome;
use crate::work::text;
use clap::{Args, ValueEnum};
use hotswap_compat::{
    Check, EXPERIMENTAL_ADVICE, FeatureDifference, Override, PairStatus, RoutePermissions, ValidatedPair, Verdict,
    feature_differences, find_pair, override_version, pair_verdict,
};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{Processor, resolve_or_refuse};
use neighbours::NeighbourPairs;
use serde_json::{Value, json};
use std::fmt::Write;

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
        let pairs = NeighbourPairs::of(resolve_or_refuse(name)?, allow);
        return Ok(in_format(format, || pairs.text(), || pairs.json())?.into());
    }
    let (Some(source), Some(target)) = (&arguments.source, &arguments.target) else {
        return Ok(match format {
            CompatFormat::Text => matrix::text(),
            CompatFormat::Json => text::json(&matrix::json()),
            CompatFormat::Markdown => matrix::markdown(),
        }
        .into());
    };
    let answer = PairVerdict::new(resolve_or_refuse(source)?, resolve_or_refuse(target)?, allow);
    let text = in_format(format, || answer.text(), || answer.json())?;
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

/// The verdict about a pair with its reasons.
struct PairVerdict {
    source: &'static Processor,
    target: &'static Processor,
    verdict: Verdict,
    pair: Option<ValidatedPair>,
    evidence: Option<&'static str>,
    differences: Vec<FeatureDifference>,
    refusal: Option<Diagnostic>,
    variable: Override,
}

impl PairVerdict {
    fn new(source: &'static Processor, target: &'static Processor, allow: RoutePermissions) -> Self {
        let verdict = pair_verdict(source, target);
        let pair = find_pair(source, target);
        let experimental = pair.is_some_and(|pair| pair.status == PairStatus::Experimental);
        let refusal = match &verdict {
            Verdict::Refused { why } => {
                Some(Diagnostic::error(codes::PAIR_REFUSED, format!("{source}=>{target}: {why}")))
            }
            _ if experimental && !allow.experimental => {
                let what = format!("{source}=>{target} is experimental, which was not allowed");
                Some(Diagnostic::error(codes::PAIR_REFUSED, what).advise(EXPERIMENTAL_ADVICE))
            }
            _ => None,
        };
        let row = hotswap_compat::row(source, target);
        let is_compared = row.is_some() && verdict != Verdict::Rewrite;
        let differences = if is_compared { feature_differences(source, target) } else { Vec::new() };
        let (evidence, variable) = (row.map(|row| row.evidence), override_version(source, target));
        Self { source, target, verdict, pair, evidence, differences, refusal, variable }
    }

    fn checks(&self) -> &'static [Check] {
        self.verdict.checks().unwrap_or_default()
    }

    /// The verdict as a clause.
    fn judgement(&self) -> String {
        let allowed = if self.refusal.is_none() { "allowed" } else { "possible" };
        let number = match self.checks() {
            [] => String::new(),
            [_] => " if the code object passes one check".to_owned(),
            checks => format!(" if the code object passes {} checks", checks.len()),
        };
        match &self.verdict {
            _ if self.source == self.target => "it is the same processor".to_owned(),
            Verdict::Identical { .. } => format!("{allowed}{number}: the same code by another name"),
            Verdict::Conditional { .. } => format!("{allowed}{number}"),
            Verdict::Rewrite => format!("{allowed}: its code is changed where the target differs"),
            Verdict::Refused { .. } => "unsafe".to_owned(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{}=>{}: {}\n", self.source, self.target, self.judgement());
        let checks = self.checks().iter().map(|check| vec![format!("  {check}"), check.meaning().to_owned()]);
        text += &text::table(&checks.collect::<Vec<_>>());
        for FeatureDifference { owner, feature, check } in &self.differences {
            let settled = check.map_or("no check settles it".to_owned(), |check| check.to_string());
            let _ = writeln!(text, "difference: {owner}: {} ({settled})", feature.what);
        }
        if let Some(evidence) = self.evidence {
            let _ = writeln!(text, "evidence: {evidence}");
        }
        if let Some(ValidatedPair { strategy, status, evidence, since, .. }) = &self.pair {
            let _ = writeln!(text, "pair: {status} since {since}, {strategy}; {evidence}");
        }
        let _ = match &self.variable {
            Override::Safe(value) => writeln!(
                text,
                "HSA_OVERRIDE_GFX_VERSION={value}: safe on {}, for host parts that choose by name, too",
                self.target
            ),
            Override::Unsafe(value, why) => {
                writeln!(text, "HSA_OVERRIDE_GFX_VERSION={value}: not safe on {}: {why}", self.target)
            }
            Override::None => Ok(()),
        };
        if let Some(better) = self.serving() {
            let _ = writeln!(text, "hotswap serve {} --from {}: {better}", self.target, self.source);
        }
        text
    }

    /// The advantages of serving installed libraries over the variable, which all GPUs of a process share.
    fn serving(&self) -> Option<&'static str> {
        match &self.variable {
            _ if self.refusal.is_some() => None,
            Override::Safe(_) => {
                Some("the same for installed libraries, and other GPUs of the process keep their own names")
            }
            Override::Unsafe(..) => Some(
                "runs the checks on every kernel of the installed libraries, and refuses those that fail; other GPUs of the \
                 process keep their own names",
            ),
            Override::None => None,
        }
    }

    fn json(&self) -> Value {
        let why = match &self.verdict {
            Verdict::Refused { why } => Some(why.as_str()),
            _ => None,
        };
        json!({
            "schema": 1,
            "source": self.source.name,
            "target": self.target.name,
            "serve": self.serving(),
            "allowed": self.refusal.is_none(),
            "verdict": name(&self.verdict),
            "why": why,
            "checks": self.checks().iter().map(|check| json!({ "name": check.name(), "meaning": check.meaning() })).collect::<Vec<_>>(),
            "differences": self.differences.iter().map(feature_difference_json).collect::<Vec<_>>(),
            "evidence": self.evidence,
            "pair": self.pair.map(|pair| pair_json(&pair)),
            "override": variable_json(&self.variable),
        })
    }
}

fn feature_difference_json(FeatureDifference { owner, feature, check }: &FeatureDifference) -> Value {
    json!({ "owner": owner, "features": feature.names, "what": feature.what, "check": check.map(Check::name) })
}

fn variable_json(variable: &Override) -> Value {
    match variable {
        Override::Safe(value) => json!({ "value": value, "safe": true }),
        Override::Unsafe(value, why) => json!({ "value": value, "safe": false, "why": why }),
        Override::None => Value::Null,
    }
}

fn name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Identical { .. } => "identical",
        Verdict::Conditional { .. } => "conditional",
        Verdict::Rewrite => "rewrite",
        Verdict::Refused { .. } => "unsafe",
    }
}

fn pair_json(pair: &ValidatedPair) -> Value {
    json!({
        "strategy": pair.strategy.to_string(),
        "status": pair.status.to_string(),
        "evidence": pair.evidence,
        "since": pair.since,
    })
}
