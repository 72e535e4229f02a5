//! The checks on clang's output: for each check code that must be refused, with the expected message, and code that
//! must pass.

use hotswap_code_object::CodeObject;
use hotswap_compat::{Check, PassedChecks, check_for, check_object};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use hotswap_userland::{Workbench, say};
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

const CASES: &str = include_str!("checks/cases.txt");

struct Case {
    words: &'static str,
    source: &'static str,
    target: TargetId,
    checks: &'static str,
    expected: Vec<&'static str>,
}

fn cases() -> Vec<Case> {
    let lines = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let case = |line: &'static str| {
        let [words, pair, checks, expected] = line.split(" | ").collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (source, target) = pair.split_once(" => ").unwrap_or_else(|| panic!("{line}"));
        let expected = if expected == "ok" { Vec::new() } else { expected.split(" ; ").collect() };
        Case { words, source, target: target.parse().unwrap(), checks, expected }
    };
    lines.map(case).collect()
}

fn named(name: &str) -> Check {
    Check::ALL.iter().copied().find(|check| check.name() == name).unwrap_or_else(|| panic!("{name}"))
}

impl Case {
    fn run(&self, object: &CodeObject<'_>) -> Result<PassedChecks, Vec<Diagnostic>> {
        match self.checks {
            "pair" => check_object(object, &self.target),
            names => check_for(object, &self.target, &names.split(',').map(named).collect::<Vec<_>>()),
        }
    }

    /// The difference from the expected result.
    fn fault(&self, object: &CodeObject<'_>) -> Option<String> {
        let found = self.run(object).err().unwrap_or_default();
        let fits = |(error, expected): (&Diagnostic, &&str)| {
            let mut words = expected.splitn(3, ' ');
            let mut is = |name: Option<&str>| words.next() == Some(name.unwrap_or("-"));
            let place = is(error.place.kernel.as_deref()) && is(error.place.mnemonic.as_deref());
            let inside = error.place.offset.is_some_and(|offset| offset < object.bytes().len() as u64);
            error.code == codes::NOT_SAFE && place && inside && error.what.contains(words.next().unwrap_or_default())
        };
        let good = found.len() == self.expected.len() && found.iter().zip(&self.expected).all(fits);
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        (!good).then(|| format!("{} {} => {}: {}", self.words, self.source, self.target, told.join("\n    ")))
    }
}

/// The script that compiles a case into `object`.
fn script(clang: u32, words: &str, source: &str) -> String {
    let (file, options) = words.split_once(' ').unwrap_or((words, ""));
    if !file.ends_with(".ll") {
        return format!(
            "clang-{clang} -x hip -nogpuinc -nogpulib -fuse-cuid=none --offload-device-only --no-gpu-bundle-output -O2 \
             --offload-arch={source} {options} {file} -o object"
        );
    }
    let more = if file == "load.ll" { "" } else { file };
    format!(
        "cat graphics.ll {more} > module.ll && clang-{clang} --target=amdgcn-amd-amdhsa -nogpulib -O2 \
         -Wno-override-module -mcpu={source} module.ll -o object"
    )
}

fn compile(bench: &Workbench, clang: u32, words: &str, source: &str) -> Vec<u8> {
    bench.run(&script(clang, words, source));
    bench.read("object")
}

fn bench(test: &str) -> Option<Workbench> {
    let bench = Workbench::new(test)?;
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checks");
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        bench.write(entry.file_name().to_str().unwrap(), &fs::read(entry.path()).unwrap());
    }
    Some(bench)
}

#[test]
fn code_is_refused_and_passes_as_the_cases_say() {
    let Some(bench) = bench("code_is_refused_and_passes_as_the_cases_say") else { return };
    let clang = bench.versions[bench.versions.len() / 2];
    let mut objects: HashMap<(&str, &str), Vec<u8>> = HashMap::new();
    let (mut wrong, mut refused, mut passed) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let cases = cases();
    for case in &cases {
        let key = (case.words, case.source);
        let data = objects.entry(key).or_insert_with(|| compile(&bench, clang, case.words, case.source));
        let object = CodeObject::parse(data).unwrap_or_else(|error| panic!("{} {}: {error}", case.words, case.source));
        let names = case.checks.split(',').filter(|name| *name != "pair").map(named);
        if case.expected.is_empty() {
            passed.extend(names)
        } else {
            refused.extend(names)
        }
        wrong.extend(case.fault(&object));
    }
    let all: BTreeSet<Check> = Check::ALL.iter().copied().collect();
    assert_eq!((&refused, &passed), (&all, &all), "every check has both kinds of cases");
    assert!(wrong.is_empty(), "clang-{clang}: {} of {}\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    say(&format!("checks: {} cases of clang-{clang} as expected", cases.len()));
}
