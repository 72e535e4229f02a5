//! The mode matrix: every mode of clang's HIP driver, plain and through `hotswap-clang++`, with
//! strace as the oracle. No device link may escape the plan, no host link may see it.
//!
//! Each mode runs with one clang in turn, and where the versions behave differently, or with `--everything`, with all of
//! them. `HOTSWAP_TEST_MODES=part` runs only the modes whose name contains that part, with every clang.

use hotswap_tests::mode::{Each, Mode, all, plan_words};
use hotswap_tests::strace::{Log, STRACE};
use hotswap_tests::trace::{self, Step};
use hotswap_tests::{Bench, Call, Clang, Ran, artifact, in_turn, parallel, say};
use std::collections::BTreeMap;
use std::path::Path;

/// The outcome of one run of a mode.
struct Outcome {
    /// The last command that ran: the first that failed, or the last of all.
    last: Ran,
    /// Device links that strace saw.
    links: usize,
    /// Host linkers that got an argument of HotSwap.
    tainted: Vec<String>,
    /// The trace of the tools.
    steps: Vec<Step>,
    /// Names of the remaining files.
    files: Vec<String>,
    /// Content of the files in `made` and `bare`.
    made: BTreeMap<String, Vec<u8>>,
}

/// One mode with one clang, plain and with HotSwap.
struct Judged {
    links: usize,
    traced: usize,
    expanded: usize,
    objects: usize,
    faults: Vec<String>,
}

fn run(bench: &Bench, clang: &Clang, mode: &Mode, compiler: &[String], variables: &[(String, String)]) -> Outcome {
    let scratch = mode.scratch(bench);
    let mut outcome = Outcome {
        last: Ran::default(),
        links: 0,
        tainted: Vec::new(),
        steps: Vec::new(),
        files: Vec::new(),
        made: BTreeMap::new(),
    };
    // Temporary files of the tools must be visible, too: they have a separate directory.
    std::fs::create_dir(scratch.outside("tmp")).expect("scratch is writable");
    for command in mode.commands(clang, compiler) {
        let log = scratch.inside("tmp/strace.log");
        let strace: Vec<&str> = STRACE.iter().copied().chain([log.as_str()]).collect();
        let call = Call::new(bench, &scratch.inside, &command).under(&strace).env("TMPDIR", scratch.inside("tmp"));
        outcome.last = call.env("HOTSWAP_TRACE", scratch.inside("tmp/trace.json")).envs(variables).run();
        let log = Log::parse(&String::from_utf8_lossy(&scratch.read("tmp/strace.log")));
        outcome.links += log.device_links(&bench.prefix).len();
        outcome.tainted.extend(log.tainted_host_links(&bench.prefix).iter().map(|exec| exec.words.join(" ")));
        if !outcome.last.ok() {
            break;
        }
    }
    outcome.steps = trace::read(&scratch.outside("tmp/trace.json")).expect("the trace is readable");
    outcome.files = scratch.names(".");
    outcome.files.extend(scratch.names("tmp").into_iter().map(|name| format!("tmp/{name}")));
    outcome.files.retain(|name| !["tmp/strace.log", "tmp/trace.json"].contains(&name.as_str()));
    // The linker wrapper leaves temporary files where its linker fails; their names are random.
    outcome.files.iter_mut().for_each(|name| *name = without_random(name));
    let wanted = mode.made.iter().chain(&mode.bare).filter(|name| scratch.has(name));
    outcome.made = wanted.map(|name| (name.clone(), scratch.read(name))).collect();
    outcome
}

/// Replaces six hexadecimal digits after a dash by `-*`.
fn without_random(name: &str) -> String {
    let mut parts = name.split('-');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let random = part.len() >= 6 && part.bytes().take(6).all(|byte| byte.is_ascii_hexdigit());
        let random = random && part.as_bytes().get(6).is_none_or(|byte| *byte == b'.');
        text.push('-');
        text.push_str(if random { "*" } else { part });
        text.push_str(if random { &part[6..] } else { "" });
    }
    text
}

