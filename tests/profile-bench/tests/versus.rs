//! LLVM's own drain and ours in the same situations: what is there, and what of it is right.

use hotswap_profile_bench::{Bench, Counts, Instrument, PLUGIN, SCRIPT, counts};
use hotswap_userland::say;

/// A situation: instrumentation, variables, words of `script.hip` in one or two runs, what was launched.
struct Situation {
    name: &'static str,
    instrument: Instrument,
    variables: &'static str,
    runs: &'static [&'static str],
    launches: u64,
    plugin: u64,
}

const PLAIN: Situation = Situation {
    name: "a kernel and a function that it calls",
    instrument: Instrument::Coverage,
    variables: "",
    runs: &["launch"],
    launches: 1,
    plugin: 0,
};

const SITUATIONS: &[Situation] = &[
    PLAIN,
    Situation {
        name: "two GPUs of one processor",
        variables: "STANDIN_AGENTS=2",
        runs: &["launch device 1 launch launch"],
        launches: 3,
        ..PLAIN
    },
    Situation { name: "a module that is unloaded", runs: &["load $B/$P.fat go unload"], ..PLAIN },
    Situation { name: "a module that stays", runs: &["load $B/$P.fat go"], ..PLAIN },
    Situation {
        name: "two runs into %m",
        variables: "LLVM_PROFILE_FILE=%m.profraw",
        runs: &["launch", "launch"],
        launches: 2,
        ..PLAIN
    },
    Situation { name: "libraries without links for development", variables: "LD_LIBRARY_PATH=$B/lib", ..PLAIN },
    Situation { name: "a host without instrumentation", instrument: Instrument::DeviceCoverage, ..PLAIN },
    Situation { name: "LLVM's instrumentation of the device only", instrument: Instrument::DeviceIr, ..PLAIN },
    Situation {
        name: "program and library, each with a drain",
        runs: &["launch open $B/$P.so call"],
        plugin: 1,
        ..PLAIN
    },
    Situation { name: "a damaged bounds table", variables: "STANDIN_PATCH=__llvm_profile_sections+40+=28", ..PLAIN },
    Situation { name: "a damaged record", variables: "STANDIN_PATCH=__profd__Z5scaleff+16=0", ..PLAIN },
];

/// What came out of a situation, for the table.
struct Found {
    ends_well: bool,
    files: usize,
    readable: bool,
    level: String,
    counts: Counts,
}

fn try_situation(bench: &Bench, version: u32, drain: bool, index: usize, situation: &Situation) -> Found {
    let program = format!("{}-{version}-{:?}", if drain { "ours" } else { "llvms" }, situation.instrument);
    let folder = format!("run-{version}-{drain}-{index}");
    let mut ends_well = true;
    bench.work.run(&format!("mkdir -p {folder}"));
    let mut ran = None;
    for words in situation.runs {
        let variables = format!("P={program} LD_LIBRARY_PATH=$B/dev; export {}", situation.variables);
        let one = bench.again(&folder, &variables, &format!("$B/{program} {words}"));
        ends_well &= one.code == Some(7);
        ran = Some(one);
    }
    let ran = ran.expect("each situation has a run");
    // LLVM's names have colons.
    let files: Vec<String> = ran.devices();
    let listed = files.iter().map(|file| format!("'{file}'")).collect::<Vec<_>>();
    let script =
        format!("cd {folder} && llvm-profdata-{version} merge --failure-mode=any -o /dev/null {}", listed.join(" "));
    let readable = files.is_empty() || bench.work.shell(&script).status.success();
    let profile = readable.then(|| bench.profile(version, &ran, &listed));
    let (level, counts) = profile.map_or_else(Default::default, |profile| (profile.level, profile.counts));
    Found { ends_well, files: files.len(), readable, level, counts }
}

fn judge(situation: &Situation, found: &Found) -> (bool, String) {
    let mut expected = counts(SCRIPT, situation.launches);
    expected.extend(counts(PLUGIN, situation.plugin).into_iter().filter(|_| situation.plugin > 0));
    if situation.name == "a damaged record" {
        expected.remove("_Z5scaleff");
    }
    let ir = situation.instrument == Instrument::DeviceIr;
    let right = if ir {
        found.counts.len() == 2 && found.counts.values().all(|counters| counters.contains(&100))
    } else {
        found.counts == expected
    };
    let level = !ir || found.level.starts_with("IR");
    let names = found.counts.len();
    let mut text = format!("{} files, {names} of {} functions", found.files, expected.len());
    for (wrong, what) in [
        (!found.ends_well, "CRASH"),
        (!found.readable, "llvm-profdata refuses the file"),
        (found.readable && found.files > 0 && !right, "counts WRONG"),
        (found.files > 0 && !level, "not marked as IR"),
        (found.files == 0, "LOST"),
    ] {
        if wrong {
            text += ", ";
            text += what;
        }
    }
    (found.ends_well && found.readable && right && level && found.files > 0, text)
}

#[test]
fn ours_is_right_where_llvms_is_not() {
    let Some(bench) = Bench::new("profile drain, beside LLVM's") else { return };
    bench.work.run("cp -r lib dev && ln -s libamdhip64.so.7 dev/libamdhip64.so && ln -s libhsa-runtime64.so.1 dev/libhsa-runtime64.so");
    let mut bad = Vec::new();
    for &version in &bench.work.versions {
        for (drain, name) in [(true, "ours"), (false, "llvms")] {
            for instrument in [Instrument::Coverage, Instrument::DeviceCoverage, Instrument::DeviceIr] {
                let program = format!("{name}-{version}-{instrument:?}");
                bench.script(version, instrument, &program, drain);
                let (clang, link) = (bench.clang(version, instrument), Bench::link(drain));
                bench.work.run(&format!(
                    "{clang} --offload-arch=gfx90a -fPIC -shared -x hip plugin.hip {link} -o {program}.so"
                ));
            }
        }
        say(&format!("clang {version:<42} LLVM's drain                                        HotSwap's"));
        for (index, situation) in SITUATIONS.iter().enumerate() {
            if version == 22 && situation.variables.contains("__llvm_profile_sections") {
                continue; // no table
            }
            let [(_, llvms), (right, ours)] =
                [false, true].map(|drain| judge(situation, &try_situation(&bench, version, drain, index, situation)));
            say(&format!("  {:<46} {llvms:<51} {ours}", situation.name));
            if !right {
                bad.push(format!("clang {version}: {}: {ours}", situation.name));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
