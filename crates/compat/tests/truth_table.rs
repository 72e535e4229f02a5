//! Verdicts and routes against what is written down here.

use hotswap_compat::{Rejection, Selection, Verdict, derive_target_id, route, verdict};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{PROCESSORS, Processor, TargetId, find};

const GROUPS: &[&[&str]] = &[
    &["gfx900", "gfx902", "gfx909", "gfx90c"],
    &["gfx1010", "gfx1013"],
    &["gfx1011", "gfx1012"],
    &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"],
    &["gfx1150", "gfx1152", "gfx1153"],
    &["gfx1200", "gfx1201"],
];

fn processor(name: &str) -> &'static Processor {
    find(name).unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn exactly_the_pairs_inside_the_groups_are_identical() {
    let mut identical = 0;
    for source in PROCESSORS {
        for target in PROCESSORS.iter().filter(|target| target.name != source.name) {
            let together = |group: &&[&str]| group.contains(&source.name) && group.contains(&target.name);
            let expected = GROUPS.iter().any(together);
            assert_eq!(verdict(source, target).is_identical(), expected, "{source}=>{target}");
            identical += usize::from(expected);
        }
    }
    assert_eq!(identical, 12 + 2 + 2 + 42 + 6 + 2);
}

#[test]
fn refusals_name_the_reason() {
    for (source, target, part) in [
        ("gfx900", "gfx904", "v_mad_mix_*"),
        ("gfx900", "gfx906", "SRAMECC"),
        ("gfx906", "gfx900", "v_fmac_f32"),
        ("gfx90a", "gfx942", "sc0/sc1/nt"),
        ("gfx942", "gfx950", "longer waits"),
        ("gfx908", "gfx90a", "even-aligned"),
        ("gfx1010", "gfx1030", "v_mac_f32"),
        ("gfx1011", "gfx1010", "v_dot*"),
        ("gfx1030", "gfx1010", "scratch encodings"),
        ("gfx1100", "gfx1103", "1024 vector registers"),
        ("gfx1101", "gfx1100", "16 initialised SGPRs"),
        ("gfx1102", "gfx1100", "only identical ones"),
        ("gfx1100", "gfx1150", "point sampling"),
        ("gfx1150", "gfx1100", "58 scalar"),
        ("gfx1151", "gfx1150", "1024 vector registers"),
        ("gfx1154", "gfx1150", "nobody has shown"),
        ("gfx1030", "gfx1100", "GFX10.3 (RDNA 2) and GFX11 (RDNA 3) encode"),
        ("gfx803", "gfx900", "GFX8 and GFX9 (Vega) encode"),
        ("gfx1250", "gfx1250-strict", "first stepping"),
        ("gfx942", "gfx940", "gfx940 was withdrawn"),
        ("gfx10-3-generic", "gfx1031", "as it is"),
        ("gfx10-3-generic", "gfx1100", "covers gfx1030, "),
        ("gfx1030", "gfx10-3-generic", "--offload-arch=gfx10-3-generic"),
        ("gfx9-generic", "gfx9-4-generic", "--offload-arch=gfx9-4-generic"),
    ] {
        let Verdict::Refused { why } = verdict(processor(source), processor(target)) else {
            panic!("{source}=>{target} is allowed");
        };
        assert!(why.contains(part), "{source}=>{target}: {why}");
    }
}

