//! A coalesced build has every code object that was requested, and each is clang's own, whichever processors the list
//! names: siblings, generic targets that cover them, settings of features, in any order.
//!
//! The expectation is clang's fat binary for the same list, entry by entry.

use hotswap_tests::artifact::{Device, devices};
use hotswap_tests::mode::write_sources;
use hotswap_tests::target_lists::lists;
use hotswap_tests::{Bench, Call, Clang, in_turn, parallel, say};

/// The entries of the fat binary, by ID.
fn build(bench: &Bench, clang: &Clang, list: &str, coalesced: bool) -> Result<Vec<Device>, String> {
    let scratch = bench.scratch();
    write_sources(&scratch, false);
    let compiler = match coalesced {
        true => vec![bench.installed("bin/hotswap-clang++"), "-fhotswap-coalesce".to_owned()],
        false => vec![clang.program.clone()],
    };
    let arch = format!("--offload-arch={list}");
    let words = ["-O2", &arch, "-fuse-cuid=none", "-c", "a.hip", "-o", "a.o"].map(str::to_owned);
    let words = [compiler, clang.light(), words.to_vec()].concat();
    let ran = Call::new(bench, &scratch.inside, &words).env("HOTSWAP_CLANG", clang.program.clone()).run();
    if !ran.ok() {
        return Err(format!("coalesced {coalesced}: {}", ran.brief()));
    }
    let mut found = devices(&scratch.read("a.o"))?;
    found.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(found)
}

/// The number of code objects, if all of them are clang's.
fn compare(bench: &Bench, clang: &Clang, list: &str) -> Result<usize, String> {
    let (clangs, ours) = (build(bench, clang, list, false)?, build(bench, clang, list, true)?);
    let ids = |list: &[Device]| list.iter().filter_map(|device| device.id.clone()).collect::<Vec<_>>();
    if ids(&ours) != ids(&clangs) {
        return Err(format!("{:?}, clang has {:?}", ids(&ours), ids(&clangs)));
    }
    let requested = list.split(',').count();
    if clangs.len() != requested {
        return Err(format!("clang has {} code objects for {requested} targets", clangs.len()));
    }
    match ours.iter().zip(&clangs).find(|(one, other)| one.bytes != other.bytes) {
        Some((one, _)) => Err(format!("the code object for {} is not clang's", one.target())),
        None => Ok(ours.len()),
    }
}

#[test]
fn every_requested_processor_is_in_a_coalesced_build() {
    let Some(bench) = Bench::ready("coalesced lists") else { return };
    let lists = lists();
    let cases = in_turn("coalesced lists", &lists, &bench.clangs, |_| false);
    let results = parallel(&cases, |(clang, list)| compare(&bench, clang, list));
    let objects: usize = results.iter().flatten().sum();
    say(&format!("coalesced lists: {objects} code objects of {} lists equal clang's", cases.len()));
    let wrong = cases.iter().zip(&results).filter_map(|((clang, list), result)| {
        Some(format!("clang {} {list}: {}", clang.version, result.as_ref().err()?))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{} of {} lists:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
