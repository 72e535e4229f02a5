//! The questions of a command about its sources: which targets can be derived from a processor's code object with the
//! same result, because the compiler sees the same program for both.
//!
//! There are two kinds. For a plan's pair the question is whether the target, for which clang does not compile, may be
//! derived. For coalescing it is whether a target for which clang would compile need not be compiled.
//!
//! Invariant: a pure function of the arguments and the plan.
//!
//! Absent on purpose: the answers, which take the preprocessor ([`crate::source_text`]).

use crate::coalesce::{self, Coalescing, UnitImage};
use crate::command::ClangCommand;
use crate::unseen;
use hotswap_compat::{
    AllowedSiblings, AvailableObject, Class, RoutePermissions, Strategy, choose_route, derive_target_id,
};
use hotswap_plan::{NamesPolicy, Plan, Policy};
use hotswap_targets::{Processor, TargetId, find_processor};
use std::ffi::OsString;

/// One question: may these targets be derived from that source?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivationQuery {
    /// The processor that clang compiles for.
    pub source: &'static Processor,
    /// The source with each requested setting of features.
    pub source_ids: Vec<TargetId>,
    /// The processors to derive, in the order of their names.
    pub targets: Vec<&'static Processor>,
    /// Whether clang is requested to compile for the targets (coalescing).
    pub requested: bool,
    /// Why the text cannot be checked.
    pub doubt: Option<String>,
}

impl DerivationQuery {
    /// The target ID for a setting of the source's features, as `--offload-arch` takes it.
    pub fn id(&self, processor: &Processor, setting: &TargetId) -> String {
        if processor == setting.processor {
            return setting.to_string();
        }
        derive_target_id(setting, processor.name).map_or_else(|_| processor.name.to_owned(), |id| id.to_string())
    }

    /// The target's images, each with the one of the source that it is; none where clang was not requested
    /// to compile for the target.
    pub fn images(&self, target: &Processor, source: &Processor) -> Vec<UnitImage> {
        let settings = self.source_ids.iter().filter(|_| self.requested);
        let mut images: Vec<UnitImage> = settings
            .map(|setting| UnitImage { target: self.id(target, setting), source: self.id(source, setting) })
            .collect();
        images.dedup_by(|one, other| one.target == other.target);
        images
    }

    /// Why arguments in clang's configuration files leave the question open. There they are not judged for one GPU, so
    /// each that names one counts.
    pub fn doubt_of_configured(&self, configured: &[OsString]) -> Option<String> {
        let doubt = if self.requested { coalesce::doubt_of_words(configured) } else { unseen::find(configured) };
        doubt.or_else(|| configured_gpu_doubt(configured)).map(|why| format!("a configuration file of clang has {why}"))
    }

    /// Every target ID of a processor, each once.
    pub fn ids(&self, processor: &Processor) -> Vec<String> {
        let mut ids: Vec<String> = self.source_ids.iter().map(|setting| self.id(processor, setting)).collect();
        ids.sort();
        ids.dedup();
        ids
    }
}

fn word_names_gpu(word: &&OsString) -> bool {
    word.to_string_lossy().to_ascii_lowercase().contains("gfx")
}

fn configured_gpu_doubt(configured: &[OsString]) -> Option<String> {
    configured.iter().find(word_names_gpu).map(|word| format!("`{}`: it names a GPU", word.display()))
}

/// The questions of the plan and of coalescing.
pub fn questions(
    command: &ClangCommand,
    words: &[OsString],
    plan: &Plan,
    coalescing: Option<&Coalescing>,
) -> Vec<DerivationQuery> {
    let classes = coalescing.iter().flat_map(|coalescing| &coalescing.classes);
    let mut asked: Vec<DerivationQuery> = classes.filter(|_| command.has_hip_source()).map(of_class).collect();
    // Answers are needed for the source's text, the targets for compiling what cannot be derived.
    let needs_targets = plan.names != NamesPolicy::Derive || plan.policy == Policy::Compile;
    if needs_targets && (command.links_device_code() || command.compiles_relocatable()) {
        asked.extend(of_plan(command, words, plan));
    }
    asked
}

fn of_class(class: &Class) -> DerivationQuery {
    let ids = class.features.iter().filter_map(|features| format!("{}{features}", class.source).parse().ok());
    DerivationQuery {
        source: class.source,
        source_ids: ids.collect(),
        targets: class.others.clone(),
        requested: true,
        doubt: None,
    }
}

