//! Fat binaries in, fat binaries out: entries that are added, kept, refused.

use hotswap_bundle::{Bundle, BundleEntry, Compression, parse};
use hotswap_code_object::CodeObject;
use hotswap_pipeline::{Expansion, expand_bundle, find_missing};
use hotswap_plan::{Plan, TextFindings};
use hotswap_report::{DiagnosticCode, Record, Route, codes};
use hotswap_samples::code_object::Sample;

const HOST: &str = "host-x86_64-unknown-linux-gnu-";

fn id(target: &str) -> String {
    format!("hipv4-amdgcn-amd-amdhsa--{target}")
}

fn object(target: &str, flags: u32) -> Vec<u8> {
    let lanes = if target.starts_with("gfx9") { 64 } else { 32 };
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, lanes, ..Sample::default() }.build()
}

fn bundle(entries: &[(&str, u32)], compression: Option<Compression>) -> Vec<u8> {
    let mut bundle = Bundle::default();
    bundle.push(HOST, Vec::new()).unwrap();
    for (target, flags) in entries {
        bundle.push(id(target), object(target, *flags)).unwrap();
    }
    bundle.set_compression(compression);
    bundle.to_bytes().unwrap().into_owned()
}

fn plan(pairs: &str, policy: &str) -> Plan {
    let mut plan = Plan { policy: policy.parse().unwrap(), ..Plan::default() };
    plan.add_pairs(pairs).unwrap();
    plan
}

fn expanded(input: &[u8], plan: &Plan) -> Expansion {
    expand_bundle(input, plan, &TextFindings::default(), None).unwrap()
}

fn refused(input: &[u8], plan: &Plan) -> &'static DiagnosticCode {
    expand_bundle(input, plan, &TextFindings::default(), None).expect_err("it should be refused").code
}

fn ids(bytes: &[u8]) -> Vec<String> {
    parse(bytes).unwrap().0.entries().iter().map(|entry| entry.id.clone()).collect()
}

fn record(bytes: &[u8]) -> Record {
    Record::from_json(parse(bytes).unwrap().0.record().unwrap()).unwrap()
}

#[test]
fn targets_are_added_behind_what_is_there_and_recorded() {
    for compression in [None, Some(Compression::default())] {
        let input = bundle(&[("gfx1030", 0x36), ("gfx1100", 0x41)], compression);
        let out = expanded(&input, &plan("gfx1030=>gfx1036,gfx1031", "error"));
        let bytes = out.bytes.unwrap();
        assert_eq!(out.derived, [id("gfx1031"), id("gfx1036")]);
        assert_eq!(ids(&bytes), [HOST.into(), id("gfx1030"), id("gfx1100"), id("gfx1031"), id("gfx1036")]);
        let (again, _) = parse(&bytes).unwrap();
        assert_eq!(again.compression().is_some(), compression.is_some());
        assert_eq!(*again.entry(&id("gfx1030")).unwrap().data, *object("gfx1030", 0x36));
        assert_eq!(*again.entry(&id("gfx1031")).unwrap().data, *object("gfx1031", 0x37));
        let rows: Vec<_> = record(&bytes).entries.into_iter().map(|row| (row.target, row.route, row.source)).collect();
        let native = |target: &str| (target.to_owned(), Route::Native, None);
        let alias = |target: &str| (target.to_owned(), Route::Relabelled, Some("gfx1030".to_owned()));
        assert_eq!(rows, [native("gfx1030"), native("gfx1100"), alias("gfx1031"), alias("gfx1036")]);
    }
}

#[test]
fn a_second_run_changes_nothing_and_a_wider_plan_keeps_the_first_rows() {
    let first = plan("gfx1030=>gfx1031", "error");
    let bytes = expanded(&bundle(&[("gfx1030", 0x36)], None), &first).bytes.unwrap();
    let again = expanded(&bytes, &first);
    assert_eq!((again.bytes, again.kept), (None, Some("nothing to add")));
    let wider = expanded(&bytes, &plan("gfx1030=>gfx1031,gfx1032", "error")).bytes.unwrap();
    assert_eq!(record(&wider).entries[1], record(&bytes).entries[1]);
    assert_eq!(record(&wider).entries[2].target, "gfx1032");
}

