//! The coverage report of host and several GPUs: nothing is lost where texts differ, and the figures of one target are
//! those of llvm-cov.

use hotswap_profile_bench::ProfileBench;
use serde_json::Value;

/// Shell: `report WORDS…` for the program and the profiles of a version.
fn report(bench: &ProfileBench, version: u32, words: &str) -> String {
    let prefix = std::env::var("HOTSWAP_TEST_PREFIX").expect("the tests run with an installation");
    bench.work.run(&format!(
        "SOURCE_DATE_EPOCH=0 {prefix}/bin/hotswap profile report app-{version} --profile run-{version} \
         --llvm-bin /usr/lib/llvm-{version}/bin {words}"
    ))
}

/// Builds for two GPUs and runs on both.
fn run(bench: &ProfileBench, version: u32, source: &str) {
    run_with(bench, version, source, "");
}

/// The same with further variables for the stand-in and MC/DC.
fn run_with(bench: &ProfileBench, version: u32, source: &str, variables: &str) {
    let mcdc = if variables.is_empty() { "" } else { "-fcoverage-mcdc" };
    let prefix = std::env::var("HOTSWAP_TEST_PREFIX").expect("the tests run with an installation");
    bench.work.run(&format!(
        "export HOTSWAP_CLANG=/usr/bin/clang++-{version} XDG_CACHE_HOME=$PWD/cache; [ {version} = 22 ] && ROCM=
         {prefix}/bin/hotswap-clang++ -nogpulib -nogpuinc -I. -O1 ${{ROCM:+--rocm-path=$ROCM}} \
         -fprofile-instr-generate -fcoverage-mapping {mcdc} --offload-arch=gfx90a,gfx1030 -x hip {source} \
         -x none -lamdhip64 -o app-{version}"
    ));
    let ran = bench.start(
        &format!("run-{version}"),
        &format!("STANDIN_AGENTS=2 STANDIN_PROCESSOR=gfx90a,gfx1030 {variables}"),
        &format!("$B/app-{version}"),
    );
    assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "clang {version}");
    assert_eq!(ran.files.len(), 3, "clang {version}: {:?}", ran.files);
}

/// The counts before the line that contains `text`: host, gfx1030, gfx90a.
fn counts<'l>(listing: &'l str, text: &str) -> Vec<&'l str> {
    let line = listing.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text}: {listing}"));
    line.split('|').skip(1).take(3).map(str::trim).collect()
}

#[test]
fn texts_that_differ_are_each_in_the_report() {
    let Some(bench) = ProfileBench::new("coverage of several targets") else { return };
    for &version in &bench.work.versions {
        run(&bench, version, "coverage.hip");
        let listing = report(&bench, version, "--lines");
        // llvm-cov shows the host's text alone, or that of one GPU: the first would be 0, the others blank.
        let ran =
            |text: &str| counts(&listing, text).iter().map(|count| !["", "0"].contains(count)).collect::<Vec<_>>();
        assert_eq!(ran("// device"), [false, true, true], "clang {version}: {listing}");
        assert_eq!(ran("// gfx90a"), [false, false, true], "clang {version}: {listing}");
        assert_eq!(ran("// gfx1030"), [false, true, false], "clang {version}: {listing}");
        assert_eq!(counts(&listing, "// host"), ["0", "", ""], "clang {version}: {listing}");
        let functions = report(&bench, version, "--functions");
        let pick =
            functions.lines().find(|line| line.starts_with("pick(int)")).unwrap_or_else(|| panic!("{functions}"));
        assert!(pick.split_whitespace().rev().take(2).all(|count| count != "0" && count != "-"), "{functions}");
    }
}

