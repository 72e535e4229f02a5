//! From source to report with the installed tools: hotswap-clang++, CMake, `hotswap profile`, on the stand-ins.

use hotswap_profile_bench::ProfileBench;
use std::path::Path;

const EXAMPLE: &[(&str, &str)] = &[
    ("CMakeLists.txt", include_str!("../../../examples/pgo/CMakeLists.txt")),
    ("clamp.hip", include_str!("../../../examples/pgo/clamp.hip")),
];

/// Shell: `$P` is the installation, `$V` the version of LLVM, `X` compiles HIP through it.
fn set_up(version: u32) -> String {
    let prefix = std::env::var("HOTSWAP_TEST_PREFIX").expect("the tests run with an installation");
    format!(
        "set -e; P={prefix} V={version}; export HOTSWAP_CLANG=/usr/bin/clang++-$V XDG_CACHE_HOME=$PWD/cache
        [ $V = 22 ] && ROCM=
        X() {{ $P/bin/hotswap-clang++ -nogpulib -nogpuinc -I. -O1 ${{ROCM:+--rocm-path=$ROCM}} \"$@\" -x none -lamdhip64; }}
        profile() {{ $P/bin/hotswap profile \"$@\" --llvm-bin /usr/lib/llvm-$V/bin; }}\n"
    )
}

fn script(bench: &ProfileBench, version: u32, text: &str) -> String {
    bench.work.run(&format!("{}{text}", set_up(version)))
}

/// The line of a table that contains that text.
fn line<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines()
        .find(|line| line.contains(word))
        .unwrap_or_else(|| panic!("no {word}: {text}"))
        .split_whitespace()
        .collect()
}

const COVERAGE: &str = "-fprofile-instr-generate -fcoverage-mapping --offload-arch=gfx90a";

#[test]
fn host_and_device_are_in_one_report() {
    let Some(bench) = ProfileBench::new("profile tools") else { return };
    for &version in &bench.work.versions {
        let (app, run) = (format!("app-{version}"), format!("run-{version}"));
        script(&bench, version, &format!("X {COVERAGE} -x hip saxpy.hip -o {app}"));
        let ran = bench.start(&run, "STANDIN_AGENTS=2", &format!("$B/{app}"));
        assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "clang {version}");
        assert_eq!((ran.devices().len(), ran.files.len()), (2, 3), "clang {version}: {:?}", ran.files);

        let shown = script(&bench, version, &format!("profile show {run}"));
        let raw = if version == 22 { "10" } else { "11" };
        let row = line(&shown, &format!("{run}/default.profraw"));
        assert_eq!(row[1..3], ["host", raw], "{shown}");
        assert_eq!(shown.matches("gfx90a").count(), 4, "{shown}");

        let json = script(&bench, version, &format!("profile show {run} --target gfx90a --format json"));
        assert!(json.contains("\"functions\": 3") && !json.contains("\"host\""), "{json}");

        let merged = script(
            &bench,
            version,
            &format!("profile merge {run} -o {run}.profdata; profile show {run}.profdata --functions"),
        );
        assert!(merged.contains("_Z5saxpyifPKfPf") && merged.contains("main"), "{merged}");

        let report = script(&bench, version, &format!("profile report {app} --profile {run}"));
        assert!(report.starts_with(&format!("coverage of host of {app}, gfx90a")), "{report}");
        // All lines were executed, according to the stand-in.
        assert_eq!(line(&report, "saxpy.hip")[6], "100.00%", "{report}");
        let device = script(&bench, version, &format!("profile report {app} --profile {run} --target gfx90a"));
        assert!(device.starts_with("coverage of gfx90a"), "{device}");
        // Without the devices' profiles the kernels are not executed.
        let lines = script(&bench, version, &format!("profile report {app} --profile {run} --lines"));
        assert!(lines.contains("return factor * value"), "{lines}");
        let json = script(&bench, version, &format!("profile report {app} --profile {run} --format json"));
        assert!(json.contains("\"schema\": 2") && json.contains("\"target\": \"gfx90a"), "{json}");
        script(
            &bench,
            version,
            &format!("profile report {app} --profile {run} --html html-{version}; test -s html-{version}/index.html"),
        );
    }
}

#[test]
fn a_merged_profile_beside_raw_ones_is_not_counted_twice() {
    let Some(bench) = ProfileBench::new("profile tools, merged beside raw") else { return };
    let newest = *bench.work.versions.last().expect("there is a compiler");
    script(&bench, newest, &format!("X {COVERAGE} -x hip saxpy.hip -o app"));
    let ran = bench.start("run", "", "$B/app");
    assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""));
    let report = "profile report app --profile run --functions 2>&1";
    let alone = script(&bench, newest, report);
    script(&bench, newest, "profile merge run -o run/all.profdata");
    let counts = "profile show run/all.profdata --functions";
    let once = script(&bench, newest, counts);
    let again = script(&bench, newest, "profile merge run -o run/all.profdata 2>&1");
    assert!(again.contains("HS0309") && again.contains("are left out: run/all.profdata"), "{again}");
    assert_eq!(script(&bench, newest, counts), once);
    let beside = script(&bench, newest, report);
    assert!(beside.starts_with(&alone) && beside.contains("are left out: run/all.profdata"), "{alone}\n{beside}");
    // Named itself, or without raw ones, it is read.
    script(&bench, newest, "mkdir other; cp run/all.profdata other");
    assert!(!script(&bench, newest, "profile report app --profile other --functions 2>&1").contains("left out"));
}

