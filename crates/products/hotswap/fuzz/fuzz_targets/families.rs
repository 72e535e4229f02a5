//! Code objects for gfx1250, rewritten by the families for gfx1250-strict.
#![no_main]

use hotswap_adapt::{AdaptRequest, adapt_object};
use hotswap_lint::LintFinding;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check(input));

/// The rules of the proof that hold for any input that was rewritten. The others need code whose meaning is known: where that cannot
/// be determined, the proof says so, and that is no fault of the rewriter.
const FOR_ANY_INPUT: &[&str] = &["unchanged", "file", "certificate"];

/// An error is documented; a result reads again, is for the target, needs no second rewrite, and by the checker, which shares no code
/// with the rewriter, differs from the input only where its certificate says so.
fn check(input: &[u8]) {
    let target = "gfx1250-strict".parse::<TargetId>().expect("a target of the table");
    let request = AdaptRequest { target, keep_machine: false };
    let adapted = match adapt_object(input, &request) {
        Ok(adapted) => adapted,
        Err(errors) => return errors.iter().for_each(documented),
    };
    let again = adapt_object(&adapted.bytes, &request).expect("a result is an input");
    assert!(again.bytes == adapted.bytes, "a second rewrite changes something");
    let proof = match hotswap_lint::compare_with_original(input, &adapted.bytes) {
        Ok(proof) => proof,
        Err(error) => return documented(&error),
    };
    // Where no family had work to do there is no certificate, and the rule about it repeats that another one found something.
    let has_sites = adapted.record.functions.iter().any(|function| !function.sites.is_empty());
    let rules = if has_sites { FOR_ANY_INPUT } else { &FOR_ANY_INPUT[..2] };
    // An input may contradict itself (metadata and descriptor); the rewrite keeps that.
    let of_input = hotswap_lint::compare_with_original(input, input).map(|proof| proof.findings).unwrap_or_default();
    let mut findings = proof.findings.iter().filter(|finding| rules.contains(&finding.rule.id));
    let finding = findings.find(|finding| !of_input.iter().any(|old| is_same_finding(old, finding)));
    assert!(finding.is_none(), "{finding:?}");
}

fn is_same_finding(old: &LintFinding, new: &LintFinding) -> bool {
    (old.rule.id, &old.reason) == (new.rule.id, &new.reason)
}

fn documented(error: &Diagnostic) {
    assert!(![codes::VERIFY_FAILED, codes::INTERNAL].contains(&error.code), "{error}");
    let line = error.to_string();
    assert!(!line.chars().any(char::is_control), "more than a line: {line}");
}
