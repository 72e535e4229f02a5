//! Targets by name: the sources that serve, several entries that would become one, entries that generic targets
//! supersede.

use hotswap_bundle::{Bundle, parse};
use hotswap_compat::RoutePermissions;
use hotswap_compat::names::HostPart;
use hotswap_pipeline::{RetargetRequest, TargetOutcome, TargetResult, expand_bundle};
use hotswap_plan::{Plan, TextFindings};
use hotswap_report::{Diagnostic, Record, codes};
use hotswap_samples::code_object::Sample;
use hotswap_targets::{EFlags, TargetId, find_processor};

fn id(target: &str) -> String {
    format!("hipv4-amdgcn-amd-amdhsa--{target}")
}

fn bundle(targets: &[&str]) -> Vec<u8> {
    let mut bundle = Bundle::default();
    bundle.push("host-x86_64-unknown-linux-gnu-", Vec::new()).unwrap();
    for target in targets {
        let parsed: TargetId = target.parse().unwrap();
        let lanes = if target.starts_with("gfx9") { 64 } else { 32 };
        let flags = EFlags::of(&parsed).encode();
        let target_text = format!("amdgcn-amd-amdhsa--{target}");
        let sample = Sample { target: target_text, flags, lanes, apart: true, ..Sample::default() };
        bundle.push(id(target), sample.build()).unwrap();
    }
    bundle.to_bytes().unwrap().into_owned()
}

fn request(targets: &[&str]) -> RetargetRequest {
    let targets = targets.iter().map(|target| find_processor(target).unwrap()).collect();
    RetargetRequest { targets, allow: RoutePermissions { experimental: true }, ..RetargetRequest::default() }
}

#[derive(Debug)]
struct Done {
    bytes: Option<Vec<u8>>,
    outcomes: Vec<TargetOutcome>,
}

fn retarget(bytes: &[u8], request: &RetargetRequest) -> Result<Done, Diagnostic> {
    let done = hotswap_pipeline::retarget(bytes, request, &HostPart::default())?;
    Ok(Done { bytes: done.draft.map(|draft| draft.to_vec()), outcomes: done.outcomes })
}

/// Targets in the bundle, and each made one with the entry that it was made from.
fn show(bytes: &[u8]) -> String {
    let (bundle, _) = parse(bytes).unwrap();
    let record = Record::from_json(bundle.record().unwrap()).unwrap();
    let targets = bundle.entries().iter().filter_map(|entry| entry.id.split_once("--").map(|(_, target)| target));
    let targets = targets.map(|target| {
        let row = record.entries.iter().find(|row| row.id == id(target));
        row.and_then(|row| row.source.as_ref()).map_or(target.to_owned(), |source| format!("{target}<{source}"))
    });
    targets.collect::<Vec<_>>().join(" ")
}

/// A target without a feature has one entry, whatever settings of the feature its source has.
#[test]
fn settings_that_the_target_lacks_become_one_entry() {
    for (present, target, expected) in [
        ("gfx1010:xnack+ gfx1010:xnack-", "gfx1030", "gfx1030<gfx1010:xnack-"),
        ("gfx1010:xnack- gfx1010:xnack+", "gfx1030", "gfx1030<gfx1010:xnack-"),
        ("gfx1010:xnack+ gfx1010:xnack-", "gfx10-3-generic", "gfx10-3-generic<gfx1010:xnack-"),
        (
            "gfx908:sramecc+:xnack+ gfx908:sramecc+:xnack- gfx908:sramecc-:xnack+ gfx908:sramecc-:xnack-",
            "gfx900",
            "gfx900:xnack+<gfx908:sramecc-:xnack+ gfx900:xnack-<gfx908:sramecc-:xnack-",
        ),
        ("gfx906:sramecc+ gfx906:sramecc-", "gfx902", "gfx902<gfx906:sramecc-"),
        // Features that the target has stay apart.
        ("gfx900:xnack+ gfx900:xnack-", "gfx902", "gfx902:xnack+<gfx900:xnack+ gfx902:xnack-<gfx900:xnack-"),
    ] {
        let sources: Vec<&str> = present.split(' ').collect();
        let input = bundle(&sources);
        let done = retarget(&input, &request(&[target])).unwrap();
        assert!(
            matches!(done.outcomes[..], [TargetOutcome { result: TargetResult::Made { .. }, .. }]),
            "{present}: {:?}",
            done.outcomes
        );
        let bytes = done.bytes.unwrap();
        let shown = show(&bytes);
        assert_eq!(shown, format!("{present} {expected}"));
        assert!(retarget(&bytes, &request(&[target])).unwrap().bytes.is_none(), "{present}: a second run");
        // A plan makes the same.
        let mut plan = Plan { experimental: true, ..Plan::default() };
        plan.add_pairs(&format!("{}=>{target}", sources[0].split(':').next().unwrap())).unwrap();
        assert_eq!(show(&expand_bundle(&input, &plan, &TextFindings::default(), None).unwrap().bytes.unwrap()), shown);
    }
}

