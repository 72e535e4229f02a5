//! The matrix for AArch64: cross-compiled registrars from the C text, lld and mold, no libc.

use hotswap_families::archive::PATCHES_DEF;
use hotswap_families::manifest::Format;
use hotswap_link_matrix::{Bench, Expect, GHOST, PLAN_HASH, families, patches_def_without, records, sweep, table_size};

const FORMAT: Format = Format::ElfAarch64;
const TARGET: &str = "--target=aarch64-linux-gnu";
const LINKERS: &[&[&str]] = &[&["ld.lld-22"], &["ld.lld-23"], &["mold", "-m", "aarch64linux"]];
const KINDS: &[&[&str]] = &[&["-static"], &["-pie"], &["-shared"], &["-shared", "-Bsymbolic"]];
/// Archive, manifest, and the family that the message has to name.
const CASES: &[(&str, &str, Option<Missing>)] = &[
    ("complete.a", "plan.manifest.o", None),
    ("object.a", "plan.manifest.o", Some(Missing::First)),
    ("line.a", "plan.manifest.o", Some(Missing::Last)),
    ("complete.a", "ghost.manifest.o", Some(Missing::Ghost)),
];

#[derive(Debug, Clone, Copy)]
enum Missing {
    First,
    Last,
    Ghost,
}

impl Missing {
    fn name(self) -> String {
        match self {
            Self::First => families()[0].to_owned(),
            Self::Last => families()[families().len() - 1].to_owned(),
            Self::Ghost => GHOST.to_owned(),
        }
    }
}

fn archive(bench: &Bench, name: &str, objects: &[String]) {
    let words: Vec<&str> = ["crsD", name].into_iter().chain(objects.iter().map(String::as_str)).collect();
    bench.must("llvm-ar-22", &words);
}

fn prepare(bench: &Bench) {
    bench.write("user.c", "int unused_function(void) { return 7; }\nint _start(void) { return 0; }\n");
    let compile = [TARGET, "-O2", "-fPIC", "-ffunction-sections", "-c", "user.c"];
    bench.must("clang-22", &[&compile[..], &["-o", "user.o"]].concat());
    bench.manifest("plan", FORMAT, &families());
    bench.manifest("ghost", FORMAT, &[&families()[..], &[GHOST]].concat());
    let clang = [TARGET, "-ffreestanding", "-fPIC"];
    let all = bench.registrars("all", PATCHES_DEF, &clang);
    archive(bench, "complete.a", &all);
    archive(bench, "object.a", &all[1..]);
    let less = bench.registrars("less", &patches_def_without(families()[families().len() - 1]), &clang);
    archive(bench, "line.a", &less);
}

#[test]
fn a_missing_registrar_is_an_error_that_names_the_family() {
    let tools = ["clang-22", "ld.lld-22", "ld.lld-23", "mold", "llvm-ar-22", "llvm-strip-22"];
    let Some(bench) = Bench::new("AArch64 link matrix", &tools) else { return };
    prepare(&bench);
    let mut combinations = Vec::new();
    for (linker, kind) in LINKERS.iter().flat_map(|linker| KINDS.iter().map(move |kind| (linker, kind))) {
        for (gc, archive_first) in [(false, false), (true, false), (false, true), (true, true)] {
            combinations.extend(CASES.iter().map(|case| (linker, kind, gc, archive_first, case)));
        }
    }
    let tally = sweep(&combinations, |index, &(linker, kind, gc, archive_first, (archive, manifest, missing))| {
        let output = format!("out-{index}");
        let own = if archive_first { [*archive, *manifest] } else { [*manifest, *archive] };
        let collect: &[&str] = if gc { &["--gc-sections"] } else { &[] };
        let words = [&linker[1..], *kind, collect, &["user.o"], &own, &["-o", &output]].concat();
        let ran = bench.run(linker[0], &words);
        let expect = missing.map_or(Expect::Links, |missing| Expect::ErrorNaming(missing.name()));
        expect.fault(&ran).or_else(|| ran.ok.then(|| product_fault(&bench, &output)).flatten())
    });
    tally.finish("AArch64 link matrix");
}

fn product_fault(bench: &Bench, output: &str) -> Option<String> {
    for stage in ["linked", "stripped"] {
        if stage == "stripped" {
            bench.must("llvm-strip-22", &[output]);
        }
        let bytes = bench.read(output);
        let found = records(&bytes).unwrap_or_default();
        if found.len() != 1 || found[0].plan != PLAN_HASH || found[0].families != families() {
            return Some(format!("{stage}: {found:?}"));
        }
        let size = table_size(&bytes, FORMAT);
        if size != Some(8 * families().len() as u64) {
            return Some(format!("{stage}: table of {size:?} bytes"));
        }
    }
    None
}