fn judge(bench: &Bench, clang: &Clang, mode: &Mode) -> Judged {
    let version = clang.version;
    let plain = run(bench, clang, mode, std::slice::from_ref(&clang.program), &[]);
    let mut wrapper = vec![bench.installed("bin/hotswap-clang++")];
    let mut variables = vec![("HOTSWAP_CLANG".to_owned(), clang.program.clone())];
    if mode.ambient {
        variables.push(("HOTSWAP_RETARGET".to_owned(), mode.plan.clone()));
    } else {
        wrapper.extend(plan_words(&mode.plan, mode.policy.as_deref()));
    }
    let ours = run(bench, clang, mode, &wrapper, &variables);
    let mut judged = Judged {
        links: ours.links,
        traced: trace::count(&ours.steps, "device-link"),
        expanded: trace::count(&ours.steps, "expand"),
        objects: 0,
        faults: Vec::new(),
    };
    judged.faults.extend(plain_faults(mode, version, &plain));
    judged.faults.extend(fate_faults(mode, version, &plain, &ours));
    judged.faults.extend(link_faults(mode, version, &plain, &ours, judged.traced));
    if ours.last.ok() {
        match made_faults(mode, &plain, &ours) {
            Ok(objects) => judged.objects = objects,
            Err(faults) => judged.faults.extend(faults),
        }
    }
    judged
}

/// Whether clang alone behaves as in the table: otherwise the table proves nothing.
fn plain_faults(mode: &Mode, version: u32, plain: &Outcome) -> Vec<String> {
    let mut faults = Vec::new();
    let says = mode.fails.of(version);
    match (says.is_empty(), plain.last.ok()) {
        (true, false) => faults.push(format!("plain clang fails: {}", plain.last.brief())),
        (false, true) => faults.push(format!("plain clang does not fail with `{says}`")),
        (false, false) if !plain.last.stderr.contains(says.as_str()) => {
            faults.push(format!("plain clang does not say `{says}`: {}", plain.last.brief()));
        }
        _ => {}
    }
    if plain.links != *mode.links.of(version) {
        faults.push(format!("plain clang made {} device links, not {}", plain.links, mode.links.of(version)));
    }
    faults
}

/// Exit codes, messages and files.
fn fate_faults(mode: &Mode, version: u32, plain: &Outcome, ours: &Outcome) -> Vec<String> {
    let mut faults = Vec::new();
    let refused = mode.refused.of(version);
    if !refused.is_empty() {
        if ours.last.ok() || !ours.last.stderr.contains(&format!("[{refused}]")) {
            faults.push(format!("not refused with {refused}: {}", ours.last.brief()));
        }
        return faults;
    }
    if ours.last.code != plain.last.code {
        faults.push(format!("ends with {}, plain clang with {}", ours.last.brief(), plain.last.brief()));
    }
    let says = mode.fails.of(version);
    if !says.is_empty() && !ours.last.stderr.contains(says.as_str()) {
        faults.push(format!("does not say `{says}`: {}", ours.last.brief()));
    }
    if plain.last.ok() && !ours.last.ours().is_empty() {
        faults.push(format!("says {:?}", ours.last.ours()));
    }
    if ours.last.ok() && ours.last.stderr.contains("unused during compilation") {
        faults.push(format!("unused words: {}", ours.last.brief()));
    }
    if ours.files != plain.files {
        faults.push(format!("leaves the files {:?}, plain clang {:?}", ours.files, plain.files));
    }
    faults
}

/// Device links: as many as without us, each with the plan; host links without it.
fn link_faults(mode: &Mode, version: u32, plain: &Outcome, ours: &Outcome, traced: usize) -> Vec<String> {
    let mut faults = Vec::new();
    // A refusal may precede the device link.
    if ours.links != plain.links && mode.refused.of(version).is_empty() {
        faults.push(format!("{} device links, plain clang makes {}", ours.links, plain.links));
    }
    // The linker's own failure is no transformed link.
    let lost = ours.links - traced.min(ours.links);
    let expected = if mode.unmarked.is_some() || !plain.last.ok() || !ours.last.ok() { lost } else { 0 };
    if lost != expected || traced > ours.links {
        faults.push(format!("strace saw {} device links, the interposer {traced}", ours.links));
    }
    let tainted = ours.tainted.iter().map(|line| format!("host link with our word: {line}"));
    faults.extend(tainted);
    faults
}