#[test]
fn what_was_compiled_is_never_replaced() {
    // The compiled gfx1031 differs from the one that would be derived: it has one kernel only.
    let mut input = Bundle::default();
    let own =
        Sample { flags: 0x37, target: "amdgcn-amd-amdhsa--gfx1031".into(), kernels: vec!["own"], ..Sample::default() };
    input.push(id("gfx1031"), own.build()).unwrap();
    input.push(id("gfx1030"), object("gfx1030", 0x36)).unwrap();
    let input = input.to_bytes().unwrap().into_owned();
    let out = expanded(&input, &plan("gfx1030=>gfx1031,gfx1032", "error"));
    let bytes = out.bytes.unwrap();
    assert_eq!(out.derived, [id("gfx1032")]);
    assert_eq!(*parse(&bytes).unwrap().0.entry(&id("gfx1031")).unwrap().data, *own.build());
}

#[test]
fn a_generic_code_object_replaces_no_target_of_a_plan_whose_source_is_there() {
    let input = bundle(&[("gfx1030", 0x36), ("gfx10-3-generic", 0x0100_0053)], None);
    assert_eq!(expanded(&input, &plan("gfx1030=>gfx1031", "error")).derived, [id("gfx1031")]);
    assert_eq!(expanded(&input, &plan("gfx1032=>gfx1031", "error")).kept, Some("nothing to add"));
}

#[test]
fn stated_features_go_with_the_code() {
    let input = bundle(&[("gfx900:xnack+", 0x32c), ("gfx900:xnack-", 0x22c)], None);
    let out = expanded(&input, &plan("gfx900=>gfx902", "error"));
    assert_eq!(out.derived, [id("gfx902:xnack+"), id("gfx902:xnack-")]);
    let bytes = out.bytes.unwrap();
    let (bundle, _) = parse(&bytes).unwrap();
    let flags = |entry: &BundleEntry<'_>| CodeObject::parse(&entry.data).unwrap().e_flags();
    assert_eq!(bundle.entries()[3..].iter().map(flags).collect::<Vec<_>>(), [0x32d, 0x22d]);
}

#[test]
fn what_cannot_be_made_is_an_error_a_warning_or_a_line_in_the_record() {
    let input = bundle(&[("gfx1100", 0x41)], None);
    let pairs = "gfx1030=>gfx1031";
    assert_eq!(refused(&input, &plan(pairs, "error")), codes::NO_ROUTE);
    for (policy, warnings) in [("warn", 1), ("keep", 0)] {
        let plan = plan(pairs, policy);
        let out = expanded(&input, &plan);
        let bytes = out.bytes.unwrap();
        assert_eq!((out.warnings.len(), out.derived.len()), (warnings, 0));
        assert_eq!(ids(&bytes), ids(&input));
        assert!(record(&bytes).refused[0].contains("there is no code object for gfx1030"));
        assert_eq!(expanded(&bytes, &plan).bytes, None);
    }
}

#[test]
fn an_impossible_pair_follows_the_policy() {
    let input = bundle(&[("gfx900", 0x12c)], None);
    assert_eq!(refused(&input, &plan("gfx900=>gfx902,gfx906", "error")), codes::PAIR_REFUSED);
    for (policy, warnings) in [("warn", 1), ("keep", 0)] {
        let out = expanded(&input, &plan("gfx900=>gfx902,gfx906", policy));
        assert_eq!((out.derived, out.warnings.len()), (vec![id("gfx902")], warnings));
        assert!(record(&out.bytes.unwrap()).refused[0].contains("gfx900=>gfx906 is experimental"));
    }
}

#[test]
fn an_unknown_name_is_an_error_under_every_policy() {
    let input = bundle(&[("gfx900", 0x12c)], None);
    for policy in ["error", "warn", "keep"] {
        assert_eq!(refused(&input, &plan("gfx900=>gfx9999", policy)), codes::UNKNOWN_TARGET);
        let mut unknown = plan("gfx900=>gfx902", policy);
        unknown.add_patches("teleport").unwrap();
        assert_eq!(refused(&input, &unknown), codes::UNKNOWN_FAMILY);
    }
}

