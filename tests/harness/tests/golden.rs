//! The golden oracle: a retargeted code object is, byte for byte, clang's own output for that target; and a target that
//! was compiled is never replaced.

use hotswap_tests::artifact::{Device, devices};
use hotswap_tests::mode::{plan_words, write_sources};
use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, one_of_each, parallel, say};
use std::collections::BTreeSet;

/// One program, built twice.
#[derive(Debug, Clone)]
struct Case {
    version: u32,
    driver: &'static str,
    compress: bool,
    rdc: bool,
    headers: bool,
    build_id: Option<&'static str>,
    source: &'static str,
    targets: &'static [&'static str],
}

const RDNA2: &[&str] = &["gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"];
const OTHERS: &[(&str, &[&str])] = &[
    ("gfx900", &["gfx902", "gfx909", "gfx90c"]),
    ("gfx1010", &["gfx1013"]),
    ("gfx1011", &["gfx1012"]),
    ("gfx1150", &["gfx1152", "gfx1153"]),
    ("gfx1200", &["gfx1201"]),
];
/// Hashes of the file, and a number as long as the first of them, which stays.
const BUILD_IDS: [&str; 4] = ["fast", "md5", "sha1", "0x0123456789abcdef"];
const DRIVERS: &[&str] = &["--no-offload-new-driver", "--offload-new-driver"];

fn cases(clang: &Clang) -> Vec<Case> {
    let version = clang.version;
    let last = |source, targets| Case {
        version,
        driver: "--offload-new-driver",
        compress: false,
        rdc: false,
        headers: false,
        build_id: None,
        source,
        targets,
    };
    let mut cases: Vec<_> = OTHERS.iter().map(|(source, targets)| last(source, targets)).collect();
    // Clang 24 has one driver only.
    for &driver in DRIVERS.iter().skip(usize::from(version >= 24)) {
        for (compress, rdc) in [(false, false), (true, false), (false, true), (true, true)] {
            cases.push(Case { driver, compress, rdc, ..last("gfx1030", RDNA2) });
        }
    }
    cases.push(Case { headers: true, ..last("gfx1030", &RDNA2[..1]) });
    cases.extend(BUILD_IDS.map(|kind| Case { build_id: Some(kind), ..last("gfx1030", &RDNA2[..1]) }));
    cases
}

/// Each kind of case with one clang in turn, or with all.
fn some(bench: &Bench, test: &str, fits: impl Fn(&Case) -> bool) -> Vec<Case> {
    let all = bench.clangs.iter().flat_map(cases).filter(fits).collect();
    let some = one_of_each(test, all, Case::kind, |_| false);
    let versions: BTreeSet<u32> = some.iter().map(|case| case.version).collect();
    assert_eq!(versions.len(), bench.clangs.len(), "{test}: a clang is not used");
    some
}

impl Case {
    fn name(&self) -> String {
        let words = [
            self.driver,
            if self.compress { "compressed" } else { "plain" },
            if self.rdc { "RDC" } else { "" },
            self.build_id.unwrap_or_default(),
        ];
        format!("clang {} {} {}", self.version, self.source, words.join(" "))
    }

    /// All but the compiler.
    fn kind(&self) -> impl Ord + use<> {
        (self.driver, [self.compress, self.rdc, self.headers], self.build_id, self.source)
    }

