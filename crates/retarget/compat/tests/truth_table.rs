//! Verdicts and routes against the table in this file.

use hotswap_compat::{
    AllowedSiblings, AvailableObject, Rejection, RoutePermissions, RouteRefusal, Selection, Verdict, choose_route,
    derive_target_id, pair_verdict,
};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{PROCESSORS, Processor, TargetId, find_processor};

/// Groups that were measured. Others of the table's column are measured by `golden`.
const GROUPS: &[&[&str]] = &[
    &["gfx900", "gfx902", "gfx909", "gfx90c"],
    &["gfx1010", "gfx1013"],
    &["gfx1011", "gfx1012"],
    &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"],
    &["gfx1150", "gfx1152", "gfx1153"],
    &["gfx1200", "gfx1201"],
];

fn processor(name: &str) -> &'static Processor {
    find_processor(name).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn exactly_the_pairs_inside_the_groups_are_identical() {
    let mut identical = 0;
    for source in PROCESSORS {
        for target in PROCESSORS.iter().filter(|target| target.name != source.name) {
            let is_identical = pair_verdict(source, target).is_identical();
            let together = |group: &&[&str]| group.contains(&source.name) && group.contains(&target.name);
            if GROUPS.iter().any(together) {
                assert!(is_identical, "{source}=>{target}");
                identical += 1;
            }
            let is_sibling = source.group.is_some() && source.group == target.group;
            assert_eq!(is_identical, is_sibling, "{source}=>{target}: groups {:?}, {:?}", source.group, target.group);
        }
    }
    assert_eq!(identical, 12 + 2 + 2 + 42 + 6 + 2);
}

#[test]
fn refusals_name_the_reason() {
    for (source, target, part) in [
        ("gfx90a", "gfx942", "sc0/sc1/nt"),
        ("gfx908", "gfx90a", "even-aligned"),
        ("gfx1030", "gfx1010", "scratch encodings"),
        ("gfx1030", "gfx10-1-generic", "scratch encodings"),
        ("gfx1251", "gfx1250", "s_setreg"),
        ("gfx1030", "gfx1100", "GFX10.3 (RDNA 2) and GFX11 (RDNA 3) encode"),
        ("gfx1030", "gfx11-generic", "GFX10.3 (RDNA 2) and GFX11 (RDNA 3) encode"),
        ("gfx803", "gfx900", "GFX8 and GFX9 (Vega) encode"),
        ("gfx802", "gfx803", "have not been compared"),
        ("gfx1251", "gfx1250-strict", "first stepping"),
        ("gfx942", "gfx940", "gfx940 was withdrawn"),
        ("gfx10-3-generic", "gfx1031", "as it is"),
        ("gfx10-3-generic", "gfx1100", "covers gfx1030, "),
        ("gfx9-generic", "gfx9-4-generic", "covers gfx900, "),
    ] {
        let Verdict::Refused { why } = pair_verdict(processor(source), processor(target)) else {
            panic!("{source}=>{target} is allowed");
        };
        assert!(why.contains(part), "{source}=>{target}: {why}");
        assert!(why.contains(source) && why.contains(target), "{why}");
    }
}

#[test]
fn conditional_pairs_name_their_checks() {
    for (source, target, checks) in [
        ("gfx900", "gfx904", "same-instructions"),
        ("gfx904", "gfx900", "same-instructions"),
        ("gfx900", "gfx906", "features same-instructions d16-loads"),
        ("gfx906", "gfx900", "features same-instructions"),
        ("gfx942", "gfx950", "same-instructions matrix-waits"),
        ("gfx1010", "gfx1030", "features vgpr-fit same-instructions"),
        ("gfx1011", "gfx1010", "same-instructions"),
        ("gfx1100", "gfx1103", "vgpr-fit same-instructions"),
        ("gfx1101", "gfx1100", "user-sgprs-16 same-instructions"),
        ("gfx1102", "gfx1100", "same-instructions"),
        ("gfx1100", "gfx1150", "vgpr-fit same-instructions image-sampling exports"),
        ("gfx1151", "gfx1150", "vgpr-fit same-instructions"),
        ("gfx1150", "gfx1100", "user-sgprs-16 same-instructions hazards"),
        ("gfx950", "gfx942", "lds same-instructions hazards"),
        ("gfx900", "gfx9-generic", "code-object-version same-instructions d16-loads"),
        ("gfx1030", "gfx10-3-generic", "code-object-version same-instructions"),
        ("gfx1102", "gfx11-generic", "code-object-version same-instructions image-sampling exports"),
        ("gfx1100", "gfx11-generic", "code-object-version vgpr-fit same-instructions image-sampling exports"),
    ] {
        let Verdict::Conditional { checks: found } = pair_verdict(processor(source), processor(target)) else {
            panic!("{source}=>{target} is not conditional");
        };
        let names: Vec<&str> = found.iter().map(|check| check.name()).collect();
        assert_eq!(names.join(" "), checks, "{source}=>{target}");
    }
}

