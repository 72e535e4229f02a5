//! Ends that run no exit handler, on request: `quick_exit`, signals, snapshots; ranks in the names of files.

use hotswap_profile_bench::{Bench, Counts, Instrument, SCRIPT, counts};

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
    let Some(bench) = Bench::new("profile drain, ends without handlers") else { return };
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

#[test]
fn the_rank_names_the_files_of_host_and_devices() {
    let Some(bench) = Bench::new("profile drain, ranks") else { return };
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
