//! Reports of coverage by construction: each column has the counts of its own code, and losses are named.

use hotswap_emulated_hip::{CountBench, ProgramRun};
use serde_json::Value;

/// A bench with `hotswap`.
struct ReportBench {
    counted: CountBench,
    hotswap: String,
}

impl ReportBench {
    fn new(test: &str) -> Option<Self> {
        let counted = CountBench::new(test)?;
        counted.bench.work.write("runs.hip", include_bytes!("../cases/counted-runs.hip"));
        let hotswap = counted.bench.hotswap(test)?;
        Some(Self { counted, hotswap })
    }

    /// Runs `hotswap profile` with these words.
    fn profile(&self, words: &str) -> ProgramRun {
        self.counted.bench.script("", &format!("{} profile {words}", self.hotswap))
    }

    /// The report as JSON, and the messages.
    fn report(&self, words: &str) -> (Value, String) {
        let run = self.profile(&format!("report {words} --format json"));
        assert_eq!(run.code, Some(0), "{words}: {}", run.error);
        (serde_json::from_str(&run.output).unwrap_or_else(|error| panic!("{error}: {}", run.output)), run.error)
    }

    /// Builds `runs.hip` for these GPUs, and launches its kernel twice on one.
    fn launched_twice(&self, version: u32, targets: &str, gpu: &str, pattern: &str) -> String {
        let directory = format!("run-{version}-{}", targets.replace([':', ',', ' ', '='], "_"));
        self.counted.program(version, targets, "runs.hip", &format!("{directory}.out"));
        let run = self.counted.run(&directory, gpu, pattern, &format!("$B/{directory}.out 2 1"));
        run.passed();
        assert!(!run.error.contains("warning"), "{directory}: {}", run.error);
        directory
    }
}

/// The counts of a function in a source, by target; "no data" where that is what the report says.
fn counts(report: &Value, function: &str, file: &str) -> Vec<(String, String)> {
    let rows = report["functions"].as_array().expect("there are functions").iter();
    let is_it = |row: &&Value| {
        row["name"].as_str().is_some_and(|name| name.contains(function))
            && row["file"].as_str().is_some_and(|name| name.ends_with(file))
    };
    let rows: Vec<&Value> = rows.filter(is_it).collect();
    let [row] = rows.as_slice() else { panic!("{function} in {file}: {} rows of {report}", rows.len()) };
    let targets = report["targets"].as_array().expect("there are targets").iter().enumerate();
    let text = |number: usize| match (&row["counts"][number], row["lacks_data"][number].as_bool()) {
        (_, Some(true)) => "no data".to_owned(),
        (count, _) => count.to_string(),
    };
    targets.map(|(number, name)| (name.as_str().unwrap_or_default().to_owned(), text(number))).collect()
}

fn expected(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(target, count)| ((*target).to_owned(), (*count).to_owned())).collect()
}

/// Targets of a build, the GPU that runs it, and the counts of the kernel by target.
type TargetCase = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const TARGETS: [TargetCase; 4] = [
    ("gfx10-3-generic", "gfx1031", &[("host", "null"), ("gfx10-3-generic", "128")]),
    ("gfx1030,gfx10-3-generic", "gfx1031", &[("host", "null"), ("gfx10-3-generic", "128"), ("gfx1030", "no data")]),
    ("gfx1030,gfx10-3-generic", "gfx1030", &[("host", "null"), ("gfx10-3-generic", "no data"), ("gfx1030", "128")]),
    (
        "gfx90a:xnack+,gfx90a:xnack-",
        "gfx90a",
        &[("host", "null"), ("gfx90a:xnack+", "no data"), ("gfx90a:xnack-", "128")],
    ),
];

#[test]
fn each_target_has_its_own_counts() {
    let Some(bench) = ReportBench::new("reports of targets") else { return };
    for &version in &bench.counted.bench.work.versions {
        for (targets, gpu, kernel) in TARGETS {
            let context = format!("clang {version}, {targets} on {gpu}");
            let targets = targets.replace(',', " --offload-arch=");
            let directory = bench.launched_twice(version, &targets, gpu, "p.profraw");
            let (report, error) = bench.report(&format!("{directory}.out --profile {directory}"));
            assert_eq!(counts(&report, "countPi", "runs.hip"), expected(kernel), "{context}: {error}");
            assert!(!error.contains("HS0456"), "{context}: {error}");
            assert_eq!(counts(&report, "main", "runs.hip")[0].1, "1", "{context}: {error}");
            bench.counted.bench.work.run(&format!("rm -r {directory}"));
        }
    }
}