/// The expected route.
enum Expected {
    Native,
    Generic(&'static str),
    Relabelled(&'static str),
    Recompiled(&'static str),
    Rewrite(&'static str),
    Refused(&'static hotswap_report::DiagnosticCode, &'static str),
}
use Expected::{Generic, Native, Recompiled, Refused, Relabelled, Rewrite};

/// `gfx1250@gfx1250-strict` is code for gfx1250 whose bitcode the link has compiled for gfx1250-strict, too.
fn available(text: &str) -> Vec<AvailableObject> {
    let one = |text: &str| match text.split_once('@') {
        Some((id, other)) => AvailableObject { target: id.parse().unwrap(), recompiled: Some(processor(other)) },
        None => AvailableObject::from(text.parse::<TargetId>().unwrap()),
    };
    text.split_whitespace().map(one).collect()
}

fn pairs(text: &str) -> Vec<(&str, &str)> {
    text.split_whitespace().map(|pair| pair.split_once("=>").unwrap()).collect()
}

/// The route by a plan in the table's notation: its pairs; `best` for no plan; a leading `+` allows experimental pairs,
/// and a leading `only` is for the pairs of a finished file.
fn routed(request: &str, present: &str, plan: &str) -> Result<Selection, RouteRefusal> {
    let experimental = plan.starts_with('+');
    let is_finished = plan.starts_with("only ");
    let pairs = pairs(plan.trim_start_matches('+').trim_start_matches("best").trim_start_matches("only "));
    let wish = match () {
        () if plan.ends_with("best") => AllowedSiblings::Best,
        () if is_finished => AllowedSiblings::Only(&pairs),
        () => AllowedSiblings::Plan(&pairs),
    };
    choose_route(request, &available(present), wish, RoutePermissions { experimental })
}

/// Request, available code objects, plan, route.
#[test]
fn the_truth_table_of_routes() {
    #[rustfmt::skip]
    let table: &[(&str, &str, &str, Expected)] = &[
        // A native code object wins over everything, whatever it states.
        ("gfx1031", "gfx1031", "", Native),
        ("gfx1031", "gfx1030 gfx1031", "gfx1030=>gfx1031", Native),
        ("gfx1031", "gfx10-3-generic gfx1030 gfx1031", "gfx1030=>gfx1031", Native),
        ("gfx902", "gfx900 gfx902:xnack+", "gfx900=>gfx902", Native),
        ("gfx942", "gfx942 gfx1250", "best", Native),
        ("gfx942", "gfx1250 gfx942", "+best", Native),
        ("gfx1250", "gfx942 gfx1250", "+best", Native),
        ("gfx1031", "gfx1030 gfx10-3-generic gfx1031", "+best", Native),
        ("gfx11-generic", "gfx1102 gfx11-generic", "best", Native),
        // Then, in a finished file, a generic target that covers it.
        ("gfx1031", "gfx10-3-generic", "", Generic("gfx10-3-generic")),
        ("gfx1031", "gfx1030 gfx10-3-generic", "only gfx1030=>gfx1031", Generic("gfx10-3-generic")),
        ("gfx902", "gfx9-generic:xnack+ gfx900", "only gfx900=>gfx902", Generic("gfx9-generic")),
        ("gfx1031", "gfx1030 gfx10-3-generic", "best", Generic("gfx10-3-generic")),
        // In a link its pairs come first: the target has a code object of its own, as clang would make it.
        ("gfx1031", "gfx1030 gfx10-3-generic", "gfx1030=>gfx1031", Relabelled("gfx1030")),
        ("gfx902", "gfx9-generic:xnack+ gfx900", "gfx900=>gfx902", Relabelled("gfx900")),
        ("gfx1031", "gfx10-3-generic gfx1032", "gfx1030=>gfx1031", Generic("gfx10-3-generic")),
        ("gfx1150", "gfx11-generic gfx1100", "gfx1100=>gfx1150", Generic("gfx11-generic")),
        ("gfx1031", "gfx11-generic gfx1030", "gfx1030=>gfx1031", Relabelled("gfx1030")),
        ("gfx1103", "gfx1100 gfx11-generic", "+best", Generic("gfx11-generic")),
        ("gfx908", "gfx9-generic", "gfx900=>gfx908", Refused(codes::NO_ROUTE, "gfx900=>gfx908: there is no code object for gfx900; code for gfx9-generic cannot serve gfx908")),
        // Then the first pair of the plan whose source is present and allowed.
        ("gfx1031", "gfx1030", "gfx1030=>gfx1031", Relabelled("gfx1030")),
        ("gfx902", "gfx900:xnack+ gfx900:xnack-", "gfx900=>gfx902", Relabelled("gfx900")),
        ("gfx1031", "gfx1032 gfx1030", "gfx1030=>gfx1031 gfx1032=>gfx1031", Relabelled("gfx1030")),
        ("gfx1031", "gfx1032 gfx1030", "gfx1032=>gfx1031 gfx1030=>gfx1031", Relabelled("gfx1032")),
        ("gfx1031", "gfx1032", "gfx1030=>gfx1031 gfx1032=>gfx1031", Relabelled("gfx1032")),
        ("gfx1031", "gfx900 gfx1030", "gfx900=>gfx1031 gfx1030=>gfx1031", Relabelled("gfx1030")),
        ("gfx11-generic", "gfx1102", "gfx1102=>gfx11-generic", Relabelled("gfx1102")),
        ("gfx1103", "gfx1102", "+gfx1102=>gfx1103", Relabelled("gfx1102")),
        ("gfx1103", "gfx1100 gfx1102", "+gfx1100=>gfx1103 gfx1102=>gfx1103", Relabelled("gfx1100")),
        // A validated pair of the plan before an experimental one.
        ("gfx1150", "gfx1100 gfx1151", "+gfx1100=>gfx1150 gfx1151=>gfx1150", Relabelled("gfx1151")),
        ("gfx1150", "gfx1100", "+gfx1100=>gfx1150 gfx1151=>gfx1150", Relabelled("gfx1100")),
        // Without a plan the best of the product's table: identical before generic before experimental.
        ("gfx1031", "gfx1032 gfx1030", "best", Relabelled("gfx1030")),
        ("gfx1031", "gfx1032 gfx1100", "best", Relabelled("gfx1032")),
        ("gfx11-generic", "gfx1100 gfx1102", "best", Relabelled("gfx1102")),
        ("gfx11-generic", "gfx1100 gfx1103", "+best", Relabelled("gfx1100")),
        ("gfx11-generic", "gfx1101 gfx1103", "+best", Relabelled("gfx1103")),
        ("gfx1103", "gfx1100 gfx1101 gfx1102", "best", Relabelled("gfx1102")),
        ("gfx1103", "gfx1100 gfx1101", "best", Relabelled("gfx1101")),
        ("gfx10-3-generic", "gfx1010 gfx1032", "+best", Relabelled("gfx1032")),
        ("gfx9-generic", "gfx906 gfx90c", "+best", Relabelled("gfx90c")),
        ("gfx1152", "gfx1100 gfx1102 gfx1151 gfx1153", "+best", Relabelled("gfx1153")),
        ("gfx1152", "gfx1100 gfx1102 gfx1151", "+best", Relabelled("gfx1151")),
        ("gfx1152", "gfx1100 gfx1102", "+best", Relabelled("gfx1102")),
        ("gfx908", "gfx904 gfx906", "+best", Relabelled("gfx904")),
        // Where code must change: compiled again if the link has done so for every source, else rewritten.
        ("gfx1250-strict", "gfx1250 gfx1250-strict", "gfx1250=>gfx1250-strict", Native),
        ("gfx1250-strict", "gfx1250@gfx1250-strict gfx1250-strict", "best", Native),
        ("gfx1250-strict", "gfx1250@gfx1250-strict", "gfx1250=>gfx1250-strict", Recompiled("gfx1250")),
        ("gfx1250-strict", "gfx1250:xnack+@gfx1250-strict gfx1250:xnack-@gfx1250-strict", "best", Recompiled("gfx1250")),
        ("gfx1250-strict", "gfx1250:xnack+@gfx1250-strict gfx1250:xnack-", "best", Rewrite("gfx1250")),
        ("gfx1250-strict", "gfx1250@gfx1251", "best", Rewrite("gfx1250")),
        ("gfx1250-strict", "gfx1250", "gfx1250=>gfx1250-strict", Rewrite("gfx1250")),
        ("gfx1250-strict", "gfx12-5-generic gfx1250", "best", Rewrite("gfx1250")),
        ("gfx1250-strict", "gfx1251 gfx12-5-generic", "+best", Refused(codes::NO_ROUTE, "it is made from gfx1250; code for gfx1251 cannot serve gfx1250-strict: ")),
        ("gfx1250", "gfx1250-strict", "+best", Refused(codes::NO_ROUTE, "the two steppings have not been compared")),
        // Otherwise a refusal with everything that was considered.
        ("gfx1031", "gfx1030", "", Refused(codes::NO_ROUTE, "gfx1030 is there, but the plan has no gfx1030=>gfx1031")),
        ("gfx1031", "gfx1030", "gfx1032=>gfx1031", Refused(codes::NO_ROUTE, "no code object for gfx1032; gfx1030 is there")),
        ("gfx1031", "", "gfx1030=>gfx1031", Refused(codes::NO_ROUTE, "from nothing: gfx1030=>gfx1031: there is no code object")),
        ("gfx1031", "gfx900:xnack+", "gfx1030=>gfx1031", Refused(codes::NO_ROUTE, "cannot be made from gfx900:xnack+: ")),
        ("gfx1031", "gfx1100", "gfx1100=>gfx1031 gfx1030=>gfx1031", Refused(codes::NO_ROUTE, "encode instructions differently; gfx1030=>gfx1031")),
        ("gfx1150", "gfx1100", "gfx1100=>gfx1150", Refused(codes::PAIR_REFUSED, "gfx1100=>gfx1150 is experimental")),
        ("gfx1010", "gfx1030", "+gfx1030=>gfx1010", Refused(codes::PAIR_REFUSED, "scratch encodings")),
        ("gfx1100", "gfx1150 gfx1103", "+best", Relabelled("gfx1103")),
        ("gfx1100", "gfx1150", "+best", Relabelled("gfx1150")),
        ("gfx1031", "gfx1030", "gfx1030=>gfx1032", Refused(codes::NO_ROUTE, "the plan has no pair for gfx1031; gfx1030 is there")),
        ("gfx9999", "gfx1030", "gfx1030=>gfx9999", Refused(codes::UNKNOWN_TARGET, "`gfx9999` is no known")),
        ("gfx1031", "gfx1030", "gfx9999=>gfx1031", Refused(codes::UNKNOWN_TARGET, "`gfx9999` is no known")),
        ("gfx940", "gfx942", "gfx942=>gfx940", Refused(codes::PAIR_REFUSED, "withdrawn")),
        ("gfx9999", "gfx1030", "best", Refused(codes::UNKNOWN_TARGET, "`gfx9999` is no known")),
        ("gfx1031", "", "best", Refused(codes::NO_ROUTE, "gfx1031 cannot be made from nothing: it is made from gfx1030, gfx1032, ")),
        ("gfx1031", "gfx900 gfx1100", "best", Refused(codes::NO_ROUTE, "RDNA 2) encode instructions differently; code for gfx1100 cannot serve gfx1031")),
        ("gfx1150", "gfx900 gfx1102", "best", Refused(codes::PAIR_REFUSED, "gfx1102=>gfx1150 is experimental, which was not allowed; code for gfx900")),
        ("gfx942", "gfx90a", "+best", Refused(codes::NO_ROUTE, "from gfx90a: it is made from gfx950; code for gfx90a cannot serve gfx942: v_mac_f32")),
        ("gfx90a", "gfx908", "+best", Refused(codes::NO_ROUTE, "from gfx908: no pair makes it; code for gfx908 cannot serve gfx90a: gfx90a needs even")),
    ];
    for (request, present, plan, expected) in table {
        match (expected, routed(request, present, plan)) {
            (Native, Ok(Selection::Native)) => {}
            (Generic(name), Ok(Selection::Generic { generic })) if generic.name == *name => {}
            (Relabelled(name), Ok(Selection::Relabelled { source })) if source.name == *name => {}
            (Recompiled(name), Ok(Selection::Recompiled { source })) if source.name == *name => {}
            (Rewrite(name), Ok(Selection::Rewrite { source })) if source.name == *name => {}
            (Refused(code, part), Err(refusal)) => {
                let error = Diagnostic::from(refusal);
                assert_eq!(error.code, *code, "{request}: {}", error.what);
                assert!(error.what.contains(part), "{request}: {}", error.what);
            }
            (_, found) => panic!("{request} from {present} by {plan}: {found:?}"),
        }
    }
}

/// Whatever else is present, a native is taken, and nothing is derived from a source for itself.
#[test]
fn a_native_is_never_replaced() {
    for target in PROCESSORS.iter().filter(|target| !target.withdrawn) {
        for other in PROCESSORS.iter().filter(|other| !other.withdrawn) {
            for plan in ["+best", "best", ""] {
                let present = format!("{other} {target}");
                assert_eq!(routed(target.name, &present, plan), Ok(Selection::Native), "{target} from {present}");
            }
        }
    }
}

#[test]
fn a_missing_source_is_advised_by_name() {
    let refusal = routed("gfx1031", "gfx1100", "gfx1030=>gfx1031").unwrap_err();
    assert_eq!(refusal.rejected[0], Rejection::Absent("gfx1030".into()));
    assert!(matches!(&refusal.rejected[1..], [Rejection::Unfit(_)]));
    assert!(Diagnostic::from(refusal).advice.unwrap().contains("--offload-arch=gfx1030"));
}

#[test]
fn an_experimental_pair_says_how_to_allow_it() {
    let error = Diagnostic::from(routed("gfx1150", "gfx1102", "best").unwrap_err());
    assert!(error.advice.unwrap().contains("--allow-experimental"));
}

#[test]
fn features_are_carried_over() {
    let derived = |source: &str, request| derive_target_id(&source.parse().unwrap(), request);
    assert_eq!(derived("gfx900:xnack+", "gfx902").unwrap().to_string(), "gfx902:xnack+");
    assert_eq!(derived("gfx1010:xnack-", "gfx1013").unwrap().to_string(), "gfx1013:xnack-");
    assert_eq!(derived("gfx1030", "gfx1031").unwrap().to_string(), "gfx1031");
    assert_eq!(derived("gfx906:sramecc+:xnack-", "gfx902").unwrap().to_string(), "gfx902:xnack-");
    assert_eq!(derived("gfx1010:xnack+", "gfx1030").unwrap().to_string(), "gfx1030");
    assert_eq!(derived("gfx900:xnack+", "gfx906").unwrap().to_string(), "gfx906:xnack+");
    assert_eq!(derived("gfx900:xnack-", "gfx9-generic").unwrap().to_string(), "gfx9-generic:xnack-");
    assert_eq!(derived("gfx900:xnack+", "gfx1030").unwrap_err().code, codes::PAIR_REFUSED);
    assert_eq!(derived("gfx900", "gfx9x").unwrap_err().code, codes::UNKNOWN_TARGET);
}