    /// The commands that build `x` with this compiler for these targets.
    fn commands(&self, clang: &Clang, compiler: &[String], targets: &[&str]) -> Vec<Vec<String>> {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let mut common = [compiler, &if self.headers { clang.hip.clone() } else { clang.light() }].concat();
        common.extend(targets.iter().map(|target| format!("--offload-arch={target}")));
        common.extend(list(&[self.driver]));
        common.extend(self.compress.then(|| "--offload-compress".to_owned()));
        common.extend(
            self.build_id.iter().flat_map(|kind| ["-Xoffload-linker".to_owned(), format!("--build-id={kind}")]),
        );
        let words = |more: &[&str]| [common.clone(), list(more)].concat();
        let mut commands = if self.rdc {
            // The ID of a compilation is hashed from its arguments, which differ here; in RDC it cannot be left out.
            let unit = |name: &str, object: &str| {
                words(&["-fgpu-rdc", "-DRDC", &format!("-cuid={object}"), "-c", name, "-o", object])
            };
            vec![
                unit("a.hip", "a.o"),
                unit("b.hip", "b.o"),
                words(&["-fgpu-rdc", "--hip-link", "a.o", "b.o", "-o", "x"]),
            ]
        } else {
            vec![words(&["-fuse-cuid=none", "a.hip", "-o", "x"])]
        };
        commands.last_mut().expect("there is one").extend(clang.link.clone());
        commands
    }

    fn build(&self, bench: &Bench, ours: Option<&str>, targets: &[&str]) -> Result<(Scratch, Vec<Device>), String> {
        let clang = bench.clang(self.version).expect("cases are made for clangs that are there");
        let scratch = bench.scratch();
        write_sources(&scratch, self.headers);
        let compiler = match ours {
            Some(plan) => [vec![bench.installed("bin/hotswap-clang++")], plan_words(plan, None)].concat(),
            None => vec![clang.program.clone()],
        };
        for command in self.commands(clang, &compiler, targets) {
            let ran = Call::new(bench, &scratch.inside, &command).env("HOTSWAP_CLANG", clang.program.clone()).run();
            succeed(&ran).map_err(|error| format!("{}: {error}", if ours.is_some() { "ours" } else { "clang" }))?;
        }
        let devices = devices(&scratch.read("x"))?;
        Ok((scratch, devices))
    }
}

fn succeed(ran: &Ran) -> Result<(), String> {
    if ran.ok() { Ok(()) } else { Err(ran.brief()) }
}

fn of<'a>(devices: &'a [Device], target: &str) -> Result<&'a Device, String> {
    let found: Vec<_> = devices.iter().filter(|device| device.target() == target).collect();
    match found.as_slice() {
        [device] => Ok(device),
        _ => Err(format!("{target} is there {} times", found.len())),
    }
}

fn differing(ours: &[u8], clangs: &[u8]) -> String {
    let places: Vec<_> = ours.iter().zip(clangs).enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at).collect();
    format!("{} and {} bytes, {} differ, the first at {:?}", ours.len(), clangs.len(), places.len(), places.first())
}

/// Builds both and compares; returns the number of equal retargeted code objects.
fn judge(bench: &Bench, case: &Case) -> Result<usize, String> {
    let plan = format!("{}=>{}", case.source, case.targets.join(","));
    let all = [&[case.source], case.targets].concat();
    let (scratch, ours) = case.build(bench, Some(&plan), &[case.source])?;
    let (_native, clangs) = case.build(bench, None, &all)?;
    for &target in &all {
        let (one, other) = (of(&ours, target)?, of(&clangs, target)?);
        if one.bytes != other.bytes {
            return Err(format!("{target}: {}", differing(&one.bytes, &other.bytes)));
        }
        one.fault(target).map_or(Ok(()), Err)?;
    }
    bundler_agrees(bench, case, &scratch, &ours)?;
    Ok(case.targets.len())
}

