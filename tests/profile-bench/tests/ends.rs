//! Ends that run no exit handler, on request: `quick_exit`, signals, snapshots; ranks in the names of files.

use hotswap_profile_bench::{Counts, Instrument, PLUGIN, ProfileBench, SCRIPT, counts};

/// A run that ends without exit handlers.
struct End {
    variables: &'static str,
    words: &'static str,
    /// Exit code; `None` if a signal ends it.
    code: Option<i32>,
    /// Launches in the profiles of the device; `None` where there is no profile.
    launches: Option<u64>,
}

impl End {
    /// Whether a value of its variables has no meaning.
    fn is_reported(&self) -> bool {
        self.variables.contains("nonsense") || self.variables.contains("1.5")
    }
}

const fn end(variables: &'static str, words: &'static str, code: Option<i32>, launches: Option<u64>) -> End {
    End { variables, words, code, launches }
}

const ALL: &str = "HOTSWAP_PROFILE_ENDS=quick_exit,SIGTERM,SIGABRT";

#[rustfmt::skip]
const ENDS: &[End] = &[
    // Without the variables everything is lost, as before.
    end("", "launch quick-exit", Some(7), None),
    end("", "launch signal 15", None, None),
    end("", "launch abort", None, None),
    end("HOTSWAP_PROFILE_ENDS=nonsense,,SIGKILL", "launch signal 15", None, None),
    end(ALL, "launch quick-exit", Some(7), Some(1)),
    end(ALL, "launch launch signal 15", None, Some(2)),
    end(ALL, "launch abort", None, Some(1)),
    // Those that are not named.
    end("HOTSWAP_PROFILE_ENDS=SIGTERM", "launch abort", None, None),
    end("HOTSWAP_PROFILE_ENDS=quick_exit", "launch signal 15", None, None),
    // An ordinary end counts once; a signal that the program ignores does not end it.
    end(ALL, "launch", Some(7), Some(1)),
    end(ALL, "ignore 15 launch signal 15 launch", Some(7), Some(2)),
    // Nor does one that its parent lets it ignore.
    end("HOTSWAP_PROFILE_ENDS=SIGTERM; trap '' TERM", "launch signal 15 launch", Some(7), Some(2)),
    // A child has no thread of the drain, and its signal ends it; the parent's launches are its own.
    end(ALL, "launch fork signal 15 end", Some(7), Some(1)),
    // Snapshots: what was launched before the last one is there, and an end adds the rest.
    end("HOTSWAP_PROFILE_EVERY=1", "launch wait-for-file launch _exit", Some(7), Some(1)),
    end("HOTSWAP_PROFILE_EVERY=1", "launch wait-for-file launch", Some(7), Some(2)),
    end("HOTSWAP_PROFILE_EVERY=1.5", "launch wait 1700 _exit", Some(7), None),
];

#[test]
fn ends_without_handlers_are_profiled_on_request() {
    let Some(bench) = ProfileBench::new("profile drain, ends without handlers") else { return };
    for &version in &bench.work.versions {
        let program = format!("script-{version}");
        bench.script(version, Instrument::Coverage, &program, true);
        for (number, case) in ENDS.iter().enumerate() {
            let context = format!("clang {version}: {} {}", case.variables, case.words);
            let command = format!("$B/{program} {}", case.words);
            let ran = bench.start(&format!("run-{version}-{number}"), case.variables, &command);
            assert_eq!(ran.code, case.code, "{context}: {}", ran.error);
            assert_eq!(ran.error.contains("and is ignored"), case.is_reported(), "{context}: {}", ran.error);
            let expected = case.launches.map_or_else(Counts::new, |launches| counts(SCRIPT, launches));
            assert_eq!(bench.counts(version, &ran, &ran.devices()), expected, "{context}: {:?}", ran.files);
            // At an end that was asked for, the host's profile is written as well.
            let has_host = ran.files.iter().any(|name| name == "default.profraw") && case.launches.is_some();
            let is_snapshot = case.variables.contains("EVERY") && case.words.ends_with("_exit");
            assert!(is_snapshot || has_host == case.launches.is_some(), "{context}: {:?}", ran.files);
        }
    }
}

/// A run of a program without instrumentation, like Python, that opens a library with a drain.
struct LibraryEnd {
    variables: &'static str,
    words: &'static str,
    code: Option<i32>,
    /// Calls of the library in the profiles of the device; `None` where there is no profile.
    calls: Option<u64>,
}

const fn library_end(
    variables: &'static str,
    words: &'static str,
    code: Option<i32>,
    calls: Option<u64>,
) -> LibraryEnd {
    LibraryEnd { variables, words, code, calls }
}