/// The name of a file says nothing: CI archives put a prefix before it, and users choose any.
#[test]
fn names_of_files_decide_nothing() {
    let Some(bench) = ReportBench::new("reports of renamed profiles") else { return };
    for &version in &bench.counted.bench.work.versions {
        let directory = bench.launched_twice(version, "gfx1030", "gfx1030", "gfx1030.profraw");
        let kernel = expected(&[("host", "null"), ("gfx1030", "128")]);
        for rename in
            ["true", "for file in *.profraw; do mv $file job1-$file; done", "mkdir -p a/b && mv *.profraw a/b"]
        {
            bench.counted.bench.work.run(&format!("cd {directory} && {rename}"));
            let (report, error) = bench.report(&format!("{directory}.out --profile {directory}"));
            assert_eq!(counts(&report, "countPi", "runs.hip"), kernel, "clang {version}, {rename}: {error}");
            assert_eq!(counts(&report, "main", "runs.hip")[0].1, "1", "clang {version}, {rename}: {error}");
        }
        let merged = bench.profile(&format!("merge {directory} --target gfx1030 -o {directory}.profdata"));
        assert_eq!(merged.code, Some(0), "{}", merged.error);
        let show =
            bench.counted.bench.work.run(&format!("llvm-profdata-{version} show --all-functions {directory}.profdata"));
        assert!(show.contains("_Z5countPi") && !show.contains("main"), "{show}");
    }
}

/// LLVM's merge keeps one record for a name and a shape.
#[test]
fn functions_of_one_name_in_two_units_are_two() {
    let Some(bench) = ReportBench::new("reports of equal names") else { return };
    let work = &bench.counted.bench.work;
    work.write("unit.hip", include_bytes!("../cases/counted-unit.hip"));
    work.write("units.cpp", include_bytes!("../cases/counted-units.cpp"));
    work.run(
        "for l in 1 2; do { echo \"#define LETTER $l\"; cat unit.hip; } >unit-$l.hip; done; cp units.cpp units.hip",
    );
    for &version in &work.versions {
        let directory = format!("units-{version}");
        bench.counted.program(version, "gfx1030", "units.hip unit-1.hip unit-2.hip", &format!("{directory}.out"));
        bench.counted.run(&directory, "gfx1030", "p.profraw", &format!("$B/{directory}.out")).passed();
        let (report, error) = bench.report(&format!("{directory}.out --profile {directory}"));
        for (function, file, launches) in [
            ("first", "unit-1.hip", 3),
            ("init", "unit-1.hip", 2),
            ("first", "unit-2.hip", 1),
            ("init", "unit-2.hip", 0),
        ] {
            let found = counts(&report, function, file);
            let device = found.iter().find(|(target, _)| target == "gfx1030").map(|(_, count)| count.clone());
            assert_eq!(device, Some((launches * 64).to_string()), "clang {version}, {function} of {file}: {error}");
        }
    }
}

/// Two programs that ran in one directory have kernels of one name.
#[test]
fn profiles_of_another_program_are_named_and_left_out() {
    let Some(bench) = ReportBench::new("reports of two programs") else { return };
    let work = &bench.counted.bench.work;
    work.run("sed 's/hipMalloc(&p, 4096) != hipSuccess/hipMalloc(\\&p, 4096) != hipSuccess || launches > 99/' runs.hip >other.hip");
    for &version in &work.versions {
        for name in ["runs", "other"] {
            bench.counted.program(version, "gfx1030", &format!("{name}.hip"), &format!("{name}-{version}.out"));
        }
        let directory = format!("both-{version}");
        for (name, launches) in [("runs", 5), ("other", 0)] {
            let command = format!("$B/{name}-{version}.out {launches} 1");
            bench.counted.run(&directory, "gfx1030", &format!("{name}.profraw"), &command).passed();
        }
        // The kernel of the other program was never launched, so its code was not loaded.
        let (report, error) = bench.report(&format!("other-{version}.out --profile {directory}"));
        let kernel = expected(&[("host", "null"), ("gfx1030", "no data")]);
        assert_eq!(counts(&report, "countPi", "other.hip"), kernel, "clang {version}: {error}");
        assert!(error.contains("[HS0456]") && error.contains("runs.profraw (gfx1030)"), "clang {version}: {error}");
        assert!(error.contains("runs.profraw (host)") && error.contains("[HS0309]"), "clang {version}: {error}");
        let strict = bench.profile(&format!("report other-{version}.out --profile {directory} --strict"));
        assert!(strict.code != Some(0) && strict.output.contains("no data"), "clang {version}: {}", strict.error);
        let own =
            format!("report runs-{version}.out --profile {directory}/runs.profraw --profile {directory} --strict");
        assert_eq!(bench.profile(&own).code, Some(13), "clang {version}");
    }
}

