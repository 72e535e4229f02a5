//! Runs one unit: its steps in order, until one fails.

use crate::build::{compiled, one_line, work};
use crate::case::{Cache, Step};
use crate::programs;
use crate::setup::Unit;
use crate::site::{Site, both};
use hotswap_tests::artifact::{devices, targets};
use hotswap_tests::{Bench, Ran};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Runs all steps of the unit.
///
/// # Errors
/// The step that fails, and the reason.
pub fn run(bench: &Bench, unit: &Unit) -> Result<(), String> {
    let mut site = Site::new(bench, unit)?;
    for (number, step) in unit.case.steps.iter().enumerate() {
        do_step(&mut site, *step).map_err(|error| format!("{unit}: step {} {step:?}: {error}", number + 1))?;
    }
    Ok(())
}

fn do_step(site: &mut Site<'_>, step: Step) -> Result<(), String> {
    match step {
        Step::Configure(definitions) => {
            start_cache_server(site, definitions);
            succeed(&site.configure(definitions))
        }
        Step::Warns(definitions, text) => {
            let ran = site.configure(definitions);
            succeed(&ran).and_then(|()| says(&ran, text))
        }
        Step::Refused(definitions, text) => fail_saying(&site.configure(definitions), text),
        Step::Build => site.build_ok().map(drop),
        Step::Target(name) => succeed(&site.build(Some(name))),
        Step::Says(text) => {
            let ran = site.build(None);
            succeed(&ran).and_then(|()| says(&ran, text))
        }
        Step::Stops(text) => fail_saying(&site.build(None), text),
        Step::Counters(file, expected) => counters(site, file, expected),
        Step::Exists(file) => site.read(file).map(drop),
        Step::Contains(file, text, count) => contains(site, file, text, count),
        Step::Compiles(files) => compiles(site, files),
        Step::Idle => site.build_ok().and_then(|output| work(&output).map_or(Ok(()), |line| Err(line.to_owned()))),
        Step::Has(file, gpus) => has(site, file, gpus),
        Step::Derived(file, gpus) => derived(site, file, gpus),
        Step::Plans(file, count) => plans(site, file, count),
        Step::Report(file, gpus) => report(site, file, gpus),
        Step::Runs(file) => runs(site, file),
        Step::Executes(programs, gpus) => programs::execute(site, programs, gpus, false),
        Step::ExecutesOrStops(programs, gpus) => programs::execute(site, programs, gpus, true),
        Step::NewHotSwap => new_hotswap(site),
        Step::NewClang => new_clang(site),
        Step::MadeByInstalled(file) => made_by_installed(site, file),
        Step::ChangePlanFile => change_plan_file(site),
        Step::RemovePlans => fs::remove_dir_all(site.built(".hotswap/plans")).map_err(|error| error.to_string()),
        Step::Clean => succeed(&site.build(Some("clean"))),
        Step::Cache(cache, hits, misses) => cache_counts(site, cache, hits, misses),
        Step::Install => {
            let to = format!("{}/installed", site.inside(site.tree));
            site.run(&[&site.unit().setup.cmake.program, "--install", &site.inside(site.tree), "--prefix", &to])
                .map(drop)
        }
        Step::Consumer(directory) => {
            site.tree = "build of consumer";
            succeed(&site.configure_consumer(directory)).and_then(|()| site.build_ok().map(drop))
        }
    }
}

fn succeed(ran: &Ran) -> Result<(), String> {
    if ran.ok() { Ok(()) } else { Err(format!("it failed:\n{}", both(ran))) }
}

fn says(ran: &Ran, text: &str) -> Result<(), String> {
    let said = both(ran);
    if one_line(&said).contains(text) { Ok(()) } else { Err(format!("it does not say `{text}`:\n{said}")) }
}

fn fail_saying(ran: &Ran, text: &str) -> Result<(), String> {
    if ran.ok() { Err(format!("it succeeded:\n{}", both(ran))) } else { says(ran, text) }
}

fn same(found: &[&str], expected: &[&str]) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("found {found:?}")) }
}

fn contains(site: &Site<'_>, file: &str, text: &str, count: usize) -> Result<(), String> {
    let found = String::from_utf8_lossy(&site.read(file)?).matches(text).count();
    if found == count { Ok(()) } else { Err(format!("`{text}` occurs {found} times in {file}")) }
}