#[test]
fn what_holds_no_code_object_stays_as_it_is() {
    let mut bitcode = Bundle::default();
    bitcode.push(HOST, Vec::new()).unwrap();
    bitcode.push(id("gfx1030"), b"BC\xc0\xde....".to_vec()).unwrap();
    let bitcode = bitcode.to_bytes().unwrap().into_owned();
    for (input, why) in [(&bitcode[..], "no code object"), (b"\x7fELF", "not a bundle"), (b"", "not a bundle")] {
        let out = expanded(input, &plan("gfx1030=>gfx1031", "error"));
        assert_eq!((out.bytes, out.kept), (None, Some(why)));
    }
}

#[test]
fn contradictions_and_damage_are_errors_under_every_policy() {
    let keep = plan("gfx1030=>gfx1031", "keep");
    let mut liar = Bundle::default();
    liar.push(id("gfx1030"), object("gfx1100", 0x41)).unwrap();
    assert_eq!(refused(&liar.to_bytes().unwrap(), &keep), codes::MALFORMED);
    let good = bundle(&[("gfx1030", 0x36)], None);
    let twice = [&good[..], &vec![0; good.len().next_multiple_of(4096) - good.len()], &good].concat();
    assert_eq!(refused(&twice, &keep), codes::UNKNOWN_FORMAT);
    let mut torn = good.clone();
    let end = torn.len() - 100;
    torn.truncate(end);
    assert_eq!(refused(&torn, &keep), codes::MALFORMED);
}

/// Loaders would select either of two entries with one ID.
#[test]
fn an_entry_that_could_only_be_added_twice_is_damage() {
    let keep = plan("gfx1030=>gfx1031", "keep");
    let two = |other: &str, data: Vec<u8>| {
        let mut bundle = Bundle::default();
        bundle.push(id("gfx1030"), object("gfx1030", 0x36)).unwrap();
        bundle.push(id(other), data).unwrap();
        bundle.to_bytes().unwrap().into_owned()
    };
    assert_eq!(refused(&two("gfx1031", Vec::new()), &keep), codes::MALFORMED);
    let mut twins = two("gfx103x", object("gfx1030", 0x36));
    let at = twins.windows(7).position(|window| window == b"gfx103x").unwrap();
    twins[at + 6] = b'0';
    assert_eq!(refused(&twins, &keep), codes::MALFORMED);
}

#[test]
fn too_many_targets_for_the_runtimes_table_are_refused() {
    // The table of 68 entries ends below 4096 bytes, that of 72 would not.
    let mut full = Bundle::default();
    full.push(HOST, Vec::new()).unwrap();
    full.push(id("gfx1030"), object("gfx1030", 0x36)).unwrap();
    for number in 0..66 {
        full.push(format!("hipv4-amdgcn-amd-amdhsa--filler{number:03}"), vec![1]).unwrap();
    }
    let full = full.to_bytes().unwrap().into_owned();
    assert_eq!(refused(&full, &plan("gfx1030=>gfx1031,gfx1032,gfx1033,gfx1034", "keep")), codes::BUNDLE_FULL);
}

/// A device link without inputs, as lld 22 writes it for `-m elf64_amdgpu -shared`: flags and ABI version are zero.
fn empty_link() -> Vec<u8> {
    let mut empty = object("gfx1031", 0x37)[..64].to_vec();
    empty[8] = 0;
    empty[40..64].fill(0);
    empty[32..40].fill(0);
    empty
}

#[test]
fn the_fat_binary_is_compared_with_the_request() {
    let requested = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<_>>();
    let both = bundle(&[("gfx1030", 0x36), ("gfx1031", 0x37)], None);
    let missing = |bytes: &[u8], names: &[&str]| {
        let missing = find_missing(bytes, &requested(names)).unwrap();
        missing.iter().map(|missing| (missing.target.to_string(), missing.is_requested)).collect::<Vec<_>>()
    };
    assert_eq!(missing(&both, &["gfx1030", "gfx1031"]), []);
    assert_eq!(missing(&both, &["gfx1030", "gfx1032"]), [("gfx1032".to_owned(), true)]);
    assert_eq!(missing(b"text", &["gfx1030"]), []);
    // A planted loss: the device link of one GPU had no input.
    let mut planted = Bundle::default();
    planted.push(HOST, Vec::new()).unwrap();
    planted.push(id("gfx1030"), object("gfx1030", 0x36)).unwrap();
    planted.push(id("gfx1031"), empty_link()).unwrap();
    assert_eq!(missing(&planted.to_bytes().unwrap(), &[]), [("gfx1031".to_owned(), false)]);
}