/// A function changed between the run and the report: it is named, and no tool failed.
#[test]
fn functions_that_changed_since_are_named() {
    let Some(bench) = ReportBench::new("reports of changed functions") else { return };
    let work = &bench.counted.bench.work;
    let version = work.versions[0];
    let link = "-fprofile-instr-generate -fcoverage-mapping -Wl,--build-id=none";
    work.write("old.cpp", b"int pick(int a) { return a; }\nint main(int c, char **) { return pick(c) - 1; }\n");
    work.write("new.cpp", b"int pick(int a) { return a ? a : 2; }\nint main(int c, char **) { return pick(c) - 1; }\n");
    work.run(&format!(
        "for n in old new; do cp $n.cpp same.cpp; clang++-{version} {link} same.cpp -o $n; done; LLVM_PROFILE_FILE=x.profraw ./old"
    ));
    let run = bench.profile("report new --profile x.profraw");
    assert_eq!(run.code, Some(0), "{}", run.error);
    assert!(run.error.contains("[HS0457]") && run.error.contains("_Z4picki"), "{}", run.error);
    assert!(!run.error.contains("HS0003"), "{}", run.error);
    assert_eq!(bench.profile("report new --profile x.profraw --strict").code, Some(13));
}

/// A unit that does not use an inline function of a header has a map of it without counts: nothing is stale. One that changed
/// is named all the same, in host and device code.
#[test]
fn inline_functions_that_a_unit_does_not_use_are_not_stale() {
    let Some(bench) = ReportBench::new("reports of unused inline functions") else { return };
    let work = &bench.counted.bench.work;
    let version = work.versions[0];
    work.write("twice.h", b"__host__ __device__ inline int twice(int a) { return a < 9 ? 2 * a : a; }\n");
    work.write("uses.hip", b"#include <hip/hip_runtime.h>\n#include \"twice.h\"\n__global__ void kernel(int *p) { p[0] = twice(p[0]); }\nint used(int a) { return twice(a); }\n");
    work.write("main.hip", b"#include <hip/hip_runtime.h>\n#include \"twice.h\"\n#include <cstdio>\nint used(int);\n__global__ void kernel(int *);\n__global__ void own(int *p) { p[1] = 1; }\nint main() { int *p; hipMalloc(&p, 64); own<<<1, 64>>>(p); kernel<<<1, 64>>>(p); hipDeviceSynchronize(); printf(\"done\\n\"); return used(2) - 4; }\n");
    for order in ["uses.hip main.hip", "main.hip uses.hip"] {
        let directory = order.split('.').next().expect("a name").to_owned();
        bench.counted.program(version, "gfx1030", order, &format!("{directory}.out"));
        bench.counted.run(&directory, "gfx1030", "p.profraw", &format!("$B/{directory}.out")).passed();
        let (report, error) = bench.report(&format!("{directory}.out --profile {directory}"));
        assert!(!error.contains("HS0457") && !error.contains("HS0003"), "{order}: {error}");
        let found = counts(&report, "twice", "twice.h");
        assert_eq!(found, expected(&[("host", "1"), ("gfx1030", "64")]), "{order}: {error}");
        let strict = bench.profile(&format!("report {directory}.out --profile {directory} --strict"));
        assert_eq!(strict.code, Some(0), "{order}: {}", strict.error);
        // The code object of `main.hip` has a map of the function, and a merged profile has counts of that name.
        bench.profile(&format!("merge {directory} -o {directory}.profdata"));
        let merged = bench.profile(&format!("report {directory}.out --profile {directory}.profdata"));
        assert!(merged.code == Some(0) && !merged.error.contains("HS0457"), "{order}: {}", merged.error);
    }
}