/// Code that was compiled with a feature on that the target lacks has no label there.
#[test]
fn a_setting_that_is_on_and_absent_is_refused_by_name() {
    for (present, target) in [("gfx1010:xnack+", "gfx1030"), ("gfx906:sramecc+", "gfx900")] {
        let done = retarget(&bundle(&[present]), &request(&[target])).unwrap();
        let [TargetOutcome { result: TargetResult::Refused { reasons, .. }, .. }] = &done.outcomes[..] else {
            panic!("{present}: {:?}", done.outcomes)
        };
        assert_eq!((reasons.len(), reasons[0].code), (1, codes::PAIR_REFUSED));
        assert_eq!(reasons[0].place.entry, Some(id(present)));
        assert!(reasons[0].what.contains(present), "{}", reasons[0].what);
    }
}

/// A source that its checks reject does not prevent the use of another one, with a plan and without.
#[test]
fn the_next_source_serves_where_the_first_is_refused() {
    let expansion = |present: &[&str], pairs: &[&str], findings: &TextFindings| {
        let mut plan = Plan { experimental: true, ..Plan::default() };
        pairs.iter().for_each(|pair| plan.add_pairs(pair).unwrap());
        expand_bundle(&bundle(present), &plan, findings, None)
    };
    let (nothing, present) = (TextFindings::default(), ["gfx1010:xnack+", "gfx1011"]);
    let both = ["gfx1010=>gfx1030", "gfx1011=>gfx1030"];
    let expected = "gfx1010:xnack+ gfx1011 gfx1030<gfx1011";
    assert_eq!(show(&expansion(&present, &both, &nothing).unwrap().bytes.unwrap()), expected);
    assert_eq!(show(&retarget(&bundle(&present), &request(&["gfx1030"])).unwrap().bytes.unwrap()), expected);
    // Where none will do, each gives its reason, the first in front.
    let error = expansion(&["gfx1010:xnack+", "gfx1011:xnack+"], &both, &nothing).unwrap_err();
    assert_eq!((error.code, error.place.entry), (codes::PAIR_REFUSED, Some(id("gfx1010:xnack+"))));
    assert!(error.what.contains("and 1 more"), "{}", error.what);
    // The plan has no pair for the source that would do, or the text of one source alone is known.
    assert_eq!(expansion(&present, &both[..1], &nothing).unwrap_err().code, codes::PAIR_REFUSED);
    let asked = TextFindings::parse("gfx1030 same gfx1010\n").unwrap();
    assert_eq!(expansion(&present, &both, &asked).unwrap_err().code, codes::PAIR_REFUSED);
}

/// Two entries that would have one ID for another reason stay an error.
#[test]
fn a_foreign_entry_in_the_way_is_damage() {
    let mut bundle = Bundle::default();
    bundle.push(id("gfx1030"), b"no code object".to_vec()).unwrap();
    let sample = Sample { target: "amdgcn-amd-amdhsa--gfx1031".into(), flags: 0x37, lanes: 32, ..Sample::default() };
    bundle.push(id("gfx1031"), sample.build()).unwrap();
    let error = retarget(&bundle.to_bytes().unwrap(), &request(&["gfx1030"])).unwrap_err();
    assert_eq!(error.code, codes::MALFORMED);
}

#[test]
fn what_a_generic_target_covers_goes_on_request_only() {
    let lean = |targets: &[&str]| RetargetRequest { drop_covered: true, ..request(targets) };
    for (present, wish, expected) in [
        ("gfx1030 gfx1100", request(&["gfx10-3-generic"]), "gfx1030 gfx1100 gfx10-3-generic<gfx1030"),
        ("gfx1030 gfx1031 gfx1100", lean(&["gfx10-3-generic"]), "gfx1100 gfx10-3-generic<gfx1030"),
        // A requested target stays, and so does one that nothing covers.
        ("gfx1030 gfx908", lean(&["gfx1030", "gfx10-3-generic"]), "gfx1030 gfx908 gfx10-3-generic<gfx1030"),
        // A generic target that was compiled covers, too.
        ("gfx1030 gfx10-3-generic", lean(&["gfx1031"]), "gfx10-3-generic"),
        // Other settings than those of the generic entry are not covered.
        ("gfx900:xnack- gfx902:xnack+", lean(&["gfx9-generic"]), "gfx902:xnack+ gfx9-generic:xnack-<gfx900:xnack-"),
        // A generic target that could not be made covers nothing.
        ("gfx1030 gfx1100", lean(&["gfx12-generic"]), "gfx1030 gfx1100"),
    ] {
        let input = bundle(&present.split(' ').collect::<Vec<_>>());
        let done = retarget(&input, &wish).unwrap();
        let Some(bytes) = done.bytes else {
            assert_eq!(present, expected);
            continue;
        };
        assert_eq!(show(&bytes), expected, "{present}");
    }
}