/// Targets and code objects in the output files; returns the number of correct code objects.
fn made_faults(mode: &Mode, plain: &Outcome, ours: &Outcome) -> Result<usize, Vec<String>> {
    let mut faults = Vec::new();
    let mut objects = 0;
    for name in mode.made.iter().chain(&mode.bare) {
        let Some(bytes) = ours.made.get(name) else {
            faults.push(format!("{name} was not made"));
            continue;
        };
        let devices = match artifact::devices(bytes) {
            Ok(devices) => devices,
            Err(error) => {
                faults.push(format!("{name}: {error}"));
                continue;
            }
        };
        let bare = mode.bare.contains(name);
        let expected = if bare {
            [(String::new(), 1)].into()
        } else {
            mode.targets.iter().map(|target| (target.clone(), mode.bundles)).collect()
        };
        let found = artifact::targets(&devices);
        if found != expected {
            faults.push(format!("{name} has {found:?}, not {expected:?}"));
        }
        let judged = |device: &artifact::Device| device.fault(if bare { "gfx1030" } else { device.target() });
        faults.extend(devices.iter().filter_map(judged).map(|fault| format!("{name}: {fault}")));
        objects += devices.len();
        if bare && plain.made.get(name) != Some(bytes) && mode.unmarked.is_some() {
            faults.push(format!("{name} differs from plain clang's"));
        }
    }
    if faults.is_empty() { Ok(objects) } else { Err(faults) }
}

fn matrix_of(bench: &Bench, clang: &Clang, modes: &[&Mode]) -> Vec<String> {
    let results = parallel(modes, |mode| judge(bench, clang, mode));
    say(&format!(
        "{:<30} {:>6} {:>6} {:>6} {:>7}",
        format!("clang {}", clang.version),
        "links",
        "traced",
        "expand",
        "objects"
    ));
    for (mode, result) in modes.iter().zip(&results) {
        let verdict = if result.faults.is_empty() { "" } else { "  FAULT" };
        let numbers = format!("{:>6} {:>6} {:>6} {:>7}", result.links, result.traced, result.expanded, result.objects);
        say(&format!("{:<30} {numbers}{verdict}", mode.name));
    }
    let pairs = || modes.iter().copied().zip(&results);
    let reach = |(mode, _): &(&Mode, &Judged)| mode.unmarked.is_none();
    // A link that fails in plain clang, too, or that is refused, leaves nothing to transform.
    let stays = |text: &Each<String>| text.of(clang.version).is_empty();
    let ends = |(mode, _): &(&Mode, &Judged)| stays(&mode.fails) && stays(&mode.refused);
    let seen: usize = pairs().map(|(_, result)| result.links).sum();
    let outside: usize = pairs().filter(|pair| !reach(pair)).map(|(_, result)| result.links).sum();
    let failed: usize = pairs().filter(|p| reach(p) && !ends(p)).map(|(_, r)| r.links - r.traced.min(r.links)).sum();
    let traced: usize = results.iter().map(|result| result.traced).sum();
    say(&format!(
        "clang {}: {} modes, {seen} device links seen, {traced} transformed, {failed} failed or refused as they should, \
         {outside} without HIP, {} missed",
        clang.version,
        modes.len(),
        seen.saturating_sub(traced + failed + outside)
    ));
    let faults = pairs().flat_map(|(mode, result)| result.faults.iter().map(|fault| (mode.name.clone(), fault)));
    faults.map(|(name, fault)| format!("clang {} {name}: {fault}", clang.version)).collect()
}

#[test]
fn no_device_link_of_any_mode_escapes_the_plan() {
    let Some(bench) = Bench::ready("mode matrix") else { return };
    let part = std::env::var("HOTSWAP_TEST_MODES").unwrap_or_default();
    let modes: Vec<_> = all().into_iter().filter(|mode| mode.name.contains(&part)).collect();
    assert!(!modes.is_empty(), "no mode is called `{part}`");
    let pairs = in_turn("mode matrix", &modes, &bench.clangs, |mode| mode.differs() || !part.is_empty());
    let of = |clang: &Clang| pairs.iter().filter(|(one, _)| *one == clang).map(|(_, mode)| *mode).collect::<Vec<_>>();
    let faults: Vec<_> = bench.clangs.iter().flat_map(|clang| matrix_of(&bench, clang, &of(clang))).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_mode_is_named_once_and_expects_something() {
    let modes = all();
    let mut names: Vec<_> = modes.iter().map(|mode| mode.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), modes.len());
    for mode in &modes {
        let idle = mode.made.is_empty() && mode.bare.is_empty();
        let fails = [22, 23, 24]
            .iter()
            .any(|version| !mode.fails.of(*version).is_empty() || !mode.refused.of(*version).is_empty());
        let links = [22, 23, 24].iter().any(|version| *mode.links.of(*version) > 0);
        assert!(!idle || fails || !links || mode.name == "S-new", "{} makes code and checks none", mode.name);
        assert!(!mode.made.iter().any(|name| Path::new(name).is_absolute()));
    }
}
