//! Damage and failures: the program ends normally, each loss is reported once, everything else is kept.

use hotswap_profile_bench::{Counts, Instrument, ProfileBench, Ran, SCRIPT, counts};

/// Both functions of `script.hip`, or only the one that is sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    All,
    Scale,
    Nothing,
}

impl Left {
    fn counts(self, launches: u64) -> Counts {
        match self {
            Self::All => counts(SCRIPT, launches),
            Self::Scale => counts(&SCRIPT[..1], launches),
            Self::Nothing => Counts::new(),
        }
    }
}

/// Damage in the memory of the GPU, for clang 22 (records of 64 bytes) and for later ones (72).
struct Damage {
    name: &'static str,
    old: &'static str,
    new: &'static str,
    left: Left,
    warnings: usize,
}

const SAXPY: &str = "__profd__Z5saxpyifPKfPf";

#[rustfmt::skip]
const DAMAGE: &[Damage] = &[
    Damage { name: "no damage", old: "", new: "", left: Left::All, warnings: 0 },
    Damage { name: "the pointer to the counters is zero", old: "R+16=0", new: "R+16=0", left: Left::Scale, warnings: 1 },
    Damage { name: "it points behind the section", old: "R+16+=0x10000", new: "R+16+=0x10000", left: Left::Scale, warnings: 1 },
    Damage { name: "it points before the section", old: "R+16+=-64", new: "R+16+=-64", left: Left::Scale, warnings: 1 },
    Damage { name: "it is not aligned", old: "R+16+=-4", new: "R+16+=-4", left: Left::Scale, warnings: 1 },
    Damage { name: "no counters", old: "R+48/4=0", new: "R+56/4=0", left: Left::Scale, warnings: 1 },
    Damage { name: "too many counters", old: "R+48/4=0x10000", new: "R+56/4=0x10000", left: Left::Scale, warnings: 1 },
    Damage { name: "all bits of the number are set", old: "R+48/4=0xffffffff", new: "R+56/4=0xffffffff", left: Left::Scale, warnings: 1 },
    Damage { name: "the pointer to uniform counters is wrong", old: "", new: "R+24+=0x10000", left: Left::All, warnings: 0 },
    Damage { name: "bitmaps that are not there", old: "R+60/4=8", new: "R+68/4=8", left: Left::Scale, warnings: 1 },
    Damage { name: "sites of values without values", old: "R+52/2=3", new: "R+60/2=3", left: Left::All, warnings: 0 },
    Damage { name: "pointers of the process", old: "R+32=0x1234,R+40=0x5678", new: "R+40=0x1234,R+48=0x5678", left: Left::All, warnings: 0 },
    Damage { name: "all records", old: "R+16=0,S+16=0", new: "R+16=0,S+16=0", left: Left::Nothing, warnings: 1 },
    Damage { name: "the table ends before it begins", old: "", new: "T+24=8", left: Left::All, warnings: 1 },
    Damage { name: "the table spans a terabyte", old: "", new: "T+24+=0x10000000000", left: Left::All, warnings: 1 },
    Damage { name: "the table's records are no multiple", old: "", new: "T+40+=28", left: Left::All, warnings: 1 },
    Damage { name: "the table has 64 KiB more of counters", old: "", new: "T+24+=0x10000", left: Left::All, warnings: 1 },
    Damage { name: "the table is of zeros", old: "", new: "T+16=0,T+24=0,T+32=0,T+40=0", left: Left::All, warnings: 1 },
    Damage { name: "a version of the future", old: "", new: "__llvm_profile_raw_version+0=99", left: Left::Nothing, warnings: 1 },
];

fn patch(rules: &str) -> String {
    let names = [("R+", SAXPY), ("S+", "__profd__Z5scaleff"), ("T+", "__llvm_profile_sections")];
    let named = |rule: &str| {
        let (short, long) = names.iter().find(|(short, _)| rule.starts_with(short)).unwrap_or(&("", ""));
        if short.is_empty() { rule.to_owned() } else { format!("{long}+{}", &rule[2..]) }
    };
    rules.split(',').map(named).collect::<Vec<_>>().join(",")
}

#[test]
fn damaged_memory_costs_what_is_damaged() {
    let Some(bench) = ProfileBench::new("profile drain, damaged memory") else { return };
    for &version in &bench.work.versions {
        let program = format!("script-{version}");
        bench.script(version, Instrument::Coverage, &program, true);
        for (index, damage) in DAMAGE.iter().enumerate() {
            let context = format!("clang {version}: {}", damage.name);
            let rules = if version == 22 { damage.old } else { damage.new };
            if rules.is_empty() && index > 0 {
                continue; // this version has no such thing
            }
            let mut left = damage.left;
            let mut warnings = damage.warnings;
            if damage.name.contains("uniform") {
                (left, warnings) = (Left::Scale, 1);
            }
            let variables = format!("STANDIN_PATCH={}", patch(rules));
            let ran = bench.start(&format!("run-{version}-{index}"), &variables, &format!("$B/{program} launch"));
            assert_eq!((ran.code, ran.warnings().len()), (Some(7), warnings), "{context}: {}", ran.error);
            assert_eq!(ran.error.lines().count(), warnings, "{context}: {}", ran.error);
            assert_eq!(bench.counts(version, &ran, &ran.devices()), left.counts(1), "{context}");
        }
    }
}

