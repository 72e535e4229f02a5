//! The reasons why a library is not served, or not by all that it has.
//!
//! Absent on purpose: the decisions, which are the plan's.

use crate::request::{NameMode, ServeRequest, WantedTarget};
use crate::rules::{self, FileKind};
use crate::source;
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeSet;
use std::path::Path;

/// Code that the library compiles for the shown name is loaded on an identical sibling only.
pub(crate) fn not_relabelled(library: &str, row: &WantedTarget) -> Option<Diagnostic> {
    let (source, target) =
        (hotswap_targets::find_processor(&row.source)?, hotswap_targets::find_processor(&row.target)?);
    if hotswap_compat::pair_verdict(source, target).is_identical() {
        return None;
    }
    let what = format!(
        "it compiles kernels at run time for the name that it sees, and what is compiled for {source} is not loaded on a \
         {target} unchecked"
    );
    let advice = "leave it out of --root: it compiles for the GPU's own name then";
    Some(Diagnostic::error(codes::NOT_SERVED, what).in_entry(library).advise(advice))
}

/// The host parts of an archive's code are other files.
pub(crate) fn unchecked_hosts() -> Diagnostic {
    let what =
        "its host libraries are other files, so it is unknown whether they choose kernels by the name of the GPU";
    Diagnostic::error(codes::NOT_SERVED, what)
        .in_entry(rules::ARCHIVES)
        .advise("serve it with --names source, so that host part and code agree")
}

/// The variable of a library names one directory.
pub(crate) fn two_versions(library: &str, first: &Path, last: &Path) -> Diagnostic {
    let what = format!("its data files are in two directories, {} and {}", first.display(), last.display());
    Diagnostic::error(codes::NOT_SERVED, what).in_entry(library).advise("serve each version into its own --dest")
}

/// A tree shows one name for each target: a library that has code for another source alone needs a tree of its own.
pub(crate) fn served_apart(
    library: &str,
    row: &WantedTarget,
    processors: &BTreeSet<String>,
    settings: &ServeRequest,
) -> Option<Diagnostic> {
    let WantedTarget { target, source } = row;
    let other =
        source::other_sources(target, source, settings.experimental).find(|other| processors.contains(*other))?;
    if settings.names == NameMode::Source && rules::compiles_kernels(library) {
        let apart = WantedTarget { target: target.clone(), source: other.to_owned() };
        if let Some(refused) = not_relabelled(library, &apart) {
            return Some(refused);
        }
    }
    let what = format!("it has no code for {source}, from which {target} is served here; it has for {other}");
    let advice = format!(
        "serve it into a --dest of its own with `--from {other}`: libraries see the name of their own tree, so programs may use both"
    );
    Some(Diagnostic::error(codes::NOT_SERVED, what).in_entry(library).advise(advice))
}

pub(crate) fn without_source(library: &str, row: &WantedTarget) -> Diagnostic {
    let what = format!("it has no code for {}, so {} is not served by it", row.source, row.target);
    Diagnostic::warning(codes::NOT_SERVED, what).in_entry(library).advise("choose another source by --from")
}

/// HIP ends the process where a host library's own kernels are missing.
pub(crate) fn without_host(library: &str) -> Diagnostic {
    let hosts = rules::RULES.iter().filter(|rule| rule.library == library && rule.kind == FileKind::Host);
    let names = hosts.map(|rule| rule.file.trim_end_matches('*')).collect::<Vec<_>>().join(", ");
    let what = format!("its data files are below the roots, and its host library ({names}) is not");
    let advice = format!(
        "add {names} by --root: without code for the GPU in it, programs end by a segmentation fault at the first kernel"
    );
    Diagnostic::error(codes::NOT_SERVED, what).in_entry(library).advise(advice)
}

pub(crate) fn without_data(library: &str) -> Diagnostic {
    let rules = rules::RULES.iter().filter(|rule| rule.library == library);
    let directory = rules.flat_map(|rule| rule.directories).next().copied().unwrap_or_default();
    let what = format!("its host library is below the roots, and its data files ({directory}) are not");
    let warning = Diagnostic::warning(codes::NOT_SERVED, what).in_entry(library);
    warning.advise("add that directory by --root: most kernels of the library are in its files")
}

/// The refusal of a program or library for Windows.
pub(crate) fn not_for_linux(path: &Path) -> Diagnostic {
    let what = "it is a program or library for Windows, whose code can be listed and extracted, but not served";
    Diagnostic::error(codes::NOT_SERVED, what)
        .in_file(path)
        .advise("serve the libraries of a ROCm installation for Linux")
}