/// The plan's targets by the source of their derivation; targets for which clang compiles are not derived.
fn of_plan(command: &ClangCommand, words: &[OsString], plan: &Plan) -> Vec<DerivationQuery> {
    let requested: Vec<TargetId> = command.archs.iter().filter_map(|arch| arch.parse().ok()).collect();
    let available: Vec<AvailableObject> =
        requested.iter().map(|target| AvailableObject { target: *target, recompiled: None }).collect();
    let pairs: Vec<_> = plan.pairs.iter().map(|pair| (pair.source.as_str(), pair.target.as_str())).collect();
    let allow = RoutePermissions { experimental: plan.experimental };
    let mut asked: Vec<DerivationQuery> = Vec::new();
    for name in plan.targets() {
        let selection = choose_route(name, &available, AllowedSiblings::Plan(&pairs), allow).ok();
        let Some((source, target)) = selection.and_then(|selection| selection.derived_from()).zip(find_processor(name))
        else {
            continue;
        };
        match asked.iter_mut().find(|question| question.source == source) {
            Some(question) => question.targets.push(target),
            None => asked.push(DerivationQuery {
                source,
                source_ids: requested.iter().copied().filter(|id| id.processor == source).collect(),
                targets: vec![target],
                requested: false,
                doubt: None,
            }),
        }
    }
    for question in &mut asked {
        question.doubt = doubt(command, words, question);
    }
    asked
}

/// A target of the plan that nothing in the command can be its source for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourceless {
    pub target: &'static Processor,
    pub why: String,
}

impl Sourceless {
    /// The note for the user.
    pub fn note(&self) -> String {
        format!("note: the source is compiled for {}: {}", self.target, self.why)
    }
}

/// Under the policy `compile` the targets that no requested processor's code can serve. Another stepping lacks a
/// name that clang could compile for.
pub fn sourceless(command: &ClangCommand, plan: &Plan) -> Vec<Sourceless> {
    let compiles = command.links_device_code() || command.compiles_relocatable();
    if plan.policy != Policy::Compile || !compiles || command.archs.is_empty() {
        return Vec::new();
    }
    let available: Vec<AvailableObject> =
        command.archs.iter().filter_map(|arch| arch.parse::<TargetId>().ok()).map(AvailableObject::from).collect();
    let pairs: Vec<_> = plan.pairs.iter().map(|pair| (pair.source.as_str(), pair.target.as_str())).collect();
    let allow = RoutePermissions { experimental: plan.experimental };
    let mut sourceless = Vec::new();
    for name in plan.targets() {
        let Err(refusal) = choose_route(name, &available, AllowedSiblings::Plan(&pairs), allow) else { continue };
        let target = find_processor(name).filter(|target| !has_stepping_source(target, plan));
        sourceless.extend(target.map(|target| Sourceless { target, why: refusal.to_string() }));
    }
    sourceless
}

fn has_stepping_source(target: &Processor, plan: &Plan) -> bool {
    let sources =
        plan.pairs.iter().filter(|pair| pair.target == target.name).filter_map(|pair| find_processor(&pair.source));
    sources
        .into_iter()
        .any(|source| hotswap_compat::find_pair(source, target).is_some_and(|pair| pair.strategy == Strategy::Rewrite))
}