/// Merges these files and directories into `sum.profdata`, and returns its functions with their counters. What `profile`
/// said is in `said`.
fn merged_counters(bench: &ProfileBench, files: &str) -> String {
    let version = *bench.work.versions.last().expect("there is a compiler");
    let merge = format!("profile merge {files} -o sum.profdata >said 2>&1");
    script(bench, version, &format!("{merge}; profile show sum.profdata --functions"))
}

#[test]
fn merged_profiles_are_left_out_only_in_directories_that_have_raw_ones() {
    let Some(bench) = ProfileBench::new("profile tools, merged in another directory") else { return };
    let newest = *bench.work.versions.last().expect("there is a compiler");
    script(&bench, newest, &format!("X {COVERAGE} -x hip saxpy.hip -o app"));
    let ran = bench.start("run", "", "$B/app");
    assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""));
    script(&bench, newest, "mkdir merged; profile merge run -o merged/all.profdata");
    let once = merged_counters(&bench, "run");
    let twice = merged_counters(&bench, "run/*.profraw merged/all.profdata");
    assert_ne!(once, twice);
    for files in ["run merged", "merged run"] {
        assert_eq!(merged_counters(&bench, files), twice, "{files}");
        assert!(!bench.work.run("cat said").contains("left out"), "{files}");
    }
    // A directory that is named is one with those in it, whichever of them has the merged profile.
    for (named, raw, sum) in [("t", "t/raw", "t"), ("u", "u", "u/merged"), ("v", "v/raw", "v/merged")] {
        script(&bench, newest, &format!("mkdir -p {raw} {sum}; cp run/*.profraw {raw}; cp merged/all.profdata {sum}"));
        for (files, counters) in [(named.to_owned(), &once), (format!("{named} merged"), &twice)] {
            assert_eq!(&merged_counters(&bench, &files), counters, "{files}");
            let said = bench.work.run("cat said");
            assert!(said.contains(&format!("are left out: {sum}/all.profdata")), "{files}: {said}");
        }
    }
}

#[test]
fn what_llvm_would_reject_is_refused_by_name() {
    let Some(bench) = ProfileBench::new("profile tools, bad input") else { return };
    let version = bench.work.versions[0];
    script(
        &bench,
        version,
        &format!(
            "X {COVERAGE} -x hip saxpy.hip -o app; X -fprofile-generate --offload-arch=gfx90a -x hip saxpy.hip -o ir; X --offload-arch=gfx90a -x hip saxpy.hip -o plain"
        ),
    );
    bench.start("good", "", "$B/app");
    bench.start("other", "", "$B/ir");
    script(&bench, version, "mkdir cut none; head -c 200 good/default.profraw >cut/a.profraw; : >none/empty.profraw");
    for (words, exit, text) in [
        ("merge good cut -o x", 12, "cut/a.profraw"),
        ("merge none/empty.profraw -o x", 12, "the file is empty"),
        ("merge absent -o x", 14, "absent"),
        ("merge html -o x", 14, "html"),
        ("merge good/*.profraw other -o x", 12, "optimiser"),
        ("merge good -o x --target gfx1030", 12, "no profile of gfx1030"),
        ("report plain --profile good", 12, "no code with a coverage map"),
        ("report absent --profile good", 14, "absent"),
        ("show app", 12, "it is not a raw profile"),
    ] {
        let said = script(&bench, version, &format!("profile {words} 2>&1 && echo ? 0 || echo ? $?"));
        assert!(said.contains(text) && said.trim().ends_with(&format!("? {exit}")), "{words}: {said}");
        assert!(!bench.work.path("x").exists(), "{words}");
    }
    // Raw profiles of one LLVM are not passed to another.
    if bench.work.versions.contains(&23) {
        let said = script(
            &bench,
            23,
            "$P/bin/hotswap profile merge good -o x --llvm-bin /usr/lib/llvm-23/bin 2>&1 || echo ? $?",
        );
        assert!(
            said.contains("has version 10, which LLVM 20 to 22 read; at hand is LLVM 23") && said.contains("? 10"),
            "{said}"
        );
    }
}

