//! Ordinary programs: the counts of their device code are in files that LLVM reads, whichever clang built them.

use hotswap_profile_bench::{Counts, Instrument, PLUGIN, ProfileBench, Ran, SAXPY, SCRIPT, counts};
use hotswap_userland::in_turn;

#[test]
fn each_gpu_has_its_own_file_with_all_functions() {
    let Some(bench) = ProfileBench::new("profile drain, two GPUs") else { return };
    for &version in &bench.work.versions {
        let program = format!("saxpy-{version}");
        bench.program(version, Instrument::Coverage, "saxpy.hip", &program, true);
        let ran = bench.start(&format!("run-{version}"), "STANDIN_AGENTS=2", &format!("$B/{program}"));
        assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "clang {version}");
        let files = ran.devices();
        let nodes: Vec<bool> = ["n1", "n2"].map(|node| files.iter().any(|file| file.contains(node))).to_vec();
        assert_eq!((files.len(), nodes), (2, vec![true, true]), "clang {version}: {files:?}");
        // GPU 1 was launched once, GPU 2 twice.
        assert_eq!(bench.counts(version, &ran, &files), counts(SAXPY, 3), "clang {version}");
        assert_eq!(bench.counts(version, &ran, &files[..1]), counts(SAXPY, 1), "clang {version}");
        assert!(ran.files.contains(&"default.profraw".to_owned()), "clang {version}: the host's profile is lost");
        coverage_is_complete(&bench, version, &program);
    }
}

/// llvm-cov shows every line of the device code as executed.
fn coverage_is_complete(bench: &ProfileBench, version: u32, program: &str) {
    let report = bench.work.run(&format!(
        "llvm-objcopy-{version} --dump-section=.hip_fatbin=fat {program} && \
         target=$(clang-offload-bundler-{version} --list --type=o --input=fat | grep gfx) && \
         clang-offload-bundler-{version} --unbundle --type=o --input=fat --targets=$target --output=device && \
         llvm-profdata-{version} merge run-{version}/gfx*.profraw -o device.profdata && \
         llvm-cov-{version} report device -instr-profile=device.profdata"
    ));
    let total = report.lines().find(|line| line.starts_with("TOTAL")).unwrap_or_default();
    let words: Vec<&str> = total.split_whitespace().collect();
    // Functions, missed functions, executed; lines, missed lines, cover.
    assert_eq!(words.get(4..7), Some(&["3", "0", "100.00%"][..]), "clang {version}: {report}");
    assert_eq!(words.get(8..10), Some(&["0", "100.00%"][..]), "clang {version}: {report}");
}

/// One run of `script.hip`, and its expected results.
struct Case {
    name: &'static str,
    variables: &'static str,
    words: &'static str,
    files: usize,
    launches: u64,
}

const fn case(name: &'static str, words: &'static str, files: usize, launches: u64) -> Case {
    Case { name, variables: "", words, files, launches }
}

const CASES: &[Case] = &[
    case("nothing is launched", "", 0, 0),
    case("one launch", "launch", 1, 1),
    case("an early call, and launches after it", "drain launch drain launch launch drain drain launch", 1, 4),
    case("a module", "load $B/$P.fat go", 1, 1),
    case("a bare module that is unloaded", "load $B/$P.elf go unload", 1, 1),
    // The runtime may return the same handle and the same address again.
    case(
        "a module that is loaded three times",
        "load $B/$P.elf go unload load $B/$P.elf go go unload load $B/$P.elf go",
        1,
        4,
    ),
    case("two modules of one code", "load $B/$P.elf go load $B/$P.elf go go", 1, 3),
    case("a module and the program's own code are one code", "launch load $B/$P.elf go unload launch", 1, 3),
    case("exit in another thread", "launch thread-exit", 1, 1),
    case("a child that uses the GPU, after which the parent does", "fork launch end launch", 1, 2),
    Case {
        variables: "LLVM_PROFILE_FILE=%p.profraw",
        ..case("a child and a parent have files", "fork launch end launch launch", 2, 3)
    },
    // A parent's GPU state is not a child's: it must not be touched, and the parent's counts belong to the parent.
    Case {
        variables: "LLVM_PROFILE_FILE=%p.profraw",
        ..case("a child of a parent that uses the GPU", "launch fork end launch", 1, 2)
    },
    Case { variables: "STANDIN_ASYNC=1", ..case("work that nobody waited for", "launch launch", 1, 2) },
    Case {
        variables: "STANDIN_ASYNC=1",
        ..case("work that is finished by the unloading", "load $B/$P.elf go sync unload", 1, 1)
    },
    Case { variables: "LLVM_PROFILE_FILE=a/b/%h/x.%p.profraw", ..case("directories are made", "launch", 0, 0) },
    case("_exit is not seen", "launch _exit", 0, 0),
    case("a call before _exit is", "launch drain _exit", 1, 1),
];

