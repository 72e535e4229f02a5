//! Many objects, large ones, many processes.

use hotswap_profile_bench::objects::{self, OBJECTS};
use hotswap_profile_bench::{Instrument, ProfileBench, SCRIPT, counts};

#[test]
fn twenty_six_objects_on_four_gpus() {
    let Some(bench) = ProfileBench::new("profile drain, 26 objects on 4 GPUs") else { return };
    let version = *bench.work.versions.last().expect("there is a compiler");
    bench.script(version, Instrument::Coverage, "script", true);
    objects::make(&bench, version, OBJECTS);
    let ran = bench.start("run", "STANDIN_AGENTS=4", &format!("$B/script {}", objects::words(OBJECTS, 4)));
    assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""));
    // Small profiles of a GPU share a file.
    assert_eq!(ran.devices().len(), 4, "{:?}", ran.devices());
    let found = bench.counts(version, &ran, &ran.devices());
    assert_eq!(found.len(), OBJECTS);
    assert!(found.values().all(|counters| counters[0] == 400), "{found:?}");
}

#[test]
fn a_hundred_megabytes_of_counters() {
    let Some(bench) = ProfileBench::new("profile drain, 100 MB of counters") else { return };
    for &version in &bench.work.versions {
        let program = format!("large-{version}");
        bench.program(version, Instrument::DeviceCoverage, "large.hip", &program, true);
        let ran = bench.start(&format!("run-{version}"), "", &format!("$B/{program}"));
        assert_eq!((ran.code, ran.error.as_str(), ran.devices().len()), (Some(7), "", 1), "clang {version}");
        let size =
            bench.work.path(&format!("{}/{}", ran.directory, ran.devices()[0])).metadata().expect("a file").len();
        assert!(size > 100 << 20, "clang {version}: {size}");
        let found = bench.counts(version, &ran, &ran.devices());
        assert_eq!(found.get("_Z9count_onePi").and_then(|counters| counters.first()), Some(&100), "clang {version}");
        bench.work.run(&format!("rm -r {program} run-{version}"));
    }
}

const PROCESSES: u64 = 1000;

#[test]
fn a_thousand_processes_end_at_once_in_one_directory() {
    let Some(bench) = ProfileBench::new("profile drain, 1000 processes") else { return };
    let version = *bench.work.versions.last().expect("there is a compiler");
    bench.script(version, Instrument::DeviceCoverage, "script", true);
    for (name, pattern, files) in [("each", "%p.profraw", PROCESSES as usize), ("one", "%m.profraw", 1)] {
        // All of them wait for the pipe to be opened for writing.
        let all = format!(
            "mkfifo $B/{name}.fifo; for i in $(seq {PROCESSES}); do (: < $B/{name}.fifo; exec $B/script launch) & \
             done; sleep 0.5; : > $B/{name}.fifo; bad=0; for job in $(jobs -p); do wait $job; \
             [ $? = 7 ] || bad=1; done; exit $bad"
        );
        let ran =
            bench.start(&format!("run-{name}"), &format!("LLVM_PROFILE_FILE={pattern}"), &format!("bash -c '{all}'"));
        assert_eq!((ran.code, ran.error.as_str(), ran.files.len()), (Some(0), "", files), "{name}");
        assert_eq!(bench.counts(version, &ran, &["gfx*".to_owned()]), counts(SCRIPT, PROCESSES), "{name}");
    }
}