#[rustfmt::skip]
const LIBRARY_ENDS: &[LibraryEnd] = &[
    library_end("", "open $B/plugin.so call signal 15", None, None),
    library_end("", "open $B/plugin.so call quick-exit", Some(7), None),
    library_end(ALL, "open $B/plugin.so call quick-exit", Some(7), Some(1)),
    library_end(ALL, "open $B/plugin.so call call signal 15", None, Some(2)),
    library_end(ALL, "open $B/plugin.so call abort", None, Some(1)),
    library_end(ALL, "open $B/plugin.so call", Some(7), Some(1)),
    // A second library leaves thread and handlers to the first one; both are counted.
    library_end(ALL, "open $B/plugin.so call open $B/second.so call signal 15", None, Some(2)),
    // A library that is closed stays, for the handler and the thread are its code.
    library_end(ALL, "open $B/plugin.so call close signal 15", None, Some(1)),
    library_end(ALL, "open $B/plugin.so call close open $B/plugin.so call close", Some(7), Some(2)),
    // A signal that the program handled before is its own.
    library_end(ALL, "ignore 15 open $B/plugin.so call signal 15 call", Some(7), Some(2)),
    library_end(ALL, "open $B/plugin.so call fork signal 15 end", Some(7), Some(1)),
    library_end("HOTSWAP_PROFILE_EVERY=1", "open $B/plugin.so call wait-for-file call _exit", Some(7), Some(1)),
    library_end("HOTSWAP_PROFILE_EVERY=1", "open $B/plugin.so call close wait-for-file _exit", Some(7), Some(1)),
    library_end("HOTSWAP_PROFILE_EVERY=1", "open $B/plugin.so call wait-for-file call", Some(7), Some(2)),
];

#[test]
fn libraries_in_foreign_programs_are_profiled_at_ends_without_handlers() {
    let Some(bench) = ProfileBench::new("profile drain, ends of foreign programs") else { return };
    for &version in &bench.work.versions {
        let (clang, link) = (bench.clang(version, Instrument::Coverage), ProfileBench::link(true));
        bench.work.run(&format!(
            "clang++-{version} -nogpuinc -I. -O1 --offload-arch=gfx90a -x hip script.hip -x none -lamdhip64 -o host
             {clang} --offload-arch=gfx90a -fPIC -shared -x hip plugin.hip {link} -o plugin.so
             cp plugin.so second.so"
        ));
        for (number, case) in LIBRARY_ENDS.iter().enumerate() {
            let context = format!("clang {version}: {} {}", case.variables, case.words);
            let command = format!("$B/host {}", case.words);
            let ran = bench.start(&format!("library-{version}-{number}"), case.variables, &command);
            assert_eq!((ran.code, ran.error.as_str()), (case.code, ""), "{context}");
            let expected = case.calls.map_or_else(Counts::new, |calls| counts(PLUGIN, calls));
            assert_eq!(bench.counts(version, &ran, &ran.devices()), expected, "{context}: {:?}", ran.files);
            let has_host = ran.files.iter().any(|name| name == "default.profraw") && case.calls.is_some();
            let is_snapshot = case.variables.contains("EVERY") && case.words.ends_with("_exit");
            assert!(is_snapshot || has_host == case.calls.is_some(), "{context}: {:?}", ran.files);
        }
    }
}

#[test]
fn a_program_and_its_libraries_are_profiled_at_one_signal() {
    let Some(bench) = ProfileBench::new("profile drain, ends of programs with libraries") else { return };
    for &version in &bench.work.versions {
        bench.script(version, Instrument::Coverage, "script", true);
        let (clang, link) = (bench.clang(version, Instrument::Coverage), ProfileBench::link(true));
        bench.work.run(&format!("{clang} --offload-arch=gfx90a -fPIC -shared -x hip plugin.hip {link} -o plugin.so"));
        let words = "open $B/plugin.so call launch launch signal 15";
        let variables = format!("{ALL} LLVM_PROFILE_FILE=x.%m.profraw");
        let ran = bench.start(&format!("both-{version}"), &variables, &format!("$B/script {words}"));
        assert_eq!((ran.code, ran.error.as_str()), (None, ""), "clang {version}");
        let mut expected = counts(SCRIPT, 2);
        expected.extend(counts(PLUGIN, 1));
        assert_eq!(bench.counts(version, &ran, &ran.devices()), expected, "clang {version}: {:?}", ran.files);
        // Each image has a runtime of the host, with a file of its own.
        let hosts: Vec<String> = ran.files.iter().filter(|name| name.starts_with("x.")).cloned().collect();
        let of_host = bench.counts(version, &ran, &hosts);
        assert!(of_host.contains_key("main") && of_host.contains_key("plugin_launch"), "clang {version}: {of_host:?}");
    }
}

#[test]
fn the_rank_names_the_files_of_host_and_devices() {
    let Some(bench) = ProfileBench::new("profile drain, ranks") else { return };
    for &version in &bench.work.versions {
        let program = format!("script-{version}");
        bench.script(version, Instrument::Coverage, &program, true);
        for (variables, rank) in
            [("OMPI_COMM_WORLD_RANK=3", "3"), ("SLURM_PROCID=12", "12"), ("PMI_RANK=5", "5"), ("", "0")]
        {
            let directory = format!("run-{version}-{rank}-{}", variables.len());
            let variables = format!("LLVM_PROFILE_FILE=r%r/p.%r.profraw {variables}");
            let ran = bench.start(&directory, &variables, &format!("$B/{program} launch"));
            assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "clang {version}, {variables}");
            let files = bench.work.run(&format!("cd {directory}/r{rank}; ls"));
            let ends: Vec<&str> = files.lines().collect();
            let [device, host] = ends[..] else { panic!("clang {version}, {variables}: {files}") };
            assert!(device.starts_with("gfx90a.") && device.ends_with(&format!(".p.{rank}.profraw")), "{files}");
            assert_eq!(host, format!("p.{rank}.profraw"));
        }
    }
}