/// Why the preprocessor cannot answer.
fn doubt(command: &ClangCommand, words: &[OsString], question: &DerivationQuery) -> Option<String> {
    if command.hip_sources().any(|input| input.path == "-") {
        return Some("the source is standard input, which can be read once".to_owned());
    }
    if words.iter().any(|word| word.to_string_lossy().starts_with("-gsplit-dwarf")) {
        return Some("`-gsplit-dwarf`: the debug information is in a file for each GPU".to_owned());
    }
    let members: Vec<_> = question.targets.iter().chain([&question.source]).copied().collect();
    unseen::find(words).or_else(|| {
        let word = words.iter().find(|word| coalesce::names_one(word, &members))?;
        Some(format!("`{}` is for one GPU", word.to_string_lossy()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scan;

    fn show(pairs: &str, text: &str) -> String {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        let mut plan = Plan::default();
        plan.add_pairs(pairs).unwrap();
        let one = |question: DerivationQuery| {
            let ids: Vec<_> = question.targets.iter().map(|target| question.ids(target).join("+")).collect();
            let doubt = question.doubt.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            format!("{}=>{}{doubt}", question.ids(question.source).join("+"), ids.join(","))
        };
        questions(&scan(&words), &words, &plan, None).into_iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_plan_asks_about_what_it_would_derive() {
        for (pairs, words, expected) in [
            ("gfx1030=>gfx1032,gfx1031", "--offload-arch=gfx1030 -c a.hip", "gfx1030=>gfx1031,gfx1032"),
            ("gfx1030=>gfx1032,gfx1031", "--offload-arch=gfx1030,gfx1031 -c a.hip", "gfx1030=>gfx1032"),
            ("gfx1030=>gfx1031", "--offload-arch=gfx1100 -c a.hip", ""),
            ("gfx1030=>gfx1031", "--offload-arch=gfx1030 -E a.hip", ""),
            ("gfx1030=>gfx1031", "--offload-arch=gfx1030 a.o -o a", ""),
            (
                "gfx900=>gfx902",
                "--offload-arch=gfx900:xnack+,gfx900:xnack- -c a.hip",
                "gfx900:xnack++gfx900:xnack-=>gfx902:xnack++gfx902:xnack-",
            ),
            (
                "gfx1030=>gfx1031 gfx900=>gfx902",
                "--offload-arch=gfx1030,gfx900 a.hip b.hip -o x",
                "gfx1030=>gfx1031 gfx900=>gfx902",
            ),
            ("gfx1030=>gfx10-3-generic", "--offload-arch=gfx1030 -c a.hip", "gfx1030=>gfx10-3-generic"),
        ] {
            assert_eq!(show(pairs, words), expected, "{pairs} {words}");
        }
    }

    #[test]
    fn text_that_the_preprocessor_does_not_see_is_in_doubt() {
        for (words, part) in [
            ("-x hip -c -", "standard input"),
            ("-c a.hip -include-pch a.pch", "precompiled header"),
            ("-c a.hip -Xarch_gfx1031 -O0", "`-Xarch_gfx1031` is for one GPU"),
            ("-c a.hip -Xarch_gfx1030 -O0", "`-Xarch_gfx1030` is for one GPU"),
            ("-c a.hip -D__gfx1031__", "is for one GPU"),
        ] {
            let shown = show("gfx1030=>gfx1031", &format!("--offload-arch=gfx1030 {words}"));
            assert!(shown.contains(part), "{words}: {shown}");
        }
        assert!(!show("gfx1030=>gfx1031", "--offload-arch=gfx1030 -c -O3 -g -fprofile-generate a.hip").contains('('));
    }

    #[test]
    fn a_target_without_a_source_is_compiled_under_that_policy() {
        let names = |pairs: &str, policy: Policy, text: &str| {
            let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            let mut plan = Plan { policy, ..Plan::default() };
            plan.add_pairs(pairs).unwrap();
            let found = sourceless(&scan(&words), &plan);
            found.iter().map(|found| found.target.name).collect::<Vec<_>>().join(" ")
        };
        for (pairs, text, expected) in [
            ("gfx1030=>gfx1031", "--offload-arch=gfx1100 -c a.hip", "gfx1031"),
            ("gfx1030=>gfx1031", "--offload-arch=gfx1030 -c a.hip", ""),
            ("gfx1030=>gfx1031", "--offload-arch=gfx1031 -c a.hip", ""),
            ("gfx1030=>gfx1031", "--offload-arch=gfx1100 -fgpu-rdc -c a.hip", "gfx1031"),
            ("gfx1030=>gfx1031", "--offload-arch=gfx1100 a.o --hip-link", ""),
            ("gfx1030=>gfx1100", "--offload-arch=gfx1030 -c a.hip", "gfx1100"),
            ("gfx1102=>gfx1150", "--offload-arch=gfx1102 -c a.hip", "gfx1150"),
            ("gfx1250=>gfx1250-strict", "--offload-arch=gfx1030 -c a.hip", ""),
        ] {
            assert_eq!(names(pairs, Policy::Compile, text), expected, "{pairs} {text}");
            assert_eq!(names(pairs, Policy::Error, text), "", "{pairs} {text}");
        }
    }
}
