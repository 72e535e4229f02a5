//! The verdict about one pair of processors with its reasons, as text and JSON.

use crate::{
    Check, EXPERIMENTAL_ADVICE, FeatureDifference, Override, PairStatus, RoutePermissions, ValidatedPair, Verdict,
    feature_differences, find_pair, override_version, pair_verdict,
};
use hotswap_report::{Diagnostic, codes, text};
use hotswap_targets::Processor;
use serde_json::{Value, json};
use std::fmt::Write;

/// The verdict about a pair with its reasons.
pub struct PairVerdict {
    pub(crate) source: &'static Processor,
    pub(crate) target: &'static Processor,
    pub(crate) verdict: Verdict,
    pub(crate) pair: Option<ValidatedPair>,
    evidence: Option<&'static str>,
    differences: Vec<FeatureDifference>,
    /// Why the pair is not applied.
    pub refusal: Option<Diagnostic>,
    variable: Override,
}

impl PairVerdict {
    pub fn new(source: &'static Processor, target: &'static Processor, allow: RoutePermissions) -> Self {
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
        let row = crate::row(source, target);
        let is_compared = row.is_some() && verdict != Verdict::Rewrite;
        let differences = if is_compared { feature_differences(source, target) } else { Vec::new() };
        let (evidence, variable) = (row.map(|row| row.evidence), override_version(source, target));
        Self { source, target, verdict, pair, evidence, differences, refusal, variable }
    }

    fn checks(&self) -> &'static [Check] {
        self.verdict.checks().unwrap_or_default()
    }

    /// The verdict as a clause.
    pub(crate) fn judgement(&self) -> String {
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

    pub fn to_text(&self) -> String {
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

    pub fn to_json(&self) -> Value {
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
            "verdict": verdict_name(&self.verdict),
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

pub(crate) fn verdict_name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Identical { .. } => "identical",
        Verdict::Conditional { .. } => "conditional",
        Verdict::Rewrite => "rewrite",
        Verdict::Refused { .. } => "unsafe",
    }
}

pub(crate) fn pair_json(pair: &ValidatedPair) -> Value {
    json!({
        "strategy": pair.strategy.to_string(),
        "status": pair.status.to_string(),
        "evidence": pair.evidence,
        "since": pair.since,
    })
}