#[test]
fn programs_lose_nothing() {
    let Some(bench) = ProfileBench::new("profile drain, programs") else { return };
    for &version in &bench.work.versions {
        let program = format!("script-{version}");
        bench.script(version, Instrument::Coverage, &program, true);
        for (index, case) in CASES.iter().enumerate() {
            let context = format!("clang {version}: {}", case.name);
            let variables = format!("P={program} {}", case.variables);
            let ran =
                bench.start(&format!("run-{version}-{index}"), &variables, &format!("$B/{program} {}", case.words));
            assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "{context}");
            let files = ran.devices();
            assert_eq!(files.len(), case.files, "{context}: {files:?}");
            let expected = if case.files == 0 { Counts::new() } else { counts(SCRIPT, case.launches) };
            assert_eq!(bench.counts(version, &ran, &files), expected, "{context}");
        }
    }
}

#[test]
fn merged_files_hold_the_sum_of_all_runs() {
    let Some(bench) = ProfileBench::new("profile drain, %m") else { return };
    for &version in &bench.work.versions {
        let program = format!("script-{version}");
        bench.script(version, Instrument::Coverage, &program, true);
        let directory = format!("run-{version}");
        bench.work.run(&format!("mkdir {directory}"));
        let run = |words: &str| {
            let ran = bench.again(&directory, "LLVM_PROFILE_FILE=p.%2m.profraw", &format!("$B/{program} {words}"));
            assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "clang {version}: {words}");
            ran
        };
        run("launch");
        run("launch drain drain launch");
        run("");
        run(&format!("load $B/{program}.elf go unload launch"));
        let mut ran = run("fork launch end launch");
        // A pool of two files, by the number of the process.
        assert!((1..=2).contains(&ran.devices().len()), "{:?}", ran.files);
        assert_eq!(bench.counts(version, &ran, &ran.devices()), counts(SCRIPT, 7), "clang {version}");
        // An existing file that is no profile of this code stays.
        for name in ran.devices() {
            bench.work.write(&format!("{directory}/{name}"), b"something else");
        }
        let before = ran.devices().len();
        ran = run("launch");
        assert_eq!(ran.devices().len(), before + 1, "clang {version}: {:?}", ran.files);
    }
}

#[test]
fn libraries_with_a_drain_of_their_own_share_their_state() {
    let Some(bench) = ProfileBench::new("profile drain, libraries") else { return };
    for &version in &bench.work.versions {
        let program = format!("script-{version}");
        let (clang, link) = (bench.clang(version, Instrument::Coverage), ProfileBench::link(true));
        let clang = format!("{clang} -Xlinker --build-id");
        bench.script(version, Instrument::Coverage, &program, true);
        bench.work.run(&format!(
            "{clang} --offload-arch=gfx90a -x hip script.hip {link} -o {program} && \
             {clang} --offload-arch=gfx90a -fPIC -shared -x hip plugin.hip {link} -o plugin.so"
        ));
        let run = |name: &str, variables: &str, words: &str| {
            let ran = bench.start(&format!("{name}-{version}"), variables, &format!("$B/{program} {words}"));
            assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "clang {version}: {words}");
            ran
        };
        let all = |launches: u64, plugin: u64| {
            let mut all = counts(SCRIPT, launches);
            all.extend(counts(PLUGIN, plugin));
            all
        };
        let check = |ran: &Ran, files: usize, expected: &Counts| {
            assert_eq!(ran.devices().len(), files, "clang {version}: {:?}", ran.files);
            assert_eq!(bench.counts(version, ran, &ran.devices()), *expected, "clang {version}");
        };
        check(&run("stays", "", "open $B/plugin.so call launch call"), 1, &all(1, 2));
        check(&run("closed", "", "launch open $B/plugin.so call close launch"), 1, &all(2, 1));
        check(
            &run("again", "", "open $B/plugin.so call close open $B/plugin.so call call close"),
            1,
            &counts(PLUGIN, 3),
        );
        let words = "launch open $B/plugin.so call drain close launch open $B/plugin.so call";
        // `%b` is the build ID of an image for the host's file: each image has another one there.
        for (name, pattern) in [("merged", "x.%m.profraw"), ("built", "x.%b.profraw")] {
            check(&run(name, &format!("LLVM_PROFILE_FILE={pattern}"), words), 2, &all(2, 2));
        }
    }
}

/// A program and a library, and the names of files in their command lines.
struct NamedImages {
    name: &'static str,
    program: &'static str,
    library: &'static str,
}

const NAMED_IMAGES: &[NamedImages] = &[
    NamedImages { name: "both", program: "=a.profraw", library: "=b.profraw" },
    NamedImages { name: "program", program: "=a.profraw", library: "" },
    NamedImages { name: "library", program: "", library: "=b.%p.profraw" },
    NamedImages { name: "merging", program: "=a.%m.profraw", library: "=b.profraw" },
];

