//! One diagnostic for a library whose host part chooses kernels by the GPU's name: pairs, a kernel, the rule, options.

use crate::names::Disagreement;
use crate::{Override, override_version};
use hotswap_report::{Diagnostic, Severity, codes};
use hotswap_targets::find_processor;
use std::path::Path;

/// The disagreements of a file's host part with requested code, in one diagnostic; `disagreements` are those of each
/// container, of `containers` in all.
pub fn names_diagnostic(
    disagreements: &[Vec<Disagreement>],
    containers: usize,
    severity: Severity,
    file: &Path,
) -> Option<Diagnostic> {
    let all: Vec<&Disagreement> = disagreements.iter().flatten().collect();
    let first = *all.first()?;
    let concerned = disagreements.iter().filter(|rows| !rows.is_empty()).count();
    let mut what = format!("{first}; refused: {}", pairs(&all).join(", "));
    let libraries = distinct(all.iter().map(|row| row.library.clone()));
    if libraries.len() > 1 {
        what += &format!("; it has kernels of {}", libraries.join(", "));
    }
    if containers > 1 {
        what += &format!("; in {concerned} of {containers} containers");
    }
    let mut problem = Diagnostic { severity, ..Diagnostic::error(codes::CHOSEN_BY_NAME, what) }.in_file(file);
    problem.place.kernel = Some(first.kernel.clone());
    Some(problem.advise(advice(&all)))
}

/// Pairs, and for generic targets the GPUs that contradict them.
fn pairs(rows: &[&Disagreement]) -> Vec<String> {
    let pairs = distinct(rows.iter().map(|row| (row.source.clone(), row.target)));
    pairs.into_iter().map(|(source, target)| pair_text(&source, target, rows)).collect()
}

fn pair_text(source: &str, target: &str, rows: &[&Disagreement]) -> String {
    let of_pair = rows.iter().filter(|row| row.source == source && row.target == target);
    let gpus = distinct(of_pair.map(|row| row.gpu));
    let because = if gpus == [target] { String::new() } else { format!(" (for {})", gpus.join(", ")) };
    format!("{source}=>{target}{because}")
}

fn advice(rows: &[&Disagreement]) -> String {
    let values = rows.iter().map(|row| match (find_processor(&row.source), find_processor(row.gpu)) {
        (Some(source), Some(gpu)) => match override_version(source, gpu) {
            Override::Safe(value) => Some(value),
            Override::Unsafe(..) | Override::None => None,
        },
        _ => None,
    });
    let values = distinct(values);
    let variable = match &values[..] {
        [Some(value)] => format!(
            "run it with HSA_OVERRIDE_GFX_VERSION={value}, which gives the GPU the source's name for host part and loader \
             alike; or "
        ),
        _ => String::new(),
    };
    format!(
        "build the library for the target through HotSwap, or with --offload-arch; or {variable}allow it by `--allow names` \
         if you know that both sides agree"
    )
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(source: &str, gpu: &'static str, target: &'static str) -> Disagreement {
        let (library, kernel) = ("rocPRIM 4.2.0".to_owned(), "k".to_owned());
        Disagreement { source: source.to_owned(), gpu, target, library, kernel, why: "why".to_owned() }
    }

    #[test]
    fn a_library_is_one_diagnostic() {
        let one = vec![row("gfx1030", "gfx1031", "gfx1031"), row("gfx1030", "gfx1032", "gfx1032")];
        let found = names_diagnostic(&[one.clone(), Vec::new(), one], 3, Severity::Error, Path::new("lib.so")).unwrap();
        let text = found.to_string();
        assert!(text.contains("[HS0414] lib.so: k: "), "{text}");
        assert!(text.contains("refused: gfx1030=>gfx1031, gfx1030=>gfx1032; in 2 of 3 containers"), "{text}");
        assert!(text.contains("HSA_OVERRIDE_GFX_VERSION=10.3.0") && text.contains("--allow names"), "{text}");
        assert!(names_diagnostic(&[Vec::new()], 1, Severity::Error, Path::new("x")).is_none());
    }

    #[test]
    fn the_variable_is_told_where_it_is_right_for_all() {
        let text = |rows: Vec<Disagreement>| {
            names_diagnostic(&[rows], 1, Severity::Error, Path::new("x")).unwrap().to_string()
        };
        let generic =
            text(vec![row("gfx1102", "gfx1103", "gfx11-generic"), row("gfx1102", "gfx1150", "gfx11-generic")]);
        assert!(generic.contains("gfx1102=>gfx11-generic (for gfx1103, gfx1150)"), "{generic}");
        assert!(!generic.contains("HSA_OVERRIDE"), "{generic}");
    }
}
