//! Code that a plan cannot derive, by the reason: with the policy `compile` clang compiles it, whatever the reason is; units that a
//! plan of the environment does not concern stay clang's, with one note. Objects that are not relocatable, by reason: `not_ours`.
//!
//! One table; each row's code objects, and the files beside the object, are compared with those of clang for the same GPUs.

use hotswap_tests::artifact::devices;
use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, in_turn, parallel, say};
use std::collections::BTreeMap;

const KERNEL: &str = r#"#include "hip.h"
__attribute__((global)) void kernel(int *p) { p[0] = p[0] * 3 + 1; }
extern "C" const void *address() { return reinterpret_cast<const void *>(kernel); }
int main() { return 0; }
"#;

/// A command with a plan.
#[derive(Debug, Clone, Copy)]
struct Row {
    name: &'static str,
    /// The plan, by options.
    options: &'static [&'static str],
    /// The plan, by variables.
    variables: &'static [(&'static str, &'static str)],
    /// The GPUs of the command.
    requested: &'static str,
    /// The GPUs of the output.
    expected: &'static str,
    /// The compilation, and the link where there is one.
    commands: &'static [&'static str],
    /// Text of a note that is printed once; empty for none.
    note: &'static str,
}

const COMPILE: &str = "--hotswap-policy=compile";
const PAIR: &str = "--hotswap-retarget=gfx1030=>gfx1031";
const OBJECT: &[&str] = &["-O2 -c kernel.hip -o out"];
const RELOCATABLE: &[&str] =
    &["-O2 -fPIC -fgpu-rdc -c kernel.hip -o unit.o", "-shared -nostdlib -fgpu-rdc --hip-link unit.o -o out"];

/// A link of the old driver into an archive.
const ARCHIVE: Row = Row {
    name: "an archive for other GPUs than those of the environment's plan",
    options: &[],
    variables: &[("HOTSWAP_RETARGET", "gfx1030=>gfx1031")],
    requested: "gfx1100",
    expected: "gfx1100",
    commands: &[
        "--no-offload-new-driver -O2 -fPIC -fgpu-rdc -c kernel.hip -o unit.o",
        "--no-offload-new-driver -fgpu-rdc --hip-link --emit-static-lib unit.o -o out",
    ],
    note: "gfx1030=>gfx1031",
};

const ROWS: &[Row] = &[
    Row {
        name: "files of debug information for each GPU",
        options: &[PAIR],
        variables: &[],
        requested: "gfx1030",
        expected: "gfx1030,gfx1031",
        commands: &["-O2 -g -gsplit-dwarf -c kernel.hip -o out"],
        note: "",
    },
    Row {
        name: "the same, coalesced",
        options: &["--hotswap-coalesce=1"],
        variables: &[],
        requested: "gfx1030,gfx1031",
        expected: "gfx1030,gfx1031",
        commands: &["-O2 -g -gsplit-dwarf -c kernel.hip -o out"],
        note: "",
    },
    Row {
        name: "the same, relocatable",
        options: &[PAIR],
        variables: &[],
        requested: "gfx1030",
        expected: "gfx1030,gfx1031",
        commands: &["-O2 -fPIC -g -gsplit-dwarf -fgpu-rdc -c kernel.hip -o unit.o", RELOCATABLE[1]],
        note: "",
    },
    Row {
        name: "no code for the source, relocatable",
        options: &[PAIR, COMPILE],
        variables: &[],
        requested: "gfx1100",
        expected: "gfx1031,gfx1100",
        commands: RELOCATABLE,
        note: "the source is compiled for gfx1031",
    },
    Row {
        name: "other GPUs than those of the environment's plan, with the policy compile",
        options: &[],
        variables: &[("HOTSWAP_RETARGET", "gfx1030=>gfx1031"), ("HOTSWAP_POLICY", "compile")],
        requested: "gfx1100",
        expected: "gfx1100",
        commands: OBJECT,
        note: "gfx1030=>gfx1031",
    },
    Row {
        name: "the same, relocatable",
        options: &[],
        variables: &[("HOTSWAP_RETARGET", "gfx1030=>gfx1031")],
        requested: "gfx1100",
        expected: "gfx1100",
        commands: RELOCATABLE,
        note: "gfx1030=>gfx1031",
    },
];

/// The files of one build: the code objects of the output by GPU, and the files of debug information by name.
#[derive(Debug, PartialEq, Eq)]
struct Outputs {
    code: BTreeMap<String, Vec<u8>>,
    debug: BTreeMap<String, Vec<u8>>,
}

