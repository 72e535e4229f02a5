//! The requested processors that one compilation can serve.
//!
//! Invariant: only members of one group of identical siblings share a compilation, and only where the pair requires no
//! check of the code object; the source is itself requested.
//!
//! Absent on purpose: whether the program's text is the same for all of them, which only the preprocessor can determine
//! (the driver wrapper runs it).

use crate::{Verdict, pair_verdict};
use hotswap_targets::{Processor, TargetId};

/// Members whose code may be wrong where that of their siblings is right: ROCm's device library uses dot
/// instructions for `gfx90c` (`amd_mixed_dot`), which lacks them, and clang drops the code after them. Nothing is
/// derived from these members.
const NO_SOURCES: &[&str] = &["gfx90c"];

/// Processors that one compilation can serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// The processor that is compiled for.
    pub source: &'static Processor,
    /// The processors that are derived from it; never empty.
    pub others: Vec<&'static Processor>,
    /// The feature settings that each of them is requested with, as the suffix of the name: `` or `:xnack+`.
    pub features: Vec<String>,
}

/// The classes among the requested targets, in their order; the remaining targets are compiled individually.
pub fn coalesced_classes(requested: &[TargetId]) -> Vec<Class> {
    let mut found: Vec<Class> = Vec::new();
    for id in requested {
        if id.processor.group.is_some() && !found.iter().any(|one| is_class_of_group(one, id.processor)) {
            found.extend(class_of_group(id.processor.group, requested));
        }
    }
    found
}

fn is_class_of_group(class: &Class, id_processor: &Processor) -> bool {
    class.source.group == id_processor.group
}

fn class_of_group(group: Option<&str>, requested: &[TargetId]) -> Option<Class> {
    let mut members: Vec<&'static Processor> = Vec::new();
    for id in requested.iter().filter(|id| id.processor.group == group) {
        if !members.contains(&id.processor) {
            members.push(id.processor);
        }
    }
    let source = members.iter().copied().find(|source| {
        !NO_SOURCES.contains(&source.name) && members.iter().all(|other| serves_without_checks(source, other))
    })?;
    let wanted = feature_settings(source, requested);
    let others = members.into_iter().filter(|other| *other != source && feature_settings(other, requested) == wanted);
    let others: Vec<_> = others.collect();
    (!others.is_empty()).then_some(Class { source, others, features: wanted })
}

fn serves_without_checks(source: &Processor, other: &Processor) -> bool {
    matches!(pair_verdict(source, other), Verdict::Identical { checks } if checks.is_empty())
}

/// Each setting of features that the processor is requested with, sorted.
///
/// Deriving makes every setting of the source, so only a processor that is requested with the same ones is derived.
fn feature_settings(processor: &Processor, requested: &[TargetId]) -> Vec<String> {
    let of = requested.iter().filter(|id| id.processor == processor).map(|id| id.feature_suffix());
    let mut features: Vec<_> = of.collect();
    features.sort();
    features.dedup();
    features
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        let requested: Vec<TargetId> = text.split(' ').map(|id| id.parse().unwrap()).collect();
        let one = |class: &Class| {
            let others: Vec<_> = class.others.iter().map(|other| other.name).collect();
            format!("{}{:?}=>{}", class.source, class.features, others.join(",")).replace('"', "")
        };
        coalesced_classes(&requested).iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn siblings_share_a_compilation_and_nobody_else() {
        for (requested, expected) in [
            ("gfx1030", ""),
            ("gfx1030 gfx1031 gfx1036", "gfx1030[]=>gfx1031,gfx1036"),
            ("gfx1032 gfx900 gfx1030 gfx902 gfx1100", "gfx1032[]=>gfx1030 gfx900[]=>gfx902"),
            ("gfx1030 gfx1030 gfx1031", "gfx1030[]=>gfx1031"),
            ("gfx906 gfx908 gfx1100 gfx1101 gfx1010 gfx1011", ""),
            ("gfx11-generic gfx1100 gfx10-3-generic gfx1030", ""),
            // Only code for gfx1010 and gfx1150 serves the others without checks.
            ("gfx1013 gfx1010", "gfx1010[]=>gfx1013"),
            ("gfx1153 gfx1152 gfx1150", "gfx1152[]=>gfx1153,gfx1150"),
            // Every setting of the source is derived.
            ("gfx900:xnack+ gfx900:xnack- gfx902:xnack- gfx902:xnack+ gfx909", "gfx900[:xnack+, :xnack-]=>gfx902"),
            ("gfx900:xnack+ gfx902:xnack-", ""),
            ("gfx90c gfx909 gfx900", "gfx909[]=>gfx90c,gfx900"),
            ("gfx900:xnack+ gfx902", ""),
        ] {
            assert_eq!(show(requested), expected, "{requested}");
        }
    }
}
