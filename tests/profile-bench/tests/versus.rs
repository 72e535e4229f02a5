//! LLVM's own drain and ours in the same situations: the files written, and the correct ones among them.
//!
//! The result is the table of `docs/reference/profile-drain.md`; `HOTSWAP_BLESS=1` writes it.

use hotswap_profile_bench::{Counts, Instrument, PLUGIN, ProfileBench, SCRIPT, counts};
use hotswap_userland::{blesses, say, slice};
use std::collections::BTreeMap;

/// A situation: instrumentation, variables, arguments of `script.hip` in one or two runs, the launched kernels.
struct Situation {
    name: &'static str,
    instrument: Instrument,
    variables: &'static str,
    runs: &'static [&'static str],
    launches: u64,
    plugin: u64,
    /// An additional object in the link.
    object: &'static str,
    /// The exit code; `None` if a signal ends the program.
    code: Option<i32>,
}

const PLAIN: Situation = Situation {
    name: "a kernel and a function that it calls",
    instrument: Instrument::Coverage,
    variables: "",
    runs: &["launch"],
    launches: 1,
    plugin: 0,
    object: "",
    code: Some(7),
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
    Situation { name: "exit in a thread with 16 KiB of stack", runs: &["launch small-thread-exit"], ..PLAIN },
    Situation { name: "fork after a launch", runs: &["launch fork end"], ..PLAIN },
    Situation { name: "_Fork after a launch", runs: &["launch _Fork end"], ..PLAIN },
    Situation { name: "syscall(SYS_fork) after a launch", runs: &["launch SYS_fork end"], ..PLAIN },
    Situation { name: "pthread_exit in main", runs: &["launch main-ends"], ..PLAIN },
    Situation {
        name: "a launch by the destructor of a global object",
        runs: &["launch"],
        launches: 2,
        object: "leaving.o",
        ..PLAIN
    },
    Situation {
        name: "a query about an agent that fails",
        variables: "STANDIN_AGENTS=2 STANDIN_FAIL_AFTER=2 STANDIN_FAIL=hsa_agent_get_info#3=0x1000",
        runs: &["launch device 1 launch"],
        launches: 2,
        ..PLAIN
    },
    Situation {
        name: "quick_exit, on request",
        variables: "HOTSWAP_PROFILE_ENDS=quick_exit",
        runs: &["launch quick-exit"],
        ..PLAIN
    },
    Situation {
        name: "SIGTERM, on request",
        variables: "HOTSWAP_PROFILE_ENDS=SIGTERM",
        runs: &["launch signal 15"],
        code: None,
        ..PLAIN
    },
    Situation {
        name: "abort, on request",
        variables: "HOTSWAP_PROFILE_ENDS=SIGABRT",
        runs: &["launch abort"],
        code: None,
        ..PLAIN
    },
    Situation {
        name: "SIGKILL after a snapshot",
        variables: "HOTSWAP_PROFILE_EVERY=1",
        runs: &["launch wait 1500 signal 9"],
        code: None,
        ..PLAIN
    },
    Situation { name: "a damaged bounds table", variables: "STANDIN_PATCH=__llvm_profile_sections+40+=28", ..PLAIN },
    Situation { name: "a damaged record", variables: "STANDIN_PATCH=__profd__Z5scaleff+16=0", ..PLAIN },
];

/// The result of a situation, for the table.
struct Found {
    ends_well: bool,
    files: usize,
    readable: bool,
    level: String,
    counts: Counts,
}

fn try_situation(bench: &ProfileBench, version: u32, drain: bool, index: usize, situation: &Situation) -> Found {
    let program =
        format!("{}-{version}-{:?}{}", if drain { "ours" } else { "llvms" }, situation.instrument, situation.object);
    let directory = format!("run-{version}-{drain}-{index}");
    let mut ends_well = true;
    bench.work.run(&format!("mkdir -p {directory}"));
    let mut ran = None;
    for words in situation.runs {
        let variables = format!("P={program} LD_LIBRARY_PATH=$B/dev; export {}", situation.variables);
        let one = bench.again(&directory, &variables, &format!("$B/{program} {words}"));
        ends_well &= one.code == situation.code;
        ran = Some(one);
    }
    let ran = ran.expect("each situation has a run");
    // LLVM's names have colons.
    let files: Vec<String> = ran.devices();
    let listed = files.iter().map(|file| format!("'{file}'")).collect::<Vec<_>>();
    let script =
        format!("cd {directory} && llvm-profdata-{version} merge --failure-mode=any -o /dev/null {}", listed.join(" "));
    let readable = files.is_empty() || bench.work.shell(&script).status.success();
    let profile = readable.then(|| bench.profile(version, &ran, &listed));
    let (level, counts) = profile.map_or_else(Default::default, |profile| (profile.level, profile.counts));
    Found { ends_well, files: files.len(), readable, level, counts }
}

/// Whether everything is correct; a line for the log, and the cell of the table.
struct Verdict {
    right: bool,
    line: String,
    cell: String,
}

