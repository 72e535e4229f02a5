//! All pairs of one processor: what its code can serve, and whose code can serve it.

use crate::pair_report::{PairVerdict, pair_json, verdict_name};
use crate::{RoutePermissions, Verdict};
use hotswap_report::text;
use hotswap_targets::{PROCESSORS, Processor};
use serde_json::{Value, json};

/// The pairs of a processor that are not unsafe, both ways.
pub struct NeighbourPairs {
    processor: &'static Processor,
    serves: Vec<PairVerdict>,
    served_by: Vec<PairVerdict>,
    /// Processors that code for this generic target runs on as it is, or generic targets whose code runs on this processor.
    runs_as_it_is: Vec<&'static str>,
}

impl NeighbourPairs {
    pub fn new(processor: &'static Processor, allow: RoutePermissions) -> Self {
        let others = PROCESSORS.iter().filter(|other| !other.withdrawn && other.name != processor.name);
        let (mut serves, mut served_by) = (Vec::new(), Vec::new());
        for other in others {
            serves.extend(possible(processor, other, allow));
            served_by.extend(possible(other, processor, allow));
        }
        let related = PROCESSORS
            .iter()
            .filter(|other| !other.withdrawn && other.name != processor.name)
            .filter(|one| is_related_processor(one, processor));
        Self { processor, serves, served_by, runs_as_it_is: related.map(|other| other.name).collect() }
    }

    pub fn to_text(&self) -> String {
        let name = self.processor.name;
        let mut text = section(&format!("code for {name} serves:"), &self.serves, |pair| pair.target);
        text += &section(&format!("{name} is served by code for:"), &self.served_by, |pair| pair.source);
        if !self.runs_as_it_is.is_empty() {
            let title = if self.processor.is_generic() {
                format!("code for {name} runs as it is on")
            } else {
                format!("{name} runs code as it is for")
            };
            text += &format!("{title}: {}\n\n", self.runs_as_it_is.join(", "));
        }
        text + "`hotswap compat SOURCE TARGET` gives checks and evidence; every other pair is unsafe.\n"
    }

    pub fn to_json(&self) -> Value {
        json!({
            "schema": 1,
            "processor": self.processor.name,
            "serves": pair_entries(&self.serves),
            "served_by": pair_entries(&self.served_by),
            "runs_as_it_is": self.runs_as_it_is,
        })
    }
}

fn is_related_processor(other: &&Processor, processor: &Processor) -> bool {
    processor.covers(other) || other.covers(processor)
}

/// Code for a generic target runs on what it covers as it is, and serves nothing else: no row has one as its source.
fn possible(source: &'static Processor, target: &'static Processor, allow: RoutePermissions) -> Option<PairVerdict> {
    let pair = PairVerdict::new(source, target, allow);
    (!source.is_generic() && !matches!(pair.verdict, Verdict::Refused { .. })).then_some(pair)
}

fn section(title: &str, pairs: &[PairVerdict], other: impl Fn(&PairVerdict) -> &'static Processor) -> String {
    if pairs.is_empty() {
        return format!("{title} nothing\n\n");
    }
    format!("{title}\n{}\n", text::table(&pairs.iter().map(|one| pair_verdict_row(one, &other)).collect::<Vec<_>>()))
}

fn pair_status_text(pair: &PairVerdict) -> String {
    pair.pair.map_or(String::new(), |pair| pair.status.to_string())
}

fn pair_verdict_row(pair: &PairVerdict, other: &impl Fn(&PairVerdict) -> &'static Processor) -> Vec<String> {
    vec![format!("  {}", other(pair)), pair_status_text(pair), pair.judgement()]
}

fn pair_entries(pairs: &[PairVerdict]) -> Vec<Value> {
    pairs.iter().map(entry).collect()
}

fn entry(verdict: &PairVerdict) -> Value {
    json!({
        "source": verdict.source.name,
        "target": verdict.target.name,
        "allowed": verdict.refusal.is_none(),
        "verdict": verdict_name(&verdict.verdict),
        "pair": verdict.pair.map(|pair| pair_json(&pair)),
    })
}