/// The change of a sound profile, and what is said of it.
struct DamagedProfile {
    name: &'static str,
    change: fn(Vec<u8>) -> Vec<u8>,
    said: &'static str,
}

const DAMAGED: &[DamagedProfile] = &[
    DamagedProfile {
        name: "of a later version",
        change: set_later_version,
        said: "version 99 of raw profiles is not known",
    },
    DamagedProfile {
        name: "of a machine with the other byte order",
        change: reverse_magic,
        said: "it is not a raw profile",
    },
    DamagedProfile { name: "with more counters than bytes", change: set_many_counters, said: "ends too early" },
    DamagedProfile { name: "with sizes beyond all numbers", change: set_huge_sizes, said: "ends too early" },
    DamagedProfile { name: "with text behind it", change: append_text, said: "it is not a raw profile" },
    DamagedProfile { name: "of zeros", change: fill_with_zeros, said: "it is not a raw profile" },
];

fn set_later_version(mut profile: Vec<u8>) -> Vec<u8> {
    profile[8] = 99;
    profile
}

fn reverse_magic(mut profile: Vec<u8>) -> Vec<u8> {
    profile[..8].reverse();
    profile
}

/// The word with the number of counters follows those of the binary IDs and the records.
fn set_many_counters(mut profile: Vec<u8>) -> Vec<u8> {
    profile[5 * 8 + 3] = 1;
    profile
}

fn set_huge_sizes(mut profile: Vec<u8>) -> Vec<u8> {
    profile[2 * 8..10 * 8].fill(0x7f);
    profile
}

fn append_text(mut profile: Vec<u8>) -> Vec<u8> {
    profile.extend(b"this is no profile");
    profile
}

fn fill_with_zeros(mut profile: Vec<u8>) -> Vec<u8> {
    profile.fill(0);
    profile
}

/// Each damage is told by the name of the file, beside a sound profile, too, and nothing is written.
#[test]
fn damage_of_every_kind_is_refused_by_name() {
    let Some(bench) = ProfileBench::new("profile tools, damage") else { return };
    let version = bench.work.versions[0];
    script(&bench, version, &format!("X {COVERAGE} -x hip saxpy.hip -o app"));
    bench.start("good", "", "$B/app");
    bench.work.run("mkdir damaged directory.profraw; ln -s nowhere dangling.profraw");
    let sound = bench.work.read("good/default.profraw");
    for DamagedProfile { name, change, said } in DAMAGED {
        bench.work.write("damaged/a.profraw", &change(sound.clone()));
        for words in ["merge damaged -o x", "merge good damaged -o x", "show damaged", "report app --profile damaged"] {
            let text = script(&bench, version, &format!("profile {words} 2>&1 && echo '? 0' || echo '?' $?"));
            let is_told = text.contains("damaged/a.profraw") && text.contains(said) && text.trim().ends_with("? 12");
            assert!(is_told && !bench.work.path("x").exists(), "{name}, {words}: {text}");
        }
    }
    for (words, said, exit) in [
        ("merge directory.profraw -o x", "directory.profraw: no profile or coverage map was found", 12),
        ("merge dangling.profraw -o x", "dangling.profraw", 14),
    ] {
        let text = script(&bench, version, &format!("profile {words} 2>&1 && echo '? 0' || echo '?' $?"));
        assert!(text.contains(said) && text.trim().ends_with(&format!("? {exit}")), "{words}: {text}");
    }
}