/// The loader's remaining data of the file, and whether the bounds table in the GPU's memory is sound.
#[rustfmt::skip]
const FILES: &[(&str, &str, Left, usize, usize)] = &[
    // Kind, damage, the remaining data, and the warnings of clang 22 (which has no table) and later.
    ("gone", "", Left::All, 0, 0),
    ("none", "", Left::All, 0, 0),
    ("short", "", Left::All, 0, 0),
    ("stripped", "", Left::All, 0, 0),
    ("gone", "T+24=8", Left::All, 0, 1),
    ("gone", "T+24+=0x10000000000", Left::All, 0, 1),
    ("gone", "T+16+=-8", Left::All, 0, 0),
    ("gone", "T+40+=28", Left::All, 0, 1),
    ("gone", "T+64=0x1000", Left::All, 0, 0),
    ("gone", "R+16=0", Left::Scale, 1, 1),
];

#[test]
fn without_the_file_the_gpus_memory_says_where_the_sections_are() {
    let Some(bench) = ProfileBench::new("profile drain, lost files") else { return };
    for &version in &bench.work.versions {
        let program = format!("script-{version}");
        bench.script(version, Instrument::Coverage, &program, true);
        for (index, (kind, damage, left, old, new)) in FILES.iter().enumerate() {
            let context = format!("clang {version}: {kind}, {damage}");
            let warnings = if version == 22 { *old } else { *new };
            let variables = format!("STANDIN_STORAGE={kind} STANDIN_PATCH={}", patch(damage));
            let ran = bench.start(&format!("run-{version}-{index}"), &variables, &format!("$B/{program} launch"));
            assert_eq!((ran.code, ran.warnings().len()), (Some(7), warnings), "{context}: {}", ran.error);
            let found = bench.counts(version, &ran, &ran.devices());
            if !damage.starts_with("T+16") {
                assert_eq!(found, left.counts(1), "{context}: {}", ran.error);
            }
        }
    }
}

/// Calls of HSA that fail after the launches, and how many of the two files exist then.
#[rustfmt::skip]
const FAILURES: &[(&str, usize)] = &[
    ("hsa_system_get_info=0x1000", 0),
    ("hsa_system_get_major_extension_table=0x1000", 0),
    ("hsa_init=0x1008", 0),
    ("query_segment_descriptors=0x1000", 0),
    ("query_segment_descriptors#1=0x1000", 0),
    ("query_segment_descriptors#2=0x1000", 0),
    ("query_segment_descriptors#2=0x100d", 2), // another thread loaded code in between
    ("query_segment_descriptors=0x100d", 0),
    ("hsa_agent_get_info=0x1000", 0),
    ("hsa_agent_get_info#1=0x1000", 1),
    ("hsa_agent_get_info#2=0x1000", 1),
    ("hsa_agent_get_info#3=0x1000", 2), // the node; the agent's number replaces it
    ("hsa_agent_get_info#4=0x1000", 1),
    ("hsa_memory_copy=0x1000", 0),
    ("hsa_memory_copy#1=0x1000", 1),
    ("hsa_memory_copy#2=0x1000", 1),
    ("hsa_shut_down=0x1000", 2),
];

#[test]
fn whatever_fails_in_hsa_the_program_ends_as_it_would() {
    let Some(bench) = ProfileBench::new("profile drain, failing HSA") else { return };
    for &version in &bench.work.versions {
        let program = format!("script-{version}");
        bench.script(version, Instrument::Coverage, &program, true);
        for (index, (failure, files)) in FAILURES.iter().enumerate() {
            let context = format!("clang {version}: {failure}");
            // A second attempt is made when the fat binary is unregistered, which recovers from one failure.
            let retried = failure.contains('#') && !failure.ends_with("0x100d");
            let files = if retried { 2 } else { *files };
            let variables = format!("STANDIN_AGENTS=2 STANDIN_FAIL_AFTER=2 STANDIN_FAIL={failure}");
            let words = "launch device 1 launch";
            let ran = bench.start(&format!("run-{version}-{index}"), &variables, &format!("$B/{program} {words}"));
            assert_eq!((ran.code, ran.devices().len()), (Some(7), files), "{context}: {}", ran.error);
            let lost = if retried { 0 } else { 2 - files };
            assert!(ran.warnings().len() >= lost.min(1) && ran.warnings().len() <= 2, "{context}: {}", ran.error);
            assert_eq!(ran.error.lines().count(), ran.warnings().len(), "{context}: {}", ran.error);
            assert!(ran.warnings().iter().all(|line| line.contains("lost")), "{context}: {}", ran.error);
            if files > 0 {
                assert_eq!(bench.counts(version, &ran, &ran.devices()), counts(SCRIPT, files as u64), "{context}");
            }
        }
    }
}