#[test]
fn figures_of_one_target_are_those_of_llvm_cov() {
    let Some(bench) = ProfileBench::new("coverage figures") else { return };
    for &version in &bench.work.versions {
        run(&bench, version, "coverage.hip");
        bench.work.run(&format!(
            "llvm-objcopy-{version} --dump-section=.hip_fatbin=fat app-{version}
             for gpu in gfx90a gfx1030; do
               target=$(clang-offload-bundler-{version} --list --type=o --input=fat | grep $gpu)
               clang-offload-bundler-{version} --unbundle --type=o --input=fat --targets=$target --output=$gpu.co
               llvm-profdata-{version} merge run-{version}/$gpu.*.profraw -o $gpu.profdata
               llvm-cov-{version} export --summary-only --instr-profile=$gpu.profdata $gpu.co >$gpu.json
             done
             llvm-profdata-{version} merge run-{version}/default.profraw -o host.profdata
             llvm-cov-{version} export --summary-only --instr-profile=host.profdata app-{version} >host.json"
        ));
        let all: Value = serde_json::from_str(&report(&bench, version, "--format json")).unwrap();
        assert_eq!(all["targets"].as_array().map(Vec::len), Some(3), "{all}");
        for (number, name) in ["host", "gfx1030", "gfx90a"].into_iter().enumerate() {
            let json = std::fs::read(bench.work.path(&format!("{name}.json"))).unwrap();
            let llvm: Value = serde_json::from_slice(&json).unwrap();
            let alone = report(&bench, version, &format!("--format json --target {name}"));
            let alone: Value = serde_json::from_str(&alone).unwrap();
            for figure in ["functions", "lines", "regions", "branches"] {
                let of_llvm = &llvm["data"][0]["totals"][figure];
                for ours in [&all["by_target"][number][figure], &alone["totals"][figure]] {
                    let places = format!("clang {version}, {name}, {figure}");
                    assert_eq!(
                        [&ours["count"], &ours["covered"]],
                        [&of_llvm["count"], &of_llvm["covered"]],
                        "{places}"
                    );
                }
            }
            same_lines(&bench, version, name);
        }
    }
}

/// Where host and GPUs have one text for each function, llvm-cov's joint report loses nothing: the union is the same.
#[test]
fn the_union_of_equal_texts_is_that_of_llvm_cov() {
    let Some(bench) = ProfileBench::new("coverage of equal texts") else { return };
    for &version in &bench.work.versions {
        run(&bench, version, "saxpy.hip");
        let totals = joint_totals(&bench, version);
        let ours: Value = serde_json::from_str(&report(&bench, version, "--format json")).unwrap();
        assert_eq!(ours["targets"].as_array().map(Vec::len), Some(3), "clang {version}: {ours}");
        for figure in ["functions", "lines", "regions", "branches"] {
            same_figure(&ours["totals"], &totals, figure, version);
        }
    }
}

/// Test vectors of host and GPUs show together what none of them shows alone; llvm-cov finds it in the merged bitmaps.
#[test]
fn conditions_are_covered_by_vectors_of_several_targets() {
    let Some(bench) = ProfileBench::new("coverage of conditions") else { return };
    for &version in &bench.work.versions {
        run_with(&bench, version, "conditions.hip", "STANDIN_PATCH=__profbm__Z6decidei+0/1=2");
        let totals = joint_totals(&bench, version);
        let ours: Value = serde_json::from_str(&report(&bench, version, "--format json")).unwrap();
        same_figure(&ours["totals"], &totals, "mcdc", version);
        let covered = |figures: &Value| figures["mcdc"]["covered"].as_u64().unwrap();
        let alone: Vec<u64> = ours["by_target"].as_array().unwrap().iter().map(covered).collect();
        assert!(alone.iter().all(|one| *one < covered(&ours["totals"])), "clang {version}: {ours}");
    }
}

fn same_figure(ours: &Value, llvm: &Value, figure: &str, version: u32) {
    let (own, other) = (&ours[figure], &llvm[figure]);
    let named = format!("clang {version}, {figure}");
    assert_eq!([&own["count"], &own["covered"]], [&other["count"], &other["covered"]], "{named}");
}

