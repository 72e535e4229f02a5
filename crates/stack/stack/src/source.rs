//! The GPU that each target is served from: one for the whole tree, because the host is shown one name. Others may take
//! its place where a file has code for them that the host starts in the same way.

use hotswap_compat::{EXPERIMENTAL_ADVICE, PairStatus, all_pairs, find_pair};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{Processor, find_processor};
use std::collections::BTreeSet;

/// The source of a target: the one that most libraries have, of these the first of the product's table.
///
/// # Errors
/// [`codes::UNKNOWN_TARGET`]; [`codes::PAIR_REFUSED`] for a source that cannot serve it; [`codes::NO_ROUTE`] where no
/// library has one that can.
pub(crate) fn choose_source(
    target: &str,
    from: Option<&str>,
    libraries: &[BTreeSet<String>],
    experimental: bool,
) -> Result<&'static str, Diagnostic> {
    let wanted = known_processor(target)?;
    if let Some(from) = from {
        return named_source(known_processor(from)?, wanted, experimental);
    }
    let candidates = all_pairs()
        .filter(|pair| pair.target == wanted.name && count_libraries_with_source(pair.source, libraries) > 0);
    let (validated, others): (Vec<_>, Vec<_>) = candidates.partition(|pair| pair.status == PairStatus::Validated);
    let allowed = if experimental && validated.is_empty() { &others } else { &validated };
    // Of equal counts the first, which `max_by_key` would not take.
    let best = allowed.iter().rev().max_by_key(|pair| count_libraries_with_source(pair.source, libraries));
    best.map(|pair| pair.source).ok_or_else(|| no_source(wanted, libraries, others.first().map(|pair| pair.source)))
}

fn count_libraries_with_source(source: &str, libraries: &[BTreeSet<String>]) -> usize {
    libraries.iter().filter(|library| library.contains(source)).count()
}

/// The other GPUs whose code can serve the target in the place of that for `source`, in the order of the product's table.
pub(crate) fn other_sources(target: &str, source: &str, experimental: bool) -> impl Iterator<Item = &'static str> {
    all_pairs()
        .filter(move |pair| pair.target == target && pair.source != source)
        .filter(move |pair| experimental || pair.status == PairStatus::Validated)
        .map(|pair| pair.source)
}

fn known_processor(name: &str) -> Result<&'static Processor, Diagnostic> {
    let processor = find_processor(name).filter(|processor| processor.name == name && !processor.is_generic());
    let advice = "name it as `rocminfo | grep gfx` prints it, for example gfx1031; see `hotswap targets`";
    processor.ok_or_else(|| Diagnostic::error(codes::UNKNOWN_TARGET, unknown_gpu_message(name)).advise(advice))
}

fn processor_suggestion_text(name: &str) -> String {
    hotswap_targets::suggest_processor(name).map(|text| format!("; {text}")).unwrap_or_default()
}

fn unknown_gpu_message(name: &str) -> String {
    format!("`{name}` is not the name of one GPU{}", processor_suggestion_text(name))
}

fn named_source(
    source: &'static Processor,
    target: &Processor,
    experimental: bool,
) -> Result<&'static str, Diagnostic> {
    let found = find_pair(source, target);
    match found {
        None => Err(pair_refused_error(format!("code for {source} cannot serve {target}"))
            .advise(format!("see `hotswap compat {source} {target}`"))),
        Some(found) if found.status != PairStatus::Validated && !experimental => {
            Err(pair_refused_error(format!("{source}=>{target} is experimental")).advise(EXPERIMENTAL_ADVICE))
        }
        Some(_) => Ok(source.name),
    }
}

fn pair_refused_error(what: String) -> Diagnostic {
    Diagnostic::error(codes::PAIR_REFUSED, what)
}

fn no_source(target: &Processor, libraries: &[BTreeSet<String>], experimental: Option<&str>) -> Diagnostic {
    if libraries.iter().any(|library| library.contains(target.name)) {
        let what = format!("the libraries have code for {target} already, and no other code can serve it");
        return Diagnostic::error(codes::NO_ROUTE, what).advise("use them as they are");
    }
    let there: BTreeSet<&str> = libraries.iter().flatten().map(String::as_str).collect();
    let there: Vec<&str> = there.into_iter().collect();
    let list = if there.is_empty() { "no GPU".to_owned() } else { there.join(", ") };
    let what = format!("the libraries have code for {list}, and none of that can serve {target}");
    let error = Diagnostic::error(codes::NO_ROUTE, what);
    match experimental {
        Some(source) => error.advise(format!("{source}=>{target} is experimental: {EXPERIMENTAL_ADVICE}")),
        None => {
            error.advise(format!("install libraries with code for one of the sources of {target} (`hotswap targets`)"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn libraries(lists: &[&[&str]]) -> Vec<BTreeSet<String>> {
        lists.iter().map(|list| list.iter().map(|name| (*name).to_owned()).collect()).collect()
    }

    #[test]
    fn most_libraries_decide_and_then_the_table() {
        let all = libraries(&[&["gfx1030", "gfx1102", "gfx1100"], &["gfx1030", "gfx1100"]]);
        assert_eq!(choose_source("gfx1031", None, &all, false).unwrap(), "gfx1030");
        assert_eq!(choose_source("gfx1103", None, &all, false).unwrap(), "gfx1100");
        assert_eq!(choose_source("gfx1103", Some("gfx1102"), &all, false).unwrap(), "gfx1102");
        let equal = libraries(&[&["gfx1100", "gfx1102"]]);
        assert_eq!(choose_source("gfx1103", None, &equal, false).unwrap(), "gfx1102");
    }

    #[test]
    fn others_are_in_the_order_of_the_table() {
        let of = |target, source, experimental| other_sources(target, source, experimental).collect::<Vec<_>>();
        assert_eq!(of("gfx1103", "gfx1100", false), ["gfx1102", "gfx1101"]);
        assert_eq!(of("gfx1103", "gfx1102", false), ["gfx1101", "gfx1100"]);
        assert!(of("gfx1103", "gfx1102", true).contains(&"gfx1151"));
        // Identical siblings are before all others.
        assert_eq!(of("gfx1150", "gfx1151", false), ["gfx1152", "gfx1153"]);
    }

    #[test]
    fn a_target_without_a_source_is_an_error() {
        let all = libraries(&[&["gfx90a"], &["gfx1010"]]);
        let error = choose_source("gfx1031", None, &all, false).unwrap_err();
        assert_eq!(error.code, codes::NO_ROUTE);
        assert!(error.to_string().contains("gfx1010, gfx90a") && error.to_string().contains("experimental"), "{error}");
        assert_eq!(choose_source("gfx1031", None, &all, true).unwrap(), "gfx1010");
        for (target, from, code) in [
            ("gfx9999", None, codes::UNKNOWN_TARGET),
            ("gfx10-3-generic", None, codes::UNKNOWN_TARGET),
            ("gfx1031", Some("gfx90a"), codes::PAIR_REFUSED),
            ("gfx1031", Some("gfx1010"), codes::PAIR_REFUSED),
        ] {
            assert_eq!(choose_source(target, from, &all, false).unwrap_err().code, code, "{target}");
        }
    }
}