/// With Makefiles a changed flag of one language compiles all languages of the target again.
fn compiles(site: &Site<'_>, files: &[&str]) -> Result<(), String> {
    let output = site.build_ok()?;
    let counts = |name: &&str| site.unit().setup.generator == "Ninja" || name.ends_with(".hip");
    let found: Vec<_> = compiled(&output).into_iter().filter(counts).collect();
    let expected: Vec<_> = files.iter().copied().filter(counts).collect();
    same(&found, &expected)
}

/// Looks for the section with the records of counters in every code object.
fn counters(site: &Site<'_>, file: &str, expected: bool) -> Result<(), String> {
    let name = b"__llvm_prf_data\0";
    let found = devices(&site.read(file)?)?;
    let has = found.iter().filter(|device| device.bytes.windows(name.len()).any(|part| part == name)).count();
    let right = if expected { has == found.len() && has > 0 } else { has == 0 };
    if right { Ok(()) } else { Err(format!("{has} of {} code objects have counters", found.len())) }
}

/// Checks each code object's bytes, and compares them with the output of `hotswap list`.
fn has(site: &Site<'_>, file: &str, gpus: &[&str]) -> Result<(), String> {
    let found = devices(&site.read(file)?)?;
    let names = targets(&found);
    same(&names.keys().map(String::as_str).collect::<Vec<_>>(), gpus)?;
    let faults: Vec<_> = found.iter().filter_map(|device| device.fault(device.target())).collect();
    if !faults.is_empty() {
        return Err(faults.join("; "));
    }
    let text = site.hotswap(&["list", "--format", "json", &format!("{}/{file}", site.inside(site.tree))])?;
    let listed = gpus_of(&parse(&text)?);
    same(&listed.iter().map(String::as_str).collect::<Vec<_>>(), gpus)
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))
}

fn entries_of(listing: &Value) -> impl Iterator<Item = &Value> {
    let containers = listing["files"].as_array().into_iter().flatten().flat_map(|file| file["containers"].as_array());
    containers.flatten().flat_map(|container| container["entries"].as_array()).flatten()
}

/// Every `target` of an entry that is device code.
fn gpus_of(listing: &Value) -> BTreeSet<String> {
    entries_of(listing)
        .filter_map(|entry| entry["target"].as_str())
        .filter(|name| name.starts_with("gfx"))
        .map(str::to_owned)
        .collect()
}

/// Counts code objects for which the listing names a source.
fn derived(site: &Site<'_>, file: &str, gpus: &[(&str, usize)]) -> Result<(), String> {
    let text = site.hotswap(&["list", "--format", "json", &format!("{}/{file}", site.inside(site.tree))])?;
    let listing = parse(&text)?;
    let mut found = BTreeMap::new();
    for entry in entries_of(&listing).filter(|entry| entry["source"].is_string()) {
        *found.entry(entry["target"].as_str().unwrap_or_default()).or_insert(0) += 1;
    }
    let wanted: BTreeMap<&str, usize> = gpus.iter().copied().collect();
    if found == wanted { Ok(()) } else { Err(format!("derived are {found:?}, not {wanted:?}: {text}")) }
}

/// Counts manifests, which look like the record of a fat binary, but without its entries.
fn plans(site: &Site<'_>, file: &str, count: usize) -> Result<(), String> {
    let text = String::from_utf8_lossy(&site.read(file)?).into_owned();
    let records = text.split("{\"schema\":").filter_map(|text| text.split(['\n', '\0']).next());
    let found = records.filter(|text| text.contains("\"plan_text\":") && !text.contains("\"entries\":")).count();
    if found == count { Ok(()) } else { Err(format!("found {found}")) }
}

fn report(site: &Site<'_>, file: &str, gpus: &[&str]) -> Result<(), String> {
    let text = String::from_utf8(site.read(file)?).map_err(|error| error.to_string())?;
    same(&gpus_of(&parse(&text)?).iter().map(String::as_str).collect::<Vec<_>>(), gpus)
}

fn runs(site: &Site<'_>, file: &str) -> Result<(), String> {
    let ran = site.call(&[&format!("{}/{file}", site.inside(site.tree))]);
    says(&ran, "no ROCm-capable device")
}