/// What is expected of a route.
enum Expected {
    Native,
    Generic(&'static str),
    Alias(&'static str),
    Refused(&'static hotswap_report::Code, &'static str),
}
use Expected::{Alias, Generic, Native, Refused};

fn ids(text: &str) -> Vec<TargetId> {
    text.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

fn pairs(text: &str) -> Vec<(&str, &str)> {
    text.split_whitespace().map(|pair| pair.split_once("=>").unwrap()).collect()
}

/// Request, what is there, the plan's pairs, the route.
#[test]
fn the_truth_table_of_routes() {
    #[rustfmt::skip]
    let table: &[(&str, &str, &str, Expected)] = &[
        // A native code object wins over everything, whatever it states.
        ("gfx1031", "gfx1031", "", Native),
        ("gfx1031", "gfx1030 gfx1031", "gfx1030=>gfx1031", Native),
        ("gfx1031", "gfx10-3-generic gfx1030 gfx1031", "gfx1030=>gfx1031", Native),
        ("gfx902", "gfx900 gfx902:xnack+", "gfx900=>gfx902", Native),
        // Then a generic target that covers it.
        ("gfx1031", "gfx10-3-generic", "", Generic("gfx10-3-generic")),
        ("gfx1031", "gfx1030 gfx10-3-generic", "gfx1030=>gfx1031", Generic("gfx10-3-generic")),
        ("gfx902", "gfx9-generic:xnack+ gfx900", "gfx900=>gfx902", Generic("gfx9-generic")),
        ("gfx1031", "gfx11-generic gfx1030", "gfx1030=>gfx1031", Alias("gfx1030")),
        ("gfx908", "gfx9-generic", "gfx900=>gfx908", Refused(codes::PAIR_REFUSED, "SRAMECC")),
        // Then the first pair of the plan whose source is there and allowed.
        ("gfx1031", "gfx1030", "gfx1030=>gfx1031", Alias("gfx1030")),
        ("gfx902", "gfx900:xnack+ gfx900:xnack-", "gfx900=>gfx902", Alias("gfx900")),
        ("gfx1031", "gfx1032 gfx1030", "gfx1030=>gfx1031 gfx1032=>gfx1031", Alias("gfx1030")),
        ("gfx1031", "gfx1032 gfx1030", "gfx1032=>gfx1031 gfx1030=>gfx1031", Alias("gfx1032")),
        ("gfx1031", "gfx1032", "gfx1030=>gfx1031 gfx1032=>gfx1031", Alias("gfx1032")),
        ("gfx1031", "gfx900 gfx1030", "gfx900=>gfx1031 gfx1030=>gfx1031", Alias("gfx1030")),
        // Otherwise a refusal with all that was considered.
        ("gfx1031", "gfx1030", "", Refused(codes::NO_ROUTE, "gfx1030 is there, but the plan has no gfx1030=>gfx1031")),
        ("gfx1031", "gfx1030", "gfx1032=>gfx1031", Refused(codes::NO_ROUTE, "no code object for gfx1032; gfx1030 is there")),
        ("gfx1031", "", "gfx1030=>gfx1031", Refused(codes::NO_ROUTE, "from nothing: gfx1030=>gfx1031: there is no code object")),
        ("gfx1031", "gfx900:xnack+", "gfx1030=>gfx1031", Refused(codes::NO_ROUTE, "cannot be made from gfx900:xnack+: ")),
        ("gfx1031", "gfx1100", "gfx1100=>gfx1031 gfx1030=>gfx1031", Refused(codes::NO_ROUTE, "encode instructions differently; gfx1030=>gfx1031")),
        ("gfx1103", "gfx1100", "gfx1100=>gfx1103", Refused(codes::PAIR_REFUSED, "1024 vector registers")),
        ("gfx1031", "gfx1030", "gfx1030=>gfx1032", Refused(codes::NO_ROUTE, "the plan has no pair for gfx1031; gfx1030 is there")),
        ("gfx9999", "gfx1030", "gfx1030=>gfx9999", Refused(codes::UNKNOWN_TARGET, "`gfx9999` is no known")),
        ("gfx1031", "gfx1030", "gfx9999=>gfx1031", Refused(codes::UNKNOWN_TARGET, "`gfx9999` is no known")),
        ("gfx940", "gfx942", "gfx942=>gfx940", Refused(codes::PAIR_REFUSED, "withdrawn")),
    ];
    for (request, present, plan, expected) in table {
        let found = route(request, &ids(present), pairs(plan));
        match (expected, found) {
            (Native, Ok(Selection::Native)) => {}
            (Generic(name), Ok(Selection::Generic { generic })) if generic.name == *name => {}
            (Alias(name), Ok(Selection::Alias { source })) if source.name == *name => {}
            (Refused(code, part), Err(refusal)) => {
                let error = Diagnostic::from(refusal);
                assert_eq!(error.code, *code, "{request}: {}", error.what);
                assert!(error.what.contains(part), "{request}: {}", error.what);
            }
            (_, found) => panic!("{request} from {present} by {plan}: {found:?}"),
        }
    }
}

#[test]
fn a_missing_source_is_advised_by_name() {
    let refusal = route("gfx1031", &ids("gfx1100"), pairs("gfx1030=>gfx1031")).unwrap_err();
    assert_eq!(refusal.rejected, [Rejection::Absent("gfx1030".into())]);
    assert!(Diagnostic::from(refusal).advice.unwrap().contains("--offload-arch=gfx1030"));
}

#[test]
fn features_are_carried_over() {
    let derived = |source: &str, request| derive_target_id(&source.parse().unwrap(), request);
    assert_eq!(derived("gfx900:xnack+", "gfx902").unwrap().to_string(), "gfx902:xnack+");
    assert_eq!(derived("gfx1010:xnack-", "gfx1013").unwrap().to_string(), "gfx1013:xnack-");
    assert_eq!(derived("gfx1030", "gfx1031").unwrap().to_string(), "gfx1031");
    assert_eq!(derived("gfx900:xnack+", "gfx1030").unwrap_err().code, codes::PAIR_REFUSED);
    assert_eq!(derived("gfx900", "gfx9x").unwrap_err().code, codes::UNKNOWN_TARGET);
}