struct Build<'b> {
    bench: &'b Bench,
    clang: &'b Clang,
    scratch: Scratch,
}

impl Build<'_> {
    fn run(&self, program: &str, gpus: &str, options: &[&str], variables: &[(&str, &str)], command: &str) -> Ran {
        let gpus = format!("--offload-arch={gpus}");
        let mut words = vec![program.to_owned(), gpus];
        words.extend(self.clang.light());
        words.extend(["-Wno-unused-command-line-argument", "-cuid=x"].map(str::to_owned));
        words.extend(options.iter().flat_map(|option| ["-Xoffload-linker".to_owned(), (*option).to_owned()]));
        words.extend(command.split(' ').map(str::to_owned));
        let call = Call::new(self.bench, &self.scratch.inside, &words).env("HOTSWAP_CLANG", self.clang.program.clone());
        variables.iter().fold(call, |call, (name, value)| call.env(name, *value)).run()
    }

    fn by_clang(&self, row: &Row) -> Result<Outputs, String> {
        for command in row.commands {
            let ran = self.run(&self.clang.program, row.expected, &[], &[], command);
            if !ran.ok() {
                return Err(format!("clang: {}", ran.brief()));
            }
        }
        self.outputs()
    }

    /// Takes the files of the build away.
    fn outputs(&self) -> Result<Outputs, String> {
        let code = devices(&self.scratch.read("out"))?;
        let code = code.into_iter().map(|device| (device.target().to_owned(), device.bytes)).collect();
        let mut debug = BTreeMap::new();
        for entry in std::fs::read_dir(self.scratch.outside("")).map_err(|error| error.to_string())? {
            let name = entry.map_err(|error| error.to_string())?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".dwo") {
                debug.insert(name.clone(), self.scratch.read(&name));
            }
            if [".dwo", ".o", "out"].iter().any(|end| name.ends_with(end)) {
                std::fs::remove_file(self.scratch.outside(&name)).map_err(|error| error.to_string())?;
            }
        }
        Ok(Outputs { code, debug })
    }
}

fn judge(bench: &Bench, clang: &Clang, row: &Row) -> Result<(), String> {
    let scratch = bench.scratch();
    write_sources(&scratch, false);
    scratch.write("kernel.hip", KERNEL);
    let build = Build { bench, clang, scratch };
    let clangs = build.by_clang(row)?;
    // With the new driver the names of temporary files are in the debug information.
    let is_stable = build.by_clang(row)?.code == clangs.code;
    let (ours, mut notes) = (bench.installed("bin/hotswap-clang++"), 0);
    for command in row.commands {
        let ran = build.run(&ours, row.requested, row.options, row.variables, command);
        if !ran.ok() || ran.stderr.contains("error") {
            return Err(format!("{command}: {}", ran.brief()));
        }
        let is_note = |line: &&str| line.contains("note") && line.contains(row.note);
        notes += if row.note.is_empty() { 0 } else { ran.stderr.lines().filter(is_note).count() };
    }
    let found = build.outputs()?;
    let names: Vec<&str> = found.code.keys().map(String::as_str).collect();
    if names.join(",") != row.expected || found.debug.keys().ne(clangs.debug.keys()) {
        return Err(format!("{names:?} {:?}, not {:?}", found.debug.keys(), clangs.debug.keys()));
    }
    let is_noted = row.note.is_empty() == (notes == 0) && notes <= row.commands.len();
    if (is_stable && found.code != clangs.code) || found.debug != clangs.debug || !is_noted {
        return Err(format!(
            "code as clang's: {}, debug information: {}, {notes} notes",
            found.code == clangs.code,
            found.debug == clangs.debug
        ));
    }
    Ok(())
}

#[test]
fn code_that_cannot_be_derived_is_clangs() {
    let Some(bench) = Bench::ready("missing code") else { return };
    let mut cases = in_turn("missing code", ROWS, &bench.clangs, |_| false);
    cases.extend(bench.clangs.iter().filter(|clang| clang.version < 24).map(|clang| (clang, &ARCHIVE)));
    let results = parallel(&cases, |(clang, row)| judge(&bench, clang, row));
    say(&format!("missing code: {} of {} rows hold", results.iter().flatten().count(), cases.len()));
    let wrong = cases.iter().zip(&results).filter_map(|((clang, row), result)| {
        Some(format!("clang {} {}: {}", clang.version, row.name, result.as_ref().err()?))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