/// Unwritable locations: a script that makes one and starts `$@` in it, the reason in the warning.
#[rustfmt::skip]
const PLACES: &[(&str, &str, &str)] = &[
    ("a file is where a directory should be", "echo > f; exec env LLVM_PROFILE_FILE=f/x.profraw \"$@\"", "not a directory"),
    ("a name that is too long", "exec env LLVM_PROFILE_FILE=$(printf %300s | tr ' ' x) \"$@\"", "file name too long"),
    ("a limit of file sizes", "ulimit -f 0; exec \"$@\"", "file too large"),
    ("a limit of file sizes, merging", "ulimit -f 0; export LLVM_PROFILE_FILE=%m.profraw; exec \"$@\"", "file too large"),
    ("no standard error", "echo > f; exec env LLVM_PROFILE_FILE=f/x.profraw \"$@\" 2>&-", ""),
    ("standard error is a closed pipe", "echo > f; export LLVM_PROFILE_FILE=f/x.profraw; { sleep 0.1; exec \"$@\"; } 2> >(:)", ""),
    ("a read-only file system", "FAIL_LIBC=open=30", "read-only file system"),
    ("a full disk", "FAIL_LIBC=writev=28", "no space left on device"),
    ("a full disk, merging", "LLVM_PROFILE_FILE=%m FAIL_LIBC=writev=28", "no space left on device"),
    ("a quota", "FAIL_LIBC=writev=122", "disk quota exceeded"),
    ("a name that cannot be changed", "FAIL_LIBC=rename=13", "permission denied"),
    ("no memory", "FAIL_LIBC=calloc=12", "no memory"),
];

#[test]
fn files_that_cannot_be_written_are_said_and_change_nothing() {
    let Some(bench) = ProfileBench::new("profile drain, files") else { return };
    let version = bench.work.versions[0];
    bench.script(version, Instrument::DeviceCoverage, "script", true);
    for (index, (name, script, reason)) in PLACES.iter().enumerate() {
        let preload =
            script.contains("FAIL_LIBC").then(|| format!("LD_PRELOAD=$B/lib/failing.so {script} exec \"$@\""));
        let script = preload.as_deref().unwrap_or(script);
        let command = format!("bash -c {} bash $B/script launch", quoted(script));
        let ran = bench.start(&format!("run-{index}"), "", &command);
        assert_eq!(ran.code, Some(7), "{name}: {}", ran.error);
        assert_eq!(ran.devices(), Vec::<String>::new(), "{name}: {:?}", ran.files);
        assert!(ran.files.iter().all(|file| !file.ends_with(".tmp")), "{name}: {:?}", ran.files);
        let warnings: Vec<&str> = ran.warnings();
        let expected = usize::from(!reason.is_empty());
        assert_eq!(warnings.len(), expected, "{name}: {}", ran.error);
        assert!(warnings.iter().all(|line| line.contains(reason)), "{name}: {}", ran.error);
    }
}

#[test]
fn without_locks_each_process_has_its_own_file() {
    let Some(bench) = ProfileBench::new("profile drain, no locks") else { return };
    let version = bench.work.versions[0];
    bench.script(version, Instrument::DeviceCoverage, "script", true);
    bench.work.run("mkdir run");
    for files in 1..=2 {
        let variables = "LLVM_PROFILE_FILE=%m FAIL_LIBC=flock=95 LD_PRELOAD=$B/lib/failing.so";
        let ran = bench.again("run", variables, "$B/script launch");
        assert_eq!((ran.code, ran.error.as_str(), ran.files.len()), (Some(7), "", files));
        assert_eq!(bench.counts(version, &ran, &ran.devices()), counts(SCRIPT, files as u64));
        bench.work.run("rm run/merged.profdata");
    }
}

fn quoted(script: &str) -> String {
    format!("'{}'", script.replace('\'', "'\\''"))
}

#[test]
fn real_runtimes_without_a_gpu_are_survived() {
    let Some(bench) = ProfileBench::new("profile drain, real runtimes") else { return };
    for &version in &bench.work.versions {
        let libraries = |program: &str, drain: bool| {
            bench.script(version, Instrument::Coverage, program, drain);
            let ran = bench.start(
                &format!("run-{program}"),
                "LD_LIBRARY_PATH= LD_DEBUG=files HOTSWAP_PROFILE_VERBOSE=1",
                &format!("$B/{program} launch"),
            );
            assert_eq!((ran.code, ran.devices().len(), ran.warnings().len()), (Some(7), 0, 0), "{}", ran.error);
            loaded(&ran)
        };
        // Without our drain, clang 23 and later need no drain to link.
        let ours = libraries(&format!("ours-{version}"), true);
        let plain = libraries(&format!("plain-{version}"), false);
        assert!(ours.iter().any(|name| name.contains("libhsa-runtime64")), "{ours:?}");
        assert_eq!(ours, plain, "clang {version}");
    }
}

fn loaded(ran: &Ran) -> Vec<String> {
    let lines = ran.error.lines().filter_map(|line| line.split_once("calling init: "));
    let mut names: Vec<String> =
        lines.map(|(_, path)| path.rsplit('/').next().unwrap_or_default().to_owned()).collect();
    names.sort();
    names
}