fn judge(situation: &Situation, found: &Found) -> Verdict {
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
    let mut faults = Vec::new();
    let is_partial = !ir && found.counts.iter().all(|(name, counts)| expected.get(name) == Some(counts));
    for (wrong, what) in [
        (!found.ends_well, "CRASH"),
        (!found.readable, "llvm-profdata refuses the file"),
        (found.readable && found.files > 0 && !right && is_partial, "FUNCTIONS MISSING"),
        (found.readable && found.files > 0 && !right && !is_partial, "counts WRONG"),
        (found.files > 0 && !level, "not marked as IR"),
        (found.files == 0, "LOST"),
    ] {
        if wrong {
            text += ", ";
            text += what;
            faults.push(what.to_ascii_lowercase());
        }
    }
    let plural = if found.files == 1 { "" } else { "s" };
    let cell = if faults.is_empty() { format!("right, {} file{plural}", found.files) } else { faults.join(", ") };
    Verdict { right: faults.is_empty(), line: text, cell }
}

/// Begin and end of the table in the document.
const BEGIN: &str =
    "<!-- table of `cargo xtask test -p hotswap-profile-bench versus`, written with HOTSWAP_BLESS=1 -->\n";
const END: &str = "<!-- end of the table -->\n";

/// The table, with the exact versions of the compilers: another LLVM may behave differently.
fn table(bench: &ProfileBench, cells: &BTreeMap<(usize, u32), [String; 2]>) -> (String, String) {
    let versions = &bench.work.versions;
    let exact = |version: &u32| bench.work.run(&format!("clang-{version} -dumpversion")).trim().to_owned();
    let of = format!("Compilers: clang {}.\n", versions.iter().map(exact).collect::<Vec<_>>().join(", "));
    let mut text = format!("{BEGIN}{of}\n| situation |");
    let llvms: Vec<u32> = versions.iter().copied().filter(|version| *version > 22).collect();
    llvms.iter().for_each(|version| text += &format!(" LLVM's drain, clang {version} |"));
    versions.iter().for_each(|version| text += &format!(" HotSwap's, clang {version} |"));
    text += &format!("\n|{}\n", " --- |".repeat(1 + llvms.len() + versions.len()));
    for (index, situation) in SITUATIONS.iter().enumerate() {
        let cell = |version: &u32, column: usize| cells.get(&(index, *version)).map_or("–", |cells| &cells[column]);
        let row = llvms.iter().map(|version| cell(version, 0)).chain(versions.iter().map(|version| cell(version, 1)));
        text += &format!("| {} | {} |\n", situation.name, row.collect::<Vec<_>>().join(" | "));
    }
    (of, text + END)
}

/// Compares the document's table, or writes it.
fn check_document(bench: &ProfileBench, cells: &BTreeMap<(usize, u32), [String; 2]>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/profile-drain.md");
    let document = std::fs::read_to_string(path).expect("the document is there");
    let (of, made) = table(bench, cells);
    let (before, rest) = document.split_once(BEGIN).expect("the table has a begin");
    let (old, after) = rest.split_once(END).expect("the table has an end");
    if blesses() {
        std::fs::write(path, format!("{before}{made}{after}")).expect("the document can be written");
    } else if old.starts_with(&of) {
        assert_eq!(format!("{BEGIN}{old}{END}"), made, "HOTSWAP_BLESS=1 writes the table");
    } else {
        say(&format!("the table of docs/reference/profile-drain.md is of other compilers; these are: {of}"));
    }
}

#[test]
fn ours_is_right_where_llvms_is_not() {
    let Some(bench) = ProfileBench::new("profile drain, beside LLVM's") else { return };
    bench.work.run("cp -r lib dev && ln -s libamdhip64.so.7 dev/libamdhip64.so && ln -s libhsa-runtime64.so.1 dev/libhsa-runtime64.so");
    let (mut bad, mut cells) = (Vec::new(), BTreeMap::new());
    let drains = slice("drains", vec![(true, "ours"), (false, "llvms")], |_, (ours, _)| *ours || blesses());
    for &version in &bench.work.versions {
        for &(drain, name) in &drains {
            for instrument in [Instrument::Coverage, Instrument::DeviceCoverage, Instrument::DeviceIr] {
                let program = format!("{name}-{version}-{instrument:?}");
                bench.script(version, instrument, &program, drain);
                let (clang, link) = (bench.clang(version, instrument), ProfileBench::link(drain));
                bench.work.run(&format!(
                    "{clang} --offload-arch=gfx90a -fPIC -shared -x hip plugin.hip {link} -o {program}.so && \
                     clang++-{version} -c leaving.cpp -o leaving.o && \
                     {clang} --offload-arch=gfx90a -x hip script.hip -x none leaving.o {link} -o {program}leaving.o"
                ));
            }
        }
        say(&format!("clang {version:<42} LLVM's drain                                        HotSwap's"));
        for (index, situation) in SITUATIONS.iter().enumerate() {
            if version == 22 && situation.variables.contains("__llvm_profile_sections") {
                continue; // no table
            }
            let verdict = |drain| judge(situation, &try_situation(&bench, version, drain, index, situation));
            let (ours, llvms) = (verdict(true), (drains.len() > 1).then(|| verdict(false)));
            let llvms_line = llvms.as_ref().map_or("not tried", |llvms| &llvms.line);
            say(&format!("  {:<46} {llvms_line:<51} {}", situation.name, ours.line));
            if !ours.right {
                bad.push(format!("clang {version}: {}: {}", situation.name, ours.line));
            }
            cells.extend(llvms.map(|llvms| ((index, version), [llvms.cell, ours.cell])));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    if drains.len() > 1 {
        check_document(&bench, &cells);
    }
}
