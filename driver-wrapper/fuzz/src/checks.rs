//! Properties of any bytes, one function for each fuzz target.
//!
//! Nothing panics; an argument that is not HotSwap's never changes anything; what is written reads back; an error is one line
//! and none of our own defects.

// Each target calls one of them.
#![allow(dead_code)]

use hotswap_coverage::CoverageReport;
use hotswap_driver_wrapper::judge::{CommandDecision, PlanReference, judge};
use hotswap_driver_wrapper::options::{OptionValues, is_own};
use hotswap_plan::{PLAN_OPTIONS, Plan};
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

fn check(error: &Diagnostic) {
    assert!(![codes::VERIFY_FAILED, codes::INTERNAL].contains(&error.code), "{error}");
    let line = error.to_string();
    assert!(!line.contains('\n'), "more than a line: {line}");
}

/// A command line: arguments end with a zero byte.
pub(crate) fn arguments(input: &[u8]) {
    let Some((&first, rest)) = input.split_first() else { return };
    let words: Vec<OsString> = rest.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect();
    let settings = |own: &[_]| OptionValues::gather(own, &|_| None, &[]);
    let find = |plan: PlanReference<'_>| Err(Diagnostic::error(codes::PLAN_MISSING, format!("no {plan:?}")));
    let judgement = judge(first & 1 == 1, &words, &settings, &find);
    judgement.warnings.iter().for_each(check);
    let has_own = words.iter().any(|word| is_own(word));
    match &judgement.decision {
        CommandDecision::Error(error) => check(error),
        CommandDecision::PassThrough(_) => {}
        CommandDecision::Disabled
        | CommandDecision::WithPlan(_)
        | CommandDecision::Preprocess(_)
        | CommandDecision::Query(_) => assert!(has_own, "{words:?}"),
    }
    let may_be = match &judgement.decision {
        CommandDecision::PassThrough(_) => true,
        // Counters get the drain without an argument of HotSwap, and after `--` it has no place.
        CommandDecision::Error(error) => words.iter().any(|word| word == "--") && error.what.starts_with("the drain"),
        _ => false,
    };
    assert!(has_own || may_be, "{words:?}: {:?}", judgement.decision);
}

/// The tokens of a file: their text comes from it in order, and a quoted list of them reads back as the same list.
pub(crate) fn response_file(input: &[u8]) {
    let words = hotswap_files::tokenize_gnu(input);
    let mut rest = input.iter();
    for byte in words.iter().flat_map(|word| word.as_encoded_bytes()) {
        assert!(rest.any(|other| other == byte), "{words:?} has a byte that is not in the file at that place");
    }
    let mut quoted = Vec::new();
    for word in &words {
        quoted.push(b'"');
        for &byte in word.as_encoded_bytes() {
            if matches!(byte, b'"' | b'\\') {
                quoted.push(b'\\');
            }
            quoted.push(byte);
        }
        quoted.extend(b"\"\n");
    }
    assert_eq!(hotswap_files::tokenize_gnu(&quoted), words);
}

/// A plan's text, and its lines as values of the options of a plan.
pub(crate) fn plan(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match Plan::parse(&text) {
        Ok(plan) => {
            assert_eq!(Plan::parse(&plan.canonical_text()).as_ref(), Ok(&plan));
            assert_eq!(Plan::parse(&plan.canonical_text()).map(|plan| plan.hash()), Ok(plan.hash()));
        }
        Err(error) => check(&error),
    }
    let mut plan = Plan::default();
    for (line, option) in text.lines().zip(PLAN_OPTIONS.iter().cycle()) {
        if let Err(error) = (option.set)(&mut plan, line) {
            check(&error);
        }
    }
    assert_eq!(Plan::parse(&plan.canonical_text()).as_ref(), Ok(&plan), "{}", plan.canonical_text());
}

/// The exports of two targets.
pub(crate) fn coverage_export(input: &[u8]) {
    let (host, device) = input.split_at(input.iter().position(|byte| *byte == 0).unwrap_or(input.len()));
    let exports = [("host", host), ("gfx1030", device)].map(|(target, json)| hotswap_coverage::parse(target, json));
    let mut read = Vec::new();
    for export in exports {
        match export {
            Ok(export) => read.push(export),
            Err(error) => check(&error),
        }
    }
    let report = CoverageReport::of(read);
    drop(report.directories());
}