/// Whether a device's file is beside the library's.
fn is_of_library(name: &str, file: &str) -> bool {
    if name == "program" { file.ends_with(".default.profraw") } else { file.contains(".b.") }
}

#[test]
fn images_with_names_of_their_own_write_each_code_once() {
    const TEST: &str = "profile drain, names of the command line";
    let Some(bench) = ProfileBench::new(TEST) else { return };
    for (&version, NamedImages { name, program, library }) in
        in_turn(TEST, NAMED_IMAGES, &bench.work.versions, |_| false)
    {
        let (clang, link) = (bench.clang(version, Instrument::Coverage), ProfileBench::link(true));
        let counters = "--offload-arch=gfx90a -fprofile-instr-generate";
        bench.work.run(&format!(
            "{clang} {counters}{program} -x hip script.hip {link} -o named & \
             {clang} {counters}{library} -fPIC -shared -x hip plugin.hip {link} -o named.so && wait $!"
        ));
        for (number, words) in [
            "open $B/named.so call launch",
            "launch open $B/named.so call drain launch call",
            "open $B/named.so call close launch drain open $B/named.so call launch",
            "launch drain open $B/named.so call close launch",
        ]
        .iter()
        .enumerate()
        {
            let ran = bench.start(&format!("{name}-{number}-{version}"), "", &format!("$B/named {words}"));
            assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "clang {version}, {name}: {words}");
            let mut expected = counts(SCRIPT, words.matches("launch").count() as u64);
            expected.extend(counts(PLUGIN, words.matches("call").count() as u64));
            let actual = bench.counts(version, &ran, &ran.devices());
            assert_eq!(actual, expected, "clang {version}, {name}: {words}: {:?}", ran.files);
            // The library's code is beside the library's file.
            let (own, other): (Vec<_>, Vec<_>) = ran.devices().into_iter().partition(|file| is_of_library(name, file));
            assert!(bench.counts(version, &ran, &own).into_keys().eq(PLUGIN.iter().map(|(name, _)| *name)), "{own:?}");
            assert!(!bench.counts(version, &ran, &other).contains_key(PLUGIN[0].0), "{other:?}");
        }
    }
}

#[test]
fn programs_without_hip_on_their_link_line_are_drained_too() {
    let Some(bench) = ProfileBench::new("profile drain, late and direct use") else { return };
    let newest = *bench.work.versions.last().expect("there is a compiler");
    bench.script(newest, Instrument::Coverage, "script", true);
    bench.work.run(&format!(
        "clang-{newest} late.c {drain} -o late && \
         clang-{newest} -I. direct.c {drain} lib/libhsa-runtime64.so.1 -o direct",
        drain = hotswap_profile_bench::DRAIN
    ));
    for (name, command) in [
        ("late", "$B/late $B/script.elf"),
        ("direct", "$B/direct $B/script.elf"),
        ("destroyed", "$B/direct $B/script.elf destroy"),
        ("shut-down", "$B/direct $B/script.elf shut-down"),
        ("both", "$B/direct $B/script.elf destroy shut-down"),
    ] {
        let ran = bench.start(&format!("run-{name}"), "", command);
        assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "{name}");
        assert_eq!(bench.counts(newest, &ran, &ran.devices()), counts(SCRIPT, 1), "{name}: {:?}", ran.files);
    }
}

#[test]
fn the_devices_version_word_is_the_files() {
    let Some(bench) = ProfileBench::new("profile drain, kinds of instrumentation") else { return };
    for &version in &bench.work.versions {
        for (name, instrument, level) in [
            ("ir", Instrument::Ir, "IR"),
            ("device-ir", Instrument::DeviceIr, "IR"),
            ("device", Instrument::DeviceCoverage, "Front-end"),
        ] {
            let program = format!("{name}-{version}");
            bench.script(version, instrument, &program, true);
            let ran = bench.start(&format!("run-{program}"), "", &format!("$B/{program} launch"));
            assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "{program}");
            let profile = bench.profile(version, &ran, &ran.devices());
            assert!(profile.level.starts_with(level), "{program}: {}", profile.level);
            // LLVM's own instrumentation prefixes the file to names that it made local.
            let functions = profile.counts.keys().map(|name| name.rsplit(';').next().unwrap_or_default());
            let mut functions: Vec<&str> = functions.collect();
            functions.sort_unstable();
            assert_eq!(functions, ["_Z5saxpyifPKfPf", "_Z5scaleff"], "{program}");
            assert!(profile.counts.values().all(|counters| counters.contains(&100)), "{program}: {:?}", profile.counts);
        }
    }
}
