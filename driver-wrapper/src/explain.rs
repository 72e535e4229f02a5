//! The output of `--hotswap-explain`: the decision, the settings with their origins, the additions to the command.
//!
//! Absent on purpose: acting on any of it.

use crate::answers::Consequences;
use crate::exec::LaunchCommand;
use crate::find::Clang;
use crate::judge::{CommandDecision, CommandJudgement};
use crate::options::{OptionValues, PlanSource, row};
use crate::warm_headers::WarmHeaders;
use crate::words::{ClangArgument, shell};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;

/// All facts about a command.
#[derive(Debug)]
pub struct CommandExplanation<'a> {
    pub judgement: &'a CommandJudgement,
    pub settings: &'a OptionValues,
    pub clang: &'a Clang,
    /// The command that would be run.
    pub launch: &'a LaunchCommand,
    /// Arguments that are prepended.
    pub added: &'a [OsString],
    /// The sources' answers about the targets that would be derived.
    pub asked: &'a Consequences,
    /// Arguments for the host linker that follow the user's.
    pub back: &'a [OsString],
    /// The answer about precompiled headers.
    pub warm: &'a WarmHeaders,
}

impl CommandExplanation<'_> {
    /// The explanation as JSON, for programs.
    pub fn json(&self) -> String {
        let words: Vec<Value> = self.launch.words.iter().map(word_json).collect();
        let env = self
            .launch
            .env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_ref().map_or(Value::Null, |v| text(v).into())));
        let settings: Vec<Value> = self.settings.iter().map(|setting| {
            json!({ "option": name(setting.id), "value": text(&setting.value), "from": setting.origin_text() })
        }).collect();
        let value = json!({
            "decision": self.decision(),
            "plan": self.plan_json(),
            "settings": settings,
            "clang": { "path": text(self.clang.path.as_os_str()), "from": self.clang.origin },
            "added_words": self.added.iter().map(|word| text(word)).collect::<Vec<_>>(),
            "coalescing": self.coalescing(),
            "warm_headers": self.warm.explanation(),
            "text": self.asked.lines,
            "requested_words": self.asked.words.iter().map(|word| text(word)).collect::<Vec<_>>(),
            "profile": self.profile(),
            "appended_words": self.back.iter().map(|word| text(word)).collect::<Vec<_>>(),
            "environment": env.collect::<serde_json::Map<_, _>>(),
            "words": words,
            "warnings": self.judgement.warnings.iter().chain(&self.asked.warnings).map(|w| w.to_json()).collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }

    /// The explanation in words, for people.
    pub fn text(&self) -> String {
        let mut out = format!("decision: {}\n", self.decision());
        if let CommandDecision::WithPlan(plan) = &self.judgement.decision {
            let _ = writeln!(out, "plan: {} ({})", plan.hash, source(plan.source));
            for line in plan.plan.canonical_text().lines().skip(1) {
                let _ = writeln!(out, "  {line}");
            }
        }
        out.push_str("settings:\n");
        for setting in self.settings.iter() {
            let _ = writeln!(out, "  {} = {} ({})", name(setting.id), text(&setting.value), setting.origin_text());
        }
        let _ = writeln!(out, "clang: {} ({})", self.clang.path.display(), self.clang.origin);
        if !self.added.is_empty() {
            let _ = writeln!(out, "adds: {}", shell(self.added.iter().map(OsString::as_os_str)).display());
        }
        if !self.back.is_empty() {
            let _ = writeln!(out, "appends: {}", shell(self.back.iter().map(OsString::as_os_str)).display());
        }
        if let Some(profile) = self.profile() {
            let _ = writeln!(out, "counters in device code: {profile}");
        }
        if let Some(coalescing) = self.coalescing() {
            let _ = writeln!(out, "coalescing: {coalescing}");
        }
        if let Some(warm) = self.warm.explanation() {
            let _ = writeln!(out, "warm headers: {warm}");
        }
        for line in &self.asked.lines {
            let _ = writeln!(out, "text: {line}");
        }
        if !self.asked.words.is_empty() {
            let _ = writeln!(out, "requests: {}", shell(self.asked.words.iter().map(OsString::as_os_str)).display());
        }
        for (name, value) in &self.launch.env {
            // The text of the plan has lines of its own and is printed above.
            let value = value.as_ref().map(|value| text(value).trim_end().replace('\n', "; "));
            let _ = match value {
                Some(value) => writeln!(out, "sets: {name}={value}"),
                None => writeln!(out, "removes: {name}"),
            };
        }
        for warning in self.judgement.warnings.iter().chain(&self.asked.warnings) {
            let _ = writeln!(out, "{warning}");
        }
        out
    }

    fn decision(&self) -> String {
        match &self.judgement.decision {
            CommandDecision::PassThrough(reason) => format!("pass through: {reason}"),
            CommandDecision::Disabled => "disabled".to_owned(),
            CommandDecision::Preprocess(_) => {
                "add the texts of the plan's GPUs to the preprocessor's output".to_owned()
            }
            CommandDecision::WithPlan(plan) => {
                let part = match (plan.device_link, plan.host_link) {
                    (true, true) => "device link and host link",
                    (true, false) => "device link",
                    (false, true) => "host link",
                    (false, false) => "device link, should clang make one",
                };
                format!("take part in the {part}")
            }
            // Handled before anything is explained.
            CommandDecision::Query(_) | CommandDecision::Error(_) => String::new(),
        }
    }

    /// The treatment of counters in device code.
    fn profile(&self) -> Option<&'static str> {
        let profile = self.judgement.profile.as_ref()?;
        Some(match (profile.drain, self.judgement.command.links_host_code()) {
            (true, _) => "with a drain in the host link",
            (false, true) => "without a drain of HotSwap's",
            (false, false) => "compiled",
        })
    }

    /// The GPUs that one compilation serves, or why every GPU has its own.
    fn coalescing(&self) -> Option<String> {
        let CommandDecision::WithPlan(plan) = &self.judgement.decision else { return None };
        let coalescing = plan.coalescing.as_ref()?;
        let taken_back =
            self.asked.words.iter().map(|word| text(word)).filter(|word| word.starts_with("--no-offload-arch"));
        let taken_back: Vec<String> = taken_back.collect();
        Some(match &coalescing.refused {
            Some(why) => format!("none, {why}"),
            None if taken_back.is_empty() => "none, the text of the program is not the same for the GPUs".to_owned(),
            None => taken_back.join(" "),
        })
    }

    fn plan_json(&self) -> Value {
        let CommandDecision::WithPlan(plan) = &self.judgement.decision else { return Value::Null };
        json!({
            "hash": plan.hash,
            "from": source(plan.source),
            "text": plan.plan.canonical_text(),
            "device_link": plan.device_link,
            "host_link": plan.host_link,
        })
    }
}

fn name(id: crate::options::OptionId) -> &'static str {
    let opt = row(id);
    opt.key.or(opt.env).or(opt.word).unwrap_or_default()
}

const fn source(source: PlanSource) -> &'static str {
    match source {
        PlanSource::Token => "token of the build system",
        PlanSource::Words => "words on the command line",
        PlanSource::Ambient => "environment or configuration",
        PlanSource::Objects => "objects that were compiled under it",
    }
}

fn text(value: &OsStr) -> String {
    value.to_string_lossy().into_owned()
}

fn word_json(word: &ClangArgument) -> Value {
    match word {
        ClangArgument::Plain(word) => text(word).into(),
        ClangArgument::Listed(words) => words.iter().map(|word| text(word)).collect::<Vec<_>>().into(),
    }
}