/// llvm-cov's figures of one report for host and GPUs.
fn joint_totals(bench: &ProfileBench, version: u32) -> Value {
    bench.work.run(&format!(
        "llvm-objcopy-{version} --dump-section=.hip_fatbin=fat app-{version}
             for gpu in gfx90a gfx1030; do
               target=$(clang-offload-bundler-{version} --list --type=o --input=fat | grep $gpu)
               clang-offload-bundler-{version} --unbundle --type=o --input=fat --targets=$target --output=$gpu.co
             done
             llvm-profdata-{version} merge run-{version}/*.profraw -o all.profdata
             llvm-cov-{version} export --summary-only --instr-profile=all.profdata app-{version} -object gfx90a.co \
               -object gfx1030.co >all.json"
    ));
    let llvm: Value = serde_json::from_slice(&std::fs::read(bench.work.path("all.json")).unwrap()).unwrap();
    llvm["data"][0]["totals"].clone()
}

/// The listing of one target is that of llvm-cov, line by line.
fn same_lines(bench: &ProfileBench, version: u32, target: &str) {
    let file = if target == "host" { format!("app-{version}") } else { format!("{target}.co") };
    let llvm = bench.work.run(&format!("llvm-cov-{version} show --instr-profile={target}.profdata {file}"));
    let ours = report(bench, version, &format!("--lines --target {target}"));
    let lines = |text: &str| -> Vec<String> {
        let numbered = text.lines().filter(|line| line.trim_start().starts_with(|first: char| first.is_ascii_digit()));
        numbered.filter(|line| line.contains('|')).map(|line| line.trim_end().to_owned()).collect()
    };
    // The stand-in's counts make differences below zero, which the export ends at the largest signed number. llvm-cov
    // repeats the lines of a template for each instance, with other indents.
    let largest = |line: String| line.replace(" 18.4E|", " 9.22E|");
    let theirs = lines(&llvm).into_iter().filter(|line| !line.starts_with("  |")).map(largest);
    assert_eq!(lines(&ours), theirs.collect::<Vec<_>>());
}

#[test]
fn other_tools_read_the_report() {
    let Some(bench) = ProfileBench::new("coverage forms") else { return };
    let version = bench.work.versions[0];
    run(&bench, version, "coverage.hip");
    std::fs::write(bench.work.path("cobertura.xml"), report(&bench, version, "--format cobertura")).unwrap();
    // The order of elements is that of the document type; attributes with fractions are numbers.
    bench.work.run(
        "python3 - <<'END'
import xml.etree.ElementTree as tree
root = tree.parse('cobertura.xml').getroot()
assert [child.tag for child in root] == ['sources', 'packages'], root
lines = root.findall('./packages/package/classes/class/lines/line')
hit = [int(line.get('number')) for line in lines if int(line.get('hits'))]
assert len(hit) == int(root.get('lines-covered')) and len(lines) == int(root.get('lines-valid')), (hit, root.attrib)
assert abs(float(root.get('line-rate')) - len(hit) / len(lines)) < 1e-3
branches = [line.get('condition-coverage').split('(')[1].strip(')').split('/') for line in lines if line.get('branch')]
sums = [sum(int(branch[place]) for branch in branches) for place in (0, 1)]
assert sums == [int(root.get('branches-covered')), int(root.get('branches-valid'))] and sums[1], (sums, root.attrib)
END",
    );
    let lcov = report(&bench, version, "--format lcov");
    let of = |key: &str| lcov.lines().filter(|line| line.starts_with(key)).count();
    let number = |key: &str| -> usize {
        lcov.lines().filter_map(|line| line.strip_prefix(key)).map(|count| count.parse::<usize>().unwrap()).sum()
    };
    assert_eq!((of("DA:"), of("FN:"), of("BRDA:")), (number("LF:"), number("FNF:"), number("BRF:")), "{lcov}");
    assert!(lcov.ends_with("end_of_record\n") && lcov.contains("coverage.hip"), "{lcov}");
    let markdown = report(&bench, version, "--format markdown");
    assert!(markdown.contains("| host | gfx1030 | gfx90a |") && markdown.contains("| **all** |"), "{markdown}");
    report(&bench, version, "--html pages");
    let page = std::fs::read_to_string(bench.work.path("pages/index.html")).unwrap();
    assert!(page.contains("1970-01-01 00:00 UTC") && page.contains("pick(int)"), "{page}");
    bench
        .work
        .run("python3 -c \"import html.parser, sys; html.parser.HTMLParser().feed(open('pages/file-0.html').read())\"");
}

#[test]
fn too_little_coverage_is_an_error() {
    let Some(bench) = ProfileBench::new("coverage thresholds") else { return };
    let version = bench.work.versions[0];
    run(&bench, version, "coverage.hip");
    assert!(report(&bench, version, "--fail-under 50").contains("TOTAL"));
    let low = report(&bench, version, "--fail-under 99.5 2>&1 || echo ? $?");
    assert!(low.contains("[HS0420]") && low.contains("? 13"), "{low}");
    for threshold in ["nan", "-1", "101", "x"] {
        let refused = report(&bench, version, &format!("--fail-under={threshold} 2>&1 || echo ? $?"));
        assert!(refused.contains("no number from 0 to 100") && refused.contains("? 2"), "{threshold}: {refused}");
    }
    let missing = report(&bench, version, "--format annotations 2>&1 || echo ? $?");
    assert!(missing.contains("name a revision with --diff") && missing.contains("? 2"), "{missing}");
}