#[test]
fn empty_profiles_are_left_out_and_damaged_ones_on_request() {
    let Some(bench) = ProfileBench::new("profile tools, empty and damaged profiles") else { return };
    let version = bench.work.versions[0];
    script(&bench, version, &format!("X {COVERAGE} -x hip saxpy.hip -o app"));
    bench.start("good", "", "$B/app");
    let newest = "head -c 200 good/default.profraw >cut/cut.profraw";
    script(
        &bench,
        version,
        &format!(
            "mkdir empty cut bad; cp good/*.profraw empty; cp good/*.profraw cut; {newest}; cp cut/cut.profraw bad
            : >empty/a.profraw; : >empty/b.profraw"
        ),
    );
    for (words, exit, text) in [
        ("merge empty -o x", 0, "2 files are empty and left out"),
        ("show empty", 0, "2 files are empty and left out"),
        ("show empty --functions", 0, "2 files are empty and left out"),
        ("report app --profile empty", 0, "2 files are empty and left out"),
        ("merge empty/a.profraw good -o x", 0, "the file is empty and left out"),
        ("merge empty/?.profraw -o x", 12, "the file is empty"),
        ("merge cut -o x", 12, "the file ends too early"),
        ("merge cut -o x --failure-mode any", 12, "the file ends too early"),
        ("merge cut -o x --failure-mode all", 0, "left out, as --failure-mode says"),
        ("merge cut -o x --failure-mode=warn", 0, "left out, as --failure-mode says"),
        ("report app --profile cut --failure-mode=all", 0, "100.00%"),
        ("show cut --failure-mode=all", 0, "gfx90a"),
        ("merge bad -o x --failure-mode all", 12, "no profile is sound"),
        ("merge bad -o x --failure-mode warn", 12, "no profile is sound"),
        ("merge cut -o x --failure-mode none", 2, "--failure-mode"),
    ] {
        let said = script(&bench, version, &format!("rm -f x; profile {words} 2>&1 && echo '? 0' || echo '?' $?"));
        assert!(said.contains(text) && said.trim().ends_with(&format!("? {exit}")), "{words}: {said}");
        assert_eq!(bench.work.path("x").exists(), exit == 0 && words.contains("-o x"), "{words}");
        if exit == 0 && words.contains("-o x") {
            let counts = script(&bench, version, "llvm-profdata-$V show --all-functions --counts x");
            assert!(counts.contains("_Z5saxpyifPKfPf"), "{words}: {counts}");
        }
    }
}

#[test]
fn profiles_of_several_llvms_become_one() {
    let Some(bench) = ProfileBench::new("profile tools, several LLVMs") else { return };
    for &version in &bench.work.versions {
        script(&bench, version, &format!("X {COVERAGE} -x hip saxpy.hip -o app-{version}"));
        bench.start(&format!("run-{version}"), "", &format!("$B/app-{version}"));
    }
    let directories: Vec<String> = bench.work.versions.iter().map(|version| format!("run-{version}")).collect();
    let newest = bench.work.versions[bench.work.versions.len() - 1];
    let merged = format!(
        "$P/bin/hotswap profile merge {} -o all.profdata; llvm-profdata-{newest} show --all-functions --counts all.profdata",
        directories.join(" ")
    );
    let said = script(&bench, newest, &merged);
    let counts =
        said.lines().skip_while(|line| !line.contains("_Z5scaleff")).find(|line| line.contains("Block counts"));
    let launches = bench.work.versions.len();
    assert!(counts.is_some_and(|line| line.contains(&format!("[{}]", 101 * launches))), "{counts:?}\n{said}");
}

#[test]
fn the_example_shows_what_the_device_executed() {
    let Some(bench) = ProfileBench::new("examples/pgo") else { return };
    bench.work.run("mkdir example");
    for (name, text) in EXAMPLE {
        bench.work.write(&Path::new("example").join(name).display().to_string(), text.as_bytes());
    }
    // HIP's own headers take long: one clang, the others build projects in the tests of CMake.
    for &version in bench.work.versions.iter().take(1) {
        let flags = "${ROCM:+-DCMAKE_HIP_FLAGS=--rocm-path=$ROCM}";
        let build = format!("cmake -G Ninja -S example -B b-{version} -DCMAKE_PREFIX_PATH=$P {flags}");
        script(
            &bench,
            version,
            &format!("{build} >log 2>&1 && cmake --build b-{version} >log 2>&1 || {{ cat log; exit 1; }}"),
        );
        let ran = bench.start(&format!("run-{version}"), "", &format!("$B/b-{version}/clamp"));
        assert_eq!((ran.code, ran.error.as_str()), (Some(0), ""), "clang {version}");
        let report = script(
            &bench,
            version,
            &format!("profile report b-{version}/clamp --profile b-{version}/clamp.profraw --target gfx90a --lines"),
        );
        assert!(report.contains("return high +"), "{report}");
        let row = line(&report, "return low");
        assert!(row.iter().any(|cell| cell.starts_with("10")), "{report}");
        script(&bench, version, &format!("cmake --build b-{version} --target clamp-profdata >log 2>&1 || {{ cat log; exit 1; }}
            {build} -DPROFILE=use -DPROFDATA=$PWD/b-{version}/clamp.profdata >log 2>&1 && cmake --build b-{version} >log 2>&1 || {{ cat log; exit 1; }}"));
    }
}