fn new_hotswap(site: &Site<'_>) -> Result<(), String> {
    let old = identity(site)?;
    let new: String = old.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
    let mut changed = 0;
    for file in ["bin/hotswap", "bin/hotswap-clang", "libexec/hotswap/lld"] {
        let path = site.outside("hotswap").join(file);
        let mut bytes = fs::read(&path).map_err(|error| format!("{file}: {error}"))?;
        for at in 0..bytes.len().saturating_sub(old.len()) {
            if bytes[at..].starts_with(old.as_bytes()) {
                bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
                changed += 1;
            }
        }
        // A new file, as an installer makes it: the old one may be running (a cache's server).
        fs::remove_file(&path).and_then(|()| fs::write(&path, bytes)).map_err(|error| format!("{file}: {error}"))?;
        site.run(&["chmod", "755", &format!("{}/{file}", site.prefix)])?;
    }
    if changed >= 3 && identity(site)? == new { Ok(()) } else { Err(format!("{changed} places changed")) }
}

fn new_clang(site: &Site<'_>) -> Result<(), String> {
    fs::remove_dir_all(site.built("")).map_err(|error| error.to_string())?;
    let other = if site.unit().setup.clang.version == 23 { 24 } else { 23 };
    site.install_clang(other)
}

/// The identity that the installation writes into its manifests.
fn identity(site: &Site<'_>) -> Result<String, String> {
    let directory = site.inside("identity");
    let text = site.hotswap(&["plan", "gfx1030=>gfx1031", "--out-dir", &directory, "--format", "json"])?;
    let plan = parse(&text)?;
    let hash = plan["hash"].as_str().ok_or("no hash")?;
    let object = format!("{directory}/manifest.o");
    let program = format!("{}/bin/hotswap", site.prefix);
    site.run(&["env", &format!("HOTSWAP_PLAN_DIR={directory}"), &program, "manifest", "--plan", hash, "-o", &object])?;
    let bytes = fs::read(site.outside("identity/manifest.o")).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let start = text.split_once("\"identity\":\"").ok_or("the manifest has no identity")?.1;
    Ok(start.split('"').next().unwrap_or_default().to_owned())
}

fn made_by_installed(site: &Site<'_>, file: &str) -> Result<(), String> {
    let identity = identity(site)?;
    let text = site.hotswap(&["inspect", "--format", "json", &format!("{}/{file}", site.inside(site.tree))])?;
    let mut found = Vec::new();
    collect(&parse(&text)?, "identity", &mut found);
    if !found.is_empty() && found.iter().all(|name| *name == identity) {
        Ok(())
    } else {
        Err(format!("made by {found:?}, installed is {identity}"))
    }
}

/// Every text under that key, at any depth.
fn collect(value: &Value, key: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get(key).and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| collect(value, key, found));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, key, found)),
        _ => {}
    }
}

fn change_plan_file(site: &Site<'_>) -> Result<(), String> {
    let entries = fs::read_dir(site.built(".hotswap/plans")).map_err(|error| error.to_string())?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
        fs::write(&path, text + "retarget gfx1030=>gfx1035\n").map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Two compilations that both start sccache's server on a busy machine may miss it, and then compile without the cache. One that
/// runs already is an error, which is as good.
fn start_cache_server(site: &Site<'_>, definitions: &[&str]) {
    if definitions.iter().any(|definition| definition.ends_with("LAUNCHER=sccache")) {
        site.call(&["sccache", "--start-server"]);
    }
}

fn cache_counts(site: &Site<'_>, cache: Cache, hits: usize, misses: usize) -> Result<(), String> {
    let found = match cache {
        Cache::Ccache => {
            let text = site.run(&["ccache", "--print-stats"])?;
            site.run(&["ccache", "--zero-stats"])?;
            (
                sum_statistics_lines("direct_cache_hit", &text) + sum_statistics_lines("preprocessed_cache_hit", &text),
                sum_statistics_lines("cache_miss", &text),
            )
        }
        Cache::Sccache => {
            let text = site.run(&["sccache", "--show-stats", "--stats-format=json"])?;
            site.run(&["sccache", "--zero-stats"])?;
            let stats = parse(text.trim())?;
            (sum_sccache_counts("cache_hits", &stats) as usize, sum_sccache_counts("cache_misses", &stats) as usize)
        }
    };
    if found == (hits, misses) { Ok(()) } else { Err(format!("{} hits, {} misses", found.0, found.1)) }
}

fn sum_statistics_lines(name: &str, text: &str) -> usize {
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.filter(|(key, _)| *key == name).filter_map(|(_, value)| value.parse::<usize>().ok()).sum()
}

fn sum_sccache_counts(name: &str, stats: &Value) -> u64 {
    let counts = stats["stats"][name]["counts"].as_object().into_iter().flatten();
    counts.filter_map(|(_, value)| value.as_u64()).sum::<u64>()
}