/// Clang's own bundler extracts the same bytes from the program as our reader.
fn bundler_agrees(bench: &Bench, case: &Case, scratch: &Scratch, ours: &[Device]) -> Result<(), String> {
    let clang = bench.clang(case.version).expect("cases are made for clangs that are there");
    let call = |words: &[&str]| succeed(&Call::new(bench, &scratch.inside, words).run());
    call(&[&clang.tool("llvm-objcopy"), "--dump-section=.hip_fatbin=x.hipfb", "x"])?;
    let targets: Vec<_> = ours.iter().filter_map(|device| device.id.clone()).collect();
    let mut words = vec![clang.tool("clang-offload-bundler"), "--unbundle".into(), "--type=o".into()];
    words.extend(["--input=x.hipfb".to_owned(), format!("--targets={}", targets.join(","))]);
    words.extend((0..ours.len()).map(|number| format!("--output={number}.co")));
    call(&words.iter().map(String::as_str).collect::<Vec<_>>())?;
    for (number, device) in ours.iter().enumerate() {
        if scratch.read(&format!("{number}.co")) != device.bytes {
            return Err(format!("clang-offload-bundler takes out something else for {}", device.target()));
        }
    }
    Ok(())
}

#[test]
fn retargeted_code_objects_are_what_clang_compiles_itself() {
    let Some(bench) = Bench::ready("golden oracle") else { return };
    let cases = some(&bench, "golden oracle", |_| true);
    let results = parallel(&cases, |case| judge(&bench, case));
    let same: usize = results.iter().flatten().sum();
    let native = results.iter().flatten().count();
    say(&format!(
        "golden oracle: {} programs, {same} retargeted code objects and {native} compiled ones equal clang's own byte for byte",
        cases.len()
    ));
    let wrong = cases.iter().zip(&results).filter_map(|(case, result)| Some((case.name(), result.as_ref().err()?)));
    let wrong: Vec<_> = wrong.map(|(name, error)| format!("{name}: {error}")).collect();
    assert!(wrong.is_empty(), "{} of {} programs:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn a_compiled_target_is_never_replaced() {
    let Some(bench) = Bench::ready("native wins") else { return };
    let cases =
        some(&bench, "native wins", |case| case.source == "gfx1030" && !case.headers && case.build_id.is_none());
    for case in &cases {
        // The record has the route of each; the bytes are the same either way, so the compiled one is marked by an
        // additional symbol.
        let marked = |ours: Option<&str>| {
            let marks = Case { targets: &[], ..case.clone() };
            marks.build_marked(&bench, ours)
        };
        let (ours, clangs) = (marked(Some("gfx1030=>gfx1031,gfx1032")), marked(None));
        let ours = ours.unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        let clangs = clangs.unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        let get = |devices: &[Device], target: &str| of(devices, target).cloned().expect(target).bytes;
        assert_eq!(get(&ours, "gfx1031"), get(&clangs, "gfx1031"), "{}", case.name());
        assert_ne!(get(&ours, "gfx1031").len(), get(&ours, "gfx1032").len(), "{}: no mark", case.name());
        assert_eq!(ours.len(), 3, "{}", case.name());
    }
    say(&format!("native wins: {} programs keep the compiled gfx1031 beside a plan that could make it", cases.len()));
}

impl Case {
    /// Builds for gfx1030 and gfx1031, the latter with an additional kernel.
    fn build_marked(&self, bench: &Bench, ours: Option<&str>) -> Result<Vec<Device>, String> {
        let clang = bench.clang(self.version).expect("cases are made for clangs that are there");
        let scratch = bench.scratch();
        write_sources(&scratch, false);
        let text = String::from_utf8_lossy(&scratch.read("a.hip")).into_owned();
        let mark = "\n#ifdef MARK\n__global__ void only_here(float *p) { p[0] = p[1] + p[2]; }\n#endif\n";
        scratch.write("a.hip", text + mark);
        let mut compiler = match ours {
            Some(plan) => [vec![bench.installed("bin/hotswap-clang++")], plan_words(plan, None)].concat(),
            None => vec![clang.program.clone()],
        };
        compiler.extend(["-Xarch_gfx1031".to_owned(), "-DMARK".to_owned()]);
        for command in self.commands(clang, &compiler, &["gfx1030", "gfx1031"]) {
            let ran = Call::new(bench, &scratch.inside, &command).env("HOTSWAP_CLANG", clang.program.clone()).run();
            succeed(&ran)?;
        }
        devices(&scratch.read("x"))
    }
}