/// One that changed is named all the same.
#[test]
fn inline_functions_that_changed_are_named_although_a_unit_does_not_use_them() {
    let Some(bench) = ReportBench::new("reports of changed inline functions") else { return };
    let work = &bench.counted.bench.work;
    let version = work.versions[0];
    work.write("uses.cpp", b"#include \"once.h\"\nint used(int a) { return once(a); }\n");
    work.write("main.cpp", b"#include \"once.h\"\nint used(int);\nint main() { return used(0); }\n");
    let clang = format!("clang++-{version} -fprofile-instr-generate -fcoverage-mapping -Wl,--build-id=none");
    for (program, text) in [("old", "a"), ("new", "a ? a : 0")] {
        work.write("once.h", format!("inline int once(int a) {{ return {text}; }}\n").as_bytes());
        work.run(&format!("{clang} main.cpp uses.cpp -o {program}; LLVM_PROFILE_FILE={program}.profraw ./{program}"));
        let own = bench.profile(&format!("report {program} --profile {program}.profraw --strict"));
        assert_eq!((own.code, own.error.as_str()), (Some(0), ""), "{program}");
    }
    let run = bench.profile("report new --profile old.profraw");
    assert!(run.error.contains("[HS0457]") && run.error.contains("_Z4oncei"), "{}", run.error);
}

/// Sources that are elsewhere are found by a map, or reported.
#[test]
fn sources_of_another_place_are_found_or_reported() {
    let Some(bench) = ReportBench::new("reports with maps of paths") else { return };
    let work = &bench.counted.bench.work;
    let version = work.versions[0];
    work.run(&format!(
        "mkdir src skipped && echo 'int main() {{ return 0; }} // text' >src/a.cpp && cp src/a.cpp skipped/b.cpp && sed -i s/main/more/ skipped/b.cpp
         clang++-{version} -fprofile-instr-generate -fcoverage-mapping -fcoverage-prefix-map=$PWD=/build src/a.cpp skipped/b.cpp -o app
         LLVM_PROFILE_FILE=x.profraw ./app"
    ));
    let lost = bench.profile("report app --profile x.profraw --lines");
    assert!(lost.error.contains("2 of 2 sources are not there"), "{}", lost.error);
    let found =
        bench.profile("report app --profile x.profraw --lines --path-map /build=$PWD --ignore-filename-regex skipped/");
    assert_eq!((found.code, found.error.as_str()), (Some(0), ""), "{}", found.output);
    assert!(
        found.output.contains("main() { return 0; } // text") && !found.output.contains("more"),
        "{}",
        found.output
    );
    let relative = bench.profile("report app --profile x.profraw --lines --path-map /build/= --source-dir $PWD");
    assert!(
        relative.error.is_empty() && relative.output.contains("// text"),
        "{}\n{}",
        relative.output,
        relative.error
    );
}

/// The userland has no `mount`.
const HIDE_PROC: &str = r#"import ctypes, os, sys
assert ctypes.CDLL(None).mount(b"none", b"/proc", b"tmpfs", 0, None) == 0
os.execvp("sh", ["sh", "-c", sys.argv[1]])
"#;

/// A chroot of a build service may have no `/proc`: through it files get their names, and programs know where they are.
#[test]
fn a_root_directory_without_proc_has_reports() {
    const TEST: &str = "reports without /proc";
    let Some(bench) = ReportBench::new(TEST) else { return };
    let work = &bench.counted.bench.work;
    // In a changed root directory, which is in a private namespace already, the propagation of `/` cannot be set.
    let kept = if work.shell("unshare -m true").status.success() { "" } else { "--propagation unchanged" };
    work.write("hide.py", HIDE_PROC.as_bytes());
    let hidden = format!("unshare -m {kept} python3 hide.py '");
    if !work.shell(&format!("{hidden} ! ls /proc/self >&2'")).status.success() {
        return hotswap_userland::skip(TEST, "/proc cannot be hidden here");
    }
    let version = work.versions[0];
    work.write("one.cpp", b"int main() { return 0; }\n");
    work.run(&format!(
        "clang++-{version} -fprofile-instr-generate -fcoverage-mapping one.cpp -o one && LLVM_PROFILE_FILE=x.profraw ./one"
    ));
    let hotswap = &bench.hotswap;
    for words in [
        "report one --profile x.profraw",
        "report one --profile x.profraw --html pages",
        "merge x.profraw -o x.profdata",
    ] {
        let run = bench.counted.bench.script("", &format!("{hidden} {hotswap} profile {words}'"));
        assert_eq!((run.code, run.error.as_str()), (Some(0), ""), "{words}: {}", run.output);
    }
    assert!(work.path("pages/index.html").exists() && work.path("x.profdata").exists());
}
